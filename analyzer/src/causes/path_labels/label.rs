//! What a run did, by label: where in the program, on which communicator, for the first time or not.

use crate::causes::contexts::Context;

use super::durations::Durations;

/// What calls on a communicator depend on beside their function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// Number of members.
    pub ranks: u32,
    /// Distance in MPI_COMM_WORLD between members that follow each other; `None` if it varies.
    pub stride: Option<u32>,
    /// Most members on one host.
    pub per_host: u32,
}

/// Events with a label on the critical path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OnPath {
    /// Events of which some of the time lies on the path.
    pub count: u64,
    /// Ticks on the path.
    pub ticks: i64,
    /// Messages that these events send, receive or complete.
    pub messages: u64,
    /// Their bytes; of collective operations the bytes that the rank sends.
    pub bytes: u64,
}

/// Events of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeClass {
    /// All have at least so many bytes, and fewer than twice as many: a power of two, or 0.
    pub from: u64,
    pub count: u64,
    pub bytes: u64,
}

/// Events with a label on all ranks; waiting for known ranks is not part of their time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OnRanks {
    pub count: u64,
    pub ticks: i64,
    pub messages: u64,
    pub bytes: u64,
    /// Ascending.
    pub sizes: Vec<SizeClass>,
    /// Most events of one rank.
    pub max_count: u64,
    /// Ticks of every rank that has such events, ascending.
    pub ticks_of_ranks: Vec<i64>,
    /// Events and ticks of the first rank.
    pub first_rank: (u64, i64),
    /// Of what the program does outside calls.
    pub durations: Durations,
}

/// Events of exactly one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfSize {
    /// Of each.
    pub bytes: u64,
    pub on_path: OnPath,
    /// Of all ranks, as in [`OnRanks`].
    pub count: u64,
    pub ticks: i64,
    pub max_count: u64,
}

/// Everything with one label.
#[derive(Debug, Clone, PartialEq)]
pub struct PathLabel {
    pub context: Context,
    /// `None` outside calls, and in calls that name no communicator, such as completions.
    pub group: Option<Group>,
    /// Whether these are the first calls of their function on their communicator, one on each rank.
    pub first_use: bool,
    pub on_path: OnPath,
    pub on_ranks: OnRanks,
    /// By size, ascending; empty outside calls, and where there are more than 32.
    pub by_size: Vec<OfSize>,
}
