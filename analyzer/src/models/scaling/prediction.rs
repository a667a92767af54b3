//! Predicts times that were not measured, with intervals, or says why it cannot.

use crate::models::evidence::{Computation, Evidence, Measured, noise_of_minimum};
use crate::models::structure::{Abstains, Counts, MachineTimes, RunLabels, Structure};

use super::bootstrap::Interval;
use super::by_structure::{ByStructure, Curves};
use super::fit::{Fit, LeftOut, Prediction, Unsupported};
use super::fitting::pooled_noise;
use super::options::{Form, Options};
use super::series::Point;

impl Fit {
    /// Largest rank count that predictions are based on.
    pub fn largest_measured(&self) -> u32 {
        self.used_points().map(|point| point.p).max().unwrap_or(1)
    }

    /// 90 % intervals of times at these rank counts, seconds; empty where nothing predicts them.
    pub fn band(&self, rank_counts: &[f64]) -> Vec<(f64, Interval)> {
        let Some(evidence) = &self.evidence else {
            return self
                .model
                .as_ref()
                .map_or_else(Vec::new, |model| model.band(self, rank_counts));
        };
        let at = |p: &f64| {
            let forecast = evidence.at(*p, self.relative_work_at(*p)?);
            Some((*p, Interval { lo: forecast.lo_s, hi: forecast.hi_s }))
        };
        rank_counts.iter().filter_map(at).collect()
    }

    /// The time predicted at p ranks, seconds, whether or not p was measured.
    pub fn predicted_s(&self, p: f64) -> Option<f64> {
        let work = self.relative_work_at(p)?;
        let tau_s = match &self.evidence {
            Some(evidence) => evidence.at(p, work).tau_s,
            None => self.model.as_ref()?.curve.tau_s(p, work),
        };
        (tau_s > 0.0).then_some(tau_s)
    }

    /// The rank counts and times of the runs that structure is read from: the points that were not
    /// held back.
    pub fn structural_points(&self) -> impl Iterator<Item = (u32, f64)> {
        self.used_points().map(|point| (point.p, point.tau_s))
    }

    /// Predicts the same rank counts from what these runs do, on a machine where messages take so long,
    /// if that was measured.
    pub fn add_structure(
        &mut self,
        runs: Result<Vec<RunLabels>, Abstains>,
        machine: &MachineTimes,
    ) {
        let rank_counts: Vec<u32> = self.predictions.iter().map(|of| of.p).collect();
        self.counts = runs.as_ref().ok().and_then(|runs| Counts::of(runs, &rank_counts));
        let structure = self.with_cores(runs).and_then(|of| Structure::new(of, machine.clone()));
        let curves = |of: &Prediction| Curves {
            p: of.p,
            tau_s: of.tau_s.as_ref().ok().copied(),
            interval_s: of.interval_s,
        };
        let asked: Vec<Curves> = self.predictions.iter().map(curves).collect();
        self.structure = Some(structure.map(|structure| ByStructure::new(&structure, &asked)));
    }

    /// What was read of the runs, unless their ranks lacked cores.
    pub(super) fn with_cores<R>(&self, runs: Result<R, Abstains>) -> Result<R, Abstains> {
        match self.used_points().filter(|point| point.lack.is_some()).count() {
            0 => runs,
            lacking => Err(Abstains::SharedCores(lacking)),
        }
    }

    /// Points that were not held back.
    fn used_points(&self) -> impl Iterator<Item = &Point> {
        let held = |p: u32| self.left_out.contains(&(p, LeftOut::NotChosen));
        self.series.points.iter().filter(move |point| !held(point.p))
    }

    pub(super) fn predict(&mut self, options: &Options) {
        let held_back = self.left_out.iter().filter(|(_, why)| *why == LeftOut::NotChosen);
        let mut requested: Vec<u32> =
            held_back.map(|(p, _)| *p).chain(options.predict.iter().copied()).collect();
        requested.sort_unstable();
        requested.dedup();
        if self.form == Form::Evidence && !requested.is_empty() {
            self.evidence = self.weigh(options.anchor_one);
        }
        self.predictions = requested.into_iter().map(|p| self.predicted(p)).collect();
        // Points out of the model's range are the ones that the user does not see in its curve.
        let out_of_range = |(_, why): &(u32, LeftOut)| matches!(why, LeftOut::Efficiency(_));
        let hidden = self.evidence.is_none() && self.left_out.iter().any(out_of_range);
        let only_here = hidden.then(|| self.weigh(options.anchor_one)).flatten();
        let weighed = self.evidence.as_ref().or(only_here.as_ref());
        self.contradictions = weighed.map_or_else(Vec::new, Evidence::contradictions);
    }

