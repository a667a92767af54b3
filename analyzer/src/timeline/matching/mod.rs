//! Matches the sends of a run with its receives, and combines collective calls into instances.
//! Needs a run recorded at level 1 or 2; passes messages, collective instances and what could not
//! be matched to a [`MatchSink`], one by one.
//!
//! MPI's rule is that messages between two processes on one communicator do not overtake each
//! other. After completion a receive has a source and a tag from its status, even if it was posted
//! with wildcards. So the n-th send of (communicator, source, destination, tag) meets the n-th
//! receive of these, in the order in which receives were posted. The order is uncertain only while
//! an earlier wildcard receive is not complete. A matched probe counts as the posting of its
//! receive. The k-th collective calls of all members of a communicator form one instance.
//! Persistent operations are distinguished by the order of their initialisation, and the starts of
//! each are counted separately; partitioned operations likewise.
//!
//! | file | content |
//! |---|---|
//! | `operations` | what each function does |
//! | `call` | what is stored of a call in flight |
//! | `requests` | the operation behind each request handle |
//! | `routes` | cache of the channels that arguments name |
//! | `rank_state` | turns one rank's events into sends, receives and collective calls |
//! | `access` | accesses to other ranks' memory, and their epochs |
//! | `probed` | probes, and messages received by handle |
//! | `completion` | effects of waits, tests, cancels and frees |
//! | `channel`, `channels` | MPI's rule on the order of messages |
//! | `pairs` | buffer of matched pairs |
//! | `settlement` | completions and cancellations of sends |
//! | `collectives` | collective instances |
//! | `active` | operations that were not complete at the end |
//! | `findings`, `emitter` | what the sink receives |
//! | `clocks` | conversion to global time |
//! | `shares` | matching with several threads |
//! | `checkpoints` | matching again from any moment on |
//!
//! The ranks' events are read once, interleaved by the end of each call on the global timeline.
//! Errors of the clocks affect how much is in flight, but not the result, with one exception: a
//! cancelled send that a wrong clock shows too late.
//!
//! # Memory
//! Bounded by what is in flight, not by the number of events: sends not yet received, receives not
//! yet complete, active requests, and collective instances that some member has not reached. Each
//! takes some 100 bytes, an instance 120 per member. In addition there are the table of
//! communicators and one cursor per thread. What can never be matched, because the partner has no
//! file or no more events, is not kept.

mod access;
mod active;
mod call;
mod channel;
mod channels;
pub mod checkpoints;
mod clocks;
mod collectives;
mod completion;
mod emitter;
mod findings;
mod operations;
mod pairs;
mod probed;
mod rank_state;
pub(crate) mod requests;
mod routes;
mod settlement;
mod shares;

use std::sync::Arc;

use trace_format::meaning::Operation;
use trace_format::reader::{Event, Head, StoredEvent};

use super::communicators::CommunicatorTable;
use super::event_streams::{EventFilter, EventStreams, Moment, Part, Step};
use super::mpi_constants::MpiConstants;
use super::{Ending, GlobalTimeline};
use crate::trace::{RankTrace, Run};

pub use active::{ActiveOperation, ActiveWork};
pub use call::Call;
pub use findings::{
    Access, CollectiveInstance, CollectiveMember, Epoch, MatchSink, MatchingSummary, Message,
    MessageEnd, Polls, Probed, Reason, Side, Sides, Unmatched, Wants,
};
pub use shares::{ProcessShare, match_in_shares};

use active::{MatchedSends, Unfinished};
use channel::Send;
use channels::{Address, Channels};
use collectives::{CallCounts, Collectives};
use emitter::Emitter;
use operations::{CollectiveNames, Operations};
use pairs::Pair;
use rank_state::RankState;
use requests::{Posted, Queue};
use settlement::{SendTracking, Unsettled};
use shares::Share;

