//! Finds what each call had to wait for, from the matched messages and collective operations: one
//! condition for each partner that acted after the call had begun. docs/causes.md defines the
//! rules.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::meaning::{Meaning, Synchronises};

use crate::analysis::Analysis;
use crate::timeline::communicators::Peer;
use crate::timeline::matching::{
    Call, CollectiveInstance, CollectiveMember, MatchSink, Message, MessageEnd, Polls, Probed,
    Wants,
};
use crate::trace::Run;

use super::State;
use super::lines::Lines;
use super::receipts::Receipts;
use super::semantics::{CallKind, CallSemantics, SendMode};
use super::whole_ticks::WholeTicks;

/// Something a partner did that a call needed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Condition {
    /// The call: its line, and when it was entered (E) and left (L).
    pub line: u32,
    pub entered: i64,
    pub left: i64,
    /// When the partner fulfilled the condition (A), and the partner's line.
    pub fulfilled: i64,
    pub partner: u32,
    /// Largest error between the two clocks (β), in ticks.
    pub bound: i64,
    pub state: State,
    /// What kind of call it is.
    pub call: CallKind,
    /// The call's function on its rank.
    pub function: u16,
    /// Number of the slot within the rank, truncated.
    pub number: u32,
    /// A send that the library may have taken before its receive was posted.
    pub may_be_eager: bool,
}

/// A call that lasted longer than the partner's part explains. `condition` describes its wait for
/// the partner to move the message, in case late progress turns out to be the reason.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unexplained {
    /// The partner's rank, by its position.
    pub partner: usize,
    /// Up to when the partner's part explains the call.
    pub since: i64,
    pub condition: Condition,
}

/// Shorter unexplained parts of calls are not examined for late progress.
const MIN_UNEXPLAINED_S: f64 = 100e-6;

/// Least ticks by which a call outlasts its explained part for it to be examined for late progress.
pub(super) fn min_unexplained_ticks(clock: &WholeTicks) -> i64 {
    (MIN_UNEXPLAINED_S * clock.ticks_per_s) as i64
}

/// A collective operation that all members were inside at the same time, so that their lines
/// synchronised there.
#[derive(Debug, Clone)]
pub(super) struct CollectiveSync {
    pub communicator: u32,
    /// When the last member entered.
    pub moment: i64,
    /// The members' lines, ascending; most operations of a communicator share one list.
    pub lines: Arc<[u32]>,
}

/// A run of polls that found nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct PollRun {
    pub line: u32,
    pub begin: i64,
    pub end: i64,
    /// Ticks inside the polls.
    pub inside: i64,
    pub function: u16,
    /// Number of the slot within the rank, truncated.
    pub number: u32,
}

/// What one share of the run yielded.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub conditions: Vec<Condition>,
    pub collective_syncs: Vec<CollectiveSync>,
    pub polls: Vec<PollRun>,
    pub unexplained: Vec<Unexplained>,
    pub receipts: Receipts,
    /// Probes, each with the call that received its message.
    probes: Vec<(Side, Entry)>,
    /// Sends of messages that were probed, keyed by the call that received them.
    probed: Vec<(Entry, Side)>,
    /// Conditions fulfilled after the call had returned, by more than the clock error.
    pub violations: u64,
    /// Collective operations with missing members.
    pub incomplete: u64,
    /// Neighbourhood collectives, whose partners are not recorded.
    pub neighbourhoods: u64,
}

/// A call's line, and when it was entered.
type Entry = (u32, i64);

impl Found {
    pub fn merge(mut self, other: Self) -> Self {
        self.conditions.extend(other.conditions);
        self.collective_syncs.extend(other.collective_syncs);
        self.polls.extend(other.polls);
        self.unexplained.extend(other.unexplained);
        self.receipts.merge(other.receipts);
        self.probes.extend(other.probes);
        self.probed.extend(other.probed);
        self.violations += other.violations;
        self.incomplete += other.incomplete;
        self.neighbourhoods += other.neighbourhoods;
        self
    }
}

/// Collects conditions from the matcher.
#[derive(Debug)]
pub(super) struct Finder<'f, 'a> {
    run: &'a Run,
    analysis: &'f Analysis<'a>,
    clock: &'f WholeTicks<'a>,
    lines: &'f Lines,
    semantics: &'f CallSemantics,
    positions: FxHashMap<u32, FxHashMap<u32, u32>>,
    /// By communicator the lines of its last operation, to be shared by the next.
    sync_lines: FxHashMap<u32, Arc<[u32]>>,
    min_unexplained_ticks: i64,
    /// Calls that receive a probed message which has not been matched yet.
    awaited: FxHashSet<Entry>,
    found: Found,
}

