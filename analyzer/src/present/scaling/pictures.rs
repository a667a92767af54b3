//! Draws figures 2, 3a, 3b, 5 and 6 of Orii 2009 as SVG, with the values of this fit.

use crate::models::scaling::{Fit, LeftOut, Scaling, label};

use super::super::figure::{Axis, Figure, Marks, Panel, Reference, Series};

/// Maximum number of fits drawn in one figure.
const MAX_FITS: usize = 6;
/// Efficiencies of the lines in τ–χ space, the most important first.
const LINES: [f64; 6] = [0.0, 0.5, 0.9, 0.75, 0.25, 0.99];

/// The figures that have something to show, as file names and SVG documents.
pub fn figures(scaling: &Scaling) -> Vec<(&'static str, String)> {
    drawings(scaling).into_iter().map(|(name, figure)| (name, figure.svg())).collect()
}

/// The figures that have something to show, with their file names; what matters most comes first.
pub(in crate::present) fn drawings(scaling: &Scaling) -> Vec<(&'static str, Figure)> {
    let fits = &scaling.fits[..scaling.fits.len().min(MAX_FITS)];
    let modelled: Vec<&Fit> = fits.iter().filter(|fit| fit.model.is_some()).collect();
    let grid = |title: &str, panels: Vec<Panel>| {
        let columns = if panels.len() > 1 { 2 } else { 1 };
        (!panels.is_empty()).then(|| Figure::grid(title, panels, columns))
    };
    let one = |title: &str, panel: Option<Panel>| panel.map(|panel| Figure::new(title, panel));
    let title_of_time = match modelled.is_empty() {
        true => "Elapsed time",
        false => "Elapsed time, measured and modelled",
    };
    let all = [
        ("time.svg", one(title_of_time, time(fits))),
        ("fit.svg", one("Fit of (1 − ε')/ε' = c0 + c1·p + c2·p²", fit_of_y(&modelled))),
        ("tau-chi.svg", grid("τ–χ space", fits.iter().filter_map(tau_chi).collect())),
        (
            "overhead.svg",
            grid(
                "Lost time, modelled and measured",
                modelled.iter().filter_map(|f| overhead(f)).collect(),
            ),
        ),
        ("prediction.svg", grid("Prediction", fits.iter().filter_map(prediction).collect())),
    ];
    all.into_iter().filter_map(|(name, figure)| Some((name, figure?))).collect()
}

fn name(fit: &Fit, fallback: &str) -> String {
    let label = label(&fit.series.params);
    if label.is_empty() { fallback.to_owned() } else { label }
}

/// Figure 2: each run and each rank is a point; lines through the origin have one efficiency each.
fn tau_chi(fit: &Fit) -> Option<Panel> {
    let points = &fit.series.points;
    let means: Vec<(f64, f64)> =
        points.iter().filter_map(|point| Some((point.tau_s, point.chi_s()?))).collect();
    let largest = means.iter().map(|(tau, _)| *tau).fold(0.0, f64::max);
    if means.is_empty() {
        return None;
    }
    let ranks: Vec<(f64, f64)> = points
        .iter()
        .flat_map(|point| point.ranks.iter().map(|rank| (point.tau_s, rank.chi_s)))
        .collect();
    let ranges: Vec<(f64, f64, f64)> = points
        .iter()
        .filter(|point| point.ranks.is_empty())
        .filter_map(|point| point.chi_range_s.map(|(lo, hi)| (point.tau_s, lo, hi)))
        .collect();
    let top = means.iter().map(|(_, chi)| *chi).chain(ranks.iter().map(|(_, chi)| *chi));
    let top = top.fold(0.0, f64::max);
    let (right, top) = (1.15 * largest, (1.25 * top).max(0.005 * largest));
    let mut panel = Panel::new(
        Axis::linear("elapsed time τ", "s").within(0.0, right),
        Axis::linear("lost time χ", "s").within(0.0, top),
    )
    .titled(name(fit, ""));
    for eps in distinct_efficiencies(right, top) {
        panel = panel.with_reference(Reference::proportional(1.0 - eps, format!("ε = {eps}")));
    }
    if !ranks.is_empty() {
        panel = panel.with(Series::points("each rank", ranks).with_look(1));
    }
    if !ranges.is_empty() {
        panel = panel.with(Series::new("ranks, least to most", Marks::Ranges(ranges)).with_look(1));
    }
    panel = panel.with(Series::line_and_points("mean of the ranks", means).with_look(0));
    for point in points {
        if let Some(chi) = point.chi_s() {
            panel = panel.with_annotation(point.tau_s, chi, format!("p={}", point.p));
        }
    }
    Some(panel)
}

