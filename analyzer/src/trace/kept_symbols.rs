//! Names of functions and lines that a run directory carries along, so that the run can be read where the program and its
//! libraries are not: `symbols.json`, written by `gammachi collect --symbols`.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use trace_format::regular_file;

use super::source_location::SourceLocation;
use crate::whole_file::{self, PRIVATE};

pub const SYMBOLS_JSON: &str = "symbols.json";
const FORMAT: &str = "gammachi-symbols";
const VERSION: u32 = 1;
/// Largest file that is read.
const MAX_BYTES: u64 = 1 << 30;

/// The names that are carried along.
#[derive(Debug, Default)]
pub struct KeptSymbols {
    /// By path and build id of the module, and address in its file.
    modules: HashMap<String, HashMap<String, HashMap<u64, Vec<SourceLocation>>>>,
}

/// The file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Document {
    format: String,
    format_version: u32,
    /// Names and source files.
    functions: Vec<(Option<String>, Option<String>)>,
    modules: Vec<ModulePart>,
}

/// What is known of a module.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ModulePart {
    pub path: String,
    pub build_id: String,
    /// By address in the file: the functions there, the innermost first.
    pub places: Vec<(u64, Vec<KeptFrame>)>,
}

/// Position among the functions, and line.
pub(super) type KeptFrame = (usize, Option<u32>);

impl KeptSymbols {
    /// Those of a run directory; none if it has no such file.
    ///
    /// # Errors
    /// Why the file cannot be used.
    pub(super) fn read(directory: &Path) -> Result<Self, String> {
        let text = match regular_file::read(&directory.join(SYMBOLS_JSON), MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(format!("cannot be read: {error}")),
        };
        let document: Document =
            serde_json::from_slice(&text).map_err(|error| format!("is damaged: {error}"))?;
        if document.format != FORMAT || document.format_version != VERSION {
            return Err(format!(
                "is of version {} of {}; this is gammachi {}, which reads {VERSION} of {FORMAT}",
                document.format_version,
                document.format,
                env!("CARGO_PKG_VERSION")
            ));
        }
        let mut kept = Self::default();
        let Document { functions, modules, .. } = document;
        for ModulePart { path, build_id, places } in modules {
            let known = kept.modules.entry(path).or_default().entry(build_id).or_default();
            for (address, frames) in places {
                let location = |(at, line): KeptFrame| {
                    let (function, file) = functions.get(at)?.clone();
                    Some(SourceLocation { function, file, line })
                };
                let frames: Option<Vec<SourceLocation>> =
                    frames.into_iter().map(location).collect();
                let frames = frames.filter(|frames| !frames.is_empty());
                known
                    .insert(address, frames.ok_or("is damaged: it names functions that it lacks")?);
            }
        }
        Ok(kept)
    }

    /// What is kept of an address.
    pub(super) fn frames(
        &self,
        path: &str,
        build_id: &str,
        address: u64,
    ) -> Option<&Vec<SourceLocation>> {
        self.modules.get(path)?.get(build_id)?.get(&address)
    }
}

impl Document {
    pub fn new(functions: Vec<(Option<String>, Option<String>)>, modules: Vec<ModulePart>) -> Self {
        Self { format: FORMAT.to_owned(), format_version: VERSION, functions, modules }
    }

    /// Writes it into a run directory.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(self).map_err(io::Error::from)?;
        whole_file::write(&directory.join(SYMBOLS_JSON), PRIVATE, |file| file.write_all(&text))
    }
}
