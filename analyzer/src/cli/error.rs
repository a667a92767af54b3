//! Errors of the command, each of which becomes one line on standard error and an exit code; and
//! the functions that print messages and output.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use thiserror::Error;

use super::terminal::has_colours;
use crate::plain_text::for_terminal;
use crate::trace::TraceError;

/// Exit code if the program or the data failed.
pub const EXIT_FAILED: u8 = 1;
/// Exit code of wrong usage.
pub const EXIT_USAGE: u8 = 2;

/// Why a command failed.
///
/// The message names the file or argument, what is wrong with it, and what to do.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The program or the data failed: exit code 1.
    #[error("{0}")]
    Failed(String),
    /// The command was used wrongly: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The message has already been written, or the measured program has printed its own; only the
    /// exit code is left to return.
    #[error("exit code {0}")]
    Exit(u8),
    /// The reader of standard output has gone (`gammachi report RUN | head`): a quiet success.
    #[error("standard output was closed")]
    ClosedOutput,
}

impl CommandError {
    /// The program or the data failed: exit code 1.
    pub fn failed(message: impl Display) -> Self {
        Self::Failed(message.to_string())
    }

    /// The command was used wrongly: exit code 2.
    pub fn usage(message: impl Display) -> Self {
        Self::Usage(message.to_string())
    }

    /// A failure to write to standard output; quiet if its reader has gone.
    pub fn output(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedOutput,
            _ => Self::Failed(format!("cannot write to standard output: {error}")),
        }
    }

    /// The exit code of this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => EXIT_FAILED,
            Self::Usage(_) => EXIT_USAGE,
            Self::Exit(code) => *code,
            Self::ClosedOutput => 0,
        }
    }
}

/// A run that cannot be read: exit code 1.
impl From<TraceError> for CommandError {
    fn from(error: TraceError) -> Self {
        Self::failed(error)
    }
}

/// Prints the error on standard error, unless it has no message, and returns the exit code.
pub fn report_error(error: &CommandError) -> ExitCode {
    if matches!(error, CommandError::Failed(_) | CommandError::Usage(_)) {
        eprint_message(&error.to_string());
    }
    ExitCode::from(error.exit_code())
}

/// Writes `gammachi: message` to standard error, filtered by [`for_terminal`]. If standard error is
/// closed, nothing happens.
pub fn eprint_message(message: &str) {
    let _ = writeln!(io::stderr(), "gammachi: {}", for_terminal(message, false));
}

/// Writes text to standard error, filtered by [`for_terminal`].
pub fn print_to_stderr(text: &str) {
    let _ = write!(io::stderr(), "{}", for_terminal(text, false));
}

/// Writes text to standard output, filtered by [`for_terminal`]; colours are kept on a terminal.
///
/// # Errors
/// [`CommandError::ClosedOutput`] if the reader has gone, which ends the command quietly;
/// [`CommandError::Failed`] for every other failure (a full disk).
pub fn print(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    let text = for_terminal(text, out.is_terminal());
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CommandError::output)
}

/// The document that `--json` asks for, or else the screen, which is told whether to use colours.
///
/// # Errors
/// Failure if there is no document.
pub fn rendered<E: Display>(
    is_json: bool,
    document: impl FnOnce() -> Result<String, E>,
    screen: impl FnOnce(bool) -> String,
) -> Result<String, CommandError> {
    match is_json {
        true => document().map_err(CommandError::failed),
        false => Ok(screen(has_colours())),
    }
}

/// Prints what [`rendered`] gives.
///
/// # Errors
/// As [`print()`]; failure if there is no document.
pub fn print_result<E: Display>(
    is_json: bool,
    document: impl FnOnce() -> Result<String, E>,
    screen: impl FnOnce(bool) -> String,
) -> Result<(), CommandError> {
    print(&rendered(is_json, document, screen)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_errors_to_exit_codes() {
        assert_eq!(CommandError::failed("x").exit_code(), 1);
        assert_eq!(CommandError::usage("x").exit_code(), 2);
        assert_eq!(CommandError::Exit(139).exit_code(), 139);
        assert_eq!(CommandError::output(io::ErrorKind::BrokenPipe.into()).exit_code(), 0);
        assert_eq!(CommandError::output(io::ErrorKind::StorageFull.into()).exit_code(), 1);
    }
}
