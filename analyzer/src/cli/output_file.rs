//! Writes a file of a command completely or not at all.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::error::{CommandError, Context};
use crate::whole_file::{self, SHARED};

/// Writes a file, replacing an existing one.
pub fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    let shown = path.display();
    if path.is_dir() {
        return Err(CommandError::usage(format!("{shown}: is a directory")));
    }
    // A device or pipe cannot be replaced.
    let written = match fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        true => fs::write(path, text),
        false => whole_file::write(path, SHARED, |file| file.write_all(text.as_bytes())),
    };
    written.context(CommandError::Output, format_args!("{shown}: cannot be written"))
}
