//! What all ranks do at other rank counts: calls and bytes, place by place, continued by laws of p. Times
//! do not matter, so runs whose ranks shared cores count as well.

use super::basis::TERMS;
use super::labels::{PlaceCounts, RunLabels, ranks_per_host};
use super::laws::{Law, Series, Tolerance};

/// What some runs say of the calls at other rank counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    /// The runs' rank counts, ascending.
    pub rank_counts: Vec<u32>,
    pub checked: Checked,
    /// Places that the largest run has, most calls first.
    pub places: Vec<Place>,
}

/// How the laws that the other runs give fare in the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    /// Its rank count.
    pub p: u32,
    /// Laws of calls and bytes that the others give and that are certain there, and how many of them it meets.
    pub laws: usize,
    pub met: usize,
}

/// A place of the program.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub name: String,
    pub calls: Quantity,
    /// `None` where no bytes are named.
    pub bytes: Option<Quantity>,
}

/// Calls or bytes at a place.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantity {
    /// As a formula of p that every run meets; `None` if there is none.
    pub law: Option<String>,
    /// At the rank counts that were asked for; `None` without a law, and where others that are as simple say
    /// otherwise.
    pub at: Vec<Option<f64>>,
}

/// Rank counts that are needed, so that laws of the others can be held to the largest.
const LEAST_RANK_COUNTS: usize = 4;

/// A quantity of all ranks at each rank count.
#[derive(Clone, Copy)]
struct Observed<'o> {
    p: &'o [f64],
    values: &'o [f64],
    per_host: f64,
    tolerance: Tolerance,
}

impl Counts {
    /// From runs at different rank counts, at the rank counts that are asked for; of several runs at one rank
    /// count the first counts. `None` if there are too few.
    pub fn of(runs: &[RunLabels], asked: &[u32]) -> Option<Self> {
        let mut runs: Vec<&RunLabels> = runs.iter().collect();
        runs.sort_by_key(|run| run.p);
        runs.dedup_by_key(|run| run.p);
        let largest = runs.last().filter(|_| runs.len() >= LEAST_RANK_COUNTS)?;
        let p: Vec<f64> = runs.iter().map(|run| f64::from(run.p)).collect();
        let per_host = ranks_per_host(&runs);
        let mut checked = Checked { p: largest.p, laws: 0, met: 0 };
        let mut places: Vec<(f64, Place)> = Vec::new();
        for PlaceCounts { name, calls, .. } in &largest.places {
            let mut quantity = |of: fn(&PlaceCounts) -> f64, tolerance| {
                let values: Vec<f64> = runs.iter().map(|run| run.at_place(name, of)).collect();
                Observed { p: &p, values: &values, per_host, tolerance }
                    .continued(asked, &mut checked)
            };
            let of_calls = quantity(|place| place.calls, Tolerance::Count);
            let moves = runs.iter().any(|run| run.at_place(name, |place| place.bytes) > 0.0);
            let bytes = moves.then(|| quantity(|place| place.bytes, Tolerance::Bytes));
            places.push((*calls, Place { name: name.clone(), calls: of_calls, bytes }));
        }
        places.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.name.cmp(&b.1.name)));
        let places = places.into_iter().map(|(_, place)| place).collect();
        Some(Self { rank_counts: runs.iter().map(|run| run.p).collect(), checked, places })
    }
}

impl RunLabels {
    /// A quantity of a place; 0 if the run has no such place.
    fn at_place(&self, name: &str, of: fn(&PlaceCounts) -> f64) -> f64 {
        self.places.iter().find(|place| place.name == name).map_or(0.0, of)
    }
}

impl Observed<'_> {
    fn continued(self, asked: &[u32], checked: &mut Checked) -> Quantity {
        let last = self.p.len() - 1;
        let before = Self { p: &self.p[..last], values: &self.values[..last], ..self };
        if let Some(value) = before.law().and_then(|law| certain(&law, self.p[last])) {
            checked.laws += 1;
            checked.met += usize::from(self.tolerance.allows(value, self.values[last]));
        }
        let law = self.law();
        let at = |p: &u32| law.as_ref().and_then(|law| certain(law, f64::from(*p)));
        let at = asked.iter().map(at).collect();
        Quantity { law: law.map(|law| law.text()), at }
    }

    fn law(self) -> Option<Law> {
        let Self { p, values, per_host, tolerance } = self;
        Law::of_all_ranks(Series { p, values, per_host, terms: &TERMS }, tolerance)
    }
}

