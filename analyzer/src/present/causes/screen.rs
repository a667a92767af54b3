//! Renders the screen of `gammachi why`.

use std::collections::BTreeMap;

use crate::causes::{RankTime, State, Tree};
use crate::diagnosis::{Diagnosis, Figures, Why};
use crate::metrics::ComputeMode;
use crate::plain_text::printable;
use crate::present::blocks::Blocks;
use crate::present::clock::estimated_offsets;
use crate::present::context::plural;
use crate::present::findings;
use crate::present::quantity::{count, significant};
use crate::present::report::code;
use crate::present::snapshot;
use crate::present::table::{self, Table};
use crate::present::unfinished;
use crate::tables::{delay_costs, waits};
use crate::trace::RunNote;

use super::words::{self, seconds_of, share};
use super::{hosts, stretches};

const MAX_ROWS: usize = 10;
pub fn screen(why: &Why, diagnosis: &Diagnosis, colour: bool) -> String {
    let sentences = findings::sentences(diagnosis).join(" ");
    let mut blocks = Blocks::new(why.run, &sentences, colour);
    let selection = &diagnosis.of.metrics.selection;
    if !why.is_of_all() {
        let elapsed = seconds_of(why, why.causes.elapsed());
        let of_run = seconds_of(why, why.causes.whole.1 - why.causes.whole.0);
        let what = printable(&selection.to_string());
        blocks.sentence("SELECTED", &format!("{what}: {elapsed} of {of_run} elapsed"));
    }
    if let Some(unfinished) = &diagnosis.of.metrics.unfinished {
        unfinished::add_stacks(&mut blocks, unfinished);
    }
    let mut block = |label, figures, lines| {
        blocks.block(label, findings::marked(diagnosis, figures, lines));
    };
    block("EFFICIENCY", Figures::Efficiency, efficiency(why));
    block("WAIT TIME", Figures::Waits, states(why));
    block("WAIT STATES", Figures::Waits, waits(why));
    block("DELAY COSTS", Figures::Delays, causes(why));
    block("CHAIN", Figures::Delays, chain(why));
    blocks.block("CODE", code::lines(diagnosis, why.rank));
    let mut block = |label, figures, lines| {
        blocks.block(label, findings::marked(diagnosis, figures, lines));
    };
    if why.is_of_all() {
        block("CRITICAL PATH", Figures::Delays, path(why));
        block("RANKS", Figures::Delays, ranks(why));
        block("HOSTS", Figures::Delays, hosts::host_lines(why));
        block("REGIONS", Figures::Efficiency, stretches::region_lines(why.run, why.causes));
        block("PHASES", Figures::Efficiency, stretches::phase_lines(why.run, why.causes));
        block("ITERATIONS", Figures::Efficiency, stretches::iteration_lines(why.causes));
    }
    for note in &why.run.notes {
        if let RunNote::Snapshot { reason, rank, utc } = note {
            blocks.note(&snapshot::sentence(*reason, *rank, utc.as_deref()));
        }
    }
    for what in words::missing(why) {
        blocks.note(&format!("Not known: {what}."));
    }
    let next = findings::after_causes(why, diagnosis).map(findings::next_lines);
    blocks.block("NEXT", next.unwrap_or_default());
    blocks.finish()
}

fn efficiency(why: &Why) -> Vec<String> {
    let Some(tree) = why.tree() else {
        return vec!["unknown: it has no length".to_owned()];
    };
    let Tree { parallel, load_balance, between_hosts, within_hosts, .. } = tree;
    let two = |value: f64| significant(value, 2);
    let balance = match (load_balance, between_hosts, within_hosts) {
        (Some(all), Some(between), Some(within)) if between < 1.0 => format!(
            "load balance {} (within hosts {}, between {})",
            two(all),
            two(within),
            two(between)
        ),
        (Some(all), ..) => format!("load balance {}", two(all)),
        (None, ..) => "load balance unknown".to_owned(),
    };
    let communication = match tree.serialisation.zip(tree.transfer) {
        Some((serialisation, transfer)) => {
            format!("serialisation {} x transfer {}", two(serialisation), two(transfer))
        }
        None => format!("communication {}", two(tree.communication)),
    };
    let first = format!(
        "{} = {balance} x {communication}      elapsed {}",
        two(parallel),
        seconds_of(why, why.causes.elapsed())
    );
    // A report's efficiency counts less.
    let counted = match why.causes.compute {
        ComputeMode::Outside => None,
        ComputeMode::Blas => Some("BLAS, LAPACK and FFTW calls"),
        ComputeMode::Regions => Some("the program's regions"),
    };
    let counted =
        counted.map(|what| format!("all code outside MPI counts as computing, not only {what}"));
    std::iter::once(first).chain(counted).collect()
}

