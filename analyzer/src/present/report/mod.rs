//! The report of a run for people and programs: a [`Report`](super::Report) comes in; a screen
//! ([`screen()`]) and a JSON document ([`json`]) go out.
//!
//! | file | its idea |
//! |---|---|
//! | `screen`, `next` | which lines stand on the screen; the step that it proposes |
//! | `document` | which keys stand in the document |
//! | `verdict`, `job_end` | the few sentences that matter |
//! | `tables`, `rank_groups` | ranks, threads and functions |
//! | `notes` | notes of the metrics as sentences |
//! | `trust` | how far figures are to be trusted |
//! | `job`, `sites`, `totals`, `counters`, `messages` | a part of the report each, in both forms |
//! | [`late_partner`] | tables of its own |

mod counters;
mod document;
mod job;
mod job_end;
pub mod late_partner;
mod messages;
mod next;
mod notes;
mod rank_groups;
mod screen;
pub(in crate::present) mod sites;
mod tables;
mod totals;
mod trust;
mod verdict;

#[cfg(test)]
mod many_ranks_tests;
#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod tests;

pub use document::{VERSION, json};
pub use screen::screen;

pub(crate) use counters::counter_sentences;
pub(in crate::present) use document::value;
pub(in crate::present) use notes::sentence;
pub(crate) use notes::{run_note, time_note};
pub(in crate::present) use trust::trust_parts;
