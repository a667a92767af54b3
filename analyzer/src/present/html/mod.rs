//! The page that explains a run: a report, its threads' activity and details come in, one
//! self-contained HTML document goes out.
//!
//! `page.html` is the template (minijinja, which escapes all that it fills in), `head.html` and
//! `cells.html` what a study's page ([`study`]) has too, `timeline.html` the part of it that the served
//! timeline ([`view`]) has too, `style.css` its looks; `source.js`, `painter.js`, `waits.js`, `timeline.js`,
//! `iterations.js`, `tables.js` and `page.js` are its script, in that order. Everything that a reader needs stands in the document without the script. A content
//! security policy forbids every request.

mod causes;
mod data;
mod packed;
mod sections;
pub mod study;
pub mod view;

use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;

use super::Report;
use super::context::{mpi_library, placement, plural, program_line};
use super::figure::Figure;
use super::picture::matrix::{self, Places, Shown};
use super::{picture, quantity};
use crate::metrics::activity::detail::Detail;
use crate::metrics::activity::{Activity, KINDS, Kind};
use crate::metrics::{ComputeMode, RankMetrics, Selection};
use crate::models::roofline::Findings;
use crate::plain_text::printable;

const SCRIPT: [&str; 7] = [
    include_str!("source.js"),
    include_str!("painter.js"),
    include_str!("waits.js"),
    include_str!("timeline.js"),
    include_str!("iterations.js"),
    include_str!("tables.js"),
    include_str!("page.js"),
];

/// The script of pages that have tables only.
pub(super) const TABLES: [&str; 2] = [include_str!("tables.js"), include_str!("page.js")];

/// Ranks that have a row in the tables; of more, those of most overhead and the one of least.
pub const MOST_RANKS: usize = 256;
/// Pairs in the table of messages.
const MOST_PAIRS: usize = 64;
/// Communicators in their table.
const MOST_COMMUNICATORS: usize = 200;
/// Diagnoses listed.
const MOST_DIAGNOSES: usize = 100;

