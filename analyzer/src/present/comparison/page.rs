//! Renders a comparison as a self-contained HTML page, with one timeline above the other.

use minijinja::context;
use minijinja::value::Value;

use crate::comparison::Comparison;
use crate::diagnosis::Figures;
use crate::plain_text::printable;
use crate::present::findings;
use crate::present::html::{PageError, environment, safe};
use crate::present::quantity::seconds;

use super::{document, screen, verdict, words};

/// Maximum number of rows in the page's table of places.
const MAX_PLACES: usize = 100;

/// Both timelines as pictures, drawn to one scale.
#[derive(Debug, Clone)]
pub struct Timelines {
    /// Before and after, SVG.
    pub pictures: [String; 2],
    /// What they show.
    pub caption: String,
}

/// The HTML page.
///
/// # Errors
/// Only when the template itself is wrong.
pub fn page(of: &Comparison, timelines: Option<&Timelines>) -> Result<String, PageError> {
    let document = Value::from_serialize(document::document(of));
    let (over, each) = verdict::per_iteration(of);
    let rows = of.differences.parts.iter().take(MAX_PLACES).map(|part| {
        context! {
            place => printable(&words::spot(&part.shown)),
            what => part.key.state.as_deref().map_or_else(|| words::kind(part.key.kind).to_owned(), words::state),
            delayed_by => part.key.delayed_by,
            before_s => part.estimate.before / over * 1e-9,
            after_s => part.estimate.after / over * 1e-9,
            difference => words::signed(part.ns as f64 / over),
            difference_s => part.ns as f64 / over * 1e-9,
            interval => words::interval(&part.estimate, over),
        }
    });
    let kinds = of.differences.groups(of.sides(), |key| Some(key.kind));
    let kinds = kinds
        .iter()
        .filter(|kind| kind.estimate.before.max(kind.estimate.after) > 0.0)
        .map(|kind| {
            context! {
                name => words::kind(kind.name),
                before_s => kind.estimate.before / over * 1e-9,
                after_s => kind.estimate.after / over * 1e-9,
                difference => words::signed(kind.ns as f64 / over),
                difference_s => kind.ns as f64 / over * 1e-9,
                interval => words::interval(&kind.estimate, over),
            }
        });
    let times = screen::time_rows(of).into_iter().map(|(name, time)| {
        context! {
            name => printable(&name),
            before_s => time.before * 1e-9,
            after_s => time.after * 1e-9,
            difference => words::signed(time.difference()),
            interval => words::interval(time, 1.0),
            scatter => screen::scatter(time),
        }
    });
    let factors = of.tree.iter().map(|factor| {
        context! {
            name => factor.name.replace('_', " "),
            before => factor.estimate.before,
            after => factor.estimate.after,
            interval => screen::change_of_factor(&factor.estimate),
            change => screen::better_or_worse(&factor.estimate),
        }
    });
    let sum =
        words::signed((of.differences.elapsed_ns - of.differences.unexplained_ns) as f64 / over);
    let pictures: Vec<Value> =
        timelines.iter().flat_map(|of| of.pictures.clone()).map(safe).collect();
    let context = context! {
        gammachi => env!("CARGO_PKG_VERSION"),
        name => printable(&format!("{}: before and after", of.after[0].program)),
        context => printable(&screen::head(of)),
        kinds => Vec::<&str>::new(),
        sentences => verdict::sentences(of).iter().map(|text| printable(text)).collect::<Vec<_>>(),
        notes => verdict::notes(of).iter().map(|text| printable(text)).collect::<Vec<_>>(),
        document => document,
        parts_mark => of.invalidated_by(Figures::Waits).map(findings::mark_of),
        places_mark => of.invalidated_by(Figures::Delays).map(findings::mark_of),
        efficiency_mark => of.invalidated_by(Figures::Efficiency).map(findings::mark_of),
        elapsed => seconds(of.elapsed.difference() * 1e-9),
        each => each,
        times => times.collect::<Vec<Value>>(),
        factors => factors.collect::<Vec<Value>>(),
        parts => kinds.collect::<Vec<Value>>(),
        sum => sum,
        places => rows.collect::<Vec<Value>>(),
        changes => of.changes.iter().map(|change| {
            let [before, after] = words::values(change);
            context! { what => printable(&words::what(&change.what)), before => before, after => after }
        }).collect::<Vec<Value>>(),
        pictures => pictures,
        caption => timelines.map(|of| printable(&of.caption)),
        script => safe(crate::present::html::TABLES_SCRIPT.join("\n")),
    };
    Ok(environment()?.get_template("comparison.html")?.render(context)?)
}
