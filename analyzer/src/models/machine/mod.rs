//! The machine that programs run on, as `gammachi calibrate` measured it.
//!
//! [`Machine`] is the content of `machine.json`; the network models and the roofline read it. It
//! holds the documents of the kernels unchanged ([`Network`], [`Ceilings`]): each figure with its
//! uncertainty ([`Measured`]), and each kernel with the conditions that it ran under. Every key is
//! explained in `docs/reference/machine-json.md`, the network models in [`super::logpq`] and the
//! roofs in [`super::roofline`].
//!
//! `bench-kernels` writes these keys from types of its own. Users build it for their MPI and
//! `gammachi` once, so a shared crate would only tie their versions together; the system tests read
//! what the kernels print with these types.

mod ceilings;
pub mod difference;
mod lattice;
mod level;
mod network;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::calibration::Calibration;
use crate::trace::run_json::Instant;

pub use ceilings::{BlasUsed, Ceiling, Ceilings, TriadUsed};
pub use lattice::{Lattice, LatticeError, Split};
pub use level::Level;
pub use network::{
    BufferedSends, EagerLimit, Fits, Flow, Latency, Network, PairClass, Piece, QueueSize,
    SizeTimes, Switch,
};

/// Usual name of the file.
pub const MACHINE_JSON: &str = "machine.json";
/// Value of the key `format`.
pub const FORMAT: &str = "gammachi-machine";
/// Version of the keys; files of another version are refused.
pub const FORMAT_VERSION: u32 = 1;

/// A machine, measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// [`FORMAT`].
    pub format: String,
    /// [`FORMAT_VERSION`].
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

/// A quantity with its uncertainty and spread, in the unit that its key names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Median over the repetitions.
    pub median: f64,
    /// Lower end of the median's 95 % interval (order statistics).
    pub low: f64,
    /// Upper end of the median's 95 % interval.
    pub high: f64,
    /// Smallest value.
    pub min: f64,
    /// Lower quartile.
    pub p25: f64,
    /// Upper quartile.
    pub p75: f64,
    /// Largest value.
    pub max: f64,
    /// Repetitions.
    pub repetitions: usize,
    /// Values more than three interquartile ranges beyond a quartile; they are not removed.
    pub outliers: usize,
    /// The worst of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outliers_listed: Vec<Outlier>,
}

/// A value far from the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Outlier {
    /// Which repetition, from 0.
    pub repetition: usize,
    /// Its value.
    pub value: f64,
}

/// The conditions under which a kernel measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Hosts in the order of their lowest ranks.
    pub hosts: Vec<Host>,
    /// Share of its time that the worst rank was ready to run but had no core.
    pub off_cpu_share: Option<f64>,
    /// Involuntary context switches, all ranks together.
    pub involuntary_switches: f64,
    /// Typical ratio of interquartile range to median over the kernel's figures.
    pub typical_spread: Option<f64>,
    /// Whether the machine was too noisy to trust the figures.
    pub noisy: bool,
    /// Why, in sentences.
    pub reasons: Vec<String>,
}

/// A host of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Ranks on it.
    pub ranks: Vec<u32>,
    /// Processors online.
    pub processors: u32,
    /// Processors that each rank may run on.
    pub affinity: Vec<String>,
    /// Whether each rank has processors of its own.
    pub pinned: bool,
    /// Model name of the processor.
    pub processor: String,
    /// Frequency reported by the system, hertz.
    pub stated_hz: Option<f64>,
    /// Frequency governor.
    pub governor: Option<String>,
    /// Whether the host runs under a hypervisor.
    pub virtual_machine: bool,
    /// One-minute load average at the start.
    pub load_1min: Option<f64>,
}

