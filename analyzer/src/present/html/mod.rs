//! The page that explains a run: one self-contained HTML document, or the same page fed by a server ([`view`]).
//!
//! `page.html` is the template (minijinja, which escapes everything it fills in). It includes `summary.html`,
//! `timeline.html` and `panels.html`; `head.html` and `cells.html` also serve the page of a study ([`study`]).
//! `style.css` holds colours, type and tables, `layout.css` the arrangement on screens and on paper.
//!
//! The script is plain JavaScript without modules, one file per idea, concatenated in the order of
//! `SHARED_SCRIPT`. The data source comes first: `source.js` reads what the page embeds, `tiles.js` and `served.js`
//! ask the viewer. Beware: without JavaScript, the document must still show summary, tables and figures; and a content
//! security policy forbids the page every request.

mod causes;
mod data;
mod packed;
mod parts;
mod ranks;
mod sections;
pub mod study;
mod table;
pub mod view;

pub(in crate::present) use table::laid_out;

use super::Report;
use super::context::plural;
use super::quantity;
use crate::metrics::activity::detail::Detail;
use crate::metrics::activity::{Activity, Kind};
use crate::models::roofline::Findings;
use crate::plain_text::printable;
use crate::trace::Run;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, context};

/// Scripts that the page and the viewer share, in the order in which they run.
const SHARED_SCRIPT: [&str; 19] = [
    include_str!("words.js"),
    include_str!("painter.js"),
    include_str!("marks.js"),
    include_str!("waits.js"),
    include_str!("timeline.js"),
    include_str!("walk.js"),
    include_str!("pointers.js"),
    include_str!("iterations.js"),
    include_str!("tables.js"),
    include_str!("selection.js"),
    include_str!("figures.js"),
    include_str!("panels.js"),
    include_str!("selected.js"),
    include_str!("matrix.js"),
    include_str!("search.js"),
    include_str!("link.js"),
    include_str!("theme.js"),
    include_str!("keys.js"),
    include_str!("page.js"),
];

/// The script of pages whose tables sort and filter, but which have no timeline.
pub(super) const TABLES_SCRIPT: [&str; 2] =
    [include_str!("tables.js"), include_str!("tables_page.js")];

/// A template failed to render: a mistake in the template, which its tests should have caught.
#[derive(Debug, thiserror::Error)]
#[error("the page cannot be made: {0}")]
pub struct PageError(#[from] minijinja::Error);

/// Makes the page; `roofline` places the run under the roofline of a machine, if one is known.
///
/// # Errors
/// Only when the template itself is wrong.
pub fn page(
    report: &Report,
    activity: &Activity,
    detail: &Detail,
    roofline: Option<&Findings>,
) -> Result<String, PageError> {
    let (name, about) = parts::heading(report.run);
    let totals_only = is_totals_only(report.run, activity.calls);
    let script = [include_str!("source.js")].into_iter().chain(SHARED_SCRIPT);
    let context = context! {
        gammachi => env!("CARGO_PKG_VERSION"),
        name => name,
        context => about,
        kinds => Kind::ALL.map(Kind::name),
        kinds_used => kinds_used(data::kinds_used(activity)),
        detail_note => detail_note(activity, detail),
        totals_only => totals_only,
        timeline_data => safe(data::json(report, activity, detail)),
        script => safe(script.collect::<Vec<_>>().join("\n")),
        ..parts::parts(report, activity, roofline)
    };
    Ok(environment()?.get_template("page.html")?.render(context)?)
}

/// Kinds with their numbers and names.
fn kinds_used(kinds: impl IntoIterator<Item = usize>) -> Vec<Value> {
    let kinds = kinds.into_iter();
    kinds.map(|number| context! { number, name => Kind::ALL[number].name() }).collect()
}

/// Whether the run kept only totals, so that no call's time is known; `calls` is the number of calls kept one by one.
fn is_totals_only(run: &Run, calls: u64) -> bool {
    let mut threads = run.ranks.iter().flat_map(|rank| &rank.file.threads);
    calls == 0 && threads.any(|thread| thread.totals.is_some())
}

/// Marks text as HTML, which the template then does not escape.
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
    environment.add_template("summary.html", include_str!("summary.html"))?;
    environment.add_template("timeline.html", include_str!("timeline.html"))?;
    environment.add_template("panels.html", include_str!("panels.html"))?;
    environment.add_template("help.html", include_str!("help.html"))?;
    environment.add_template("parts.html", include_str!("parts.html"))?;
    environment.add_template("style.css", include_str!("style.css"))?;
    environment.add_template("layout.css", include_str!("layout.css"))?;
    let or_dash = |format: fn(f64) -> String| {
        move |value: Option<f64>| value.map_or_else(|| "–".to_owned(), format)
    };
    environment.add_filter("seconds", or_dash(quantity::seconds));
    environment.add_filter("percent", or_dash(quantity::percent));
    environment.add_filter("prefix", or_dash(quantity::with_prefix));
    environment.add_filter("three", or_dash(|value| quantity::significant(value, 3)));
    environment.add_filter("factor", or_dash(|value| format!("{value:.2}")));
    environment.add_filter("bytes", or_dash(|value| quantity::with_prefix(value) + "B"));
    environment.add_filter("count", or_dash(|value| quantity::count(value as u64)));
    environment.add_filter("printable", |text: String| printable(&text));
    Ok(environment)
}

/// What the timeline shows call by call, and what it leaves out.
fn detail_note(activity: &Activity, detail: &Detail) -> String {
    let all = detail.windows.len() == 1
        && detail.windows[0].start <= 0.0
        && detail.windows[0].end >= activity.length_s;
    let summed = super::text_timeline::summed_note(activity.summed_s);
    let mut note = match (all, detail.windows.len()) {
        (true, _) if summed.is_some() => "Every individually recorded call is embedded.".to_owned(),
        (true, _) => "Every call is embedded.".to_owned(),
        (false, 0) => "No call waits, so no single calls are embedded.".to_owned(),
        (false, count) => format!(
            "Single calls are embedded in {}, marked on the ruler; elsewhere the timeline shows the share of \
             each kind in {} bins. --detail FROM,TO embeds others.",
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
            note.push_str(&format!(
                " {} {what} are left out to keep the page small.",
                quantity::count(left_out)
            ));
        }
    }
    note
}

#[cfg(test)]
mod tests;
