//! What the structure of a fit's runs predicts, beside its curves, and which of the two is believed.

use crate::models::evidence::MAX_FACTOR;
use crate::models::structure::{Abstains, Forecast, HeldBack, Structure};

use super::bootstrap::Interval;

/// Relative error for the largest run, predicted from the others, up to which structure is believed.
const AGREES: f64 = 0.1;

/// Whose time is to be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// What the program does, continued.
    Structure,
    /// The curves: structure is wrong about the largest run, or its own interval is too wide.
    Curves,
    /// Structure is right about the largest run, but its interval and that of the curves have nothing
    /// in common.
    Both,
}

/// What structure predicts, or why nothing.
pub type Structural = Result<ByStructure, Abstains>;

/// What structure predicts.
#[derive(Debug, Clone, PartialEq)]
pub struct ByStructure {
    pub held_back: HeldBack,
    /// Whether every run was on one host.
    pub one_host: bool,
    /// At each rank count that was asked for.
    pub forecasts: Vec<(Forecast, Speaks)>,
}

impl ByStructure {
    /// What structure says of the rank counts for which curves have given an interval, or not.
    pub(super) fn new(structure: &Structure, asked: &[(u32, Option<Interval>)]) -> Self {
        let held_back = structure.held_back();
        let forecasts = asked.iter().map(|(p, by_curves)| {
            let forecast = structure.at(*p);
            let (lo, hi) = forecast.interval_s;
            let is_apart = by_curves.is_some_and(|of| of.hi < lo || hi < of.lo);
            let speaks = match held_back.error() <= AGREES && hi <= MAX_FACTOR * forecast.tau_s {
                false => Speaks::Curves,
                true if is_apart => Speaks::Both,
                true => Speaks::Structure,
            };
            (forecast, speaks)
        });
        Self { held_back, one_host: structure.is_of_one_host(), forecasts: forecasts.collect() }
    }

    /// What is predicted for a rank count, if structure alone is believed there.
    pub fn believed(&self, p: u32) -> Option<&Forecast> {
        let of_p = self.forecasts.iter().find(|(forecast, _)| forecast.p == p);
        of_p.filter(|(_, who)| *who == Speaks::Structure).map(|(forecast, _)| forecast)
    }
}

#[cfg(test)]
mod tests {
    use crate::models::structure::{Kind, Label, MachineTimes, RunLabels, Spread};

    use super::*;

    /// Runs that compute `of(p)` seconds.
    fn structure(of: impl Fn(f64) -> f64) -> Structure {
        let run = |p: u32| {
            let tau_s = of(f64::from(p));
            let compute = Label {
                name: "compute".to_owned(),
                kind: Kind::Computation,
                first_use: false,
                count: 1.0,
                seconds: tau_s,
                messages: 0.0,
                bytes: 0.0,
                group: None,
                spread: Spread::All,
                all_bytes: 0.0,
                all_count: f64::from(p),
                all_seconds: tau_s * f64::from(p),
                max_count: 1.0,
                ranks: f64::from(p),
                size: None,
                stretches: Vec::new(),
                by_size: Vec::new(),
            };
            RunLabels {
                p,
                tau_s,
                per_host: 1,
                library: None,
                uncertain: 0.0,
                counts_only: false,
                places: Vec::new(),
                labels: vec![compute],
            }
        };
        Structure::new([2, 4, 8, 16, 32].map(run).to_vec(), MachineTimes::default()).unwrap()
    }

    fn speaks(of: impl Fn(f64) -> f64, by_curves: Option<Interval>) -> Speaks {
        ByStructure::new(&structure(of), &[(64, by_curves)]).forecasts[0].1
    }

    #[test]
    fn the_largest_run_decides() {
        let curves = |lo: f64, hi: f64| Some(Interval { lo, hi });
        assert_eq!(speaks(|p| 1.0 / p, curves(0.01, 0.02)), Speaks::Structure);
        assert_eq!(speaks(|p| 1.0 / p, None), Speaks::Structure);
        assert_eq!(speaks(|p| 1.0 / p, curves(0.1, 0.2)), Speaks::Both);
        let step = |p: f64| if p == 32.0 { 0.1 } else { 1.0 / p };
        assert_eq!(speaks(step, curves(0.01, 0.2)), Speaks::Curves);
        let believed = |of: &dyn Fn(f64) -> f64| {
            let by = ByStructure::new(&structure(of), &[(64, None)]);
            (by.believed(64).is_some(), by.believed(128).is_some())
        };
        assert_eq!(believed(&|p| 1.0 / p), (true, false));
        assert_eq!(believed(&step), (false, false));
    }
}
