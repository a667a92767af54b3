//! Replays a run: every thread goes on until it needs something that another has not done yet.

use rustc_hash::FxHashMap;

use super::branches::{Since, branches, gathered};
use super::exchange::Rounds;
use super::graph::{Graph, LinkKind, Needs, Op, OpNumber};
use super::network::{Costs, Network, Placement};

/// What is replayed differently from how it was recorded.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<'c, P> {
    /// The network.
    pub network: &'c Network,
    /// Which rank is where.
    pub placement: &'c Placement,
    /// How long the computation before an operation takes, and the calls that need nobody; given an operation and
    /// its number, in seconds.
    pub pace: P,
}

/// A run as it was replayed.
#[derive(Debug, Clone, Default)]
pub struct Replayed {
    /// When each call is entered; seconds.
    pub entered: Vec<f64>,
    /// When each line ends.
    pub ends: Vec<f64>,
    /// From the earliest begin to the latest end.
    pub elapsed_s: f64,
    /// Calls that went on although what they needed never came: their ranks waited for each other.
    pub released: u64,
}

/// Not known yet.
const UNKNOWN: f64 = f64::NAN;

/// Nobody.
const NO_LINE: u32 = u32::MAX;

/// What a line waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Op(OpNumber),
    Gathering(u32),
}

/// How far a line is.
#[derive(Debug, Clone, Copy)]
struct Progress {
    /// Its next operation; if `inside`, that which it is in.
    op: OpNumber,
    inside: bool,
    now: f64,
    /// Who else waits for the same.
    next_waiter: u32,
}

struct Forward<'f, 'a, P> {
    graph: &'f Graph<'a>,
    conditions: &'f Conditions<'f, P>,
    costs: Costs<'f>,
    entered: Vec<f64>,
    /// Of each collective operation how many senders have not begun, and when the last one did.
    missing: Vec<u32>,
    last: Vec<f64>,
    /// When each member of one in which everybody needs everybody has everything.
    exchanged: Vec<f64>,
    progress: Vec<Progress>,
    /// The lines that wait for a call, by the call; how many wait for one of each line.
    for_ops: FxHashMap<OpNumber, u32>,
    awaited: Vec<u32>,
    /// The lines that wait for a gathering.
    for_gatherings: FxHashMap<u32, u32>,
    runnable: Vec<u32>,
}

/// Replays a run. Times depend on nothing but the graph and the conditions, not on the order of the lines.
pub fn replay<P: Fn(OpNumber, &Op) -> (f64, f64)>(
    graph: &Graph,
    conditions: &Conditions<'_, P>,
) -> Replayed {
    let lines = graph.lines.len();
    let missing = |number: usize| gathered(graph, number as u32).count() as u32;
    let progress = graph.lines.iter().map(|line| Progress {
        op: line.ops.start,
        inside: false,
        now: line.begin_s,
        next_waiter: NO_LINE,
    });
    let mut forward = Forward {
        graph,
        conditions,
        costs: Costs { network: conditions.network, placement: conditions.placement },
        entered: vec![UNKNOWN; graph.ops.len()],
        missing: (0..graph.collectives.len()).map(missing).collect(),
        last: vec![f64::NEG_INFINITY; graph.collectives.len()],
        exchanged: vec![UNKNOWN; graph.members.len()],
        progress: progress.collect(),
        for_ops: FxHashMap::default(),
        awaited: vec![0; lines],
        for_gatherings: FxHashMap::default(),
        runnable: (0..lines as u32).rev().collect(),
    };
    let mut released = 0;
    loop {
        while let Some(line) = forward.runnable.pop() {
            forward.go_on(line, false);
        }
        let Some(line) = forward.first_stuck() else { break };
        released += 1;
        forward.forget_waiter(line);
        forward.go_on(line, true);
    }
    let ends: Vec<f64> = forward.progress.iter().map(|progress| progress.now).collect();
    let begin = graph.lines.iter().map(|line| line.begin_s).fold(f64::INFINITY, f64::min);
    let elapsed_s = ends.iter().copied().fold(begin, f64::max) - begin;
    Replayed { entered: forward.entered, ends, elapsed_s, released }
}

