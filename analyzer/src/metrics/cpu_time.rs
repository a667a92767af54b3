//! How much of a rank's computation time its threads were on a core, and how much they slept.
//!
//! Time outside MPI counts as computing (γ). A thread that sleeps there, in pthread_join or on a
//! lock, computes nothing, but no call shows that. The kernel's CPU times do: a thread that was on
//! a core for c seconds and outside MPI for u seconds computed for at most min(c, u). CPU time of
//! the process beyond its known threads counts in full. The sum is thus an upper bound. γ less this
//! sum and less the time spent waiting for a core is time asleep, as a lower bound.
//!
//! How long the first thread slept in all is known exactly: the time between the readings less its
//! time on a core and its time waiting for one. How that divides between MPI and the program's own
//! code is not known, because an MPI library may block as well as poll; so the time asleep within γ
//! lies between the lower bound and this whole. The kernel's times are read at start and end, so this
//! works for the whole run only; a reading after every long gap would slow down each call. A rank
//! that died was last read up to a second before its last call ended: what it did since is unknown,
//! and the bounds allow for that. γ itself is left as calls define it, the same for every run and
//! tool.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use trace_format::header::{Phase, ProcessUsage, ThreadUsage, UsageReading};

use crate::timeline::RankTime;
use crate::trace::RankTrace;

/// Share of its computation time that a rank sleeps at least if it is called asleep.
const SLEEPER_SHARE: f64 = 0.9;
/// Share of its computation time that a rank can have slept at most if it is said to compute.
const COMPUTING_SHARE: f64 = 0.5;
/// Computation time below which no rank is called asleep, seconds.
const SLEEPER_MIN_S: f64 = 0.02;

/// A rank's CPU time compared with its computation time, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuTime {
    /// CPU time of all threads between the readings at start and end, or to the last reading of a
    /// rank that died.
    pub on_cpu_s: f64,
    /// Upper bound of the part of γ_i on a core.
    pub compute_on_cpu_s: f64,
    /// Lower bound of the part of γ_i neither on a core nor waiting for one.
    pub asleep_s: f64,
    /// Time that the first thread was neither on a core nor waiting for one, inside MPI or not.
    pub slept_s: f64,
}

/// The times in a document, null if not known.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct CpuTimeKeys {
    /// CPU time of all threads, in the whole run.
    on_cpu_s: Option<f64>,
    /// At most this much of `compute_s` was on a core, in the whole run.
    compute_on_cpu_s: Option<f64>,
    /// At least this much of `compute_s` was neither on a core nor waiting for one, in the whole run.
    asleep_s: Option<f64>,
    /// Time that the first thread was neither on a core nor waiting for one, inside MPI or not, in the whole run.
    slept_s: Option<f64>,
}

/// Writes the times as keys that are always there.
pub(super) fn with_nulls<S: Serializer>(
    of: &Option<CpuTime>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let keys = CpuTimeKeys {
        on_cpu_s: of.map(|of| of.on_cpu_s),
        compute_on_cpu_s: of.map(|of| of.compute_on_cpu_s),
        asleep_s: of.map(|of| of.asleep_s),
        slept_s: of.map(|of| of.slept_s),
    };
    keys.serialize(serializer)
}

/// What a rank did in the time that counts as its computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OwnTime {
    /// As far as the kernel's times tell, it mostly computed; also if there are no such times.
    #[default]
    Computes,
    /// It was asleep or blocked nearly all the time.
    Asleep,
    /// It may have been either.
    Unclear,
}

impl CpuTime {
    /// Derives it from γ_i of the rank and the useful seconds of its threads by number; of a rank
    /// that died, from its last reading. `None` if readings are missing.
    pub(crate) fn of_rank(
        (trace, time): (&RankTrace, &RankTime),
        compute_s: f64,
        useful_s: &BTreeMap<u32, f64>,
    ) -> Option<Self> {
        Self::until_end((trace, time), compute_s, useful_s)
            .or_else(|| Self::until_death((trace, time), compute_s, useful_s))
    }

