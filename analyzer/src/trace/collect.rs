//! Joins the parts of a run, which are directories with rank files, into one run directory.
//!
//! Parts are left by hosts without a shared directory, or in node-local staging directories. Files
//! belong together if they have the same run id; their names do not matter. Every file is copied
//! under a temporary name, read back and compared, and only then renamed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;
use trace_format::files::rank_file_path;
use trace_format::header::is_finalized;
use trace_format::reader::{OpenError, RankFile};
use trace_format::{private_directory, regular_file};

use super::opened::gaps;
use super::run_json::{RUN_JSON, RunJson, RunState};
use super::snapshot;

const RANK_FILE_EXTENSION: &str = "gmc";
/// Depth below a part down to which files are searched for:
/// `STAGE/JOB/RUN/ranks-000/rank-000000.gmc`.
const MAX_DEPTH: u32 = 5;
const BUFFER_BYTES: usize = 1 << 20;

/// What the files of one run have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey {
    /// The run's id as 32 hexadecimal digits; zeros if not known.
    pub id: String,
    pub world_size: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    pub path: PathBuf,
    /// The run it belongs to.
    pub key: RunKey,
    pub world_and_rank: (u32, u32),
    /// The measured program, for messages.
    pub program: String,
    /// Whether MPI_Finalize returned, so that the file is complete.
    pub finalized: bool,
    pub bytes: u64,
}

/// The files found in the parts.
#[derive(Debug, Default)]
pub struct Found {
    /// Rank files, in the order in which they were found.
    pub files: Vec<FoundFile>,
    /// Directories with a `run.json`.
    pub descriptions: Vec<PathBuf>,
    /// Files that look like rank files but cannot be read, with the reason.
    pub unreadable: Vec<String>,
}

/// Result of [`collect`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Collected {
    pub copied: Vec<FoundFile>,
    /// Files that the run directory already had, or that another part also had.
    pub already: u32,
    /// Ranks of world 0 without a file in the parts or the run, ascending.
    pub missing: Vec<RangeInclusive<u32>>,
    /// Ranks whose file does not record the end of MPI_Finalize.
    pub unfinished: Vec<u32>,
}

