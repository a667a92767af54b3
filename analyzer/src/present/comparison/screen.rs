//! Renders a comparison for the terminal.

use crate::comparison::Comparison;
use crate::comparison::parts::{self, Difference};
use crate::comparison::quantities::PhaseTime;
use crate::comparison::record::Kind;
use crate::comparison::statistics::Estimate;
use crate::diagnosis::Figures;
use crate::present::blocks::Blocks;
use crate::present::context::plural;
use crate::present::findings;
use crate::present::quantity::{percent, seconds, significant};
use crate::present::table::Table;

use super::{verdict, words};

/// Maximum number of rows of a table.
const MAX_ROWS: usize = 10;
/// Smallest difference that gets a row, as a share of elapsed time.
const MIN_ROW_SHARE: f64 = 0.0005;

/// The screen. With `colour`, labels are emphasised; colour alone never carries information.
pub fn screen(of: &Comparison, colour: bool) -> String {
    let mut blocks = Blocks::headed(&head(of), &verdict::sentences(of).join(" "), colour);
    fill(&mut blocks, of);
    blocks.finish()
}

/// A line that names what is compared.
pub(super) fn head(of: &Comparison) -> String {
    let side = |name: &str, side: &[crate::comparison::RunRecord]| match side {
        [one] => format!("{name}: {}", one.run),
        several => format!("{name}: {}", plural(several.len(), "run")),
    };
    let ranks = plural(of.after[0].ranks as usize, "rank");
    let parts =
        [words::program(&of.after[0]), ranks, side("before", &of.before), side("after", &of.after)];
    parts.join(" | ")
}

/// Adds the blocks below the head.
pub(super) fn fill(blocks: &mut Blocks, of: &Comparison) {
    blocks.block("TIME", times(of));
    blocks.block("COUNTS", counts(of));
    let mut block = |label, figures, lines| {
        blocks.block(label, findings::marked_by(of.invalidated_by(figures), lines));
    };
    if of.relation.same_ranks {
        block("PARTS", Figures::Waits, kinds(of));
        block("WHERE", Figures::Delays, places(of));
    } else {
        block("SHARES", Figures::Waits, shares(of));
    }
    block("EFFICIENCY", Figures::Efficiency, factors(of));
    verdict::notes(of).iter().for_each(|note| blocks.note(note));
}

/// Times of the runs, of an iteration and of phases, with their names.
pub(super) fn time_rows(of: &Comparison) -> Vec<(String, &Estimate)> {
    let mut rows: Vec<(String, &Estimate)> = vec![("elapsed".to_owned(), &of.elapsed)];
    rows.extend(of.iteration.iter().map(|estimate| ("iteration (median)".to_owned(), estimate)));
    let kinds = of.of_iteration.iter();
    rows.extend(
        kinds.map(|(kind, estimate)| (format!("  {}, mean rank", words::kind(*kind)), estimate)),
    );
    if of.phases.len() > 1 {
        let name = |phase: &PhaseTime| format!("phase of {}", words::spot(&phase.anchor));
        rows.extend(of.phases.iter().map(|phase| (name(phase), &phase.estimate)));
    }
    rows
}

fn times(of: &Comparison) -> Vec<String> {
    let rows = time_rows(of);
    let s = |ns: f64| seconds(ns * 1e-9);
    let mut table = Table::default();
    table.left("", rows.iter().map(|(name, _)| name.clone()));
    table.right("before", rows.iter().map(|(_, of)| s(of.before)));
    table.right("after", rows.iter().map(|(_, of)| s(of.after)));
    table.right("difference", rows.iter().map(|(_, of)| words::signed(of.difference())));
    table.left("98 % interval", rows.iter().map(|(_, of)| words::interval(of, 1.0)));
    table.right("runs vary by", rows.iter().map(|(_, of)| scatter(of)));
    table.lines()
}

pub(super) fn scatter(of: &Estimate) -> String {
    if of.is_assumed { "not known".to_owned() } else { percent(of.spread) }
}

fn counts(of: &Comparison) -> Vec<String> {
    if of.changes.is_empty() {
        let known = of.before.iter().chain(&of.after).all(|record| record.partners.is_some());
        let what = if known { "calls, messages, bytes, partners" } else { "calls" };
        return vec![format!("{what}: the same")];
    }
    let shown = &of.changes[..of.changes.len().min(MAX_ROWS)];
    let mut table = Table::default();
    table.left("what", shown.iter().map(|change| words::what(&change.what)));
    table.right("before", shown.iter().map(|change| words::values(change)[0].clone()));
    table.right("after", shown.iter().map(|change| words::values(change)[1].clone()));
    let mut lines = table.lines();
    push_omitted(&mut lines, of.changes.len() - shown.len(), "count");
    lines
}

fn push_omitted(lines: &mut Vec<String>, left_out: usize, what: &str) {
    if left_out > 0 {
        lines.push(format!("{} (--json lists all)", plural(left_out, &format!("more {what}"))));
    }
}

