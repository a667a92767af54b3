//! Models of `gammachi model` for people and programs: [`Findings`](crate::models::regression::Findings)
//! come in; a screen ([`screen()`]), a JSON document ([`json`]), pictures ([`pictures()`]) and an expression
//! for other programs ([`expression`]) go out.

mod document;
pub mod expression;
mod pictures;
mod screen;
mod words;

pub use document::json;
pub use pictures::pictures;
pub use screen::screen;
pub use words::error_sentence;
