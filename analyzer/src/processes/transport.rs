//! What carries bytes between processes.

use std::fmt::Debug;

/// Carries bytes between the processes that analyse a run.
///
/// An implementation never returns from an exchange that failed or took longer than its deadline:
/// it says so and ends all processes.
pub trait Transport: Debug + Send + Sync {
    /// Number of processes, at least 1.
    fn count(&self) -> usize;

    /// Number of this process, from 0.
    fn number(&self) -> usize;

    /// Sends the bytes at each position to the process of that number; returns what each process
    /// sent here, by its number. All processes call this equally often, each from the thread that
    /// runs the command.
    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Vec<Vec<u8>>;
}

/// One process, without others.
#[derive(Debug, Clone, Copy)]
pub struct Alone;

impl Transport for Alone {
    fn count(&self) -> usize {
        1
    }

    fn number(&self) -> usize {
        0
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        outgoing
    }
}
