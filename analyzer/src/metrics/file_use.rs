//! What is known of the files that a program works on.

use serde::Serialize;

/// A file, on all ranks that work on it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileUse {
    /// Its number in this run, counted from 1 in the order in which ranks meet files.
    pub number: u64,
    /// Its path; null: names were not kept, or it stands for all files beyond the first 4096 of a rank.
    pub name: Option<String>,
    /// Number of ranks.
    pub ranks: u64,
    /// Calls that read, write, open, close, synchronise or resize it.
    pub calls: u64,
    /// Those that open it.
    pub opens: u64,
    /// Those that read.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Those that write.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Calls of MPI that read or write it (`MPI_File_…`); those above are what MPI made of them.
    pub mpi_calls: u64,
    /// Bytes that these moved.
    pub mpi_bytes: u64,
    /// Times that it was mapped into memory, where it is read and written without calls.
    pub mappings: u64,
    /// Reads that returned bytes from a known offset: by a descriptor of one thread, opened by the program and not
    /// duplicated; known of the whole run only.
    pub placed_reads: u64,
    /// Those of them that begin at no multiple of 4096.
    pub unaligned_reads: u64,
    /// Of what these read at least so many bytes are at offsets that the same rank had read before: what it read beyond
    /// its largest offset.
    pub read_again_bytes: u64,
    /// Seconds inside all these calls.
    pub seconds: f64,
    /// The part of it in calls that open.
    pub open_s: f64,
    /// The part of it in calls that read.
    pub read_s: f64,
    /// The part of it in calls that write.
    pub write_s: f64,
    /// The part of it that was inside calls of MPI.
    pub inside_mpi_s: f64,
    /// The part of it on threads that never call MPI; known of the whole run only.
    pub other_threads_s: f64,
    /// The rank that spent most time.
    pub slowest: Option<SlowestRank>,
}

/// A rank that spent most time on a file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlowestRank {
    /// The rank.
    pub rank: u32,
    /// Its seconds.
    pub seconds: f64,
}

/// What a rank does with files.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RankFiles {
    /// The rank.
    pub rank: u32,
    /// Number of files that it works on.
    pub files: u64,
    /// Calls that read, write, open, close, synchronise or resize files.
    pub calls: u64,
    /// Those that open files.
    pub opens: u64,
    /// Those that read.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Those that write.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Times that files were mapped into memory.
    pub mappings: u64,
    /// Seconds inside all these calls.
    pub seconds: f64,
    /// The part of it in calls that open.
    pub open_s: f64,
    /// The part of it in calls that read.
    pub read_s: f64,
    /// The part of it in calls that write.
    pub write_s: f64,
    /// The part of it that was inside calls of MPI.
    pub inside_mpi_s: f64,
    /// The part of it on threads that never call MPI; known of the whole run only.
    pub other_threads_s: f64,
}

/// Bytes that the kernel counted, but no call that is seen: inside the C library (`fprintf`, `fgets`), by `sendfile`,
/// by system calls of the program's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unseen {
    /// Read.
    pub read_bytes: u64,
    /// Written.
    pub written_bytes: u64,
}

/// The files of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct FileMetrics {
    /// Whether the library that sees the calls was loaded.
    pub is_loaded: bool,
    /// Whether some are missing, because calls of a part of the run were kept only as totals.
    pub is_partial: bool,
    /// Most time first.
    pub files: Vec<FileUse>,
    /// One for each rank with a file.
    pub ranks: Vec<RankFiles>,
    /// What was not seen; `None`: not known.
    pub unseen: Option<Unseen>,
}
