//! The efficiency model for people and programs: a [`Scaling`](crate::models::scaling::Scaling)
//! comes in; a screen (`screen`), a JSON document ([`json`]) and figures ([`figures`]) go out.

mod advice;
mod document;
mod pictures;
mod screen;
mod words;

pub use document::{VERSION, json};
pub use pictures::figures;
pub use screen::screen;
pub use words::error_sentence;

pub(in crate::present) use document::value;
pub(in crate::present) use pictures::drawings;
