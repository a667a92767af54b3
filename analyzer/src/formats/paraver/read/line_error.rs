//! What is wrong with a line of a `.prv`.

use thiserror::Error;

/// Characters of a line that an error shows.
const SHOWN: usize = 60;

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LineError {
    /// The first line does not say what it should.
    #[error("not the first line of a Paraver trace: {0}")]
    FirstLine(&'static str),
    /// Traces of several applications.
    #[error("{0} applications; one is supported")]
    Applications(String),
    /// A line about a communicator that cannot be one; the line's beginning.
    #[error("not a communicator: {0:?}")]
    Communicator(String),
    /// A line of another form than records have; the line's beginning.
    #[error("no record of Paraver: {0:?}")]
    Record(String),
    /// A time.
    #[error("{0:?} is no time")]
    Time(String),
    /// A task that the head does not have, or a thread that cannot be.
    #[error("there is no task {task}, thread {thread}")]
    Place {
        /// As the line says.
        task: String,
        /// As the line says.
        thread: String,
    },
    /// A state.
    #[error("a state is no number")]
    State,
    /// An event.
    #[error("an event's type or value is no number")]
    Event,
    /// A message.
    #[error("size or tag is no number")]
    Message,
}

impl LineError {
    /// A line of another form than records have.
    pub fn record(line: &str) -> Self {
        Self::Record(beginning(line))
    }

    /// A line about a communicator that cannot be one.
    pub fn communicator(line: &str) -> Self {
        Self::Communicator(beginning(line))
    }
}

fn beginning(line: &str) -> String {
    line.chars().take(SHOWN).collect()
}
