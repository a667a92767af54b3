//! Behind whom a rank waited for a core: other ranks, its own threads or other programs.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use trace_format::header::{Phase, ThreadUsage};

use crate::timeline::RankTime;
use crate::trace::RankTrace;

/// Share of the time that a thread has to run or to wait for a core to count as one that uses cores.
const ACTIVE: f64 = 0.01;
/// A rank that waits for a core does so behind other programs if this job's other threads cannot have kept even
/// this share of its cores busy meanwhile.
const OWN_PART: f64 = 0.25;
/// More threads that are ready to run than cores, times: readings are not of one moment.
const MORE_READY: f64 = 1.02;

/// What occupied the cores that a rank waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Competitor {
    /// Other ranks: there are more ranks than cores, or ranks share a core.
    Ranks,
    /// The job's own threads: more of those that may only run on the rank's cores were ready to run
    /// than there are of these.
    Threads(CoreUse),
    /// Other programs: the job's other threads cannot have kept the cores busy while the rank waited,
    /// or there are no more of them than cores.
    OtherPrograms(CoreUse),
    /// Not known: the job's threads may have, or other programs.
    Unknown(CoreUse),
}

/// How much of the cores that a rank's first thread may use this job used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CoreUse {
    /// Average number of cores on which processes of the job ran.
    pub used: f64,
    /// Number of cores.
    pub cores: usize,
    /// Number of threads of the job that ran there or waited for them for at least 1 % of the time;
    /// 0: not known.
    #[serde(default)]
    pub threads: usize,
}

/// A thread, or all threads of a rank that have ended before they were read.
struct ThreadDemand {
    /// Average number of cores on which it ran.
    used: f64,
    /// The same, and for which it waited.
    ready: f64,
    cores: BTreeSet<u32>,
    /// Whether it may use all of these cores, and is not bound to some of them.
    is_exact: bool,
    is_one: bool,
}

/// What a rank's threads did between its readings, the first thread first; empty without readings.
pub(super) struct RankDemand(Vec<ThreadDemand>);

impl RankDemand {
    pub fn new(trace: &RankTrace, time: &RankTime) -> Self {
        let facts = &trace.facts;
        let between_s = facts.read_stretch().and_then(|(start, end)| {
            Some(time.clock.duration_s(end.checked_sub(start)?))
                .filter(|between_s| *between_s > 0.0)
        });
        let Some(between_s) = between_s else { return Self(Vec::new()) };
        let at_start: BTreeSet<u32> = trace.file.header.affinity.iter().copied().collect();
        let share = |ns: u64| ns as f64 * 1e-9 / between_s;
        let thread = |os_id: Option<u32>, on_cpu_ns: u64, run_queue_ns: u64| {
            let known = os_id.and_then(|id| facts.cores_of(id));
            ThreadDemand {
                used: share(on_cpu_ns),
                ready: share(on_cpu_ns.saturating_add(run_queue_ns)),
                is_exact: known.is_some() || at_start.len() == 1,
                cores: known.map_or_else(|| at_start.clone(), |of| of.iter().copied().collect()),
                is_one: os_id.is_some(),
            }
        };
        let first = |phase: Phase| {
            let mut usages = facts.usages.iter();
            usages.find(|usage| usage.thread == 0 && usage.phase == phase)
        };
        let (mut threads, process_ns) = match (facts.last_before_death(), first(Phase::Init)) {
            // Of a rank that died the first thread and the process are known.
            (Some(last), start) => {
                let begin = facts.usage_readings.iter().find(|one| one.phase == Phase::Init);
                let begin_ns = begin.map_or(last.on_cpu_ns, |begin| begin.on_cpu_ns);
                let ran = start
                    .map_or(0, |start| last.first_thread_on_cpu_ns.saturating_sub(start.on_cpu_ns));
                let first = thread(
                    start.map(|start| start.thread_os_id),
                    ran,
                    facts.off_cpu_ns(0).unwrap_or(0),
                );
                (vec![first], last.on_cpu_ns.saturating_sub(begin_ns))
            }
            (None, _) => {
                let mut ended: Vec<&ThreadUsage> =
                    facts.usages.iter().filter(|usage| usage.phase == Phase::Finalize).collect();
                ended.sort_by_key(|usage| usage.thread);
                let of_thread = |end: &ThreadUsage| {
                    let mut usages = facts.usages.iter();
                    // A thread that started after the first reading counts from 0.
                    let start = usages
                        .find(|of| of.phase == Phase::Init && of.thread_os_id == end.thread_os_id);
                    let since = |value: fn(&ThreadUsage) -> u64| {
                        value(end).saturating_sub(start.map_or(0, value))
                    };
                    let (ran, waited) = (since(|of| of.on_cpu_ns), since(|of| of.run_queue_ns));
                    thread(Some(end.thread_os_id), ran, waited)
                };
                let process = |phase: Phase| {
                    facts.process_usages.iter().find(|of| of.phase == phase).map(|of| of.on_cpu_ns)
                };
                let of_process = process(Phase::Init).zip(process(Phase::Finalize));
                let process_ns = of_process.map_or(0, |(start, end)| end.saturating_sub(start));
                (ended.into_iter().map(of_thread).collect(), process_ns)
            }
        };
        // The readings of the process include threads that have ended.
        let known: f64 = threads.iter().map(|thread: &ThreadDemand| thread.used).sum();
        let others = share(process_ns) - known;
        if others > 0.0 {
            let rest = thread(None, 0, 0);
            threads.push(ThreadDemand { used: others, ready: others, ..rest });
        }
        Self(threads)
    }