/// One side of a message or operation: rank, line, call and its times.
#[derive(Debug, Clone, Copy)]
struct Side {
    rank: usize,
    line: u32,
    call: Call,
    entered: i64,
    left: Option<i64>,
}

impl<'f, 'a> Finder<'f, 'a> {
    pub fn new(
        analysis: &'f Analysis<'a>,
        clock: &'f WholeTicks<'a>,
        (lines, semantics): (&'f Lines, &'f CallSemantics),
    ) -> Self {
        Self {
            run: analysis.run,
            analysis,
            clock,
            lines,
            semantics,
            positions: FxHashMap::default(),
            sync_lines: FxHashMap::default(),
            min_unexplained_ticks: min_unexplained_ticks(clock),
            awaited: FxHashSet::default(),
            found: Found::default(),
        }
    }

    pub fn into_found(self) -> Found {
        self.found
    }

    /// Adds the conditions of probes, now that their messages are known.
    pub fn resolve_probes(mut self, mut found: Found) -> Found {
        let sent: FxHashMap<Entry, Side> = found.probed.drain(..).collect();
        let probes = std::mem::take(&mut found.probes);
        self.found = found;
        for (probe, receives) in probes {
            let sent = sent.get(&receives);
            let condition = sent.and_then(|sent| self.condition(&probe, sent, State::LateSender));
            self.add(condition);
        }
        self.found
    }

    fn side(&self, world_rank: u32, call: Call) -> Option<Side> {
        let rank = self.run.position_of(world_rank)?;
        let line = self.lines.of(rank, call.thread)?;
        let left = call.end_ticks().map(|ticks| self.clock.at(rank, ticks));
        Some(Side { rank, line, call, entered: self.clock.at(rank, call.begin_ticks), left })
    }

    /// The condition that the partner fulfilled by entering its own call.
    fn condition(&self, waiter: &Side, partner: &Side, state: State) -> Option<Condition> {
        let left = waiter.left?;
        let call = self.semantics.of(waiter.rank, waiter.call.function).call;
        // A call that needs any of several partners, or that ended a run of polls, may have been
        // served by a partner that was early.
        if partner.entered <= waiter.entered && call == CallKind::All {
            return None;
        }
        let at = (waiter.rank, waiter.call.begin_ticks);
        let bound = self.clock.bound(at, (partner.rank, partner.call.begin_ticks));
        Some(Condition {
            line: waiter.line,
            entered: waiter.entered,
            left,
            fulfilled: partner.entered,
            partner: partner.line,
            bound,
            state,
            call,
            function: waiter.call.function,
            number: waiter.call.event as u32,
            may_be_eager: false,
        })
    }

    /// Records a call that returned long after its partner had done its part, or before that.
    fn unexplained(&mut self, waiter: &Side, partner: &Side, state: State) {
        let Some(left) = waiter.left.filter(|_| waiter.rank != partner.rank) else { return };
        let by_partner = partner.entered <= left;
        let since = if by_partner { waiter.entered.max(partner.entered) } else { waiter.entered };
        let semantics = self.semantics.of(waiter.rank, waiter.call.function);
        let sends_by_itself =
            state == State::LateReceiver && semantics.send_mode == SendMode::Local;
        let is_short = left - since < self.min_unexplained_ticks;
        if is_short || semantics.call != CallKind::All || sends_by_itself {
            return;
        }
        let at = (waiter.rank, waiter.call.begin_ticks);
        let condition = Condition {
            line: waiter.line,
            entered: waiter.entered,
            left,
            fulfilled: since,
            partner: partner.line,
            bound: self.clock.bound(at, (partner.rank, partner.call.begin_ticks)),
            state,
            call: semantics.call,
            function: waiter.call.function,
            number: waiter.call.event as u32,
            may_be_eager: false,
        };
        self.found.unexplained.push(Unexplained { partner: partner.rank, since, condition });
    }

    /// Adds a condition, unless the call had returned before it was fulfilled.
    fn add(&mut self, condition: Option<Condition>) {
        let Some(condition) = condition else { return };
        match condition.fulfilled > condition.left.saturating_add(condition.bound) {
            true => self.found.violations += 1,
            false => self.found.conditions.push(condition),
        }
    }

    fn late_receiver(&mut self, message: &Message, sender: &Side, receiver: &Side) {
        let semantics = self.semantics.of(sender.rank, message.send.posted.function);
        if semantics.send_mode == SendMode::Local {
            return;
        }
        let condition = self.condition(sender, receiver, State::LateReceiver);
        if semantics.send_mode == SendMode::Synchronous {
            return self.add(condition);
        }
        // A send that had returned before was eager.
        if let Some(found) = condition.filter(|found| found.fulfilled <= found.left) {
            self.found.conditions.push(Condition { may_be_eager: true, ..found });
        }
    }

