//! What the operating system did to the ranks: waiting for cores, shared cores and pinning.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use trace_format::header::{Phase, ThreadUsage, UsageReading};

use crate::timeline::{GlobalTimeline, RankTime};
use crate::trace::{RankTrace, Run};

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
    /// Ranks of one host that may only run on the same single core.
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

/// What occupied the cores that a rank waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Competitor {
    /// Other ranks: there are more ranks than cores, or ranks share a core.
    Ranks,
    /// The ranks' own threads: more of them were ready to run than there are cores.
    Threads(CoreUse),
    /// Other programs: this job cannot have kept the cores busy while the rank waited, or had no
    /// more threads ready to run than there are cores.
    OtherPrograms(CoreUse),
}

/// How much of the cores that a rank may use this job used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CoreUse {
    /// Average number of cores on which processes of the job ran.
    pub used: f64,
    /// Number of cores.
    pub cores: usize,
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
        let cores: BTreeSet<u32> =
            ranks.iter().flat_map(|rank| &rank.file.header.affinity).copied().collect();
        let shared_before = found.len();
        if ranks.iter().all(|rank| !rank.file.header.affinity.is_empty())
            && ranks.len() > cores.len()
        {
            let (ranks, cores) = (ranks.len(), cores.len());
            found.push(Oversubscription::FewCores { host: host.clone(), ranks, cores });
        }
        let mut pinned: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for rank in &ranks {
            if let [core] = rank.file.header.affinity[..] {
                pinned.entry(core).or_default().push(rank.rank);
            }
        }
        for (core, ranks) in pinned.into_iter().filter(|(_, ranks)| ranks.len() > 1) {
            found.push(Oversubscription::OneCore { host: host.clone(), core, ranks });
        }
        let shares_cores = found.len() > shared_before;
        waited.extend(members.iter().filter_map(|index| {
            let (trace, time) = (&run.ranks[*index], &timeline.ranks[*index]);
            let share = waiting_share(trace, time).filter(|share| *share > RUN_QUEUE_LIMIT)?;
            let demand = Demand::of_neighbours(run, timeline, (trace, &members));
            let competitor = demand.competitor(share, shares_cores);
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

/// What this job did on the cores that a rank may use.
struct Demand {
    /// Average number of cores on which its threads ran.
    used: f64,
    /// Average number of its threads that ran or waited for a core.
    ready: f64,
    cores: usize,
}

impl Demand {
    /// Of the ranks of a host, given by their positions, that may run on a core of this rank.
    fn of_neighbours(
        run: &Run,
        timeline: &GlobalTimeline,
        (rank, members): (&RankTrace, &[usize]),
    ) -> Self {
        let cores: BTreeSet<u32> = rank.file.header.affinity.iter().copied().collect();
        let may_share = |index: &&usize| {
            let affinity = &run.ranks[**index].file.header.affinity;
            affinity.iter().any(|core| cores.contains(core))
        };
        let mut demand = Self { used: 0.0, ready: 0.0, cores: cores.len() };
        for index in members.iter().filter(may_share) {
            let (used, ready) = cores_used(&run.ranks[*index], &timeline.ranks[*index]);
            demand.used += used;
            demand.ready += ready;
        }
        // The readings are not of one moment, which shows in runs of milliseconds.
        if demand.cores > 0 {
            demand.used = demand.used.min(demand.cores as f64);
        }
        demand
    }

    /// What a rank waited for that waited for a core for this share of the time. All cores that it
    /// may use were busy then. If this job used less than half of what that takes, other programs
    /// kept the cores busy, no matter how many threads of the job waited behind them.
    fn competitor(&self, share: f64, ranks_share_cores: bool) -> Competitor {
        let core_use = CoreUse { used: self.used, cores: self.cores };
        let busy = share * self.cores as f64;
        match self.used < 0.5 * busy {
            true => Competitor::OtherPrograms(core_use),
            false if ranks_share_cores => Competitor::Ranks,
            false if self.cores > 0 && self.ready > 1.02 * self.cores as f64 => {
                Competitor::Threads(core_use)
            }
            false => Competitor::OtherPrograms(core_use),
        }
    }
}

/// Average number of cores on which the threads of a rank ran, and average number of its threads
/// that ran or waited for a core; 0 if the readings are missing.
fn cores_used(trace: &RankTrace, time: &RankTime) -> (f64, f64) {
    let Some(between_s) = between_readings_s(trace, time) else { return (0.0, 0.0) };
    let (ran_ns, waited_ns) = match trace.facts.last_before_death() {
        Some(last) => until_death_ns(trace, last),
        None => until_end_ns(trace),
    };
    let share = |ns: u128| if between_s > 0.0 { ns as f64 * 1e-9 / between_s } else { 0.0 };
    (share(ran_ns), share(ran_ns + waited_ns))
}

/// Nanoseconds in which the threads of a rank ran and in which they waited for a core, between the
/// readings at start and end. A thread that started after the first reading counts from 0.
fn until_end_ns(trace: &RankTrace) -> (u128, u128) {
    let sum = |phase: Phase, value: fn(&ThreadUsage) -> u64| {
        let usages = trace.facts.usages.iter().filter(move |usage| usage.phase == phase);
        usages.map(|usage| u128::from(value(usage))).sum::<u128>()
    };
    let between = |value: fn(&ThreadUsage) -> u64| {
        sum(Phase::Finalize, value).saturating_sub(sum(Phase::Init, value))
    };
    // The readings of the process include threads that have ended.
    let process = |phase: Phase| trace.facts.process_usages.iter().find(|of| of.phase == phase);
    let of_process = process(Phase::Init).zip(process(Phase::Finalize));
    let of_process = of_process.map(|(start, end)| end.on_cpu_ns.saturating_sub(start.on_cpu_ns));
    let ran_ns = between(|usage| usage.on_cpu_ns).max(of_process.unwrap_or(0).into());
    (ran_ns, between(|usage| usage.run_queue_ns))
}

/// The same up to the last reading of a rank that died; only the first thread's waiting is known.
fn until_death_ns(trace: &RankTrace, last: &UsageReading) -> (u128, u128) {
    let facts = &trace.facts;
    let first = facts.usage_readings.iter().find(|one| one.phase == Phase::Init);
    let ran_ns = first.map_or(0, |first| last.on_cpu_ns.saturating_sub(first.on_cpu_ns));
    (ran_ns.into(), facts.off_cpu_ns(0).unwrap_or(0).into())
}

fn between_readings_s(trace: &RankTrace, time: &RankTime) -> Option<f64> {
    let (start, end) = trace.facts.read_stretch()?;
    Some(time.clock.duration_s(end.checked_sub(start)?))
}
