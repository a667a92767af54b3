//! Draws a measured machine: times and bandwidth over message size with the fitted straight pieces, and the queue
//! experiment.

use crate::models::machine::{Machine, Measured, PairClass, Piece, SizeTimes};
use crate::present::figure::{Axis, Figure, Marks, Panel, Reference, Series, Width};

/// Style of the curve that is computed from the gap.
const GAP_STYLE: usize = 2;

type Quantity = fn(&SizeTimes) -> &Measured;

pub fn all(machine: &Machine) -> Vec<(&'static str, Figure)> {
    let mut all = vec![
        ("machine-latency.svg", latency(machine)),
        ("machine-bandwidth.svg", bandwidth(machine)),
    ];
    if machine.network.classes.iter().any(|class| !class.queues.is_empty()) {
        all.push(("machine-queues.svg", queues(machine)));
    }
    all
}

/// Half the round trip, the gap and the overheads over message size, with a panel for each class of pairs; lines are
/// the fitted pieces of RTT/2 and of the gap.
pub fn latency(machine: &Machine) -> Figure {
    let panel = |class: &PairClass| {
        let curve = |of: fn(&SizeTimes) -> &Measured| points(class, |size| of(size).median * 1e6);
        let panel = Panel::new(Axis::log2("message size", "B"), Axis::log10("time", "µs"))
            .titled(class.class.clone())
            .with(Series::points("RTT/2", curve(|size| &size.half_rtt_s)).with_look(0))
            .with(Series::points("gap", curve(|size| &size.gap_s)).with_look(1))
            .with(Series::points("o_s", curve(|size| &size.send_overhead_s)).with_look(2))
            .with(Series::points("o_r", curve(|size| &size.receive_overhead_s)).with_look(3))
            .with(Series::line("", lines(&class.fits.half_rtt, 0)).with_look(0))
            .with(Series::line("", lines(&class.fits.gap, 1)).with_look(1));
        with_eager_limit(panel, class)
    };
    grid("Time of a message", machine.network.classes.iter().map(panel).collect())
}

/// Bandwidth over message size, with a panel for each class of pairs: medians with their 95 % intervals, and as a line
/// the bandwidth s / (g + (s − 1)·G) that follows from the fitted pieces of the gap.
pub fn bandwidth(machine: &Machine) -> Figure {
    let panel = |class: &PairClass| {
        let mut panel =
            Panel::new(Axis::log2("message size", "B"), Axis::log10("bandwidth", "GB/s"))
                .titled(class.class.clone());
        let curves: [(&str, Quantity); 2] = [
            ("one way", |size| &size.one_way_bytes_per_s),
            ("both ways", |size| &size.both_ways_bytes_per_s),
        ];
        for (look, (name, of)) in curves.into_iter().enumerate() {
            let intervals = class.sizes.iter().map(|size| {
                let figure = of(size);
                (size.bytes as f64, figure.low * 1e-9, figure.high * 1e-9)
            });
            panel = panel
                .with(
                    Series::line_and_points(name, points(class, |size| of(size).median * 1e-9))
                        .with_look(look),
                )
                .with(Series::new("", Marks::Ranges(intervals.collect())).with_look(look));
        }
        let by_gap = lines(&class.fits.gap, 1).into_iter();
        let by_gap = by_gap.map(|(bytes, gap_us)| (bytes, bytes / gap_us * 1e-3)).collect();
        panel = panel.with(Series::line("size over fitted gap", by_gap).with_look(GAP_STYLE));
        let several: Vec<u32> = {
            let mut counts: Vec<u32> = class
                .flows
                .iter()
                .filter(|flow| flow.shape == "hub-both")
                .map(|flow| flow.partners)
                .collect();
            counts.dedup();
            counts.sort_unstable();
            counts.dedup();
            counts.into_iter().filter(|count| *count > 1).collect()
        };
        for (index, count) in several.into_iter().enumerate() {
            let flows = class
                .flows
                .iter()
                .filter(|flow| flow.shape == "hub-both" && flow.partners == count);
            let points =
                flows.map(|flow| (flow.bytes as f64, flow.bytes_per_s.median * 1e-9)).collect();
            panel = panel.with(
                Series::line_and_points(format!("{count} partners, both"), points)
                    .with_look(GAP_STYLE + 1 + index),
            );
        }
        with_eager_limit(panel, class)
    };
    grid("Bandwidth", machine.network.classes.iter().map(panel).collect())
}

