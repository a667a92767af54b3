//! How long ranks waited, and what cost most.

use std::collections::BTreeMap;

use crate::causes::{
    CallSite, Context, Line, NO_CONTEXT, PARALLEL_REGION, Phase, Statistics, Unknown, Wait,
};

use super::finding::{Delay, Does, Finding, MAIN_SHARE, NOTABLE_CAUSE, Waiting};
use super::functions::LongerFunctions;
use super::hosts;
use super::one_rank;
use super::why::Why;
use crate::metrics::{Metrics, ParallelRegion, SlowestThread};

/// Share of the ranks' time from which their waiting is worth looking into.
pub(super) const NOTABLE_WAITING: f64 = 0.02;
/// Share of the waiting from which a place is one of those where ranks wait.
const LARGE_PART: f64 = 0.25;
/// Share of the ranks' time in waiting from which slow iterations are worth mentioning, or causes in a job that did not
/// finish.
const WORTHWHILE: f64 = 0.05;
/// Waiting of a late rank, as a share of what each of the others waits on average, from which they delay each other.
const MUTUAL: f64 = 0.5;
/// Share of the waiting from which a cause explains all of it.
const EXPLAINING_SHARE: f64 = 0.9;

/// Whether ranks waited, or may have waited, long enough for the causes to be worth explaining. Why a job did not finish
/// is worth more.
pub(super) fn is_notable(why: &Why, finished: bool) -> bool {
    let found = why.causes;
    let all = found.ranks() as f64 * found.elapsed() as f64;
    // How much of what is uncertain lies in a part of the run is not known.
    let uncertain = if why.is_of_all() { found.uncertain } else { 0 };
    let least = if finished { NOTABLE_WAITING } else { WORTHWHILE };
    (found.ranks_waited() + uncertain) as f64 >= least * all
}

/// How long ranks waited, then what is known of the reasons.
pub(super) fn waiting(why: &Why, metrics: &Metrics) -> Vec<Finding> {
    let mut findings = vec![Finding::Waiting(total(why))];
    // Threads may wait while their ranks compute.
    if why.causes.ranks_waited() > 0 {
        findings.extend(slow_iterations(why));
        match one_rank::serial_io(why).or_else(|| hosts::slow_host(why, metrics)) {
            Some(found) => findings.push(found),
            None => {
                let delay = costliest(why, metrics);
                findings.extend(delay.clone());
                findings.extend(delay.and_then(|delay| one_rank::blocked(why, metrics, &delay)));
            }
        }
        findings.extend(unattributed(why));
    }
    findings
}

/// Waits shorter than the clocks' uncertainty, if there is more time in them than in all others.
pub(super) fn uncertain(why: &Why) -> Option<Finding> {
    is_mostly_uncertain(why)
        .then(|| Finding::UncertainWaits { seconds: why.seconds(why.causes.uncertain) })
}

/// How much the ranks waited, with the most that waits too short to be explained can add.
fn total(why: &Why) -> Waiting {
    let causes = why.causes;
    let ranks = causes.ranks().max(1) as i64;
    let all = (ranks * causes.elapsed()).max(1);
    let waiting = causes.ranks_waited();
    let part = waiting as f64 / all as f64;
    let clock = &causes.clock;
    // Where the waits lie that are only counted is not known.
    let unknown = causes.unknown.iter().filter(|_| why.is_of_all());
    let short = unknown.into_iter().find_map(|unknown| match unknown {
        Unknown::Short { sum_ns, below_ns, .. } => Some((*sum_ns, *below_ns)),
        _ => None,
    });
    let at_most = short.map(|(sum_ns, below_ns)| {
        let most_s = clock.seconds(waiting) + sum_ns as f64 * 1e-9;
        ((most_s / clock.seconds(all)).min(1.0), below_ns as f64 * 1e-9)
    });
    Waiting {
        share: part,
        seconds: clock.seconds(waiting),
        per_rank_s: clock.seconds(waiting / ranks),
        at_least: why.hides_waits().is_some(),
        at_most,
    }
}

/// Whether more time lies in waits shorter than the clocks' uncertainty than in all others, which
/// then say little about who is late. Known of the whole run only, and held against its parts.
fn is_mostly_uncertain(why: &Why) -> bool {
    let certain = why.causes.waits.iter().map(|wait| wait.ticks);
    why.causes.uncertain > certain.sum()
}

