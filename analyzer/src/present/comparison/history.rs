//! Renders a history as a self-contained HTML page: time and efficiency of successive runs, and where they changed.

use minijinja::context;
use minijinja::value::Value;

use crate::comparison::cause::Cause;
use crate::comparison::history::Series;
use crate::comparison::record::Kind;
use crate::comparison::{Comparison, Relation, RunRecord};
use crate::plain_text::printable;
use crate::present::context::plural;
use crate::present::figure::{Axis, Figure, Panel, Reference, Series as Line, Width};
use crate::present::findings;
use crate::present::html::{PageError, laid_out, page_of_tables, safe};
use crate::present::quantity::percent;

use crate::tables::{Cell, Table};

use super::{baseline, verdict, words};

/// Maximum number of runs on each side of a change that are compared to find its cause.
const MAX_RUNS_PER_SIDE: usize = 5;

/// The HTML page of some series.
pub fn page(all: &[Series]) -> Result<String, PageError> {
    let runs: usize = all.iter().map(|series| series.runs.len()).sum();
    let parts = [plural(all.len(), "series"), plural(runs, "run")];
    let parts = [parts[0].replace("seriess", "series"), parts[1].clone()];
    let program = all.first().map_or("", |series| series.runs[0].program.as_str());
    let content = context! { all => all.iter().map(series).collect::<Vec<Value>>() };
    page_of_tables("history.html", [&format!("{program}: history"), &parts.join(" | ")], content)
}

/// What tells a run from the others.
fn named(run: &RunRecord) -> Value {
    context! {
        run => printable(&run.run),
        begun => baseline::begun(run),
        version => printable(&baseline::labels(run)),
    }
}

fn series(of: &Series) -> Value {
    let first = of.runs[0];
    let name = format!("{}, {}", words::program(first), plural(first.ranks as usize, "rank"));
    let of_time = |at: &&usize| of.changes.iter().any(|change| change.at == **at);
    let counts = of.other_counts.iter().filter(|at| !of_time(at)).filter_map(|at| {
        let (run, from, to) = (of.runs[*at], at.saturating_sub(2), of.runs.len().min(at + 2));
        let sentence = cause_between(&of.runs[from..*at], &of.runs[*at..to])?;
        Some(context! { sentence => printable(&sentence), ..named(run) })
    });
    let changes = of.changes.iter().map(|change| {
        let run = of.runs[change.at];
        context! {
            change => words::change(&change.estimate),
            cause => cause(of, change.at).map(|text| printable(&text)),
            ..named(run)
        }
    });
    let undecided = of.undecided.iter().map(|change| {
        let run = of.runs[change.at];
        context! {
            change => words::change(&change.estimate),
            why => verdict::lack_of_cores(&change.basis),
            ..named(run)
        }
    });
    context! {
        name => printable(&name),
        machine => words::machine(first),
        what => if of.of_iteration { "iteration (median)" } else { "elapsed time" },
        figure => safe(figure(of).svg_for_page()),
        runs => laid_out(&runs(of)),
        changes => changes.collect::<Vec<Value>>(),
        undecided => undecided.collect::<Vec<Value>>(),
        counts => counts.collect::<Vec<Value>>(),
        spread => spread(of).map(percent),
    }
}

/// Runs in their order, a row each.
fn runs(of: &Series) -> Table {
    let rows = || of.runs.iter();
    let text = |text: &str| Cell::Text(text.to_owned());
    let factor = |value: Option<f64>| Cell::or_nothing(value, Cell::Ratio);
    let note = |(at, run): (usize, &&RunRecord)| {
        let changed = of.changes.iter().any(|change| change.at == at).then_some("changed here");
        let counts = of.other_counts.contains(&at).then_some("other counts");
        let doubt = Some(doubt(run)).filter(|doubt| !doubt.is_empty());
        let all = changed.or(counts).map(str::to_owned).into_iter().chain(doubt);
        Cell::Text(all.collect::<Vec<_>>().join("; "))
    };
    let iteration = |run: &&RunRecord| baseline::iteration_ns(run).map(|ns| ns * 1e-9);
    let mut table = Table::default();
    table.add("number", "run", (0..of.runs.len() as u64).map(Cell::Count));
    table.add("begun", "begun (UTC)", rows().map(|run| Cell::Text(baseline::begun(run))));
    table.add("run", "name", rows().map(|run| text(&run.run)));
    table.add("version", "version", rows().map(|run| Cell::Text(baseline::labels(run))));
    let elapsed = rows().map(|run| Cell::Seconds(run.elapsed_ns as f64 * 1e-9));
    table.add("elapsed_s", "elapsed", elapsed);
    let iterations = rows().map(|run| Cell::or_nothing(iteration(run), Cell::Seconds));
    table.add("iteration_s", "per iteration", iterations);
    let efficiency = rows().map(|run| factor(run.tree.map(|tree| tree.parallel)));
    table.add("efficiency", "efficiency", efficiency);
    let balance = rows().map(|run| factor(run.tree.and_then(|tree| tree.load_balance)));
    table.add("load_balance", "load balance", balance);
    let waiting = rows().map(|run| Cell::Share(share(run, Kind::Waiting)));
    table.add("waiting", "waiting", waiting);
    table.add("note", "", rows().enumerate().map(note));
    table
}

