//! The shares into which a run is divided, over all processes.

use std::ops::Range;

use crate::processes::{Processes, divide};
use crate::trace::Run;

/// Most events of a round over all ranks, in one process.
const EVENTS_IN_FLIGHT: usize = 1 << 16;
/// The same for each of several processes. An exchange between processes takes far longer than one
/// between threads, so rounds are longer.
const EVENTS_IN_FLIGHT_EACH: usize = 1 << 17;

/// The part of a run that one process matches.
#[derive(Debug, Clone)]
pub struct ProcessShare {
    /// The processes that match the run together.
    pub processes: Processes,
    /// Positions of the ranks whose events this process reads.
    pub ranks: Range<usize>,
    /// How many shares it matches concurrently, at most; at least 1.
    pub max_shares: usize,
}

impl ProcessShare {
    /// The whole run, in one process.
    pub fn whole(run: &Run, max_shares: usize) -> Self {
        Self { processes: Processes::alone(), ranks: 0..run.ranks.len(), max_shares }
    }
}

/// All shares of a run, in the order of their ranks.
#[derive(Debug)]
pub(super) struct Division {
    /// Positions of the ranks of each share; never empty.
    pub all: Vec<Range<usize>>,
    /// Numbers of the shares of each process.
    pub of_processes: Vec<Range<usize>>,
    /// Numbers of the shares of this process.
    pub own: Range<usize>,
}

impl Division {
    /// Divides the ranks of each process into shares with nearly equal numbers of calls.
    pub fn new(run: &Run, here: &ProcessShare) -> Self {
        let parts = here.processes.share((here.ranks.clone(), here.max_shares));
        let (mut all, mut of_processes) = (Vec::new(), Vec::new());
        for (ranks, max_shares) in parts {
            let calls: Vec<u64> = ranks.clone().map(|position| calls(run, position)).collect();
            let first = all.len();
            let shares = divide(&calls, max_shares.clamp(1, ranks.len().max(1))).into_iter();
            all.extend(shares.map(|s| ranks.start + s.start..ranks.start + s.end));
            of_processes.push(first..all.len());
        }
        let own = of_processes[here.processes.number()].clone();
        Self { all, of_processes, own }
    }

    /// The process that has a share.
    pub fn process_of(&self, share: usize) -> usize {
        self.of_processes.partition_point(|shares| shares.end <= share)
    }

    /// Most events of a round over all ranks.
    pub fn events_in_flight(&self) -> usize {
        match self.of_processes.len() {
            1 => EVENTS_IN_FLIGHT,
            several => several * EVENTS_IN_FLIGHT_EACH,
        }
    }

    /// Target for the events of a round: far enough below the maximum that ranks seldom wait for
    /// each other, and few enough that what is in flight stays in the caches.
    pub fn target_events(&self) -> usize {
        self.events_in_flight() / 2
    }
}

/// Calls of the rank at a position.
fn calls(run: &Run, position: usize) -> u64 {
    let threads = run.ranks[position].threads.iter();
    threads.map(|thread| thread.calls).fold(0, u64::saturating_add)
}
