//! A host whose ranks make the others wait.

use std::collections::BTreeMap;

use crate::metrics::{Metrics, RankMetrics};

use super::finding::{Does, Finding, SlowHost};
use super::why::Why;

/// Share of the waiting from which a host is said to cause it, and of a host's part from which one rank is.
const HOST_SHARE: f64 = 0.75;
/// Part of the difference between the means of a host and of the others that must lie between their ranks.
const APART: f64 = 0.5;
/// How many times as long as the others the ranks of a slow host compute at least, on average.
const LONGER: f64 = 1.05;

/// Ticks of waiting that a host's ranks cause.
#[derive(Default)]
struct Caused {
    all: i64,
    /// By rank.
    of_rank: BTreeMap<u32, i64>,
    /// By thread and context.
    at: BTreeMap<(u32, u32), i64>,
}

/// The host whose ranks cause most of the waiting, if all of them compute longer than the others or no single rank of it
/// is to blame.
pub(super) fn slow_host(why: &Why, metrics: &Metrics) -> Option<Finding> {
    let causes = why.causes;
    let mut hosts: BTreeMap<&str, Caused> = BTreeMap::new();
    for rank in &why.run.ranks {
        hosts.entry(rank.file.header.host.as_str()).or_default().of_rank.insert(rank.rank, 0);
    }
    for ((line, context), cost) in &causes.charges.causes {
        let of_line = &causes.lines.all[*line as usize];
        let host = why.run.ranks[of_line.position].file.header.host.as_str();
        let caused = hosts.entry(host).or_default();
        caused.all += cost.total();
        *caused.of_rank.entry(of_line.rank).or_default() += cost.total();
        *caused.at.entry((*line, *context)).or_default() += cost.total();
    }
    if hosts.len() < 2 {
        return None;
    }
    let (host, caused) = hosts.into_iter().max_by_key(|(_, caused)| caused.all)?;
    let share = caused.all as f64 / causes.waiting().max(1) as f64;
    let times = times_as_long(host, metrics);
    let most = caused.of_rank.values().copied().max().unwrap_or(0);
    if share < HOST_SHARE || times.is_none() && most as f64 > HOST_SHARE * caused.all as f64 {
        return None;
    }
    let mut places: BTreeMap<u32, i64> = BTreeMap::new();
    caused.at.iter().for_each(|((_, at), ticks)| *places.entry(*at).or_default() += ticks);
    let place = places.into_iter().max_by_key(|(_, ticks)| *ticks);
    let place = place.filter(|(_, ticks)| 2 * ticks >= caused.all);
    let ((line, at), _) = caused.at.iter().max_by_key(|(_, ticks)| **ticks)?;
    Some(Finding::SlowHost(SlowHost {
        host: host.to_owned(),
        ranks: caused.of_rank.into_keys().collect(),
        times,
        does: Does::of(why, *line, causes.contexts.get(*at)),
        place: place.map(|(at, _)| causes.contexts.get(at).clone()),
        seconds: why.seconds(caused.all),
        share,
    }))
}

/// How many times as long as the others the ranks of a host compute on average, if each of several does so longer than
/// any other, and they differ less among each other than from those.
fn times_as_long(host: &str, metrics: &Metrics) -> Option<f64> {
    let (own, others): (Vec<&RankMetrics>, _) =
        metrics.participants().partition(|rank| rank.host == host);
    if own.len() < 2 || others.is_empty() {
        return None;
    }
    let mean = |ranks: &[&RankMetrics]| {
        ranks.iter().map(|rank| rank.compute_s).sum::<f64>() / ranks.len() as f64
    };
    let (of_own, of_others) = (mean(&own), mean(&others));
    let least = own.iter().map(|rank| rank.compute_s).fold(f64::MAX, f64::min);
    let most = others.iter().map(|rank| rank.compute_s).fold(0.0, f64::max);
    let is_apart = least - most >= APART * (of_own - of_others) && of_own >= LONGER * of_others;
    (is_apart && of_others > 0.0).then(|| of_own / of_others)
}
