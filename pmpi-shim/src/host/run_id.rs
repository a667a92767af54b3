//! A run's id: made by one rank for all, or by each alike.

use std::ffi::OsString;

use trace_format::run_id::{COMMAND_BYTES, digest, of_command};
pub use trace_format::run_id::{RUN_ID_BYTES, RunId};

use crate::host::settings;

/// An id that no other run has: for one rank to make and tell the others.
pub fn fresh() -> RunId {
    // The kernel's own; getrandom() is younger than the oldest C library that this one runs with.
    let text = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let mut id = u128::from_str_radix(&digits, 16).unwrap_or(0).to_be_bytes();
    let command = settings::run_id();
    if !command.is_empty() {
        // The half that goes has the fixed digits of a UUID; the one that stays is random but for two bits.
        id[..COMMAND_BYTES].copy_from_slice(&of_command(command.as_encoded_bytes()));
    }
    id
}

/// The id of ranks that cannot tell each other one: from what `gammachi run` and the launcher have told
/// all of them alike; zeros where that does not tell this job from others.
pub fn apart() -> RunId {
    let names = ["PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID"];
    from_names(&settings::run_id(), &names.map(|name| std::env::var_os(name).unwrap_or_default()))
}

fn from_names(command: &OsString, launcher: &[OsString; 3]) -> RunId {
    let [_, slurm_job, slurm_step] = launcher;
    // PMIX_NAMESPACE alone comes again when process numbers do.
    let is_unique = !command.is_empty() || !(slurm_job.is_empty() || slurm_step.is_empty());
    let mut id = [0u8; RUN_ID_BYTES];
    if !is_unique {
        return id;
    }
    let all: Vec<u8> = std::iter::once(command)
        .chain(launcher)
        .flat_map(|value| value.as_encoded_bytes().iter().copied().chain([0]))
        .collect();
    let (first, second) = id.split_at_mut(COMMAND_BYTES);
    first.copy_from_slice(&of_command(match command.is_empty() {
        true => &all,
        false => command.as_encoded_bytes(),
    }));
    second.copy_from_slice(&digest(0x9e37_79b9_7f4a_7c15, &all));
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_told_alike_have_one_id() {
        let names = |command: &str, launcher: [&str; 3]| {
            from_names(&OsString::from(command), &launcher.map(OsString::from))
        };
        let id = names("r1", ["ns", "", ""]);
        assert_ne!(id, [0; RUN_ID_BYTES]);
        assert_eq!(id, names("r1", ["ns", "", ""]));
        assert_ne!(id, names("r1", ["ns2", "", ""]));
        assert_eq!(id[..COMMAND_BYTES], of_command(b"r1"), "it says which command");
        assert_ne!(names("", ["", "7", "0"]), names("", ["", "7", "1"]));
        assert_eq!(names("", ["ns", "7", ""]), [0; RUN_ID_BYTES]);
        assert_ne!(fresh(), fresh());
    }

    #[test]
    fn values_do_not_run_together() {
        let id = |command: &str, launcher: [&str; 3]| {
            from_names(&OsString::from(command), &launcher.map(OsString::from))
        };
        assert_ne!(id("r1", ["2", "", ""]), id("r", ["12", "", ""]));
        let halves = id("r1", ["", "", ""]);
        assert_ne!(halves[..8], halves[8..]);
    }
}