    /// A rank's position in a communicator; positions in an intercommunicator's second group follow
    /// those in the first.
    fn position(&mut self, communicator: u32, world_rank: u32) -> Option<u32> {
        let communicators = self.analysis.communicators();
        let positions = self.positions.entry(communicator).or_insert_with(|| {
            let entry = communicators.get(communicator);
            let groups = entry.iter().flat_map(|entry| &entry.groups);
            let mut positions = FxHashMap::default();
            for group in groups {
                for position in 0..group.size() {
                    if let Peer::World(rank) = group.peer(position as i32) {
                        let next = positions.len() as u32;
                        positions.entry(rank).or_insert(next);
                    }
                }
            }
            positions
        });
        positions.get(&world_rank).copied()
    }

    /// Every member waits for the last one that takes part.
    fn wait_for_last(&mut self, members: &[Member], how: WaitForLast) {
        // A rank that sends nothing cannot be late; one that receives nothing does not wait.
        let WaitForLast { state, moves_data, inter, .. } = how;
        let mut order: Vec<usize> =
            (0..members.len()).filter(|at| !moves_data || members[*at].sent > 0).collect();
        order.sort_by_key(|at| {
            (std::cmp::Reverse(members[*at].posted.entered), members[*at].posted.line)
        });
        for (at, member) in members.iter().enumerate() {
            if moves_data && member.received == 0 {
                continue;
            }
            let counts = |other: &&usize| {
                **other != at && (!inter || members[**other].group != member.group)
            };
            if let Some(last) = order.iter().find(counts) {
                let found = self.condition(&member.completed, &members[*last].posted, state);
                // A call that does not have to wait may have returned before.
                let waited = |found: &Condition| how.is_certain || found.fulfilled <= found.left;
                self.add(found.filter(waited));
            }
        }
    }

    fn members(&mut self, instance: &CollectiveInstance) -> Option<Vec<Member>> {
        let communicators = self.analysis.communicators();
        let entry = communicators.get(instance.communicator)?;
        let (inter, first_group) = (entry.inter, entry.groups[0].size());
        let synchronises = Meaning::of(&instance.function).synchronises;
        let by_position = inter || synchronises == Synchronises::Prefix;
        let mut members = Vec::with_capacity(instance.members.len());
        for of_instance in &instance.members {
            let CollectiveMember { rank, posted, completed, sent_bytes, received_bytes, .. } =
                *of_instance;
            let position = match by_position {
                true => self.position(instance.communicator, rank).unwrap_or(0),
                false => 0,
            };
            members.push(Member {
                rank,
                position,
                group: usize::from(inter && position >= first_group),
                posted: self.side(rank, posted)?,
                completed: self.side(rank, completed?)?,
                sent: sent_bytes,
                received: received_bytes,
            });
        }
        Some(members)
    }

    fn is_inter(&self, instance: &CollectiveInstance) -> bool {
        self.analysis.communicators().get(instance.communicator).is_some_and(|of| of.inter)
    }

    /// Records that the members synchronised, if all were inside at the same time.
    fn note_sync(&mut self, instance: &CollectiveInstance, members: &[Member]) {
        let entered = members.iter().map(|m| m.posted.entered).max();
        let left = members.iter().filter_map(|m| m.completed.left).min();
        let together = entered.zip(left).filter(|(entered, left)| entered < left);
        if let Some((moment, _)) = together.filter(|_| members.len() > 1) {
            let mut lines: Vec<u32> = members.iter().map(|m| m.completed.line).collect();
            lines.sort_unstable();
            let communicator = instance.communicator;
            let known = self.sync_lines.get(&communicator).filter(|known| ***known == lines[..]);
            let lines = known.cloned().unwrap_or_else(|| Arc::from(lines));
            self.sync_lines.insert(communicator, lines.clone());
            self.found.collective_syncs.push(CollectiveSync { communicator, moment, lines });
        }
    }
}

/// A member of a collective operation.
#[derive(Debug, Clone, Copy)]
struct Member {
    rank: u32,
    /// Its position in the communicator.
    position: u32,
    group: usize,
    posted: Side,
    completed: Side,
    sent: u64,
    received: u64,
}

/// How all members of an operation wait for each other.
#[derive(Debug, Clone, Copy)]
struct WaitForLast {
    state: State,
    /// Only members that move data take part.
    moves_data: bool,
    /// Members wait only for members of the other group.
    inter: bool,
    /// No member returns before all have entered.
    is_certain: bool,
}

impl MatchSink for Finder<'_, '_> {
    fn wants(&self) -> Wants {
        Wants { completions: true, polls: true, waiting: true }
    }

