//! Ranks that did not finish, for people and programs: an [`Unfinished`](crate::metrics::Unfinished) comes
//! in, parts of the report's screen, page and document go out.

mod document;
mod screen;
mod sentences;
mod words;

pub(in crate::present) use document::UnfinishedPart;
pub(in crate::present) use screen::{last_call_lines, position_lines, positions};
pub(in crate::present) use sentences::{sentences, short};
pub(in crate::present) use words::call_text;
