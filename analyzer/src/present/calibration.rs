//! A clock calibration for people: [`Calibration`] comes in, the terminal's tables and a figure go out.

use super::context::{plural, shortened};
use super::figure::{Axis, Figure, Marks, Panel, Reference, Series};
use super::quantity::{count, nanoseconds, significant};
use super::table::Table;
use crate::calibration::{Calibration, PairCalibration, TrialCalibration};
use crate::plain_text::printable;

/// Pairs up to which all trials are shown.
const MOST_PAIRS: usize = 4;
/// Longest bar of a histogram, characters.
const BAR: usize = 40;

/// The tables.
pub fn screen(calibration: &Calibration) -> String {
    let mut text = header(calibration);
    text.push('\n');
    push(
        &mut text,
        "PAIRS",
        "offset: parent's counter less child's, the median of the trials but the first",
        &pair_table(calibration),
    );
    for pair in calibration.pairs.iter().take(MOST_PAIRS) {
        let title = format!("TRIALS {} against {}", pair.child, pair.parent);
        let what = "deviation from that offset; the first trial is not counted";
        push(&mut text, &title, what, &trial_table(pair));
        let title = format!("ROUND TRIPS {} and {}", pair.child, pair.parent);
        let what = format!("{} exchanges, both ways", count(pair.round_trips.count as u64));
        push(&mut text, &title, &what, &histogram(pair));
    }
    if calibration.pairs.len() > MOST_PAIRS {
        let more = calibration.pairs.len() - MOST_PAIRS;
        text.push_str(&format!("\n{} (--json has all)\n", plural(more, "more pair")));
    }
    match calibration.estimators.is_empty() {
        false => push(
            &mut text,
            "ESTIMATORS",
            "absolute error, truth 0: both ranks read one counter",
            &estimator_table(calibration),
        ),
        true => text.push_str(
            "\nESTIMATORS  not compared: no pair runs on one kernel, so no true offset is known\n",
        ),
    }
    text
}

fn header(calibration: &Calibration) -> String {
    let hosts: std::collections::BTreeSet<&String> = calibration.hosts.iter().collect();
    let trials = calibration.pairs.first().map_or(0, |pair| pair.trials.len());
    let drift = match calibration.drift_s {
        seconds if seconds > 0.0 => format!(" | again after {} s", significant(seconds, 3)),
        _ => String::new(),
    };
    printable(&format!(
        "{} | {}, {} | {} | {} of {} each way{drift}",
        calibration.mpi,
        plural(hosts.len(), "host"),
        plural(calibration.hosts.len(), "rank"),
        calibration.counter,
        plural(trials, "trial"),
        plural(calibration.rounds as usize, "exchange"),
    ))
}

fn push(text: &mut String, title: &str, what: &str, lines: &[String]) {
    text.push_str(&format!("\n{title}  {what}\n"));
    for line in lines {
        text.push_str(&format!("  {line}\n"));
    }
}

/// Nanoseconds with a sign.
fn signed(value_ns: f64) -> String {
    let sign = if value_ns < 0.0 { "-" } else { "+" };
    format!("{sign}{}", nanoseconds(value_ns.abs()))
}

fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.map(f64::abs).fold(0.0, f64::max)
}

/// The trials that count: without the first, where there are others.
fn counted(pair: &PairCalibration) -> &[TrialCalibration] {
    match pair.trials.len() {
        0 | 1 => &pair.trials,
        _ => &pair.trials[1..],
    }
}

