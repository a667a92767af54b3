//! `gammachi top`: what the ranks of a run that is going on do.

mod document;
mod moment;
mod screen;

#[cfg(test)]
pub(crate) use document::Document;
pub use document::json;
pub use moment::Moment;
pub use screen::screen;
