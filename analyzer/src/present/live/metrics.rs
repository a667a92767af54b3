//! Figures of a run that goes on, in the text format of OpenMetrics 1.0.
//!
//! Written by hand: a client library keeps values in registers of its own, while these are read from files. Counters
//! begin when the watcher does. No time stamps: node exporter's textfile collector refuses them.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::document::state_name;
use crate::live::{LiveRank, LiveRun, Moment, RankState};
use crate::trace::host_name;
use crate::trace::snapshot::Reason;

/// What a watcher has done so far.
#[derive(Debug)]
pub struct Watched {
    /// Alarms by kind.
    pub alarms: BTreeMap<Reason, u64>,
    /// Snapshots.
    pub snapshots: u64,
    /// Iterations that all ranks have begun.
    pub iterations: u64,
}

impl Default for Watched {
    /// Nothing. A counter that begins with its first alarm would hide it from `increase`.
    fn default() -> Self {
        let kinds = [
            Reason::Dead,
            Reason::Stopped,
            Reason::Deadlock,
            Reason::Outside,
            Reason::NoProgress,
            Reason::Vanished,
            Reason::Slow,
            Reason::Memory,
            Reason::Exit,
        ];
        Self { alarms: kinds.map(|kind| (kind, 0)).into(), snapshots: 0, iterations: 0 }
    }
}

/// Writes families of metrics, all samples of which have two labels in common.
struct Families {
    text: String,
    common: String,
}

impl Families {
    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        let unit = if name.ends_with("_seconds") { "seconds" } else { "" };
        _ = writeln!(self.text, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        _ = writeln!(self.text, "# HELP {name} {help}");
    }

    fn sample(&mut self, name: &str, label: Option<(&str, &str)>, value: f64) {
        let label = label
            .map_or_else(String::new, |(label, value)| format!(",{label}=\"{}\"", escaped(value)));
        _ = writeln!(self.text, "{name}{{{}{label}}} {value}", self.common);
    }

    /// A counter or gauge that is a sum over ranks, or one for each.
    fn of_ranks(&mut self, name: &str, ranks: &[(String, f64)], by_rank: bool) {
        match by_rank {
            true => ranks
                .iter()
                .for_each(|(rank, value)| self.sample(name, Some(("rank", rank)), *value)),
            false => self.sample(name, None, ranks.iter().map(|(_, value)| value).sum()),
        }
    }
}

/// The figures at a moment; for each rank, or summed over the ranks of this host.
pub fn metrics(run: &LiveRun, moment: &Moment, watched: &Watched, by_rank: bool) -> String {
    let name = run.directory.file_name().unwrap_or(run.directory.as_os_str()).to_string_lossy();
    let common = format!("run=\"{}\",host=\"{}\"", escaped(&name), escaped(&host_name()));
    let mut families = Families { text: String::new(), common };
    let ranks = |value: &dyn Fn(&LiveRank) -> f64| {
        run.ranks().map(|rank| (rank.rank.to_string(), value(rank))).collect::<Vec<_>>()
    };
    families.begin(
        "gammachi_mpi_seconds",
        "counter",
        "Time that the first threads of ranks spent inside MPI.",
    );
    families.of_ranks(
        "gammachi_mpi_seconds_total",
        &ranks(&|rank| rank.totals().in_mpi_s),
        by_rank,
    );
    families.begin(
        "gammachi_outside_mpi_seconds",
        "counter",
        "Time that the first threads of ranks spent outside MPI and the recorder.",
    );
    let outside = ranks(&|rank| rank.totals().outside_s);
    families.of_ranks("gammachi_outside_mpi_seconds_total", &outside, by_rank);
    families.begin("gammachi_calls", "counter", "MPI calls of all threads, polls included.");
    families.of_ranks("gammachi_calls_total", &ranks(&|rank| rank.calls() as f64), by_rank);
    families.begin(
        "gammachi_iterations",
        "counter",
        "Iterations of the loop that all ranks take part in.",
    );
    families.sample("gammachi_iterations_total", None, watched.iterations as f64);
    if let Some(iterations) = moment.iterations {
        families.begin("gammachi_iteration_seconds", "gauge", "Mean time of the last iterations.");
        families.sample("gammachi_iteration_seconds", None, iterations.per_s.recip());
    }
    ages(&mut families, moment, by_rank);
    families.begin("gammachi_ranks", "gauge", "Ranks by what they do.");
    for state in RankState::ALL {
        let count = moment.ranks.iter().filter(|of| of.state == state).count();
        families.sample("gammachi_ranks", Some(("state", state_name(state))), count as f64);
    }
    families.begin("gammachi_alarms", "counter", "Alarms of the watcher by kind.");
    for (kind, count) in &watched.alarms {
        families.sample("gammachi_alarms_total", Some(("kind", &kind_name(*kind))), *count as f64);
    }
    families.begin("gammachi_snapshots", "counter", "Snapshots that the watcher has kept.");
    families.sample("gammachi_snapshots_total", None, watched.snapshots as f64);
    families.text + "# EOF\n"
}

/// How long ago a rank last began or ended a call; of all ranks together, the one that did so last.
fn ages(families: &mut Families, moment: &Moment, by_rank: bool) {
    let is_alive = |state| !matches!(state, RankState::Dead | RankState::Finished);
    let ages = moment
        .ranks
        .iter()
        .filter(|of| is_alive(of.state))
        .filter_map(|of| Some((of.rank.to_string(), (moment.at_s - of.since_s?).max(0.0))));
    let ages: Vec<(String, f64)> = ages.collect();
    let name = "gammachi_last_event_age_seconds";
    let youngest = ages.iter().map(|(_, age)| *age).min_by(f64::total_cmp);
    let Some(youngest) = youngest else { return };
    families.begin(name, "gauge", "Time since a rank last began or ended a call.");
    match by_rank {
        true => families.of_ranks(name, &ages, true),
        false => families.sample(name, None, youngest),
    }
}

/// As in documents.
fn kind_name(kind: Reason) -> String {
    let name = serde_json::to_value(kind).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

/// The value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), r#"a\"b\\c\nd"#);
    }
}
