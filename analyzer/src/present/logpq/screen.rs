//! Renders the network models for the terminal.

use crate::models::logpq::cannon::Model;
use crate::models::logpq::messages::{RankPrediction, RunPrediction};
use crate::models::logpq::study::{Row, Study};
use crate::models::logpq::{Estimate, Findings, LogP, Parameters};

use super::super::paragraph::wrapped;
use super::super::quantity::{count, percent, seconds, significant};
use super::super::sections::Sections;
use super::super::table::Table;
use super::words::{parameter_note, product_from, study_note};

/// With more ranks than this, the screen shows only their sum; the JSON document has them all.
const MAX_RANKS: usize = 16;

pub fn screen(findings: &Findings, colour: bool) -> String {
    let mut screen = Sections::new(colour);
    for parameters in &findings.parameters {
        screen.heading(&format!("PARAMETERS  {}, {}", parameters.class, findings.source));
        screen.lines(table_of(parameters));
        screen.sentences(parameters.notes.iter().map(parameter_note));
        screen.gap();
        if !parameters.sizes.is_empty() {
            let heading = format!("ALL SIZES  {}: LogP of one message", parameters.class);
            screen.section(&heading, sizes(parameters));
            screen.lines(pieces(parameters));
            screen.gap();
        }
    }
    if let Some(study) = &findings.cannon {
        let p = study.grid;
        let class = &findings.cannon_class;
        screen.heading(&format!("CANNON'S PRODUCT  {} ranks ({p} x {p}), {class}", p * p));
        screen.lines([format!(
            "t_M = t_f + t_s·l³: t_f = {}, t_s = {} ({})",
            seconds(study.product.fixed_s),
            seconds(study.product.multiply_s),
            product_from(study.product_from)
        )]);
        screen.gap();
        screen.lines(products(study));
        screen.lines(hidden(study));
        screen.sentences(study.notes.iter().map(study_note));
        screen.gap();
    }
    for run in &findings.runs {
        screen.heading(&format!("MESSAGES  {}", run.name));
        screen.lines(messages(run));
        screen.sentences([verdict(run)]);
        screen.gap();
    }
    screen.finish(&findings.notes)
}

fn with_uncertainty(estimate: &Estimate) -> String {
    match estimate.half_width {
        0.0 => seconds(estimate.value),
        half => format!("{} ± {}", seconds(estimate.value), seconds(half)),
    }
}

fn table_of(parameters: &Parameters) -> Vec<String> {
    let zero = Estimate::default();
    let of = |logp: &LogP| [logp.latency, logp.overhead, logp.gap, zero];
    let (two, one) = (&parameters.logpq, &parameters.logpq_link);
    let columns = [
        (format!("LogP, {} words", parameters.words), of(&parameters.message)),
        ("LogP, one word".to_owned(), of(&parameters.one_word)),
        (
            format!("LogPQ, eq. 2, m = {}", parameters.words),
            [two.latency, two.overhead, two.gap, two.fixed],
        ),
        (
            format!("LogPQ, eq. 1, r = {}", parameters.ratio),
            [one.latency, one.overhead, one.gap, one.fixed],
        ),
    ];
    let mut table = Table::default();
    table.left("", ["latency L", "overhead o", "gap g", "fixed part n"].map(str::to_owned));
    for (index, (title, values)) in columns.iter().enumerate() {
        let has_fixed = index >= 2;
        let cell = |row: usize, show: &dyn Fn(&Estimate) -> String| match row {
            3 if !has_fixed => "-".to_owned(),
            row => show(&values[row]),
        };
        table.right(title, (0..4).map(|row| cell(row, &with_uncertainty)));
        if let Some(hz) = parameters.counter_hz {
            let ticks = |value: &Estimate| significant(value.value * hz, 3);
            table.right("ticks", (0..4).map(|row| cell(row, &ticks)));
        }
    }
    table.lines()
}

