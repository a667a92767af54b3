//! Run directories, and folders of files in them.

use std::path::Path;

use trace_format::private_directory;

/// Why a file or directory could not be made.
pub enum CreateError {
    /// It already exists.
    Exists,
    /// Anything else, as a sentence.
    Failed(String),
}

/// Makes a run directory that must not exist yet.
pub fn make_new(path: &Path) -> Result<(), CreateError> {
    private_directory::make_new(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => CreateError::Exists,
        _ => CreateError::Failed(cannot_make(path, &error)),
    })
}

/// Makes a run directory and the folder of a file in it, unless they exist.
pub fn make_for(run: &Path, file: &Path) -> Result<(), String> {
    private_directory::make_for(run, file).map_err(|error| cannot_make(run, &error))
}

fn cannot_make(path: &Path, error: &std::io::Error) -> String {
    format!("cannot make the directory {}: {error}", path.display())
}
