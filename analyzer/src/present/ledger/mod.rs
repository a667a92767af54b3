//! Renders the ledger of predictions ([`Score`](crate::ledger::Score)) as a screen and as a JSON document.

mod contents;
mod document;
mod screen;

pub use contents::{LedgerContents, differences};
pub use document::json;
pub use screen::screen;
