//! Everything on the page but the timeline: the summary above it and the panels below, as values for `summary.html`
//! and `panels.html`. The page embeds them; the viewer serves them once they are computed.

use minijinja::context;
use minijinja::value::Value;

use crate::diagnosis::Figures;
use crate::metrics::activity::Activity;
use crate::metrics::{ComputeMode, Selection};
use crate::models::roofline::Findings;
use crate::plain_text::printable;
use crate::present::report::{communicator_table, pair_table};
use crate::present::shown::Report;
use crate::present::{findings, picture, quantity};
use crate::tables::calls::time_of_threads;
use crate::tables::{Cell, Table};
use crate::trace::Run;

use super::super::context::{mpi_library, placement, plural, program_line};
use super::super::figure::Figure;
use super::super::picture::matrix::{self, CellValue, LabelledMatrix};
use super::markup::safe;
use super::table::laid_out;
use super::{causes, ranks, sections};

/// Pairs of ranks in the table of messages.
const MAX_PAIRS: usize = 64;
const MAX_COMMUNICATORS: usize = 200;
const MAX_DIAGNOSES: usize = 100;
const MAX_SAVINGS: usize = 3;

/// The values that summary and panels show of a run.
pub(super) fn parts(report: &Report, activity: &Activity, roofline: Option<&Findings>) -> Value {
    let document = super::super::report::value(report);
    let shown = ranks::shown(report);
    let bars: Vec<_> = shown.iter().map(|index| ranks::bar(report, activity, *index)).collect();
    let left_out = report.metrics.ranks.len() - shown.len();
    let ranks_left_out = (left_out > 0).then(|| {
        format!(
            "The {} with the most lost time and the one with the least; {} lie between (gammachi report --json \
             lists all).",
            plural(shown.len() - 1, "rank"),
            plural(left_out, "rank")
        )
    });
    let why = report.why();
    let (total_s, _) = time_of_threads(report.metrics);
    let sites = sections::sites(report.metrics);
    let (sites, sites_left_out) = sites.map_or((None, 0), |(table, more)| (Some(table), more));
    let (diagnoses, diagnoses_left_out) = diagnoses(&document);
    let savings = report.savings.iter().take(MAX_SAVINGS).map(|saving| {
        context! {
            part => saving.part,
            least_s => saving.lo_s,
            most_s => saving.hi_s,
            seconds => saving.saves_s,
            sentence => printable(&saving.sentence),
        }
    });
    context! {
        selection => selection(report),
        efficiency_mark => findings::mark(report.diagnosis, Figures::Efficiency),
        waits_mark => findings::mark(report.diagnosis, Figures::Delays),
        bars => bars,
        bar_legend => ranks::legend(report, activity),
        ranks => ranks::table(report, &shown),
        ranks_left_out => ranks_left_out,
        compute => computed(report.metrics.compute),
        total_s => total_s,
        trust => super::super::report::trust_parts(report),
        missing => report.run.missing_count(),
        waits => why.as_ref().map(|why| sections::waits(why, report.metrics.unfinished.as_ref())),
        savings => savings.collect::<Vec<Value>>(),
        parts_of_run => why.as_ref().map(|why| causes::tables(report.run, why)),
        unfinished => report.metrics.unfinished.as_ref().map(sections::unfinished),
        calls => sections::calls(report.metrics),
        code => sections::code(report.diagnosis),
        openmp => sections::openmp(report.metrics),
        files => sections::files(report.metrics),
        sites => sites,
        sites_left_out => sites_left_out,
        roofline => roofline.map(sections::roofline),
        longest_calls => longest_calls(report, activity),
        messages => messages(report),
        diagnoses => diagnoses,
        diagnoses_left_out => diagnoses_left_out,
        figures => context! {
            tau_chi => figure("Elapsed and lost time of each rank", Some(picture::tau_chi(report))),
            durations => figure("Calls by duration", picture::durations(activity)),
            sizes => figure("Messages by size", picture::sizes(report)),
        },
        report => Value::from_serialize(&document),
    }
}

