//! Replays a run: every thread advances until it needs something that another has not done yet.

use rustc_hash::FxHashMap;

use super::dependencies::{StartPoint, dependencies, senders};
use super::exchange::Rounds;
use super::graph::{Graph, LinkKind, Op, OpNumber, Window};
use super::movement::Needs;
use super::network::{Costs, Network, Placement};
use super::part::{Bounds, Ends, Pin};

/// The conditions of a replay.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<'c, P> {
    pub network: &'c Network,
    /// The hosts of the ranks.
    pub placement: &'c Placement,
    /// Durations in seconds, given an operation and its number: of the computation before it, and
    /// of the calls before it that need no other rank.
    pub pace: P,
}

/// Type of [`as_recorded`].
pub(super) type RecordedPace = fn(OpNumber, &Op) -> (f64, f64);

/// The pace of a replay in which computation takes as long as recorded.
pub(super) fn as_recorded(_number: OpNumber, op: &Op) -> (f64, f64) {
    (op.own_s, f64::from(op.library_s))
}

/// The result of a replay.
#[derive(Debug, Clone, Default)]
pub struct Replayed {
    /// When each call is entered; seconds.
    pub entered: Vec<f64>,
    /// When each line ends; seconds.
    pub ends: Vec<f64>,
    /// The last operation of each line that was replayed.
    pub(super) last_ops: Vec<OpNumber>,
    /// From the earliest begin to the latest end; seconds.
    pub elapsed_s: f64,
    /// Number of calls that were released although what they needed never came: their ranks waited
    /// for each other.
    pub released: u64,
}

/// A time that is not known yet.
const UNKNOWN: f64 = f64::NAN;

const NO_LINE: u32 = u32::MAX;

/// What a line waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Op(OpNumber),
    Senders(u32),
}

/// The progress of a line.
#[derive(Debug, Clone, Copy)]
struct Progress {
    /// Its next operation, or, if `inside`, its current one.
    op: OpNumber,
    inside: bool,
    now: f64,
    /// The next line that waits for the same.
    next_waiter: u32,
}

