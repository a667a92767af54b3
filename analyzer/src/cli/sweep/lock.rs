//! Lets only one sweep run in a study at a time: each removes what an interrupted one has left
//! behind, and must not mistake the other's runs for that.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::cli::error::{CommandError, Context, eprint_message};
use crate::trace::host_name;

/// Name of the lock file. It is never removed, because two waiting sweeps could then lock different
/// files.
pub(super) const LOCK_FILE: &str = ".sweep.lock";

/// An exclusive lock on a study; the system releases it however the process ends.
#[derive(Debug)]
pub(super) struct StudyLock {
    _file: Option<File>,
}

impl StudyLock {
    /// Locks a study.
    ///
    /// # Errors
    /// Wrong usage: another sweep holds the lock; its process and host are named.
    pub fn take(study: &Path) -> Result<Self, CommandError> {
        let path = study.join(LOCK_FILE);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).context(CommandError::Output, path.display())?;
        if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != Errno::WOULDBLOCK {
                // For example Lustre mounted without -o flock.
                eprint_message(&format!(
                    "{}: this file system has no locks ({error}): do not run two sweeps in one study",
                    study.display()
                ));
                return Ok(Self { _file: None });
            }
            let mut owner = String::new();
            let _ = file.read_to_string(&mut owner);
            let owner = owner.trim();
            return Err(CommandError::usage(format!(
                "--out {}: another sweep is running in this study{}{owner}; wait until it has \
                 ended, or name another directory",
                study.display(),
                if owner.is_empty() { "" } else { ": " },
            )));
        }
        let owner = format!("process {} on {}\n", std::process::id(), host_name());
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(owner.as_bytes()))
            .context(CommandError::Output, path.display())?;
        Ok(Self { _file: Some(file) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_second_sweep_until_first_ends() {
        let study = tempfile::tempdir().unwrap();
        let first = StudyLock::take(study.path()).unwrap();
        let refused = StudyLock::take(study.path()).unwrap_err();
        assert_eq!(refused.exit_code(), 2);
        let owner = format!("process {} on {}", std::process::id(), host_name());
        assert!(refused.to_string().contains(&owner), "{refused}");
        drop(first);
        // A child process started by another test also holds the file until it executes its
        // program.
        let begin = std::time::Instant::now();
        while let Err(refused) = StudyLock::take(study.path()) {
            assert!(begin.elapsed().as_secs() < 60, "{refused}");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}