fn sizes(parameters: &Parameters) -> Vec<String> {
    let rows = &parameters.sizes;
    let mut table = Table::with_rows(rows);
    table.right("bytes", |row| count(row.bytes));
    table.right("RTT/2", |row| with_uncertainty(&row.half_rtt));
    table.right("L", |row| match row.logp.latency.is_identified() {
        true => with_uncertainty(&row.logp.latency),
        false => "not identified".into(),
    });
    table.right("o", |row| with_uncertainty(&row.logp.overhead));
    table.right("g", |row| with_uncertainty(&row.logp.gap));
    table.lines()
}

/// LogPQ over all sizes: n and o of a word from the straight pieces of the overheads, g from those of the gap.
fn pieces(parameters: &Parameters) -> Vec<String> {
    let Some(class) = &parameters.curves else { return Vec::new() };
    let word = parameters.word_bytes as f64;
    let all = [
        ("o_s", &class.fits.send_overhead),
        ("o_r", &class.fits.receive_overhead),
        ("gap", &class.fits.gap),
    ];
    let rows: Vec<_> =
        all.iter().flat_map(|(name, fits)| fits.iter().map(move |piece| (name, piece))).collect();
    let mut table = Table::with_rows(&rows);
    table.left("LogPQ by pieces", |(name, _)| (*name).to_string());
    table.right("from bytes", |(_, piece)| count(piece.from_bytes));
    table.right("to", |(_, piece)| count(piece.to_bytes));
    let around = |value: f64, (low, high): (f64, f64), factor: f64| {
        let half_width = (high - low).abs() / 2.0 * factor;
        with_uncertainty(&Estimate { value: value * factor, half_width })
    };
    table.right("fixed n", |(_, p)| around(p.fixed_s, p.fixed_interval_s, 1.0));
    table.right("per word", |(_, p)| around(p.per_byte_s, p.per_byte_interval_s, word));
    table.right("worst misfit", |(_, piece)| percent(piece.worst_misfit));
    table.lines()
}

fn products(study: &Study) -> Vec<String> {
    let rows = &study.rows;
    let measured = rows.iter().any(|row| row.compared().is_some());
    let mut table = Table::with_rows(rows);
    table.right("N", |row| row.n.to_string());
    table.right("block", |row| row.block.to_string());
    table.right("computation", |row| seconds(row.computation_s));
    if measured {
        let time = |row: &Row| row.compared().map_or("-".into(), |one| seconds(one.elapsed_s));
        table.right("measured", time);
    }
    for (index, model) in Model::ALL.into_iter().enumerate() {
        if rows.iter().all(|row| row.predicted_s[index].is_none()) {
            continue;
        }
        let time = |row: &Row| row.predicted_s[index].map_or("-".into(), seconds);
        table.right(model.name(), time);
        if measured {
            let error = |row: &Row| {
                Some(signed_percent(row.predicted_s[index]? / row.compared()?.elapsed_s - 1.0))
            };
            table.right("error", |row| error(row).unwrap_or_else(|| "-".into()));
        }
    }
    table.lines()
}

fn signed_percent(share: f64) -> String {
    match share > 0.0 {
        true => format!("+{}", percent(share)),
        false => percent(share),
    }
}

