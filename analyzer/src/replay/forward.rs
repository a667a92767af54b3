//! Replays a run: every thread advances until it needs something that another has not done yet.

use super::dependencies::{StartPoint, dependencies, senders};
use super::exchange::Rounds;
use super::graph::{Graph, LinkKind, OpNumber, Window};
use super::movement::Needs;
use super::network::{Costs, Network, Placement};
use super::part::{Bounds, Ends, Pin};

/// The conditions of a replay.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<'c> {
    pub network: &'c Network,
    /// The hosts of the ranks.
    pub placement: &'c Placement,
    /// Computation before each operation, seconds.
    pub own: &'c [f64],
    /// Factor of the recorded time in the recorder and in calls that need no other rank.
    pub library: f64,
}

impl<'c> Conditions<'c> {
    /// The recorded computation, on a network and a placement.
    pub fn recorded(graph: &'c Graph, network: &'c Network, placement: &'c Placement) -> Self {
        Self { network, placement, own: &graph.own, library: 1.0 }
    }

    /// Seconds before an operation: of computation, and in calls that need no other rank.
    #[inline]
    pub(super) fn before(&self, graph: &Graph, op: OpNumber) -> (f64, f64) {
        let library_s = f64::from(graph.ops[op as usize].library_s) * self.library;
        (self.own[op as usize], library_s)
    }
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

/// A time that is not known yet, which a line waits for: not a number, but one that names the line.
fn awaited_by(line: u32) -> f64 {
    f64::from_bits(f64::NAN.to_bits() | u64::from(line))
}

/// The line that waits for a time, if that is not known yet.
fn waiter(time: f64) -> u32 {
    if time.is_nan() { time.to_bits() as u32 } else { NO_LINE }
}

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
    /// What it waits for.
    need: Option<Need>,
    /// The next line that waits for the same.
    next_waiter: u32,
}

/// The progress of a collective operation.
#[derive(Debug, Clone, Copy)]
struct Joined {
    /// The number of senders that have not begun, and when the last one began.
    missing: u32,
    last: f64,
    /// The first line that waits for its senders.
    waiter: u32,
}

struct Forward<'f, 'a> {
    graph: &'f Graph<'a>,
    /// The part of the run that is replayed, and when it was left; `None` if that is all.
    part: Option<(&'f Bounds, Ends)>,
    conditions: &'f Conditions<'f>,
    costs: Costs<'f>,
    /// The end of the operations of each line.
    ends: &'f [OpNumber],
    /// When each call is entered, or the first line that waits for it.
    entered: Vec<f64>,
    /// By collective operation.
    joined: Vec<Joined>,
    /// When each member has everything, for operations in which every member needs all others.
    rounds_done: Vec<f64>,
    progress: Vec<Progress>,
    runnable: Vec<u32>,
}

/// Replays a run. Times depend only on the graph and the conditions, not on the order of the lines.
pub fn replay(graph: &Graph, conditions: &Conditions<'_>) -> Replayed {
    replay_window(graph, conditions, &graph.whole())
}

/// Replays a part of a run, as the module `part` says; returns when it was left.
pub(super) fn replay_part(graph: &Graph, conditions: &Conditions<'_>, bounds: &Bounds) -> Ends {
    replay_from(graph, conditions, (&graph.whole(), Some(bounds))).1
}

/// Replays a window of a run.
pub(super) fn replay_window(
    graph: &Graph,
    conditions: &Conditions<'_>,
    window: &Window,
) -> Replayed {
    replay_from(graph, conditions, (window, None)).0
}

fn replay_from(
    graph: &Graph,
    conditions: &Conditions<'_>,
    (window, part): (&Window, Option<&Bounds>),
) -> (Replayed, Ends) {
    let lines = graph.lines.len();
    let joined = |number: usize| Joined {
        missing: senders(graph, number as u32).count() as u32,
        last: f64::NEG_INFINITY,
        waiter: NO_LINE,
    };
    let progress = graph.lines.iter().map(|line| Progress {
        op: line.ops.start,
        inside: false,
        now: line.begin_s,
        need: None,
        next_waiter: NO_LINE,
    });
    let mut forward = Forward {
        graph,
        conditions,
        part: part.map(|bounds| (bounds, Ends::default())),
        costs: Costs { network: conditions.network, placement: conditions.placement },
        ends: &window.ends,
        entered: vec![awaited_by(NO_LINE); graph.ops.len()],
        joined: (0..graph.collectives.len()).map(joined).collect(),
        rounds_done: vec![f64::NAN; graph.members.len()],
        progress: progress.collect(),
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

impl Forward<'_, '_> {
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
                        let (own_s, library_s) = self.conditions.before(self.graph, op);
                        now + own_s + library_s
                    }
                };
                self.enter(op, now);
            }
            // What lies outside the part ends when it did.
            let is_outside = pin.is_some_and(|pin| pin.left.is_some() && pin.ends.is_none());
            match self.left(op, now, anyway || is_outside) {
                Ok(left) => now = self.pinned((line, op), pin, (now, left)),
                Err(need) => {
                    let next_waiter = self.replace_waiter(need, line);
                    let need = Some(need);
                    self.progress[line as usize] =
                        Progress { op, inside: true, now, need, next_waiter };
                    return;
                }
            }
            (op, inside, anyway) = (op + 1, false, false);
        }
        self.progress[line as usize] =
            Progress { op, inside: false, now, need: None, next_waiter: NO_LINE };
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
    fn enter(&mut self, op: OpNumber, now: f64) {
        let first = waiter(std::mem::replace(&mut self.entered[op as usize], now));
        self.wake(first);
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
        let joined = &mut self.joined[at];
        joined.last = joined.last.max(now);
        joined.missing -= 1;
        if joined.missing > 0 {
            return;
        }
        let first = std::mem::replace(&mut joined.waiter, NO_LINE);
        let collective = &self.graph.collectives[at];
        if collective.needs == Needs::Everybody {
            let rounds = Rounds::new(self.graph, collective);
            let ends = rounds.ends(&self.costs, |op| self.entered[op as usize]);
            let first = collective.members.start as usize;
            self.rounds_done[first..first + ends.len()].copy_from_slice(&ends);
        }
        self.wake(first);
    }

    /// Makes lines that waited for the same thing runnable.
    fn wake(&mut self, first: u32) {
        let mut line = first;
        while line != NO_LINE {
            self.runnable.push(line);
            line = std::mem::replace(&mut self.progress[line as usize].next_waiter, NO_LINE);
        }
    }

    /// Makes a line the first that waits for something; returns the one that was.
    fn replace_waiter(&mut self, need: Need, line: u32) -> u32 {
        match need {
            Need::Op(op) => {
                waiter(std::mem::replace(&mut self.entered[op as usize], awaited_by(line)))
            }
            Need::Senders(number) => {
                std::mem::replace(&mut self.joined[number as usize].waiter, line)
            }
        }
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
                    let joined = &self.joined[number as usize];
                    if joined.missing > 0 {
                        need = Some(Need::Senders(number));
                        f64::NAN
                    } else {
                        joined.last
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
        let Progress { need, next_waiter, .. } = self.progress[line as usize];
        let Some(need) = need else { return };
        let first = self.replace_waiter(need, next_waiter);
        if first != line {
            self.replace_waiter(need, first);
            if let Some(before) = self.progress.iter_mut().find(|other| other.next_waiter == line) {
                before.next_waiter = next_waiter;
            }
        }
        self.progress[line as usize].next_waiter = NO_LINE;
    }
}