/// Number of sends that complete with no receive posted, with a panel for each class of pairs.
pub fn queues(machine: &Machine) -> Figure {
    let panel = |class: &PairClass| {
        let count = |messages: u64| messages.max(1) as f64;
        let outside = class.queues.iter().filter(|queue| queue.receiver_outside_mpi.messages > 0);
        let inside = class.queues.iter().filter(|queue| queue.receiver_in_mpi.messages > 0);
        let outside: Vec<(f64, f64)> = outside
            .map(|queue| (queue.bytes as f64, count(queue.receiver_outside_mpi.messages)))
            .collect();
        let inside: Vec<(f64, f64)> = inside
            .map(|queue| (queue.bytes as f64, count(queue.receiver_in_mpi.messages)))
            .collect();
        let capped = class.queues.iter().find(|queue| queue.receiver_in_mpi.at_least);
        let mut panel =
            Panel::new(Axis::log2("message size", "B"), Axis::log10("messages held", ""))
                .titled(class.class.clone())
                .with(Series::line_and_points("SQ + TQ: receiver outside MPI", outside))
                .with(Series::line_and_points("SQ + TQ + RQ: receiver in MPI", inside));
        if let Some(queue) = capped {
            let most = queue.receiver_in_mpi.messages;
            panel = panel.with_reference(Reference::horizontal(most as f64, "most tried"));
        }
        with_eager_limit(panel, class)
    };
    grid(
        "Sends that complete with no receive posted",
        machine.network.classes.iter().map(panel).collect(),
    )
}

fn grid(title: &str, panels: Vec<Panel>) -> Figure {
    let columns = panels.len().clamp(1, 2);
    let figure = Figure::grid(title, panels, columns);
    if columns == 1 { figure.with_width(Width::Page).with_aspect(0.5) } else { figure }
}

fn with_eager_limit(panel: Panel, class: &PairClass) -> Panel {
    match class.eager_limit {
        limit if limit.at_least || limit.bytes == 0 => panel,
        limit => panel.with_reference(Reference::vertical(limit.bytes as f64, "eager limit")),
    }
}

fn points(class: &PairClass, value: impl Fn(&SizeTimes) -> f64) -> Vec<(f64, f64)> {
    class
        .sizes
        .iter()
        .map(|size| (size.bytes as f64, value(size)))
        .filter(|(_, y)| *y > 0.0)
        .collect()
}

/// The fitted pieces as one line with gaps, in µs.
fn lines(pieces: &[Piece], from_zero: u64) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    for piece in pieces {
        let (mut bytes, to) = (piece.from_bytes.max(1) as f64, piece.to_bytes as f64);
        loop {
            let time = piece.fixed_s + (bytes - from_zero as f64).max(0.0) * piece.per_byte_s;
            points.push((bytes, time * 1e6));
            if bytes >= to {
                break;
            }
            bytes = (bytes * 1.2).min(to);
        }
        points.push((f64::NAN, f64::NAN));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::machine::tests::machine;

    #[test]
    fn draws_every_size_and_piece_and_marks_the_eager_limit() {
        let machine = machine();
        let pictures = all(&machine);
        assert_eq!(pictures.len(), 3);
        for (name, figure) in &pictures {
            assert!(figure.svg().contains("eager limit"), "{name}");
        }
        let latency = latency(&machine);
        let series = &latency.panels[0].series;
        let Marks::Points(points) = &series[0].marks else { panic!("{series:?}") };
        assert_eq!(points.len(), machine.network.classes[0].sizes.len());
        let Marks::Line(line) = &series[4].marks else { panic!("{series:?}") };
        assert_eq!(line.iter().filter(|(x, _)| x.is_nan()).count(), 2, "a gap after each piece");
    }
}
