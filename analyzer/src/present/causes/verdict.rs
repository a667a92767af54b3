//! Writes a few sentences on how much ranks waited, and what cost most.

use std::collections::BTreeMap;

use crate::causes::{Context, Group, NO_CONTEXT, Phase, Statistics, Unknown, Wait};
use crate::present::context::plural;
use crate::present::quantity::{percent, seconds};

use super::Why;
use super::hosts;
use super::places;
use super::words::{self, seconds_of, share};

/// Share of the waiting below which a cause is not mentioned.
const NOTABLE_SHARE: f64 = 0.05;
/// Share of the waiting from which a place is one of those where ranks wait.
const LARGE_PART: f64 = 0.25;
/// Share of the ranks' time in waiting from which slow iterations are worth a sentence.
const WORTHWHILE: f64 = 0.05;
/// Share of the waiting from which a rank is said to make the others wait.
const MAIN_SHARE: f64 = 0.25;

/// Share of the waiting from which a cause explains all of it.
const EXPLAINING_SHARE: f64 = 0.9;

/// Whether a single cause explains the waiting, so that [`sentences`] says it all.
pub(crate) fn is_explained(why: &Why) -> bool {
    let costs = why.causes.charges.causes.values().map(|cost| cost.total());
    let most = costs.max().unwrap_or(0);
    hidden_waiting(why).is_none()
        && !is_mostly_uncertain(why)
        && most as f64 >= EXPLAINING_SHARE * why.causes.waiting().max(1) as f64
}

/// Whether more time lies in waits shorter than the clocks' uncertainty than in all others, which
/// then say little about who is late. Known of the whole run only.
fn is_mostly_uncertain(why: &Why) -> bool {
    why.is_of_all() && why.causes.uncertain > why.causes.waiting()
}

fn uncertain(why: &Why) -> String {
    format!(
        "Who delays whom cannot be said: another {} is in waits shorter than the clocks' uncertainty.",
        seconds_of(why, why.causes.uncertain)
    )
}

/// Sentences on total waiting as a share of p·τ, and on the costliest cause.
pub(crate) fn sentences(why: &Why) -> Vec<String> {
    let causes = why.causes;
    let ranks = causes.rank_times.len().max(1) as i64;
    let waiting = causes.waiting();
    if waiting == 0 {
        let nobody = "No rank is known to have waited for another.".to_owned();
        let uncertain = is_mostly_uncertain(why).then(|| uncertain(why));
        return [nobody].into_iter().chain(uncertain).collect();
    }
    let mut sentences = vec![total(why, ranks)];
    if let Some(sentence) = hidden_waiting(why) {
        sentences.insert(0, sentence.to_owned());
        return sentences;
    }
    if is_mostly_uncertain(why) {
        sentences.push(uncertain(why));
        return sentences;
    }
    sentences.extend(slow_iterations(why));
    sentences.extend(hosts::slow_host(why));
    let costliest = causes.charges.causes.iter().max_by_key(|(_, cost)| cost.total());
    if let Some(((line, context), cost)) = costliest
        && cost.total() as f64 >= NOTABLE_SHARE * waiting as f64
    {
        let found = causes.contexts.get(*context);
        let whose = words::line(causes, *line);
        let verb = match found.is_computing() {
            true => words::own_verb(why.own_times().of(causes, *line)),
            false => "spends",
        };
        let what = format!("{verb} longer {}", words::where_phrase(found));
        let part = share(cost.total(), waiting);
        let is_main = cost.total() as f64 >= MAIN_SHARE * waiting as f64;
        sentences.push(match is_main {
            true => format!(
                "{} makes {} wait: it {what}. That causes {part} of the waiting.",
                whose.replacen("rank", "Rank", 1),
                if ranks == 2 { "the other" } else { "the others" },
            ),
            false => format!("No single delay causes more than {part} of the waiting."),
        });
    }
    let unattributed = causes.charges.unattributed;
    if unattributed as f64 >= NOTABLE_SHARE * waiting as f64 {
        sentences
            .push(format!("{} of the waiting has no known cause.", share(unattributed, waiting)));
    }
    sentences
}

/// The call site with most of the transfer, and its share of all of it.
pub(crate) fn largest_transfer(why: &Why) -> Option<(String, f64)> {
    let causes = why.causes;
    let mut ticks_at: BTreeMap<u32, i64> = BTreeMap::new();
    for (number, ticks) in causes.profiles.of_lines.iter().flat_map(|profile| profile.all()) {
        if matches!(causes.contexts.get(*number), Context::Transfer(_)) {
            *ticks_at.entry(*number).or_default() += ticks;
        }
    }
    let all: i64 = ticks_at.values().sum();
    let (number, most) = ticks_at.into_iter().max_by_key(|(_, ticks)| *ticks)?;
    let Context::Transfer(site) = causes.contexts.get(number) else { return None };
    (most > 0).then(|| (places::call_site(site), most as f64 / all as f64))
}

