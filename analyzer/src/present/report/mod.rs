//! Renders the [`Report`](super::Report) of a run as a terminal screen ([`screen()`]) and as a JSON document
//! ([`json`]).
//!
//! | file | content |
//! |---|---|
//! | `screen` | the lines of the screen and their order |
//! | `document` | the keys of the document |
//! | `tables` | ranks, threads and functions |
//! | `notes` | notes of all stages as sentences |
//! | `trust` | how far the figures can be trusted |
//! | `job`, `sites`, `code`, `openmp`, `files`, `totals`, `counters`, `messages` | one part of the report each, for screen and document |
//! | [`late_partner`] | waiting for late partners, as tables |

pub(in crate::present) mod code;
mod counters;
mod document;
mod files;
mod job;
pub mod late_partner;
mod messages;
mod notes;
mod openmp;
mod screen;
pub(in crate::present) mod sites;
mod tables;
mod totals;
mod trust;

#[cfg(test)]
mod many_ranks_tests;
#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod tests;

pub use document::json;
pub(in crate::present) use files::sentences as file_sentences;
pub(in crate::present) use openmp::sentences as openmp_sentences;
pub use screen::screen;

pub(crate) use counters::counter_sentences;
#[cfg(test)]
pub(crate) use document::Document;
pub(in crate::present) use document::value;
pub(in crate::present) use messages::{communicator_table, pair_table};
pub(in crate::present) use notes::sentence;
pub(crate) use notes::{run_note, time_note};
pub(in crate::present) use tables::ranks_of;
pub(crate) use tables::tables;
pub(in crate::present) use trust::trust_parts;
