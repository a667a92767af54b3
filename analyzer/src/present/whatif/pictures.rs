//! Draws the time of a run against one parameter at a time.

use crate::present::figure::{Axis, Figure, Panel, Reference, Series};
use crate::replay::{Change, WhatIf};

/// Factors on the costs of messages.
const COSTS: (f64, f64) = (0.125, 16.0);
/// Factors on the speed of computation.
const SPEEDS: (f64, f64) = (0.5, 8.0);
/// Points of a curve for each doubling of a factor.
const PER_DOUBLING: f64 = 2.0;
/// Points of the curve of added latency.
const LATENCIES: u32 = 32;
/// Maximum numbers of ranks and regions that are drawn, and their least share of the run's time.
const MAX_CURVES: usize = 4;
const MIN_SHARE: f64 = 0.02;

/// The time of a run against the costs of messages, against added latency with the slowdowns that it causes, and
/// against the speed of the regions and ranks that take most of the critical path.
///
/// Changes are made one at a time and everything else stays as recorded. A panel without anything to show is left out.
pub fn sensitivity(what_if: &WhatIf) -> Figure {
    let panels = [Some(costs(what_if)), added_latency(what_if), speeds(what_if)];
    let panels: Vec<Panel> = panels.into_iter().flatten().collect();
    let columns = panels.len();
    Figure::grid("", panels, columns)
}

fn time_axis() -> Axis {
    Axis::linear("elapsed time", "s").from_zero()
}

/// Factors from the first to the second at equal distances on a logarithmic axis.
fn factors((from, to): (f64, f64)) -> Vec<f64> {
    let steps = ((to / from).log2() * PER_DOUBLING).round() as u32;
    (0..=steps).map(|step| from * 2f64.powf(f64::from(step) / PER_DOUBLING)).collect()
}

fn costs(what_if: &WhatIf) -> Panel {
    let factors = factors(COSTS);
    let curve = |name: &str, changes: fn(f64) -> Vec<Change>| {
        Series::line(name, what_if.curve(&factors, changes))
    };
    let latency = |factor| vec![Change::Latency(factor)];
    let bytes = |factor: f64| vec![Change::Bandwidth(1.0 / factor)];
    let overhead = |factor| vec![Change::Overhead(factor)];
    let all = |factor: f64| {
        let bandwidth = Change::Bandwidth(1.0 / factor);
        vec![Change::Latency(factor), bandwidth, Change::Overhead(factor)]
    };
    let mut panel = Panel::new(Axis::log2("factor on message costs", ""), time_axis());
    if what_if.is_told_apart() {
        panel = panel
            .with(curve("latency", latency))
            .with(curve("time per byte", bytes))
            .with(curve("overhead", overhead));
    }
    panel.with(curve("all three", all)).with_reference(Reference::vertical(1.0, "as recorded"))
}

/// `None` if no latency makes the run slower.
fn added_latency(what_if: &WhatIf) -> Option<Panel> {
    let own = what_if.calibration.network.latency[what_if.hop()];
    let tolerated = |slowdown: f64| what_if.tolerated_latency(slowdown).0.map(|found| found - own);
    let largest = tolerated(0.05)? * 1.25;
    let added: Vec<f64> =
        (0..=LATENCIES).map(|at| largest * f64::from(at) / f64::from(LATENCIES)).collect();
    let curve = what_if.curve_of_added_latency(&added);
    let at_unit = |(added, seconds): (f64, f64)| (added * 1e6, seconds);
    let mut panel = Panel::new(
        Axis::linear("latency added to each message", "µs"),
        Axis::linear("elapsed time", "s"),
    )
    .with(Series::line("", curve.into_iter().map(at_unit).collect()));
    for (slowdown, name) in [(0.01, "+1 %"), (0.02, "+2 %"), (0.05, "+5 %")] {
        let seconds = what_if.graph.elapsed_s * (1.0 + slowdown);
        if let Some(added) = tolerated(slowdown) {
            panel = panel
                .with(Series::points("", vec![(added * 1e6, seconds)]).with_look(1))
                .with_annotation(added * 1e6, seconds, name);
        }
    }
    Some(panel)
}

/// `None` if no region or rank takes a notable share of the critical path.
fn speeds(what_if: &WhatIf) -> Option<Panel> {
    let factors = factors(SPEEDS);
    let regions = what_if.regions().into_iter();
    let regions: Vec<(f64, String)> =
        regions.map(|name| (what_if.on_path(name), name.to_owned())).collect();
    let ranks: Vec<(f64, usize)> = what_if.on_path_by_rank().into_iter().zip(0..).collect();
    let mut panel = Panel::new(Axis::log2("speed factor", ""), time_axis());
    for (_, name) in largest(what_if, regions) {
        let changes = |factor| vec![Change::RegionSpeed(name.clone(), factor)];
        panel = panel.with(Series::line(name.clone(), what_if.curve(&factors, changes)));
    }
    for (_, position) in largest(what_if, ranks) {
        let changes = |factor| vec![Change::RankSpeed(position, factor)];
        let name = format!("rank {}", what_if.graph.run.ranks[position].rank);
        panel = panel.with(Series::line(name, what_if.curve(&factors, changes)));
    }
    (!panel.series.is_empty())
        .then(|| panel.with_reference(Reference::vertical(1.0, "as recorded")))
}

/// Those that take most of the critical path, the largest first.
fn largest<T>(what_if: &WhatIf, mut all: Vec<(f64, T)>) -> Vec<(f64, T)> {
    all.retain(|(seconds, _)| *seconds >= MIN_SHARE * what_if.graph.elapsed_s);
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.truncate(MAX_CURVES);
    all
}
