//! Why a kernel ends without a result, and the exit code that says so.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// Everything that can go wrong in a kernel.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line asks for what this launch cannot do.
    #[error("{0}")]
    Usage(String),
    /// MPI was initialised before this program did so.
    #[error("MPI_Init failed: MPI was already initialised")]
    Init,
    /// At least one call gave another result than MPI promises.
    #[error("{0} wrong results: this MPI library, or what is preloaded, changes what MPI calls do")]
    WrongResults(u64),
    /// A result differs from the same result computed otherwise.
    #[error("wrong result: {0}")]
    WrongResult(String),
    /// The machine lacks something, or refuses it.
    #[error("{0}")]
    Machine(String),
    /// The file of the floor could not be made, granted or mapped.
    #[error("floor: {doing} {}: {source}; choose another directory with --floor-dir", path.display())]
    Floor {
        /// The step that failed.
        doing: &'static str,
        /// The file or directory it failed on.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Standard output could not be written.
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
}

impl Failure {
    /// True where the reader of our output has simply gone away, which needs no message.
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
