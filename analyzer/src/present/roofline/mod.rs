//! Renders the roofline [`Findings`](crate::models::roofline::Findings) as a screen ([`screen()`]), a JSON document
//! ([`json`]) and figures ([`figures`]).

mod document;
mod pictures;
mod remedy;
mod screen;

pub use document::{VERSION, json};
pub use pictures::figures;
pub use screen::screen;

pub(in crate::present) use pictures::drawings;
pub(in crate::present) use screen::{points, sentence};

use crate::models::roofline::{Point, Scope};

/// A point's name, with its host unless it is for the whole job.
pub(in crate::present) fn label(point: &Point) -> String {
    match &point.scope {
        Scope::Job => point.name.clone(),
        Scope::Host(host) => format!("{}, {host}", point.name),
    }
}
