//! Formats of other tools, one folder each. `write` writes a run from what [`crate::export`]
//! provides, `read` makes a run with [`crate::import`], `names` has what both share, and `library`
//! binds the format's own library.
//!
//! | folder | format | written | read |
//! |---|---|---|---|
//! | [`csv`] | comma-separated tables | yes | |
//! | [`parquet`] | Parquet tables | yes | |
//! | [`perfetto`] | protocol buffers for <https://ui.perfetto.dev> | yes | |
//! | [`paje`] | Pajé's text | yes | |
//! | [`folded`] | folded stacks for flame graphs | yes | |
//! | [`speedscope`] | stacks for <https://www.speedscope.app> | yes | |
//! | [`firefox`] | stacks for <https://profiler.firefox.com> | yes | |
//! | [`paraver`] | Paraver's `.prv`, `.pcf` and `.row` | yes | yes |
//! | [`otf2`] | OTF2 archives, through OTF2's own library | yes | yes |
//! | [`extra_p`] | Extra-P's tables of experiments: not runs, but data for models | yes | yes |
//!
//! Formats do not depend on each other; [`write()`] and [`import`] select one.

pub mod csv;
pub mod extra_p;
pub mod firefox;
pub mod folded;
pub mod otf2;
pub mod paje;
pub mod paraver;
pub mod parquet;
pub mod perfetto;
pub mod speedscope;

use std::path::Path;

use crate::export::content::Export;
use crate::export::{ExportError, Written};
use crate::import::{ImportError, Imported};

/// A format to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated tables.
    Csv,
    Parquet {
        /// About how many calls a part of a large table has.
        part_calls: u64,
    },
    /// Perfetto's protocol buffers.
    Perfetto,
    /// Pajé's text.
    Paje,
    /// Folded stacks of sampled code.
    Folded,
    /// Speedscope's stacks of sampled code.
    Speedscope,
    /// The Firefox Profiler's.
    Firefox,
    /// Paraver's three files.
    Paraver,
    /// An OTF2 archive.
    Otf2,
}

/// Writes a run to `path`, which must not exist.
///
/// # Errors
/// A file cannot be written, for example because there is no space. A part of the export may be
/// left at `path`.
pub fn write(export: Export, format: Format, path: &Path) -> Result<Written, ExportError> {
    match format {
        Format::Csv => csv::write(export, path),
        Format::Parquet { part_calls } => parquet::write(export, part_calls, path),
        Format::Perfetto => perfetto::write(export, path),
        Format::Paje => paje::write(export, path),
        Format::Folded => folded::write(export.content, path, export.progress),
        Format::Speedscope => speedscope::write(export.content, path, export.progress),
        Format::Firefox => firefox::write(export.content, path, export.progress),
        Format::Otf2 => otf2::write(export, path),
        Format::Paraver => paraver::write(export, path),
    }
}

/// Imports a file as a run; `run` is a directory that must not exist. If the import fails, a part
/// of the run may be left there.
///
/// Its clocks differ by `clocks_within_s` at most, if that is known.
///
/// # Errors
/// The file has no known format, is damaged or cannot be read, or the run cannot be written.
pub fn import(
    file: &Path,
    run: &Path,
    clocks_within_s: Option<f64>,
) -> Result<Imported, ImportError> {
    let bound_ns = clocks_within_s.map(|seconds| seconds * 1e9);
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    if let Err(source) = std::fs::File::open(file) {
        return Err(ImportError::Read { path: file.to_owned(), source });
    }
    if name.ends_with(".otf2") {
        otf2::import(file, run, bound_ns)
    } else if name.ends_with(".prv") || name.ends_with(".prv.gz") {
        paraver::import(file, run, bound_ns)
    } else {
        Err(ImportError::Damaged {
            path: file.to_owned(),
            what: "is neither .otf2 (the anchor file of an OTF2 archive) nor .prv or .prv.gz (Paraver)"
                .into(),
        })
    }
}