fn hidden(study: &Study) -> Vec<String> {
    let rows: Vec<&Row> = study.rows.iter().filter(|row| !row.strategies.is_empty()).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let each: Vec<_> =
        rows.iter().flat_map(|row| row.strategies.iter().map(move |one| (row, one))).collect();
    let mut table = Table::with_rows(&each);
    table.right("N", |(row, _)| row.n.to_string());
    table.left("strategy", |(_, one)| one.strategy.clone());
    table.right("blocks held", |(_, one)| one.blocks_held.to_string());
    table.right("elapsed", |(_, one)| {
        format!("{} ± {}", seconds(one.elapsed_s), percent(one.half_width_s / one.elapsed_s))
    });
    table.right("not hidden", |(_, one)| seconds(one.not_hidden_s));
    table.right("hides", |(_, one)| one.hides.map_or("-".into(), percent));
    table.left("", |(row, one)| match (one.fully, row.fewest_blocks()) {
        (true, Some(best)) if best == *one => "fully, with the fewest blocks".to_owned(),
        (true, _) => "fully".to_owned(),
        _ => String::new(),
    });
    let mut lines = vec![String::new()];
    lines.extend(table.lines());
    lines.push(String::new());
    let full: Vec<(u64, u64)> =
        rows.iter().filter_map(|row| Some((row.n, row.fewest_blocks()?.blocks_held))).collect();
    let sentence = match full.iter().map(|(_, blocks)| *blocks).max() {
        None => "No strategy hides communication fully (within its uncertainty, or 1 % of the \
                 computation)."
            .to_owned(),
        Some(_) => {
            let list: Vec<String> =
                full.iter().map(|(n, blocks)| format!("{blocks} at N = {n}")).collect();
            let none = rows.iter().filter(|row| row.fewest_blocks().is_none());
            let none: Vec<String> = none.map(|row| row.n.to_string()).collect();
            let but = match none.is_empty() {
                true => String::new(),
                false => format!("; none is enough at N = {}", none.join(", ")),
            };
            format!(
                "Fewest blocks that hide communication fully (within its uncertainty, or 1 % of the \
                 computation): {}{but}. Touyama and Horiguchi found four on the CM-5.",
                list.join(", ")
            )
        }
    };
    lines.extend(wrapped("", &sentence));
    lines
}

fn messages(run: &RunPrediction) -> Vec<String> {
    let few = run.ranks.len() <= MAX_RANKS;
    let mut rows: Vec<(String, RankPrediction)> = match few {
        true => run.ranks.iter().map(|rank| (rank.rank.to_string(), rank.clone())).collect(),
        false => Vec::new(),
    };
    rows.push(("all".into(), run.sum()));
    let mut table = Table::with_rows(&rows);
    table.right("rank", |(name, _)| name.clone());
    table.right("messages", |(_, rank)| count(rank.messages));
    table.right("mean bytes", |(_, rank)| match rank.messages {
        0 => "-".into(),
        messages => significant(rank.bytes / messages as f64, 3),
    });
    table.right("measured", |(_, rank)| seconds(rank.measured_s));
    for (index, model) in Model::ALL.into_iter().enumerate() {
        let range = |rank: &RankPrediction| {
            let one = &rank.models[index];
            format!("{} to {}", seconds(one.busy_s), seconds(one.exposed_s()))
        };
        table.right(model.name(), |(_, rank)| range(rank));
    }
    table.lines()
}

fn verdict(run: &RunPrediction) -> String {
    let sum = run.sum();
    let mut text = "Predicted: with all latency hidden to none hidden.".to_owned();
    if sum.messages == 0 {
        return "No messages: the models have nothing to predict.".into();
    }
    let [.., exact] = sum.models;
    let (low, high, measured) = (exact.busy_s, exact.exposed_s(), sum.measured_s);
    text += &match measured {
        _ if measured > 2.0 * high => format!(
            " Measured {} is {} times what the messages cost by the measured curves ({} to {}): the \
             rest is waiting for partners that come late, or a disturbed network.",
            seconds(measured),
            significant(measured / high, 2),
            seconds(low),
            seconds(high)
        ),
        _ if measured < 0.5 * low => format!(
            " Measured {} is less than half of what the measured curves predict ({}): the network is \
             faster than machine.json says, or progress is made outside these calls.",
            seconds(measured),
            seconds(low)
        ),
        _ => format!(
            " Measured {} agrees with the curves' {} to {}: the messages themselves explain the time.",
            seconds(measured),
            seconds(low),
            seconds(high)
        ),
    };
    if sum.uncovered > 0 {
        text += &format!(
            " {} messages are of a class that machine.json does not have; they are not predicted.",
            count(sum.uncovered)
        );
    }
    if run.collective_calls > 0 {
        text += &format!(
            " {} collective calls took another {}; the models do not cover them.",
            count(run.collective_calls),
            seconds(run.collective_s)
        );
    }
    text
}
