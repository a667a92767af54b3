//! Finds what each call had to wait for, from the matched messages and collective operations: one
//! condition for each partner that acted after the call had begun. docs/causes.md defines the
//! rules.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::analysis::Analysis;
use crate::timeline::matching::{
    Access, Call, CollectiveInstance, Epoch, MatchSink, Message, MessageEnd, Polls, Probed, Wants,
};
use crate::trace::Run;

use super::State;
use super::lines::Lines;
use super::longest::{CountsOfProcess, Length, Longest};
use super::neighbours::Neighbours;
use super::receipts::{CountOfProcess, Receipts};
use super::semantics::{CallKind, CallSemantics, SendMode};
use super::whole_ticks::WholeTicks;
use super::windows::{WindowCalls, Windows};

/// Something a partner did that a call needed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Unexplained {
    /// The partner's rank, by its position.
    pub partner: usize,
    /// Up to when the partner's part explains the call.
    pub since: i64,
    pub condition: Condition,
}

impl Length for Condition {
    /// How long the call would wait if nothing else were later.
    fn length(&self) -> i64 {
        self.fulfilled - self.entered
    }

    /// A call that needs all of its conditions waits for the last.
    fn is_optional(&self) -> bool {
        self.call == CallKind::All
    }
}

impl Length for Unexplained {
    fn length(&self) -> i64 {
        self.condition.left - self.since
    }

    fn is_optional(&self) -> bool {
        true
    }
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
    /// When the last member entered.
    pub moment: i64,
    /// The members' lines, ascending; most operations of a communicator share one list.
    pub lines: Arc<[u32]>,
}

/// A run of polls that found nothing.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
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

/// Most received messages that are kept for each wait that may be kept.
const RECEIPTS_FOR_EACH_WAIT: usize = 8;

/// What one share of the run yielded.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Found {
    pub conditions: Longest<Condition>,
    #[serde(with = "sync_lists")]
    pub collective_syncs: Vec<CollectiveSync>,
    pub polls: Vec<PollRun>,
    pub unexplained: Longest<Unexplained>,
    pub receipts: Receipts,
    /// Probes, each with the call that received its message.
    probes: Vec<(Side, Entry)>,
    /// Sends of messages that were probed, keyed by the call that received them.
    probed: Vec<(Entry, Side)>,
    /// Conditions fulfilled after the call had returned, by more than the clock error.
    pub violations: u64,
    /// Collective operations with missing members.
    pub incomplete: u64,
    /// Neighbourhood collectives of ranks whose neighbours are not known.
    pub neighbourhoods: u64,
    /// Epochs of one-sided communication.
    pub windows: WindowCalls,
}

/// Sends synchronisations to another process, each list of lines once.
mod sync_lists {
    use std::sync::Arc;

    use rustc_hash::FxHashMap;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::CollectiveSync;

    /// The lists, and moment and list of each synchronisation.
    #[derive(Serialize, Deserialize)]
    struct Listed(Vec<Vec<u32>>, Vec<(i64, usize)>);

    pub fn serialize<S: Serializer>(syncs: &[CollectiveSync], to: S) -> Result<S::Ok, S::Error> {
        let mut numbers: FxHashMap<*const u32, usize> = FxHashMap::default();
        let mut lists = Vec::new();
        let listed = syncs.iter().map(|CollectiveSync { moment, lines }| {
            let list = numbers.entry(lines.as_ptr()).or_insert_with(|| {
                lists.push(lines.to_vec());
                lists.len() - 1
            });
            (*moment, *list)
        });
        let listed = listed.collect();
        Listed(lists, listed).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<CollectiveSync>, D::Error> {
        let Listed(lists, listed) = Listed::deserialize(from)?;
        let lists: Vec<Arc<[u32]>> = lists.into_iter().map(Arc::from).collect();
        let sync =
            |(moment, list): (i64, usize)| CollectiveSync { moment, lines: lists[list].clone() };
        Ok(listed.into_iter().map(sync).collect())
    }
}

/// A call's line, and when it was entered.
type Entry = (u32, i64);

/// How much is kept, of the whole run and in this process.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    most_waits: usize,
    /// How many shares of the run are matched in this process.
    shares: usize,
    conditions: CountsOfProcess,
    unexplained: CountsOfProcess,
    receipts: CountOfProcess,
}

