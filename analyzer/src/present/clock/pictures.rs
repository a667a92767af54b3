//! Draws a clock calibration.

use super::screen::{MAX_PAIRS, largest};
use crate::calibration::{Calibration, PairCalibration};
use crate::present::figure::{Axis, Figure, Marks, Panel, Reference, Series};

/// Deviation of each trial from the reference offset, forward and reverse, with a panel for each of the first
/// `MAX_PAIRS` pairs, as in the figure of ten trials by Masuguchi et al. Bars show the estimate's own bound.
pub fn figure(calibration: &Calibration) -> String {
    let shown: Vec<&PairCalibration> = calibration.pairs.iter().take(MAX_PAIRS).collect();
    let panels = shown.iter().map(|pair| panel(pair)).collect();
    let title = format!("Clock offset by trial, {}", calibration.mpi);
    Figure::grid(title, panels, shown.len().clamp(1, 2)).svg()
}

fn panel(pair: &PairCalibration) -> Panel {
    let (scale, unit) = match largest(pair.trials.iter().map(|trial| trial.bound_ns)) {
        large if large >= 1e6 => (1e-6, "ms"),
        large if large >= 1e4 => (1e-3, "µs"),
        _ => (1.0, "ns"),
    };
    let numbered = || (1u32..).map(f64::from).zip(&pair.trials);
    let forward: Vec<(f64, f64)> =
        numbered().map(|(x, trial)| (x, trial.forward_ns * scale)).collect();
    let reverse: Vec<(f64, f64)> =
        numbered().map(|(x, trial)| (x, trial.reverse_ns * scale)).collect();
    let bounds = numbered().map(|(x, trial)| {
        let (middle, bound) = (trial.forward_ns * scale, trial.bound_ns * scale);
        (x, middle - bound, middle + bound)
    });
    Panel::new(Axis::linear("trial", ""), Axis::linear("deviation", unit))
        .titled(format!("rank {} against rank {}", pair.child, pair.parent))
        .with(Series::new("bound", Marks::Ranges(bounds.collect())).with_look(0))
        .with(Series::line_and_points("forward", forward).with_look(0))
        .with(Series::line_and_points("reverse", reverse).with_look(1))
        .with_reference(Reference::horizontal(0.0, ""))
}