struct Forward<'f, 'a, P> {
    graph: &'f Graph<'a>,
    /// The part of the run that is replayed, and when it was left; `None` if that is all.
    part: Option<(&'f Bounds, Ends)>,
    conditions: &'f Conditions<'f, P>,
    costs: Costs<'f>,
    /// The end of the operations of each line.
    ends: &'f [OpNumber],
    entered: Vec<f64>,
    /// For each collective operation, the number of senders that have not begun, and when the last
    /// one began.
    missing: Vec<u32>,
    last: Vec<f64>,
    /// When each member has everything, for operations in which every member needs all others.
    rounds_done: Vec<f64>,
    progress: Vec<Progress>,
    /// The first line that waits for each call; and, for each line, how many lines wait for one of
    /// its calls.
    waiting_for_ops: FxHashMap<OpNumber, u32>,
    awaited: Vec<u32>,
    /// The first line that waits for the senders of each collective operation.
    waiting_for_senders: FxHashMap<u32, u32>,
    runnable: Vec<u32>,
}

/// Replays a run. Times depend only on the graph and the conditions, not on the order of the lines.
pub fn replay<P: Fn(OpNumber, &Op) -> (f64, f64)>(
    graph: &Graph,
    conditions: &Conditions<'_, P>,
) -> Replayed {
    replay_window(graph, conditions, &graph.whole())
}

/// Replays a part of a run, as the module `part` says; returns when it was left.
pub(super) fn replay_part<P: Fn(OpNumber, &Op) -> (f64, f64)>(
    graph: &Graph,
    conditions: &Conditions<'_, P>,
    bounds: &Bounds,
) -> Ends {
    replay_from(graph, conditions, (&graph.whole(), Some(bounds))).1
}

/// Replays a window of a run.
pub(super) fn replay_window<P: Fn(OpNumber, &Op) -> (f64, f64)>(
    graph: &Graph,
    conditions: &Conditions<'_, P>,
    window: &Window,
) -> Replayed {
    replay_from(graph, conditions, (window, None)).0
}

fn replay_from<P: Fn(OpNumber, &Op) -> (f64, f64)>(
    graph: &Graph,
    conditions: &Conditions<'_, P>,
    (window, part): (&Window, Option<&Bounds>),
) -> (Replayed, Ends) {
    let lines = graph.lines.len();
    let missing = |number: usize| senders(graph, number as u32).count() as u32;
    let progress = graph.lines.iter().map(|line| Progress {
        op: line.ops.start,
        inside: false,
        now: line.begin_s,
        next_waiter: NO_LINE,
    });
    let mut forward = Forward {
        graph,
        conditions,
        part: part.map(|bounds| (bounds, Ends::default())),
        costs: Costs { network: conditions.network, placement: conditions.placement },
        ends: &window.ends,
        entered: vec![UNKNOWN; graph.ops.len()],
        missing: (0..graph.collectives.len()).map(missing).collect(),
        last: vec![f64::NEG_INFINITY; graph.collectives.len()],
        rounds_done: vec![UNKNOWN; graph.members.len()],
        progress: progress.collect(),
        waiting_for_ops: FxHashMap::default(),
        awaited: vec![0; lines],
        waiting_for_senders: FxHashMap::default(),
        runnable: (0..lines as u32).rev().collect(),
    };
    let mut released = 0;
    loop {
        while let Some(line) = forward.runnable.pop() {
            forward.advance(line, false);
        }
        // Lines may wait for what happens after the window.
        let Some(line) = forward.first_stuck().filter(|_| window.is_whole) else { break };
        released += 1;
        forward.forget_waiter(line);
        forward.advance(line, true);
    }
    let last_ops: Vec<OpNumber> = window.ends.iter().map(|end| end - 1).collect();
    let ends: Vec<f64> = match window.is_whole {
        true => forward.progress.iter().map(|progress| progress.now).collect(),
        // A line that did not get as far ends nowhere: `max` ignores NaN.
        false => {
            last_ops.iter().map(|op| forward.entered[*op as usize].max(f64::NEG_INFINITY)).collect()
        }
    };
    let begin = graph.lines.iter().map(|line| line.begin_s).fold(f64::INFINITY, f64::min);
    let elapsed_s = ends.iter().copied().fold(begin, f64::max) - begin;
    let part = forward.part.map(|(_, ends)| ends).unwrap_or_default();
    (Replayed { entered: forward.entered, ends, last_ops, elapsed_s, released }, part)
}

impl<P: Fn(OpNumber, &Op) -> (f64, f64)> Forward<'_, '_, P> {
    /// Advances a line until it needs something that is not known. With `anyway`, the current call
    /// does not wait for what it needs.
    fn advance(&mut self, line: u32, mut anyway: bool) {
        let end = self.ends[line as usize];
        let Progress { mut op, mut inside, mut now, .. } = self.progress[line as usize];
        while op < end {
            let pin = self
                .part
                .as_ref()
                .map(|(bounds, _)| bounds.pin(line, self.graph.recorded[op as usize]));
            if !inside {
                now = match pin {
                    Some(Pin { is_after: true, .. }) => now,
                    Some(Pin { entered: Some(entered), .. }) => entered,
                    _ => {
                        let of = &self.graph.ops[op as usize];
                        let (own_s, library_s) = (self.conditions.pace)(op, of);
                        now + own_s + library_s
                    }
                };
                self.enter(line, op, now);
            }
            // What lies outside the part ends when it did.
            let is_outside = pin.is_some_and(|pin| pin.left.is_some() && pin.ends.is_none());
            match self.left(op, now, anyway || is_outside) {
                Ok(left) => now = self.pinned((line, op), pin, (now, left)),
                Err(need) => {
                    self.progress[line as usize] =
                        Progress { op, inside: true, now, next_waiter: NO_LINE };
                    self.wait(line, need);
                    return;
                }
            }
            (op, inside, anyway) = (op + 1, false, false);
        }
        self.progress[line as usize] = Progress { op, inside: false, now, next_waiter: NO_LINE };
    }

    /// When a call is left, in the replay of a part.
    fn pinned(
        &mut self,
        (line, op): (u32, OpNumber),
        pin: Option<Pin>,
        (entered, left): (f64, f64),
    ) -> f64 {
        let (Some(pin), Some((_, ends))) = (pin, &mut self.part) else { return left };
        let left = pin.begins.map_or(left, |begin| left.max(begin));
        ends.add((line, !self.graph.links(op).is_empty()), &pin, (entered, left));
        pin.left.unwrap_or(left)
    }

