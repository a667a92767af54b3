//! Output that is complete or not there at all. It is written under a temporary name beside the
//! final path, and then moved in one step, or removed, even if a signal ends the command.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::error::CommandError;

/// Signals that end the command while it writes.
const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// A temporary path that is removed unless it is finished.
#[derive(Debug)]
pub struct UnfinishedOutput {
    option: &'static str,
    part: PathBuf,
    /// What has to be removed on a signal; `None` when there is nothing left to remove.
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

/// The descriptor to which [`note`] writes the number of a signal, for the thread of [`watch`] to
/// read.
static NOTED: AtomicI32 = AtomicI32::new(-1);

/// Signal handler: notifies the watching thread. It may run on any thread of the command.
extern "C" fn note(signal: libc::c_int) {
    // SAFETY: handlers may call write; it reads one byte of this frame, and the thread's errno is
    // restored.
    unsafe {
        let errno = *libc::__errno_location();
        let number = signal as u8;
        libc::write(NOTED.load(Relaxed), (&raw const number).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

/// Starts a thread that waits for a signal, then removes the unfinished output and ends the
/// process.
fn watch(removable: Arc<Mutex<Option<PathBuf>>>) {
    let mut ends = [-1; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return;
    }
    NOTED.store(ends[1], Relaxed);
    std::thread::spawn(move || {
        let mut number = 0u8;
        // SAFETY: one byte of this frame; the pipe stays open as long as the process lives.
        while unsafe { libc::read(ends[0], (&raw mut number).cast(), 1) } != 1 {}
        let held = removable.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = held.as_ref() {
            // The command may still be creating files in it.
            for _ in 0..100 {
                remove(path);
                if !path.exists() {
                    break;
                }
            }
        }
        // SAFETY: ends the process immediately; nothing of it is used afterwards.
        unsafe { libc::_exit(128 + i32::from(number)) };
    });
    for signal in ENDING {
        // SAFETY: a zeroed action is valid, and `note` does only what a handler may do. Ignored
        // signals (nohup) stay ignored.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut before);
            if before.sa_sigaction != libc::SIG_IGN {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = note as extern "C" fn(libc::c_int) as usize;
                action.sa_flags = libc::SA_RESTART;
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    }
}

impl UnfinishedOutput {
    /// Chooses a temporary path beside `path`. From here on, signals that end the command remove
    /// it.
    ///
    /// # Errors
    /// Wrong usage, naming the option: the path exists already, or its directory does not.
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
        let mut part = OsString::from(".");
        part.push(name);
        part.push(format!(".{}.part", std::process::id()));
        let part = directory.join(part);
        let removable = Arc::new(Mutex::new(Some(part.clone())));
        watch(removable.clone());
        Ok(Self { option, part, removable })
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        &self.part
    }

    /// Moves what was written to its final place. `moves` are pairs of a temporary and a final
    /// path; the last one is what a reader opens.
    ///
    /// # Errors
    /// Failure, naming the file. Nothing is left behind then.
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
        // The remains of a directory whose files have been moved.
        remove(&self.part);
        *held = None;
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

/// The directory that a path lies in.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
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

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("gammachi-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn unfinished_output_is_removed_and_finished_is_complete() {
        let directory = scratch("unfinished");
        let path = directory.join("out");
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
        fs::remove_dir_all(directory).unwrap();
    }
}
