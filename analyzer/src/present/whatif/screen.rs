//! The screen of `gammachi whatif`: lines for the terminal.

use crate::present::blocks::Blocks;
use crate::present::paragraph::wrapped;
use crate::present::quantity::{count, percent, seconds, significant};
use crate::present::table::Table;
use crate::replay::{Answer, Change, MAX_ERROR, Network, Placement};

use super::{Asked, origin, words};

/// The screen. With `colour` labels are emphasised; nothing is said by colour alone.
pub fn screen(asked: &Asked, colour: bool) -> String {
    let mut blocks = Blocks::new(asked.run, &verdict(asked), colour);
    if asked.what_if.is_accurate() {
        blocks.block("WHAT IF", answers(asked));
        blocks.block("TOLERATES", tolerances(asked));
    }
    blocks.block("NETWORK", network(asked));
    blocks.block("ASKED FOR", asked_network(asked));
    for note in notes(asked) {
        blocks.note(&note);
    }
    blocks.finish()
}

fn verdict(asked: &Asked) -> String {
    let what_if = asked.what_if;
    let error = percent(what_if.calibration.error.abs());
    let (recorded, calls) = (seconds(what_if.graph.elapsed_s), count(what_if.graph.calls() as u64));
    match what_if.is_accurate() {
        true => format!(
            "The replay of {calls} calls gives the recorded {recorded} back within {error}{}.",
            scaled(what_if.calibration.scale)
        ),
        false => format!(
            "This run cannot be replayed: the replay of {calls} calls takes {} where the run took \
             {recorded}, {error} off; more than {} is not trusted. {}",
            seconds(what_if.replayed.elapsed_s),
            percent(MAX_ERROR),
            "Ranks may have shared cores, or calls have waited for what is not recorded."
        ),
    }
}

/// How the costs of transfers were fitted to the run's time.
fn scaled(scale: f64) -> String {
    match scale {
        scale if (scale - 1.0).abs() < 0.005 => String::new(),
        scale => format!(", with all costs of transfers times {}", significant(scale, 3)),
    }
}

/// What each change would do, what wins most first.
fn answers(asked: &Asked) -> Vec<String> {
    let mut rows: Vec<&Answer> = asked.answers.iter().collect();
    rows.sort_by(|a, b| a.elapsed_s.total_cmp(&b.elapsed_s));
    let recorded = asked.what_if.graph.elapsed_s;
    let changes_nothing =
        |answer: &&Answer| (answer.elapsed_s / recorded - 1.0).abs() < LEAST_CHANGE;
    let nothing: Vec<&Answer> = rows.iter().copied().filter(|a| changes_nothing(a)).collect();
    if rows.len() > 1 {
        rows.retain(|answer| !changes_nothing(answer));
    }
    let saves = |answer: &&Answer| signed(1.0 - answer.elapsed_s / recorded);
    let give_or_take = |answer: &&Answer| format!("± {}", seconds(answer.uncertain_s));
    let mut table = Table::default();
    table.right("saves", rows.iter().map(saves));
    table.right("would take", rows.iter().map(|answer| seconds(answer.elapsed_s)));
    table.left("90 %", rows.iter().map(give_or_take));
    let sentence = |answer: &&Answer| words::sentence(&answer.changes, asked.what_if);
    table.left("if", rows.iter().map(sentence));
    let mut lines = if rows.is_empty() { Vec::new() } else { table.lines() };
    if asked.answers.len() > 1 && !nothing.is_empty() {
        let sentences: Vec<String> = nothing.iter().map(sentence).collect();
        lines.extend(wrapped("", &format!("No effect: {}.", sentences.join("; "))));
    }
    lines
}

/// A change of the time, of one, that nobody would see.
const LEAST_CHANGE: f64 = 1e-3;

/// A part with its sign; what nobody would see is nothing.
fn signed(part: f64) -> String {
    match part {
        part if part.abs() < 5e-4 => "0 %".to_owned(),
        part if part < 0.0 => format!("-{}", percent(-part)),
        part => percent(part),
    }
}

fn tolerances(asked: &Asked) -> Vec<String> {
    let mut table = Table::default();
    let rows = asked.tolerances;
    table.right("slowdown", rows.iter().map(|row| percent(row.slowdown)));
    let latency = |latency: Option<f64>| latency.map_or("any".to_owned(), seconds);
    table.right("latency", rows.iter().map(|row| latency(row.latency_s)));
    if rows.is_empty() { Vec::new() } else { table.lines() }
}

