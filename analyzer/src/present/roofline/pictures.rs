//! Draws rooflines as SVG: the points of a run under the roofs of computation, communication and memory; a sweep of
//! intensities; the published systems.

use crate::models::roofline::findings::{Assessment, RunFindings};
use crate::models::roofline::sweep::Sweep;
use crate::models::roofline::systems::System;
use crate::models::roofline::{Findings, Roofs, Scope, WhatIf, with_overlap, without_overlap};

use super::super::figure::{Axis, Figure, Panel, Reference, Series};

/// Maximum number of points drawn; more make a figure unreadable.
const MAX_POINTS: usize = 8;
const G: f64 = 1e9;

/// The figures that have something to show, as file names and SVG documents.
pub fn figures(findings: &Findings) -> Vec<(String, String)> {
    drawings(findings).into_iter().map(|(name, figure)| (name, figure.svg())).collect()
}

pub(in crate::present) fn drawings(findings: &Findings) -> Vec<(String, Figure)> {
    let mut figures = Vec::new();
    let numbered = |stem: &str, index: usize, of: usize| match of {
        1 => format!("{stem}.svg"),
        _ => format!("{stem}-{}.svg", index + 1),
    };
    for (index, run) in findings.runs.iter().enumerate() {
        let panels: Vec<Panel> =
            [communication(run, &findings.what_if), memory(run)].into_iter().flatten().collect();
        if !panels.is_empty() {
            let figure = Figure::grid("Roofline", panels.clone(), panels.len());
            figures.push((numbered("roofline", index, findings.runs.len()), figure));
        }
    }
    for (index, sweep) in findings.sweeps.iter().enumerate() {
        let title = format!("Roofline with communication, {} ranks", sweep.ranks);
        let name = numbered("sweep", index, findings.sweeps.len());
        figures.push((name, Figure::new(title, sweep_panel(sweep))));
    }
    if !findings.systems.is_empty() {
        let figure =
            Figure::new("Systems of Yasuda et al., B both ways", systems(&findings.systems));
        figures.push(("systems.svg".into(), figure));
    }
    figures
}

/// Intensities evenly spaced on a logarithmic axis, with `through` among them.
fn grid((from, to): (f64, f64), through: f64) -> Vec<f64> {
    let steps = 96;
    let at = |step: i32| from * (to / from).powf(f64::from(step) / f64::from(steps));
    let mut all: Vec<f64> = (0..=steps).map(at).collect();
    if (from..to).contains(&through) {
        all.push(through);
        all.sort_by(f64::total_cmp);
    }
    all
}

/// The range of the values, with a decade on both sides.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite() && *value > 0.0);
    let (low, high) =
        finite.fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    if low > high { (0.01, 1000.0) } else { (low / 10.0, high * 10.0) }
}

fn scaled(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.into_iter().map(|(x, y)| (x, y / G)).collect()
}

fn axes(across: &str) -> Panel {
    Panel::new(Axis::log10(across, "flop/B"), Axis::log10("performance", "Gflop/s"))
}

/// Adds the ceilings of operations; those too close to be told apart share a line.
fn with_ceilings(mut panel: Panel, roofs: &Roofs) -> Panel {
    let mut lines: Vec<(f64, String)> = Vec::new();
    for ceiling in &roofs.compute {
        let close = |(rate, _): &&mut (f64, String)| (ceiling.rate / *rate).ln().abs() < 0.2;
        match lines.iter_mut().find(close) {
            Some((_, label)) => *label = format!("{label}, {}", ceiling.name),
            None => lines.push((ceiling.rate, ceiling.name.clone())),
        }
    }
    for (rate, label) in lines {
        panel = panel.with_reference(Reference::horizontal(rate / G, label));
    }
    panel
}

fn drawn_points(run: &RunFindings) -> Vec<&Assessment> {
    // Hosts have roofs of their own; the figure shows only the whole job.
    run.assessed.iter().filter(|one| one.point.scope == Scope::Job).take(MAX_POINTS).collect()
}