/// What is shared by all ranks while matching.
#[derive(Debug, Clone)]
struct Matching<'a> {
    communicators: &'a CommunicatorTable,
    channels: Channels,
    collectives: Collectives,
    unfinished: Unfinished,
    emitter: Emitter<'a>,
    /// Each rank with a file as a partner of others, ascending by its rank in the world.
    partners: Vec<(u32, Partner)>,
    /// Some rank has no more events, or never had any, so that messages to or from it may never be
    /// matched.
    some_ended: bool,
    /// Pairs whose sends are not complete yet.
    unsettled: Unsettled,
    /// Pairs whose sends are complete.
    settled: Vec<Pair>,
    /// The share of the run that is matched here; `None` for all of it.
    share: Option<Share>,
}

/// A rank as the partner of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Partner {
    /// Whether it has more events.
    live: bool,
    /// Why a message to or from it may have no partner.
    reason: Reason,
}

/// Whether any rank's file has the arguments that matching needs.
pub fn is_possible(run: &Run) -> bool {
    run.ranks.iter().any(has_attributes)
}

fn has_attributes(trace: &RankTrace) -> bool {
    let header = &trace.file.header;
    trace.file.fixed.level > 0 && MpiConstants::of_family(&header.mpi_family).is_some()
}

/// Matches a whole run.
///
/// Messages arrive in the order in which their matches become certain. That is roughly the order of
/// completion, and always the same for the same files.
pub fn match_run(
    run: &Run,
    timeline: &GlobalTimeline,
    communicators: &CommunicatorTable,
    sink: &mut dyn MatchSink,
) -> MatchingSummary {
    let mut matcher = Matcher::wanting(run, timeline, communicators, sink.wants());
    while matcher.step(sink) {}
    matcher.finish(sink)
}

/// Selects the events that matter for matching.
#[derive(Debug, Clone)]
struct MatchingFilter {
    operations: Arc<Vec<Arc<Operations>>>,
    polls: bool,
}

impl EventFilter for MatchingFilter {
    #[inline]
    fn may_want(&self, rank: usize, head: &Head) -> bool {
        self.operations[rank].may_want(head, self.polls)
    }

    #[inline]
    fn wants(&self, _rank: usize, event: &StoredEvent<'_>, _whole: impl FnOnce() -> Event) -> bool {
        self.polls || event.polls().is_none()
    }
}

/// Matching before the first event; no event has been read yet.
struct Start<'a> {
    operations: Arc<Vec<Arc<Operations>>>,
    matching: Matching<'a>,
    /// `None` for ranks whose events cannot be matched.
    ranks: Vec<Option<RankState<'a>>>,
}

impl<'a> Start<'a> {
    fn new(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        communicators: &'a CommunicatorTable,
        wants: Wants,
    ) -> Self {
        let mut names = CollectiveNames::default();
        let of_functions =
            |functions: &[String]| Operations::new(functions, &mut names, wants.waiting);
        let operations = Arc::new(run.of_functions(of_functions));
        let mut channels = Channels::default();
        if wants.completions {
            channels.keep_completions();
        }
        let matching = Matching {
            communicators,
            channels,
            collectives: Collectives::new(communicators),
            unfinished: Unfinished::default(),
            emitter: Emitter::new(run, timeline, names, wants),
            partners: partners(run, timeline),
            some_ended: !run.missing.is_empty() || !run.ranks.iter().all(has_attributes),
            unsettled: Unsettled::default(),
            settled: Vec::new(),
            share: None,
        };
        let state = |index: usize| {
            let trace = &run.ranks[index];
            let constants = MpiConstants::of_family(&trace.file.header.mpi_family);
            let constants = constants.filter(|_| has_attributes(trace));
            constants.map(|constants| RankState::new(index, trace, constants))
        };
        let ranks = (0..run.ranks.len()).map(state).collect();
        Self { operations, matching, ranks }
    }
}

/// The progress of matching through a run; a clone continues from the same point.
#[derive(Clone)]
pub struct Matcher<'a> {
    streams: EventStreams<'a, MatchingFilter>,
    operations: Arc<Vec<Arc<Operations>>>,
    matching: Matching<'a>,
    ranks: Vec<Option<RankState<'a>>>,
}

impl<'a> Matcher<'a> {
    /// Starts before the first event, without optional findings.
    pub fn new(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        communicators: &'a CommunicatorTable,
    ) -> Self {
        Self::wanting(run, timeline, communicators, Wants::default())
    }

