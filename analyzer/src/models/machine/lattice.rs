//! The document of `kernels lattice`: the same halo exchange under several splits of one lattice.

use serde::{Deserialize, Serialize};

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
    /// Reads the output of `kernels lattice --json`, ignoring lines that a launcher printed around
    /// it.
    ///
    /// # Errors
    /// See [`LatticeError`].
    pub fn parse(text: &str) -> Result<Self, LatticeError> {
        let line = text.lines().find(|line| line.starts_with('{')).unwrap_or_default();
        let value: serde_json::Value =
            serde_json::from_str(line).map_err(|_| LatticeError::NoDocument)?;
        if value["kernel"] != "lattice" {
            let kernel = value["kernel"].as_str().map(str::to_owned);
            return Err(LatticeError::OtherKernel { kernel });
        }
        Ok(serde_json::from_value(value)?)
    }
}

/// Why a text is not the document of `kernels lattice`.
#[derive(Debug, thiserror::Error)]
pub enum LatticeError {
    /// There is no JSON document.
    #[error("contains no JSON document")]
    NoDocument,
    /// It is of another kernel.
    #[error("a document of {}", kernel.as_deref().unwrap_or("something else"))]
    OtherKernel {
        /// Name of the kernel, where the document has one.
        kernel: Option<String>,
    },
    /// Keys are missing or hold something else.
    #[error(transparent)]
    Keys(#[from] serde_json::Error),
}
