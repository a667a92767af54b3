//! Formats of other tools, a folder each: `write` takes what [`crate::export`] makes of a run, `read` makes
//! a run by [`crate::import`], `names` is what both agree on, `library` binds a library of the format's own.
//!
//! | folder | format | written | read |
//! |---|---|---|---|
//! | [`csv`] | comma-separated tables | yes | |
//! | [`parquet`] | Parquet tables | yes | |
//! | [`perfetto`] | protocol buffers for <https://ui.perfetto.dev> | yes | |
//! | [`paje`] | Paje's text | yes | |
//! | [`paraver`] | Paraver's `.prv`, `.pcf` and `.row` | yes | yes |
//! | [`otf2`] | OTF2 archives, by OTF2's own library | yes | yes |
//! | [`extra_p`] | Extra-P's tables of experiments: not runs, but what models are fitted to | yes | yes |
//!
//! No format knows another; [`write()`] and [`import`] pick one.

pub mod csv;
pub mod extra_p;
pub mod otf2;
pub mod paje;
pub mod paraver;
pub mod parquet;
pub mod perfetto;

use std::path::Path;

use crate::export::content::Content;
use crate::export::{ExportError, Progress, Written};
use crate::import::{ImportError, Imported};

/// A format to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated tables.
    Csv,
    /// Parquet tables.
    Parquet,
    /// Perfetto's protocol buffers.
    Perfetto,
    /// Paje's text.
    Paje,
    /// Paraver's three files.
    Paraver,
    /// An OTF2 archive.
    Otf2,
}

/// Writes a run to `path`, which does not exist yet; `scratch` is a directory for files without a
/// name.
///
/// # Errors
/// What cannot be written: no space, for one. Half of what was to be written may be left at `path`.
pub fn write(
    content: &Content,
    format: Format,
    path: &Path,
    scratch: &Path,
    progress: &dyn Progress,
) -> Result<Written, ExportError> {
    match format {
        Format::Csv => csv::write(content, path, scratch, progress),
        Format::Parquet => parquet::write(content, path, scratch, progress),
        Format::Perfetto => perfetto::write(content, path, scratch, progress),
        Format::Paje => paje::write(content, path, scratch, progress),
        Format::Otf2 => otf2::write(content, path, scratch, progress),
        Format::Paraver => paraver::write(content, path, scratch, progress),
    }
}

/// Makes a run of a file; `run` is a directory that does not exist yet. Half of it may be left when
/// that fails.
///
/// # Errors
/// The file is of no known format, damaged, or cannot be read; the run cannot be written.
pub fn import(file: &Path, run: &Path) -> Result<Imported, ImportError> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    if let Err(source) = std::fs::File::open(file) {
        return Err(ImportError::Read { path: file.to_owned(), source });
    }
    if name.ends_with(".otf2") {
        otf2::import(file, run)
    } else if name.ends_with(".prv") || name.ends_with(".prv.gz") {
        paraver::import(file, run)
    } else {
        Err(ImportError::Damaged {
            path: file.to_owned(),
            what: "is neither .otf2 (the anchor file of an OTF2 archive) nor .prv or .prv.gz (Paraver)"
                .into(),
        })
    }
}
