//! Which send met which receive, and which collective calls belong together: a run recorded at
//! level 1 or 2, its timeline and its communicators come in; messages, collective instances and
//! what could not be matched go out, one by one, to a [`MatchSink`].
//!
//! MPI's rule: messages between two processes on one communicator do not overtake each other. A
//! receive's status says what it received, so after completion it has a source and a tag, wildcard
//! or not, and the n-th send of (communicator, source, destination, tag) meets the n-th receive of
//! it in the order in which the receives were posted. Only while an earlier wildcard receive is not
//! complete it is open which of the two comes first. A matched probe takes its message at the
//! probe's place. The k-th collective call on a communicator at each member is one instance;
//! persistent ones are told apart by the order of their initialisation, the starts of each counted
//! by themselves. Partitioned operations are paired likewise.
//!
//! | file | its idea |
//! |---|---|
//! | `operations` | what a function does |
//! | `call` | a call as long as it is in flight |
//! | `requests` | which operation a request handle stands for, over its life |
//! | `routes` | which channel arguments name |
//! | `rank_state` | one rank's events become sends, receives and collective calls |
//! | `probed` | messages received by handle |
//! | `completion` | what waits, tests, cancels and frees do to them |
//! | `channel`, `channels` | MPI's order rule |
//! | `pairs` | what they found, until it is handed on |
//! | `settlement` | what becomes of sends behind their call |
//! | `collectives` | instances |
//! | `active` | what was not complete at the end |
//! | `findings`, `outcome` | what goes out |
//! | `clocks` | counters on the global timeline |
//! | `shares` | a run matched by several threads at the same time |
//! | `replay` | any stretch of a run again, from where matching stood before it |
//!
//! The ranks' events are read once, interleaved by the end of each call on the global timeline. The
//! result does not depend on the clocks, only what is in flight does (the one exception: a cancelled
//! send that a wrong clock shows too late).
//!
//! # Memory
//! Bounded by what is in flight, not by the number of events: sends not yet received and receives
//! not yet complete at that moment of the run, active requests, collective instances that some
//! member has not reached, each some 100 bytes (instances 120 a member); beside that the table of the
//! communicators, and one cursor a thread. What can never be matched any more, because the partner
//! has no file or has no more events, is not kept.

mod access;
mod active;
mod call;
mod channel;
mod channels;
mod clocks;
mod collectives;
mod completion;
mod findings;
mod operations;
mod outcome;
mod pairs;
mod probed;
mod rank_state;
pub mod replay;
pub(crate) mod requests;
mod routes;
mod settlement;
mod shares;

use std::sync::Arc;

use trace_format::meaning::Operation;
use trace_format::reader::{Event, Head, StoredEvent};

use super::communicators::CommunicatorTable;
use super::event_streams::{EventStreams, Moment, Part, Step, Wanted};
use super::mpi_constants::MpiConstants;
use super::{Ending, GlobalTimeline};
use crate::trace::{RankTrace, Run};

pub use active::{ActiveOperation, ActiveWork};
pub use call::Call;
pub use findings::{
    Access, CollectiveInstance, CollectiveMember, MatchSink, MatchingSummary, Message, MessageEnd,
    Polls, Probed, Reason, Side, Sides, Unmatched, Wants,
};
pub use shares::match_in_shares;

use active::{Leavings, MetSends};
use channel::Send;
use channels::{Address, Channels};
use collectives::{Calls, Collectives};
use operations::{CollectiveNames, Operations};
use outcome::Outlet;
use pairs::Pair;
use rank_state::RankState;
use requests::{Place, Posted};
use settlement::{Thoroughness, Unsettled};
use shares::Share;

/// What is shared by all ranks while matching.
#[derive(Debug, Clone)]
struct Matching<'a> {
    communicators: &'a CommunicatorTable,
    channels: Channels,
    collectives: Collectives,
    leavings: Leavings,
    outlet: Outlet<'a>,
    /// What is known of each rank with a file, ascending by its rank in the world.
    partners: Vec<(u32, Partner)>,
    /// Some rank has no more events, or never had any: what is sent to it, or received of it, may never
    /// be matched.
    some_ended: bool,
    /// Pairs that wait for the completion of their sends, and those that have it.
    unsettled: Unsettled,
    settled: Vec<Pair>,
    /// What of the run is matched here; `None` for all.
    share: Option<Share>,
}

/// What is known of a rank as somebody's partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Partner {
    /// Whether its events are still coming.
    live: bool,
    /// Why a message to or from it finds no partner.
    reason: Reason,
}

/// Whether any rank's file says enough to match anything.
pub fn is_possible(run: &Run) -> bool {
    run.ranks.iter().any(says_attributes)
}

