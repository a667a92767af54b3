//! The tables of a comparison, for the terminal and the page.

use crate::comparison::Comparison;
use crate::comparison::beside::BesideDifference;
use crate::comparison::cause::WhichRanks;
use crate::comparison::code::FunctionDifference;
use crate::comparison::counts::Change;
use crate::comparison::parts::{self, Difference};
use crate::comparison::quantities::PhaseTime;
use crate::comparison::record::Kind;
use crate::comparison::sampled::{Sampled, SampledKind};
use crate::comparison::statistics::Estimate;
use crate::tables::{Cell, Table};

use super::{verdict, words};

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

/// Nanoseconds as seconds.
fn s(ns: f64) -> Cell {
    Cell::Seconds(ns * 1e-9)
}

fn interval(of: &Estimate, over: f64) -> Cell {
    Cell::Text(words::interval(of, over))
}

/// Times of the runs, of an iteration and of phases.
pub(super) fn times(of: &Comparison) -> Table {
    let mut rows: Vec<(String, &Estimate)> = vec![("elapsed".to_owned(), &of.elapsed)];
    rows.extend(of.iteration.iter().map(|estimate| ("iteration (median)".to_owned(), estimate)));
    let kinds = of.of_iteration.iter();
    let name = |kind: Kind| format!("  {}, mean rank", words::kind(kind));
    rows.extend(kinds.map(|(kind, estimate)| (name(*kind), estimate)));
    if of.phases.len() > 1 {
        let name = |phase: &PhaseTime| format!("phase of {}", words::spot(&phase.anchor));
        rows.extend(of.phases.iter().map(|phase| (name(phase), &phase.estimate)));
    }
    let scatter = |of: &Estimate| match of.is_assumed {
        true => text("not known"),
        false => Cell::Share(of.spread),
    };
    let rows = || rows.iter();
    let mut table = Table::default();
    table.add("name", "", rows().map(|(name, _)| text(name)));
    table.add("before_s", "before", rows().map(|(_, of)| s(of.before)));
    table.add("after_s", "after", rows().map(|(_, of)| s(of.after)));
    let differences = rows().map(|(_, of)| Cell::Difference(of.difference() * 1e-9));
    table.add("difference_s", "difference", differences);
    table.add("interval", "98 % interval", rows().map(|(_, of)| interval(of, 1.0)));
    table.add("spread", "runs vary by", rows().map(|(_, of)| scatter(of)));
    table
}

pub(super) fn counts(changes: &[Change]) -> Table {
    let values = |at: usize| changes.iter().map(move |of| text(&words::values(of)[at]));
    let mut table = Table::default();
    table.add("what", "what", changes.iter().map(|change| Cell::Text(words::what(&change.what))));
    table.add("before", "before", values(0));
    table.add("after", "after", values(1));
    table
}

/// The kinds of time of the mean rank, whose differences add up.
pub(super) fn kinds(of: &Comparison) -> Table {
    let groups = of.differences.groups(of.sides(), |key| Some(key.kind));
    let (over, each) = verdict::per_iteration(of);
    let is_there = |of: &&Estimate| of.before.max(of.after) > 0.0;
    let rows = || groups.iter().filter(|row| is_there(&&row.estimate));
    let sum = |of: fn(&Estimate) -> f64| rows().map(|row| of(&row.estimate)).sum::<f64>();
    let whole = of.differences.elapsed_ns - of.differences.unexplained_ns;
    let differences = rows().map(|row| row.ns).chain([whole]);
    let before = rows().map(|row| row.estimate.before).chain([sum(|of| of.before)]);
    let after = rows().map(|row| row.estimate.after).chain([sum(|of| of.after)]);
    let mut table = Table::default();
    let names = rows().map(|row| words::kind(row.name)).chain(["sum"]);
    table.add("kind", &format!("mean rank{each}"), names.map(text));
    table.add("before_s", "before", before.map(|ns| s(ns / over)));
    table.add("after_s", "after", after.map(|ns| s(ns / over)));
    let differences = differences.map(|ns| Cell::Difference(ns as f64 / over * 1e-9));
    table.add("difference_s", "difference", differences);
    let intervals = rows().map(|row| interval(&row.estimate, over)).chain([text("")]);
    table.add("interval", "98 % interval", intervals);
    table
}

pub(super) fn places(of: &Comparison, rows: &[&Difference]) -> Table {
    let (over, each) = verdict::per_iteration(of);
    let what = |part: &Difference| match (&part.key.state, part.key.kind) {
        (Some(state), Kind::Waiting | Kind::StartAndEnd) => Cell::Text(words::state(state)),
        _ => text(words::kind(part.key.kind)),
    };
    let delayed_by = |part: &Difference| {
        part.key.delayed_by.map_or(text(""), |rank| Cell::Thread { rank, number: 0 })
    };
    let difference = |part: &Difference| Cell::Difference(part.ns as f64 / over * 1e-9);
    let rows = || rows.iter().copied();
    let mut table = Table::default();
    table.add("direction", "", rows().map(|of| text(if of.ns > 0 { "in" } else { "out" })));
    table.add("place", "where", rows().map(|part| Cell::Text(words::spot(&part.shown))));
    table.add("what", "what", rows().map(what));
    table.add("delayed_by", "delayed by", rows().map(delayed_by));
    table.detail("before_s", "before", rows().map(|part| s(part.estimate.before / over)));
    table.detail("after_s", "after", rows().map(|part| s(part.estimate.after / over)));
    table.add("difference_s", &format!("mean rank{each}"), rows().map(difference));
    let intervals = rows().map(|part| interval(&part.estimate, over));
    table.detail("interval", "98 % interval", intervals);
    table.add("ranks", "ranks", rows().map(|part| Cell::Text(most_changed(part, of, over))));
    table
}

