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
//! | `requests` | which operation a request handle stands for, over its life |
//! | `rank_state` | one rank's events become sends, receives and collective calls |
//! | `completion` | what waits, tests, cancels and frees do to them |
//! | `channels` | MPI's order rule |
//! | `collectives` | instances |
//! | `active` | what was not complete at the end |
//! | `outcome` | what goes out |
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
//! member has not reached, each some 100 bytes (instances 48 a member); beside that the table of the
//! communicators, and one cursor a thread. What can never be matched any more, because the partner
//! has no file or has no more events, is not kept.

mod active;
mod channels;
mod collectives;
mod completion;
pub(crate) mod operations;
mod outcome;
mod rank_state;
pub mod replay;
pub(crate) mod requests;
mod shares;

use std::sync::Arc;

use trace_format::functions::FIRST_FUNCTION;
use trace_format::layout::Slot;
use trace_format::reader::Event;

use super::communicators::CommunicatorTable;
use super::event_streams::{EventStreams, Moment, Part, Step, Wanted};
use super::mpi_constants::MpiConstants;
use super::{Ending, GlobalTimeline};
use crate::trace::{RankTrace, Run};

pub use active::{ActiveOperation, ActiveWork};
pub use outcome::{
    CollectiveInstance, CollectiveMember, MatchSink, MatchingSummary, Message, MessageEnd, Reason,
    Side, Sides, Unmatched,
};
pub use shares::{is_shareable, match_in_shares};

use active::Leavings;
use channels::{ChannelKey, Channels};
use collectives::Collectives;
use operations::{CollectiveNames, Operation, Operations};
use outcome::Outlet;
use rank_state::RankState;
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
    /// What of the run is matched here; `None` for all.
    share: Option<Share>,
    /// The share cannot be matched by itself.
    given_up: bool,
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
    let mut matcher = Matcher::new(run, timeline, communicators);
    while matcher.step(sink) {}
    matcher.finish(sink)
}

/// Events that matching looks at.
#[derive(Debug, Clone)]
struct OfInterest {
    operations: Arc<Vec<Operations>>,
}

impl Wanted for OfInterest {
    #[inline]
    fn of_interest(&self, rank: usize, slot: &Slot) -> bool {
        let function = slot.function();
        function >= FIRST_FUNCTION && self.operations[rank].of(function).0 != Operation::Nothing
    }

    #[inline]
    fn wants(&self, rank: usize, event: &Event) -> bool {
        event.polls.is_none()
            && event.function >= FIRST_FUNCTION
            && self.operations[rank].of(event.function).0 != Operation::Nothing
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
    /// Before the first event.
    pub fn new(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        communicators: &'a CommunicatorTable,
    ) -> Self {
        let mut names = CollectiveNames::default();
        let operations: Vec<Operations> =
            run.ranks.iter().map(|trace| Operations::new(&trace.file, &mut names)).collect();
        let operations = Arc::new(operations);
        let matching = Matching {
            communicators,
            channels: Channels::default(),
            collectives: Collectives::new(communicators),
            leavings: Leavings::default(),
            outlet: Outlet::new(run, timeline, names),
            partners: partners(run, timeline),
            share: None,
            given_up: false,
        };
        let state = |index: usize| {
            let trace = &run.ranks[index];
            let constants = MpiConstants::of_family(&trace.file.header.mpi_family);
            let constants = constants.filter(|_| says_attributes(trace));
            constants.map(|constants| RankState::new(index, trace, constants))
        };
        let ranks = (0..run.ranks.len()).map(state).collect();
        let wanted = OfInterest { operations: operations.clone() };
        let streams = EventStreams::new(run, timeline, (Part::Unbroken, Moment::End), wanted);
        Self { streams, operations, matching, ranks }
    }

    /// Takes the next event, and hands on what is certain now; `false` behind the last one.
    pub fn step(&mut self, sink: &mut dyn MatchSink) -> bool {
        let Some(step) = self.streams.next_step() else { return false };
        let matching = &mut self.matching;
        match step {
            Step::Event { rank, thread, event } => {
                if let Some(state) = &mut self.ranks[rank] {
                    let operation = self.operations[rank].of(event.function);
                    state.take(thread, event, operation, matching);
                }
            }
            Step::End { rank } => {
                if let Some(state) = self.ranks[rank].take() {
                    state.finish(matching);
                }
                matching.end_of_rank(rank);
                matching.hand_on();
            }
        }
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
        matching.finish();
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
    /// The rank at a position of the run has no more events.
    fn end_of_rank(&mut self, position: usize) {
        self.partners[position].1.live = false;
        self.collectives.end_of_rank(position, self.communicators);
    }

    /// Hands on what has been matched since the last time.
    fn hand_on(&mut self) {
        let Self { channels, collectives, outlet, .. } = self;
        for pair in channels.matched.drain(..) {
            if let Some(message) = outlet.message(&pair) {
                outlet.found(message);
            }
        }
        collectives.complete.drain(..).for_each(|instance| outlet.instance(instance));
    }

    /// Hands on the sends of a channel that nobody will receive.
    fn drop_orphaned_sends(&mut self, key: ChannelKey) {
        let partner = self.partner(key.destination);
        if !partner.live && !self.leavings.has_wildcard(key.communicator, key.destination) {
            for send in self.channels.orphaned_sends(key) {
                self.outlet.unmatched_send(key, &send, partner.reason);
            }
        }
    }

    /// Hands on the receives of a channel that nobody will send to.
    fn drop_orphaned_receives(&mut self, key: ChannelKey) {
        let partner = self.partner(key.source);
        if !partner.live {
            for receive in self.channels.orphaned_receives(key) {
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

    fn finish(&mut self) {
        self.collectives.finish();
        self.hand_on();
        self.hand_on_active();
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
