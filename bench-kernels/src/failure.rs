//! Reasons why a kernel ends without a result, and their exit codes.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// Everything that can go wrong in a kernel.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line requests something that this launch cannot do.
    #[error("{0}")]
    Usage(String),
    /// MPI was initialised before this program did so.
    #[error("MPI_Init failed: MPI was already initialised")]
    Init,
    /// At least one call gave a result that MPI does not allow.
    #[error("{0} wrong results: this MPI library, or what is preloaded, changes what MPI calls do")]
    WrongResults(u64),
    /// A result differs from the same result computed another way.
    #[error("wrong result: {0}")]
    WrongResult(String),
    /// The machine lacks something or denies it.
    #[error("{0}")]
    Machine(String),
    /// The floor's file could not be made, granted or mapped.
    #[error("floor: {doing} {}: {source}; choose another directory with --floor-dir", path.display())]
    Floor {
        /// The step that failed.
        doing: &'static str,
        /// The file or directory for which it failed.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Standard output could not be written.
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
}

impl Failure {
    /// Whether the reader of our output has gone away, which needs no message.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// 2 for wrong usage, 0 for a reader that left, 1 for everything else.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            failure if failure.is_broken_pipe() => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        }
    }
}
