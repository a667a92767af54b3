//! Renders a comparison as a self-contained HTML page, with one timeline above the other.

use minijinja::context;
use minijinja::value::Value;

use crate::comparison::Comparison;
use crate::comparison::parts::Difference;
use crate::diagnosis::Figures;
use crate::plain_text::printable;
use crate::present::findings;
use crate::present::html::{PageError, environment, laid_out, safe};
use crate::present::quantity::seconds;

use super::{document, screen, tables, verdict};

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
    let (_, each) = verdict::per_iteration(of);
    let places: Vec<&Difference> = of.differences.parts.iter().take(MAX_PLACES).collect();
    let same_ranks = of.relation.same_ranks;
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
        times => laid_out(&tables::times(of)),
        factors => laid_out(&tables::factors(of)),
        shares => laid_out(&tables::shares(of)),
        parts => same_ranks.then(|| laid_out(&tables::kinds(of))),
        places => laid_out(&tables::places(of, &places)),
        changes => (!of.changes.is_empty()).then(|| laid_out(&tables::counts(&of.changes))),
        pictures => pictures,
        caption => timelines.map(|of| printable(&of.caption)),
        script => safe(crate::present::html::TABLES_SCRIPT.join("\n")),
    };
    Ok(environment()?.get_template("comparison.html")?.render(context)?)
}
