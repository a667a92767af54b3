//! Converts the times of a trace.

use crate::import::rank::ZERO_TICKS;

use super::line_error::LineError;

/// Unit of time and number of tasks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) ns: f64,
    pub(super) tasks: usize,
}

impl Scale {
    pub(super) fn ticks(self, text: &str) -> Result<u64, LineError> {
        let time: u64 = text.parse().map_err(|_| LineError::Time(text.to_owned()))?;
        Ok(self.to_ticks(time))
    }

    pub(super) fn to_ticks(self, time: u64) -> u64 {
        // Nanoseconds stay exact.
        let ns = match self.ns {
            1.0 => time,
            scale => (time as f64 * scale).round() as u64,
        };
        ZERO_TICKS.saturating_add(ns.min(u64::MAX / 4))
    }

    /// Task and thread, from 0 on.
    pub(super) fn place(self, task: &str, thread: &str) -> Result<(usize, u32), LineError> {
        let number = |text: &str| text.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        let task_number = number(task).filter(|number| *number < self.tasks);
        let thread_number = number(thread).and_then(|number| u32::try_from(number).ok());
        let place = task_number.zip(thread_number);
        place.ok_or_else(|| LineError::Place { task: task.to_owned(), thread: thread.to_owned() })
    }
}
