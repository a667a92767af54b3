//! Writes figures as SVG files into a directory.

use std::fs;
use std::path::Path;

use super::error::{CommandError, notify};
use super::output_file;

/// Writes the figures into a directory, which is created if missing, and prints their names.
///
/// # Errors
/// Failure, naming the file.
pub fn write_figures(directory: &Path, figures: &[(&str, String)]) -> Result<(), CommandError> {
    fs::create_dir_all(directory).map_err(|error| {
        CommandError::failed(format!("--svg: {}: cannot be made: {error}", directory.display()))
    })?;
    for (name, svg) in figures {
        output_file::write(&directory.join(name), svg)?;
    }
    let names: Vec<&str> = figures.iter().map(|(name, _)| *name).collect();
    match names.is_empty() {
        true => notify("--svg: there is nothing to draw"),
        false => notify(&format!("figures in {}: {}", directory.display(), names.join(", "))),
    }
    Ok(())
}
