//! Opens files of runs. A run may come from someone else: a FIFO among its files would block the
//! reader forever, a link to /dev/zero would fill its memory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file for reading without ever waiting for another process.
///
/// # Errors
/// The error of the system; `InvalidInput` if it is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    // Without a writer, a FIFO opens at once in this mode. It does not affect regular files.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Reads a file of at most `limit` bytes.
///
/// # Errors
/// As for [`open`]; `FileTooLarge` if it is longer.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => {
            let what = format!("it is longer than {limit} bytes");
            Err(io::Error::new(io::ErrorKind::FileTooLarge, what))
        }
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn only_regular_files_of_limited_size_are_read() {
        let folder = std::env::temp_dir().join(format!("regular-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [fifo, zero, plain] = ["fifo", "zero", "plain"].map(|name| folder.join(name));
        let name = CString::new(fifo.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name ends with a zero byte and outlives the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
        std::fs::write(&plain, "text").unwrap();
        for path in [&fifo, &zero, &folder] {
            assert_eq!(open(path).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{path:?}");
        }
        assert_eq!(read(&plain, 4).unwrap(), b"text");
        assert_eq!(read(&plain, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
