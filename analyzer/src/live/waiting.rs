//! Who waits for whom in a run that is going on, from the whole trace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::ClockId;

use super::counter::time_by;
use crate::metrics::{Awaited, Metrics, Selection, Unfinished, UnfinishedRank, WaitsFor};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// Who waits for whom at a moment.
#[derive(Debug, Default)]
pub struct Waiting {
    /// For ranks inside a call: its function, and the ranks that it waits for.
    pub for_ranks: BTreeMap<u32, (String, Vec<u32>)>,
    /// Ranks that wait for each other in a cycle that nothing can end.
    pub deadlocks: Vec<Cycle>,
    /// The rank that most others wait for in the end.
    pub cause: Option<u32>,
}

/// Ranks that wait for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    pub ranks: Vec<u32>,
    /// The one that is named: the rank whose message is missing while it is in a collective operation already, else the
    /// lowest.
    pub named: u32,
}

impl Cycle {
    fn new(ranks: &[u32], unfinished: &Unfinished) -> Self {
        // Ranks that need messages of others in the cycle, and these.
        let senders = ranks.iter().flat_map(|rank| {
            let waits = unfinished.rank(*rank).and_then(UnfinishedRank::position);
            let needs = waits.and_then(|position| match &position.waits_for {
                Some(WaitsFor::Needs { needs, .. }) => Some(needs),
                _ => None,
            });
            let needs = needs.into_iter().flatten().filter_map(|need| match need.awaited {
                Awaited::Rank(sender) => Some((*rank, sender)),
                _ => None,
            });
            needs.filter(|(_, sender)| ranks.contains(sender))
        });
        let senders: Vec<(u32, u32)> = senders.collect();
        let is_waiting = |rank: &u32| senders.iter().any(|(waiting, _)| waiting == rank);
        let mut missing = senders.iter().map(|(_, sender)| sender).filter(|of| !is_waiting(of));
        let lowest = ranks.iter().min().copied().unwrap_or_default();
        Self { ranks: ranks.to_vec(), named: missing.next().copied().unwrap_or(lowest) }
    }
}

impl Waiting {
    /// Reads a run. Costs some 100 ns for each call that it has made; `None` if it cannot be read.
    pub fn find(directory: &Path) -> Option<Self> {
        let run = Run::open(directory).ok()?;
        let timeline = GlobalTimeline::new(&run);
        let metrics = Metrics::new(&run, &timeline, &Selection::Whole).ok()?;
        let unfinished = metrics.unfinished?;
        let waits = |rank: &UnfinishedRank| {
            let position = rank.position()?;
            let function = position.inside()?.function.clone();
            Some((rank.rank, (function, awaited(&unfinished, position.waits_for.as_ref()?))))
        };
        let certain = unfinished.deadlocks.iter().filter(|deadlock| deadlock.certain);
        Some(Self {
            for_ranks: unfinished.ranks.iter().filter_map(waits).collect(),
            deadlocks: certain.map(|of| Cycle::new(&of.ranks, &unfinished)).collect(),
            cause: unfinished.causes.first().map(|cause| cause.rank),
        })
    }
}