    /// Begins a call, for which others may have waited.
    #[inline]
    fn enter(&mut self, line: u32, op: OpNumber, now: f64) {
        self.entered[op as usize] = now;
        if self.awaited[line as usize] > 0
            && let Some(first) = self.waiting_for_ops.remove(&op)
        {
            let woken = self.wake(first);
            self.awaited[line as usize] -= woken;
        }
        for link in self.graph.links(op) {
            if matches!(link.kind, LinkKind::Collective | LinkKind::PostCollective) {
                self.join_collective(link.of, now);
            }
        }
    }

    fn join_collective(&mut self, member: u32, now: f64) {
        let member = &self.graph.members[member as usize];
        if !member.sends {
            return;
        }
        let at = member.collective as usize;
        self.last[at] = self.last[at].max(now);
        self.missing[at] -= 1;
        if self.missing[at] > 0 {
            return;
        }
        let collective = &self.graph.collectives[at];
        if collective.needs == Needs::Everybody {
            let rounds = Rounds::new(self.graph, collective);
            let ends = rounds.ends(&self.costs, |op| self.entered[op as usize]);
            let first = collective.members.start as usize;
            self.rounds_done[first..first + ends.len()].copy_from_slice(&ends);
        }
        if let Some(first) = self.waiting_for_senders.remove(&member.collective) {
            self.wake(first);
        }
    }

    /// Makes lines that waited for the same thing runnable; returns their number.
    fn wake(&mut self, first: u32) -> u32 {
        let (mut line, mut woken) = (first, 0);
        while line != NO_LINE {
            self.runnable.push(line);
            woken += 1;
            line = std::mem::replace(&mut self.progress[line as usize].next_waiter, NO_LINE);
        }
        woken
    }

    fn wait(&mut self, line: u32, need: Need) {
        let first = match need {
            Need::Op(op) => {
                self.awaited[self.graph.line_of(op) as usize] += 1;
                self.waiting_for_ops.insert(op, line)
            }
            Need::Senders(number) => self.waiting_for_senders.insert(number, line),
        };
        self.progress[line as usize].next_waiter = first.unwrap_or(NO_LINE);
    }

    /// When a call is left, or what it still needs.
    #[inline]
    fn left(&self, op: OpNumber, now: f64, anyway: bool) -> Result<f64, Need> {
        let mut left = now;
        let mut need = None;
        if self.graph.links(op).is_empty() {
            return Ok(left);
        }
        dependencies(self.graph, &self.costs, op, |start, time| {
            let from = match start {
                StartPoint::Begin => now,
                StartPoint::Entered(op) => {
                    let entered = self.entered[op as usize];
                    if entered.is_nan() {
                        need = Some(Need::Op(op));
                    }
                    entered
                }
                StartPoint::RoundsDone(member) => {
                    let end = self.rounds_done[member as usize];
                    if end.is_nan() {
                        let collective = self.graph.members[member as usize].collective;
                        need = Some(Need::Senders(collective));
                    }
                    end
                }
                StartPoint::LastSender(number) => {
                    if self.missing[number as usize] > 0 {
                        need = Some(Need::Senders(number));
                        f64::NAN
                    } else {
                        self.last[number as usize]
                    }
                }
            };
            // Unknown times are NaN, which `max` ignores.
            left = left.max(from + time);
        });
        match need.filter(|_| !anyway) {
            Some(need) => Err(need),
            None => Ok(left),
        }
    }

    /// Among the lines that are stuck inside a call, the one that entered it first.
    fn first_stuck(&self) -> Option<u32> {
        let stuck = self.progress.iter().enumerate().filter(|(_, progress)| progress.inside);
        let first = stuck.min_by(|(_, a), (_, b)| a.now.total_cmp(&b.now));
        first.map(|(line, _)| line as u32)
    }

    /// Removes a line from the lines that wait.
    fn forget_waiter(&mut self, line: u32) {
        let next = std::mem::replace(&mut self.progress[line as usize].next_waiter, NO_LINE);
        for heads in [&mut self.waiting_for_ops, &mut self.waiting_for_senders] {
            let found = heads.iter().find(|(_, first)| **first == line).map(|(of, _)| *of);
            if let Some(of) = found {
                match next {
                    NO_LINE => heads.remove(&of),
                    next => heads.insert(of, next),
                };
            }
        }
        if let Some(before) = self.progress.iter_mut().find(|other| other.next_waiter == line) {
            before.next_waiter = next;
        }
        // The line that it waited for may stay counted as awaited; that only costs a look-up.
    }
}
