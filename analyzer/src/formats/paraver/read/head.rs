//! Reads the head of a `.prv`: tasks, length and communicators. Memory grows with the length of the
//! text only, not with numbers in it.

use super::line_error::LineError;
use crate::import::rank::ImportedCommunicator;

/// The first line and the communicators after it.
#[derive(Debug, Default)]
pub struct Head {
    /// The file's unit of time in nanoseconds.
    pub scale_ns: f64,
    /// Length of the trace in the file's unit.
    pub duration: u64,
    /// Node of each task, from 1 on (0: unknown), and its number of threads.
    pub tasks: Vec<(usize, u32)>,
    /// Communicators by their numbers in events.
    pub communicators: Vec<(u64, ImportedCommunicator)>,
    /// Number of lines about intercommunicators.
    pub intercommunicators: u64,
    /// Number of lines about communicators after the first line.
    pub lines: usize,
}

impl Head {
    /// Reads the first line.
    ///
    /// # Errors
    /// The line is invalid.
    pub fn of_first_line(line: &str) -> Result<Self, LineError> {
        let wrong = LineError::FirstLine;
        let rest = line
            .strip_prefix("#Paraver")
            .ok_or_else(|| wrong("it does not begin with #Paraver"))?;
        let (_, rest) = rest.split_once("):").ok_or_else(|| wrong("the date is missing"))?;
        let (length, rest) =
            rest.split_once(':').ok_or_else(|| wrong("the duration is missing"))?;
        let digits = length.trim_end_matches(|c: char| !c.is_ascii_digit());
        let scale_ns = match &length[digits.len()..] {
            "_ns" => 1.0,
            "" | "_us" => 1e3,
            "_ms" => 1e6,
            _ => return Err(wrong("the unit of time is unknown")),
        };
        let duration = digits.parse().map_err(|_| wrong("the duration is not a number"))?;
        let (_, rest) =
            rest.split_once(':').ok_or_else(|| wrong("nodes or applications are missing"))?;
        let (applications, rest) =
            rest.split_once(':').ok_or_else(|| wrong("the applications are missing"))?;
        if applications.trim() != "1" {
            return Err(LineError::Applications(applications.to_owned()));
        }
        let (_, rest) = rest.split_once('(').ok_or_else(|| wrong("the tasks are missing"))?;
        let (tasks, rest) =
            rest.split_once(')').ok_or_else(|| wrong("the list of tasks has no end"))?;
        let task = |text: &str| -> Option<(usize, u32)> {
            let (threads, node) = text.split_once(':')?;
            Some((node.trim().parse().ok()?, threads.trim().parse().ok()?))
        };
        let tasks: Option<Vec<_>> = tasks.split(',').map(task).collect();
        let tasks =
            tasks.filter(|tasks| !tasks.is_empty()).ok_or_else(|| wrong("a task is malformed"))?;
        let count = rest.trim_start_matches(',').trim();
        let lines = if count.is_empty() {
            0
        } else {
            count.parse().map_err(|_| wrong("the number of communicators is not a number"))?
        };
        Ok(Self { scale_ns, duration, tasks, lines, ..Self::default() })
    }

    /// Reads a line about a communicator: `c:APPLICATION:NUMBER:SIZE:TASK:…`.
    ///
    /// # Errors
    /// The line is invalid.
    pub fn communicator(&mut self, line: &str) -> Result<(), LineError> {
        let wrong = || LineError::communicator(line);
        if line.starts_with("i:") {
            self.intercommunicators += 1;
            return Ok(());
        }
        let rest = line.strip_prefix("c:").ok_or_else(wrong)?;
        let numbers: Result<Vec<u64>, _> = rest.split(':').map(str::parse).collect();
        let numbers = numbers.map_err(|_| wrong())?;
        let number = *numbers.get(1).ok_or_else(wrong)?;
        let tasks = self.tasks.len() as u64;
        let members = numbers.get(3..).unwrap_or_default().iter();
        let members: Option<Vec<u32>> =
            members.map(|task| (1..=tasks).contains(task).then(|| (*task - 1) as u32)).collect();
        let members = members.ok_or_else(wrong)?;
        let communicator = ImportedCommunicator { members, ..ImportedCommunicator::default() };
        self.communicators.push((number, communicator));
        Ok(())
    }
}
