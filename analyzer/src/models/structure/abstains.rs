//! Why predictions from structure say nothing.

/// Why the structure of the runs says nothing.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Abstains {
    /// Runs at fewer rank counts than laws need.
    #[error(
        "timed runs at {0} rank counts are too few for laws of p; at least {LEAST_RUNS} are needed"
    )]
    FewRankCounts(usize),
    /// Ranks had to share cores in so many runs.
    #[error("ranks shared cores in {0} of the runs, whose times are then not those of the program")]
    SharedCores(usize),
    /// Waits cannot be told from transfers.
    #[error(
        "{:.0} % of the ranks' time lies in waits shorter than the error of their clocks, so the critical path is not known",
        100.0 * .0
    )]
    Clocks(f64),
    /// A run is read for this up to so many calls.
    #[error("the run with {p} ranks has more than {most} calls")]
    ManyCalls { p: u32, most: u64 },
    /// A run that was read before.
    #[error("one of the runs could not be read again")]
    Unreadable,
    /// Runs at fewer problem sizes than laws of N and their check need.
    #[error(
        "runs at {0} problem sizes of one rank count are too few for laws of N; at least {LEAST_SIZES} are needed"
    )]
    FewProblemSizes(usize),
    /// Labels add up to too little of the elapsed time.
    #[error("places in the program explain only {:.0} % of the time", 100.0 * .0)]
    Unexplained(f64),
}

/// Rank counts that are needed.
pub const LEAST_RUNS: usize = 5;

/// Problem sizes that are needed at a rank count: what three say is held to the largest.
pub(super) const LEAST_SIZES: usize = 4;
