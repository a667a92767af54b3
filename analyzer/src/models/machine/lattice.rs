//! The document of `kernels lattice`: the same halo exchange under several splits of one lattice.

use serde::{Deserialize, Serialize};

use crate::models::kernel_output::{self, KernelOutputError};

use super::measured::{Conditions, Measured};

/// The document of `kernels lattice`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lattice {
    /// MPI library.
    pub mpi: String,
    /// Ranks that were started.
    pub ranks: u32,
    /// Sites in each dimension, `16x16x16x16`.
    pub lattice: String,
    /// Timed iterations.
    pub iterations: u64,
    /// One entry per split.
    pub splits: Vec<Split>,
    /// The split with the least predicted communication; `None` where times are meaningless.
    pub suits: Option<String>,
    /// Whether the results were checked against the undivided lattice.
    pub checked: bool,
    /// Whether times are meaningful; false where ranks share processors.
    pub times_meaningful: bool,
    pub conditions: Conditions,
}

/// One way of dividing the lattice among the ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// Ranks in each dimension, `4x4x1x1`.
    pub split: String,
    /// Sites of a rank in each dimension.
    pub local: String,
    /// Seconds per iteration, slowest rank.
    pub iteration_s: Measured,
    /// The exchange alone, seconds.
    pub exchange_s: Measured,
    /// Messages that a rank sends in an iteration.
    pub messages: u64,
    pub bytes: u64,
    /// Seconds of the exchange, predicted from measured half round trips.
    pub predicted_exchange_s: f64,
    /// Checksum of the result, hexadecimal.
    pub checksum: String,
}

impl Lattice {
    /// Reads the output of `kernels lattice --json`.
    ///
    /// # Errors
    /// See [`KernelOutputError`].
    pub fn parse(text: &str) -> Result<Self, KernelOutputError> {
        let mut documents = kernel_output::documents(text, "lattice")?;
        documents.pop().ok_or(KernelOutputError::NoDocument)
    }
}
