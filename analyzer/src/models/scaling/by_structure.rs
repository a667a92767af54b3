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
    /// The curves: structure is wrong about the largest run or its own interval is too wide, but it
    /// contains their time.
    Curves,
    /// Neither: only the interval that contains both of theirs is told.
    Neither,
}

impl Speaks {
    /// As the screen and JSON name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Structure => "structure",
            Self::Curves => "curves",
            Self::Neither => "neither",
        }
    }
}

/// What is believed of a rank count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Believed {
    pub speaks: Speaks,
    /// None if neither speaks.
    pub tau_s: Option<f64>,
    /// 90 % interval, seconds: that of structure, or one that contains both.
    pub interval_s: (f64, f64),
    /// Whether the intervals of structure and of the curves have nothing in common.
    pub apart: bool,
}

impl Believed {
    /// Weighs a forecast that agrees with the largest run, or does not, against what curves predict.
    fn new(agrees: bool, forecast: &Forecast, curves: Curves) -> Self {
        let (lo, hi) = forecast.interval_s;
        let apart = curves.interval_s.is_some_and(|of| of.hi < lo || hi < of.lo);
        if agrees && hi <= MAX_FACTOR * forecast.tau_s {
            let (tau_s, interval_s) = (Some(forecast.tau_s), forecast.interval_s);
            return Self { speaks: Speaks::Structure, tau_s, interval_s, apart };
        }
        let tau_s = curves.tau_s.filter(|tau_s| (lo..=hi).contains(tau_s));
        let speaks = if tau_s.is_some() { Speaks::Curves } else { Speaks::Neither };
        let Interval { lo: lower, hi: upper } = curves.interval_s.unwrap_or(Interval { lo, hi });
        Self { speaks, tau_s, interval_s: (lo.min(lower), hi.max(upper)), apart }
    }
}

/// What curves say of a rank count.
#[derive(Debug, Clone, Copy)]
pub struct Curves {
    pub p: u32,
    pub tau_s: Option<f64>,
    pub interval_s: Option<Interval>,
}

/// What structure predicts, or why nothing.
pub type Structural = Result<ByStructure, Abstains>;

/// What structure predicts, at one problem size.
#[derive(Debug, Clone)]
pub struct AtProblemSize {
    /// The parameter that is the problem size, and its value; `None` where it is the same in all runs.
    pub size: Option<(String, f64)>,
    pub structure: Structural,
}

/// What structure predicts.
#[derive(Debug, Clone, PartialEq)]
pub struct ByStructure {
    pub held_back: HeldBack,
    /// The run with most ranks and the largest problem, as runs with smaller problems predict it, where what runs do
    /// was continued over problem sizes.
    pub held_back_size: Option<HeldBack>,
    /// Whether every run was on one host.
    pub one_host: bool,
    /// At each rank count that was asked for.
    pub forecasts: Vec<(Forecast, Believed)>,
}

impl ByStructure {
    /// What structure says of the rank counts of which curves say this.
    pub(super) fn new(structure: &Structure, asked: &[Curves]) -> Self {
        let (held_back, held_back_size) = (structure.held_back(), structure.held_back_size());
        let checked = held_back_size.iter().chain([&held_back]);
        let agrees = checked.into_iter().all(|of| of.error() <= AGREES);
        let forecasts = asked.iter().map(|curves| {
            let forecast = structure.at(curves.p);
            let believed = Believed::new(agrees, &forecast, *curves);
            (forecast, believed)
        });
        let forecasts = forecasts.collect();
        Self { held_back, held_back_size, one_host: structure.is_of_one_host(), forecasts }
    }

    /// What is believed of a rank count that was asked for.
    pub fn believed(&self, p: u32) -> Option<&Believed> {
        let of_p = self.forecasts.iter().find(|(forecast, _)| forecast.p == p);
        of_p.map(|(_, believed)| believed)
    }
}

#[cfg(test)]
mod tests {
    use crate::models::structure::{FirstRank, Kind, Label, MachineTimes, RunLabels, Spread};

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
                first_rank: FirstRank::default(),
                places: Vec::new(),
                labels: vec![compute],
            }
        };
        Structure::new([2, 4, 8, 16, 32].map(run).to_vec(), MachineTimes::default()).unwrap()
    }

    fn believed(of: impl Fn(f64) -> f64, p: u32, curves: Option<(f64, f64, f64)>) -> Believed {
        let tau_s = curves.map(|of| of.1);
        let interval_s = curves.map(|(lo, _, hi)| Interval { lo, hi });
        let by = ByStructure::new(&structure(of), &[Curves { p, tau_s, interval_s }]);
        *by.believed(p).unwrap()
    }

    #[test]
    fn the_largest_run_decides() {
        let falls = |p: f64| 1.0 / p;
        let alone = believed(falls, 64, None);
        assert_eq!((alone.speaks, alone.apart), (Speaks::Structure, false));
        assert_eq!(alone, believed(falls, 64, Some((0.01, 0.015, 0.02))));
        // Curves know times alone.
        let apart = believed(falls, 64, Some((0.1, 0.15, 0.2)));
        assert_eq!(apart, Believed { apart: true, ..alone });
    }

    #[test]
    fn where_structure_is_not_believed_the_interval_contains_both() {
        // It computes 3.2 times as long in the largest run.
        let step = |p: f64| if p == 32.0 { 0.1 } else { 1.0 / p };
        let alone = believed(step, 64, None);
        assert_eq!((alone.speaks, alone.tau_s), (Speaks::Neither, None));
        let (lo, hi) = alone.interval_s;
        let middle = (lo * hi).sqrt();
        let narrow = believed(step, 64, Some((0.9 * middle, middle, 1.1 * middle)));
        assert_eq!((narrow.speaks, narrow.tau_s), (Speaks::Curves, Some(middle)));
        assert_eq!(narrow.interval_s, (lo, hi));
        let wide = believed(step, 64, Some((0.5 * lo, middle, 2.0 * hi)));
        assert_eq!(wide.interval_s, (0.5 * lo, 2.0 * hi));
        // A time of the curves that structure excludes is not told.
        let beyond = believed(step, 64, Some((middle, 1.5 * hi, 2.0 * hi)));
        assert_eq!((beyond.speaks, beyond.tau_s), (Speaks::Neither, None));
        assert_eq!(beyond.interval_s, (lo, 2.0 * hi));
    }
}
