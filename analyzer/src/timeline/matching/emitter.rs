//! Converts what matching finds from the ranks' own counters to seconds of the global timeline,
//! counts it, and passes it to the sink.

use crate::timeline::global::GlobalTimeline;
use crate::trace::Run;

use super::call::Call;
use super::channel_key::ChannelKey;
use super::clocks::Clocks;
use super::collectives::{Contribution, OpenInstance, OpenMember};
use super::findings::{
    Access, CollectiveInstance, CollectiveMember, MatchFinding, MatchInterest, MatchSink,
    MatchingSummary, Message, Reason, Side, Unmatched,
};
use super::in_flight::{MAX_STATUS_BYTES, Receive, Send};
use super::operations::CollectiveNames;
use super::pairs::Pair;

/// Builds the findings and counts them.
#[derive(Debug, Clone)]
pub(super) struct Emitter<'a> {
    run: &'a Run,
    clocks: Clocks<'a>,
    names: CollectiveNames,
    findings: Vec<MatchFinding>,
    /// The last instance, whose memory is reused.
    instance: CollectiveInstance,
    pub wants: MatchInterest,
    /// Counts so far.
    pub summary: MatchingSummary,
}

impl<'a> Emitter<'a> {
    pub fn new(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        names: CollectiveNames,
        wants: MatchInterest,
    ) -> Self {
        let clocks = Clocks::new(run, timeline);
        let (findings, instance, summary) = Default::default();
        Self { run, clocks, names, findings, instance, wants, summary }
    }

    /// Whether a collective operation, by the number of its name, has a root.
    #[inline]
    pub fn is_rooted(&self, function: u16) -> bool {
        self.names.is_rooted(function)
    }

    /// Global seconds at a reading of a rank's counter, if the rank has a file.
    pub fn seconds(&mut self, rank: u32, ticks: u64) -> Option<f64> {
        self.clocks.of_rank(rank).map(|mut clock| clock.seconds(ticks))
    }

    /// Reading of a rank's counter at a global time, if the rank has a file.
    pub fn ticks(&mut self, rank: u32, seconds: f64) -> Option<u64> {
        self.clocks.of_rank(rank).map(|clock| clock.ticks_at(seconds))
    }

    /// Passes the findings since the last drain to the sink.
    pub fn drain(&mut self, sink: &mut (impl MatchSink + ?Sized)) {
        for finding in self.findings.drain(..) {
            sink.take(&finding);
        }
    }

    /// The message of a pair; `None` if it is not certain that it was transferred.
    #[inline]
    pub fn message(&mut self, pair: &Pair) -> Option<Message> {
        let Pair { key, send, sent, receive } = pair;
        if let Some(reason) = receive.lost() {
            // It is known which message the receive would take, but not when it did, or whether.
            self.unmatched_send(*key, send, reason);
            self.unmatched_receive(*key, receive, reason);
            return None;
        }
        self.summary.matched += 1;
        self.summary.truncated += u64::from(receive.truncated);
        let received = receive.bytes.filter(|bytes| *bytes < MAX_STATUS_BYTES);
        self.summary.size_mismatches +=
            u64::from(received.is_some_and(|bytes| bytes != send.bytes));
        let mut message = Message::default();
        (message.communicator, message.tag) = (key.communicator, key.tag);
        (message.bytes, message.wildcard) = (send.bytes, receive.wildcard);
        message.truncated = receive.truncated;
        message.send.completed = *sent;
        message.receive.completed = receive.completed();
        let received_ticks = receive.completed_ticks();
        let ends = [
            (&mut message.send, key.source, &send.call, send.call.end_ticks()),
            (&mut message.receive, key.destination, &receive.call, received_ticks),
        ];
        for (end, rank, posted, end_ticks) in ends {
            // Both ends of a message have a file.
            let mut clock = self.clocks.of_rank(rank)?;
            (end.rank, end.thread) = (rank, posted.thread);
            (end.begin_ticks, end.end_ticks) = (posted.begin_ticks, end_ticks);
            end.begin_s = clock.seconds(posted.begin_ticks);
            end.end_s = end_ticks.map(|ticks| clock.seconds(ticks));
            end.posted = *posted;
        }
        Some(message)
    }

    /// Adds an access by the rank at a position of the run; fills in `begin_s`.
    pub fn access(&mut self, rank: usize, access: Access) {
        let begin_s = self.clocks.at(rank).seconds(access.call.begin_ticks);
        self.findings.push(MatchFinding::Access(Access { begin_s, ..access }));
    }

    /// Adds a finding that is complete.
    pub fn add(&mut self, finding: MatchFinding) {
        self.findings.push(finding);
    }