fn states(why: &Why) -> Vec<String> {
    let waiting = why.causes.waiting();
    let states = why.causes.states();
    let mut table = Table::with_rows(&states);
    table.left("wait state", |(state, ..)| state.name().to_owned());
    table.right("count", |(_, number, _)| count(*number));
    table.right("time", |(.., ticks)| seconds_of(why, *ticks));
    table.right("share", |(.., ticks)| share(*ticks, waiting));
    let off_cpu = |state: &State| why.causes.off_cpu.at_most.get(state).copied().flatten();
    if states.iter().any(|(state, _, ticks)| is_notable(off_cpu(state), *ticks)) {
        let most = |state| off_cpu(state).map_or("?".to_owned(), |ticks| seconds_of(why, ticks));
        table.right("off the CPU, at most", |(state, ..)| most(state));
    }
    let mut lines = if states.is_empty() { Vec::new() } else { table.lines() };
    if why.causes.uncertain > 0 {
        let uncertain = seconds_of(why, why.causes.uncertain);
        let estimated = estimated_offsets(why.timeline);
        let estimated = estimated.map_or_else(String::new, |text| format!(" ({text})"));
        lines.push(format!(
            "{uncertain} more in waits shorter than the clock uncertainty{estimated}"
        ));
    }
    if why.causes.for_own_threads > 0 {
        let own = seconds_of(why, why.causes.for_own_threads);
        lines.push(format!("{own} more in waits for another thread of the same rank"));
    }
    lines
}

/// Whether so much time without a core, in or beside some other time, is worth a column.
fn is_notable(off_cpu: Option<i64>, beside: i64) -> bool {
    off_cpu.is_some_and(|ticks| ticks > beside / 100)
}

/// Groups of similar waits, with what made their delaying ranks late.
fn waits(why: &Why) -> Vec<String> {
    let groups = waits::groups(why);
    let shown = &groups[..groups.len().min(MAX_ROWS)];
    let mut lines = table::lines(&waits::wait_states(why, shown));
    lines.extend(table::more(groups.len() - shown.len(), "kind"));
    lines
}

fn causes(why: &Why) -> Vec<String> {
    let causes = why.causes;
    let rows = delay_costs::costliest(why);
    let shown = &rows[..rows.len().min(MAX_ROWS)];
    let mut lines = table::lines(&delay_costs::delay_costs(why, shown));
    lines.extend(table::more(rows.len() - shown.len(), "delay"));
    if why.rank.is_none() && causes.charges.unattributed > 0 {
        lines.push(format!(
            "{} of waiting ({}) is charged to nobody",
            seconds_of(why, causes.charges.unattributed),
            share(causes.charges.unattributed, causes.waiting())
        ));
    }
    lines
}

