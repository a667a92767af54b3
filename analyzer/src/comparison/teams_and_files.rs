//! What a record keeps of parallel regions and of calls on files.

use serde::{Deserialize, Serialize};

/// Parallel regions that begin at one place, over all ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TeamRecord {
    /// Function that begins it.
    pub function: Option<String>,
    /// Source file, without its path.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
    /// Times that it was entered.
    pub count: u64,
    /// Threads of the largest team.
    pub threads: u16,
    /// From begin to end, of one thread each time, nanoseconds.
    pub span_ns: i64,
    /// Of threads without work, nanoseconds.
    pub idle_ns: i64,
}

/// Calls on files, of all files and ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FilesRecord {
    /// Calls that open files.
    pub opens: u64,
    /// Calls that read.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Calls that write.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Inside all calls on files, nanoseconds.
    pub ns: i64,
}

/// Calls on one file, of all ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileRecord {
    /// Its number in the run.
    pub number: u64,
    /// Its path; null: names were not kept.
    pub name: Option<String>,
    /// Inside calls on it, nanoseconds.
    pub ns: i64,
}
