//! Lists the rank files of a run directory.

use std::fs;
use std::path::{Path, PathBuf};

use trace_format::files::STAGED_EXTENSION;
use trace_format::reader::{OpenError, RankFile};
use trace_format::regular_file;

use crate::plain_text::printable;

use super::error::TraceError;
use super::fault::{FileDiagnosis, FileFault};

/// The files of a run directory.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Rank files of the initial world, by name.
    pub files: Vec<PathBuf>,
    /// `HOST:PATH` of a rank file that is still in a staging directory.
    staged: Option<String>,
    /// Number of rank files of spawned worlds.
    pub spawned: usize,
    /// Subdirectories that could not be listed.
    pub diagnoses: Vec<FileDiagnosis<FileFault>>,
}

/// Most files that are mapped at once.
const MAX_MAPPED: usize = 1 << 14;

impl Listing {
    pub fn open(&self, path: &Path) -> Result<RankFile, OpenError> {
        RankFile::open(path).map(|file| self.as_one_of_all(file))
    }

    /// A file as it is kept: one of many is not mapped.
    pub fn as_one_of_all(&self, mut file: RankFile) -> RankFile {
        if self.files.len() > MAX_MAPPED {
            file.unmap();
        }
        file
    }
}

/// Finds the rank files of a run directory.
pub(super) fn list(directory: &Path) -> Result<Listing, TraceError> {
    let io = |source| TraceError::Io { path: directory.to_owned(), source };
    let metadata = fs::metadata(directory).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => TraceError::Missing(directory.to_owned()),
        _ => io(error),
    })?;
    if !metadata.is_dir() {
        return Err(TraceError::NotADirectory {
            file: directory.to_owned(),
            hint: run_directory_of(directory).map_or_else(String::new, |run| format!(": {run}")),
        });
    }
    let mut listing = Listing::default();
    for name in names(directory).map_err(io)? {
        let path = directory.join(&name);
        if !name.starts_with("ranks-") || !path.is_dir() {
            continue;
        }
        match names(&path) {
            Ok(files) => {
                let staged = files
                    .iter()
                    .find(|file| Path::new(file).extension() == Some(STAGED_EXTENSION.as_ref()));
                if let Some(text) = staged.and_then(|file| staged_place(&path.join(file))) {
                    listing.staged = Some(text);
                }
                for file in files.iter().filter(|file| file.ends_with(".gmc")) {
                    if file.starts_with("world-") {
                        listing.spawned += 1;
                    } else {
                        listing.files.push(path.join(file));
                    }
                }
            }
            Err(error) => listing.diagnoses.push(FileDiagnosis {
                file: name.into(),
                what: FileFault::CannotList(error.to_string()),
            }),
        }
    }
    if listing.files.is_empty() {
        return Err(match listing.diagnoses.first() {
            Some(first) => TraceError::NoneReadable {
                directory: directory.to_owned(),
                files: 0,
                first: first.to_string(),
            },
            None => match listing.staged {
                Some(place) => TraceError::Staged { directory: directory.to_owned(), place },
                None => TraceError::NoRankFile(directory.to_owned()),
            },
        });
    }
    listing.files.sort();
    Ok(listing)
}

/// The rank files of the initial world, by name.
///
/// # Errors
/// The directory cannot be read, or has none.
pub fn rank_files(directory: &Path) -> Result<Vec<PathBuf>, TraceError> {
    Ok(list(directory)?.files)
}

/// `HOST:PATH` of a rank file of this run that is still in a staging directory.
pub fn staged_rank_file(directory: &Path) -> Option<String> {
    match list(directory) {
        Ok(listing) => listing.staged,
        Err(TraceError::Staged { place, .. }) => Some(place),
        Err(_) => None,
    }
}

/// `HOST:PATH` from a file that the recorder left in place of a staged rank file.
fn staged_place(file: &Path) -> Option<String> {
    const MAX_BYTES: u64 = 64 << 10;
    let text = regular_file::read(file, MAX_BYTES).ok()?;
    Some(printable(String::from_utf8_lossy(&text).trim_end()))
}

fn names(directory: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// The run directory of a rank file or a run.json.
fn run_directory_of(file: &Path) -> Option<String> {
    let parent = file.parent()?;
    let run = match parent.file_name() {
        Some(name) if name.to_string_lossy().starts_with("ranks-") => parent.parent()?,
        _ if file.file_name()? == "run.json" => parent,
        _ => return None,
    };
    Some(if run.as_os_str().is_empty() { ".".into() } else { run.display().to_string() })
}
