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

/// The host whose ranks cause most of the waiting, if all of them compute longer than the others or no single rank of it
/// is to blame.
pub(super) fn slow_host(why: &Why, metrics: &Metrics) -> Option<Finding> {
    let causes = why.causes;
    let host_of = |line: u32| {
        let position = causes.lines.all[line as usize].position;
        why.run.ranks[position].file.header.host.as_str()
    };
    // Ticks of waiting that each host causes, and each rank and place of the one that causes most.
    let mut hosts: BTreeMap<&str, i64> = BTreeMap::new();
    for ((line, _), cost) in &causes.charges.causes {
        *hosts.entry(host_of(*line)).or_default() += cost.total();
    }
    let (host, caused) = hosts.into_iter().max_by_key(|(_, caused)| *caused)?;
    let (mut ranks, mut places) = (BTreeMap::<u32, i64>::new(), BTreeMap::<u32, i64>::new());
    let of_host = causes.charges.causes.iter().filter(|((line, _), _)| host_of(*line) == host);
    for ((line, place), cost) in of_host.clone() {
        *ranks.entry(causes.lines.all[*line as usize].rank).or_default() += cost.total();
        *places.entry(*place).or_default() += cost.total();
    }
    let share = caused as f64 / causes.waiting().max(1) as f64;
    let times = times_as_long(host, metrics);
    let by_one = *ranks.values().max()? as f64 > HOST_SHARE * caused as f64;
    let is_only = why.run.ranks.iter().all(|rank| rank.file.header.host == host);
    if is_only || share < HOST_SHARE || by_one && times.is_none() {
        return None;
    }
    let place = places.into_iter().max_by_key(|(_, ticks)| *ticks);
    let place = place.filter(|(_, ticks)| 2 * ticks >= caused);
    let ((line, at), _) = of_host.max_by_key(|(_, cost)| cost.total())?;
    let all = why.run.ranks.iter().filter(|rank| rank.file.header.host == host);
    Some(Finding::SlowHost(SlowHost {
        host: host.to_owned(),
        ranks: all.map(|rank| rank.rank).collect(),
        times,
        does: Does::longer_in(why, *line, causes.contexts.get(*at)),
        place: place.map(|(at, _)| causes.contexts.get(at).clone()),
        seconds: why.seconds(caused),
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
