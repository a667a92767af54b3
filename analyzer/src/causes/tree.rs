//! The efficiency tree: factors whose product is the parallel efficiency (CAUSES, section 4; POP's
//! multiplicative model).

use std::collections::BTreeMap;

/// Factors between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tree {
    /// mean U / T: load balance × communication.
    pub parallel: f64,
    /// mean U / max U: between × within hosts; `None` where no rank computes.
    pub load_balance: Option<f64>,
    /// mean U / largest mean U of a host.
    pub between_hosts: Option<f64>,
    /// Largest mean U of a host / max U.
    pub within_hosts: Option<f64>,
    /// max U / T: serialisation × transfer.
    pub communication: f64,
    /// Of serialisation: what is lost because it is not always the same rank that computes longest in an iteration;
    /// `None` where no iterations are known.
    pub moving_imbalance: Option<f64>,
    /// max U / T₀; `None` where T₀, the run's time on an ideal network, is not known.
    pub serialisation: Option<f64>,
    /// T₀ / T.
    pub transfer: Option<f64>,
}

/// By how much T₀ may lie outside what is possible, of T: the replay's own error.
const MOST_OUTSIDE: f64 = 0.03;

impl Tree {
    /// Of a host's name and U_i for each rank, in ticks, over T; `None` without ranks or length. `ideal` is T₀/T,
    /// where a replay told it.
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
        let possible = communication - MOST_OUTSIDE..=1.0 + MOST_OUTSIDE;
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
    fn what_is_not_known_is_none() {
        assert_eq!(Tree::new(&[], 100, None), None);
        assert_eq!(Tree::new(&[("a", 1)], 0, None), None);
        assert_eq!(Tree::new(&[("a", 0)], 10, None).unwrap().load_balance, None);
        let tree = |ideal| Tree::new(&[("a", 8)], 10, ideal).unwrap();
        assert_eq!((tree(None).transfer, tree(None).serialisation), (None, None));
        // A replay that takes less than the rank computes, or more than the run, is wrong; by little it is noise.
        assert_eq!((tree(Some(0.7)).transfer, tree(Some(1.1)).transfer), (None, None));
        assert_eq!((tree(Some(0.79)).transfer, tree(Some(1.01)).transfer), (Some(0.8), Some(1.0)));
    }
}
