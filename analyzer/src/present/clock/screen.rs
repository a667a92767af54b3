//! Renders a clock calibration for the terminal.

use crate::calibration::{Calibration, PairCalibration, TrialCalibration};
use crate::plain_text::printable;
use crate::present::context::{plural, shortened};
use crate::present::quantity::{count, nanoseconds, significant};
use crate::present::table::Table;

/// Maximum number of pairs whose trials are shown.
pub(super) const MAX_PAIRS: usize = 4;
/// Length of the longest bar of a histogram, characters.
const BAR_CHARACTERS: usize = 40;

pub fn screen(calibration: &Calibration) -> String {
    let mut text = header(calibration);
    text.push('\n');
    push(
        &mut text,
        "PAIRS",
        "offset: parent's counter minus child's, median of all trials but the first",
        &pair_table(calibration),
    );
    for pair in calibration.pairs.iter().take(MAX_PAIRS) {
        let title = format!("TRIALS {} against {}", pair.child, pair.parent);
        let what = "deviation from that offset; the first trial is not counted";
        push(&mut text, &title, what, &trial_table(pair));
        let title = format!("ROUND TRIPS {} and {}", pair.child, pair.parent);
        let what = format!("{} exchanges, both ways", count(pair.round_trips.count as u64));
        push(&mut text, &title, &what, &histogram(pair));
    }
    if calibration.pairs.len() > MAX_PAIRS {
        let more = calibration.pairs.len() - MAX_PAIRS;
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

pub(super) fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.map(f64::abs).fold(0.0, f64::max)
}

/// The trials that count: all but the first if there are several.
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
    let mut table = Table::with_rows(pairs);
    table.right("child", |pair| pair.child.to_string());
    table.right("parent", |pair| pair.parent.to_string());
    if calibration.hosts.iter().any(|host| *host != calibration.hosts[0]) {
        table.left("hosts", |pair| {
            let (child, parent) = hosts(pair);
            shortened(&printable(&format!("{child}, {parent}")))
        });
    }
    table.right("offset", |pair| signed(pair.reference_ns));
    let spread =
        |pair: &PairCalibration| largest(counted(pair).iter().map(|trial| trial.forward_ns));
    table.right("spread", |pair| format!("±{}", nanoseconds(spread(pair))));
    let apart = |pair: &PairCalibration| {
        largest(counted(pair).iter().map(|trial| trial.reverse_ns - trial.forward_ns))
    };
    table.right("reverse - forward", |pair| format!("≤ {}", nanoseconds(apart(pair))));
    let bound = |pair: &PairCalibration| largest(counted(pair).iter().map(|trial| trial.bound_ns));
    table.right("bound", |pair| format!("±{}", nanoseconds(bound(pair))));
    if pairs.iter().any(|pair| pair.truth_known) {
        let error = |pair: &PairCalibration| match pair.truth_known {
            true => nanoseconds(largest(counted(pair).iter().filter_map(|trial| trial.error_ns))),
            false => "?".into(),
        };
        table.right("error", error);
    }
    table.right("rtt min", |pair| nanoseconds(pair.round_trips.min_ns));
    table.right("median", |pair| nanoseconds(pair.round_trips.median_ns));
    table.right("p99", |pair| nanoseconds(pair.round_trips.p99_ns));
    if pairs.iter().any(|pair| pair.drift_ppm.is_some()) {
        table.right("drift/ppm", drift);
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
    let trials: Vec<_> = (1..).zip(&pair.trials).collect();
    let mut table = Table::with_rows(&trials);
    table.right("trial", |(number, _): &(u32, _)| number.to_string());
    table.right("forward", |(_, trial)| signed(trial.forward_ns));
    table.right("reverse", |(_, trial)| signed(trial.reverse_ns));
    table.right("bound", |(_, trial)| format!("±{}", nanoseconds(trial.bound_ns)));
    if pair.truth_known {
        table.right("error", |(_, trial)| trial.error_ns.map_or("?".into(), signed));
    }
    table.lines()
}

fn histogram(pair: &PairCalibration) -> Vec<String> {
    let bins = &pair.round_trips.bins;
    let most = bins.iter().map(|bin| bin.2).max().unwrap_or(0).max(1);
    let mut table = Table::with_rows(bins);
    table.right("from", |bin| nanoseconds(bin.0));
    table.right("count", |bin| count(bin.2));
    let bar = |bin: &(f64, f64, u64)| {
        let length = (bin.2 as f64 / most as f64 * BAR_CHARACTERS as f64).round() as usize;
        "#".repeat(length.max(usize::from(bin.2 > 0)))
    };
    table.left("", bar);
    let mut lines = table.lines();
    lines.push(format!("the last line counts all up to {}", nanoseconds(pair.round_trips.max_ns)));
    lines
}

fn estimator_table(calibration: &Calibration) -> Vec<String> {
    let rows = &calibration.estimators;
    let mut table = Table::with_rows(rows);
    table.left("estimator", |row| row.name.clone());
    table.right("p50", |row| nanoseconds(row.p50_ns));
    table.right("p95", |row| nanoseconds(row.p95_ns));
    table.right("max", |row| nanoseconds(row.max_ns));
    table.right("estimates", |row| count(row.count as u64));
    table.lines()
}
