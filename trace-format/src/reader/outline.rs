//! Everything about rank files but their events, in a form that can be sent to other processes. So
//! each of many processes opens a part of a run's files, and maps others only to read their events.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::area::Area;
use super::contents::Contents;
use super::samples::SampleChunk;
use super::stacks::AskedStack;
use super::{Diagnosis, FunctionTable, RankFile, Thread, Totals};
use crate::counter_kind::CounterKind;
use crate::header::{Definition, FileHeader, is_finalized};
use crate::layout::FixedHeader;
use crate::plain::{Plain, bytes_of, bytes_of_all, read_plain};
use crate::totals::TotalsEntry;

/// The outlines of several rank files, in their order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outlines {
    /// Names of functions, one per line. Most files have the same.
    functions: Vec<String>,
    /// `None` for a file that every process has to open itself.
    files: Vec<Option<Outline>>,
}

/// A [`RankFile`] without its events.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Outline {
    fixed: Vec<u8>,
    header: FileHeader,
    definitions: Vec<Definition>,
    threads: Vec<ThreadOutline>,
    samples: Vec<SampleChunk>,
    stacks: Vec<AskedStack>,
    diagnoses: Vec<Diagnosis>,
    /// Index of its names of functions.
    functions: usize,
    bytes: usize,
}

/// A [`Thread`].
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ThreadOutline {
    number: u32,
    os_id: u32,
    minor_faults: u64,
    totals: Option<TotalsOutline>,
    totals_at: usize,
    next_sequence: u32,
    chunks: Vec<Area>,
}

/// [`Totals`].
#[derive(Debug, Clone, Serialize, Deserialize)]
struct TotalsOutline {
    header: Vec<u8>,
    calls: Vec<u8>,
    collectives: Vec<(Option<u16>, u64)>,
    failed: Vec<(u16, u32, u64)>,
}

impl Outlines {
    /// The outlines of these files; `None` for one that could not be opened.
    pub fn from_files<'a>(files: impl IntoIterator<Item = Option<&'a RankFile>>) -> Self {
        let mut tables: Vec<&'a Arc<FunctionTable>> = Vec::new();
        let mut outlines = Vec::new();
        for file in files {
            outlines.push(file.filter(|file| file.is_outlined()).map(|file| {
                let is_known = |table: &&Arc<FunctionTable>| Arc::ptr_eq(table, &file.functions);
                let known = tables.iter().position(is_known);
                Outline::new(
                    file,
                    known.unwrap_or_else(|| {
                        tables.push(&file.functions);
                        tables.len() - 1
                    }),
                )
            }));
        }
        let functions = tables.into_iter().map(|table| table.names.join("\n")).collect();
        Self { functions, files: outlines }
    }

    /// The files with these paths, in the order of [`Outlines::from_files`]. `None` for one that every
    /// process has to open itself.
    pub fn files(self, paths: &[impl AsRef<Path>]) -> Vec<Option<RankFile>> {
        let tables: Vec<Arc<FunctionTable>> =
            self.functions.into_iter().map(FunctionTable::shared).collect();
        let files = self.files.into_iter().zip(paths);
        files.map(|(outline, path)| outline?.file(path.as_ref(), &tables)).collect()
    }
}

impl Outline {
    fn new(file: &RankFile, functions: usize) -> Self {
        Self {
            fixed: bytes_of(&file.fixed).to_vec(),
            header: file.header.clone(),
            definitions: file.definitions.clone(),
            threads: file.threads.iter().map(ThreadOutline::new).collect(),
            samples: file.samples.clone(),
            stacks: file.stacks.clone(),
            diagnoses: file.diagnoses.clone(),
            functions,
            bytes: file.contents.len(),
        }
    }

    fn file(self, path: &Path, tables: &[Arc<FunctionTable>]) -> Option<RankFile> {
        let fixed: FixedHeader = read_plain(&self.fixed)?;
        Some(RankFile {
            path: path.to_owned(),
            fixed,
            counter: CounterKind::from_number(fixed.counter)?,
            header: self.header,
            definitions: self.definitions,
            threads: self.threads.into_iter().map(ThreadOutline::thread).collect::<Option<_>>()?,
            samples: self.samples,
            stacks: self.stacks,
            diagnoses: self.diagnoses,
            outrun: false,
            functions: tables.get(self.functions)?.clone(),
            cached: Mutex::new(VecDeque::new()),
            contents: Contents::unmapped(path, fixed, self.bytes),
        })
    }
}

impl ThreadOutline {
    fn new(thread: &Thread) -> Self {
        let Thread { number, os_id, minor_faults, totals, totals_at, next_sequence, chunks } =
            thread;
        Self {
            number: *number,
            os_id: *os_id,
            minor_faults: *minor_faults,
            totals: totals.as_ref().map(|totals| TotalsOutline {
                header: bytes_of(&totals.header).to_vec(),
                calls: bytes_of_all(&totals.calls).to_vec(),
                collectives: totals.collectives.clone(),
                failed: totals.failed.clone(),
            }),
            totals_at: *totals_at,
            next_sequence: *next_sequence,
            chunks: chunks.clone(),
        }
    }

    fn thread(self) -> Option<Thread> {
        let Self { number, os_id, minor_faults, totals, totals_at, next_sequence, chunks } = self;
        let totals = match totals {
            Some(totals) => Some(Totals {
                header: read_plain(&totals.header)?,
                calls: all_of::<TotalsEntry>(&totals.calls)?,
                collectives: totals.collectives,
                failed: totals.failed,
            }),
            None => None,
        };
        Some(Thread { number, os_id, minor_faults, totals, totals_at, next_sequence, chunks })
    }
}

impl RankFile {
    /// Whether an outline and the file are all there is to know: it is complete, and all its bytes are
    /// in the file.
    pub(super) fn is_outlined(&self) -> bool {
        is_finalized(&self.definitions) && self.contents.unreadable_from().is_none()
    }
}

/// Plain values from their bytes.
fn all_of<T: Plain>(bytes: &[u8]) -> Option<Vec<T>> {
    bytes.chunks(size_of::<T>()).map(read_plain).collect()
}