    /// Adds a send without a partner.
    pub fn unmatched_send(&mut self, key: ChannelKey, send: &Send, reason: Reason) {
        self.unmatched(Unmatched {
            side: Side::Send,
            reason,
            rank: key.source,
            begin_ticks: send.call.begin_ticks,
            begin_s: 0.0,
            partner: Some(key.destination),
            communicator: Some(key.communicator),
            bytes: send.bytes,
        });
    }

    /// Adds a receive without a partner.
    pub fn unmatched_receive(&mut self, key: ChannelKey, receive: &Receive, reason: Reason) {
        self.unmatched(Unmatched {
            side: Side::Receive,
            reason,
            rank: key.destination,
            begin_ticks: receive.call.begin_ticks,
            begin_s: 0.0,
            partner: Some(key.source),
            communicator: Some(key.communicator),
            bytes: 0,
        });
    }

    /// Adds a send or receive of a rank of the world, without a partner and with an unknown
    /// channel.
    pub fn unmatched_without_channel(
        &mut self,
        side: Side,
        reason: Reason,
        (rank, call): (u32, Call),
        communicator: Option<u32>,
        bytes: u64,
    ) {
        self.unmatched(Unmatched {
            side,
            reason,
            rank,
            begin_ticks: call.begin_ticks,
            begin_s: 0.0,
            partner: None,
            communicator,
            bytes,
        });
    }

    /// Adds a send or receive without a partner; fills in `begin_s`.
    fn unmatched(&mut self, unmatched: Unmatched) {
        self.summary.unmatched.entry(unmatched.reason).or_default().add(unmatched.side);
        let Unmatched { rank, begin_ticks, .. } = unmatched;
        let begin_s = self.clocks.of_rank(rank).map_or(0.0, |mut clock| clock.seconds(begin_ticks));
        self.findings.push(MatchFinding::Unmatched(Unmatched { begin_s, ..unmatched }));
    }

    /// Adds a collective instance that has all its members.
    pub fn instance(&mut self, open: &OpenInstance) {
        let mut instance = CollectiveInstance::default();
        self.fill_instance(open, &mut instance);
        let finding = self.finding(open, instance);
        self.findings.push(finding);
    }

    /// Like [`Emitter::instance`], but passes it to the sink at once.
    pub fn emit_instance(&mut self, open: &OpenInstance, sink: &mut impl MatchSink) {
        let mut instance = std::mem::take(&mut self.instance);
        self.fill_instance(open, &mut instance);
        let finding = self.finding(open, instance);
        sink.take(&finding);
        if let MatchFinding::Collective(instance) | MatchFinding::ImplicitCollective(instance) =
            finding
        {
            self.instance = instance;
        }
    }

    fn finding(&self, open: &OpenInstance, instance: CollectiveInstance) -> MatchFinding {
        match self.names.is_implicit(open.function) {
            true => MatchFinding::ImplicitCollective(instance),
            false => MatchFinding::Collective(instance),
        }
    }

    /// Fills `instance` from a complete one, and counts it.
    fn fill_instance(&mut self, open: &OpenInstance, instance: &mut CollectiveInstance) {
        let members = open.members.iter().map(|member| {
            let OpenMember { rank, call, completed, contribution, .. } = *member;
            let Contribution { sent_bytes, received_bytes, .. } = contribution;
            let mut clock = self.clocks.at(rank);
            let mut seconds = |call: Call| call.end_ticks().map(|ticks| clock.seconds(ticks));
            let (end_s, complete_s) = (seconds(call), completed.and_then(&mut seconds));
            CollectiveMember {
                rank: self.run.ranks[rank].rank,
                thread: call.thread,
                begin_s: clock.seconds(call.begin_ticks),
                end_s,
                complete_s,
                begin_ticks: call.begin_ticks,
                posted: call,
                completed,
                sent_bytes,
                received_bytes,
            }
        });
        instance.members.clear();
        instance.members.extend(members);
        instance.root = open.members.iter().find_map(|member| member.contribution.root);
        instance.function.clear();
        instance.function.push_str(self.names.name(open.function));
        (instance.communicator, instance.number) = (open.communicator, open.number);
        instance.lane = open.lane;
        (instance.missing, instance.mismatched) = (open.missing, open.mismatched);
        if self.names.is_implicit(open.function) {
            return;
        }
        if instance.missing > 0 {
            self.summary.incomplete_instances += 1;
        } else {
            self.summary.complete_instances += 1;
        }
        self.summary.mismatched_instances += u64::from(instance.mismatched);
    }
}