/// Why no page could be made: the template is wrong, which its tests would have shown.
#[derive(Debug, thiserror::Error)]
#[error("the page cannot be made: {0}")]
pub struct PageError(#[from] minijinja::Error);

#[derive(Debug, Serialize)]
struct Part {
    class: String,
    percent: f64,
}

#[derive(Debug, Serialize)]
struct Bar {
    rank: u32,
    compute_s: f64,
    words: String,
    parts: Vec<Part>,
}

/// Makes the page; `roofline` is the run under the roofs of a machine, where one is known.
///
/// # Errors
/// Only when the template itself is wrong.
pub fn page(
    report: &Report,
    activity: &Activity,
    detail: &Detail,
    roofline: Option<&Findings>,
) -> Result<String, PageError> {
    let document = super::report::value(report);
    let shown = shown_ranks(report);
    let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    let used = data::kinds_used(activity).into_iter();
    let used: Vec<Value> =
        used.map(|number| context! { number, name => Kind::ALL[number].name() }).collect();
    let whole = report.metrics.selection == Selection::Whole;
    let bar_legend: Vec<Value> = match whole {
        true => data::kinds_used(activity)
            .into_iter()
            .map(|kind| context! { class => format!("k{kind}"), name => Kind::ALL[kind].name() })
            .collect(),
        false => PARTS.map(|(class, name)| context! { class, name }).to_vec(),
    };
    let bars: Vec<Bar> = shown.iter().map(|index| bar(report, activity, *index)).collect();
    let rank_rows: Vec<&serde_json::Value> =
        shown.iter().filter_map(|index| document["ranks"].get(index)).collect();
    let left_out = report.metrics.ranks.len() - shown.len();
    let bars_left_out = (left_out > 0).then(|| {
        format!(
            "{} of most overhead and the one of least; {} lie between (gammachi report --json lists \
             all).",
            plural(shown.len() - 1, "rank"),
            plural(left_out, "rank")
        )
    });
    let diagnoses: Vec<_> =
        document["diagnoses"].as_array().into_iter().flatten().take(MOST_DIAGNOSES).collect();
    let messages = report.metrics.messages.as_ref();
    let places = messages.and_then(|metrics| Places::new(report.run, &metrics.matrix));
    let picture = |shown| places.as_ref().map(|places| safe(matrix::svg(places, shown, true)));
    let figure = |figure: Option<Figure>| figure.map(|figure| safe(figure.svg_for_page()));
    let pairs = messages.map(|metrics| metrics.matrix.heaviest(MOST_PAIRS)).unwrap_or_default();
    let pairs: Vec<Value> = pairs
        .into_iter()
        .map(|((from, to), traffic)| context! { from, to, count => traffic.count, bytes => traffic.bytes })
        .collect();
    let longest = activity.longest.iter().map(|call| {
        let row = &activity.rows[call.row];
        let file = &report.run.ranks[row.position].file;
        context! {
            rank => row.rank,
            function => file.function_name(call.function).unwrap_or("unknown"),
            begin_s => call.begin_s,
            duration_s => call.duration_s,
        }
    });
    let name = report.run.directory.file_name().map_or_else(
        || report.run.directory.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    );
    let parts = [program_line(report.run), mpi_library(report.run), placement(report.run)];
    let mut communicators: Vec<&serde_json::Value> =
        document["communicators"].as_array().into_iter().flatten().collect();
    let communicators_left_out = communicators.len().saturating_sub(MOST_COMMUNICATORS);
    let traffic = |row: &serde_json::Value| {
        let number = |key: &str| row[key].as_u64().unwrap_or(0);
        number("bytes").saturating_add(number("collective_bytes"))
    };
    if communicators_left_out > 0 {
        communicators.sort_by_key(|row| std::cmp::Reverse(traffic(row)));
        communicators.truncate(MOST_COMMUNICATORS);
    }
    let total_s = report.metrics.elapsed_s * report.metrics.participants().count() as f64;
    let sites = report.metrics.sites.as_ref().map(|sites| sections::sites(sites, total_s));
    let (sites, sites_left_out) = sites.map_or((None, 0), |(rows, more)| (Some(rows), more));
    let compute = match report.metrics.compute {
        ComputeMode::Outside => "outside MPI",
        ComputeMode::Blas => "BLAS",
        ComputeMode::Regions => "regions",
    };
    let context = context! {
        gammachi => env!("CARGO_PKG_VERSION"),
        name => printable(&name),
        context => printable(&parts.join(" | ")),
        selection => selection(report),
        kinds => kinds,
        kinds_used => used,
        bars => bars,
        bar_legend => bar_legend,
        bars_left_out => bars_left_out,
        ranks => Value::from_serialize(&rank_rows),
        compute => compute,
        trust => super::report::trust_parts(report),
        missing => report.run.missing_count(),
        waits => report.why().map(|why| sections::waits(&why)),
        savings => report.savings.iter().map(|saving| context! {
            part => saving.part,
            uncertain_s => saving.uncertain_s,
            sentence => printable(&saving.sentence),
        }).collect::<Vec<Value>>(),
        parts_of_run => report.why().map(|why| causes::tables(report.run, &why)),
        unfinished => report.metrics.unfinished.as_ref().map(sections::unfinished),
        sites => sites,
        sites_left_out => sites_left_out,
        roofline => roofline.map(sections::roofline),
        longest => longest.collect::<Vec<Value>>(),
        pairs => pairs,
        matrix_of => places.as_ref().map(|places| places.of),
        diagnoses => Value::from_serialize(&diagnoses),
        diagnoses_left_out => document["diagnoses"].as_array().map_or(0, |all| all.len() - diagnoses.len()),
        communicators => Value::from_serialize(&communicators),
        communicators_left_out => communicators_left_out,
        detail_note => detail_note(activity, detail),
        figures => context! {
            tau_chi => figure(Some(picture::tau_chi(report))),
            durations => figure(picture::durations(activity)),
            sizes => figure(picture::sizes(report)),
            matrix_bytes => picture(Shown::Bytes),
            matrix_count => picture(Shown::Count),
        },
        timeline_data => safe(data::json(report, activity, detail)),
        script => safe(SCRIPT.join("\n")),
        report => Value::from_serialize(&document),
    };
    Ok(environment()?.get_template("page.html")?.render(context)?)
}

pub(super) fn safe(text: String) -> Value {
    Value::from_safe_string(text)
}

pub(super) fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|name| match name.ends_with(".css") {
        true => AutoEscape::None,
        false => AutoEscape::Html,
    });
    environment.add_template("page.html", include_str!("page.html"))?;
    environment.add_template("study.html", include_str!("study.html"))?;
    environment.add_template("comparison.html", include_str!("comparison.html"))?;
    environment.add_template("history.html", include_str!("history.html"))?;
    environment.add_template("head.html", include_str!("head.html"))?;
    environment.add_template("cells.html", include_str!("cells.html"))?;
    environment.add_template("view.html", include_str!("view.html"))?;
    environment.add_template("timeline.html", include_str!("timeline.html"))?;
    environment.add_template("style.css", include_str!("style.css"))?;
    let with = |format: fn(f64) -> String| {
        move |value: Option<f64>| value.map_or_else(|| "–".to_owned(), format)
    };
    environment.add_filter("seconds", with(quantity::seconds));
    environment.add_filter("percent", with(quantity::percent));
    environment.add_filter("prefix", with(quantity::with_prefix));
    environment.add_filter("three", with(|value| quantity::significant(value, 3)));
    environment.add_filter("factor", with(|value| format!("{value:.2}")));
    environment.add_filter("bytes", with(|value| quantity::with_prefix(value) + "B"));
    environment.add_filter("count", with(|value| quantity::count(value as u64)));
    environment.add_filter("printable", |text: String| printable(&text));
    Ok(environment)
}

