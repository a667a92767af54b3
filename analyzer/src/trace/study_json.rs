//! Reads and writes `study.json`, which lists the runs of a study and their state.
//!
//! `gammachi sweep` replaces the file as a whole after every run, so that an interrupted sweep
//! continues where it stopped. `docs/reference/predictions-json.md` explains every key.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use trace_format::regular_file;

use crate::whole_file::{self, PRIVATE};

/// Name of the file in a study directory.
pub const STUDY_JSON: &str = "study.json";
/// Value of the key `format`.
pub const FORMAT: &str = "gammachi-study";
/// Version of the keys.
pub const FORMAT_VERSION: u32 = 1;
/// Longest file that is read: room for 100,000 runs.
const MAX_BYTES: u64 = 64 << 20;

/// The runs of a study and their state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StudyJson {
    /// `gammachi-study`.
    pub format: String,
    /// 1.
    pub format_version: u32,
    /// Version of the command that wrote the file.
    pub gammachi_version: String,
    /// The command with its placeholders.
    pub argv: Vec<String>,
    /// Detail level.
    pub level: u8,
    /// What counts as computation.
    pub compute: String,
    /// Region that tables of the study describe, unless another is asked for.
    pub region: Option<String>,
    /// Seed for the order of the runs.
    pub seed: u64,
    /// The runs in the order in which they are made.
    pub runs: Vec<StudyRun>,
}

/// One run of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StudyRun {
    /// Run directory below the study directory.
    pub directory: String,
    /// Rank count that was asked for.
    pub np: u32,
    /// Parameters, in the order in which they were given.
    pub params: Vec<(String, String)>,
    /// Repetition, from 1 on.
    pub rep: u32,
    /// Whether only its counts are used, not its times: its ranks may have shared cores.
    #[serde(default)]
    pub counts_only: bool,
    /// State of the run.
    pub state: StudyRunState,
    /// Exit code of the program, once it has ended.
    pub exit_code: Option<i32>,
    /// What went wrong, for a failed run.
    pub reason: Option<String>,
    /// Seconds from its start to its end, launcher included.
    pub duration_s: Option<f64>,
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StudyRunState {
    /// Not made yet, or interrupted and to be made again.
    Pending,
    /// Recorded.
    Finished,
    /// It ended with an error, or recorded nothing.
    Failed,
}

/// Why a `study.json` could not be read.
#[derive(Debug, Error)]
pub enum StudyJsonError {
    /// It does not exist or cannot be read.
    #[error("{path}: {source}")]
    Read {
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not the JSON that `gammachi sweep` writes.
    #[error("{path}: not a study: {source}")]
    Syntax {
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// It has another version or is something else.
    #[error(
        "{path}: format {format:?} version {version}, but this gammachi reads {FORMAT:?} version \
         {FORMAT_VERSION}; use the gammachi that made the study"
    )]
    Version {
        path: PathBuf,
        /// Its key `format`.
        format: String,
        /// Its key `format_version`.
        version: u32,
    },
    /// A run's directory is not a plain name below the study.
    #[error("{path}: run directory {directory:?} is not a name inside the study")]
    Escapes {
        path: PathBuf,
        /// What it names.
        directory: String,
    },
}

impl StudyJson {
    /// Whether a directory is a study.
    pub fn is_in(directory: &Path) -> bool {
        directory.join(STUDY_JSON).is_file()
    }

    /// Reads the file of a study directory.
    ///
    /// # Errors
    /// If the file is absent, unreadable, not such a JSON text, of another version, or names a run
    /// directory elsewhere.
    pub fn read(study: &Path) -> Result<Self, StudyJsonError> {
        #[derive(Deserialize)]
        struct Version {
            format: String,
            format_version: u32,
        }
        let path = study.join(STUDY_JSON);
        let text = match regular_file::read(&path, MAX_BYTES) {
            Ok(text) => text,
            Err(source) => return Err(StudyJsonError::Read { path, source }),
        };
        let syntax = |source| StudyJsonError::Syntax { path: path.clone(), source };
        let Version { format, format_version: version } =
            serde_json::from_slice(&text).map_err(syntax)?;
        if format != FORMAT || version != FORMAT_VERSION {
            return Err(StudyJsonError::Version { path, format, version });
        }
        let read: Self = serde_json::from_slice(&text).map_err(syntax)?;
        // A partial run is removed before it is made again, so nothing outside the study may be
        // named.
        let plain = |name: &str| !name.is_empty() && !name.contains('/') && !name.starts_with('.');
        match read.runs.iter().find(|run| !plain(&run.directory)) {
            Some(run) => Err(StudyJsonError::Escapes { path, directory: run.directory.clone() }),
            None => Ok(read),
        }
    }

    /// Writes the file into a study directory with mode 0600.
    pub fn write(&self, study: &Path) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        whole_file::write(&study.join(STUDY_JSON), PRIVATE, |file| file.write_all(&text))
    }
}
