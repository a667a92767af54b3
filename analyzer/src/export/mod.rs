//! Provides the writers in [`crate::formats`] with the calls, messages and tables of a run.
//!
//! | file | content |
//! |---|---|
//! | [`content`] | participants, and every call, one by one |
//! | [`traffic`] | messages and collective operations, in order of time |
//! | [`steps`] | calls and regions as nested beginnings and ends |
//! | [`linked`] | these steps with the messages that leave and arrive at them |
//! | [`tables`] | the run as tables |
//! | [`parts`] | blocks of ranks, into which large tables are divided |
//! | [`matches`](mod@matches), [`rows`] | messages and collective operations for tables, found by all threads and processes |
//! | [`dataset`] | the run as tables in parts, written by all threads and processes |
//!
//! Calls are read from the mapped files while the export is written; memory is bounded by ranks,
//! threads, communicators and operations in flight during matching, not by events.

pub mod content;
pub mod dataset;
pub mod linked;
pub mod matches;
pub mod parts;
pub mod rows;
pub mod steps;
pub mod tables;
pub mod traffic;

use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::content::Content;
use crate::present::{run_note, time_note};
use crate::processes::Processes;
use crate::timeline::communicators::CommunicatorTable;
use crate::trace::{Run, host_name};

/// An error of a format or of its library.
pub type FormatError = Box<dyn std::error::Error + Send + Sync>;

/// Why a run cannot be exported.
#[derive(Debug, Error)]
pub enum ExportError {
    /// A file cannot be written, or a temporary file for sorting cannot be read.
    #[error("{path}: cannot be written: {source}")]
    Io {
        /// The file, or the directory of the temporary files.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file cannot be written for a reason of its format.
    #[error("{path}: cannot be written: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The format's own error.
        source: FormatError,
    },
    /// The format's library cannot be used.
    #[error("{0}")]
    Format(FormatError),
    /// Another of several processes cannot write.
    #[error("process {process} on {host}: {what}")]
    OnProcess {
        /// Its number.
        process: usize,
        /// Its host.
        host: String,
        /// Its error.
        what: String,
    },
}

impl ExportError {
    /// A failure to write a file.
    pub fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self::Io { path: path.to_owned(), source }
    }

    /// A failure to write a file for a reason of its format.
    pub fn of_file<E: Into<FormatError>>(path: &Path) -> impl Fn(E) -> Self + '_ {
        |source| Self::File { path: path.to_owned(), source: source.into() }
    }

    /// A failure of the format's library.
    pub fn format(source: impl Into<FormatError>) -> Self {
        Self::Format(source.into())
    }
}

/// The values of all processes, by their numbers. All processes call this.
///
/// # Errors
/// This process's own error, or else the first of another, so that all fail together.
fn agreed<T: Serialize + DeserializeOwned>(
    processes: &Processes,
    own: Result<T, ExportError>,
) -> Result<Vec<T>, ExportError> {
    if processes.is_alone() {
        return own.map(|value| vec![value]);
    }
    let (value, error) = match own {
        Ok(value) => (Ok(value), None),
        Err(error) => (Err((host_name(), error.to_string())), Some(error)),
    };
    let all = processes.share(value);
    if let Some(error) = error {
        return Err(error);
    }
    let all = all.into_iter().enumerate().map(|(process, value)| {
        value.map_err(|(host, what)| ExportError::OnProcess { process, host, what })
    });
    all.collect()
}

/// Receives progress.
pub trait Progress: Sync {
    /// A stage begins; `steps` is its length, if known.
    fn stage(&self, what: &str, steps: Option<u64>);
    /// A number of steps is done.
    fn advance(&self, steps: u64);
}

/// Counts of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Written {
    /// Calls; runs of polls count once.
    pub calls: u64,
    /// Messages with both ends.
    pub messages: u64,
    /// Collective operations.
    pub collectives: u64,
}

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