fn communication(run: &RunFindings, changes: &[WhatIf]) -> Option<Panel> {
    let placed = drawn_points(run);
    let roofs = &placed.first()?.roofs;
    let (f, b) = (roofs.flops_per_s()?, roofs.bytes_per_s()?);
    let intensities = placed.iter().filter_map(|one| one.point.intensity());
    let x = range(intensities.chain([f / b]));
    let line = |curve: &dyn Fn(f64) -> f64, through: f64| {
        scaled(grid(x, through).into_iter().map(|i| (i, curve(i))).collect())
    };
    let mut panel = with_ceilings(axes("flop per byte communicated"), roofs)
        .titled("communication")
        .with(
            Series::line("roof, all overlaps", line(&|i| with_overlap(f, b, i), f / b))
                .with_look(0),
        )
        .with(
            Series::line("nothing overlaps", line(&|i| without_overlap(f, b, i), f / b))
                .with_look(1),
        );
    if let Some(own) = roofs.own_sizes {
        let curve = line(&|i| with_overlap(f, own, i), f / own);
        panel = panel.with(Series::line("roof, own message sizes", curve).with_look(2));
    }
    for one in roofs.communication.iter().skip(1) {
        let curve = line(&|i| with_overlap(f, one.both, i), f / one.both);
        panel = panel.with(Series::line(format!("roof, {}", one.name), curve).with_look(3));
    }
    for (index, one) in placed.iter().enumerate() {
        let (Some(i), Some(attained)) = (one.point.intensity(), one.point.attained()) else {
            continue;
        };
        panel = panel
            .with(Series::points(&one.point.name, vec![(i, attained / G)]).with_look(4 + index));
    }
    for (index, change) in changes.iter().enumerate() {
        let moved = |one: &&Assessment| {
            let (to, roof, _) = change.apply(one.point.intensity()?, &one.roofs)?;
            Some((to, roof / G))
        };
        let points = placed.iter().filter_map(moved).collect();
        let look = 4 + placed.len() + index;
        panel =
            panel.with(Series::points(format!("bound, {}", change.name()), points).with_look(look));
    }
    Some(panel)
}

/// The classical roofline. Without a counter, the intensity is an upper bound: BLAS operands, each read once.
fn memory(run: &RunFindings) -> Option<Panel> {
    let placed = drawn_points(run);
    let roofs = &placed.first()?.roofs;
    let (f, b) = (roofs.flops_per_s()?, roofs.memory?);
    let points: Vec<_> = placed
        .iter()
        .filter_map(|one| Some((one, one.point.memory_intensity()?, one.point.attained()?)))
        .collect();
    if points.is_empty() {
        return None;
    }
    let x = range(points.iter().map(|(_, i, _)| *i).chain([f / b]));
    let roof = grid(x, f / b).into_iter().map(|i| (i, with_overlap(f, b, i))).collect();
    let counted = points.iter().any(|(one, ..)| one.point.counted_bytes.is_some());
    let axis = match counted {
        true => "flop per byte counted",
        false => "flop per byte of operands (at most)",
    };
    let mut panel = with_ceilings(axes(axis), roofs)
        .titled("memory")
        .with(Series::line("roof, triad", scaled(roof)).with_look(0));
    for (index, (one, i, attained)) in points.into_iter().enumerate() {
        panel = panel
            .with(Series::points(&one.point.name, vec![(i, attained / G)]).with_look(4 + index));
    }
    Some(panel)
}

fn sweep_panel(sweep: &Sweep) -> Panel {
    let points = &sweep.points;
    let line = |value: &dyn Fn(&crate::models::roofline::sweep::SweepPoint) -> f64| {
        scaled(points.iter().map(|point| (point.intensity, value(point))).collect())
    };
    axes("flop per byte communicated")
        .with(Series::line("roof, all overlaps", line(&|point| point.with_overlap())).with_look(0))
        .with(Series::line("nothing overlaps", line(&|p| p.without_overlap())).with_look(1))
        .with(Series::points("measured", line(&|point| point.attained.median)).with_look(2))
}

fn systems(all: &[System]) -> Panel {
    let mut panel = axes("flop per byte between nodes");
    for system in all {
        let (f, b) = (system.peak_flops_per_s, 2.0 * system.one_way_bytes_per_s);
        let roof = grid((0.1, 1000.0), f / b).into_iter().map(|i| (i, with_overlap(f, b, i)));
        panel = panel.with(Series::line(system.name, scaled(roof.collect())));
    }
    panel
}