/// The chain from the longest wait to the wait that made its delaying rank late, and so on to the first cause.
fn chain(why: &Why) -> Vec<String> {
    let causes = why.causes;
    let is_selected = |number: &&u32| why.concerns(causes.waits[**number as usize].line);
    let longest = causes.longest(causes.waits.len().min(1_000));
    let explained =
        longest.iter().filter(is_selected).find(|n| causes.waits[**n as usize].has_delaying_rank());
    let Some(mut number) = explained.copied() else { return Vec::new() };
    let mut lines = Vec::new();
    while lines.len() < MAX_ROWS {
        let wait = &causes.waits[number as usize];
        let inside = causes.ticks_of(number);
        let (delays, of_delaying) = causes.delays(number);
        let inner = of_delaying.max_by_key(|inner| causes.waits[*inner as usize].ticks);
        let inner = inner.map(|inner| (inner, causes.waits[inner as usize].ticks));
        let delay = delays.iter().max_by_key(|(_, ticks)| *ticks);
        let first = format!(
            "{} waited {} for {} in {} (at {})",
            words::line(causes, wait.line),
            // Of waits before the selection that led to it, all.
            seconds_of(why, if inside > 0 { inside } else { wait.ticks }),
            words::line(causes, wait.delayed_by),
            words::place(causes, causes.wait_contexts[number as usize]),
            seconds_of(why, wait.begin - causes.whole.0)
        );
        let delayed_by = words::line(causes, wait.delayed_by);
        match (inner, delay) {
            (Some((inner, waited)), delay) if delay.is_none_or(|(_, ticks)| waited > *ticks) => {
                lines.push(first);
                number = inner;
                if !causes.waits[number as usize].has_delaying_rank() {
                    lines.push(format!("{delayed_by} waited itself, delaying rank unknown"));
                    break;
                }
            }
            (_, Some((context, ticks))) => {
                lines.push(first);
                let found = causes.contexts.get(*context);
                let did = match found.is_computing() {
                    true if !causes.counts_as_computing(found) => "was in other code",
                    true => words::own_verb_past(why.own_times().on_line(causes, wait.delayed_by)),
                    false => "spent",
                };
                lines.push(format!(
                    "{delayed_by} {did} {} longer {}",
                    seconds_of(why, *ticks),
                    words::where_phrase(found)
                ));
                break;
            }
            _ => {
                lines.push(first);
                break;
            }
        }
    }
    lines
}

fn path(why: &Why) -> Vec<String> {
    let causes = why.causes;
    let ticks = causes.path.ticks();
    let mut on_ranks: Vec<(u32, i64)> = delay_costs::on_path_by_rank(why).into_iter().collect();
    on_ranks.sort_by_key(|(rank, ticks)| (std::cmp::Reverse(*ticks), *rank));
    let ranks =
        on_ranks.iter().take(4).map(|(rank, on)| format!("rank {rank} {}", share(*on, ticks)));
    let mut lines = vec![format!(
        "{}; it goes from one rank to another {}",
        ranks.collect::<Vec<_>>().join(", "),
        plural(causes.path.switches as usize, "time")
    )];
    let rows = causes.imbalance();
    let shown = &rows[..rows.len().min(MAX_ROWS / 2)];
    lines.extend(table::lines(&delay_costs::critical_path(why, shown)));
    lines
}

fn ranks(why: &Why) -> Vec<String> {
    let causes = why.causes;
    let mut caused: BTreeMap<u32, i64> = BTreeMap::new();
    for ((line, _), cost) in &causes.charges.causes {
        *caused.entry(causes.lines.all[*line as usize].rank).or_default() += cost.total();
    }
    let mut rows: Vec<(u32, RankTime, i64)> = (why.run.ranks.iter().zip(&causes.rank_times))
        .map(|(rank, time)| (rank.rank, *time, caused.get(&rank.rank).copied().unwrap_or(0)))
        .filter(|(rank, ..)| why.rank.is_none_or(|selected| selected == *rank))
        .collect();
    rows.sort_by_key(|(rank, .., caused)| (std::cmp::Reverse(*caused), *rank));
    let shown = &rows[..rows.len().min(MAX_ROWS)];
    let mut table = Table::with_rows(shown);
    table.right("rank", |(rank, ..)| rank.to_string());
    let mut column = |title: &str, of: fn(&RankTime) -> i64| {
        table.right(title, |(_, time, _)| seconds_of(why, of(time)));
    };
    column("computing", |of| of.computing);
    column("waiting", |of| of.waiting);
    column("transfer", |of| of.transfer);
    column("recorder", |of| of.recorder);
    if shown.iter().any(|(_, time, _)| time.gone > 0) {
        column("gone", |of| of.gone);
    }
    let off_cpu_of = |(rank, ..): &(u32, RankTime, i64)| {
        let first =
            causes.lines.all.iter().position(|line| line.rank == *rank && line.thread == 0)?;
        causes.off_cpu.of_line[first]
    };
    if shown.iter().any(|row| is_notable(off_cpu_of(row), row.1.computing)) {
        let off = |row| off_cpu_of(row).map_or("?".to_owned(), |ticks| seconds_of(why, ticks));
        table.right("off the CPU", off);
    }
    table.right("waiting that it causes", |(.., caused)| seconds_of(why, *caused));
    let mut lines = table.lines();
    lines.extend(table::more(rows.len() - shown.len(), "rank"));
    lines
}
