//! Directories that only their owner may enter, because traces reveal what was run, with which
//! arguments and where.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes a new directory with mode 0700, and its missing parents, whose mode follows the user's
/// umask.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if the name exists; otherwise the system's error.
pub fn make_new(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => fs::create_dir_all(parent)?,
        _ => {}
    }
    DirBuilder::new().mode(0o700).create(path)
}

/// Makes a directory as [`make_new`] does, unless it exists.
///
/// # Errors
/// As for [`make_new`], also if there is a file of this name.
pub fn make(path: &Path) -> io::Result<()> {
    match make_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Makes a run directory and the folder of a file in it, unless they exist.
///
/// # Errors
/// As for [`make`].
pub fn make_for(run: &Path, file: &Path) -> io::Result<()> {
    make(run)?;
    file.parent().map_or(Ok(()), make)
}
