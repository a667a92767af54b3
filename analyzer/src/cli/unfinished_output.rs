//! Output that is complete or not there at all. It is written in a temporary directory beside the
//! final path, and then moved in one step, or removed, even if a signal ends the command.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::low_level;

use super::ending_signals::before_ending;
use super::error::{CommandError, Context};
use crate::whole_file::directory_of;

/// A temporary path that is removed unless it is finished.
#[derive(Debug)]
pub struct UnfinishedOutput {
    option: &'static str,
    /// In the temporary directory.
    part: PathBuf,
    /// The temporary directory, which has to be removed on a signal; `None` when it is not there any more.
    removable: Arc<Mutex<Option<PathBuf>>>,
}

fn remove(path: &Path) {
    let removed = match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    // It may never have been created.
    let _ = removed;
}

/// Removes the temporary directory when a signal ends the command.
fn remove_at_end(removable: Arc<Mutex<Option<PathBuf>>>) {
    before_ending(move |signal| {
        let held = removable.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = held.as_ref() {
            // The command goes on meanwhile: once its directory has another name, it can create nothing.
            let renamed = directory.with_extension("removed");
            let _ = fs::rename(directory, &renamed);
            // What it was creating may still come.
            for _ in 0..100 {
                remove(&renamed);
                if !renamed.exists() {
                    break;
                }
            }
        }
        low_level::exit(128 + signal);
    });
}

impl UnfinishedOutput {
    /// Makes a temporary directory beside `path`. From here on, signals that end the command remove it.
    pub fn beside(option: &'static str, path: &Path) -> Result<Self, CommandError> {
        let shown = path.display();
        let refused = |what: &str| Err(CommandError::usage(format!("{option} {shown}: {what}")));
        let Some(name) = path.file_name() else {
            return refused("does not name a file; name one, such as run.csv");
        };
        if fs::symlink_metadata(path).is_ok() {
            return refused("exists already; name another place, or remove it first");
        }
        let directory = directory_of(path);
        if !directory.is_dir() {
            return refused(&format!(
                "there is no directory {}; make it first",
                directory.display()
            ));
        }
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.part", std::process::id()));
        let hidden = directory.join(hidden);
        let part = hidden.join(name);
        let removable = Arc::new(Mutex::new(None));
        // A signal has to wait until it is known whether there is something to remove.
        let mut held = removable.lock().unwrap_or_else(PoisonError::into_inner);
        remove_at_end(removable.clone());
        fs::create_dir(&hidden)
            .context(CommandError::Output, format_args!("{option} {shown}: cannot be written"))?;
        *held = Some(hidden);
        drop(held);
        Ok(Self { option, part, removable })
    }

    pub fn path(&self) -> &Path {
        &self.part
    }

    /// Moves what was written to its final place. `moves` are pairs of a temporary and a final
    /// path; the last one is what a reader opens. On failure, nothing is left behind.
    pub fn finish(self, moves: &[(PathBuf, PathBuf)]) -> Result<(), CommandError> {
        let mut held = self.removable.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done: Vec<&Path> = Vec::new();
        for (from, to) in moves {
            let moved = sync(from).and_then(|()| fs::rename(from, to));
            if let Err(error) = moved {
                done.into_iter().for_each(remove);
                let what = format!("{} {}: cannot be written: {error}", self.option, to.display());
                return Err(CommandError::Output(what));
            }
            done.push(to);
        }
        if let Some(directory) = held.take() {
            remove(&directory);
        }
        Ok(())
    }
}

impl Drop for UnfinishedOutput {
    fn drop(&mut self) {
        if let Some(path) = self.removable.lock().unwrap_or_else(PoisonError::into_inner).take() {
            remove(&path);
        }
    }
}

/// Makes sure that a file's bytes reach the disk before its name does: a full disk may be reported
/// only then.
fn sync(path: &Path) -> io::Result<()> {
    if path.is_file() { fs::File::open(path)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_output_is_removed_and_finished_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let count = || fs::read_dir(&directory).unwrap().count();
        let output = UnfinishedOutput::beside("--out", &path).unwrap();
        fs::write(output.path(), "half").unwrap();
        drop(output);
        assert_eq!(count(), 0);
        let output = UnfinishedOutput::beside("--out", &path).unwrap();
        fs::write(output.path(), "whole").unwrap();
        let part = output.path().to_owned();
        output.finish(&[(part, path.clone())]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(count(), 1);
        let taken = UnfinishedOutput::beside("--out", &path).unwrap_err();
        assert_eq!(taken.exit_code(), 2);
    }
}