fn selection(report: &Report) -> Option<String> {
    let what = match &report.metrics.selection {
        Selection::Whole => return None,
        Selection::Window { from, to } => format!("window {from} to {to}"),
        Selection::Region(name) => format!("region {}", printable(name)),
    };
    Some(format!(
        "{what}: {} of {} elapsed. Figures and tables are those of this stretch; timeline, durations \
         and longest calls show the whole run.",
        quantity::seconds(report.metrics.elapsed_s),
        quantity::seconds(report.metrics.run_elapsed_s)
    ))
}

/// Positions of the ranks with a row, ascending.
fn shown_ranks(report: &Report) -> Vec<usize> {
    let ranks = &report.metrics.ranks;
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    if ranks.len() > MOST_RANKS {
        order.sort_by(|a, b| ranks[*b].overhead_s.total_cmp(&ranks[*a].overhead_s));
        let least = order.pop();
        order.truncate(MOST_RANKS - 1);
        order.extend(least);
        order.sort_unstable();
    }
    order
}

/// A rank's time as parts of τ: by kind for the whole run, by what the metrics tell apart else.
fn bar(report: &Report, activity: &Activity, index: usize) -> Bar {
    let metrics = report.metrics;
    let rank = &metrics.ranks[index];
    let whole = metrics.selection == Selection::Whole;
    let row = activity.rows.iter().find(|row| row.position == index && row.thread == 0);
    let parts: Vec<(String, &str, f64)> = match row.filter(|_| whole) {
        Some(row) => {
            let kinds = (0..KINDS)
                .map(|kind| (format!("k{kind}"), Kind::ALL[kind].name(), row.totals_s[kind]));
            kinds
                .chain([("k-outside".into(), "before begin or after end", rank.outside_s)])
                .collect()
        }
        None => of_selection(rank),
    };
    let total = metrics.elapsed_s.max(f64::MIN_POSITIVE);
    let parts: Vec<_> = parts.into_iter().filter(|(_, _, seconds)| *seconds > 0.0).collect();
    let word = |(_, name, seconds): &(String, &str, f64)| {
        format!("{name} {}", quantity::seconds(*seconds))
    };
    Bar {
        rank: rank.rank,
        compute_s: rank.compute_s,
        words: parts.iter().map(word).collect::<Vec<_>>().join(", "),
        parts: parts
            .into_iter()
            .map(|(class, _, seconds)| Part {
                class,
                percent: (seconds / total * 1e4).round() / 100.0,
            })
            .collect(),
    }
}

/// Parts of a stretch, in which kinds of call are not told apart.
const PARTS: [(&str, &str); 4] =
    [("k1", "computation"), ("k8", "MPI"), ("k9", "recorder"), ("k0", "other")];

fn of_selection(rank: &RankMetrics) -> Vec<(String, &'static str, f64)> {
    let seconds = [rank.compute_s, rank.mpi_s, rank.tool_s, rank.other_s];
    let parts = PARTS.iter().zip(seconds);
    let parts = parts.map(|((class, name), seconds)| ((*class).to_owned(), *name, seconds));
    parts.chain([("k-outside".into(), "before begin or after end", rank.outside_s)]).collect()
}

/// What the timeline shows call by call, and what it leaves out.
fn detail_note(activity: &Activity, detail: &Detail) -> String {
    let all = detail.windows.len() == 1
        && detail.windows[0].start <= 0.0
        && detail.windows[0].end >= activity.length_s;
    let summed = super::strip::summed_note(activity.summed_s);
    let mut note = match (all, detail.windows.len()) {
        (true, _) if summed.is_some() => "Calls that are kept one by one are here.".to_owned(),
        (true, _) => "All calls are here one by one.".to_owned(),
        (false, 0) => "No call waits: single calls are not embedded.".to_owned(),
        (false, count) => format!(
            "Single calls are embedded in {}, marked on the ruler; elsewhere the shares of each kind in \
             {} bins. Others by --detail FROM,TO.",
            plural(count, "window"),
            quantity::count(activity.bins as u64)
        ),
    };
    if let Some(summed) = summed {
        let mut letters = summed.chars();
        let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        note.push_str(&format!(" {first}{}.", letters.as_str()));
    }
    for (left_out, what) in [
        (detail.messages_left_out, "messages"),
        (detail.collectives_left_out, "collective operations"),
        (detail.regions_left_out, "occurrences of regions"),
    ] {
        if left_out > 0 {
            note.push_str(&format!(" {} {what} are left out for size.", quantity::count(left_out)));
        }
    }
    note
}

#[cfg(test)]
mod tests;
