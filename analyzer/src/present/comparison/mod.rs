//! Renders the results of `gammachi compare`, `check`, `baseline` and `history`.
//!
//! | file | content |
//! |---|---|
//! | `words` | words for places, counts and differences |
//! | `verdict` | the sentences at the head, and notes |
//! | `screen`, `document`, `page` | a comparison on the screen, as JSON and as HTML |
//! | `several` | comparisons of several configurations |
//! | `checked` | the outcome of a check: screen, JSON, JUnit, GitHub annotations |
//! | `baseline` | the runs of a baseline |
//! | `history` | the page of a history |

mod baseline;
pub mod checked;
mod document;
pub mod history;
mod page;
mod screen;
pub mod several;
mod tables;
mod verdict;
mod words;

#[cfg(test)]
pub(crate) use baseline::Document as Baseline;
pub use baseline::{baseline_json, baseline_screen};
#[cfg(test)]
pub(crate) use document::Document;
pub use document::json;
pub use page::{Timelines, page};
pub use screen::screen;
pub use words::{differences, mixed};