/// Why a `machine.json` cannot be used.
#[derive(Debug, Error)]
pub enum MachineError {
    /// It cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// It is not a `machine.json`.
    #[error("{}: not a machine.json of gammachi: {source}", path.display())]
    Malformed {
        /// The file.
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
        /// The file.
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

impl Machine {
    /// Reads a file.
    ///
    /// # Errors
    /// See [`MachineError`].
    pub fn read(path: &Path) -> Result<Self, MachineError> {
        let unreadable = |source| MachineError::Unreadable { path: path.to_owned(), source };
        Self::from_text(&std::fs::read_to_string(path).map_err(unreadable)?, path)
    }

    fn from_text(text: &str, path: &Path) -> Result<Self, MachineError> {
        let malformed = |source| MachineError::Malformed { path: path.to_owned(), source };
        let json = |error| malformed(MalformedMachine::Json(error));
        let value: serde_json::Value = serde_json::from_str(text).map_err(json)?;
        match (value["format"].as_str(), value["format_version"].as_u64()) {
            (Some(FORMAT), Some(version)) if version == u64::from(FORMAT_VERSION) => {}
            (Some(FORMAT), Some(found)) => {
                return Err(MachineError::Version { path: path.to_owned(), found });
            }
            _ => return Err(malformed(MalformedMachine::NoFormat)),
        }
        let machine: Self = serde_json::from_value(value).map_err(json)?;
        machine.check().map_err(malformed)?;
        Ok(machine)
    }

    /// Finds values that are well-formed but impossible.
    fn check(&self) -> Result<(), MalformedMachine> {
        for class in &self.network.classes {
            if class.sizes.is_empty() {
                return Err(MalformedMachine::NoSizes { class: class.class.clone() });
            }
            let ascending = class.sizes.windows(2).all(|pair| pair[0].bytes < pair[1].bytes);
            let positive = class.sizes.iter().all(|size| {
                size.bytes > 0
                    && size.half_rtt_s.median > 0.0
                    && size.one_way_bytes_per_s.median > 0.0
            });
            if !ascending || !positive {
                return Err(MalformedMachine::Sizes { class: class.class.clone() });
            }
        }
        Ok(())
    }

    /// Writes a file atomically, so that a reader never sees half of it.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(format!(".{}", std::process::id()));
        let unfinished = PathBuf::from(unfinished);
        let written = std::fs::File::create(&unfinished).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&unfinished, path)
        });
        if written.is_err() {
            let _ = std::fs::remove_file(&unfinished);
        }
        written
    }

    /// The hosts that were measured.
    pub fn hosts(&self) -> &[Host] {
        &self.network.conditions.hosts
    }

    /// The reasons why measurements count as noisy, each with the kernel's name.
    pub fn noise(&self) -> Vec<String> {
        let of = |kernel: &str, conditions: &Conditions| -> Vec<String> {
            conditions.reasons.iter().map(|reason| format!("{kernel}: {reason}")).collect()
        };
        let (network, ceilings) = (&self.network.conditions, &self.ceilings.conditions);
        [of("network", network), of("ceilings", ceilings)].concat()
    }

    /// How this machine differs from another one; empty where both measurements can be compared.
    /// Host names do not matter: batch systems assign different nodes of the same kind.
    pub fn differs_from(&self, other: &Self) -> Vec<Difference> {
        let kinds = |machine: &Self| -> Vec<HostKind> {
            let of = |host: &Host| HostKind {
                processor: host.processor.clone(),
                processors: host.processors,
                ranks: host.ranks.len(),
            };
            machine.hosts().iter().map(of).collect()
        };
        let mut differences = Vec::new();
        let (own, others) = (kinds(self), kinds(other));
        if own != others {
            differences.push(Difference::Hosts(own, others));
        }
        let (own, others) = (&self.network.mpi, &other.network.mpi);
        if own != others {
            differences.push(Difference::Mpi(own.clone(), others.clone()));
        }
        differences
    }

    /// Reasons why the figures of this machine may not hold for a run on these hosts under this
    /// MPI; empty where they do. `mpi` is the library's own version text.
    pub fn doubts_for(&self, hosts: &[String], mpi: &str) -> Vec<Doubt> {
        let measured: Vec<String> = self.hosts().iter().map(|host| host.name.clone()).collect();
        let used: Vec<String> =
            hosts.iter().filter(|name| !measured.contains(name)).cloned().collect();
        let mut doubts = Vec::new();
        if !used.is_empty() {
            doubts.push(Doubt::OtherHosts { used, measured });
        }
        let (used, measured) = (library_name(mpi), library_name(&self.network.mpi));
        if used != measured {
            doubts.push(Doubt::OtherMpi { used, measured });
        }
        doubts
    }
}

/// A difference between two machines: the value of this one, then that of the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// Their hosts.
    Hosts(Vec<HostKind>, Vec<HostKind>),
    /// Their MPI libraries.
    Mpi(String, String),
}

/// What two hosts must share to be of the same kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostKind {
    /// Model name of the processor.
    pub processor: String,
    /// Processors online.
    pub processors: u32,
    /// Ranks on the host.
    pub ranks: usize,
}

/// A reason why the figures of a machine may not hold for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// The run used hosts that were not measured.
    OtherHosts {
        /// Those hosts.
        used: Vec<String>,
        /// The hosts that were measured.
        measured: Vec<String>,
    },
    /// The run used another MPI library.
    OtherMpi {
        /// Its name and version.
        used: String,
        /// That of the measurement.
        measured: String,
    },
}

/// Name and version: "MPICH 4.0.2" from "MPICH Version:\t4.0.2\nMPICH Release date: …", and
/// "Open MPI 4.1.4" from "Open MPI v4.1.4, package: …".
fn library_name(text: &str) -> String {
    let first = text.split([',', '\n']).next().unwrap_or_default();
    let plain = first.replace("Version:", " ").replace(" v", " ").replace('\0', " ");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Measured {
    /// Half the width of the 95 % interval over the median.
    pub fn relative_uncertainty(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.median.abs().max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
pub(crate) mod tests;
