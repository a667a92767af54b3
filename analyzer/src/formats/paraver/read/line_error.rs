//! Errors of a line of a `.prv`.

use thiserror::Error;

/// Characters of a line that an error shows.
const SHOWN: usize = 60;

/// Why a line is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LineError {
    /// The first line is not that of a Paraver trace.
    #[error("not the first line of a Paraver trace: {0}")]
    FirstLine(&'static str),
    /// The trace has several applications.
    #[error("{0} applications; one is supported")]
    Applications(String),
    /// An invalid line about a communicator; the line's beginning.
    #[error("not a communicator: {0:?}")]
    Communicator(String),
    /// A line that does not have the form of a record; the line's beginning.
    #[error("not a Paraver record: {0:?}")]
    Record(String),
    /// An invalid time.
    #[error("{0:?} is not a time")]
    Time(String),
    /// A task that the head does not define, or an invalid thread.
    #[error("there is no task {task}, thread {thread}")]
    Place {
        /// As in the line.
        task: String,
        /// As in the line.
        thread: String,
    },
    /// An invalid state.
    #[error("a state is not a number")]
    State,
    /// An invalid event.
    #[error("an event's type or value is not a number")]
    Event,
    /// An invalid message.
    #[error("size or tag is not a number")]
    Message,
}

impl LineError {
    /// A line that does not have the form of a record.
    pub fn record(line: &str) -> Self {
        Self::Record(beginning(line))
    }

    /// An invalid line about a communicator.
    pub fn communicator(line: &str) -> Self {
        Self::Communicator(beginning(line))
    }
}

fn beginning(line: &str) -> String {
    line.chars().take(SHOWN).collect()
}
