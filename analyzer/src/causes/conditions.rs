//! Finds what each call had to wait for, from the matched messages and collective operations: one
//! condition for each partner that acted after the call had begun. docs/causes.md defines the
//! rules.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::meaning::SendMode;

use crate::analysis::Analysis;
use crate::timeline::matching::{
    Call, MatchFinding, MatchInterest, MatchSink, Message, MessageEnd, Polls, ProbedMessage,
};
use crate::trace::Run;

use super::integer_timeline::IntegerTimeline;
use super::lines::Lines;
use super::matched_conditions::{
    Condition, Entry, Limits, MatchedConditions, PollRun, Unexplained,
};
use super::neighbours::Neighbours;
use super::semantics::{CallKind, CallSemantics};
use super::side::Side;
use super::states::State;
use super::windows::Windows;

/// Shorter unexplained parts of calls are not examined for late progress.
const MIN_UNEXPLAINED_S: f64 = 100e-6;

/// Least ticks by which a call outlasts its explained part for it to be examined for late progress.
pub(super) fn min_unexplained_ticks(clock: &IntegerTimeline) -> i64 {
    (MIN_UNEXPLAINED_S * clock.ticks_per_s) as i64
}

/// Collects conditions from the matcher.
#[derive(Debug)]
pub(super) struct ConditionCollector<'f, 'a> {
    pub(super) run: &'a Run,
    pub(super) analysis: &'f Analysis<'a>,
    clock: &'f IntegerTimeline<'a>,
    lines: &'f Lines,
    semantics: &'f CallSemantics,
    pub(super) neighbours: &'f Neighbours,
    pub(super) windows: &'f Windows,
    pub(super) positions: FxHashMap<u32, FxHashMap<u32, u32>>,
    /// By communicator the lines of its last operation, to be shared by the next.
    pub(super) sync_lines: FxHashMap<u32, Arc<[u32]>>,
    min_unexplained_ticks: i64,
    /// Calls that receive a probed message which has not been matched yet.
    awaited: FxHashSet<Entry>,
    pub(super) found: MatchedConditions,
}

/// What calls refer to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Objects<'f> {
    pub lines: &'f Lines,
    pub semantics: &'f CallSemantics,
    pub neighbours: &'f Neighbours,
    pub windows: &'f Windows,
}

impl<'f, 'a> ConditionCollector<'f, 'a> {
    /// Has found nothing yet.
    pub fn new(
        analysis: &'f Analysis<'a>,
        clock: &'f IntegerTimeline<'a>,
        objects: Objects<'f>,
        limits: &Limits,
    ) -> Self {
        let Objects { lines, semantics, neighbours, windows } = objects;
        Self {
            run: analysis.run,
            analysis,
            clock,
            lines,
            semantics,
            neighbours,
            windows,
            positions: FxHashMap::default(),
            sync_lines: FxHashMap::default(),
            min_unexplained_ticks: min_unexplained_ticks(clock),
            awaited: FxHashSet::default(),
            found: MatchedConditions::within(limits),
        }
    }

    /// What it found in its share.
    pub fn into_found(mut self) -> MatchedConditions {
        self.found.conditions.end_share();
        self.found.unexplained.end_share();
        self.found
    }

    /// Adds the conditions that need what all shares have found.
    pub fn resolve(mut self, found: MatchedConditions) -> MatchedConditions {
        self.found = found;
        self.resolve_probes();
        self.resolve_epochs();
        self.resolve_locks();
        self.found
    }

    /// Adds the conditions of probes, now that their messages are known.
    fn resolve_probes(&mut self) {
        let sent: FxHashMap<Entry, Side> = self.found.probed.drain(..).collect();
        let probes = std::mem::take(&mut self.found.probes);
        for (probe, receives) in probes {
            let sent = sent.get(&receives);
            let condition = sent.and_then(|sent| self.condition(&probe, sent, State::LateSender));
            self.add(condition);
        }
    }

    pub(super) fn side(&self, world_rank: u32, call: Call) -> Option<Side> {
        let rank = self.run.position_of(world_rank)?;
        let line = self.lines.number_of(rank, call.thread)?;
        Some(self.side_on((rank, line), call))
    }

    fn side_on(&self, (rank, line): (usize, u32), call: Call) -> Side {
        let left = call.end_ticks().map(|ticks| self.clock.at(rank, ticks));
        Side { rank, line, call, entered: self.clock.at(rank, call.begin_ticks), left }
    }

    /// The condition that the partner fulfilled by entering its own call.
    pub(super) fn condition(
        &self,
        waiter: &Side,
        partner: &Side,
        state: State,
    ) -> Option<Condition> {
        let left = waiter.left?;
        let call = self.semantics.get(waiter.rank, waiter.call.function).call;
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
        self.unexplained_since(waiter, partner, (since, left), state);
    }

    /// Records a call that returned long after a moment from which on it is not explained.
    pub(super) fn unexplained_since(
        &mut self,
        waiter: &Side,
        partner: &Side,
        (since, left): (i64, i64),
        state: State,
    ) {
        let semantics = self.semantics.get(waiter.rank, waiter.call.function);
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
    pub(super) fn add(&mut self, condition: Option<Condition>) {
        let Some(condition) = condition else { return };
        match condition.fulfilled > condition.left.saturating_add(condition.bound) {
            true => self.found.violations += 1,
            false => self.found.conditions.push(condition),
        }
    }

    fn late_receiver(&mut self, message: &Message, sender: &Side, receiver: &Side) {
        let semantics = self.semantics.get(sender.rank, message.send.posted.function);
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
}

impl MatchSink for ConditionCollector<'_, '_> {
    fn wants(&self) -> MatchInterest {
        MatchInterest { completions: true, polls: true, waiting: true }
    }

    fn take(&mut self, finding: &MatchFinding) {
        match finding {
            MatchFinding::Message(message) => self.message(message),
            MatchFinding::Collective(instance) => self.collective_conditions(instance),
            MatchFinding::ImplicitCollective(instance) => {
                self.implicit_collective_conditions(instance)
            }
            MatchFinding::Epoch(epoch) => self.add_epoch(epoch),
            MatchFinding::Access(access) => self.add_access(access),
            MatchFinding::Probed(probed) => self.probed(probed),
            MatchFinding::Polls(polls) => self.polls(polls),
            _ => {}
        }
    }
}

impl ConditionCollector<'_, '_> {
    fn message(&mut self, message: &Message) {
        let (send, receive) = (&message.send, &message.receive);
        let (Some(sent), Some(posted)) =
            (self.side(send.rank, send.posted), self.side(receive.rank, receive.posted))
        else {
            return;
        };
        let side_of = |end: &MessageEnd, posted: &Side| match end.completed {
            Some(call) if call == end.posted => Some(*posted),
            Some(call) if call.thread == end.posted.thread => {
                Some(self.side_on((posted.rank, posted.line), call))
            }
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

    fn probed(&mut self, probed: &ProbedMessage) {
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
