//! Directories that only their owner may enter: traces say what was run, with which arguments and where.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes a directory of mode 0700 that is not there yet, and its parents where they are missing, for which the
/// user's umask holds.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] where something of that name is there; else what the system says.
pub fn make_new(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => fs::create_dir_all(parent)?,
        _ => {}
    }
    DirBuilder::new().mode(0o700).create(path)
}

/// Makes a directory as [`make_new`] does, unless it is there.
///
/// # Errors
/// As [`make_new`], also where a file of that name is there.
pub fn make(path: &Path) -> io::Result<()> {
    match make_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Makes a run directory and the folder of a file in it, where they are missing.
///
/// # Errors
/// As [`make`].
pub fn make_for(run: &Path, file: &Path) -> io::Result<()> {
    make(run)?;
    file.parent().map_or(Ok(()), make)
}
