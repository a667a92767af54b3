//! Columns and rows of a table of runs.

use std::fmt;

/// Rank count.
pub const P: &str = "p";

/// τ, elapsed time, seconds.
pub const TAU_S: &str = "tau_s";

/// Σγ, computation time summed over the ranks, seconds.
pub const SUM_GAMMA_S: &str = "sum_gamma_s";

/// χ, overhead time, mean over the ranks, seconds.
pub const CHI_S: &str = "chi_s";

/// Largest χ_i over the ranks, seconds.
pub const CHI_MAX_S: &str = "chi_max_s";

/// Smallest χ_i over the ranks, seconds.
pub const CHI_MIN_S: &str = "chi_min_s";

/// Floating-point operations.
pub const FLOPS: &str = "flops";

/// Threads per rank that Σγ sums over; absent where each rank's γ_i is a single time.
pub const GAMMA_THREADS: &str = "gamma_threads";

/// Number of the repetition.
pub const REP: &str = "rep";

/// Name of the run that the row is from.
pub const RUN: &str = "run";

/// Columns that are figures of a run; all others are its parameters.
pub const FIGURES: [&str; 10] =
    [P, TAU_S, SUM_GAMMA_S, CHI_S, CHI_MIN_S, CHI_MAX_S, FLOPS, GAMMA_THREADS, REP, RUN];

/// Where a row comes from, for error messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A line of the file, counted from 1, comments and the header included.
    Line(u64),
    Run(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Run(name) => write!(f, "run {name}"),
        }
    }
}

/// One rank of a recorded run, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankTimes {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// γ_i.
    pub gamma_s: f64,
    /// χ_i = τ − γ_i.
    pub chi_s: f64,
}

/// How the ranks of a recorded run lacked cores. At least one is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LackOfCores {
    /// Ranks on a host, and the fewer cores that they shared.
    pub shared: Option<(usize, usize)>,
    /// Share of the ranks' time in which they were ready to run but had no core, if notable.
    pub waited_share: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Where it comes from.
    pub origin: Origin,
    /// One per column, trimmed; empty where the value is not known.
    pub cells: Vec<String>,
    /// Its ranks; empty where the table does not come from recorded runs.
    pub ranks: Vec<RankTimes>,
    /// How its ranks lacked cores; `None` where they did not, or nothing tells.
    pub lack: Option<LackOfCores>,
}

/// A table of observations: `rows.len()` runs × `names.len()` columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Observations {
    pub(super) source: String,
    pub(super) names: Vec<String>,
    pub(super) rows: Vec<Row>,
}