fn says_attributes(trace: &RankTrace) -> bool {
    let header = &trace.file.header;
    trace.file.fixed.level > 0 && MpiConstants::of_family(&header.mpi_family).is_some()
}

/// Matches everything in a run.
///
/// The order in which messages come is that in which their matches are certain: roughly by
/// completion, always the same for the same files.
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

/// Events that matching looks at.
#[derive(Debug, Clone)]
struct OfInterest {
    operations: Arc<Vec<Operations>>,
    polls: bool,
}

impl Wanted for OfInterest {
    #[inline]
    fn of_interest(&self, rank: usize, head: &Head) -> bool {
        self.operations[rank].of_interest(head, self.polls)
    }

    #[inline]
    fn wants(&self, _rank: usize, event: &StoredEvent<'_>, _whole: impl FnOnce() -> Event) -> bool {
        self.polls || event.polls().is_none()
    }
}

/// Matching on its way through a run; a clone goes on from where it stands.
#[derive(Clone)]
pub struct Matcher<'a> {
    streams: EventStreams<'a, OfInterest>,
    operations: Arc<Vec<Operations>>,
    matching: Matching<'a>,
    ranks: Vec<Option<RankState<'a>>>,
}

impl<'a> Matcher<'a> {
    /// Before the first event, for observers who ask for nothing.
    pub fn new(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        communicators: &'a CommunicatorTable,
    ) -> Self {
        Self::wanting(run, timeline, communicators, Wants::default())
    }

    /// Before the first event.
    pub fn wanting(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        communicators: &'a CommunicatorTable,
        wants: Wants,
    ) -> Self {
        let mut names = CollectiveNames::default();
        let operations: Vec<Operations> = run
            .ranks
            .iter()
            .map(|trace| Operations::new(&trace.file, &mut names, wants.waiting))
            .collect();
        let operations = Arc::new(operations);
        let mut channels = Channels::default();
        if wants.completions {
            channels.keep_completions();
        }
        let matching = Matching {
            communicators,
            channels,
            collectives: Collectives::new(communicators),
            leavings: Leavings::default(),
            outlet: Outlet::new(run, timeline, names, wants),
            partners: partners(run, timeline),
            some_ended: !run.missing.is_empty() || !run.ranks.iter().all(says_attributes),
            unsettled: Unsettled::default(),
            settled: Vec::new(),
            share: None,
        };
        let state = |index: usize| {
            let trace = &run.ranks[index];
            let constants = MpiConstants::of_family(&trace.file.header.mpi_family);
            let constants = constants.filter(|_| says_attributes(trace));
            constants.map(|constants| RankState::new(index, trace, constants))
        };
        let ranks = (0..run.ranks.len()).map(state).collect();
        let wanted = OfInterest { operations: operations.clone(), polls: wants.polls };
        let order = (Part::Unbroken, Moment::End);
        let streams = EventStreams::new(run, timeline, 0..run.ranks.len(), order, wanted);
        Self { streams, operations, matching, ranks }
    }

    /// Takes the next event, and hands on what is certain now; `false` behind the last one.
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
        matching.hand_on();
        matching.outlet.drain(sink);
        true
    }

    /// Global seconds of the last event that was taken, by its end.
    pub fn now_s(&self) -> f64 {
        self.streams.now_ns() as f64 * 1e-9
    }

    /// Hands on what stays open.
    pub fn finish(self, sink: &mut dyn MatchSink) -> MatchingSummary {
        let mut matching = self.matching;
        matching.begin_to_finish();
        let met = matching.met_sends(|to, number| matching.channels.is_unmet_send(to, number));
        matching.finish(&met);
        matching.outlet.drain(sink);
        matching.outlet.summary
    }
}

/// What each rank with a file is as a partner, before any event was read.
fn partners(run: &Run, timeline: &GlobalTimeline) -> Vec<(u32, Partner)> {
    let ranks = run.ranks.iter().zip(&timeline.ranks);
    let partners = ranks.map(|(trace, time)| {
        let cut = matches!(time.ending, Ending::Damaged | Ending::Stopped)
            || trace.facts.lost_events.is_some_and(|lost| lost > 0)
            || trace.threads.iter().any(|thread| thread.damage.is_some());
        let reason = match trace {
            _ if !says_attributes(trace) => Reason::PartnerWithoutAttributes,
            _ if cut => Reason::PartnerCut,
            _ if !trace.facts.finalized() => Reason::PartnerUnfinished,
            _ => Reason::NoPartner,
        };
        (trace.rank, Partner { live: reason != Reason::PartnerWithoutAttributes, reason })
    });
    partners.collect()
}

