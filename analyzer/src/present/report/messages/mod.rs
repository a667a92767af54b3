//! Messages and communicators of a report: lines of the screen, a part of the document.

mod document;
mod screen;

pub(super) use document::{MOST_RANKS, MessagesPart, Polls};
pub(super) use screen::{communicator_lines, summary_line, traffic_lines};
