//! Whether ranks lacked cores, and how much that explains.

use std::collections::{BTreeMap, BTreeSet};

use crate::metrics::{Competitor, Metrics, Oversubscription, Pinning, cores_of};

use super::evidence::Evidence;
use super::finding::{Finding, NOTABLE_SHARE, ThreadsShareCores};

/// Share of the ranks' time off the CPU from which a lack of cores explains more than anything else.
const LACKING_CORES: f64 = 0.25;
/// Share of the ranks' time off the CPU below which only a report's line on trust mentions it.
const NOTABLE_OFF_CPU: f64 = 0.05;
/// Share of the ranks' time off the CPU from which a run's time is not the program's alone.
const MIN_LACK: f64 = 0.02;
/// A run lacks cores more than another if it does so this many times as much.
const MORE_LACK: f64 = 1.5;

/// A lack of cores, if there was one that matters.
pub(super) fn lack_of_cores(of: &Evidence) -> Option<Finding> {
    let shown_by = of.metrics.oversubscription.clone();
    let decisive = is_decisive(of);
    let matters = !shown_by.is_empty() && (decisive || !hardly_matters(of));
    matters.then(|| Finding::LackOfCores {
        decisive,
        share: share_off_cpu(of),
        held_up: share_held_up(of),
        while_computing_s: while_computing_s(&shown_by, of),
        ranks_missing: !of.run.missing.is_empty(),
        shown_by,
    })
}

/// The least and the most for which the rank that waited longest for a core did so in what counts as computing.
fn while_computing_s(shown_by: &[Oversubscription], of: &Evidence) -> Option<(f64, f64)> {
    let (rank, ..) = longest(shown_by)?;
    let rank = of.metrics.participants().find(|one| one.rank == rank)?;
    let waited_s = rank.off_cpu_s.unwrap_or(0.0);
    let at_least_s = (waited_s - rank.lost_s).max(0.0);
    let at_most_s = waited_s.min(rank.compute_s).max(at_least_s);
    let is_notable = at_most_s >= NOTABLE_SHARE * of.metrics.elapsed_s;
    is_notable.then_some((at_least_s, at_most_s))
}

