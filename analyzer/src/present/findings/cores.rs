//! Sentences on cores.

use crate::diagnosis::cores::waits_for_other_programs;
use crate::diagnosis::{Evidence, NOTABLE_SHARE};
use crate::metrics::{Competitor, CoreUse, Oversubscription};
use crate::present::context::{number_list, plural};
use crate::present::quantity::{percent, seconds};

pub(super) fn lack_of_cores(shown_by: &[Oversubscription], of: &Evidence) -> Option<String> {
    let Some(shared) = shared_cores(shown_by.first()?, of) else {
        return waited_for_cores(shown_by, of);
    };
    if waits_for_other_programs(shown_by) {
        let waited = waited_for_cores(shown_by, of)?;
        return Some(format!("{waited} Besides, {shared}."));
    }
    let waiting = match of.metrics.share_off_cpu().filter(|share| *share >= NOTABLE_SHARE) {
        Some(share) => format!("they wait for a core for {} of their time", percent(share)),
        None => "part of the time is waiting for cores".to_owned(),
    };
    Some(format!("Oversubscribed: {shared}, so {waiting}."))
}

/// Which ranks share which cores; `None` for a rank that waited for a core.
fn shared_cores(found: &Oversubscription, of: &Evidence) -> Option<String> {
    // Ranks without a file may be on the host, too.
    let at_least = if of.run.missing.is_empty() { "" } else { "at least " };
    match found {
        Oversubscription::FewCores { host, ranks, cores } => Some(format!(
            "{at_least}{} share {} of {host}",
            plural(*ranks, "rank"),
            plural(*cores, "core")
        )),
        Oversubscription::OneCore { host, core, ranks } => Some(format!(
            "ranks {} share core {core} of {host}",
            number_list(ranks.iter().copied())
        )),
        Oversubscription::Waited { .. } => None,
    }
}

/// How much of its computing time a rank was off the CPU.
fn off_cpu_while_computing(rank: u32, of: &Evidence) -> String {
    let Some(rank) = of.metrics.participants().find(|one| one.rank == rank) else {
        return String::new();
    };
    let waited_s = rank.off_cpu_s.unwrap_or(0.0);
    let at_least_s = (waited_s - rank.lost_s).max(0.0);
    let at_most_s = waited_s.min(rank.compute_s).max(at_least_s);
    if at_most_s < NOTABLE_SHARE * of.metrics.elapsed_s {
        return String::new();
    }
    let (at_least, at_most) = (seconds(at_least_s), seconds(at_most_s));
    let how_long = match at_least_s > 0.0 {
        _ if at_least == at_most => at_most,
        true => format!("{at_least} to {at_most}"),
        false => format!("at most {at_most}"),
    };
    format!(" ({how_long} of it in what counts as computation)")
}

/// A sentence on ranks that waited for cores although there are enough for all.
fn waited_for_cores(found: &[Oversubscription], of: &Evidence) -> Option<String> {
    let waits: Vec<(u32, f64, &Competitor)> = found
        .iter()
        .filter_map(|one| match one {
            Oversubscription::Waited { rank, share, competitor: behind } => {
                Some((*rank, *share, behind))
            }
            _ => None,
        })
        .collect();
    let (rank, share, behind) = waits.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let others = match waits.len() {
        1 => String::new(),
        count => format!(", as did {}", plural(count - 1, "more rank")),
    };
    let share = percent(*share);
    let inside = off_cpu_while_computing(*rank, of);
    let waited = format!("rank {rank} waited for a core for {share} of the run{inside}{others}");
    Some(match behind {
        Competitor::Ranks => format!("Oversubscribed: {waited}."),
        Competitor::Threads(core_use) => format!(
            "Oversubscribed: the ranks' threads used {} on average, and {waited}.",
            used_cores(core_use)
        ),
        Competitor::OtherPrograms(core_use) => {
            let waited = waited.replacen("rank", "Rank", 1);
            let used = match core_use.cores {
                0 => String::new(),
                _ => format!(": this job used {} on average", used_cores(core_use)),
            };
            format!("{waited}, because other programs ran there{used}.")
        }
    })
}

/// `0.09 of 2 cores`.
fn used_cores(CoreUse { used, cores }: &CoreUse) -> String {
    format!("{used:.2} of {}", plural(*cores, "core"))
}

/// `pinned unequally: rank 0 may use 1 core; …`.
pub(in crate::present) fn unequal_pinning(groups: &[(usize, Vec<u32>)]) -> String {
    let group = |(cores, ranks): &(usize, Vec<u32>)| {
        let list = number_list(ranks.iter().copied());
        format!("rank {list} may use {}", plural(*cores, "core"))
    };
    format!("pinned unequally: {}", groups.iter().map(group).collect::<Vec<_>>().join("; "))
}
