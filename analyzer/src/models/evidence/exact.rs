//! Forms of the papers that meet every point to its digits: such points were made by that form, and
//! no weighing is needed.

use nalgebra::{DMatrix, DVector};

use super::measured::Measured;
use super::part::Curve;
use super::terms::Shape;

/// The forms at one problem size: a/p + χ'0 + χ'1·p (Orii 2009), and EigenExa's columns (Orii et al.).
const FORMS: [&[Shape]; 2] = [
    &[Shape::Shared, Shape::Constant, Shape::Linear],
    &[Shape::Shared, Shape::Edges, Shape::Log, Shape::Constant],
];
/// A form has to meet this many points more than it has terms: one may be met by chance.
const SPARE_POINTS: usize = 2;
/// Relative error that rounding in the solution may leave.
const ROUNDING: f64 = 1e-9;
/// Largest relative error that counts as met, however few digits a time has.
const MAX_ERROR: f64 = 1e-4;

/// The first form that meets all points. `None` where the work changes with the rank count.
pub fn curve(points: &[Measured]) -> Option<Curve> {
    let constant = points.iter().all(|point| point.work == points[0].work);
    FORMS.iter().filter(|_| constant).find_map(|form| of_form(points, form))
}

fn of_form(points: &[Measured], form: &[Shape]) -> Option<Curve> {
    if points.len() < form.len() + SPARE_POINTS {
        return None;
    }
    let at = |i: usize, shape: Shape| shape.at(points[i].p, points[i].work) / points[i].tau_s;
    let scale: Vec<f64> = form
        .iter()
        .map(|shape| (0..points.len()).map(|i| at(i, *shape)).fold(0.0, f64::max))
        .collect();
    let matrix = DMatrix::from_fn(points.len(), form.len(), |i, j| at(i, form[j]) / scale[j]);
    let solved = matrix.svd(true, true).solve(&DVector::repeat(points.len(), 1.0), 1e-12).ok()?;
    let term = |(j, shape): (usize, &Shape)| (*shape, (solved[j] / scale[j]).max(0.0));
    let terms: Vec<(Shape, f64)> =
        form.iter().enumerate().map(term).filter(|t| t.1 > 0.0).collect();
    let curve = Curve { terms, discrepancy: 0.0 };
    let met = |point: &Measured| {
        let off_s = (curve.at(point.p, point.work) - point.tau_s).abs();
        off_s <= tolerance(point.tau_s) * point.tau_s
    };
    points.iter().all(met).then_some(curve)
}

/// A unit in the last digit of a time, relative to it: rounding leaves half, the solution shifts it.
fn tolerance(tau_s: f64) -> f64 {
    let text = format!("{tau_s:e}");
    let (mantissa, _) = text.split_once('e').unwrap_or((&text, ""));
    let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let leading = mantissa.parse::<f64>().unwrap_or(1.0).abs().max(1.0);
    (10f64.powi(-(decimals as i32)) / leading).clamp(ROUNDING, MAX_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerance_is_a_unit_in_the_last_digit() {
        for (tau_s, expected) in [(2.00005, 1e-5 / 2.00005), (1234.56, 0.01 / 1234.56)] {
            assert!((tolerance(tau_s) / expected - 1.0).abs() < 1e-9, "{tau_s}");
        }
        assert_eq!(tolerance(12.5), MAX_ERROR);
        assert_eq!(tolerance(1.0 / 3.0), ROUNDING);
    }
}