    fn until_end(
        (trace, time): (&RankTrace, &RankTime),
        compute_s: f64,
        useful_s: &BTreeMap<u32, f64>,
    ) -> Option<Self> {
        let facts = &trace.facts;
        let process = |phase: Phase| facts.process_usages.iter().find(|usage| usage.phase == phase);
        let (begin, end): (&ProcessUsage, _) =
            process(Phase::Init).zip(process(Phase::Finalize))?;
        let on_cpu_ns = end.on_cpu_ns.checked_sub(begin.on_cpu_ns)?;
        let end_ticks = facts.end_ticks?;
        let first = |usage: &ThreadUsage| {
            let mut usages = facts.usages.iter().filter(|other| other.phase == Phase::Init);
            usages.find(|other| other.thread_os_id == usage.thread_os_id)
        };
        // The CPU time of threads that ended earlier is only in the readings of the process.
        let alive = facts
            .usages
            .iter()
            .filter(|usage| usage.phase == Phase::Finalize && usage.ticks >= end_ticks);
        let (mut known_ns, mut waited_ns, mut computing_s) = (0u64, 0u64, 0.0);
        let mut counted = Vec::new();
        for usage in alive {
            let before = first(usage);
            let cpu_ns = usage.on_cpu_ns.saturating_sub(before.map_or(0, |usage| usage.on_cpu_ns));
            let queue_ns = before.map_or(0, |usage| usage.run_queue_ns);
            waited_ns = waited_ns.saturating_add(usage.run_queue_ns.saturating_sub(queue_ns));
            known_ns = known_ns.saturating_add(cpu_ns);
            let cpu_s = cpu_ns as f64 * 1e-9;
            computing_s +=
                useful_s.get(&usage.thread).map_or(cpu_s, |useful_s| cpu_s.min(*useful_s));
            counted.push(usage.thread);
        }
        let ended_ns = end.ended_threads_ns.saturating_sub(begin.ended_threads_ns);
        let ended = useful_s.iter().filter(|(thread, _)| !counted.contains(thread));
        computing_s += (ended_ns as f64 * 1e-9).min(ended.map(|(_, useful_s)| useful_s).sum());
        // Threads that made no call and have ended.
        let others_ns = on_cpu_ns.saturating_sub(known_ns).saturating_sub(ended_ns);
        computing_s += others_ns as f64 * 1e-9;
        let compute_on_cpu_s = computing_s.min(compute_s);
        Some(Self {
            on_cpu_s: on_cpu_ns as f64 * 1e-9,
            compute_on_cpu_s,
            asleep_s: (compute_s - compute_on_cpu_s - waited_ns as f64 * 1e-9).max(0.0),
            slept_s: slept_s(trace, time)?,
        })
    }

    /// Of a rank that died. `None` if several threads called MPI: only the first is read during the
    /// run.
    fn until_death(
        (trace, time): (&RankTrace, &RankTime),
        compute_s: f64,
        useful_s: &BTreeMap<u32, f64>,
    ) -> Option<Self> {
        let facts = &trace.facts;
        let last = facts.last_before_death()?;
        // How long it lived after its last reading.
        let unread_s = time.clock.duration_s(time.end_ticks.saturating_sub(last.ticks));
        let begin = facts.usage_readings.iter().find(|one| one.phase == Phase::Init)?;
        let &first_useful_s = useful_s.get(&0).filter(|_| useful_s.len() == 1)?;
        let used_ns = |of: fn(&UsageReading) -> u64| of(last).checked_sub(of(begin));
        let on_cpu_ns = used_ns(|one| one.on_cpu_ns)?;
        let first_ns = used_ns(|one| one.first_thread_on_cpu_ns)?.min(on_cpu_ns);
        let waited_s = facts.off_cpu_ns(0)? as f64 * 1e-9;
        let others_s = (on_cpu_ns - first_ns) as f64 * 1e-9;
        let read_s = (first_ns as f64 * 1e-9).min(first_useful_s) + others_s;
        let compute_on_cpu_s = (read_s + unread_s).min(compute_s);
        Some(Self {
            on_cpu_s: on_cpu_ns as f64 * 1e-9,
            compute_on_cpu_s,
            asleep_s: (compute_s - compute_on_cpu_s - waited_s).max(0.0),
            slept_s: slept_s(trace, time)?,
        })
    }

    /// What the rank did in γ_i, `compute_s` seconds.
    pub fn own_time(&self, compute_s: f64) -> OwnTime {
        match () {
            () if self.asleep_s >= SLEEPER_SHARE * compute_s.max(SLEEPER_MIN_S) => OwnTime::Asleep,
            () if self.slept_s >= COMPUTING_SHARE * compute_s.max(SLEEPER_MIN_S) => {
                OwnTime::Unclear
            }
            () => OwnTime::Computes,
        }
    }
}

/// Time between its readings, or to the last one of a rank that died, that the first thread was
/// neither on a core nor waiting for one.
fn slept_s(trace: &RankTrace, time: &RankTime) -> Option<f64> {
    let facts = &trace.facts;
    let (start, end) = facts.read_stretch()?;
    let on_cpu_ns = match facts.last_before_death() {
        Some(last) => {
            let first = facts.usage_readings.iter().find(|one| one.phase == Phase::Init)?;
            last.first_thread_on_cpu_ns.saturating_sub(first.first_thread_on_cpu_ns)
        }
        None => {
            let reading = |phase: Phase| {
                let mut usages = facts.usages.iter();
                usages.find(|usage| usage.thread == 0 && usage.phase == phase)
            };
            let (start, end) = reading(Phase::Init).zip(reading(Phase::Finalize))?;
            end.on_cpu_ns.saturating_sub(start.on_cpu_ns)
        }
    };
    let ready_ns = on_cpu_ns.saturating_add(facts.off_cpu_ns(0)?);
    let between_s = time.clock.duration_s(end.checked_sub(start)?);
    Some((between_s - ready_ns as f64 * 1e-9).max(0.0))
}