impl<P: Fn(OpNumber, &Op) -> (f64, f64)> Forward<'_, '_, P> {
    /// Lets a line go on until it needs something that is not known; what the call that it is in needs is not
    /// waited for if `anyway`.
    fn go_on(&mut self, line: u32, mut anyway: bool) {
        let end = self.graph.lines[line as usize].ops.end;
        let Progress { mut op, mut inside, mut now, .. } = self.progress[line as usize];
        while op < end {
            if !inside {
                let (own_s, library_s) = (self.conditions.pace)(op, &self.graph.ops[op as usize]);
                now += own_s + library_s;
                self.enter(line, op, now);
            }
            match self.left(op, now, anyway) {
                Ok(left) => now = left,
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

    /// A call begins: others may have waited for that.
    #[inline]
    fn enter(&mut self, line: u32, op: OpNumber, now: f64) {
        self.entered[op as usize] = now;
        if self.awaited[line as usize] > 0
            && let Some(first) = self.for_ops.remove(&op)
        {
            let woken = self.wake(first);
            self.awaited[line as usize] -= woken;
        }
        for link in self.graph.links(op) {
            if matches!(link.kind, LinkKind::Collective | LinkKind::PostCollective) {
                self.take_part(link.of, now);
            }
        }
    }

    fn take_part(&mut self, member: u32, now: f64) {
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
            self.exchanged[first..first + ends.len()].copy_from_slice(&ends);
        }
        if let Some(first) = self.for_gatherings.remove(&member.collective) {
            self.wake(first);
        }
    }

    /// Lines that waited for the same may go on; gives their number.
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
                self.for_ops.insert(op, line)
            }
            Need::Gathering(number) => self.for_gatherings.insert(number, line),
        };
        self.progress[line as usize].next_waiter = first.unwrap_or(NO_LINE);
    }

    /// When a call is left, or what is missing for that.
    #[inline]
    fn left(&self, op: OpNumber, now: f64, anyway: bool) -> Result<f64, Need> {
        let mut left = now;
        let mut need = None;
        if self.graph.links(op).is_empty() {
            return Ok(left);
        }
        branches(self.graph, &self.costs, op, |since, time| {
            let from = match since {
                Since::Begin => now,
                Since::Entered(op) => {
                    let entered = self.entered[op as usize];
                    if entered.is_nan() {
                        need = Some(Need::Op(op));
                    }
                    entered
                }
                Since::Exchanged(member) => {
                    let end = self.exchanged[member as usize];
                    if end.is_nan() {
                        let collective = self.graph.members[member as usize].collective;
                        need = Some(Need::Gathering(collective));
                    }
                    end
                }
                Since::Gathered(number) => {
                    if self.missing[number as usize] > 0 {
                        need = Some(Need::Gathering(number));
                        f64::NAN
                    } else {
                        self.last[number as usize]
                    }
                }
            };
            // What is not known is no number, and is passed over.
            left = left.max(from + time);
        });
        match need.filter(|_| !anyway) {
            Some(need) => Err(need),
            None => Ok(left),
        }
    }

    /// Of the lines that are inside a call for ever the one that entered it first.
    fn first_stuck(&self) -> Option<u32> {
        let stuck = self.progress.iter().enumerate().filter(|(_, progress)| progress.inside);
        let first = stuck.min_by(|(_, a), (_, b)| a.now.total_cmp(&b.now));
        first.map(|(line, _)| line as u32)
    }

    /// A line does not wait any more.
    fn forget_waiter(&mut self, line: u32) {
        let next = std::mem::replace(&mut self.progress[line as usize].next_waiter, NO_LINE);
        for heads in [&mut self.for_ops, &mut self.for_gatherings] {
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
        // Whom it waited for may be counted as awaited for ever: that costs a look, no more.
    }
}
