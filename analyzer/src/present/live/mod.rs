//! `gammachi top`: what the ranks of a run that is going on do.

mod document;
mod metrics;
mod screen;

#[cfg(test)]
pub(crate) use document::Document;
pub use document::json;
pub use metrics::{Watched, metrics};
pub use screen::{alarm_text, memory_text, screen, silent_text, slow_text};
