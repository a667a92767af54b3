//! Renders the network models ([`Findings`](crate::models::logpq::Findings)) as a screen ([`screen()`]), a JSON
//! document ([`json`]) and figures ([`figures`]).

mod document;
mod pictures;
mod screen;
mod words;

#[cfg(test)]
pub(crate) use document::Document;
pub use document::json;
pub use pictures::figures;
pub use screen::screen;
