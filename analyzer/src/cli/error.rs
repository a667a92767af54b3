//! Errors of the command, each of which becomes one line on standard error and an exit code; and
//! the functions that print messages and output.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use thiserror::Error;

use super::terminal::has_colours;
use crate::comparison::Mixed;
use crate::comparison::baseline::BaselineError;
use crate::comparison::reduce::NotComparable;
use crate::models::machine::MachineError;
use crate::models::observations::ObservationsError;
use crate::plain_text::for_terminal;
use crate::present::comparison::mixed;
use crate::present::html::PageError;
use crate::trace::TraceError;
use crate::trace::collect::CollectError;
use crate::trace::study_json::StudyJsonError;

/// Exit code if the program or the data failed.
pub const EXIT_FAILED: u8 = 1;
/// Exit code of wrong usage.
pub const EXIT_USAGE: u8 = 2;

/// Why a command failed, by what the user can do about it.
///
/// The message names the file or argument, what is wrong with it, and what to do.
#[derive(Debug, Error)]
pub enum CommandError {
    /// Change the command line: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// Name another run, study or file, or record it again: exit code 1.
    #[error("{0}")]
    Input(String),
    /// Make room, or name another place to write to: exit code 1.
    #[error("{0}")]
    Output(String),
    /// Install or repair a program or library that is needed: exit code 1.
    #[error("{0}")]
    Program(String),
    /// The message has already been written, or the measured program has printed its own; only the
    /// exit code is left to return.
    #[error("exit code {0}")]
    Exit(u8),
    /// The reader of standard output has gone (`gammachi report RUN | head`): a quiet success.
    #[error("standard output was closed")]
    ClosedOutput,
}

impl CommandError {
    /// See [`CommandError::Usage`].
    pub fn usage(message: impl Display) -> Self {
        Self::Usage(message.to_string())
    }

    /// See [`CommandError::Input`].
    pub fn input(message: impl Display) -> Self {
        Self::Input(message.to_string())
    }

    /// A failure to write to standard output; quiet if its reader has gone.
    pub fn standard_output(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedOutput,
            _ => Self::Output(format!("cannot write to standard output: {error}")),
        }
    }

    /// The exit code of this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => EXIT_USAGE,
            Self::Input(_) | Self::Output(_) | Self::Program(_) => EXIT_FAILED,
            Self::Exit(code) => *code,
            Self::ClosedOutput => 0,
        }
    }

    /// Whether there is something to tell.
    pub fn has_message(&self) -> bool {
        !matches!(self, Self::Exit(_) | Self::ClosedOutput)
    }
}

/// What the user can do about an error: a variant of [`CommandError`].
pub type Kind = fn(String) -> CommandError;

/// An error whose own words tell what is wrong: `?` makes it one of the command.
pub trait Explained: Display {
    /// What the user can do about it.
    const KIND: Kind = CommandError::Input;
}

impl Explained for TraceError {}
impl Explained for StudyJsonError {}
impl Explained for CollectError {}
impl Explained for BaselineError {}
impl Explained for NotComparable {}
impl Explained for ObservationsError {}
impl Explained for PageError {
    const KIND: Kind = CommandError::Output;
}
impl Explained for serde_json::Error {
    const KIND: Kind = CommandError::Output;
}

impl<E: Explained> From<E> for CommandError {
    fn from(error: E) -> Self {
        E::KIND(error.to_string())
    }
}

impl From<MachineError> for CommandError {
    fn from(error: MachineError) -> Self {
        let remedy = match error {
            MachineError::Unreadable { .. } | MachineError::Malformed { .. } => {
                "`gammachi calibrate -- mpirun -n 2` writes one"
            }
            MachineError::Version { .. } => {
                "measure again: gammachi calibrate --out ANOTHER.json -- mpirun -n 2"
            }
        };
        Self::Input(format!("{error}; {remedy}"))
    }
}

impl From<Mixed> for CommandError {
    fn from(found: Mixed) -> Self {
        Self::Usage(mixed(&found))
    }
}

/// Makes any other error one of the command.
pub trait Context<T> {
    /// Puts what failed before the error: `what: error`.
    fn context(self, kind: Kind, what: impl Display) -> Result<T, CommandError>;
}

impl<T, E: Display> Context<T> for Result<T, E> {
    fn context(self, kind: Kind, what: impl Display) -> Result<T, CommandError> {
        self.map_err(|error| kind(format!("{what}: {error}")))
    }
}

/// Prints the error on standard error, unless it has no message, and returns the exit code.
pub fn report_error(error: &CommandError) -> ExitCode {
    if error.has_message() {
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
/// [`CommandError::Output`] for every other failure (a full disk).
pub fn print(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    let text = for_terminal(text, out.is_terminal());
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CommandError::standard_output)
}

/// Like [`print()`]; on a terminal, the text takes the place of everything there.
///
/// # Errors
/// As [`print()`].
pub fn print_alone(text: &str) -> Result<(), CommandError> {
    /// Moves to the upper left corner and clears everything.
    const CLEAR: &[u8] = b"\x1b[H\x1b[2J";
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        out.write_all(CLEAR).map_err(CommandError::standard_output)?;
    }
    print(text)
}

/// The document that `--json` asks for, or else the screen, which is told whether to use colours.
///
/// # Errors
/// Failure if there is no document.
pub fn rendered<E: Into<CommandError>>(
    is_json: bool,
    document: impl FnOnce() -> Result<String, E>,
    screen: impl FnOnce(bool) -> String,
) -> Result<String, CommandError> {
    match is_json {
        true => document().map_err(Into::into),
        false => Ok(screen(has_colours())),
    }
}

/// Prints what [`rendered`] gives.
///
/// # Errors
/// As [`print()`]; failure if there is no document.
pub fn print_result<E: Into<CommandError>>(
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
        assert_eq!(CommandError::input("x").exit_code(), 1);
        assert_eq!(CommandError::usage("x").exit_code(), 2);
        assert_eq!(CommandError::Exit(139).exit_code(), 139);
        assert_eq!(CommandError::standard_output(io::ErrorKind::BrokenPipe.into()).exit_code(), 0);
        assert_eq!(CommandError::standard_output(io::ErrorKind::StorageFull.into()).exit_code(), 1);
    }
}
