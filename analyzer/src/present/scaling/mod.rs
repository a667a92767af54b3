//! Renders the efficiency model ([`Scaling`](crate::models::scaling::Scaling)) as a screen (`screen`), a JSON
//! document ([`json`]) and figures ([`figures`]).

mod advice;
mod counts;
mod document;
mod pictures;
mod screen;
pub(in crate::present) mod structure;
mod words;

#[cfg(test)]
pub(crate) use document::Document;
pub use document::json;
pub use pictures::figures;
pub use screen::screen;
pub use words::error_sentence;

pub(in crate::present) use document::value;
pub(in crate::present) use pictures::drawings;