    /// Starts before the first event, with the optional findings that `wants` asks for.
    pub fn wanting(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        communicators: &'a CommunicatorTable,
        wants: Wants,
    ) -> Self {
        let Start { operations, matching, ranks } = Start::new(run, timeline, communicators, wants);
        let wanted = MatchingFilter { operations: operations.clone(), polls: wants.polls };
        let order = (Part::BeforeTotals, Moment::End);
        let streams = EventStreams::new(run, timeline, 0..run.ranks.len(), order, wanted);
        Self { streams, operations, matching, ranks }
    }

    /// Handles the next event and emits what has become certain; returns `false` after the last
    /// event.
    pub fn step(&mut self, sink: &mut dyn MatchSink) -> bool {
        let Some(step) = self.streams.next_stored() else { return false };
        let matching = &mut self.matching;
        match step {
            Step::Event { rank, thread, event } => {
                if let Some(state) = &mut self.ranks[rank] {
                    let operation = self.operations[rank].of(event.function());
                    matching.take_event(state, thread, &event, operation);
                }
            }
            Step::End { rank } => {
                let calls = self.ranks[rank].take().map(|state| state.finish(matching));
                matching.end_of_rank(rank, &calls.unwrap_or_default());
            }
        }
        matching.emit_matched();
        matching.emitter.drain(sink);
        true
    }

    /// Global seconds of the end of the last event that was handled.
    pub fn now_s(&self) -> f64 {
        self.streams.now_ns() as f64 * 1e-9
    }

    /// Emits what remains open.
    pub fn finish(self, sink: &mut dyn MatchSink) -> MatchingSummary {
        let mut matching = self.matching;
        matching.begin_to_finish();
        let met = matching.matched_sends(|to, number| matching.channels.is_unmet_send(to, number));
        matching.finish(&met);
        matching.emitter.drain(sink);
        matching.emitter.summary
    }
}

/// Each rank with a file as a partner of others, before any event is read.
fn partners(run: &Run, timeline: &GlobalTimeline) -> Vec<(u32, Partner)> {
    let ranks = run.ranks.iter().zip(&timeline.ranks);
    let partners = ranks.map(|(trace, time)| {
        let cut = matches!(time.ending, Ending::Damaged | Ending::Stopped)
            || trace.facts.lost_events.is_some_and(|lost| lost > 0)
            || trace.threads.iter().any(|thread| thread.damage.is_some());
        let reason = match trace {
            _ if !has_attributes(trace) => Reason::PartnerWithoutAttributes,
            _ if cut => Reason::PartnerCut,
            _ if !trace.facts.finalized() => Reason::PartnerUnfinished,
            _ => Reason::NoPartner,
        };
        (trace.rank, Partner { live: reason != Reason::PartnerWithoutAttributes, reason })
    });
    partners.collect()
}

