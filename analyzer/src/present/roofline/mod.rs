//! Renders the roofline [`Findings`](crate::models::roofline::Findings) as a screen ([`screen()`]), a JSON document
//! ([`json`]) and figures ([`figures`]).

mod document;
mod names;
mod pictures;
mod remedy;
mod screen;

pub use document::{VERSION, json};
pub(in crate::present) use pictures::drawings;
pub use pictures::figures;
pub use screen::screen;
pub(in crate::present) use screen::{points, sentence};
