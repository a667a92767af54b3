//! Reads `machine.json` for a command.

use std::path::Path;

use super::error::CommandError;
use crate::models::Machine;
use crate::models::machine::MachineError;

/// Reads a measured machine.
///
/// # Errors
/// Failure, naming the command that measures a machine.
pub(super) fn read(path: &Path) -> Result<Machine, CommandError> {
    Machine::read(path).map_err(|error| {
        let remedy = match error {
            MachineError::Unreadable { .. } | MachineError::Malformed { .. } => {
                "`gammachi calibrate -- mpirun -n 2` writes one"
            }
            MachineError::Version { .. } => {
                "measure again: gammachi calibrate --out ANOTHER.json -- mpirun -n 2"
            }
        };
        CommandError::Input(format!("{error}; {remedy}"))
    })
}
