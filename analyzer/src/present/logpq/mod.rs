//! The network models for people and programs: [`Findings`](crate::models::logpq::Findings) come in;
//! a screen ([`screen()`]), a JSON document ([`json`]) and figures ([`figures`]) go out.

mod document;
mod pictures;
mod screen;
mod words;

pub use document::{VERSION, json};
pub use pictures::figures;
pub use screen::screen;
