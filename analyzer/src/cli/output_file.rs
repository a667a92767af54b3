//! Writes a file of a command completely or not at all.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::error::CommandError;

/// Writes a file, replacing an existing one. It is written under a temporary name first, so that a
/// full disk does not leave half a file.
///
/// # Errors
/// Failure, naming the file.
pub fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    let failed = |what: &std::io::Error| {
        CommandError::Output(format!("{}: cannot be written: {what}", path.display()))
    };
    // A device or pipe cannot be replaced.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        if path.is_dir() {
            return Err(CommandError::usage(format!("{}: is a directory", path.display())));
        }
        return fs::write(path, text).map_err(|error| failed(&error));
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = fs::File::create(&part).and_then(|mut file| file.write_all(text.as_bytes()));
    written.and_then(|()| fs::rename(&part, path)).map_err(|error| {
        let _ = fs::remove_file(&part);
        failed(&error)
    })
}
