//! Output that is whole or not there: a final path comes in, a place beside it to write to goes out,
//! which becomes the final one in one step or is removed, also when a signal ends the command.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::error::CommandError;

/// Signals that end the command while it writes.
const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// A place to write to that is removed unless it is finished.
#[derive(Debug)]
pub struct UnfinishedOutput {
    option: &'static str,
    part: PathBuf,
    /// What a signal has to remove; `None` once there is nothing any more.
    removable: Arc<Mutex<Option<PathBuf>>>,
}

fn remove(path: &Path) {
    let removed = match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    // It may never have been made.
    let _ = removed;
}

/// Where [`note`] writes the number of a signal, for the thread of [`watch`] to read.
static NOTED: AtomicI32 = AtomicI32::new(-1);

/// Tells the watching thread of a signal; it may come on any thread of the command.
extern "C" fn note(signal: libc::c_int) {
    // SAFETY: what a handler may call; one byte of this frame, and the errno of the thread put back.
    unsafe {
        let errno = *libc::__errno_location();
        let number = signal as u8;
        libc::write(NOTED.load(Relaxed), (&raw const number).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

/// Lets a thread of its own wait for a signal, remove what is unfinished and end the process.
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
            // The command may be making files in it meanwhile.
            for _ in 0..100 {
                remove(path);
                if !path.exists() {
                    break;
                }
            }
        }
        // SAFETY: ends the process at once; nothing of it is used afterwards.
        unsafe { libc::_exit(128 + i32::from(number)) };
    });
    for signal in ENDING {
        // SAFETY: a zeroed action is valid, and `note` does only what a handler may. What is ignored
        // (nohup) stays so.
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
    /// A place beside `path`; signals that would end the command remove it from here on.
    ///
    /// # Errors
    /// Wrong usage, naming the option: something is there already, or the directory is not.
    pub fn beside(option: &'static str, path: &Path) -> Result<Self, CommandError> {
        let shown = path.display();
        let refused = |what: &str| Err(CommandError::usage(format!("{option} {shown}: {what}")));
        let Some(name) = path.file_name() else {
            return refused("names no file; say where to write, such as run.csv");
        };
        if fs::symlink_metadata(path).is_ok() {
            return refused("is there already; name another place, or remove it first");
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

    /// Makes what was written whole: pairs of what is at the place (or in it) and what it becomes;
    /// the last of them is what a reader opens.
    ///
    /// # Errors
    /// Failure, naming the file. Nothing of it is left then.
    pub fn finish(self, moves: &[(PathBuf, PathBuf)]) -> Result<(), CommandError> {
        let mut held = self.removable.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done: Vec<&Path> = Vec::new();
        for (from, to) in moves {
            let moved = sync(from).and_then(|()| fs::rename(from, to));
            if let Err(error) = moved {
                done.into_iter().for_each(remove);
                let what = format!("{} {}: cannot be written: {error}", self.option, to.display());
                return Err(CommandError::failed(what));
            }
            done.push(to);
        }
        // What is left of a directory whose files have moved.
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

/// Has a file's bytes reach the disk before its name does: a full disk may say so only then.
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
    fn what_is_not_finished_is_gone_and_what_is_stands_whole() {
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
