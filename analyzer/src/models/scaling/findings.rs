//! Findings beside the fit: bounds that single runs set, overhead hidden in the computation, uneven
//! ranks, and the run that would tell most.

use nalgebra::{Matrix3, Vector3};

use super::bootstrap::Noise;
use super::curve::{Curve, Definition};
use super::fit::{Bounds, Fit, Hidden, NextRun, Unbalanced};
use super::least_squares::Quadratic;
use super::series::Series;

/// Share of τ from which a finding is reported.
const NOTABLE_SHARE: f64 = 0.05;

/// Bounds of τ_min; `None` in weak scaling, and where no Σγ is known.
pub(super) fn bounds(series: &Series) -> Option<Bounds> {
    if !series.work.is_constant() {
        return None;
    }
    let fastest = (0..series.points.len())
        .min_by(|a, b| series.points[*a].tau_s.total_cmp(&series.points[*b].tau_s))?;
    // If the largest rank count is not the fastest, the minimum may lie one point below the
    // fastest.
    let last = series.points.len() - 1;
    let from = if fastest == last { last } else { fastest.saturating_sub(1) };
    let (p, lo_s) =
        series.points[..=from].iter().rev().find_map(|point| Some((point.p, point.chi_s()?)))?;
    Some(Bounds { lo_s: lo_s.max(0.0), hi_s: series.points[fastest].tau_s, p })
}

/// Overhead hidden in the computation, if the gap between χ' and χ grows with p to at least 5 % of
/// τ.
pub(super) fn hidden(fit: &Fit, curve: &Curve) -> Option<Hidden> {
    let gaps: Vec<(u32, f64, f64, f64)> = fit
        .series
        .points
        .iter()
        .filter(|point| point.p >= fit.p1)
        .filter_map(|point| {
            let model_chi_s = fit.relative_work(point) * curve.chi_s(f64::from(point.p));
            Some((point.p, point.tau_s, model_chi_s, point.chi_s()?))
        })
        .collect();
    let (first, last) = (gaps.first()?, gaps.last()?);
    let gap = |(_, _, model_chi_s, chi_s): &(u32, f64, f64, f64)| model_chi_s - chi_s;
    let grows = gap(last) - gap(first) > NOTABLE_SHARE / 2.0 * last.1;
    if gaps.len() < 2 || !grows || gap(last) < NOTABLE_SHARE * last.1 {
        return None;
    }
    let without = gaps.iter().map(|all| (all.1 - gap(all).max(0.0), all.0));
    let (tau_without_s, tau_without_p) = without.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Hidden {
        p: last.0,
        gap_s: gap(last),
        model_chi_s: last.2,
        chi_s: last.3,
        tau_without_s,
        tau_without_p,
    })
}

/// Uneven ranks, if balance could save at least 5 % of τ at the largest known rank count.
pub(super) fn unbalanced(series: &Series) -> Option<Unbalanced> {
    let known: Vec<(u32, f64, f64, (f64, f64))> = series
        .points
        .iter()
        .filter(|point| point.p > 1)
        .filter_map(|point| {
            let range = point.chi_range_s?;
            Some((point.p, point.tau_s, (point.chi_s()? - range.0).max(0.0), range))
        })
        .collect();
    let (first, last) = (known.first()?, known.last()?);
    if last.2 < NOTABLE_SHARE * last.1 {
        return None;
    }
    let without = known.iter().map(|(p, tau_s, excess_s, _)| (tau_s - excess_s, *p));
    let (tau_without_s, tau_without_p) = without.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Unbalanced {
        p: last.0,
        chi_min_s: last.3.0,
        chi_max_s: last.3.1,
        excess_s: last.2,
        grows: known.len() > 1 && last.2 / last.1 > 1.2 * first.2 / first.1,
        tau_without_s,
        tau_without_p,
    })
}

/// Chooses among rank counts up to twice the largest measured one, by the variance of ln p_c (of c2
/// where there is no p_c) after one more run with the same noise.
pub(super) fn next_run(
    problem: &Quadratic,
    curve: &Curve,
    noise: Option<Noise>,
    series: &Series,
) -> Option<NextRun> {
    let measured: Vec<u32> = series.points.iter().map(|point| point.p).collect();
    let largest = *measured.last()?;
    let mut candidates: Vec<u32> = Vec::new();
    for pair in measured.windows(2) {
        let middle = (f64::from(pair[0]) * f64::from(pair[1])).sqrt().round() as u32;
        candidates.push(middle);
    }
    candidates.extend([largest.saturating_mul(3) / 2, largest.saturating_mul(2)]);
    candidates.retain(|p| {
        !measured.contains(p)
            && (0.1..1.0).contains(&curve.efficiency(f64::from(*p), Definition::Reference))
    });
    let relative = noise.map_or(1.0, |noise| noise.relative.max(1e-6));
    let sd = |p: f64| relative * (1.0 + curve.y(p)).abs().max(1e-9);
    let p_c = curve.p_c();
    let scale = f64::from(largest);
    // In units of x = p/largest; ln p_c = (ln(1+c0) − ln c2)/2.
    let gradient = match p_c {
        Some(_) => {
            let c2 = curve.c[2] * scale * scale;
            Vector3::new(0.5 / (1.0 + curve.c[0]), 0.0, -0.5 / c2)
        }
        None => Vector3::new(0.0, 0.0, 1.0 / (curve.c[2] * scale * scale).abs().max(1e-12)),
    };
    let column = |p: f64| Vector3::new(1.0, p / scale, (p / scale).powi(2));
    let mut information = Matrix3::zeros();
    for p in problem.points() {
        let x = column(*p) / sd(*p);
        information += x * x.transpose();
    }
    let error = |information: Matrix3<f64>| {
        let covariance = information.try_inverse()?;
        let variance = (gradient.transpose() * covariance * gradient)[(0, 0)];
        (variance > 0.0).then(|| variance.sqrt())
    };
    let now = error(information)?;
    let with = |p: u32| {
        let x = column(f64::from(p)) / sd(f64::from(p));
        error(information + x * x.transpose()).map(|error| (p, error))
    };
    let (p, then) = candidates.into_iter().filter_map(with).min_by(|a, b| a.1.total_cmp(&b.1))?;
    let narrows = if p_c.is_some() { "p_c" } else { "c2" };
    Some(NextRun { p, narrows, error_now: noise.map(|_| now), error_then: noise.map(|_| then) })
}
