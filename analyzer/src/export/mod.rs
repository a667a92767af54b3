//! Provides the writers in [`crate::formats`] with the calls, messages and tables of a run.
//!
//! | file | content |
//! |---|---|
//! | [`content`] | participants, and every call, one by one |
//! | [`traffic`] | messages and collective operations, in order of time |
//! | [`steps`] | calls and regions as nested beginnings and ends |
//! | [`linked`] | these steps with the messages that leave and arrive at them |
//! | [`beside`] | parallel regions of OpenMP and calls on files |
//! | [`samples`] | the stacks of sampled code |
//! | [`tables`] | the run as tables |
//! | [`parts`] | blocks of ranks, into which large tables are divided |
//! | [`matches`](mod@matches), [`rows`] | messages and collective operations for tables, found by all threads and processes |
//! | [`dataset`] | the run as tables in parts, written by all threads and processes |
//!
//! Calls are read from the mapped files while the export is written; memory is bounded by ranks,
//! threads, communicators and operations in flight during matching, not by events.

pub mod beside;
pub mod content;
pub mod dataset;
mod error;
mod json_file;
pub mod linked;
pub mod matches;
pub mod parts;
mod progress;
pub mod rows;
pub mod samples;
pub mod steps;
pub mod tables;
pub mod traffic;

use crate::present::{run_note, time_note};
use crate::timeline::communicators::CommunicatorTable;
use crate::trace::Run;

use self::content::Content;

pub use error::{ExportError, FormatError};
pub use json_file::write_json;
pub use progress::{Progress, Written};

/// Ranks without a file that an export may still name one by one.
const MAX_ABSENT: u32 = 1 << 20;

/// Refuses runs whose files claim far more ranks than there are: exports name every member.
///
/// # Errors
/// What the files claim, and what to do.
pub fn check_plausible(run: &Run, communicators: &CommunicatorTable) -> Result<(), String> {
    let directory = run.directory.display();
    let here = run.ranks.len();
    if run.missing_count() > MAX_ABSENT {
        return Err(format!(
            "{directory}: its files say that the run had {} ranks, and {here} left one; an export names \
             every rank. Collect the files that are elsewhere first (gammachi collect); if there are none, \
             a file is damaged",
            run.world_size
        ));
    }
    // Members of other worlds may be in a communicator, but not so many.
    let most = run.world_size.saturating_mul(4).max(MAX_ABSENT);
    match communicators.entries().iter().find(|entry| entry.size() > most) {
        Some(entry) => Err(format!(
            "{directory}: a communicator with {} members in a run of {} ranks cannot be right; a file is \
             damaged",
            entry.size(),
            run.world_size
        )),
        None => Ok(()),
    }
}

/// What every reader of the data should know: damage, missing ranks, uncertain clocks, what the
/// recording left out.
pub fn remarks(content: &Content) -> Vec<String> {
    let (run, timeline) = (content.run, content.timeline);
    let mut remarks: Vec<String> = run.diagnoses.iter().map(ToString::to_string).collect();
    remarks.extend(timeline.diagnoses.iter().map(ToString::to_string));
    remarks.extend(run.notes.iter().map(run_note));
    remarks.extend(timeline.notes.iter().map(time_note));
    if !run.missing.is_empty() {
        let count = run.missing_count();
        remarks.push(format!("{count} ranks left no readable file and are left out"));
    }
    if content.head.level == 0 {
        remarks.push("recorded at level 0, function and times: there are no messages".to_owned());
    }
    for rank in &content.head.ranks {
        for thread in &run.ranks[rank.position].file.threads {
            if let Some(totals) = &thread.totals {
                remarks.push(format!(
                    "rank {} thread {}: {} calls were kept as totals only and are left out; \
                     `gammachi report` has their sums",
                    rank.rank, thread.number, totals.header.calls
                ));
            }
        }
    }
    remarks
}
