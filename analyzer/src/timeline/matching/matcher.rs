//! The progress of matching through a run.

use std::sync::Arc;

use trace_format::meaning::Operation;
use trace_format::reader::{Event, Head, StoredEvent};

use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::event_streams::{EventFilter, EventStreams, Moment, Part, Step};
use crate::timeline::global::GlobalTimeline;
use crate::trace::Run;

use super::call::Call;
use super::findings::{MatchFinding, MatchInterest, MatchSink, MatchingSummary, Polls};
use super::operations::Operations;
use super::rank_state::RankState;
use super::start::Start;
use super::state::Matching;

/// Selects the events that matter for matching.
#[derive(Debug, Clone)]
pub(super) struct MatchingFilter {
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

/// The progress of matching through a run; a clone continues from the same point.
#[derive(Clone)]
pub struct Matcher<'a> {
    streams: EventStreams<'a, MatchingFilter>,
    pub(super) operations: Arc<Vec<Arc<Operations>>>,
    matching: Matching<'a>,
    pub(super) ranks: Vec<Option<RankState<'a>>>,
}

impl<'a> Matcher<'a> {
    /// Starts before the first event, without optional findings.
    pub fn new(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        communicators: &'a CommunicatorTable,
    ) -> Self {
        Self::wanting(run, timeline, communicators, MatchInterest::default())
    }

    /// Starts before the first event, with the optional findings that `wants` asks for.
    pub fn wanting(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        communicators: &'a CommunicatorTable,
        wants: MatchInterest,
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
                    let operation = self.operations[rank].operation(event.function());
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

impl Matching<'_> {
    /// Handles an event of a rank.
    #[inline]
    pub(super) fn take_event(
        &mut self,
        state: &mut RankState<'_>,
        thread: u32,
        event: &StoredEvent<'_>,
        operation: (Operation, u16),
    ) {
        match event.polls() {
            None => state.take(thread, event, operation, self),
            Some((count, inside_ticks)) if self.emitter.wants.polls => {
                let (rank, call) = (state.rank, Call::new(thread, event));
                let request = event.head.request();
                let polls = Polls { rank, call, count, inside_ticks, request };
                self.emitter.add(MatchFinding::Polls(polls));
            }
            Some(_) => {}
        }
    }
}
