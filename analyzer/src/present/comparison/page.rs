//! Renders a comparison as a self-contained HTML page, with one timeline above the other.

use minijinja::context;
use minijinja::value::Value;

use crate::comparison::Comparison;
use crate::comparison::parts::Difference;
use crate::diagnosis::Figures;
use crate::plain_text::printable;
use crate::present::findings;
use crate::present::html::{PageError, laid_out, page_of_tables, safe};
use crate::present::quantity::seconds;

use super::{document, screen, tables, verdict};

/// Maximum number of rows in the page's tables of places and functions.
const MAX_PLACES: usize = 100;

/// Both timelines as pictures, drawn to one scale.
#[derive(Debug, Clone)]
pub struct Timelines {
    /// Before and after, SVG.
    pub pictures: [String; 2],
    pub caption: String,
}

/// The HTML page.
pub fn page(of: &Comparison, timelines: Option<&Timelines>) -> Result<String, PageError> {
    let document = Value::from_serialize(document::document(of));
    let (_, each) = verdict::per_iteration(of);
    let places: Vec<&Difference> = of.differences.parts.iter().take(MAX_PLACES).collect();
    let functions = &of.code.functions;
    let functions = &functions[..functions.partition_point(|of| of.is_significant).min(MAX_PLACES)];
    let same_ranks = of.relation.same_ranks;
    let pictures: Vec<Value> =
        timelines.iter().flat_map(|of| of.pictures.clone()).map(safe).collect();
    let name = format!("{}: before and after", of.after[0].program);
    let content = context! {
        sentences => verdict::sentences(of).iter().map(|text| printable(text)).collect::<Vec<_>>(),
        notes => verdict::notes(of).iter().map(|text| printable(text)).collect::<Vec<_>>(),
        document => document,
        parts_mark => of.invalidated_by(Figures::Waits).map(findings::mark_of),
        places_mark => of.invalidated_by(Figures::Delays).map(findings::mark_of),
        efficiency_mark => of.invalidated_by(Figures::Efficiency).map(findings::mark_of),
        elapsed => seconds(of.elapsed.difference() * 1e-9),
        each => each,
        times => laid_out(&tables::times(of)),
        beside => (!of.beside.is_empty()).then(|| laid_out(&tables::beside(&of.beside))),
        factors => laid_out(&tables::factors(of)),
        shares => laid_out(&tables::shares(of)),
        parts => same_ranks.then(|| laid_out(&tables::kinds(of))),
        places => laid_out(&tables::places(of, &places)),
        functions => (!functions.is_empty()).then(|| laid_out(&tables::functions(of, functions))),
        no_function => functions.is_empty().then(|| verdict::no_function(of)),
        changes => (!of.changes.is_empty()).then(|| laid_out(&tables::counts(&of.changes))),
        pictures => pictures,
        caption => timelines.map(|of| printable(&of.caption)),
    };
    page_of_tables("comparison.html", [&name, &screen::head(of)], content)
}