impl Limits {
    /// Keeps at most this many waits of a run.
    pub fn new(most_waits: usize) -> Self {
        let shares = rayon::current_num_threads().max(1);
        let (conditions, unexplained, receipts) = Default::default();
        Self { most_waits, shares, conditions, unexplained, receipts }
    }
}

impl Found {
    fn within(limits: &Limits) -> Self {
        let Limits { most_waits, shares, conditions, unexplained, receipts } = limits;
        Self {
            conditions: Longest::new(*most_waits, *shares, conditions),
            unexplained: Longest::new(*most_waits, *shares, unexplained),
            receipts: Receipts::new(RECEIPTS_FOR_EACH_WAIT * most_waits, receipts),
            ..Self::default()
        }
    }

    /// Adds what another share or process found.
    pub fn merge(mut self, other: Self) -> Self {
        self.conditions.merge(other.conditions);
        self.collective_syncs.extend(other.collective_syncs);
        self.polls.extend(other.polls);
        self.unexplained.merge(other.unexplained);
        self.receipts.merge(other.receipts);
        self.probes.extend(other.probes);
        self.probed.extend(other.probed);
        self.violations += other.violations;
        self.incomplete += other.incomplete;
        self.neighbourhoods += other.neighbourhoods;
        self.windows.merge(other.windows);
        self
    }
}

/// Collects conditions from the matcher.
#[derive(Debug)]
pub(super) struct Finder<'f, 'a> {
    pub(super) run: &'a Run,
    pub(super) analysis: &'f Analysis<'a>,
    clock: &'f WholeTicks<'a>,
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
    pub(super) found: Found,
}

/// What calls refer to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Objects<'f> {
    pub lines: &'f Lines,
    pub semantics: &'f CallSemantics,
    pub neighbours: &'f Neighbours,
    pub windows: &'f Windows,
}

/// One side of a message or operation: rank, line, call and its times.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Side {
    /// The rank's position in the run.
    pub rank: usize,
    pub line: u32,
    pub call: Call,
    /// When the call was entered, and when it was left.
    pub entered: i64,
    pub left: Option<i64>,
}

impl<'f, 'a> Finder<'f, 'a> {
    /// Has found nothing yet.
    pub fn new(
        analysis: &'f Analysis<'a>,
        clock: &'f WholeTicks<'a>,
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
            found: Found::within(limits),
        }
    }

    /// What it found in its share.
    pub fn into_found(mut self) -> Found {
        self.found.conditions.end_share();
        self.found.unexplained.end_share();
        self.found
    }

    /// Adds the conditions that need what all shares have found.
    pub fn resolve(mut self, found: Found) -> Found {
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
        let line = self.lines.of(rank, call.thread)?;
        let left = call.end_ticks().map(|ticks| self.clock.at(rank, ticks));
        Some(Side { rank, line, call, entered: self.clock.at(rank, call.begin_ticks), left })
    }

    /// The condition that the partner fulfilled by entering its own call.
    pub(super) fn condition(
        &self,
        waiter: &Side,
        partner: &Side,
        state: State,
    ) -> Option<Condition> {
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
    pub(super) fn add(&mut self, condition: Option<Condition>) {
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
        self.collective_conditions(instance);
    }

    fn together(&mut self, instance: &CollectiveInstance) {
        self.together_conditions(instance);
    }

    fn epoch(&mut self, epoch: &Epoch) {
        self.add_epoch(epoch);
    }

    fn access(&mut self, access: &Access) {
        self.add_access(access);
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
