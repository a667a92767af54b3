//! Writes a document of one JSON file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::Serialize;

use super::error::ExportError;

/// Writes a document.
///
/// # Errors
/// The file cannot be written to its end.
pub fn write_json(path: &Path, document: &impl Serialize) -> Result<(), ExportError> {
    let mut file = BufWriter::new(File::create(path).map_err(ExportError::io(path))?);
    serde_json::to_writer(&mut file, document)
        .map_err(|error| ExportError::io(path)(error.into()))?;
    // A full disk may be noticed only here.
    file.flush().map_err(ExportError::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_is_an_error() {
        let full = write_json(Path::new("/dev/full"), &"short");
        assert!(matches!(full, Err(ExportError::Io { .. })), "{full:?}");
    }
}
