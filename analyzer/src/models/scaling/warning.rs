//! Reasons to doubt the figures of a fit.

use super::fit::{Fit, LeftOut, Warning};
use super::options::{Form, Options, PointChoice};
use super::series::Work;

/// Beyond this multiple of the largest fitted rank count, a prediction counts as far.
const FAR: f64 = 2.0;

impl Warning {
    /// All warnings about a fit.
    pub(super) fn all_for(fit: &Fit, options: &Options) -> Vec<Self> {
        let mut all = Vec::new();
        let points = &fit.series.points;
        let listed = |wanted: &dyn Fn(LeftOut) -> bool| -> Vec<u32> {
            fit.left_out.iter().filter(|(_, why)| wanted(*why)).map(|(p, _)| *p).collect()
        };
        if options.anchor_one {
            all.push(if points[0].p == 1 { Self::AnchorMeasured } else { Self::Anchored });
        }
        let below = listed(&|why| why == LeftOut::BelowP1);
        if !below.is_empty() {
            all.push(Self::BelowP1(below));
        }
        let out: Vec<(u32, f64)> = fit
            .left_out
            .iter()
            .filter_map(|(p, why)| match why {
                LeftOut::Efficiency(eps) => Some((*p, *eps)),
                _ => None,
            })
            .collect();
        if !out.is_empty() {
            all.push(Self::OutOfRange(out));
        }
        if let PointChoice::Listed(list) = &options.points {
            let absent: Vec<u32> =
                list.iter().copied().filter(|p| points.iter().all(|point| point.p != *p)).collect();
            if !absent.is_empty() {
                all.push(Self::NotMeasured(absent));
            }
        }
        if let Some(change) = flops_change(fit) {
            all.push(Self::FlopsChange(change));
        }
        match &fit.model {
            None => {
                let anchor_helps = !options.anchor_one && points[0].p > 1;
                all.push(Self::TooFewPoints(fit.fitted.len(), anchor_helps));
            }
            Some(_) => all.extend(Self::of_model(fit)),
        }
        if fit.form == Form::ThreeTerms
            && let Some(far) = fit.predictions.iter().map(|prediction| prediction.p).max()
        {
            let times = f64::from(far) / f64::from(fit.largest_measured());
            if times > FAR {
                all.push(Self::FarPrediction(far, times));
            }
        }
        all
    }

    /// Whether p_c and τ_min of the three terms are not to be trusted.
    pub fn invalidates_p_c(&self) -> bool {
        matches!(self, Self::UnsupportedPc | Self::FarPc(..) | Self::NegativeA(_))
    }

    /// Whether the efficiencies of the three terms are not to be trusted.
    pub fn invalidates_efficiency(&self) -> bool {
        matches!(self, Self::NegativeA(_))
    }

    /// Whether χ' is not to be trusted.
    pub fn invalidates_overhead(&self) -> bool {
        matches!(self, Self::NegativeA(_) | Self::NegativeC1(_))
    }

    fn of_model(fit: &Fit) -> Vec<Self> {
        let mut all = Vec::new();
        let Some(model) = &fit.model else { return all };
        let [c0, c1, c2] = model.curve.c;
        if fit.fitted.len() == 3 {
            all.push(Self::ExactFit);
        }
        if model.noise.is_none() {
            all.push(Self::NoNoise);
        }
        if 1.0 + c0 < 0.0 {
            all.push(Self::NegativeA(c0));
        }
        if c1 < 0.0 {
            all.push(Self::NegativeC1(c1));
        }
        let largest = fit.fitted.last().map_or(1, |point| point.p);
        match model.curve.p_c() {
            None if c2 <= 0.0 => all.push(Self::NoMinimum(c2)),
            None => {}
            Some(p_c) => {
                if model.c_intervals.is_some_and(|c| c[2].lo <= 0.0) {
                    all.push(Self::UnsupportedPc);
                }
                if p_c > FAR * f64::from(largest) {
                    all.push(Self::FarPc(p_c, largest));
                }
            }
        }
        if !fit.series.work.is_constant() {
            all.push(Self::WeakScaling);
        }
        all
    }
}

/// Ratio of the largest to the smallest count of operations, less 1, where the work is taken as
/// constant and they differ by more than 5 %.
fn flops_change(fit: &Fit) -> Option<f64> {
    if !matches!(fit.series.work, Work::Constant(_)) {
        return None;
    }
    let flops: Option<Vec<f64>> = fit.series.points.iter().map(|point| point.flops).collect();
    let flops = flops?;
    let largest = flops.iter().copied().fold(0.0, f64::max);
    let smallest = flops.iter().copied().fold(f64::INFINITY, f64::min);
    (smallest > 0.0 && largest / smallest > 1.05).then(|| largest / smallest - 1.0)
}
