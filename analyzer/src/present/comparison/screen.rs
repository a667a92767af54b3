//! Renders a comparison for the terminal.

use crate::comparison::Comparison;
use crate::comparison::parts::Difference;
use crate::diagnosis::Figures;
use crate::present::blocks::Blocks;
use crate::present::context::plural;
use crate::present::findings;
use crate::present::quantity::percent;
use crate::present::table;

use super::{tables, verdict, words};

const MAX_ROWS: usize = 10;
/// Smallest difference that gets a row, as a share of elapsed time.
const MIN_ROW_SHARE: f64 = 0.0005;

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
    blocks.block("TIME", table::lines(&tables::times(of)));
    blocks.block("COUNTS", counts(of));
    let mut block = |label, figures, lines| {
        blocks.block(label, findings::marked_by(of.invalidated_by(figures), lines));
    };
    if of.relation.same_ranks {
        block("PARTS", Figures::Waits, kinds(of));
        block("WHERE", Figures::Delays, places(of));
    } else {
        block("SHARES", Figures::Waits, table::lines(&tables::shares(of)));
    }
    block("THREADS, FILES", Figures::Waits, beside(of));
    block("EFFICIENCY", Figures::Efficiency, table::lines(&tables::factors(of)));
    blocks.block("CODE", functions(of));
    verdict::notes(of).iter().for_each(|note| blocks.note(note));
}

fn counts(of: &Comparison) -> Vec<String> {
    if of.changes.is_empty() {
        let known = of.before.iter().chain(&of.after).all(|record| record.partners.is_some());
        let what = if known { "calls, messages, bytes, partners" } else { "calls" };
        return vec![format!("{what}: the same")];
    }
    let shown = &of.changes[..of.changes.len().min(MAX_ROWS)];
    let mut lines = table::lines(&tables::counts(shown));
    lines.extend(table::more(of.changes.len() - shown.len(), "count"));
    lines
}

/// Times of parallel regions and of calls on files.
fn beside(of: &Comparison) -> Vec<String> {
    let shown = &of.beside[..of.beside.len().min(MAX_ROWS)];
    if shown.is_empty() {
        return Vec::new();
    }
    let mut lines = table::lines(&tables::beside(shown));
    lines.extend(table::more(of.beside.len() - shown.len(), "time"));
    lines
}

fn kinds(of: &Comparison) -> Vec<String> {
    let mut lines = table::lines(&tables::kinds(of));
    if of.differences.unexplained_ns != 0 {
        let (over, _) = verdict::per_iteration(of);
        let ns = of.differences.unexplained_ns as f64 / over;
        lines.push(format!("unexplained: {}", words::signed(ns)));
    }
    lines
}

/// The functions whose time differs with certainty.
fn functions(of: &Comparison) -> Vec<String> {
    let all = &of.code.functions;
    let certain = all.iter().filter(|of| of.is_significant).count();
    if certain == 0 {
        return verdict::no_function(of).into_iter().collect();
    }
    let shown = &all[..certain.min(MAX_ROWS)];
    let mut lines = table::brief_lines(&tables::functions(of, shown));
    lines.extend(table::more(certain - shown.len(), "function"));
    lines
}

/// The places with the largest differences, and the sum of the rest, so that they add up to the parts.
fn places(of: &Comparison) -> Vec<String> {
    let min_ns = MIN_ROW_SHARE * of.elapsed.before;
    let is_large = |part: &&Difference| part.ns.unsigned_abs() as f64 >= min_ns;
    let shown: Vec<&Difference> =
        of.differences.parts.iter().filter(is_large).take(MAX_ROWS).collect();
    if shown.is_empty() {
        return vec![format!(
            "no part differs by {} or more of the elapsed time",
            percent(MIN_ROW_SHARE)
        )];
    }
    let mut lines = table::brief_lines(&tables::places(of, &shown));
    let rest = of.differences.parts.len() - shown.len();
    if rest > 0 {
        let ns = of.differences.sum(|_| true) - shown.iter().map(|part| part.ns).sum::<i64>();
        let (over, _) = verdict::per_iteration(of);
        let (rest, sum) = (plural(rest, "smaller place"), words::signed(ns as f64 / over));
        lines.push(format!("{rest}: {sum} (--json lists all)"));
    }
    lines
}
