//! Why a run cannot be read at all.

use std::path::PathBuf;

use crate::shell_word::shell_word;

/// Why a run cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The directory does not exist.
    #[error("{0}: no such run directory; `gammachi run` names the one it wrote when it ends")]
    Missing(PathBuf),
    /// A file was given instead of a directory.
    #[error("{file}: is a file; pass the run directory{hint}")]
    NotADirectory {
        /// What was given.
        file: PathBuf,
        /// The directory that was probably meant, with a leading `: `; or empty.
        hint: String,
    },
    /// The directory cannot be listed.
    #[error("{path}: cannot be read: {source}")]
    Io {
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    #[error(
        "{0}: no rank file in it (ranks-000/rank-000000.gmc …): the program never completed \
         MPI_Init under the recorder, or this is not a run directory; record one with `gammachi \
         run -- mpirun -n 2 ./app`, and see `gammachi doctor` if it stays empty"
    )]
    NoRankFile(PathBuf),
    /// The rank files are still in staging directories.
    #[error(
        "{directory}: the ranks' files are still in the staging directories of their hosts, one in \
         {place} (the job is running, or was killed, or could not move them); join them: gammachi collect \
         {word} STAGE…",
        word = shell_word(&.directory.to_string_lossy())
    )]
    Staged {
        directory: PathBuf,
        /// `HOST:PATH` of one rank's file.
        place: String,
    },
    /// A file was shortened, or its file system failed, after the run was opened.
    #[error(
        "{file}: {what}; the figures would be wrong: run the command again once the file is complete"
    )]
    Unreadable {
        file: PathBuf,
        /// Which bytes cannot be read, and why.
        what: String,
    },
    /// The processes that analyse a run together do not see the same files.
    #[error(
        "{directory}: process {process} on {host} finds other files in it than process 0 on {first_host}: all \
         processes must read the same directory, and the program must have ended"
    )]
    FilesDiffer {
        directory: PathBuf,
        /// Number of the first process that finds other files.
        process: usize,
        host: String,
        /// The first process's host.
        first_host: String,
    },
    /// Another process cannot read the run.
    #[error("process {process} on {host}: {what}")]
    OnProcess {
        process: usize,
        host: String,
        /// Its error.
        what: String,
    },
    /// The program is still running, so that each process would read another state of it.
    #[error(
        "{directory}: rank {rank} is still running, and only one process can read a run that \
         changes: gammachi report {word}",
        word = shell_word(&.directory.to_string_lossy())
    )]
    Runs {
        directory: PathBuf,
        /// The first such rank.
        rank: u32,
    },
    /// There are rank files, but none can be opened.
    #[error("{directory}: none of its {files} rank files can be read; the first: {first}")]
    NoneReadable {
        directory: PathBuf,
        /// Number of rank files.
        files: usize,
        /// What is wrong with the first.
        first: String,
    },
}