/// The efficiencies whose lines leave a panel of this width and height far enough apart for their labels.
fn distinct_efficiencies(width: f64, height: f64) -> Vec<f64> {
    // Where the line leaves: along the top edge from left to right (0 to 1), then down the right edge (1 to 2).
    let exit = |eps: f64| match (1.0 - eps) * width {
        rise if rise >= height => height / rise,
        rise => 2.0 - rise / height,
    };
    let mut chosen: Vec<f64> = Vec::new();
    for eps in LINES {
        if chosen.iter().all(|other| (exit(*other) - exit(eps)).abs() > 0.16) {
            chosen.push(eps);
        }
    }
    chosen
}

/// Figure 3a: the fitted points and the fit.
fn fit_of_y(fits: &[&Fit]) -> Option<Panel> {
    fits.first()?;
    let mut panel = Panel::new(
        Axis::linear("ranks p", "").from_zero().whole(),
        Axis::linear("(1 − ε')/ε'", "").from_zero(),
    );
    for (look, fit) in fits.iter().enumerate() {
        let curve = fit.model.as_ref()?.curve;
        let fitted = fit.fitted.iter().map(|point| (f64::from(point.p), point.y)).collect();
        let largest = fit.fitted.last().map_or(1.0, |point| f64::from(point.p));
        let line = grid(1.0, largest, false).into_iter().map(|p| (p, curve.y(p))).collect();
        panel = panel
            .with(Series::points(name(fit, "fitted points"), fitted).with_look(look))
            .with(Series::line("", line).with_look(look));
    }
    Some(panel)
}

/// Figure 3b: elapsed time over rank count, measured and, where there is a model, modelled.
fn time(fits: &[Fit]) -> Option<Panel> {
    fits.first()?;
    let mut panel =
        Panel::new(Axis::log10("ranks p", "").whole(), Axis::log10("elapsed time τ", "s"));
    for (look, fit) in fits.iter().enumerate() {
        let Some(model) = &fit.model else {
            let points = fit.series.points.iter();
            let measured = points.map(|point| (f64::from(point.p), point.tau_s)).collect();
            let measured = Series::line_and_points(name(fit, "measured"), measured);
            panel = panel.with(measured.with_look(look));
            continue;
        };
        let left_out = |p: u32| {
            fit.left_out.iter().any(|(q, why)| *q == p && matches!(why, LeftOut::Efficiency(_)))
        };
        let measured = fit.series.points.iter();
        let measured = measured.map(|point| (f64::from(point.p), point.tau_s, left_out(point.p)));
        let (out, fitted): (Vec<_>, Vec<_>) = measured.partition(|(_, _, out)| *out);
        let bare = |all: Vec<(f64, f64, bool)>| all.into_iter().map(|(p, t, _)| (p, t)).collect();
        let (from, to) = extent(fit);
        let curve = line(fit, from, to);
        panel = panel
            .with(Series::points(name(fit, "measured"), bare(fitted)).with_look(look))
            .with(Series::line(if fits.len() == 1 { "model" } else { "" }, curve).with_look(look));
        if !out.is_empty() {
            let shown = Series::points("not fitted: ε' out of range", bare(out));
            panel = panel.with(shown.with_look(look + fits.len()));
        }
        if let (1, Some(p_c)) = (fits.len(), model.curve.p_c())
            && p_c < 3.0 * to
        {
            panel = panel.with_reference(Reference::vertical(p_c, format!("p_c = {p_c:.0}")));
        }
    }
    Some(panel)
}

