//! Renders the answers of `gammachi whatif` for the terminal.

use crate::diagnosis::Figures;
use crate::present::blocks::Blocks;
use crate::present::findings;
use crate::present::paragraph::wrapped;
use crate::present::quantity::{count, percent, seconds, significant};
use crate::present::table;
use crate::replay::{Answer, Change, MAX_ERROR, MAX_OFF_S, Network, Placement};
use crate::tables::{Cell, Table};

use super::results::WhatIfResults;
use super::words;
use super::words::origin;

/// The screen. With `colour`, labels are emphasised; colour alone never carries information.
pub fn screen(results: &WhatIfResults, colour: bool) -> String {
    let diagnosis = results.diagnosis;
    let doubts = findings::doubts(diagnosis, Figures::Predictions);
    let verdict = doubts.into_iter().chain([verdict(results)]).collect::<Vec<_>>().join(" ");
    let mut blocks = Blocks::new(results.run, &verdict, colour);
    if results.what_if.is_accurate() {
        let mut block = |label, lines| {
            blocks.block(label, findings::marked(diagnosis, Figures::Predictions, lines));
        };
        block("WHAT IF", answers(results));
        block("TOLERATES", tolerances(results));
    }
    blocks.block("NETWORK", network(results));
    blocks.block("ASKED FOR", assumed_network(results));
    for note in notes(results) {
        blocks.note(&note);
    }
    blocks.finish()
}

fn verdict(results: &WhatIfResults) -> String {
    let what_if = results.what_if;
    let error = percent(what_if.calibration.error.abs());
    let (recorded, calls) = (seconds(what_if.graph.elapsed_s), count(what_if.graph.calls as u64));
    match what_if.is_accurate() {
        true => format!(
            "The replay of {calls} calls reproduces the recorded {recorded} within {error}{}.",
            scaled(what_if.calibration.scale)
        ),
        false => format!(
            "This run cannot be replayed: the replay of {calls} calls takes {} instead of {recorded}, an error of \
             {error}; errors above {} and {} are not trusted. {}",
            seconds(what_if.replayed.elapsed_s),
            percent(MAX_ERROR),
            seconds(MAX_OFF_S),
            "Ranks may have shared cores, or calls may have waited for something that is not recorded."
        ),
    }
}

/// The factor by which the costs of transfers were fitted to the run's time.
fn scaled(scale: f64) -> String {
    match scale {
        scale if (scale - 1.0).abs() < 0.005 => String::new(),
        scale => format!(", with all transfer costs scaled by {}", significant(scale, 3)),
    }
}

/// What each change would save, the largest saving first.
fn answers(results: &WhatIfResults) -> Vec<String> {
    let mut rows: Vec<&Answer> = results.answers.iter().collect();
    rows.sort_by(|a, b| a.elapsed_s.total_cmp(&b.elapsed_s));
    let recorded = results.what_if.graph.elapsed_s;
    // Nor may it have an effect if the costs of transfers are divided otherwise.
    let is_recorded = |seconds: f64| (seconds / recorded - 1.0).abs() < MIN_CHANGE;
    let changes_nothing = |answer: &&Answer| {
        let (shortest, longest) = answer.divided_s;
        is_recorded(answer.elapsed_s) && longest - shortest < MAX_DOUBT * recorded
    };
    let nothing: Vec<&Answer> = rows.iter().copied().filter(|a| changes_nothing(a)).collect();
    if rows.len() > 1 {
        rows.retain(|answer| !changes_nothing(answer));
    }
    let rows = || rows.iter().copied();
    let time = |answer: &Answer| Cell::or_nothing(answer.time_s(), Cell::Seconds);
    let saves =
        |answer: &Answer| Cell::or_nothing(answer.time_s(), |time_s| part(1.0 - time_s / recorded));
    let interval = |answer: &Answer| Cell::Between(answer.interval_s.0, answer.interval_s.1);
    let sentence = |answer: &Answer| words::sentence(&answer.changes, results.what_if);
    let mut table = Table::default();
    table.add("saves", "saves", rows().map(saves));
    table.add("elapsed_s", "would take", rows().map(time));
    table.add("interval", "90 % interval", rows().map(interval));
    table.add("question", "if", rows().map(|answer| Cell::Text(sentence(answer))));
    let mut lines = table::lines(&table);
    if results.answers.len() > 1 && !nothing.is_empty() {
        let sentences: Vec<String> = nothing.into_iter().map(sentence).collect();
        lines.extend(wrapped("", &format!("No effect: {}.", sentences.join("; "))));
    }
    lines
}

/// Relative changes of the time below this count as no effect.
const MIN_CHANGE: f64 = 1e-3;
/// The share of the run by which the time of a change without effect may be uncertain.
const MAX_DOUBT: f64 = 0.01;

/// A share of the run; a negligible one is 0 %.
fn part(share: f64) -> Cell {
    Cell::Share(if share.abs() < 5e-4 { 0.0 } else { share })
}

fn tolerances(results: &WhatIfResults) -> Vec<String> {
    let rows = || results.tolerances.iter();
    let any = || Cell::Text("any".to_owned());
    let mut table = Table::default();
    table.add("slowdown", "slowdown", rows().map(|row| Cell::Share(row.slowdown)));
    let latencies = rows().map(|row| row.latency_s.map_or_else(any, Cell::Seconds));
    table.add("latency_s", "latency", latencies);
    table::lines(&table)
}