    /// Weighs every point that was not held back, whatever its efficiency: sums of non-negative
    /// terms do not need the range of efficiencies of Orii 2009.
    fn weigh(&self, anchor_one: bool) -> Option<Evidence> {
        let mut points: Vec<Measured> = Vec::new();
        if anchor_one && self.series.points.iter().all(|point| point.p > 1) {
            let work = self.relative_work_at(1.0)?;
            let tau_s = self.s * work;
            let computation = Some(Computation { mean_s: tau_s, max_s: Some(tau_s) });
            points.push(Measured { p: 1.0, work, tau_s, computation, lacks_cores: false });
        }
        let measured = |point: &Point| Measured {
            p: f64::from(point.p),
            work: self.relative_work(point),
            tau_s: point.tau_s,
            computation: point.sum_gamma_s.map(|sum| Computation {
                mean_s: sum / f64::from(point.p),
                max_s: point.chi_range_s.map(|(smallest, _)| point.tau_s - smallest),
            }),
            lacks_cores: point.lack.is_some(),
        };
        points.extend(self.used_points().map(measured));
        let (relative, freedom) = pooled_noise(self.used_points());
        let runs: usize = self.used_points().map(|point| point.spread.number).sum();
        let repetitions = runs as f64 / self.used_points().count().max(1) as f64;
        Evidence::fit(&points, (freedom > 0).then(|| noise_of_minimum(relative, repetitions)))
    }

    fn predicted(&self, p: u32) -> Prediction {
        let measured = self.series.points.iter().find(|point| point.p == p);
        let work = match measured {
            Some(point) => Some(self.relative_work(point)),
            None => self.relative_work_at(f64::from(p)),
        };
        let (tau_s, interval_s) = match (work, self.form) {
            (None, _) => (Err(Unsupported::UnknownWork), None),
            (Some(work), Form::Evidence) => self.by_evidence(p, work),
            (Some(work), Form::ThreeTerms) => self.by_three_terms(p, work),
        };
        Prediction { p, tau_s, interval_s, measured_s: measured.map(|point| point.tau_s) }
    }

    fn by_evidence(&self, p: u32, work: f64) -> (Result<f64, Unsupported>, Option<Interval>) {
        let largest = self.largest_measured();
        let next = largest.saturating_mul(2);
        let Some(evidence) = &self.evidence else {
            return (Err(Unsupported::FewRankCounts(next)), None);
        };
        let forecast = evidence.at(f64::from(p), work);
        let interval = Some(Interval { lo: forecast.lo_s, hi: forecast.hi_s });
        if forecast.is_too_wide() {
            let holds = |p: &u32| {
                let work = self.relative_work_at(f64::from(*p));
                work.is_some_and(|work| !evidence.at(f64::from(*p), work).is_too_wide())
            };
            let doublings = std::iter::successors(Some(largest), |p| p.checked_mul(2));
            let beyond = doublings.take_while(|q| *q < p).take_while(holds).last();
            let why = Unsupported::TooWide { beyond: beyond.unwrap_or(largest), next };
            return (Err(why), interval);
        }
        (Ok(forecast.tau_s), interval)
    }

    fn by_three_terms(&self, p: u32, work: f64) -> (Result<f64, Unsupported>, Option<Interval>) {
        let Some(model) = &self.model else { return (Err(Unsupported::NoModel), None) };
        let tau_s = model.curve.tau_s(f64::from(p), work);
        if tau_s <= 0.0 {
            return (Err(Unsupported::NotPositive), None);
        }
        let interval = model.replicas.as_ref().map(|r| r.prediction(f64::from(p), work));
        (Ok(tau_s), interval.map(|interval| Interval { lo: interval.lo.max(0.0), ..interval }))
    }
}
