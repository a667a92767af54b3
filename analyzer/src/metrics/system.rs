//! What the operating system did to the ranks: affinities and thread usage come in, waiting for
//! cores and shared cores go out.

use std::collections::{BTreeMap, BTreeSet};

use trace_format::header::{Phase, ThreadUsage};

use crate::timeline::GlobalTimeline;
use crate::trace::{RankTrace, Run};

/// What the operating system did to a rank's first thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SystemFacts {
    /// Seconds ready to run but waiting for a core, between start and end of recording.
    pub off_cpu_s: Option<f64>,
    /// Context switches forced on it in that time.
    pub involuntary_switches: Option<u64>,
    /// Core that it was last seen on.
    pub core: Option<u32>,
}

impl SystemFacts {
    /// From the readings at start and end.
    pub fn new(trace: &RankTrace) -> Self {
        let reading = |phase: Phase| {
            let mut usages = trace.facts.usages.iter();
            usages.find(|usage| usage.thread == 0 && usage.phase == phase)
        };
        let (start, end) = (reading(Phase::Init), reading(Phase::Finalize));
        let difference = |value: fn(&ThreadUsage) -> u64| {
            start.zip(end).and_then(|(start, end)| value(end).checked_sub(value(start)))
        };
        Self {
            off_cpu_s: difference(|usage| usage.run_queue_ns).map(|ns| ns as f64 * 1e-9),
            involuntary_switches: difference(|usage| usage.involuntary_switches),
            core: end.or(start).map(|usage| usage.core),
        }
    }
}

/// Ranks that shared cores.
#[derive(Debug, Clone, PartialEq)]
pub enum Oversubscription {
    /// Ranks of one host that may run on one and the same core only.
    OneCore {
        /// The host.
        host: String,
        /// The core.
        core: u32,
        /// The ranks.
        ranks: Vec<u32>,
    },
    /// More ranks on a host than cores that they may run on.
    FewCores {
        /// The host.
        host: String,
        /// Ranks on it.
        ranks: usize,
        /// Distinct cores that they may run on.
        cores: usize,
    },
    /// A rank that waited for a core for more than 2 % of its elapsed time.
    Waited {
        /// The rank.
        rank: u32,
        /// Share of its elapsed time.
        share: f64,
    },
}

/// Cores that ranks may run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pinning {
    /// Not recorded for all ranks.
    Unknown,
    /// Every rank may use equally many.
    Equal {
        /// How many.
        cores: usize,
        /// Whether they are fewer than the ranks of some host may use together, or others.
        pinned: bool,
    },
    /// Numbers of cores, ascending, and the ranks that may use so many.
    Unequal(Vec<(usize, Vec<u32>)>),
}

/// Compares the ranks' affinities.
pub(super) fn pinning(run: &Run) -> Pinning {
    let mut sizes: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for rank in &run.ranks {
        sizes.entry(rank.file.header.affinity.len()).or_default().push(rank.rank);
    }
    if sizes.contains_key(&0) || sizes.is_empty() {
        return Pinning::Unknown;
    }
    if sizes.len() > 1 {
        return Pinning::Unequal(sizes.into_iter().collect());
    }
    let mut hosts: BTreeMap<(&str, &str), BTreeSet<&[u32]>> = BTreeMap::new();
    for rank in &run.ranks {
        let header = &rank.file.header;
        hosts.entry((&header.host, &header.boot_id)).or_default().insert(&header.affinity);
    }
    Pinning::Equal {
        cores: sizes.into_keys().next().unwrap_or(0),
        pinned: hosts.values().any(|sets| sets.len() > 1),
    }
}

/// Share of elapsed time waiting for a core from which on a rank is flagged.
const RUN_QUEUE_LIMIT: f64 = 0.02;

/// Finds ranks that shared cores.
pub(super) fn oversubscription(run: &Run, timeline: &GlobalTimeline) -> Vec<Oversubscription> {
    let mut hosts: BTreeMap<(&str, &str), Vec<&RankTrace>> = BTreeMap::new();
    for rank in &run.ranks {
        let header = &rank.file.header;
        hosts.entry((&header.host, &header.boot_id)).or_default().push(rank);
    }
    let mut found = Vec::new();
    for ((host, _), ranks) in hosts {
        let host = host.to_owned();
        let cores: BTreeSet<u32> =
            ranks.iter().flat_map(|rank| &rank.file.header.affinity).copied().collect();
        if ranks.iter().all(|rank| !rank.file.header.affinity.is_empty())
            && ranks.len() > cores.len()
        {
            let (ranks, cores) = (ranks.len(), cores.len());
            found.push(Oversubscription::FewCores { host: host.clone(), ranks, cores });
        }
        let mut pinned: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for rank in ranks {
            if let [core] = rank.file.header.affinity[..] {
                pinned.entry(core).or_default().push(rank.rank);
            }
        }
        for (core, ranks) in pinned.into_iter().filter(|(_, ranks)| ranks.len() > 1) {
            found.push(Oversubscription::OneCore { host: host.clone(), core, ranks });
        }
    }
    for (trace, time) in run.ranks.iter().zip(&timeline.ranks) {
        let elapsed_s = time.end_s() - time.begin_s();
        let share = SystemFacts::new(trace).off_cpu_s.map(|off_cpu_s| off_cpu_s / elapsed_s);
        if let Some(share) = share.filter(|share| share.is_finite() && *share > RUN_QUEUE_LIMIT) {
            found.push(Oversubscription::Waited { rank: trace.rank, share });
        }
    }
    found
}