/// The costliest delay, or that none costs much.
fn costliest(why: &Why, metrics: &Metrics) -> Option<Finding> {
    let causes = why.causes;
    let waiting = causes.waiting().max(1);
    let costliest = causes.charges.causes.iter().max_by_key(|(_, cost)| cost.total());
    let ((line, context), cost) = costliest?;
    let share = cost.total() as f64 / waiting as f64;
    if share < NOTABLE_CAUSE {
        return None;
    }
    if share < MAIN_SHARE {
        return Some(Finding::NoMainDelay { share });
    }
    let Line { rank, thread, position, .. } = causes.lines.all[*line as usize];
    let place = causes.contexts.get(*context);
    let does = Does::longer_in(why, *line, place);
    // Samples are taken on cores alone.
    let is_on_core = matches!(does, Does::Computes | Does::Unclear | Does::InOtherCode);
    let function = || LongerFunctions::new(*why, metrics).main(*line, *context);
    Some(Finding::Delay(Delay {
        rank,
        thread,
        does,
        place: place.clone(),
        seconds: why.seconds(cost.total()),
        share,
        ranks: causes.ranks(),
        mutual: waits_like_others(why, position),
        function: is_on_core.then(function).flatten(),
        slowest_thread: slowest_thread(metrics, rank, place),
    }))
}

/// The thread of a rank's team that most often works longest in the parallel region at a place.
fn slowest_thread(metrics: &Metrics, rank: u32, place: &Context) -> Option<u32> {
    let Context::InCall(CallSite { function, module, address, .. }, _) = place else { return None };
    let is_there = |region: &&ParallelRegion| {
        function == PARALLEL_REGION
            && (&region.begins_at.module, region.begins_at.address) == (module, *address)
    };
    let region = metrics.openmp.as_ref()?.regions.iter().find(is_there)?;
    let mostly = |of: &SlowestThread| 2 * of.count * region.ranks as u64 >= region.count;
    region.slowest.filter(|of| of.rank == rank && mostly(of)).map(|of| of.thread)
}

/// Whether a rank waits about as long as the others do, so that they delay it as it delays them.
fn waits_like_others(why: &Why, position: usize) -> bool {
    let times = &why.causes.rank_times;
    let own = times[position].waiting;
    let others = times.iter().map(|time| time.waiting).sum::<i64>() - own;
    own as f64 * (times.len() - 1) as f64 >= MUTUAL * others as f64
}

impl Does {
    /// What a thread does longer in a place where it delays others.
    pub(super) fn longer_in(why: &Why, line: u32, place: &Context) -> Self {
        match place.is_computing() {
            true if matches!(place, Context::InCall(site, _) if site.is_on_files()) => {
                Self::OnFiles
            }
            true if !why.causes.counts_as_computing(place) => Self::InOtherCode,
            true => why.own_times().on_line(why.causes, line).into(),
            false => Self::InLibrary,
        }
    }
}

fn unattributed(why: &Why) -> Option<Finding> {
    let (waiting, nobodys) = (why.causes.waiting().max(1), why.causes.charges.unattributed);
    let share = nobodys as f64 / waiting as f64;
    (share >= NOTABLE_CAUSE).then_some(Finding::Unattributed { share })
}

/// Whether a single cause explains the waiting, so that following it back tells nothing new.
pub(super) fn has_delaying_rank(why: &Why) -> bool {
    let costs = why.causes.charges.causes.values().map(|cost| cost.total());
    let most = costs.max().unwrap_or(0);
    why.hides_waits().is_none()
        && !is_mostly_uncertain(why)
        && most as f64 >= EXPLAINING_SHARE * why.causes.waiting().max(1) as f64
}

/// The call sites, at most two, with the larger part of all waiting, the longest first.
pub(super) fn longest_wait_places(why: &Why) -> Vec<CallSite> {
    let causes = why.causes;
    let mut ticks_at: BTreeMap<u32, i64> = BTreeMap::new();
    for group in causes.groups.iter().filter(|group| group.context != NO_CONTEXT) {
        *ticks_at.entry(group.context).or_default() += group.ticks;
    }
    let all: i64 = ticks_at.values().sum();
    let mut longest: Vec<(u32, i64)> = ticks_at.into_iter().collect();
    longest.sort_by_key(|(number, ticks)| (std::cmp::Reverse(*ticks), *number));
    let large =
        longest.iter().take(2).filter(|(_, ticks)| *ticks as f64 >= LARGE_PART * all as f64);
    let site = |(number, _): &(u32, i64)| match causes.contexts.get(*number) {
        Context::Transfer(site) => Some(site.clone()),
        _ => None,
    };
    large.filter_map(site).collect()
}