/// Why a file that looks like a rank file cannot be used.
#[derive(Debug, Error)]
pub enum UnreadableFile {
    /// It is not a rank file, or it is damaged.
    #[error("{0}")]
    Open(OpenError),
    /// Its size cannot be determined.
    #[error("{}: {source}", .path.display())]
    Size {
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Why parts cannot be joined.
#[derive(Debug, Error)]
pub enum CollectError {
    /// A part cannot be listed.
    #[error("{}: cannot be read: {source}", .directory.display())]
    List {
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path of a file is occupied by something else.
    #[error("{why}; it is in the way of {}: move it away", .file.display())]
    InTheWay {
        /// What is wrong with the file there.
        why: UnreadableFile,
        /// The file that belongs there.
        file: PathBuf,
    },
    /// The run directory holds another run.
    #[error(
        "{} belongs to a different run than {}; collect into a separate directory",
        .there.display(), .file.display()
    )]
    OtherRun {
        /// The file of the run directory.
        there: PathBuf,
        /// The file of the part.
        file: PathBuf,
    },
    /// A file or directory cannot be created, written or renamed.
    #[error("cannot {what} {}: {source}", .path.display())]
    Write {
        /// What was tried.
        what: &'static str,
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A copy differs from its original.
    #[error(
        "{} changed while it was copied, or its copy cannot be read back; if the program is still \
         running, collect again when it has ended: what was copied stays",
        .0.display()
    )]
    Changed(PathBuf),
    /// A file cannot be compared with another.
    #[error("{}: {source}", .path.display())]
    Compare {
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl RunKey {
    /// Whether the recorder knew the run's id.
    pub fn is_known(&self) -> bool {
        self.id.bytes().any(|digit| digit != b'0')
    }
}

impl Found {
    /// Searches directories for rank files.
    ///
    /// # Errors
    /// A directory that cannot be listed.
    pub fn in_directories(parts: &[PathBuf]) -> Result<Self, CollectError> {
        let mut found = Self::default();
        for part in parts {
            found.search(part, MAX_DEPTH)?;
        }
        Ok(found)
    }

    fn search(&mut self, directory: &Path, depth: u32) -> Result<(), CollectError> {
        let wrong = |source| CollectError::List { directory: directory.to_owned(), source };
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(directory).map_err(wrong)? {
            entries.push(entry.map_err(wrong)?.path());
        }
        entries.sort();
        for path in entries {
            if path.is_dir() && !path.is_symlink() {
                // Files of snapshots have the run's id, but are not the whole ones.
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if depth > 0 && !name.starts_with(snapshot::NAME) {
                    self.search(&path, depth - 1)?;
                }
            } else if path.extension().is_some_and(|ending| ending == RANK_FILE_EXTENSION) {
                match FoundFile::read(&path) {
                    Ok(file) => self.files.push(file),
                    Err(error) => self.unreadable.push(error.to_string()),
                }
            } else if path.file_name().is_some_and(|name| name == RUN_JSON) {
                self.descriptions.push(directory.to_owned());
            }
        }
        Ok(())
    }

    /// The files, grouped by run.
    pub fn runs(&self) -> BTreeMap<&RunKey, Vec<&FoundFile>> {
        let mut runs: BTreeMap<&RunKey, Vec<&FoundFile>> = BTreeMap::new();
        for file in &self.files {
            runs.entry(&file.key).or_default().push(file);
        }
        runs
    }
}

impl FoundFile {
    fn read(path: &Path) -> Result<Self, UnreadableFile> {
        let file = RankFile::open(path).map_err(UnreadableFile::Open)?;
        let id = file.fixed.run_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let bytes = fs::metadata(path).map(|metadata| metadata.len());
        Ok(Self {
            path: path.to_owned(),
            key: RunKey { id, world_size: file.fixed.world_size },
            world_and_rank: (file.fixed.world, file.fixed.rank),
            program: file.header.program.clone(),
            finalized: is_finalized(&file.definitions),
            bytes: bytes
                .map_err(|source| UnreadableFile::Size { path: path.to_owned(), source })?,
        })
    }
}

/// Copies the files of one run into its directory, which may hold some of them already.
///
/// # Errors
/// If a file cannot be copied. Files that were completed before that stay; no file is ever left
/// incomplete under its final name.
pub fn collect(
    directory: &Path,
    key: &RunKey,
    found: &Found,
    mut progress: impl FnMut(&FoundFile),
) -> Result<Collected, CollectError> {
    let mut collected = Collected::default();
    let mut held: BTreeMap<(u32, u32), FoundFile> = BTreeMap::new();
    for file in found.files.iter().filter(|file| file.key == *key) {
        let target = directory.join(rank_file_path(file.world_and_rank.0, file.world_and_rank.1));
        if !held.contains_key(&file.world_and_rank) && target.exists() {
            let there = FoundFile::read(&target)
                .map_err(|why| CollectError::InTheWay { why, file: file.path.clone() })?;
            if there.key != *key {
                return Err(CollectError::OtherRun { there: target, file: file.path.clone() });
            }
            held.insert(file.world_and_rank, there);
        }
        if let Some(there) = held.get(&file.world_and_rank) {
            collected.already += 1;
            if is_same_file(&there.path, &file.path) || equal(&there.path, &file.path)? {
                continue;
            }
            // A file left in a staging directory may be older than the one that was moved, or
            // complete if that one is not.
            if (file.finalized, file.bytes) <= (there.finalized, there.bytes) {
                continue;
            }
            collected.already -= 1;
        }
        copy_checked(&file.path, directory, &target)?;
        progress(file);
        collected.copied.push(file.clone());
        held.insert(file.world_and_rank, FoundFile { path: target, ..file.clone() });
    }
    // The world size is only what a file claims, so the files that exist are counted.
    let mut present = ranks_in(directory);
    present.extend(held.keys().filter(|(world, _)| *world == 0).map(|(_, rank)| *rank));
    let known = present.into_iter().filter(|rank| *rank < key.world_size);
    collected.missing = gaps(known, key.world_size);
    let unfinished = held.values().filter(|file| file.world_and_rank.0 == 0 && !file.finalized);
    collected.unfinished = unfinished.map(|file| file.world_and_rank.1).collect();
    copy_description(directory, key, found)?;
    Ok(collected)
}

/// Ranks of world 0 with a file in a run directory, by the names of the files.
fn ranks_in(directory: &Path) -> BTreeSet<u32> {
    let folders = fs::read_dir(directory).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten());
    let rank_of = |path: &Path| -> Option<u32> {
        let stem = path.file_stem()?.to_str()?;
        let rank = stem.strip_prefix("rank-")?.parse().ok()?;
        path.ends_with(rank_file_path(0, rank)).then_some(rank)
    };
    files.flatten().filter_map(|file| rank_of(&file.path())).collect()
}

/// Copies the `run.json` of a part with files of the run. A finished one is preferred to one that
/// says "running".
fn copy_description(directory: &Path, key: &RunKey, found: &Found) -> Result<(), CollectError> {
    let of_run = |part: &&PathBuf| {
        found.files.iter().any(|file| file.key == *key && file.path.starts_with(part))
    };
    let known = found.descriptions.iter().filter(of_run).filter_map(|p| RunJson::read(p).ok());
    let there = RunJson::read(directory).ok();
    let best = known.chain(there).max_by_key(|run| run.state == RunState::Finished);
    let Some(best) = best else { return Ok(()) };
    best.write(directory).map_err(failed_to("write", &directory.join(RUN_JSON)))
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

fn failed_to(what: &'static str, path: &Path) -> impl Fn(io::Error) -> CollectError {
    let path = path.to_owned();
    move |source| CollectError::Write { what, path: path.clone(), source }
}

fn copy_checked(from: &Path, run: &Path, to: &Path) -> Result<(), CollectError> {
    let parent = to.parent().unwrap_or(Path::new("."));
    private_directory::make_for(run, to).map_err(failed_to("make", parent))?;
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = parent.join(format!(".{name}.{}", std::process::id()));
    let copied =
        write_copy(from, &unfinished).map_err(failed_to("copy to", &unfinished)).and_then(|()| {
            match equal(from, &unfinished)? {
                true => fs::rename(&unfinished, to).map_err(failed_to("name", to)),
                false => Err(CollectError::Changed(from.to_owned())),
            }
        });
    if copied.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    copied
}

fn write_copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = regular_file::open(from)?;
    let mut target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let mut buffer = vec![0u8; BUFFER_BYTES];
    loop {
        let count = source.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        target.write_all(&buffer[..count])?;
    }
    target.sync_all()
}

/// Whether two files hold the same bytes.
fn equal(a: &Path, b: &Path) -> Result<bool, CollectError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CollectError::Compare { path, source }
    };
    let open = |path: &Path| {
        let file = regular_file::open(path).map_err(failed(path))?;
        let bytes = file.metadata().map_err(failed(path))?.len();
        Ok::<_, CollectError>((file, bytes))
    };
    let ((mut first, first_bytes), (mut second, second_bytes)) = (open(a)?, open(b)?);
    if first_bytes != second_bytes {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0u8; BUFFER_BYTES], vec![0u8; BUFFER_BYTES]);
    let mut rest = first_bytes;
    while rest > 0 {
        let piece = rest.min(BUFFER_BYTES as u64) as usize;
        for (file, buffer, path) in [(&mut first, &mut left, a), (&mut second, &mut right, b)] {
            file.read_exact(&mut buffer[..piece]).map_err(failed(path))?;
        }
        if left[..piece] != right[..piece] {
            return Ok(false);
        }
        rest -= piece as u64;
    }
    Ok(true)
}

#[cfg(test)]
#[path = "collect_tests.rs"]
mod tests;