/// The call sites, at most two, with the larger part of all waiting, the longest first.
pub(crate) fn longest_wait_places(why: &Why) -> Vec<String> {
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
        Context::Transfer(site) => Some(places::call_site(site)),
        _ => None,
    };
    large.filter_map(site).collect()
}

/// The library with a large part of all waiting in its calls, if it is not known where the program called it.
pub(crate) fn library_without_caller(why: &Why) -> Option<String> {
    let mut ticks_in: BTreeMap<&str, i64> = BTreeMap::new();
    let placed = || why.causes.groups.iter().filter(|group| group.context != NO_CONTEXT);
    for group in placed() {
        if let Context::Transfer(site) = why.causes.contexts.get(group.context)
            && site.is_in_library
            && site.caller.is_none()
        {
            *ticks_in.entry(places::library_name(&site.module)).or_default() += group.ticks;
        }
    }
    let all: i64 = placed().map(|group| group.ticks).sum();
    let (library, most) = ticks_in.into_iter().max_by_key(|(_, ticks)| *ticks)?;
    (most > 0 && most as f64 >= LARGE_PART * all as f64).then(|| library.to_owned())
}

/// Whether a large part of all waiting is in MPI_Barrier, called again and again.
pub(crate) fn waits_at_repeated_barrier(why: &Why) -> bool {
    let placed = || why.causes.groups.iter().filter(|group| group.context != NO_CONTEXT);
    let all: i64 = placed().map(|group| group.ticks).sum();
    let is_barrier = |group: &&Group| match why.causes.contexts.get(group.context) {
        Context::Transfer(site) => site.function == "MPI_Barrier",
        _ => false,
    };
    let barriers = placed().filter(is_barrier);
    let (ticks, count) =
        barriers.fold((0, 0), |(ticks, count), group| (ticks + group.ticks, count + group.count));
    ticks as f64 >= LARGE_PART * all as f64 && count > why.run.ranks.len() as u64
}

/// Why the waiting inside most calls is not known. What is known then lies before and after the ranks' calls
/// alone, and says nothing about who makes the others wait.
fn hidden_waiting(why: &Why) -> Option<&'static str> {
    let causes = why.causes;
    if causes.unknown.contains(&Unknown::NoAttributes) {
        return Some(
            "Who waited for whom inside calls is not known, because the run was recorded at level 0.",
        );
    }
    let (mut in_totals, mut in_calls) = (0, 0);
    for (number, ticks) in causes.profiles.of_lines.iter().flat_map(|profile| profile.all()) {
        match causes.contexts.get(*number) {
            Context::Totals => in_totals += ticks,
            Context::Transfer(_) | Context::Waiting | Context::WaitingForUnknown => {
                in_calls += ticks
            }
            _ => {}
        }
    }
    (in_totals > in_calls).then_some(
        "Who waited for whom inside most calls is not known, because they are kept only as totals.",
    )
}

/// How much the ranks waited, with the most that waits too short to be explained can add.
fn total(why: &Why, ranks: i64) -> String {
    let all = ranks * why.elapsed();
    let waiting = why.ranks_waited();
    let of_time = format!("{} of their time", share(waiting, all));
    let each = format!("{} each on average", seconds_of(why, waiting / ranks));
    let short = why.causes.unknown.iter().find_map(|unknown| match unknown {
        Unknown::Short { sum_ns, below_ns, .. } => Some((*sum_ns, *below_ns)),
        _ => None,
    });
    let Some((sum_ns, below_ns)) = short else {
        let at_least = if hidden_waiting(why).is_some() { "at least " } else { "" };
        return format!("The ranks wait for {at_least}{of_time}, {each}.");
    };
    let clock = &why.causes.clock;
    let most = (clock.seconds(waiting) + sum_ns as f64 * 1e-9) / clock.seconds(all);
    format!(
        "The ranks wait for at least {of_time}, {each}, and for at most {}: waits of less than {} are too many to \
         be explained.",
        percent(most.min(1.0)),
        seconds(below_ns as f64 * 1e-9)
    )
}

