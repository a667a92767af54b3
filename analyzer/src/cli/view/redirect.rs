//! Opens the page in the desktop's browser without revealing its address to anyone else.
//!
//! The arguments of a process can be read by every user of the machine, and the address is all that
//! protects the page. So the browser is given a file that only its owner can read, which redirects
//! to the address. The file is removed when the page has been requested, after [`PATIENCE`], and
//! when the command ends.

use std::ffi::{CString, c_char, c_int};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use super::server::random_token;
use crate::cli::child_signals::is_ignored;
use crate::cli::error::eprint_message;

/// How long a browser may take to start.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Signals that end the command.
const ENDING: [c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// File and directory for the handler of [`ENDING`] to remove; null if there is nothing to remove.
static FILE: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());
static DIRECTORY: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());

/// A file that redirects to the page, until it is removed.
pub struct Redirect {
    directory: Mutex<Option<PathBuf>>,
}

/// Opens the address in a browser if there is a desktop; `None` if nothing was opened.
pub fn open_browser(address: &str) -> Option<Redirect> {
    let desktop = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    if !desktop {
        return None;
    }
    let (redirect, file) = match Redirect::new(&private_place(), address) {
        Ok(made) => made,
        Err(error) => {
            eprint_message(&format!("no browser was opened ({error}); open the address yourself"));
            return None;
        }
    };
    let opened = Command::new("xdg-open")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match opened {
        Ok(mut child) => {
            std::thread::spawn(move || child.wait());
            Some(redirect)
        }
        Err(error) => {
            eprint_message(&format!(
                "no browser was opened (xdg-open: {error}); open the address yourself"
            ));
            None
        }
    }
}

/// The directory for the user's own short-lived files: `$XDG_RUNTIME_DIR` if only the user has
/// access to it, else the directory for temporary files.
fn private_place() -> PathBuf {
    // SAFETY: geteuid has no obligations.
    let user = unsafe { libc::geteuid() };
    let own = |path: &PathBuf| {
        fs::metadata(path)
            .is_ok_and(|found| found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0)
    };
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime.filter(|path| path.is_absolute() && own(path)).unwrap_or_else(std::env::temp_dir)
}

impl Redirect {
    /// Creates a directory of mode 0700 with an unpredictable name, and the file of mode 0600 in
    /// it.
    fn new(place: &Path, address: &str) -> io::Result<(Self, PathBuf)> {
        let directory = place.join(format!("gammachi-view-{}", random_token()?));
        let file = directory.join("open.html");
        DirBuilder::new().mode(0o700).create(&directory)?;
        let redirect = Self { directory: Mutex::new(Some(directory.clone())) };
        remove_at_end(&file, &directory)?;
        let mut options = OpenOptions::new();
        // The address comes from this command: nothing in it needs to be escaped.
        options.write(true).create_new(true).mode(0o600).open(&file)?.write_all(
            format!(
                "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" \
                 content=\"no-referrer\">\n<meta http-equiv=\"refresh\" content=\"0; url={address}\">\n\
                 <title>gammachi view</title>\n<a href=\"{address}\">timeline</a>\n"
            )
            .as_bytes(),
        )?;
        Ok((redirect, file))
    }

    /// Removes file and directory; further calls do nothing.
    pub fn remove(&self) {
        let mut directory =
            self.directory.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(directory) = directory.take() {
            let _ = fs::remove_file(directory.join("open.html"));
            let _ = fs::remove_dir(directory);
        }
    }
}

impl Drop for Redirect {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Makes the signals that end the command remove a file and its directory first.
fn remove_at_end(file: &Path, directory: &Path) -> io::Result<()> {
    // Never freed: the handler may read them at any time.
    FILE.store(CString::new(file.as_os_str().as_bytes())?.into_raw(), Ordering::Release);
    DIRECTORY.store(CString::new(directory.as_os_str().as_bytes())?.into_raw(), Ordering::Release);
    for signal in ENDING.into_iter().filter(|signal| !is_ignored(*signal)) {
        // SAFETY: a zeroed sigaction is valid; `remove_and_end` calls only what signal handlers may
        // call. With SA_RESETHAND, the signal that it raises ends the process as if this handler
        // were not there.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = remove_and_end as extern "C" fn(c_int) as libc::sighandler_t;
            action.sa_flags = libc::SA_RESETHAND;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
    Ok(())
}

extern "C" fn remove_and_end(signal: c_int) {
    let (file, directory) = (FILE.load(Ordering::Acquire), DIRECTORY.load(Ordering::Acquire));
    // SAFETY: unlink, rmdir and raise are async-signal-safe; the paths are zero-terminated and
    // never freed.
    unsafe {
        if !file.is_null() && !directory.is_null() {
            libc::unlink(file);
            libc::rmdir(directory);
        }
        libc::raise(signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_private_and_removed() {
        let address = "http://127.0.0.1:1/0123/";
        let (redirect, file) = Redirect::new(&std::env::temp_dir(), address).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        let directory = file.parent().unwrap().to_owned();
        assert_eq!((mode(&file), mode(&directory)), (0o600, 0o700));
        assert!(fs::read_to_string(&file).unwrap().contains(&format!("url={address}")));
        redirect.remove();
        assert!(!directory.exists());
        redirect.remove();
    }
}
