//! Sections that only some runs have: what did not finish, waits, call sites, the roofline, as values for
//! `panels.html`.

use minijinja::context;
use minijinja::value::Value;
use trace_format::header::Definition;

use crate::causes::Group;
use crate::diagnosis::{CodePart, Diagnosis, Why};
use crate::metrics::code::{Code, CodeRow};
use crate::metrics::{CallMetrics, Metrics, RankFiles, Unfinished};
use crate::models::roofline::Findings;
use crate::present::report::{file_sentences, openmp_sentences};
use crate::present::{roofline, unfinished};
use crate::tables::code::CodeTable;
use crate::tables::{Cell, Table, calls, code_parts, files, openmp, waits};
use crate::trace::Run;

use super::markup::safe;
use super::table::{by_key, laid_out};

/// Rows of the table of ranks that did not finish.
const MAX_POSITIONS: usize = 200;
const MAX_WAITS: usize = 50;
/// Causes in the summary.
const MAX_TOP: usize = 3;
const MAX_LONGEST: usize = 20;
const MAX_SITES: usize = 200;
const MAX_LINES: usize = 100;
/// Functions of each part of the run, and parts of a kind.
const MAX_OF_PART: usize = 5;
const MAX_PARTS: usize = 50;

/// Where each rank stopped and what it waits for.
pub(super) fn unfinished(unfinished: &Unfinished) -> Value {
    let (positions, left_out) = unfinished::positions(unfinished, MAX_POSITIONS);
    context! {
        positions => laid_out(&unfinished::position_table(&positions)),
        left_out => left_out,
        sentences => unfinished::sentences(unfinished),
        stacks => unfinished::stack_lines(unfinished),
        last => unfinished::last_call_lines(unfinished),
    }
}

/// Groups of waits with the same cause, those with most time first, and how many groups are left out; then the longest
/// single waits. `unfinished` tells whom a rank waits for in a call that never returned.
pub(super) fn waits(why: &Why, unfinished: Option<&Unfinished>) -> Value {
    let groups = waits::groups(why);
    let shown = &groups[..groups.len().min(MAX_WAITS)];
    let table = waits::wait_states(why, shown);
    let all: i64 = why.causes.groups.iter().map(|group| group.ticks).sum();
    let share = |(_, group): &(usize, &Group)| (all > 0).then(|| group.ticks as f64 / all as f64);
    let shares: Vec<_> = shown.iter().take(MAX_TOP).map(share).collect();
    let longest = waits::longest_waits(
        why,
        MAX_LONGEST,
        &unfinished.map(unfinished::open_waits).unwrap_or_default(),
    );
    context! {
        table => (table.rows() > 0).then(|| laid_out(&table)),
        top => by_key(&table, MAX_TOP),
        shares,
        left_out => groups.len() - shown.len(),
        longest => (longest.rows() > 0).then(|| laid_out(&longest)),
    }
}

pub(super) fn calls(metrics: &Metrics) -> Option<Value> {
    let rows: Vec<&CallMetrics> = metrics.calls.iter().collect();
    (!rows.is_empty()).then(|| laid_out(&calls::calls(metrics, &rows)))
}

/// Call sites, those with most time first, and how many are left out.
pub(super) fn sites(metrics: &Metrics) -> Option<(Value, usize)> {
    let all = &metrics.sites.as_ref()?.rows;
    let shown = &all[..all.len().min(MAX_SITES)];
    Some((laid_out(&calls::sites(metrics, shown)), all.len() - shown.len()))
}

/// Functions, those with most time first, lines, and the main functions of regions, iterations and threads.
pub(super) fn code(diagnosis: &Diagnosis) -> Option<Value> {
    let table = CodeTable::new(diagnosis)?;
    let all = table.rows(None);
    let shown = &all[..all.len().min(MAX_SITES)];
    let mut functions = table.table(None, shown);
    let number = |row: &CodeRow| match row.code {
        Code::Function(of) => Cell::Count(of.into()),
        _ => Cell::Nothing,
    };
    functions.mark("number", shown.iter().map(number));
    // Without debugging information functions have one row each, which says no more than theirs.
    let has_lines = table.code.by_line.iter().any(|row| row.line.is_some());
    let all_lines = if has_lines { &table.code.by_line[..] } else { &[] };
    let shown_lines = &all_lines[..all_lines.len().min(MAX_LINES)];
    let mut lines = table.lines(shown_lines);
    // The place says it.
    lines.columns.retain(|column| column.key != "line");
    let parts = CodePart::all(&diagnosis.of);
    let parts = code_parts::overview(&diagnosis.of, &parts, MAX_OF_PART, MAX_PARTS);
    let not_empty = |table: &Table| (table.rows() > 0).then(|| laid_out(table));
    Some(context! {
        functions => laid_out(&functions),
        functions_left_out => all.len() - shown.len(),
        lines => not_empty(&lines),
        lines_left_out => all_lines.len() - shown_lines.len(),
        parts => not_empty(&parts),
    })
}

/// Which lanes the timeline may have.
pub(super) fn lanes(run: &Run) -> Value {
    let mut definitions = run.ranks.iter().flat_map(|rank| &rank.file.definitions);
    let teams = definitions.clone().any(|of| matches!(of, Definition::OpenMp { .. }));
    let files = definitions.any(|of| matches!(of, Definition::FileRecording(_)));
    context! { teams, files }
}

/// A table of the first rows, and how many are left out.
fn first_rows<T>(rows: &[T], table: impl FnOnce(&[T]) -> Table) -> Option<Value> {
    let shown = &rows[..rows.len().min(MAX_SITES)];
    let left_out = rows.len() - shown.len();
    (!rows.is_empty()).then(|| context! { table => laid_out(&table(shown)), left_out })
}

/// Threads and parallel regions of OpenMP.
pub(super) fn openmp(metrics: &Metrics) -> Option<Value> {
    let of = metrics.openmp.as_ref()?;
    Some(context! {
        sentences => openmp_sentences(of, metrics.elapsed_s),
        tree => of.hybrid.as_ref().map(|hybrid| laid_out(&openmp::hybrid(hybrid))),
        threads => first_rows(&of.ranks, openmp::threads),
        regions => first_rows(&of.regions, |shown| openmp::regions(of, shown)),
    })
}

/// Files, and what ranks do with them.
pub(super) fn files(metrics: &Metrics) -> Option<Value> {
    let of = metrics.files.as_ref()?;
    let ranks: &[RankFiles] = if of.files.is_empty() { &[] } else { &of.ranks };
    Some(context! {
        sentences => file_sentences(of, metrics),
        files => first_rows(&of.files, files::files),
        ranks => first_rows(ranks, files::ranks),
    })
}

/// The run under the roofline of a machine.
pub(super) fn roofline(findings: &Findings) -> Value {
    let placed: Vec<_> = findings.runs.iter().flat_map(|run| &run.assessed).collect();
    let figures = roofline::drawings(findings).into_iter();
    let figures = figures.map(|(_, figure)| safe(figure.svg_for_page()));
    let notes = findings.runs.iter().flat_map(|run| &run.notes).chain(&findings.notes);
    context! {
        points => laid_out(&roofline::points(&placed)),
        sentences => placed.iter().map(|placed| roofline::sentence(placed)).collect::<Vec<_>>(),
        figures => figures.collect::<Vec<Value>>(),
        notes => notes.collect::<Vec<_>>(),
        source => findings.source.as_deref().unwrap_or("none"),
    }
}