/// The slowest iteration, if more than half of all waiting lies in few slow ones of the longest phase.
pub(crate) fn decisive_iteration(why: &Why) -> Option<usize> {
    let phase = why.causes.phases.first()?;
    let slow = phase.statistics().slow;
    let ranks = why.run.ranks.len() as i64;
    let all = ranks as f64 * why.elapsed() as f64;
    if (why.causes.ranks_waited() as f64) < WORTHWHILE * all {
        return None;
    }
    let are_few = slow.len() * 10 <= phase.iterations.len();
    let slowest = slow.iter().copied().max_by_key(|at| phase.iterations[*at].ticks)?;
    if !are_few {
        return None;
    }
    (waiting_inside(why, phase, &slow) * 2 >= why.causes.waiting()).then_some(slowest)
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
    let waits = (0u32..).zip(&why.causes.waits);
    let selected = waits.filter(|(number, _)| why.causes.is_selected(*number));
    selected.map(|(_, wait)| inside(wait)).sum()
}

fn slow_iterations(why: &Why) -> Option<String> {
    let slowest = decisive_iteration(why)?;
    let phase = why.causes.phases.first()?;
    let Statistics { median, slow, .. } = phase.statistics();
    Some(format!(
        "Most of that is due to {} of {}: #{slowest} takes {}, the median {}.",
        plural(slow.len(), "slow iteration"),
        phase.iterations.len(),
        seconds_of(why, phase.iterations[slowest].ticks),
        seconds_of(why, median)
    ))
}

#[cfg(test)]
mod tests {
    use trace_format::header::Definition;

    use crate::present::causes::of_ranks;
    use crate::synthetic_messages::on_world;
    use crate::synthetic_trace::SyntheticRank;

    use super::*;

    const BEGIN: u64 = 1_000_000;
    const TURNS: u64 = 40;

    /// The sentences on ranks that compute and meet again and again; `work` is by rank and turn.
    fn sentences_on(ranks: &[SyntheticRank], work: impl Fn(usize, u64) -> u64) -> String {
        let mut ranks = ranks.to_vec();
        let mut met = BEGIN;
        for turn in 0..TURNS {
            let entered: Vec<u64> = (0..ranks.len()).map(|rank| met + work(rank, turn)).collect();
            met = entered.iter().max().unwrap() + 10;
            for (rank, entered) in ranks.iter_mut().zip(entered) {
                rank.call_with("MPI_Allreduce", entered, met, on_world(0, 8, 8));
            }
        }
        for rank in &mut ranks {
            rank.definitions.retain(|of| !matches!(of, Definition::RankEnd { .. }));
            rank.definitions.push(Definition::RankEnd { ticks: met });
            rank.finalize(met, met + 10);
        }
        of_ranks(&ranks, |why| sentences(why).join(" "))
    }

    fn world(count: u32) -> Vec<SyntheticRank> {
        (0..count).map(|rank| SyntheticRank::level_1(rank, count, 4_000_000)).collect()
    }

    #[test]
    fn slow_iterations_are_blamed_only_for_waiting_that_they_contain() {
        let usual = |rank: usize| if rank == 1 { 9_000 } else { 5_000 };
        // All ranks take longer in one iteration: nobody waits longer there.
        let all_slow = |rank: usize, turn: u64| usual(rank) + if turn == 19 { 900_000 } else { 0 };
        let text = sentences_on(&world(2), all_slow);
        assert!(!text.contains("slow iteration") && text.contains("Rank 1 "), "{text}");
        let one_slow = |rank: usize, turn: u64| {
            usual(rank) + if (rank, turn) == (1, 19) { 900_000 } else { 0 }
        };
        let text = sentences_on(&world(2), one_slow);
        assert!(text.contains("due to 1 slow iteration of"), "{text}");
    }

    #[test]
    fn no_rank_is_blamed_where_most_waits_are_below_the_clocks_uncertainty() {
        let mut ranks = world(3);
        (ranks[1].header.host, ranks[1].header.boot_id) = ("n1".into(), "boot-n1".into());
        for definition in &mut ranks[1].definitions {
            if let Definition::ClockExchange(exchange) = definition {
                (exchange.same_host, exchange.bound_ticks) = (false, 20_000);
            }
        }
        // Rank 0 reads the clock of rank 2 and waits a little; rank 1 on another host waits longer.
        let work = |rank: usize, _| [9_900, 5_000, 10_000][rank];
        let text = sentences_on(&ranks, work);
        assert!(text.contains("shorter than the clocks' uncertainty"), "{text}");
        assert!(!text.contains("That causes") && !text.contains("makes"), "{text}");
        // On one host the same is certain.
        let text = sentences_on(&world(3), work);
        assert!(text.contains("Rank 2 makes the others wait"), "{text}");
    }
}
