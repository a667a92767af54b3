//! Renders the models of `gammachi model` ([`Findings`](crate::models::regression::Findings)) as a screen
//! ([`screen()`]), a JSON document ([`json`]), pictures ([`pictures()`]) and source text for other programs
//! ([`expression`]).

mod document;
pub mod expression;
mod pictures;
mod screen;
mod words;

#[cfg(test)]
pub(crate) use document::Document;
pub use document::json;
pub use pictures::pictures;
pub use screen::screen;
pub use words::error_sentence;