/// The parameters of the replay, with the number of messages from which they were found.
fn network(results: &WhatIfResults) -> Vec<String> {
    let calibration = &results.what_if.calibration;
    let Network { overhead, latency, per_byte, eager_bytes, .. } = calibration.network;
    let samples = &calibration.samples;
    let levels = || levels(&results.what_if.placement);
    let eager = levels().map(|hop| match samples.eager_shown[hop] {
        true => eager_limit(eager_bytes[hop]),
        false => "unknown".to_owned(),
    });
    let mut table = Table::default();
    table.add("level", "", levels().map(|hop| Cell::Text(NAMES[hop].to_owned())));
    table.add("latency_s", "latency", levels().map(|hop| Cell::Seconds(latency[hop])));
    let bandwidths = levels().map(|hop| match per_byte[hop] {
        none if none <= 0.0 => Cell::Nothing,
        s_per_byte => Cell::Quantity(1.0 / s_per_byte, "B/s"),
    });
    table.add("bandwidth", "bandwidth", bandwidths);
    table.add("eager_bytes", "eager limit", eager.map(Cell::Text));
    let messages = levels().map(|hop| Cell::Count(samples.transfers[hop]));
    table.add("messages", "from messages", messages);
    let mut lines = table::lines(&table);
    lines.push(format!("overhead per call {}", seconds(overhead)));
    lines
}

/// The network that the question assumes, with the origin of each parameter.
fn assumed_network(results: &WhatIfResults) -> Vec<String> {
    let of = results.network;
    if !of.is_changed() && !results.answers.iter().any(is_placed) {
        return Vec::new();
    }
    let Network { overhead, latency, per_byte, eager_bytes, .. } = of.network;
    let from = |text: String, from| format!("{text} ({})", origin(from));
    let levels = || levels(results.placement);
    let mut table = Table::default();
    let mut add = |key, title, text: &dyn Fn(usize) -> String| {
        table.add(key, title, levels().map(|hop| Cell::Text(text(hop))));
    };
    add("level", "", &|hop| NAMES[hop].to_owned());
    add("latency_s", "latency", &|hop| from(seconds(latency[hop]), of.latency[hop]));
    add("bandwidth", "bandwidth", &|hop| from(bandwidth(per_byte[hop]), of.per_byte[hop]));
    add("eager_bytes", "eager limit", &|hop| {
        from(eager_limit(eager_bytes[hop]), of.eager_bytes[hop])
    });
    let mut lines = table::lines(&table);
    lines.push(from(format!("overhead per call {}", seconds(overhead)), of.overhead));
    lines.push("cost of collective operations relative to messages (run)".to_owned());
    lines
}

fn is_placed(answer: &Answer) -> bool {
    answer.changes.iter().any(|change| matches!(change, Change::Placement(_)))
}

/// Names of the levels of the network.
const NAMES: [&str; 2] = ["within hosts", "between hosts"];

/// The levels that matter for a placement.
fn levels(placement: &Placement) -> impl Iterator<Item = usize> {
    0..=placement.main_hop() as usize
}

fn bandwidth(s_per_byte: f64) -> String {
    match s_per_byte {
        none if none <= 0.0 => "-".to_owned(),
        s_per_byte => format!("{} GB/s", significant(1e-9 / s_per_byte, 3)),
    }
}

fn eager_limit(bytes: f64) -> String {
    match bytes {
        limit if limit.is_infinite() => "none seen".to_owned(),
        limit if limit < 0.0 => "0 B".to_owned(),
        limit => format!("{} B", count(limit as u64)),
    }
}

/// What a reader must know to judge the answers.
pub(super) fn notes(results: &WhatIfResults) -> Vec<String> {
    let what_if = results.what_if;
    let mut notes = Vec::new();
    let ranks = results.run.ranks.len() as f64;
    let fixed = what_if.graph.fixed_s / (ranks * what_if.graph.elapsed_s);
    if fixed > MIN_FIXED {
        notes.push(format!(
            "{} of the ranks' time is in calls whose partners are unknown (files, one-sided \
             communication, creation of communicators): it is replayed as it was recorded.",
            percent(fixed)
        ));
    }
    if results.answers.iter().any(|answer| answer.time_s().is_none()) {
        notes.push(
            "Where no time is given, the run does not show how transfer costs divide into overhead, latency and \
             bytes: the interval covers every division."
                .to_owned(),
        );
    }
    if !what_if.is_told_apart() {
        notes.push(
            "Latency and bandwidth cannot be separated: that takes messages below 1 KiB and of 4 KiB or more. Only \
             their combined cost is known."
                .to_owned(),
        );
    }
    if results.answers.iter().any(is_placed) {
        notes.push(
            "Ranks compute as before on their new hosts: sharing memory and caches with other ranks there is not \
             modelled."
                .to_owned(),
        );
    }
    let with_mpi = what_if.graph.beside.with_mpi;
    let balances = |answer: &Answer| answer.changes.contains(&Change::BalancedThreads);
    if with_mpi > 0 && results.answers.iter().any(balances) {
        let (regions, call, take) = match with_mpi {
            1 => ("parallel region", "calls", "takes"),
            _ => ("parallel regions", "call", "take"),
        };
        notes.push(format!(
            "{} {regions} that {call} MPI inside {take} as long as before with balanced threads: how long each thread \
             works there is not known.",
            count(with_mpi)
        ));
    }
    notes.extend(results.notes.iter().cloned());
    let released = what_if.replayed.released
        + results.answers.iter().map(|answer| answer.released).max().unwrap_or(0);
    if released > 0 {
        notes.push(format!(
            "{} sends would have blocked forever in the replay and were released: the run itself did not stop there.",
            count(released)
        ));
    }
    notes
}

/// Smallest share of the ranks' time that is worth a note.
const MIN_FIXED: f64 = 0.01;
