//! Faults in the files of a run, and other facts that a reader of the run should know.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use trace_format::reader::Diagnosis;

use super::snapshot::Reason;

/// A fault `W` in a file of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiagnosis<W> {
    /// Path below the run directory.
    pub file: PathBuf,
    /// What is wrong.
    pub what: W,
}

impl<W: std::fmt::Display> std::fmt::Display for FileDiagnosis<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.what)
    }
}

/// A fault in a file that was found when the run was opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// A folder cannot be listed; with the system's error.
    #[error("cannot be listed: {0}")]
    CannotList(String),
    /// A file cannot be read; with the system's error.
    #[error("cannot be read: {0}")]
    CannotRead(String),
    /// It is not a rank file, or its header is damaged.
    #[error("{0}")]
    Header(String),
    /// `run.json` exists but cannot be used.
    #[error("{0}")]
    Description(String),
    /// It belongs to a run of another size.
    #[error(
        "belongs to a run of {ranks} ranks, the others to one of {world_size}: files of different runs lie \
         in one directory; it is left out"
    )]
    OtherRun {
        /// Ranks of its run.
        ranks: u32,
        /// Ranks of the others' run.
        world_size: u32,
    },
    /// The run has no such rank.
    #[error(
        "says it is rank {rank} of world {world}, which does not exist in a run of {world_size} ranks; it is \
         left out"
    )]
    NoSuchRank {
        /// The rank that it states.
        rank: u32,
        world: u32,
        /// Ranks of the run.
        world_size: u32,
    },
    /// It has the name of another rank's file.
    #[error("says it is rank {rank}, whose file is {}; it is left out", expected.display())]
    OtherName {
        /// The rank that it states.
        rank: u32,
        /// The path that this rank's file has.
        expected: PathBuf,
    },
    /// A part of it is damaged.
    #[error("{0}")]
    Damaged(Diagnosis),
    /// The events of a thread are damaged from some position on.
    #[error("{damage}; the later events of thread {thread} are left out")]
    DamagedEvents {
        thread: u32,
        /// Position and kind of the damage.
        damage: Diagnosis,
    },
    /// Calls end after the next call begins.
    #[error("{calls} calls of thread {thread} end after the next one begins; they are cut there")]
    Overlaps {
        thread: u32,
        /// Number of such calls.
        calls: u64,
    },
    /// The recorder stopped, for this reason.
    #[error("recording ended: {0}")]
    Stopped(String),
    /// According to the rank's counter, its end lies before its begin.
    #[error(
        "according to the counter, MPI_Finalize was entered before MPI_Init returned; the end is taken from \
         the last event"
    )]
    EndBeforeBegin,
    /// The rank has no begin, although others have one.
    #[error("rank {rank} {state}: it is left out of all times and figures")]
    NotBegun { rank: u32, state: NotBegun },
    /// Any other fault, after [`super::Run::anonymise`] removed names from its message.
    #[error("{0}")]
    Anonymous(String),
}

/// State of a rank whose MPI_Init did not return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NotBegun {
    /// Its process is gone.
    #[error("died before its MPI_Init returned")]
    Died,
    /// Its process is running.
    #[error("has not returned from MPI_Init yet")]
    Runs,
    /// Nothing is known of its process.
    #[error("never returned from MPI_Init")]
    Unknown,
}

/// Something that a reader of a run should know although it is not a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunNote {
    /// It is a snapshot of a running job.
    Snapshot {
        reason: Reason,
        rank: Option<u32>,
        /// When it was taken; `None` if the date is left out.
        utc: Option<String>,
    },
    /// It was written by a replay, not measured.
    Simulated,
    /// There are files of spawned processes, which are not analysed.
    Spawned { files: usize },
    /// The MPI library is not one that the recorder knows.
    UnknownMpi {
        /// The library's own description of itself; may be empty.
        library: String,
    },
    /// Objects were freed while only totals were kept, so their definitions are missing.
    FreedInTotals {
        /// Communicators, counted on each rank.
        communicators: u64,
        /// Windows and files, counted on each rank.
        objects: u64,
    },
}
