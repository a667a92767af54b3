//! Fits a series of runs.

use super::bootstrap::{Noise, Replicas};
use super::curve::Curve;
use super::error::ScalingError;
use super::findings;
use super::fit::{Fit, FittedPoint, Isoefficiency, LeftOut, Model, Warning};
use super::least_squares::{Quadratic, Weights, correlation};
use super::options::{Options, PointChoice};
use super::series::{Point, Series};

/// Efficiencies at or below this are too low for practical use (Orii 2009, section 3.1), and those
/// at or above 1 leave the model no overhead.
pub(super) const MIN_EFFICIENCY: f64 = 0.1;

impl Fit {
    /// w(p) of a measured point: its work relative to that at p₁.
    pub fn relative_work(&self, point: &Point) -> f64 {
        let reference = self.series.points.iter().find(|point| point.p == self.p1);
        point.work / reference.map_or(1.0, |reference| reference.work)
    }

    /// w(p) at any rank count; `None` where the data do not determine the work there.
    pub fn relative_work_at(&self, p: f64) -> Option<f64> {
        let reference = self.series.points.iter().find(|point| point.p == self.p1)?;
        Some(self.series.work_at(p)? / reference.work)
    }

    /// ε' of a measured point (8).
    pub fn reference_efficiency(&self, point: &Point) -> f64 {
        self.s * self.relative_work(point) / (f64::from(point.p) * point.tau_s)
    }

    /// Computation scaling S·w/Σγ(p), the factor between ε_p and ε'.
    pub fn computation_scaling(&self, point: &Point) -> Option<f64> {
        point.sum_gamma_s.map(|sum| self.s * self.relative_work(point) / sum)
    }

    /// Fits a series.
    pub(super) fn new(series: Series, options: &Options) -> Result<Self, ScalingError> {
        let (p1, s) = reference(&series, options.p1)?;
        let mut fit = Self {
            series,
            p1,
            s,
            fitted: Vec::new(),
            left_out: Vec::new(),
            model: None,
            predictions: Vec::new(),
            form: options.form,
            evidence: None,
            structure: None,
            counts: None,
            contradictions: Vec::new(),
            bounds: None,
            unbalanced: None,
            warnings: Vec::new(),
        };
        fit.choose(options);
        fit.bounds = findings::bounds(&fit.series);
        fit.unbalanced = findings::unbalanced(&fit.series);
        fit.model = fit.solve(options);
        fit.predict(options);
        fit.warnings = Warning::all_for(&fit, options);
        Ok(fit)
    }

    fn choose(&mut self, options: &Options) {
        let points = &self.series.points;
        if options.anchor_one && points[0].p > 1 {
            self.fitted.push(FittedPoint { p: 1, y: 0.0, measured: false });
        }
        let mut taken = 0;
        for point in points {
            let efficiency = self.reference_efficiency(point);
            let chosen = match &options.points {
                PointChoice::All => true,
                PointChoice::First(number) => taken < *number,
                PointChoice::Listed(list) => list.contains(&point.p),
            };
            let why = if point.p < self.p1 {
                LeftOut::BelowP1
            } else if !chosen {
                LeftOut::NotChosen
            } else if efficiency <= MIN_EFFICIENCY || efficiency >= 1.0 {
                LeftOut::Efficiency(efficiency)
            } else {
                taken += 1;
                let y = (1.0 - efficiency) / efficiency;
                self.fitted.push(FittedPoint { p: point.p, y, measured: true });
                continue;
            };
            self.left_out.push((point.p, why));
        }
    }