/// What makes figures of a run invalid; empty if they are valid.
fn doubt(run: &RunRecord) -> String {
    let invalid = run.findings.iter().filter(|finding| !finding.invalidates().is_empty());
    let sentences = invalid.filter_map(|finding| findings::sentence(finding, None));
    printable(&sentences.collect::<Vec<_>>().join(" "))
}

fn share(run: &RunRecord, kind: Kind) -> f64 {
    run.mean_ns(|part| part.kind == kind) / run.elapsed_ns as f64
}

/// The largest spread of runs between changes.
fn spread(of: &Series) -> Option<f64> {
    of.changes.iter().map(|change| change.estimate.spread).reduce(f64::max)
}

/// The cause of a change, found by comparing the runs on either side of it.
fn cause(of: &Series, at: usize) -> Option<String> {
    let ends = |position: usize| {
        let all = of.changes.iter().chain(&of.undecided);
        all.map(|change| change.at).filter(move |end| *end != position)
    };
    let from = ends(at)
        .filter(|end| *end < at)
        .max()
        .unwrap_or(0)
        .max(at.saturating_sub(MAX_RUNS_PER_SIDE));
    let to =
        ends(at).filter(|end| *end > at).min().unwrap_or(of.runs.len()).min(at + MAX_RUNS_PER_SIDE);
    cause_between(&of.runs[from..at], &of.runs[at..to])
}

fn cause_between(before: &[&RunRecord], after: &[&RunRecord]) -> Option<String> {
    let owned = |runs: &[&RunRecord]| runs.iter().map(|run| (*run).clone()).collect::<Vec<_>>();
    let (before, after) = (owned(before), owned(after));
    let relation = Relation::between(&before, &after).ok()?;
    let comparison = Comparison::new(&before, &after, relation);
    let cause: &Cause = comparison.cause.as_ref()?;
    Some(verdict::cause(&comparison, cause))
}

/// Time and efficiency of the runs in their order.
fn figure(of: &Series) -> Figure {
    let numbered = |values: &mut dyn Iterator<Item = f64>| -> Vec<(f64, f64)> {
        values.enumerate().map(|(at, value)| (at as f64, value)).collect()
    };
    let label = if of.of_iteration { "time per iteration" } else { "elapsed time" };
    let times = numbered(&mut of.values.iter().map(|ns| ns * 1e-9));
    let factor = |value: fn(&crate::comparison::record::Factors) -> Option<f64>| {
        let values =
            of.runs.iter().map(move |run| run.tree.as_ref().and_then(value).unwrap_or(f64::NAN));
        numbered(&mut values.collect::<Vec<_>>().into_iter())
    };
    // Not from zero, where a change of some per cent could not be seen.
    let mut time = Panel::new(Axis::linear("run", "").whole(), Axis::linear(label, "s"))
        .with(Line::line_and_points(label, times));
    let mut efficiency =
        Panel::new(Axis::linear("run", "").whole(), Axis::linear("efficiency", "").from_zero())
            .with(Line::line_and_points("parallel", factor(|tree| Some(tree.parallel))))
            .with(Line::line_and_points("load balance", factor(|tree| tree.load_balance)))
            .with(Line::line_and_points("communication", factor(|tree| Some(tree.communication))));
    let is_doubtful =
        |at: &usize| of.runs[*at].findings.iter().any(|one| !one.invalidates().is_empty());
    let doubtful: Vec<(f64, f64)> = (0..of.runs.len())
        .filter(is_doubtful)
        .map(|at| (at as f64, of.values[at] * 1e-9))
        .collect();
    if !doubtful.is_empty() {
        time = time.with(Line::points("figures unreliable", doubtful));
    }
    for change in &of.changes {
        let at = change.at as f64 - 0.5;
        let run = of.runs[change.at];
        time = time.with_reference(Reference::vertical(at, baseline::labels(run)));
        efficiency = efficiency.with_reference(Reference::vertical(at, ""));
    }
    Figure {
        title: String::new(),
        panels: vec![time, efficiency],
        columns: 2,
        width: Width::Page,
        aspect: 0.6,
    }
}