    /// The cores that it uses: those on which its first thread may run, or another one that does not
    /// sleep all the time.
    pub fn cores(&self, trace: &RankTrace) -> BTreeSet<u32> {
        let uses = self.0.iter().enumerate();
        let uses = uses.filter(|(number, of)| *number == 0 || of.is_one && of.ready > ACTIVE);
        let cores: BTreeSet<u32> = uses.flat_map(|(_, of)| &of.cores).copied().collect();
        match cores.is_empty() {
            true => trace.file.header.affinity.iter().copied().collect(),
            false => cores,
        }
    }

    /// The cores on which its first thread may run.
    pub fn first_cores(&self, trace: &RankTrace) -> BTreeSet<u32> {
        match self.0.first() {
            Some(first) => first.cores.clone(),
            None => trace.file.header.affinity.iter().copied().collect(),
        }
    }
}

/// The cores that a rank uses: those on which its first thread may run, or another one that does not sleep all the
/// time.
pub fn cores_of(trace: &RankTrace, time: &RankTime) -> BTreeSet<u32> {
    RankDemand::new(trace, time).cores(trace)
}

/// What the first thread of a rank waited for, which waited for a core for this share of the time. All cores that it
/// may use were busy then. `neighbours` are all ranks of the host, this one is at `position`.
pub(super) fn competitor(
    share: f64,
    neighbours: &[RankDemand],
    position: usize,
    ranks_share_cores: bool,
) -> Competitor {
    let Some(first) = neighbours[position].0.first() else {
        return Competitor::Unknown(CoreUse { used: 0.0, cores: 0, threads: 0 });
    };
    let cores = &first.cores;
    let may_share = |of: &&ThreadDemand| !of.cores.is_disjoint(cores);
    let threads: Vec<&ThreadDemand> =
        neighbours.iter().flat_map(|rank| &rank.0).filter(may_share).collect();
    let used: f64 = threads.iter().map(|of| of.used).sum();
    let active = threads.iter().filter(|of| of.ready > ACTIVE);
    let is_counted = active.clone().all(|of| of.is_one);
    let count = active.count();
    let core_use = CoreUse {
        used: if cores.is_empty() { used } else { used.min(cores.len() as f64) },
        cores: cores.len(),
        threads: if is_counted { count } else { 0 },
    };
    // A thread that may be bound to some of its cores waits for one at least.
    let busy = share * if first.is_exact { cores.len() as f64 } else { 1.0 };
    let only_here = threads.iter().filter(|of| of.cores.is_subset(cores));
    let ready: f64 = only_here.map(|of| of.ready).sum();
    let are_few = is_counted && count <= cores.len();
    // In runs of milliseconds a thread may seem to run and wait for more than all the time.
    if first.ready > MORE_READY {
        Competitor::Unknown(core_use)
    } else if used - first.used < OWN_PART * busy || first.is_exact && are_few {
        Competitor::OtherPrograms(core_use)
    } else if ranks_share_cores {
        Competitor::Ranks
    } else if !are_few && !cores.is_empty() && ready > MORE_READY * cores.len() as f64 {
        Competitor::Threads(core_use)
    } else {
        Competitor::Unknown(core_use)
    }
}