/// Figure 5: overhead over rank count, measured and modelled.
fn overhead(fit: &Fit) -> Option<Panel> {
    let curve = fit.model.as_ref()?.curve;
    let points = fit.series.points.iter().filter(|point| point.p >= fit.p1);
    let measured: Vec<(f64, f64)> =
        points.filter_map(|point| Some((f64::from(point.p), point.chi_s()?))).collect();
    let (from, to) = extent(fit);
    let chi = |p: f64| fit.relative_work_at(p).map(|work| (p, work * curve.chi_s(p)));
    let model: Vec<(f64, f64)> = grid(from, to, false).into_iter().filter_map(chi).collect();
    let ranges: Vec<(f64, f64, f64)> = fit
        .series
        .points
        .iter()
        .filter_map(|point| point.chi_range_s.map(|(lo, hi)| (f64::from(point.p), lo, hi)))
        .collect();
    let mut panel = Panel::new(
        Axis::linear("ranks p", "").from_zero().whole(),
        Axis::linear("lost time", "s").from_zero(),
    )
    .titled(name(fit, ""))
    .with(Series::line("χ' of the model", model).with_look(1));
    if !ranges.is_empty() {
        panel = panel
            .with(Series::new("χ of the ranks, least to most", Marks::Ranges(ranges)).with_look(0));
    }
    Some(panel.with(Series::points("χ measured", measured).with_look(0)))
}

/// Figure 6: the prediction, with its interval.
fn prediction(fit: &Fit) -> Option<Panel> {
    if fit.model.is_none() && fit.evidence.is_none() {
        return None;
    }
    let (from, to) = extent(fit);
    let fitted = |p: u32| fit.fitted.iter().any(|point| point.measured && point.p == p);
    let points = |wanted: bool| -> Vec<(f64, f64)> {
        let all = fit.series.points.iter().filter(|point| fitted(point.p) == wanted);
        all.map(|point| (f64::from(point.p), point.tau_s)).collect()
    };
    let mut panel =
        Panel::new(Axis::log10("ranks p", "").whole(), Axis::log10("elapsed time τ", "s"))
            .titled(name(fit, ""));
    let band = fit.band(&grid(from, to, true));
    let inside = if fit.evidence.is_some() { "90 % interval" } else { "90 % of runs" };
    if !band.is_empty() {
        // A logarithmic axis cannot show an interval that reaches down to 0.
        let least =
            predicted(fit, from, to).iter().map(|(_, tau)| *tau).fold(f64::INFINITY, f64::min);
        let band = band.into_iter().map(|(p, i)| (p, i.lo.max(least / 10.0), i.hi)).collect();
        panel = panel.with(Series::new(inside, Marks::Band(band)).with_look(0));
    }
    panel = panel
        .with(Series::line("predicted", predicted(fit, from, to)).with_look(0))
        .with(Series::points("fitted", points(true)).with_look(0));
    let held_back = points(false);
    if !held_back.is_empty() {
        panel = panel.with(Series::points("not fitted", held_back).with_look(1));
    }
    Some(panel)
}

/// The smallest and the largest rank count measured or predicted.
fn extent(fit: &Fit) -> (f64, f64) {
    let measured = fit.series.points.iter().map(|point| point.p);
    let predicted = fit.predictions.iter().filter(|p| p.tau_s.is_ok()).map(|p| p.p);
    let all: Vec<u32> = measured.chain(predicted).collect();
    let least = all.iter().copied().min().unwrap_or(1);
    let most = all.iter().copied().max().unwrap_or(1);
    (f64::from(least), f64::from(most).max(f64::from(least) * 1.5))
}

fn line(fit: &Fit, from: f64, to: f64) -> Vec<(f64, f64)> {
    let tau = |p: f64| {
        let work = fit.relative_work_at(p)?;
        Some((p, fit.model.as_ref()?.curve.tau_s(p, work)))
    };
    grid(from, to, true).into_iter().filter_map(tau).filter(|(_, tau)| *tau > 0.0).collect()
}

/// The predicted curve, from the evidence if there is any, else from the three terms.
fn predicted(fit: &Fit, from: f64, to: f64) -> Vec<(f64, f64)> {
    let tau = |p: f64| Some((p, fit.predicted_s(p)?));
    grid(from, to, true).into_iter().filter_map(tau).collect()
}

fn grid(from: f64, to: f64, logarithmic: bool) -> Vec<f64> {
    const STEPS: i32 = 80;
    let at = |share: f64| match logarithmic {
        true => from * (to / from).powf(share),
        false => from + (to - from) * share,
    };
    (0..=STEPS).map(|step| at(f64::from(step) / f64::from(STEPS))).collect()
}
