//! Stores an index beside its trace, and reads it back as long as the rank files have not changed.
//!
//! `RUN/timeline.index` consists of the ASCII line `gammachi timeline index 2`, a line with the
//! length and CRC-32 of each of the two parts that follow, a JSON document about files, threads and
//! rows, and the table of [`ActivityIndex`]. The file may be deleted at any time.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trace_format::encoding::checksum;
use trace_format::regular_file;

use super::index::{ActivityIndex, RowFacts};
use crate::trace::{Run, ThreadExtent};
use crate::whole_file::{self, PRIVATE};

/// File name in the run directory.
pub const INDEX_FILE: &str = "timeline.index";
const FIRST_LINE: &str = "gammachi timeline index 2\n";
/// Upper limit for the second line.
const MAX_LINE_BYTES: usize = 100;
/// Longest file that is read.
const MAX_BYTES: u64 = 4 << 30;

/// The state of a rank file when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FileState {
    name: PathBuf,
    bytes: u64,
    modified_ns: i64,
    inode: u64,
}

impl FileState {
    fn read(directory: &Path, name: &Path) -> Option<Self> {
        let metadata = fs::metadata(directory.join(name)).ok()?;
        Some(Self {
            name: name.to_owned(),
            bytes: metadata.len(),
            modified_ns: metadata.mtime().wrapping_mul(1_000_000_000) + metadata.mtime_nsec(),
            inode: metadata.ino(),
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Facts {
    gammachi: String,
    files: Vec<FileState>,
    /// The extents of each file's threads.
    threads: Vec<Vec<ThreadExtent>>,
    rows: Vec<RowFacts>,
}

#[derive(Debug)]
pub struct StoredIndex {
    facts: Facts,
    pub index: ActivityIndex,
}

/// Why a stored index cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// There is none.
    Absent,
    /// A rank file has changed since, or the index has another version, is damaged or cut off;
    /// holds the reason.
    Stale(String),
}

impl StoredIndex {
    /// Reads the index of a run directory.
    ///
    /// # Errors
    /// The index cannot be used; the run can still be read without it.
    pub fn read(directory: &Path) -> Result<Self, Unusable> {
        let stale = |what: &str| Unusable::Stale(what.to_owned());
        let bytes = regular_file::read(&directory.join(INDEX_FILE), MAX_BYTES).map_err(
            |error| match error.kind() {
                io::ErrorKind::NotFound => Unusable::Absent,
                _ => Unusable::Stale(error.to_string()),
            },
        )?;
        let rest = bytes
            .strip_prefix(FIRST_LINE.as_bytes())
            .ok_or_else(|| stale("it is of another version"))?;
        let line = rest.iter().take(MAX_LINE_BYTES).position(|byte| *byte == b'\n');
        let numbers: Vec<usize> = line
            .and_then(|end| std::str::from_utf8(&rest[..end]).ok())
            .map(|line| line.split(' ').filter_map(|word| word.parse().ok()).collect())
            .unwrap_or_default();
        let [facts_bytes, facts_crc, table_bytes, table_crc] = numbers[..] else {
            return Err(stale("its head is damaged"));
        };
        let from = line.unwrap_or_default() + 1;
        let part = |from: usize, bytes: usize, crc: usize| {
            let part = rest.get(from..from.checked_add(bytes)?)?;
            (checksum(part) as usize == crc).then_some(part)
        };
        let facts = part(from, facts_bytes, facts_crc);
        let table = part(from.saturating_add(facts_bytes), table_bytes, table_crc);
        let (Some(facts), Some(table)) = (facts, table) else {
            return Err(stale("it is damaged or cut off"));
        };
        let mut facts: Facts =
            serde_json::from_slice(facts).map_err(|error| stale(&error.to_string()))?;
        if facts.gammachi != env!("CARGO_PKG_VERSION") {
            return Err(stale("another version of gammachi made it"));
        }
        for state in &facts.files {
            if FileState::read(directory, &state.name).as_ref() != Some(state) {
                let name = state.name.display();
                return Err(stale(&format!("{name} has changed since it was made")));
            }
        }
        let rows = std::mem::take(&mut facts.rows);
        let index = ActivityIndex::from_parts(rows, table.to_vec());
        let index = index.ok_or_else(|| stale("its table does not fit its rows"))?;
        Ok(Self { facts, index })
    }

    /// The extents of each file's threads, by path below the run directory.
    pub fn extents(&self) -> HashMap<PathBuf, Vec<ThreadExtent>> {
        let names = self.facts.files.iter().map(|file| file.name.clone());
        names.zip(self.facts.threads.iter().cloned()).collect()
    }

    /// Whether it covers exactly the files of a run.
    pub fn matches(&self, run: &Run) -> bool {
        run.ranks.iter().map(|rank| &rank.name).eq(self.facts.files.iter().map(|file| &file.name))
            && self.index.rows.iter().all(|row| row.position < run.ranks.len())
    }
}

/// Stores an index beside its run atomically, and returns its length in bytes.
///
/// # Errors
/// The directory cannot be written, or a rank file has gone.
pub fn store(run: &Run, index: &ActivityIndex) -> io::Result<u64> {
    let changed = || io::Error::other("a rank file went away");
    let states = run.ranks.iter().map(|rank| FileState::read(&run.directory, &rank.name));
    let facts = Facts {
        gammachi: env!("CARGO_PKG_VERSION").into(),
        files: states.collect::<Option<_>>().ok_or_else(changed)?,
        threads: run.ranks.iter().map(|rank| rank.threads.clone()).collect(),
        rows: index.rows.clone(),
    };
    let facts = serde_json::to_vec(&facts)?;
    let table = index.table();
    let path = run.directory.join(INDEX_FILE);
    let head = format!(
        "{FIRST_LINE}{} {} {} {}\n",
        facts.len(),
        checksum(&facts),
        table.len(),
        checksum(table)
    );
    whole_file::write(&path, PRIVATE, |file| {
        file.write_all(head.as_bytes())?;
        file.write_all(&facts)?;
        file.write_all(table)
    })?;
    Ok((head.len() + facts.len() + table.len()) as u64)
}