impl Matching<'_> {
    /// Handles an event of a rank.
    #[inline]
    fn take_event(
        &mut self,
        state: &mut RankState<'_>,
        thread: u32,
        event: &StoredEvent<'_>,
        operation: (Operation, u16),
    ) {
        match event.polls() {
            None => state.take(thread, event, operation, self),
            Some((count, inside_ticks)) if self.emitter.wants.polls => {
                let (rank, call) = (state.rank, Call::of(thread, event));
                let request = event.head.request();
                self.emitter.polls(Polls { rank, call, count, inside_ticks, request });
            }
            Some(_) => {}
        }
    }

    /// Adds a send, or forwards it to the share that matches it; returns its number. A `pending`
    /// send completes later.
    #[inline(always)]
    fn send(&mut self, to: &mut Address, call: Call, bytes: u64, pending: bool) -> u64 {
        let number = self.channels.next_number();
        let tracking = self.share.as_ref().map_or(SendTracking::Completed, Share::tracking);
        let send = Send {
            number,
            call,
            bytes,
            blocking: !pending,
            unconfirmed: pending && tracking == SendTracking::Confirmed,
            doubtful: false,
            active: pending && tracking >= SendTracking::Completed,
        };
        if let Some(share) = &mut self.share
            && share.forwards_send(to.0, send)
        {
            return number;
        }
        self.add_send(to, send);
        number
    }

    /// Makes the call that receives a message by its handle the poster of the receive, at the
    /// position of the probe.
    fn repost(&mut self, posted: Posted, call: Call) -> Posted {
        let Posted { sequence, mut queue, .. } = posted;
        match &mut queue {
            Queue::Channel(from) => self.channels.repost(*from, sequence, call),
            Queue::Wildcard(wildcard) => wildcard.call = call,
        }
        Posted { sequence, begin_ticks: call.begin_ticks, queue }
    }

    /// Adds a send that is matched here.
    #[inline(always)]
    fn add_send(&mut self, to: &mut Address, send: Send) {
        self.channels.send(to, send);
        self.drop_orphaned_sends(*to);
    }

    /// Handles the end of the events of the rank at a position of the run.
    fn end_of_rank(&mut self, position: usize, calls: &CallCounts) {
        self.some_ended = true;
        self.partners[position].1.live = false;
        self.collectives.end_of_rank(position, calls, self.communicators);
    }

    /// Emits what has been matched since the last call.
    fn emit_matched(&mut self) {
        if !self.channels.matched.is_empty() || !self.settled.is_empty() {
            self.take_ready(|m, pair| {
                if let Some(message) = m.emitter.message(pair) {
                    let message = *message;
                    m.emitter.add_message(message);
                }
            });
        }
        let Self { collectives, emitter, .. } = self;
        collectives.drain(|instance| emitter.instance(instance));
    }

    /// Emits the sends of a channel that will never be received.
    #[inline]
    fn drop_orphaned_sends(&mut self, to: Address) {
        if self.some_ended {
            self.drop_orphaned_sends_now(to);
        }
    }

    fn drop_orphaned_sends_now(&mut self, to: Address) {
        let key = to.0;
        let partner = self.partner(key.destination);
        if !partner.live && !self.unfinished.has_wildcard(key.communicator, key.destination) {
            for send in self.channels.orphaned_sends(to) {
                let reason = if send.doubtful { Reason::Cancelled } else { partner.reason };
                self.emitter.unmatched_send(key, &send, reason);
            }
        }
    }

    /// Emits the receives of a channel that will never get a message.
    #[inline]
    fn drop_orphaned_receives(&mut self, from: Address) {
        if self.some_ended {
            self.drop_orphaned_receives_now(from);
        }
    }

    fn drop_orphaned_receives_now(&mut self, from: Address) {
        let key = from.0;
        let partner = self.partner(key.source);
        if !partner.live {
            for receive in self.channels.orphaned_receives(from) {
                let reason = receive.why_alone().unwrap_or(partner.reason);
                self.emitter.unmatched_receive(key, &receive, reason);
            }
        }
    }

    fn partner(&self, world_rank: u32) -> Partner {
        // If no file is missing, the position is the rank.
        if let Some((rank, partner)) = self.partners.get(world_rank as usize)
            && *rank == world_rank
        {
            return *partner;
        }
        let missing = Partner { live: false, reason: Reason::FileMissing };
        let found = self.partners.binary_search_by_key(&world_rank, |(rank, _)| *rank);
        found.map_or(missing, |index| self.partners[index].1)
    }

    /// Emits what will not become more certain.
    fn begin_to_finish(&mut self) {
        self.collectives.finish();
        self.give_up_unsettled();
        self.emit_matched();
    }

    /// The unfinished sends of these ranks that met a receive.
    fn matched_sends(&self, is_unmet: impl Fn(Address, u64) -> bool) -> MatchedSends {
        MatchedSends::new(&self.unfinished, is_unmet)
    }

    /// Emits everything that is left.
    fn finish(&mut self, met: &MatchedSends) {
        self.report_active(met);
        let (sends, receives) = self.channels.take_remaining();
        for (key, send) in sends {
            let reason = match send.doubtful {
                true => Reason::Cancelled,
                false => self.partner(key.destination).reason,
            };
            self.emitter.unmatched_send(key, &send, reason);
        }
        for (key, receive) in receives {
            let reason = match receive.why_alone() {
                Some(reason) => reason,
                None => self.partner(key.source).reason,
            };
            self.emitter.unmatched_receive(key, &receive, reason);
        }
    }
}

#[cfg(test)]
mod tests;
