//! Messages and communicators of a report, for the screen and the document.

mod document;
mod screen;

pub(super) use document::{MAX_RANKS, MessagesPart};
pub(super) use screen::{communicator_lines, summary_line, traffic_lines};
pub(in crate::present) use screen::{communicator_table, pair_table};
