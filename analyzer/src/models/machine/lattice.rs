//! What `kernels lattice` measured: the same halo exchange under several splits of one lattice.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Conditions, MachineError, Measured};

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
    /// One entry a split.
    pub splits: Vec<Split>,
    /// The split with the least predicted communication; `None` where times mean nothing.
    pub suits: Option<String>,
    /// Whether the results were compared with the lattice without a split.
    pub checked: bool,
    /// Whether times mean anything: not where ranks share processors.
    pub times_meaningful: bool,
    /// Conditions.
    pub conditions: Conditions,
}

/// One way of dividing the lattice among the ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// Ranks in each dimension, `4x4x1x1`.
    pub split: String,
    /// Sites of a rank in each dimension.
    pub local: String,
    /// Seconds of an iteration of the slowest rank.
    pub iteration_s: Measured,
    /// Its exchange alone, seconds.
    pub exchange_s: Measured,
    /// Messages that a rank sends in an iteration.
    pub messages: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Seconds of the exchange by the half round trips measured before.
    pub predicted_exchange_s: f64,
    /// Checksum of the result, hexadecimal.
    pub checksum: String,
}

impl Lattice {
    /// Reads what `kernels lattice --json` printed; lines of a launcher around it are passed over.
    ///
    /// # Errors
    /// The file cannot be read, or is no such document.
    pub fn read(path: &Path) -> Result<Self, MachineError> {
        let unreadable = |source| MachineError::Unreadable { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        Self::from_text(&text)
            .map_err(|what| MachineError::OtherDocument { path: path.to_owned(), what })
    }

    /// The document in a kernel's output.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let line = text.lines().find(|line| line.starts_with('{')).unwrap_or_default();
        let value: serde_json::Value =
            serde_json::from_str(line).map_err(|_| "there is no JSON document in it".to_owned())?;
        if value["kernel"] != "lattice" {
            let found = value["kernel"].as_str().unwrap_or("something else");
            return Err(format!("a document of {found}"));
        }
        serde_json::from_value(value).map_err(|error| error.to_string())
    }
}