impl Matching<'_> {
    /// Takes an event of a rank.
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
            Some((count, inside_ticks)) if self.outlet.wants.polls => {
                let (rank, call) = (state.rank, Call::of(thread, event));
                let request = event.head.request();
                self.outlet.polls(Polls { rank, call, count, inside_ticks, request });
            }
            Some(_) => {}
        }
    }

    /// Takes a send, or passes it on to the share that matches it; gives its number. A `pending` one is
    /// complete only later.
    #[inline(always)]
    fn send(&mut self, to: &mut Address, call: Call, bytes: u64, pending: bool) -> u64 {
        let number = self.channels.next_number();
        let thoroughness = self.share.as_ref().map_or(Thoroughness::Completed, Share::thoroughness);
        let send = Send {
            number,
            call,
            bytes,
            blocking: !pending,
            in_doubt: pending && thoroughness == Thoroughness::Doubting,
            active: pending && thoroughness >= Thoroughness::Completed,
        };
        if let Some(share) = &mut self.share
            && share.forwards_send(to.0, send)
        {
            return number;
        }
        self.take_send(to, send);
        number
    }

    /// The call receives a message by its handle: it posts the receive, at the place of the probe.
    fn repost(&mut self, posted: Posted, call: Call) -> Posted {
        let Posted { sequence, mut place, .. } = posted;
        match &mut place {
            Place::Channel(from) => self.channels.repost(*from, sequence, call),
            Place::Wildcard(wildcard) => wildcard.call = call,
        }
        Posted { sequence, begin_ticks: call.begin_ticks, place }
    }

    /// Takes a send that is matched here.
    #[inline(always)]
    fn take_send(&mut self, to: &mut Address, send: Send) {
        self.channels.send(to, send);
        self.drop_orphaned_sends(*to);
    }

    /// The rank at a position of the run has no more events.
    fn end_of_rank(&mut self, position: usize, calls: &Calls) {
        self.some_ended = true;
        self.partners[position].1.live = false;
        self.collectives.end_of_rank(position, calls, self.communicators);
    }

    /// Hands on what has been matched since the last time.
    fn hand_on(&mut self) {
        if !self.channels.matched.is_empty() || !self.settled.is_empty() {
            self.take_ready(|m, pair| {
                if let Some(message) = m.outlet.message(pair) {
                    let message = *message;
                    m.outlet.found(message);
                }
            });
        }
        let Self { collectives, outlet, .. } = self;
        collectives.drain(|instance| outlet.instance(instance));
    }

    /// Hands on the sends of a channel that nobody will receive.
    #[inline]
    fn drop_orphaned_sends(&mut self, to: Address) {
        if self.some_ended {
            self.drop_orphaned_sends_now(to);
        }
    }

    fn drop_orphaned_sends_now(&mut self, to: Address) {
        let key = to.0;
        let partner = self.partner(key.destination);
        if !partner.live && !self.leavings.has_wildcard(key.communicator, key.destination) {
            for send in self.channels.orphaned_sends(to) {
                self.outlet.unmatched_send(key, &send, partner.reason);
            }
        }
    }

    /// Hands on the receives of a channel that nobody will send to.
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
                let reason = receive.lost().unwrap_or(partner.reason);
                self.outlet.unmatched_receive(key, &receive, reason);
            }
        }
    }

    fn partner(&self, world_rank: u32) -> Partner {
        // Where no file is missing the position is the rank.
        if let Some((rank, partner)) = self.partners.get(world_rank as usize)
            && *rank == world_rank
        {
            return *partner;
        }
        let missing = Partner { live: false, reason: Reason::FileMissing };
        let found = self.partners.binary_search_by_key(&world_rank, |(rank, _)| *rank);
        found.map_or(missing, |index| self.partners[index].1)
    }

    /// Hands on what is as certain as it will ever be.
    fn begin_to_finish(&mut self) {
        self.collectives.finish();
        self.give_up_unsettled();
        self.hand_on();
    }

    /// Which of the sends that its ranks left behind met a receive.
    fn met_sends(&self, is_unmet: impl Fn(Address, u64) -> bool) -> MetSends {
        MetSends::ask(&self.leavings, is_unmet)
    }

    /// Hands on what is left.
    fn finish(&mut self, met: &MetSends) {
        self.hand_on_active(met);
        let (sends, receives) = self.channels.left();
        for (key, send) in sends {
            let reason = self.partner(key.destination).reason;
            self.outlet.unmatched_send(key, &send, reason);
        }
        for (key, receive) in receives {
            let reason = match receive.lost() {
                Some(reason) => reason,
                None => self.partner(key.source).reason,
            };
            self.outlet.unmatched_receive(key, &receive, reason);
        }
    }
}

#[cfg(test)]
mod tests;
