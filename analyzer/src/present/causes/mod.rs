//! Renders [`Causes`](crate::causes::Causes) as the screen and the JSON document of `gammachi why`, and as parts of a
//! report.

mod document;
mod hosts;
mod labels_document;
mod length;
pub(super) mod places;
mod screen;
mod stretches;
mod stretches_document;
pub(super) mod words;

#[cfg(test)]
pub(crate) use document::Document;
pub use document::json;
pub(super) use document::{Summary, summary};
pub use screen::screen;
pub(super) use stretches::{iteration_summary, phase_lines, region_lines};
pub use words::context as name_of;
pub(super) use words::{counted, counted_note, undivided};
