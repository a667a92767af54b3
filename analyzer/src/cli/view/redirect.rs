//! Opens the page in the desktop's browser without revealing its address to anyone else.
//!
//! The arguments of a process can be read by every user of the machine, and the address is all that
//! protects the page. So the browser is given a file that only its owner can read, which redirects
//! to the address. The file is removed when the page has been requested, after [`PATIENCE`], and
//! when the command ends.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use crate::cli::ending_signals::before_ending;
use crate::cli::error::eprint_message;

/// How long a browser may take to start.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// The directory of a file that redirects to the page, until it is removed.
pub struct Redirect(Arc<Mutex<Option<TempDir>>>);

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
    let user = rustix::process::geteuid().as_raw();
    let own = |path: &PathBuf| {
        fs::metadata(path)
            .is_ok_and(|found| found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0)
    };
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime.filter(|path| path.is_absolute() && own(path)).unwrap_or_else(std::env::temp_dir)
}

/// Removes file and directory; further calls do nothing.
fn remove(directory: &Mutex<Option<TempDir>>) {
    directory.lock().unwrap_or_else(PoisonError::into_inner).take();
}

impl Redirect {
    /// Creates a directory of mode 0700 with an unpredictable name, and the file of mode 0600 in
    /// it.
    fn new(place: &Path, address: &str) -> io::Result<(Self, PathBuf)> {
        let mut directory = tempfile::Builder::new();
        directory.prefix("gammachi-view-").permissions(Permissions::from_mode(0o700));
        let directory = directory.tempdir_in(place)?;
        let file = directory.path().join("open.html");
        let redirect = Self(Arc::new(Mutex::new(Some(directory))));
        let left = redirect.0.clone();
        before_ending(move |_| remove(&left));
        // The address comes from this command: nothing in it needs to be escaped.
        let text = format!(
            "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" \
             content=\"no-referrer\">\n<meta http-equiv=\"refresh\" content=\"0; url={address}\">\n\
             <title>gammachi view</title>\n<a href=\"{address}\">timeline</a>\n"
        );
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        options.open(&file)?.write_all(text.as_bytes())?;
        Ok((redirect, file))
    }

    /// Removes file and directory; further calls do nothing.
    pub fn remove(&self) {
        remove(&self.0);
    }
}

impl Drop for Redirect {
    fn drop(&mut self) {
        self.remove();
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
