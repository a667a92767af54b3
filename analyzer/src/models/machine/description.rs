//! The machine, as its file describes it.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::calibration::Calibration;
use crate::trace::run_json::Instant;

use super::ceilings::Ceilings;
use super::network::Network;

/// Usual name of the file.
pub const MACHINE_JSON: &str = "machine.json";

/// Value of the key `format`.
pub const FORMAT: &str = "gammachi-machine";

/// Version of the keys; files of another version are refused.
pub const FORMAT_VERSION: u32 = 1;

/// A machine, measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Machine {
    /// `gammachi-machine`.
    pub format: String,
    /// 1.
    pub format_version: u32,
    /// Version of the command that wrote the file.
    pub gammachi_version: String,
    /// Time of the measurement.
    pub measured: Instant,
    /// Launcher and its arguments.
    pub launcher: Vec<String>,
    /// Whether `--quick` shortened the measurement.
    pub quick: bool,
    /// What the network costs.
    pub network: Network,
    /// The roofs.
    pub ceilings: Ceilings,
    /// Result of `kernels clock`, as `gammachi calibrate clock` stores it; `null` if the clocks were not
    /// measured.
    pub clock: Option<Calibration>,
}

/// Why a `machine.json` cannot be used.
#[derive(Debug, Error)]
pub enum MachineError {
    /// It cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// It is not a `machine.json`.
    #[error("{}: not a machine.json of gammachi: {source}", path.display())]
    Malformed {
        path: PathBuf,
        /// What is wrong.
        source: MalformedMachine,
    },
    /// It has another version.
    #[error(
        "{}: machine.json of version {found}, but this gammachi reads version {FORMAT_VERSION}",
        path.display()
    )]
    Version {
        path: PathBuf,
        /// Its version.
        found: u64,
    },
}

/// What is wrong with a document that should be a machine.
#[derive(Debug, Error)]
pub enum MalformedMachine {
    /// It is not JSON, or keys are missing or hold something else.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The keys that identify the format are missing or wrong.
    #[error("the keys format ({FORMAT}) and format_version are missing")]
    NoFormat,
    /// A class of pairs has no message sizes.
    #[error("network class {class} has no sizes")]
    NoSizes {
        /// Name of the class.
        class: String,
    },
    /// A class of pairs has impossible sizes or figures.
    #[error("network class {class}: sizes do not ascend, or a time or bandwidth is not positive")]
    Sizes {
        /// Name of the class.
        class: String,
    },
}