/// Name and context of a run, for the head of the page.
pub(super) fn heading(run: &Run) -> (String, String) {
    let name = run.directory.file_name().map_or_else(
        || run.directory.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    );
    let parts = [program_line(run), mpi_library(run), placement(run)];
    (printable(&name), printable(&parts.join(" | ")))
}

/// A figure with a name for screen readers.
fn figure(name: &str, figure: Option<Figure>) -> Option<Value> {
    let named = |svg: String| svg.replacen("<title></title>", &format!("<title>{name}</title>"), 1);
    figure.map(|figure| safe(named(figure.svg_for_page())))
}

fn computed(mode: ComputeMode) -> &'static str {
    match mode {
        ComputeMode::Outside => "outside MPI",
        ComputeMode::Blas => "BLAS",
        ComputeMode::Regions => "regions",
    }
}

fn selection(report: &Report) -> Option<String> {
    let selection = &report.metrics.selection;
    if *selection == Selection::Whole {
        return None;
    }
    let what = printable(&selection.to_string());
    Some(format!(
        "{what}: {} of {} elapsed. Figures, waits and causes are for this part; timeline, critical path, \
         iterations, regions, durations and longest calls show the whole run.",
        quantity::seconds(report.metrics.elapsed_s),
        quantity::seconds(report.metrics.run_elapsed_s)
    ))
}

fn longest_calls(report: &Report, activity: &Activity) -> Option<Value> {
    let rows = || activity.longest.iter();
    let rank = |row: usize| Cell::Count(activity.rows[row].rank.into());
    let function = |row: usize, number| {
        let file = &report.run.ranks[activity.rows[row].position].file;
        Cell::Text(file.function_name(number).unwrap_or("unknown").to_owned())
    };
    let mut table = Table::default();
    table.add("rank", "rank", rows().map(|call| rank(call.row)));
    table.add("function", "function", rows().map(|call| function(call.row, call.function)));
    table.add("begin_s", "begin", rows().map(|call| Cell::Seconds(call.begin_s)));
    table.add("seconds", "time", rows().map(|call| Cell::Seconds(call.duration_s)));
    table.mark("ranks", rows().map(|call| rank(call.row)));
    table.mark("from", rows().map(|call| Cell::Seconds(call.begin_s)));
    table.mark("to", rows().map(|call| Cell::Seconds(call.begin_s + call.duration_s)));
    (table.rows() > 0).then(|| laid_out(&table))
}

/// The pairs of ranks with most traffic, and the message matrices.
fn messages(report: &Report) -> Option<Value> {
    let metrics = report.metrics.messages.as_ref()?;
    let places = LabelledMatrix::new(report.run, &metrics.matrix);
    let picture = |shown| places.as_ref().map(|places| safe(matrix::svg(places, shown, true)));
    let pairs = metrics.matrix.heaviest(MAX_PAIRS);
    let all = &metrics.communicators;
    let communicators = communicator_table(all.iter().collect(), MAX_COMMUNICATORS);
    Some(context! {
        pairs => laid_out(&pair_table(&pairs, "from", &|rank| Cell::Count(rank.into()))),
        communicators => laid_out(&communicators),
        communicators_left_out => all.len().saturating_sub(MAX_COMMUNICATORS),
        matrix_of => places.as_ref().map(|places| places.of),
        matrix_bytes => picture(CellValue::Bytes),
        matrix_count => picture(CellValue::Count),
    })
}

fn diagnoses(document: &serde_json::Value) -> (Value, usize) {
    let all: Vec<_> = document["diagnoses"].as_array().into_iter().flatten().collect();
    let listed = &all[..all.len().min(MAX_DIAGNOSES)];
    (Value::from_serialize(listed), all.len() - listed.len())
}