/// The kinds of time of the mean rank, whose differences add up.
fn kinds(of: &Comparison) -> Vec<String> {
    let groups = of.differences.groups(of.sides(), |key| Some(key.kind));
    let (over, each) = verdict::per_iteration(of);
    let s = |ns: f64| seconds(ns / over * 1e-9);
    let rows: Vec<_> =
        groups.iter().filter(|of| of.estimate.before.max(of.estimate.after) > 0.0).collect();
    let mut table = Table::default();
    let names = rows.iter().map(|row| words::kind(row.name).to_owned());
    table.left(&format!("mean rank{each}"), names.chain(["sum".to_owned()]));
    let sums = |of: fn(&Estimate) -> f64| rows.iter().map(|row| of(&row.estimate)).sum::<f64>();
    let before = rows.iter().map(|row| s(row.estimate.before));
    table.right("before", before.chain([s(sums(|of| of.before))]));
    let after = rows.iter().map(|row| s(row.estimate.after));
    table.right("after", after.chain([s(sums(|of| of.after))]));
    let ns = rows.iter().map(|row| words::signed(row.ns as f64 / over));
    let whole = of.differences.elapsed_ns - of.differences.unexplained_ns;
    table.right("difference", ns.chain([words::signed(whole as f64 / over)]));
    let intervals = rows.iter().map(|row| words::interval(&row.estimate, over));
    table.left("98 % interval", intervals.chain([String::new()]));
    let mut lines = table.lines();
    if of.differences.unexplained_ns != 0 {
        lines.push(format!(
            "unexplained: {}",
            words::signed(of.differences.unexplained_ns as f64 / over)
        ));
    }
    lines
}

/// The places with the largest differences, and the rest, so that they add up to the parts.
fn places(of: &Comparison) -> Vec<String> {
    let min_ns = MIN_ROW_SHARE * of.elapsed.before;
    let is_large = |part: &&Difference| part.ns.unsigned_abs() as f64 >= min_ns;
    let all: Vec<&Difference> = of.differences.parts.iter().filter(is_large).collect();
    let shown = &all[..all.len().min(MAX_ROWS)];
    if shown.is_empty() {
        return vec![format!(
            "no part differs by {} or more of the elapsed time",
            percent(MIN_ROW_SHARE)
        )];
    }
    let (over, each) = verdict::per_iteration(of);
    let what = |part: &Difference| match (&part.key.state, part.key.kind) {
        (Some(state), Kind::Waiting | Kind::StartAndEnd) => words::state(state),
        _ => words::kind(part.key.kind).to_owned(),
    };
    let delayed_by = |part: &Difference| {
        part.key.delayed_by.map(|rank| format!("rank {rank}")).unwrap_or_default()
    };
    let direction = |part: &Difference| if part.ns > 0 { "in" } else { "out" }.to_owned();
    let rest = of.differences.parts.len() - shown.len();
    let rest_ns = of.differences.sum(|_| true) - shown.iter().map(|part| part.ns).sum::<i64>();
    // A row of its own, whose other columns are empty.
    let with_rest = |column: Vec<String>, last: String| {
        column.into_iter().chain((rest > 0).then_some(last)).collect::<Vec<_>>()
    };
    let column = |of: &dyn Fn(&Difference) -> String| -> Vec<String> {
        shown.iter().map(|part| of(part)).collect()
    };
    let empty = String::new;
    let rest_name = format!("{} (--json lists all)", plural(rest, "smaller place"));
    let ns = column(&|part| words::signed(part.ns as f64 / over));
    let mut table = Table::default();
    table.left("", with_rest(column(&direction), empty()));
    table.left("where", with_rest(column(&|part| words::spot(&part.shown)), rest_name));
    table.left("what", with_rest(column(&what), empty()));
    table.left("for", with_rest(column(&delayed_by), empty()));
    table.right(&format!("mean rank{each}"), with_rest(ns, words::signed(rest_ns as f64 / over)));
    table.left("ranks", with_rest(column(&|part| most_changed(part, of, over)), empty()));
    table.lines()
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

fn shares(of: &Comparison) -> Vec<String> {
    let shares = parts::shares(&of.before, &of.after);
    let rows: Vec<_> = shares.iter().filter(|(_, of)| of.before.max(of.after) > 0.0).collect();
    let mut table = Table::default();
    table.left("of all ranks' time", rows.iter().map(|(kind, _)| words::kind(*kind).to_owned()));
    table.right("before", rows.iter().map(|(_, of)| percent(of.before)));
    table.right("after", rows.iter().map(|(_, of)| percent(of.after)));
    table.lines()
}

fn factors(of: &Comparison) -> Vec<String> {
    let two = |value: f64| significant(value, 2);
    let mut table = Table::default();
    table.left("", of.tree.iter().map(|factor| factor.name.replace('_', " ")));
    table.right("before", of.tree.iter().map(|factor| two(factor.estimate.before)));
    table.right("after", of.tree.iter().map(|factor| two(factor.estimate.after)));
    table.left("98 % interval", of.tree.iter().map(|factor| change_of_factor(&factor.estimate)));
    table.left("", of.tree.iter().map(|factor| better_or_worse(&factor.estimate).to_owned()));
    table.lines()
}

/// The interval of a factor's difference.
pub(super) fn change_of_factor(of: &Estimate) -> String {
    let signed = |value: f64| format!("{value:+.2}");
    of.interval
        .map_or("not known".to_owned(), |(lo, hi)| format!("{} to {}", signed(lo), signed(hi)))
}

/// How a factor changed, if that is certain.
pub(super) fn better_or_worse(of: &Estimate) -> &'static str {
    match of.is_certain() {
        true if of.difference() > 0.0 => "better",
        true => "worse",
        false => "",
    }
}