fn pair_table(calibration: &Calibration) -> Vec<String> {
    let pairs = &calibration.pairs;
    let hosts = |pair: &PairCalibration| -> (&str, &str) {
        (&calibration.hosts[pair.child], &calibration.hosts[pair.parent])
    };
    let mut table = Table::default();
    table.right("child", pairs.iter().map(|pair| pair.child.to_string()));
    table.right("parent", pairs.iter().map(|pair| pair.parent.to_string()));
    if calibration.hosts.iter().any(|host| *host != calibration.hosts[0]) {
        table.left(
            "hosts",
            pairs.iter().map(|pair| {
                let (child, parent) = hosts(pair);
                shortened(&printable(&format!("{child}, {parent}")))
            }),
        );
    }
    table.right("offset", pairs.iter().map(|pair| signed(pair.reference_ns)));
    let spread =
        |pair: &PairCalibration| largest(counted(pair).iter().map(|trial| trial.forward_ns));
    table.right("spread", pairs.iter().map(|pair| format!("±{}", nanoseconds(spread(pair)))));
    let apart = |pair: &PairCalibration| {
        largest(counted(pair).iter().map(|trial| trial.reverse_ns - trial.forward_ns))
    };
    table.right(
        "reverse - forward",
        pairs.iter().map(|pair| format!("≤ {}", nanoseconds(apart(pair)))),
    );
    let bound = |pair: &PairCalibration| largest(counted(pair).iter().map(|trial| trial.bound_ns));
    table.right("bound", pairs.iter().map(|pair| format!("±{}", nanoseconds(bound(pair)))));
    if pairs.iter().any(|pair| pair.truth_known) {
        let error = |pair: &PairCalibration| match pair.truth_known {
            true => nanoseconds(largest(counted(pair).iter().filter_map(|trial| trial.error_ns))),
            false => "?".into(),
        };
        table.right("error", pairs.iter().map(error));
    }
    table.right("rtt min", pairs.iter().map(|pair| nanoseconds(pair.round_trips.min_ns)));
    table.right("median", pairs.iter().map(|pair| nanoseconds(pair.round_trips.median_ns)));
    table.right("p99", pairs.iter().map(|pair| nanoseconds(pair.round_trips.p99_ns)));
    if pairs.iter().any(|pair| pair.drift_ppm.is_some()) {
        table.right("drift/ppm", pairs.iter().map(drift));
    }
    table.lines()
}

fn drift(pair: &PairCalibration) -> String {
    match (pair.drift_ppm, pair.drift_bound_ppm) {
        (Some(ppm), Some(bound)) => format!("{ppm:+.4} ± {bound:.4}"),
        _ => "?".into(),
    }
}

fn trial_table(pair: &PairCalibration) -> Vec<String> {
    let mut table = Table::default();
    table.right("trial", (1..=pair.trials.len()).map(|trial| trial.to_string()));
    table.right("forward", pair.trials.iter().map(|trial| signed(trial.forward_ns)));
    table.right("reverse", pair.trials.iter().map(|trial| signed(trial.reverse_ns)));
    table.right(
        "bound",
        pair.trials.iter().map(|trial| format!("±{}", nanoseconds(trial.bound_ns))),
    );
    if pair.truth_known {
        let error = |trial: &TrialCalibration| trial.error_ns.map_or("?".into(), signed);
        table.right("error", pair.trials.iter().map(error));
    }
    table.lines()
}

fn histogram(pair: &PairCalibration) -> Vec<String> {
    let bins = &pair.round_trips.bins;
    let most = bins.iter().map(|bin| bin.2).max().unwrap_or(0).max(1);
    let mut table = Table::default();
    table.right("from", bins.iter().map(|bin| nanoseconds(bin.0)));
    table.right("count", bins.iter().map(|bin| count(bin.2)));
    let bar = |bin: &(f64, f64, u64)| {
        let length = (bin.2 as f64 / most as f64 * BAR as f64).round() as usize;
        "#".repeat(length.max(usize::from(bin.2 > 0)))
    };
    table.left("", bins.iter().map(bar));
    let mut lines = table.lines();
    lines.push(format!("the last line holds all up to {}", nanoseconds(pair.round_trips.max_ns)));
    lines
}

fn estimator_table(calibration: &Calibration) -> Vec<String> {
    let rows = &calibration.estimators;
    let mut table = Table::default();
    table.left("estimator", rows.iter().map(|row| row.name.clone()));
    table.right("p50", rows.iter().map(|row| nanoseconds(row.p50_ns)));
    table.right("p95", rows.iter().map(|row| nanoseconds(row.p95_ns)));
    table.right("max", rows.iter().map(|row| nanoseconds(row.max_ns)));
    table.right("estimates", rows.iter().map(|row| count(row.count as u64)));
    table.lines()
}

/// Deviation of each trial from the reference, forward and reverse, one panel a pair (the first
/// `MOST_PAIRS`): the paper's figure of ten trials. Bars are the estimate's own bound.
pub fn figure(calibration: &Calibration) -> String {
    let shown: Vec<&PairCalibration> = calibration.pairs.iter().take(MOST_PAIRS).collect();
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
        .with(Series::new("bound", Marks::Ranges(bounds.collect())).looking(0))
        .with(Series::line_and_points("forward", forward).looking(0))
        .with(Series::line_and_points("reverse", reverse).looking(1))
        .with_reference(Reference::horizontal(0.0, ""))
}
