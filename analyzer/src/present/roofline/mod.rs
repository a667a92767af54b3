//! Renders the roofline [`Findings`](crate::models::roofline::Findings) as a screen ([`screen()`]), a JSON document
//! ([`json`]) and figures ([`figures`]).

mod document;
mod names;
mod pictures;
mod remedy;
mod screen;

#[cfg(test)]
pub(crate) use document::Document;
pub use document::json;
pub(in crate::present) use pictures::drawings;
pub use pictures::figures;
pub use screen::screen;
pub(in crate::present) use screen::{points, sentence};
