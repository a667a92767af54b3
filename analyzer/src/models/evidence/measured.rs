//! What is measured at one rank count.

/// The measurement at one rank count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Rank count.
    pub p: f64,
    /// Work relative to the reference; 1 in strong scaling.
    pub work: f64,
    /// Smallest time of the repetitions, seconds.
    pub tau_s: f64,
    /// Computation of a rank, where known.
    pub computation: Option<Computation>,
    /// Whether ranks are known to have lacked cores.
    pub lacks_cores: bool,
}

/// Computation time over the ranks of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Computation {
    /// Mean over the ranks, seconds.
    pub mean_s: f64,
    /// Maximum over the ranks, seconds, where known.
    pub max_s: Option<f64>,
}