    fn message(&mut self, message: &Message) {
        let (send, receive) = (&message.send, &message.receive);
        let (Some(sent), Some(posted)) =
            (self.side(send.rank, send.posted), self.side(receive.rank, receive.posted))
        else {
            return;
        };
        let side_of = |end: &MessageEnd, posted: &Side| match end.completed {
            Some(call) if call == end.posted => Some(*posted),
            Some(call) => self.side(end.rank, call),
            None => None,
        };
        let (sender, receiver) = (side_of(send, &sent), side_of(receive, &posted));
        let entry = (posted.line, posted.entered);
        if !self.awaited.is_empty() && self.awaited.remove(&entry) {
            self.found.probed.push((entry, sent));
        }
        if let Some(receiver) = receiver {
            if let Some(left) = receiver.left {
                self.found.receipts.add(receiver.rank, left, sent.entered);
            }
            let found = self.condition(&receiver, &sent, State::LateSender);
            self.add(found);
            self.unexplained(&receiver, &sent, State::LateSender);
        }
        if let Some(sender) = sender {
            self.late_receiver(message, &sender, &posted);
            self.unexplained(&sender, &posted, State::LateReceiver);
        }
    }

    fn collective(&mut self, instance: &CollectiveInstance) {
        if instance.missing > 0 || instance.mismatched {
            self.found.incomplete += 1;
            return;
        }
        let Some(members) = self.members(instance) else {
            self.found.incomplete += 1;
            return;
        };
        self.note_sync(instance, &members);
        let inter = self.is_inter(instance);
        let root =
            |members: &[Member]| members.iter().find(|m| Some(m.rank) == instance.root).copied();
        match Meaning::of(&instance.function).synchronises {
            Synchronises::All | Synchronises::Exchanging => {
                let is_barrier = instance.function == "MPI_Barrier";
                let state = if is_barrier { State::WaitAtBarrier } else { State::WaitAtNxn };
                let how = WaitForLast { state, moves_data: !is_barrier, inter, is_certain: true };
                self.wait_for_last(&members, how)
            }
            Synchronises::FromRoot => {
                let Some(root) = root(&members).filter(|root| root.sent > 0) else { return };
                for member in members.iter().filter(|m| m.rank != root.rank && m.received > 0) {
                    let found =
                        self.condition(&member.completed, &root.posted, State::LateBroadcast);
                    self.add(found);
                }
            }
            Synchronises::ToRoot => {
                let Some(root) = root(&members) else { return };
                let senders = members.iter().filter(|m| m.rank != root.rank && m.sent > 0);
                let last =
                    senders.max_by_key(|m| (m.posted.entered, std::cmp::Reverse(m.posted.line)));
                if let Some(last) = last {
                    let found = self.condition(&root.completed, &last.posted, State::EarlyReduce);
                    self.add(found);
                }
            }
            Synchronises::Prefix => {
                let mut ordered = members;
                ordered.sort_by_key(|member| member.position);
                let mut last: Option<Member> = None;
                for member in ordered {
                    if let Some(last) = last {
                        let found =
                            self.condition(&member.completed, &last.posted, State::EarlyScan);
                        self.add(found);
                    }
                    if last.is_none_or(|last| member.posted.entered > last.posted.entered) {
                        last = Some(member);
                    }
                }
            }
            Synchronises::Neighbours => self.found.neighbourhoods += 1,
            Synchronises::Nobody | Synchronises::Group | Synchronises::Target => {}
        }
    }

    fn together(&mut self, instance: &CollectiveInstance) {
        let members = self.members(instance).filter(|_| instance.missing == 0);
        let Some(members) = members else {
            self.found.incomplete += 1;
            return;
        };
        self.note_sync(instance, &members);
        let is_fence = instance.function == "MPI_Win_fence";
        let state = if is_fence { State::OneSided } else { State::WaitAtNxn };
        let inter = self.is_inter(instance);
        self.wait_for_last(
            &members,
            WaitForLast { state, moves_data: false, inter, is_certain: false },
        );
    }

    fn probed(&mut self, probed: &Probed) {
        let probe = self.side(probed.rank, probed.probe);
        let posted = self.side(probed.rank, probed.posted);
        if let (Some(probe), Some(posted)) = (probe, posted) {
            let entry = (posted.line, posted.entered);
            self.awaited.insert(entry);
            self.found.probes.push((probe, entry));
        }
    }

    fn polls(&mut self, polls: &Polls) {
        let Some(Side { line, call, entered, left: Some(left), rank }) =
            self.side(polls.rank, polls.call)
        else {
            return;
        };
        // `inside_ticks` counts on the rank's own counter.
        let inside = self.clock.ticks_of(rank, polls.inside_ticks).clamp(0, left - entered);
        let (function, number) = (call.function, call.event as u32);
        let run = PollRun { line, begin: entered, end: left, inside, function, number };
        self.found.polls.push(run);
    }
}
