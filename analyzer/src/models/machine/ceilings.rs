//! The document of `kernels ceilings`: the roofs of operations, memory and communication.

use serde::{Deserialize, Serialize};

use super::measured::{Conditions, Measured};

/// The document of `kernels ceilings`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ceilings {
    /// MPI library.
    pub mpi: String,
    /// Ranks that were started.
    pub ranks: u32,
    /// Timed rounds.
    pub repetitions: usize,
    /// Untimed rounds before them.
    pub warmup_rounds: usize,
    /// Instruction set used for the multiply-add peak.
    pub instructions: String,
    /// What that peak leaves unused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_note: Option<String>,
    /// The library behind dgemm.
    pub blas: BlasUsed,
    /// How the triad was run.
    pub triad: TriadUsed,
    /// Message size in the communication-only measurement.
    pub message_bytes: u64,
    /// `same-host` or `other-host`: the pairs in the communication-only measurement.
    pub communication_class: Option<String>,
    /// The roofs.
    pub ceilings: Vec<Ceiling>,
    /// Conditions.
    pub conditions: Conditions,
}

/// The library behind dgemm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BlasUsed {
    /// Its file; `null` where none was found.
    pub library: Option<String>,
    /// Its own description of its build.
    pub configuration: Option<String>,
    /// Threads per rank; `null` where unknown.
    pub threads: Option<u32>,
    /// Order of the matrices.
    pub n: u64,
    /// Why dgemm was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How the triad was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TriadUsed {
    /// Bytes of each of the three arrays, on each rank.
    pub array_bytes: u64,
    /// Largest cache reported by the system.
    pub largest_cache_bytes: Option<u64>,
    /// Bytes counted per element.
    pub counted_bytes_per_element: f64,
    /// Bytes that actually move per element where stores allocate cache lines.
    pub moved_bytes_per_element: f64,
    /// Kind of stores.
    pub stores: String,
}

/// One roof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// `fma`, `dgemm`, `triad` (bytes counted), `communication` (sent + received).
    pub name: String,
    /// `flop/s` or `B/s`.
    pub unit: String,
    /// Rank 0 alone, while the others slept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Measured>,
    /// The mean rank while all ran.
    pub per_rank: Measured,
    /// The slowest host while all ran.
    pub per_host: Measured,
    /// All ranks together.
    pub job: Measured,
}

impl Ceilings {
    /// A roof by name.
    pub fn named(&self, name: &str) -> Option<&Ceiling> {
        self.ceilings.iter().find(|ceiling| ceiling.name == name)
    }
}
