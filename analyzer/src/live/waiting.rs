//! Who waits for whom in a run that is going on, from the whole trace.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use super::run::LiveRun;
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

/// Who waits for whom, which is too dear to be asked at every look.
#[derive(Debug)]
pub struct WaitingAnalysis {
    known: Option<Waiting>,
    /// The share of the time that it may take.
    share: f64,
    /// When it may be asked again.
    next: Instant,
}

impl WaitingAnalysis {
    /// Takes at most this share of the time.
    pub fn new(share: f64) -> Self {
        Self { known: None, share, next: Instant::now() }
    }

    /// What is known, if a rank has waited for a second, or always.
    pub fn waiting(&mut self, run: &LiveRun, longest_s: f64, always: bool) -> Option<&Waiting> {
        let begin = Instant::now();
        if longest_s < WAIT_S && !always {
            self.known = None;
            return None;
        }
        if begin >= self.next {
            self.known = Waiting::find(&run.directory);
            self.next = Instant::now() + begin.elapsed().div_f64(self.share);
        }
        self.known.as_ref()
    }
}