/// The ranks that a call waits for, ascending.
fn awaited(unfinished: &Unfinished, waits_for: &WaitsFor) -> Vec<u32> {
    let WaitsFor::Needs { needs, .. } = waits_for else { return Vec::new() };
    let ranks = needs.iter().flat_map(|need| match need.awaited {
        Awaited::Rank(rank) => vec![rank],
        Awaited::Missing(number) => unfinished.collectives[number].missing.0.clone(),
        Awaited::AnyOf(_) => Vec::new(),
    });
    let mut ranks: Vec<u32> = ranks.collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// It is looked for if a rank has been inside a call for so many seconds.
const WAIT_S: f64 = 1.0;
/// As much as the first thread of a process usually has: traces may be deep.
const STACK_BYTES: usize = 8 << 20;

/// Who waits for whom, which is too dear to be asked at every look, and takes as long as the trace is.
#[derive(Debug)]
pub struct WaitingAnalysis {
    known: Option<Waiting>,
    /// The share of a core that it may take.
    share: f64,
    /// When it may be asked again.
    next: Instant,
    asked: Option<Question>,
}

/// What a thread finds out.
#[derive(Debug)]
struct Question {
    answer: Receiver<(Option<Waiting>, Duration)>,
    asked: Instant,
    /// Whether a rank has waited ever since.
    counts: bool,
}

impl WaitingAnalysis {
    /// Takes at most this share of a core.
    pub fn new(share: f64) -> Self {
        Self { known: None, share, next: Instant::now(), asked: None }
    }

    /// What is known, if a rank has waited for a second. It is found out by a thread, so that nobody waits for it.
    pub fn waiting(&mut self, run: &Path, longest_s: f64) -> Option<&Waiting> {
        self.take_answer();
        if longest_s < WAIT_S {
            self.known = None;
            self.asked.iter_mut().for_each(|question| question.counts = false);
            return None;
        }
        if self.asked.is_none() && Instant::now() >= self.next {
            self.asked = ask(run.to_owned());
        }
        self.known.as_ref()
    }

    fn take_answer(&mut self) {
        let Some(Question { answer, asked, counts }) = &self.asked else { return };
        let (found, cost) = match answer.try_recv() {
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => (None, asked.elapsed()),
            Ok(answer) => answer,
        };
        if *counts {
            self.known = found;
        }
        self.next = Instant::now() + cost.div_f64(self.share);
        self.asked = None;
    }
}

/// Finds out who waits for whom in a thread, and what that cost. `None`: there can be no thread.
fn ask(run: PathBuf) -> Option<Question> {
    let (answers, answer) = channel();
    let find = move || {
        // Several threads find it out.
        let begin = time_by(ClockId::ProcessCPUTime);
        let found = Waiting::find(&run);
        let cost = time_by(ClockId::ProcessCPUTime).saturating_sub(begin);
        // Whoever asked may have ended.
        let _ = answers.send((found, cost));
    };
    let thread = thread::Builder::new().name("waiting".into()).stack_size(STACK_BYTES).spawn(find);
    thread.ok().map(|_| Question { answer, asked: Instant::now(), counts: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic_trace::{RunDirectory, SyntheticRank};

    /// A share so small that nobody asks twice.
    const NEVER_AGAIN: f64 = 1e-9;

    fn run_in_a_receive() -> RunDirectory {
        let rank = |number| {
            let mut rank = SyntheticRank::complete(number, 2, 1000, 2000);
            rank.killed().open_call(0, "MPI_Recv", 1500);
            rank
        };
        RunDirectory::with_ranks(&[rank(0), rank(1)])
    }

    #[test]
    fn answer_comes_beside_the_looks_and_counts_while_a_rank_waits() {
        let run = run_in_a_receive();
        let mut analysis = WaitingAnalysis::new(NEVER_AGAIN);
        assert!(analysis.waiting(run.path(), 0.5).is_none() && analysis.asked.is_none());
        while analysis.waiting(run.path(), 2.0).is_none() {
            assert!(analysis.asked.is_some());
            thread::yield_now();
        }
        assert!(analysis.waiting(run.path(), 0.5).is_none(), "they went on");
        assert!(analysis.waiting(run.path(), 2.0).is_none() && analysis.asked.is_none());
    }

    #[test]
    fn answer_is_forgotten_if_the_ranks_went_on_meanwhile() {
        let run = run_in_a_receive();
        let mut analysis = WaitingAnalysis::new(NEVER_AGAIN);
        for longest_s in [2.0, 0.5, 2.0] {
            analysis.waiting(run.path(), longest_s);
        }
        while analysis.asked.is_some() {
            thread::yield_now();
            analysis.take_answer();
        }
        assert!(analysis.known.is_none());
    }
}
