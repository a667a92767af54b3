//! The page that explains a run, as one self-contained HTML document, and the same page fed by a server ([`view`]).
//!
//! `page.html` is the template (minijinja, which escapes everything it fills in). It includes `summary.html`,
//! `timeline.html` and `panels.html`; `head.html` and `cells.html` also serve the page of a study ([`study`]).
//! `style.css` and `layout.css` are the looks.
//!
//! The script is plain JavaScript without modules, one file an idea, concatenated in the order of
//! `SHARED_SCRIPT`. A source of data comes first: `source.js` reads what the page embeds, `tiles.js` and `served.js`
//! ask the viewer. Beware: a reader without JavaScript must find summary, tables and figures in the document, and
//! a content security policy forbids every request of the page.

mod causes;
mod data;
mod packed;
mod parts;
mod ranks;
mod sections;
pub mod study;
pub mod view;

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

/// What both the page and the viewer run, in this order.
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

/// The script of pages that have tables only.
pub(super) const TABLES: [&str; 2] = [include_str!("tables.js"), include_str!("page.js")];

/// Why no page could be made: the template is wrong, which its tests would have shown.
#[derive(Debug, thiserror::Error)]
#[error("the page cannot be made: {0}")]
pub struct PageError(#[from] minijinja::Error);

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

/// Whether only totals are kept of the calls, so that nothing is known of when they were: `calls` are kept one by one.
fn is_totals_only(run: &Run, calls: u64) -> bool {
    let mut threads = run.ranks.iter().flat_map(|rank| &rank.file.threads);
    calls == 0 && threads.any(|thread| thread.totals.is_some())
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
    environment.add_template("summary.html", include_str!("summary.html"))?;
    environment.add_template("timeline.html", include_str!("timeline.html"))?;
    environment.add_template("panels.html", include_str!("panels.html"))?;
    environment.add_template("help.html", include_str!("help.html"))?;
    environment.add_template("parts.html", include_str!("parts.html"))?;
    environment.add_template("style.css", include_str!("style.css"))?;
    environment.add_template("layout.css", include_str!("layout.css"))?;
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

/// What the timeline shows call by call, and what it leaves out.
fn detail_note(activity: &Activity, detail: &Detail) -> String {
    let all = detail.windows.len() == 1
        && detail.windows[0].start <= 0.0
        && detail.windows[0].end >= activity.length_s;
    let summed = super::text_timeline::summed_note(activity.summed_s);
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