/// What a law gives, unless others that are as simple give something else.
fn certain(law: &Law, p: f64) -> Option<f64> {
    law.at(p).filter(|_| law.doubt(p) < 1.0 + 1e-6)
}

#[cfg(test)]
mod tests {
    use super::super::labels::FirstRank;
    use super::*;

    fn run(p: u32, places: &[(&str, f64, f64)]) -> RunLabels {
        let place = |(name, calls, bytes): &(&str, f64, f64)| PlaceCounts {
            name: (*name).to_owned(),
            calls: *calls,
            bytes: *bytes,
        };
        RunLabels {
            p,
            tau_s: 1.0,
            per_host: p,
            library: None,
            uncertain: 0.0,
            counts_only: true,
            first_rank: FirstRank::default(),
            labels: Vec::new(),
            places: places.iter().map(place).collect(),
        }
    }

    fn counts(all: &[u32], of: impl Fn(f64) -> (f64, f64)) -> Counts {
        let runs: Vec<RunLabels> = all
            .iter()
            .map(|p| {
                let (calls, bytes) = of(f64::from(*p));
                run(*p, &[("call", calls, bytes)])
            })
            .collect();
        Counts::of(&runs, &[64]).unwrap()
    }

    #[test]
    fn calls_of_all_ranks_are_continued_exactly() {
        let found = counts(&[2, 4, 6, 8, 16], |p| (12.0 * p, 8.0 * p * (p - 1.0)));
        let Place { calls, bytes, .. } = &found.places[0];
        let bytes = bytes.as_ref().unwrap();
        assert_eq!((calls.at[0], calls.law.as_deref()), (Some(768.0), Some("12·p")));
        // Two terms need five runs, and one more to be checked.
        assert_eq!(bytes.at[0].map(f64::round), Some(8.0 * 64.0 * 63.0), "{bytes:?}");
        assert_eq!(found.checked, Checked { p: 16, laws: 1, met: 1 });
    }

    #[test]
    fn an_open_grid_has_three_terms() {
        // Messages between neighbours in a grid whose edges are open.
        let sides = |p: f64| {
            let smaller = (1..=(p as u32).isqrt()).rev().find(|n| (p as u32).is_multiple_of(*n));
            let smaller = f64::from(smaller.unwrap());
            (p / smaller, smaller)
        };
        let messages = |p: f64| {
            let (a, b) = sides(p);
            (10.0 * (2.0 * a * b - a - b), 0.0)
        };
        let found = counts(&[4, 6, 8, 9, 12, 16, 25, 36], messages);
        assert_eq!(found.places[0].calls.at[0].map(f64::round), Some(1120.0), "{found:?}");
        assert_eq!(found.places[0].bytes, None);
        assert_eq!(found.checked, Checked { p: 36, laws: 1, met: 1 });
    }

    #[test]
    fn what_has_no_law_gets_no_number() {
        let found = counts(&[2, 4, 8, 16, 32], |p| ((p * 7919.0) % 101.0 + 1.0, p));
        assert_eq!((&found.places[0].calls.law, found.places[0].calls.at[0]), (&None, None));
        assert_eq!(found.places[0].bytes.as_ref().unwrap().at[0], Some(64.0));
    }

    #[test]
    fn a_law_that_the_largest_run_refutes_is_counted() {
        let found =
            counts(&[2, 4, 8, 16], |p| (if p > 8.0 { 17.0 * p } else { 16.0 * p }, 8.0 * p));
        assert_eq!(found.checked, Checked { p: 16, laws: 2, met: 1 });
        let runs = [2, 4, 8].map(|p| run(p, &[("call", 1.0, 0.0)]));
        assert_eq!(Counts::of(&runs, &[64]), None);
    }
}
