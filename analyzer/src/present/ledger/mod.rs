//! Renders the ledger of predictions ([`Score`](crate::ledger::Score)) as a screen and as a JSON document.

mod contents;
mod document;
mod screen;

pub use contents::{LedgerContents, differences};
#[cfg(test)]
pub(crate) use document::Document;
pub use document::json;
pub use screen::screen;