/// The path of the library with a large part of all waiting in its calls, if it is not known where the program
/// called it.
pub(super) fn library_without_caller(why: &Why) -> Option<String> {
    let mut ticks_in: BTreeMap<&str, i64> = BTreeMap::new();
    let placed = || why.causes.groups.iter().filter(|group| group.context != NO_CONTEXT);
    for group in placed() {
        if let Context::Transfer(site) = why.causes.contexts.get(group.context)
            && site.is_in_library
            && site.caller.is_none()
        {
            *ticks_in.entry(&site.module).or_default() += group.ticks;
        }
    }
    let all: i64 = placed().map(|group| group.ticks).sum();
    let (library, most) = ticks_in.into_iter().max_by_key(|(_, ticks)| *ticks)?;
    (most > 0 && most as f64 >= LARGE_PART * all as f64).then(|| library.to_owned())
}

/// Whether a large part of all waiting is in MPI_Barrier, called again and again.
pub(super) fn waits_at_repeated_barrier(why: &Why) -> bool {
    let placed = || why.causes.groups.iter().filter(|group| group.context != NO_CONTEXT);
    let all: i64 = placed().map(|group| group.ticks).sum();
    let is_barrier = |context: u32| match why.causes.contexts.get(context) {
        Context::Transfer(site) => site.function == "MPI_Barrier",
        _ => false,
    };
    let barriers = placed().filter(|group| is_barrier(group.context));
    let (ticks, count) =
        barriers.fold((0, 0), |(ticks, count), group| (ticks + group.ticks, count + group.count));
    ticks as f64 >= LARGE_PART * all as f64 && count > why.run.ranks.len() as u64
}

/// Few slow iterations of the longest phase, if more than half of all waiting lies in them.
fn slow_iterations(why: &Why) -> Option<Finding> {
    let phase = why.causes.phases.first().filter(|_| why.is_of_all())?;
    let Statistics { median, slow, .. } = phase.statistics();
    let ranks = why.run.ranks.len() as i64;
    let all = ranks as f64 * why.causes.elapsed() as f64;
    if (why.causes.ranks_waited() as f64) < WORTHWHILE * all {
        return None;
    }
    let are_few = slow.len() * 10 <= phase.iterations.len();
    let slowest = slow.iter().copied().max_by_key(|at| phase.iterations[*at].ticks)?;
    let decisive = are_few && waiting_inside(why, phase, &slow) * 2 >= why.causes.waiting();
    decisive.then(|| Finding::SlowIterations {
        slow: slow.len(),
        of: phase.iterations.len(),
        slowest,
        slowest_s: why.seconds(phase.iterations[slowest].ticks),
        median_s: why.seconds(median),
    })
}

/// Ticks of waiting inside some iterations, by the bounds of all ranks together: the wait of a rank
/// for the last one to begin the next iteration is part of this one.
fn waiting_inside(why: &Why, phase: &Phase, iterations: &[usize]) -> i64 {
    let mut chosen = vec![false; phase.iterations.len()];
    iterations.iter().for_each(|at| chosen[*at] = true);
    let inside = |wait: &Wait| {
        let first = phase.bounds.partition_point(|bound| *bound <= wait.begin).saturating_sub(1);
        let of_wait = (first..chosen.len()).take_while(|at| phase.bounds[*at] < wait.until);
        let overlap = |at: usize| {
            let (from, to) = (phase.bounds[at], phase.bounds[at + 1]);
            (wait.until.min(to) - wait.begin.max(from)).max(0)
        };
        // A run of polls waits for a part of its time only.
        let length = (wait.until - wait.begin).max(1);
        let overlapping: i64 = of_wait.filter(|at| chosen[*at]).map(overlap).sum();
        (overlapping as f64 * wait.ticks as f64 / length as f64) as i64
    };
    why.causes.waits.iter().map(inside).sum()
}
