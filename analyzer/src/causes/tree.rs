//! The efficiency tree: factors whose product is the parallel efficiency (POP's multiplicative
//! model).
//!
//! U is a rank's time outside MPI, T the elapsed time, T₀ the elapsed time on an ideal network.

use std::collections::BTreeMap;

use serde::Serialize;

/// The factors, between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tree {
    /// mean U / T: load balance × communication.
    pub parallel: f64,
    /// mean U / max U: between × within hosts; `None` if no rank computes.
    pub load_balance: Option<f64>,
    /// mean U / largest mean U of a host.
    pub between_hosts: Option<f64>,
    /// Largest mean U of a host / max U.
    pub within_hosts: Option<f64>,
    /// max U / T: serialisation × transfer.
    pub communication: f64,
    /// A factor of serialisation: what is lost because the busiest rank changes from iteration to
    /// iteration; `None` if no iterations are known.
    pub moving_imbalance: Option<f64>,
    /// max U / T₀; `None` if T₀ is not known.
    pub serialisation: Option<f64>,
    /// T₀ / T.
    pub transfer: Option<f64>,
}

/// By how much T₀ / T may lie outside its possible range: the error of the replay.
const MAX_DEVIATION: f64 = 0.03;

impl Tree {
    /// The tree of ranks, each given by its host's name and its U in ticks; `elapsed` is T. `None`
    /// if there are no ranks or T is 0. `ideal` is T₀/T, if a replay computed it.
    pub fn new(ranks: &[(&str, i64)], elapsed: i64, ideal: Option<f64>) -> Option<Self> {
        let largest = ranks.iter().map(|(_, ticks)| *ticks).max()? as f64;
        if elapsed <= 0 {
            return None;
        }
        let mean_of = |ticks: &[i64]| ticks.iter().sum::<i64>() as f64 / ticks.len() as f64;
        let mut hosts: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for (host, ticks) in ranks {
            hosts.entry(host).or_default().push(*ticks);
        }
        let mean = mean_of(&ranks.iter().map(|(_, ticks)| *ticks).collect::<Vec<_>>());
        let host = hosts.values().map(|ticks| mean_of(ticks)).fold(0.0, f64::max);
        let communication = largest / elapsed as f64;
        let possible = communication - MAX_DEVIATION..=1.0 + MAX_DEVIATION;
        let ideal = ideal.filter(|ideal| possible.contains(ideal) && largest > 0.0);
        let transfer = ideal.map(|ideal| ideal.clamp(communication, 1.0));
        let known = |factor: f64| (largest > 0.0).then_some(factor);
        Some(Self {
            parallel: mean / elapsed as f64,
            load_balance: known(mean / largest),
            between_hosts: known(mean / host),
            within_hosts: known(host / largest),
            communication,
            moving_imbalance: None,
            serialisation: transfer.map(|transfer| communication / transfer),
            transfer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_multiply_to_the_parallel_efficiency() {
        let tree =
            Tree::new(&[("a", 80), ("a", 40), ("b", 20), ("b", 20)], 100, Some(0.9)).unwrap();
        assert_eq!((tree.parallel, tree.communication), (0.4, 0.8));
        assert_eq!(tree.load_balance, Some(0.5));
        let (between, within) = (tree.between_hosts.unwrap(), tree.within_hosts.unwrap());
        assert!((between - 40.0 / 60.0).abs() < 1e-12 && (within - 0.75).abs() < 1e-12);
        assert!((between * within - 0.5).abs() < 1e-12);
        assert_eq!(tree.transfer, Some(0.9));
        assert!((tree.serialisation.unwrap() - 0.8 / 0.9).abs() < 1e-12);
    }

    #[test]
    fn unknown_factors_are_none() {
        assert_eq!(Tree::new(&[], 100, None), None);
        assert_eq!(Tree::new(&[("a", 1)], 0, None), None);
        assert_eq!(Tree::new(&[("a", 0)], 10, None).unwrap().load_balance, None);
        let tree = |ideal| Tree::new(&[("a", 8)], 10, ideal).unwrap();
        assert_eq!((tree(None).transfer, tree(None).serialisation), (None, None));
        // A replay shorter than the largest computing time or longer than the run is wrong, unless
        // the difference is noise.
        assert_eq!((tree(Some(0.7)).transfer, tree(Some(1.1)).transfer), (None, None));
        assert_eq!((tree(Some(0.79)).transfer, tree(Some(1.01)).transfer), (Some(0.8), Some(1.0)));
    }
}