/// The rank that changed most if it changed at least twice as much as the mean; else "all ranks".
fn most_changed(part: &Difference, of: &Comparison, over: f64) -> String {
    let sign = if part.ns > 0 { 1.0 } else { -1.0 };
    let all = part.by_ranks.iter().enumerate();
    let Some((at, ns)) = all.max_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1))) else {
        return String::new();
    };
    let group = of.differences.ranks_per_group;
    if sign * ns < 2.0 * sign * part.ns as f64 {
        return "all ranks".to_owned();
    }
    let first = at as u32 * group;
    let name = match group {
        1 => format!("rank {first}"),
        _ => format!("ranks {first}-{}", first + group - 1),
    };
    format!("{name}: {}", words::signed(ns / over))
}

/// Own time of functions over all ranks.
pub(super) fn functions(of: &Comparison, rows: &[FunctionDifference]) -> Table {
    let (over, each) = verdict::per_iteration(of);
    let place = |of: &FunctionDifference| match of.shown.kind {
        SampledKind::Function => {
            let Sampled { module, file, line, .. } = of.shown.clone();
            Cell::Source { module, file, line }
        }
        _ => Cell::Nothing,
    };
    let on = |of: &FunctionDifference| match &of.on {
        None => String::new(),
        Some((which, ns)) => {
            let ns = words::signed(ns / over);
            match which {
                WhichRanks::All => format!("all ranks: {ns}"),
                WhichRanks::Some(_) => format!("{}: {ns}", verdict::which(which)),
            }
        }
    };
    let rows = || rows.iter();
    let mut table = Table::default();
    table.add("function", "function", rows().map(|of| Cell::Text(words::sampled(&of.shown))));
    table.add("place", "where", rows().map(place));
    table.add("before_s", "before", rows().map(|of| s(of.estimate.before / over)));
    table.add("after_s", "after", rows().map(|of| s(of.estimate.after / over)));
    let title = format!("all ranks{each}");
    let differences = rows().map(|of| Cell::Difference(of.estimate.difference() / over * 1e-9));
    table.add("difference_s", &title, differences);
    table.detail("interval", "98 % interval", rows().map(|of| interval(&of.estimate, over)));
    table.add("ranks", "ranks", rows().map(|of| Cell::Text(on(of))));
    table
}

/// Times of parallel regions and of calls on files.
pub(super) fn beside(rows: &[BesideDifference]) -> Table {
    let mark = |of: &BesideDifference| match of.is_significant {
        true if of.estimate.difference() > 0.0 => text("longer"),
        true => text("shorter"),
        false => text(""),
    };
    let rows = || rows.iter();
    let mut table = Table::default();
    table.add("what", "mean rank", rows().map(|of| Cell::Text(words::beside(&of.what))));
    table.add("before_s", "before", rows().map(|of| s(of.estimate.before)));
    table.add("after_s", "after", rows().map(|of| s(of.estimate.after)));
    let differences = rows().map(|of| Cell::Difference(of.estimate.difference() * 1e-9));
    table.add("difference_s", "difference", differences);
    table.add("interval", "98 % interval", rows().map(|of| interval(&of.estimate, 1.0)));
    table.add("change", "", rows().map(mark));
    table
}

/// Parts of all ranks' time.
pub(super) fn shares(of: &Comparison) -> Table {
    let shares = parts::shares(&of.before, &of.after);
    let rows = || shares.iter().filter(|(_, of)| of.before.max(of.after) > 0.0);
    let mut table = Table::default();
    table.add("kind", "of all ranks' time", rows().map(|(kind, _)| text(words::kind(*kind))));
    table.add("before", "before", rows().map(|(_, of)| Cell::Share(of.before)));
    table.add("after", "after", rows().map(|(_, of)| Cell::Share(of.after)));
    table
}

pub(super) fn factors(of: &Comparison) -> Table {
    let rows = || of.tree.iter().map(|factor| &factor.estimate);
    let change = |of: &Estimate| match of.interval {
        None => text("not known"),
        Some((lo, hi)) => Cell::Text(format!("{lo:+.2} to {hi:+.2}")),
    };
    let better = |of: &Estimate| match of.is_certain() {
        true if of.difference() > 0.0 => text("better"),
        true => text("worse"),
        false => text(""),
    };
    let mut table = Table::default();
    table.add("name", "factor", of.tree.iter().map(|of| Cell::Text(of.name.replace('_', " "))));
    table.add("before", "before", rows().map(|of| Cell::Factor(of.before)));
    table.add("after", "after", rows().map(|of| Cell::Factor(of.after)));
    table.add("interval", "98 % interval", rows().map(change));
    table.add("change", "", rows().map(better));
    table
}