/// The rank that waited longest for a core, for which share of the time, and behind whom.
pub fn longest(shown_by: &[Oversubscription]) -> Option<(u32, f64, &Competitor)> {
    let waited = shown_by.iter().filter_map(|one| match one {
        Oversubscription::Waited { rank, share, competitor } => Some((*rank, *share, competitor)),
        _ => None,
    });
    waited.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Threads of parallel regions that have to share cores, if their ranks spend a notable part of the time in regions:
/// those of a rank whose largest team has more threads than it may use cores, else those of a host. The one that is
/// worst.
pub(super) fn threads_share_cores(of: &Evidence) -> Option<Finding> {
    let openmp = of.metrics.openmp.as_ref()?;
    let span_s: f64 = openmp.regions.iter().filter(|of| of.threads > 1).map(|of| of.span_s).sum();
    let ranks = of.metrics.participants().count() as f64;
    if span_s < NOTABLE_SHARE * ranks * of.metrics.elapsed_s {
        return None;
    }
    let mut hosts: BTreeMap<(&str, &str), ThreadsOfHost> = BTreeMap::new();
    let mut own: Option<ThreadsShareCores> = None;
    for team in &openmp.ranks {
        let position = of.run.position_of(team.rank)?;
        let trace = &of.run.ranks[position];
        let header = &trace.file.header;
        let used = cores_of(trace, &of.timeline.ranks[position]);
        if used.is_empty() {
            return None;
        }
        let (threads, cores) = (u64::from(team.threads), used.len());
        let is_worse =
            |known: &ThreadsShareCores| threads * known.cores as u64 > known.threads * cores as u64;
        if threads > cores as u64 && own.as_ref().is_none_or(is_worse) {
            let (host, ranks) = (header.host.clone(), vec![team.rank]);
            own = Some(ThreadsShareCores { host, ranks, threads, cores });
        }
        let host = hosts.entry((&header.host, &header.boot_id)).or_default();
        host.threads += threads;
        host.ranks.push(team.rank);
        host.cores.extend(used);
    }
    let shared = hosts.into_iter().filter(|(_, of)| of.threads > of.cores.len() as u64);
    let shared = shared.map(|((host, _), of)| ThreadsShareCores {
        host: host.to_owned(),
        ranks: of.ranks,
        threads: of.threads,
        cores: of.cores.len(),
    });
    let worst = |one: &ThreadsShareCores, other: &ThreadsShareCores| {
        (one.threads * other.cores as u64).cmp(&(other.threads * one.cores as u64))
    };
    own.or(shared.max_by(worst)).map(Finding::ThreadsShareCores)
}

/// The threads of parallel regions on a host.
#[derive(Debug, Default)]
struct ThreadsOfHost {
    ranks: Vec<u32>,
    threads: u64,
    cores: BTreeSet<u32>,
}

/// Ranks that may use more cores than others.
pub(super) fn unequal_pinning(of: &Evidence) -> Option<Finding> {
    match &of.metrics.pinning {
        Pinning::Unequal(groups) => Some(Finding::UnequalPinning { groups: groups.clone() }),
        Pinning::Unknown | Pinning::Equal { .. } => None,
    }
}

/// The share of their time for which ranks waited for a core, over the whole run, also where a part of it is selected:
/// for how long they did in that part is not known.
fn share_off_cpu(of: &Evidence) -> Option<f64> {
    let of_run = of_whole_run(of).map(|ranks| ranks.iter().map(|(off_cpu, _)| off_cpu).sum());
    of_run.or_else(|| of.metrics.share_off_cpu())
}

/// For each rank the shares of the whole run in which it waited for a core and for other ranks, if only a part of the
/// run is selected; each divided by the number of ranks.
fn of_whole_run(of: &Evidence) -> Option<Vec<(f64, f64)>> {
    let causes = of.causes.filter(|causes| causes.part.is_some())?;
    let ranks = of.run.ranks.len();
    let all = ranks as f64 * (causes.whole.1 - causes.whole.0).max(1) as f64;
    let of_rank = |position: usize| {
        let off_cpu = causes.off_cpu.of_line[causes.lines.first_of(position) as usize]?;
        Some((off_cpu as f64 / all, causes.rank_waited(position) as f64 / all))
    };
    (0..ranks).map(of_rank).collect()
}

/// The least share of their time for which ranks waited for a core while they did not wait for other ranks: a rank
/// that waits in a loop loses nothing if others have its core. `None` if that is not known.
pub fn share_held_up(of: &Evidence) -> Option<f64> {
    if let Some(ranks) = of_whole_run(of) {
        return Some(ranks.iter().map(|(off_cpu, waited)| (off_cpu - waited).max(0.0)).sum());
    }
    let waiting_s = of.waiting_s();
    let held_up_s: Option<Vec<f64>> = of
        .metrics
        .participants()
        .map(|rank| {
            let waiting_s = waiting_s.as_ref().and_then(|of| of.get(&rank.rank).copied());
            Some((rank.off_cpu_s? - waiting_s.unwrap_or(rank.lost_s)).max(0.0))
        })
        .collect();
    let held_up_s = held_up_s.filter(|held_up| !held_up.is_empty())?;
    let elapsed_s = of.metrics.elapsed_s * held_up_s.len() as f64;
    (elapsed_s > 0.0).then(|| held_up_s.iter().sum::<f64>() / elapsed_s)
}

/// Whether the rank that waited longest for a core waited behind other programs.
pub fn waits_for_other_programs(shown_by: &[Oversubscription]) -> bool {
    longest(shown_by).is_some_and(|(.., behind)| matches!(behind, Competitor::OtherPrograms(_)))
}

/// Whether ranks that were off the CPU for this share of their time make the run's time worthless for comparing it with
/// another run's.
pub fn blurs_time(share: f64) -> bool {
    share >= MIN_LACK
}

/// Whether ranks that were off the CPU for the first share of their time lacked cores more than those of another run,
/// so much that this alone may make the run slower.
pub fn is_more_lack(share: f64, of_other: f64) -> bool {
    blurs_time(share - of_other) && share >= MORE_LACK * of_other
}

/// Whether ranks of the run share cores.
pub fn share_cores(of: &Evidence) -> bool {
    let share = |one: &Oversubscription| !matches!(one, Oversubscription::Waited { .. });
    of.metrics.oversubscription.iter().any(share)
}

/// Whether ranks of a whole run may have lacked cores so much that nothing else matters; why they waited then tells.
pub(super) fn may_lack(metrics: &Metrics) -> bool {
    metrics.share_off_cpu().is_some_and(|share| share >= LACKING_CORES)
}

/// Whether ranks waited for cores for much of the run, because they share them or because other programs took them,
/// so that its other figures say little.
fn is_decisive(of: &Evidence) -> bool {
    let least_held_up = if share_cores(of) { NOTABLE_OFF_CPU } else { LACKING_CORES };
    share_off_cpu(of).is_some_and(|share| share >= LACKING_CORES)
        && share_held_up(of).is_some_and(|share| share >= least_held_up)
}

/// Whether ranks waited for cores so little, or while they waited for other ranks anyway, that it hardly matters.
fn hardly_matters(of: &Evidence) -> bool {
    let share = match share_cores(of) {
        true => share_held_up(of),
        false => share_off_cpu(of),
    };
    share.is_some_and(|share| share < NOTABLE_OFF_CPU)
}
