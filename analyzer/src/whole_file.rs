//! Writes a file completely or not at all: under a temporary name beside it, which then takes its
//! place, so that nobody ever reads half of it and a full disk leaves the old one.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Access rights of a file that only its owner may read.
pub const PRIVATE: u32 = 0o600;
/// Access rights of a file that others may read, as far as the umask allows.
pub const SHARED: u32 = 0o666;

/// Writes a file with these access rights, replacing an existing one.
///
/// # Errors
/// The error of the system, or that of `content`; nothing is left behind then.
pub fn write(
    path: &Path,
    rights: u32,
    content: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let new = |part: &Path| OpenOptions::new().write(true).create_new(true).mode(rights).open(part);
    let part = tempfile::Builder::new().prefix(".gammachi-").make_in(directory_of(path), new);
    let mut part = part?;
    content(part.as_file_mut())?;
    part.persist(path).map(drop).map_err(|failed| failed.error)
}

/// The directory that a path lies in.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    #[test]
    fn file_is_whole_or_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write(&path, PRIVATE, |file| file.write_all(b"old")).unwrap();
        let full = |file: &mut File| {
            file.write_all(b"ha")?;
            Err(io::ErrorKind::StorageFull.into())
        };
        assert_eq!(write(&path, PRIVATE, full).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        write(&path, PRIVATE, |file| file.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
    }
}
