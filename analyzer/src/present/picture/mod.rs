//! Draws pictures of one run as SVG, for papers and for the HTML page.

pub mod matrix;
pub mod timeline;

use crate::metrics::activity::{Activity, Kind};

use super::figure::{Axis, Figure, Marks, Panel, Reference, Series};
use super::shown::Report;

/// τ–χ space: every rank at (τ_i, τ_i − γ_i), the run at (τ, χ), and lines of equal efficiency.
pub fn tau_chi(report: &Report) -> Figure {
    let metrics = report.metrics;
    let points: Vec<(f64, f64)> = metrics
        .participants()
        .map(|rank| (rank.elapsed_s, (rank.elapsed_s - rank.compute_s).max(0.0)))
        .collect();
    let mean = metrics.participants().map(|rank| metrics.elapsed_s - rank.compute_s).sum::<f64>()
        / points.len().max(1) as f64;
    let mut panel = Panel::new(
        Axis::linear("elapsed time τ", "s").from_zero(),
        Axis::linear("lost time χ", "s").from_zero(),
    )
    .with(Series::points("ranks", points))
    .with(Series::points("run", vec![(metrics.elapsed_s, mean.max(0.0))]).with_look(1));
    for efficiency in [0.95, 0.9, 0.8, 0.6, 0.4, 0.2] {
        panel = panel
            .with_reference(Reference::proportional(1.0 - efficiency, format!("ε {efficiency}")));
    }
    Figure::new("", panel)
}

/// Number of messages by size, in size classes that double; `None` without messages.
pub fn sizes(report: &Report) -> Option<Figure> {
    let metrics = report.metrics.messages.as_ref()?;
    // The axis cannot show a size of 0: empty messages have a bar of their own below 1 byte.
    let bars = metrics.sizes.iter().map(|class| match class.from_bytes {
        0 => (0.5, 1.0, class.traffic.count as f64),
        from => (from as f64, 2.0 * from as f64, class.traffic.count as f64),
    });
    let bars: Vec<_> = bars.collect();
    if bars.is_empty() {
        return None;
    }
    let empty = bars.iter().any(|bar| bar.0 == 0.5);
    let unit = if empty { "B; empty ones left of 1" } else { "B" };
    let panel =
        Panel::new(Axis::log2("message size", unit), Axis::linear("messages", "").from_zero())
            .with(Series::new("", Marks::Bars(bars)));
    Some(Figure::new("", panel))
}

/// Number of calls of the whole run by duration and kind, in classes of duration that double.
pub fn durations(activity: &Activity) -> Option<Figure> {
    let mut panel = Panel::new(Axis::log10("duration of a call", "s"), Axis::log10("calls", ""));
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Own && *kind != Kind::Tool) {
        let classes = activity.durations.counts.iter().enumerate().skip(1);
        let points: Vec<(f64, f64)> = classes
            .map(|(class, counts)| {
                (2f64.powf(class as f64 - 0.5) * 1e-9, counts[kind as usize] as f64)
            })
            .filter(|(_, count)| *count > 0.0)
            .collect();
        if !points.is_empty() {
            panel = panel.with(Series::line_and_points(kind.name(), points));
        }
    }
    (!panel.series.is_empty()).then(|| Figure::new("", panel))
}

#[cfg(test)]
mod tests;
