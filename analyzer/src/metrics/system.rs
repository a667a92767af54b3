//! What the operating system did to the ranks: waiting for cores, shared cores and pinning.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use trace_format::header::{Phase, ThreadUsage};

use crate::timeline::{GlobalTimeline, RankTime};
use crate::trace::{RankTrace, Run};

use super::competitor::{Competitor, RankDemand, competitor};

/// What the operating system did to a rank's first thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SystemFacts {
    /// Seconds ready to run but waiting for a core, between the readings at start and end, or to the
    /// last reading of a rank that died.
    pub off_cpu_s: Option<f64>,
    /// Involuntary context switches in that time.
    pub involuntary_switches: Option<u64>,
    /// Core on which it was last seen.
    pub core: Option<u32>,
}

impl SystemFacts {
    /// Derives them from the readings.
    pub fn new(trace: &RankTrace) -> Self {
        let reading = |phase: Phase| {
            let mut usages = trace.facts.usages.iter();
            usages.find(|usage| usage.thread == 0 && usage.phase == phase)
        };
        // Of a rank that died only the time without a core is known.
        let (start, end) = (reading(Phase::Init), reading(Phase::Finalize));
        let difference = |value: fn(&ThreadUsage) -> u64| {
            start.zip(end).and_then(|(start, end)| value(end).checked_sub(value(start)))
        };
        Self {
            off_cpu_s: trace.facts.off_cpu_ns(0).map(|ns| ns as f64 * 1e-9),
            involuntary_switches: difference(|usage| usage.involuntary_switches),
            core: end.or(start).map(|usage| usage.core),
        }
    }
}

/// Ranks that shared cores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Oversubscription {
    /// Ranks of one host whose first threads may only run on the same single core.
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
        /// Number of ranks on it.
        ranks: usize,
        /// Number of distinct cores that they may run on.
        cores: usize,
    },
    /// A rank that waited for a core for more than 2 % of the time between the readings at its
    /// start and end.
    Waited {
        /// The rank.
        rank: u32,
        /// Share of that time.
        share: f64,
        /// What occupied the cores.
        competitor: Competitor,
    },
}

/// Cores that ranks may run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pinning {
    /// Not recorded for all ranks.
    Unknown,
    /// Every rank may use the same number of cores.
    Equal {
        cores: usize,
        /// Whether the ranks of some host may use different sets of cores.
        pinned: bool,
    },
    /// The ranks by the number of cores that they may use, ascending.
    Unequal(Vec<(usize, Vec<u32>)>),
}

/// Compares the cores that ranks use.
pub(super) fn pinning(run: &Run, timeline: &GlobalTimeline) -> Pinning {
    let ranks = || run.ranks.iter().zip(&timeline.ranks);
    let sets: Vec<BTreeSet<u32>> =
        ranks().map(|(rank, time)| RankDemand::new(rank, time).cores(rank)).collect();
    let mut sizes: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (rank, cores) in run.ranks.iter().zip(&sets) {
        sizes.entry(cores.len()).or_default().push(rank.rank);
    }
    if sizes.contains_key(&0) || sizes.is_empty() {
        return Pinning::Unknown;
    }
    if sizes.len() > 1 {
        return Pinning::Unequal(sizes.into_iter().collect());
    }
    let mut hosts: BTreeMap<(&str, &str), BTreeSet<&BTreeSet<u32>>> = BTreeMap::new();
    for (rank, cores) in run.ranks.iter().zip(&sets) {
        let header = &rank.file.header;
        hosts.entry((&header.host, &header.boot_id)).or_default().insert(cores);
    }
    Pinning::Equal {
        cores: sizes.into_keys().next().unwrap_or(0),
        pinned: hosts.values().any(|sets| sets.len() > 1),
    }
}

/// Share of the time waiting for a core above which a rank is reported.
const RUN_QUEUE_LIMIT: f64 = 0.02;

/// Finds ranks that shared cores, and ranks that waited for one.
pub(super) fn oversubscription(run: &Run, timeline: &GlobalTimeline) -> Vec<Oversubscription> {
    let mut hosts: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (index, rank) in run.ranks.iter().enumerate() {
        let header = &rank.file.header;
        hosts.entry((&header.host, &header.boot_id)).or_default().push(index);
    }
    let (mut found, mut waited) = (Vec::new(), Vec::new());
    for ((host, _), members) in hosts {
        let ranks: Vec<&RankTrace> = members.iter().map(|index| &run.ranks[*index]).collect();
        let host = host.to_owned();
        let demands: Vec<RankDemand> = members
            .iter()
            .map(|index| RankDemand::new(&run.ranks[*index], &timeline.ranks[*index]))
            .collect();
        let each: Vec<BTreeSet<u32>> =
            ranks.iter().zip(&demands).map(|(rank, of)| of.cores(rank)).collect();
        let cores: BTreeSet<u32> = each.iter().flatten().copied().collect();
        let shared_before = found.len();
        if each.iter().all(|cores| !cores.is_empty()) && ranks.len() > cores.len() {
            let (ranks, cores) = (ranks.len(), cores.len());
            found.push(Oversubscription::FewCores { host: host.clone(), ranks, cores });
        }
        let mut pinned: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (rank, demand) in ranks.iter().zip(&demands) {
            let of_first = demand.first_cores(rank);
            if let (Some(core), 1) = (of_first.first(), of_first.len()) {
                pinned.entry(*core).or_default().push(rank.rank);
            }
        }
        for (core, ranks) in pinned.into_iter().filter(|(_, ranks)| ranks.len() > 1) {
            found.push(Oversubscription::OneCore { host: host.clone(), core, ranks });
        }
        let shares_cores = found.len() > shared_before;
        waited.extend(members.iter().enumerate().filter_map(|(position, index)| {
            let (trace, time) = (&run.ranks[*index], &timeline.ranks[*index]);
            let share = waiting_share(trace, time).filter(|share| *share > RUN_QUEUE_LIMIT)?;
            let competitor = competitor(share, &demands, position, shares_cores);
            Some(Oversubscription::Waited { rank: trace.rank, share, competitor })
        }));
    }
    let rank_of = |one: &Oversubscription| match one {
        Oversubscription::Waited { rank, .. } => *rank,
        _ => 0,
    };
    waited.sort_by_key(rank_of);
    found.extend(waited);
    found
}

/// Share of the time between its readings that a rank's first thread waited for a core. The
/// readings are taken at the rank's start and end, even if recording stopped in between; the last
/// one of a rank that died, some time before.
fn waiting_share(trace: &RankTrace, time: &RankTime) -> Option<f64> {
    let between_s = between_readings_s(trace, time)?;
    let waited_ns = trace.facts.off_cpu_ns(0)?;
    (between_s > 0.0).then(|| waited_ns as f64 * 1e-9 / between_s)
}

fn between_readings_s(trace: &RankTrace, time: &RankTime) -> Option<f64> {
    let (start, end) = trace.facts.read_stretch()?;
    Some(time.clock.duration_s(end.checked_sub(start)?))
}
