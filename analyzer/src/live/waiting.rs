//! Who waits for whom in a run that is going on, from the whole trace.

use std::collections::BTreeMap;
use std::path::Path;

use crate::metrics::{Awaited, Metrics, Selection, Unfinished, UnfinishedRank, WaitsFor};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// Who waits for whom at a moment.
#[derive(Debug, Default)]
pub struct Waiting {
    /// For ranks inside a call: its function, and the ranks that it waits for.
    pub for_ranks: BTreeMap<u32, (String, Vec<u32>)>,
    /// Ranks that wait for each other in a cycle that nothing can end.
    pub deadlocks: Vec<Vec<u32>>,
    /// The rank that most others wait for in the end.
    pub cause: Option<u32>,
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
            deadlocks: certain.map(|deadlock| deadlock.ranks.clone()).collect(),
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
