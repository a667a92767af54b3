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
mod communication;
mod data;
mod lanes;
mod markup;
mod names;
mod packed;
mod parts;
mod ranks;
mod samples;
mod sections;
pub mod study;
mod table;
pub mod view;

pub(in crate::present) use table::laid_out;

use minijinja::context;

use crate::metrics::activity::detail::Detail;
use crate::metrics::activity::{Activity, Kind};
use crate::models::roofline::Findings;

use super::context::plural;
use super::quantity;
use super::shown::Report;

pub use markup::PageError;
use markup::{SHARED_SCRIPT, environment, is_totals_only, kinds_used};
pub(super) use markup::{page_of_tables, safe};

/// Makes the page; `roofline` places the run under the roofline of a machine, if one is known.
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
        lanes => sections::lanes(report.run),
        timeline_data => safe(data::json(report, activity, detail)),
        script => safe(script.collect::<Vec<_>>().join("\n")),
        ..parts::parts(report, activity, roofline)
    };
    Ok(environment()?.get_template("page.html")?.render(context)?)
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
