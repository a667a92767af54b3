//! What can be wrong with a file of a run, and what a reader should know about a run besides.

use std::path::PathBuf;

use trace_format::reader::Diagnosis;

/// Something wrong with a file of the run; `W` says what.
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

/// What is wrong with a file as it was opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// A folder cannot be listed; what the system said.
    #[error("cannot be listed: {0}")]
    CannotList(String),
    /// A file cannot be read; what the system said.
    #[error("cannot be read: {0}")]
    CannotRead(String),
    /// It is not a rank file, or its header is damaged.
    #[error("{0}")]
    Header(String),
    /// `run.json` is there and cannot be used.
    #[error("{0}")]
    Description(String),
    /// It is of a run of another size.
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
        /// Its world.
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
    /// The events of a thread are damaged from some place on.
    #[error("{damage}; the later events of thread {thread} are left out")]
    DamagedEvents {
        /// The thread.
        thread: u32,
        /// Where and how.
        damage: Diagnosis,
    },
    /// Calls end after the next one begins.
    #[error("{calls} calls of thread {thread} end after the next one begins; they are cut there")]
    Overlaps {
        /// The thread.
        thread: u32,
        /// How many calls.
        calls: u64,
    },
    /// The recorder stopped, for the reason that it gave.
    #[error("recording ended: {0}")]
    Stopped(String),
    /// By the rank's counter its end lies before its begin.
    #[error(
        "MPI_Finalize was entered before MPI_Init returned, by the counter; the end is taken from the last \
         event"
    )]
    EndBeforeBegin,
    /// The rank has no begin, while others have.
    #[error("rank {rank} {state}: it is left out of all times and figures")]
    NotBegun {
        /// The rank.
        rank: u32,
        /// What became of it.
        state: NotBegun,
    },
    /// Any of these after [`super::Run::anonymise`] took names out of its sentence.
    #[error("{0}")]
    Anonymous(String),
}

/// What became of a rank whose MPI_Init did not return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotBegun {
    /// Its process is gone.
    #[error("died before its MPI_Init returned")]
    Died,
    /// Its process runs.
    #[error("has not returned from MPI_Init yet")]
    Runs,
    /// Nothing is known of its process.
    #[error("never returned from MPI_Init")]
    Unknown,
}

/// What a reader should know about a run that is nothing wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunNote {
    /// It is a replay: nobody measured it.
    Imagined,
    /// There are files of spawned processes, which are not analysed.
    Spawned {
        /// How many files.
        files: usize,
    },
    /// The MPI library is not one that the recorder knows.
    UnknownMpi {
        /// What the library says of itself; empty where it says nothing.
        library: String,
    },
    /// Objects were freed while events were only summed up; what they were is not kept.
    FreedInTotals {
        /// Communicators, counted on each rank.
        communicators: u64,
        /// Windows and files, counted on each rank.
        objects: u64,
    },
}
