//! Sentences on cores.

use crate::diagnosis::finding::ThreadsShareCores;
use crate::diagnosis::{NOTABLE_SHARE, cores};
use crate::metrics::{Competitor, CoreUse, Oversubscription};
use crate::present::context::{number_list, plural};
use crate::present::quantity::{percent, seconds};

/// What is known of ranks that lacked cores.
pub(super) struct Lack<'a> {
    pub shown_by: &'a [Oversubscription],
    pub share: Option<f64>,
    pub while_computing_s: Option<(f64, f64)>,
    pub ranks_missing: bool,
}

pub(super) fn lack_of_cores(of: &Lack) -> Option<String> {
    let Some(shared) = shared_cores(of.shown_by.first()?, of) else {
        return waited_for_cores(of);
    };
    let waiting = match of.share.filter(|share| *share >= NOTABLE_SHARE) {
        Some(share) => format!("they wait for a core for {} of their time", percent(share)),
        None => "part of the time is spent waiting for cores".to_owned(),
    };
    // What the user can change stands first, whoever took more of the cores.
    Some(match behind_others_alone(of.shown_by) {
        None => format!("Oversubscribed: {shared}, so {waiting}."),
        Some(core_use) => format!(
            "Oversubscribed: {shared}; {waiting}, mostly behind other programs: this job used {} on average.",
            used_cores(core_use)
        ),
    })
}

/// What the job used of the cores, if every rank that waited for one did so behind other programs.
fn behind_others_alone(shown_by: &[Oversubscription]) -> Option<&CoreUse> {
    let waited = |one: &&Oversubscription| matches!(one, Oversubscription::Waited { .. });
    let others = shown_by.iter().filter(waited).map(|one| match one {
        Oversubscription::Waited { competitor: Competitor::OtherPrograms(used), .. } => Some(used),
        _ => None,
    });
    others.collect::<Option<Vec<_>>>()?.first().copied()
}

/// Threads of parallel regions that share cores.
pub(super) fn threads_share_cores(found: &ThreadsShareCores) -> String {
    let ThreadsShareCores { host, ranks, threads, cores } = found;
    let of = match ranks[..] {
        [rank] => format!("rank {rank}"),
        _ => format!("{} on {host}", plural(ranks.len(), "rank")),
    };
    format!(
        "The parallel regions of {of} have {} but only {}: they share them, and waits inside regions may be for cores.",
        plural(*threads as usize, "thread"),
        plural(*cores, "core")
    )
}

/// Which ranks share which cores; `None` for a rank that waited for a core.
fn shared_cores(found: &Oversubscription, of: &Lack) -> Option<String> {
    // Ranks without a file may be on the host, too.
    let at_least = if of.ranks_missing { "at least " } else { "" };
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
fn off_cpu_while_computing(of: &Lack) -> String {
    let Some((at_least_s, at_most_s)) = of.while_computing_s else { return String::new() };
    let (at_least, at_most) = (seconds(at_least_s), seconds(at_most_s));
    let how_long = match at_least_s > 0.0 {
        _ if at_least == at_most => at_most,
        true => format!("{at_least} to {at_most}"),
        false => format!("at most {at_most}"),
    };
    format!(" {} of that counted as computation.", how_long.replacen("at most", "At most", 1))
}

/// A sentence on ranks that waited for cores although there are enough for all.
fn waited_for_cores(of: &Lack) -> Option<String> {
    let (rank, share, behind) = cores::longest(of.shown_by)?;
    let waited = |one: &&Oversubscription| matches!(one, Oversubscription::Waited { .. });
    let others = match of.shown_by.iter().filter(waited).count() {
        1 => String::new(),
        count => format!(", as did {}", plural(count - 1, "other rank")),
    };
    let share = percent(share);
    let inside = off_cpu_while_computing(of);
    let waited = format!("rank {rank} waited for a core for {share} of the run{others}");
    let sentence = match behind {
        Competitor::Ranks => format!("Oversubscribed: {waited}."),
        Competitor::Threads(core_use) if core_use.threads > core_use.cores => format!(
            "Oversubscribed: {} of this job share {}, of which they used {:.2} on average, and {waited}.",
            plural(core_use.threads, "thread"),
            plural(core_use.cores, "core"),
            core_use.used
        ),
        Competitor::Threads(core_use) => format!(
            "Oversubscribed: the ranks' threads used {} on average, and {waited}.",
            used_cores(core_use)
        ),
        Competitor::Unknown(core_use) => {
            let waited = waited.replacen("rank", "Rank", 1);
            let used = match core_use.cores {
                0 => String::new(),
                _ => format!(" (this job used {} on average)", used_cores(core_use)),
            };
            return Some(format!("{waited}.{inside} What used the cores then is not known{used}."));
        }
        Competitor::OtherPrograms(core_use) => {
            let waited = waited.replacen("rank", "Rank", 1);
            let used = match core_use.cores {
                0 => String::new(),
                _ => format!(": this job used {} on average", used_cores(core_use)),
            };
            format!("{waited}, because other programs used the cores{used}.")
        }
    };
    Some(sentence + &inside)
}

/// `0.09 of 2 cores`.
fn used_cores(CoreUse { used, cores, .. }: &CoreUse) -> String {
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