/// The parameters of the replay, and what there was to find them from.
fn network(asked: &Asked) -> Vec<String> {
    let calibration = &asked.what_if.calibration;
    let Network { overhead, latency, per_byte, eager_bytes, .. } = calibration.network;
    let row = |hop: usize| {
        [
            NAMES[hop].to_owned(),
            seconds(latency[hop]),
            bandwidth(per_byte[hop]),
            eager_limit(eager_bytes[hop]),
            count(calibration.samples.transfers[hop]),
        ]
    };
    let titles = ["", "latency", "bandwidth", "eager limit", "from messages"];
    let mut lines = rows(titles, levels(&asked.what_if.placement).map(row));
    lines.push(format!("overhead of a call {}", seconds(overhead)));
    lines
}

/// The network of the question, and where each parameter comes from.
fn asked_network(asked: &Asked) -> Vec<String> {
    let of = asked.network;
    if !of.is_changed() && !asked.answers.iter().any(is_placed) {
        return Vec::new();
    }
    let Network { overhead, latency, per_byte, eager_bytes, .. } = of.network;
    let from = |text: String, from| format!("{text} ({})", origin(from));
    let row = |hop: usize| {
        [
            NAMES[hop].to_owned(),
            from(seconds(latency[hop]), of.latency[hop]),
            from(bandwidth(per_byte[hop]), of.per_byte[hop]),
            from(eager_limit(eager_bytes[hop]), of.eager_bytes[hop]),
        ]
    };
    let titles = ["", "latency", "bandwidth", "eager limit"];
    let mut lines = rows(titles, levels(asked.placement).map(row));
    lines.push(from(format!("overhead of a call {}", seconds(overhead)), of.overhead));
    lines.push("what collective operations cost against messages (run)".to_owned());
    lines
}

fn is_placed(answer: &Answer) -> bool {
    answer.changes.iter().any(|change| matches!(change, Change::Placement(_)))
}

/// Names of the levels, within hosts and between.
const NAMES: [&str; 2] = ["within hosts", "between hosts"];

/// The levels that count.
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

/// A table whose first column is names.
fn rows<const N: usize>(titles: [&str; N], rows: impl Iterator<Item = [String; N]>) -> Vec<String> {
    let rows: Vec<[String; N]> = rows.collect();
    let mut table = Table::default();
    for (at, title) in titles.into_iter().enumerate() {
        let cells = rows.iter().map(|row| row[at].clone());
        match at {
            0 => table.left(title, cells),
            _ => table.right(title, cells),
        }
    }
    table.lines()
}

/// What a reader has to know beside the answers.
pub(super) fn notes(asked: &Asked) -> Vec<String> {
    let what_if = asked.what_if;
    let mut notes = Vec::new();
    let ranks = asked.run.ranks.len() as f64;
    let fixed = what_if.graph.fixed_s / (ranks * what_if.graph.elapsed_s);
    if fixed > LEAST_FIXED {
        notes.push(format!(
            "{} of the ranks' time is in calls whose partners are not known (files, one-sided \
             communication, the making of communicators): it is replayed as it was recorded.",
            percent(fixed)
        ));
    }
    if !what_if.calibration.samples.told_apart[what_if.hop()] {
        notes.push(
            "Latency and bandwidth cannot be told apart: messages of less than 1 KiB and of 4 KiB or more are \
             needed for that. Both together count."
                .to_owned(),
        );
    }
    if asked.answers.iter().any(is_placed) {
        notes.push(
            "On their new hosts ranks compute as they did: memory and caches that others share with them there are not \
             modelled."
                .to_owned(),
        );
    }
    notes.extend(asked.notes.iter().cloned());
    let released = what_if.replayed.released
        + asked.answers.iter().map(|answer| answer.released).max().unwrap_or(0);
    if released > 0 {
        notes.push(format!(
            "{} sends would have waited for ever and went on: the run itself did not stop there.",
            count(released)
        ));
    }
    notes
}

/// A part of the ranks' time that is worth a note.
const LEAST_FIXED: f64 = 0.01;
