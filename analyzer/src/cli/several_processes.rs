//! Makes a failure of one of several processes a failure of all.

use super::error::CommandError;
use crate::processes::Processes;

/// This process's result; an error if any process has one.
pub fn agreed<T>(processes: &Processes, own: Result<T, CommandError>) -> Result<T, CommandError> {
    if processes.is_alone() {
        return own;
    }
    let errors = processes.share(own.as_ref().err().map(ToString::to_string));
    let own = own?;
    match errors.iter().enumerate().find_map(|(n, error)| Some((n, error.as_ref()?))) {
        Some((process, error)) => {
            Err(CommandError::Input(format!("process {process} of {}: {error}", errors.len())))
        }
        None => Ok(own),
    }
}