    fn solve(&self, options: &Options) -> Option<Model> {
        let p: Vec<f64> = self.fitted.iter().map(|point| f64::from(point.p)).collect();
        let y: Vec<f64> = self.fitted.iter().map(|point| point.y).collect();
        let weights: Vec<f64> = match options.weights {
            Weights::Plain => vec![1.0; y.len()],
            Weights::Relative => y.iter().map(|y| 1.0 / (1.0 + y)).collect(),
        };
        let problem = Quadratic::new(&p, &weights)?;
        let curve = Curve { s: self.s, c: problem.solve(&y) };
        let fitted: Vec<f64> = p.iter().map(|p| curve.y(*p)).collect();
        let noise = Noise::combine(scatter(&y, &fitted), self.repetition_noise());
        let noisy: Vec<bool> = self.fitted.iter().map(|point| point.measured).collect();
        let replicas = noise.map(|noise| Replicas::draw(&problem, &curve, &noisy, noise));
        let strong = self.series.work.is_constant();
        let tau_min = |curve: &Curve| curve.p_c().map(|p_c| curve.tau_s(p_c, 1.0));
        let isoefficiency = options.targets.iter().flat_map(|eps| {
            options.definitions.iter().map(|definition| Isoefficiency {
                definition: *definition,
                eps: *eps,
                p: curve.isoefficiency(*eps, *definition),
            })
        });
        let mut model = Model {
            curve,
            r: correlation(&y, &fitted),
            noise,
            c_intervals: replicas
                .as_ref()
                .map(|replicas| [0, 1, 2].map(|i| replicas.interval(|curve| Some(curve.c[i])))),
            p_c_interval: replicas.as_ref().map(|replicas| replicas.interval(Curve::p_c)),
            tau_min_interval_s: replicas
                .as_ref()
                .filter(|_| strong && curve.p_c().is_some())
                .map(|replicas| replicas.interval(tau_min)),
            isoefficiency: isoefficiency.collect(),
            hidden: None,
            next: findings::next_run(&problem, &curve, noise, &self.series),
            replicas,
        };
        model.hidden = findings::hidden(self, &model.curve);
        Some(model)
    }

    /// Standard deviation of τ relative to its mean over the repetitions of the fitted points, and
    /// its degrees of freedom.
    pub(super) fn repetition_noise(&self) -> (f64, usize) {
        let fitted = |point: &&Point| self.fitted.iter().any(|f| f.measured && f.p == point.p);
        pooled_noise(self.series.points.iter().filter(fitted))
    }
}

/// Relative standard deviation of repeated runs, pooled over points, and its degrees of freedom; 0
/// where nothing is repeated.
pub(super) fn pooled_noise<'a>(points: impl Iterator<Item = &'a Point>) -> (f64, usize) {
    let (mut square, mut freedom) = (0.0, 0);
    for point in points {
        if let Some(sd) = point.relative_sd {
            square += sd * sd * (point.spread.number - 1) as f64;
            freedom += point.spread.number - 1;
        }
    }
    (if freedom == 0 { 0.0 } else { (square / freedom as f64).sqrt() }, freedom)
}

/// p₁ and Σγ(p₁).
pub(super) fn reference(series: &Series, p1: Option<u32>) -> Result<(u32, f64), ScalingError> {
    let sums: Vec<(u32, f64)> =
        series.points.iter().filter_map(|point| Some((point.p, point.sum_gamma_s?))).collect();
    let found = match p1 {
        Some(p1) => sums.iter().find(|(p, _)| *p == p1),
        None => sums.first(),
    };
    found.copied().ok_or_else(|| ScalingError::NoReference {
        params: series.params.clone(),
        p1,
        known: sums.iter().map(|(p, _)| *p).collect(),
    })
}

/// Standard deviation of the residuals relative to τ, and its degrees of freedom.
pub(super) fn scatter(y: &[f64], fitted: &[f64]) -> (f64, usize) {
    let freedom = y.len().saturating_sub(3);
    let square: f64 = y.iter().zip(fitted).map(|(y, f)| ((y - f) / (1.0 + f)).powi(2)).sum();
    (if freedom == 0 { 0.0 } else { (square / freedom as f64).sqrt() }, freedom)
}
