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
mod description;
pub mod difference;
mod lattice;
mod level;
mod measured;
mod network;

use std::io::{self, Write};
use std::path::Path;

pub use ceilings::{BlasUsed, Ceiling, Ceilings, TriadUsed};
pub use description::{
    FORMAT, FORMAT_VERSION, MACHINE_JSON, Machine, MachineError, MalformedMachine,
};
pub use lattice::{Lattice, Split};
pub use level::Level;
pub use measured::{Conditions, Host, Measured, Outlier};
pub use network::{
    BufferedSends, EagerLimit, Fits, Flow, Latency, Network, PairClass, Piece, QueueSize,
    SizeTimes, Switch,
};

use crate::whole_file::{self, SHARED};

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
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        whole_file::write(path, SHARED, |file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
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

#[cfg(test)]
pub(crate) mod tests;
