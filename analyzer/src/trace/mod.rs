//! Opens and validates a run directory.
//!
//! A [`Run`] contains every rank file that could be opened, the facts from its definitions
//! ([`RankFacts`]), the result of a scan of its events ([`ThreadExtent`]), and a list of faults,
//! each with its file. Nothing is repaired here: valid data is passed on, and everything else is
//! reported.

mod anonymous;
pub(crate) mod closed_files;
pub mod collect;
mod cython;
pub mod debug_files;
mod directory;
pub mod ended_ranks;
mod error;
mod extent;
mod facts;
mod fault;
pub mod gathered_symbols;
mod held_ring;
mod kept_symbols;
pub(crate) mod modules;
mod opened;
pub mod own_program;
mod process;
pub mod run_json;
pub(crate) mod samples;
mod several_processes;
pub mod snapshot;
mod source_location;
pub mod study_json;
pub mod symbols;
mod wall_clock;
mod writers;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use trace_format::reader::{FunctionTable, OpenError, RankFile};

use crate::processes::Processes;

use directory::Listing;
pub use directory::{rank_files, staged_rank_file};
pub use error::TraceError;
pub use extent::{LastCall, ThreadExtent};
pub use facts::RankFacts;
pub use fault::{FileDiagnosis, FileFault, NotBegun, RunNote};
use held_ring::CopiesLeft;
use kept_symbols::KeptSymbols;
pub use kept_symbols::SYMBOLS_JSON;
use opened::{Opened, extents, gaps};
pub use opened::{RankTrace, Run};
pub(crate) use process::KnownProcess;
pub use process::{ProcessState, host_name};
use run_json::{RUN_JSON, RunJson};
use snapshot::Snapshot;
use writers::Writers;

/// The recorder version of a run begins with this if a replay wrote it.
pub const SIMULATED: &str = "gammachi whatif";

impl Opened {
    /// Opens the files of a run directory.
    fn files_of(directory: &Path) -> Result<Self, TraceError> {
        let listing = directory::list(directory)?;
        let opened = listing.files.par_iter().map(|path| listing.open(path)).collect();
        Self::new(directory, listing, opened)
    }

    /// The run of these files, which were opened in the order of the listing.
    fn new(
        directory: &Path,
        listing: Listing,
        opened: Vec<Result<RankFile, OpenError>>,
    ) -> Result<Self, TraceError> {
        let name_of = |path: &Path| path.strip_prefix(directory).unwrap_or(path).to_owned();
        let mut diagnoses = listing.diagnoses;
        let mut files = Vec::new();
        for (path, result) in listing.files.iter().zip(opened) {
            match result {
                Ok(file) => files.push(file),
                Err(error) => diagnoses.push(FileDiagnosis {
                    file: name_of(path),
                    what: match error {
                        OpenError::Io { source, .. } => FileFault::CannotRead(source.to_string()),
                        OpenError::Header { what, .. } => FileFault::Header(what),
                    },
                }),
            }
        }
        let none_readable = |diagnoses: &[FileDiagnosis<FileFault>]| TraceError::NoneReadable {
            directory: directory.to_owned(),
            files: listing.files.len(),
            first: diagnoses.first().map(ToString::to_string).unwrap_or_default(),
        };
        let Some(world_size) = usual_world_size(&files) else {
            return Err(none_readable(&diagnoses));
        };
        let mut by_rank = BTreeMap::new();
        for file in files {
            let name = name_of(&file.path);
            match mismatch(&file, &name, world_size) {
                Some(what) => diagnoses.push(FileDiagnosis { file: name, what }),
                None => {
                    by_rank.insert(file.fixed.rank, (name, file));
                }
            }
        }
        if by_rank.is_empty() {
            return Err(none_readable(&diagnoses));
        }
        let (directory, spawned) = (directory.to_owned(), listing.spawned);
        Ok(Self { directory, world_size, by_rank, diagnoses, spawned })
    }

    /// Separates the files from the rest.
    fn take_ranks(mut self) -> (BTreeMap<u32, (PathBuf, RankFile)>, Self) {
        (std::mem::take(&mut self.by_rank), self)
    }
}

/// A file and the state of the process that writes it. If the process ended since the file was opened, the file is opened
/// again: it may have been completed.
fn with_writer(
    (writers, copies): (&Writers, &CopiesLeft),
    name: PathBuf,
    file: RankFile,
) -> (PathBuf, RankFile, ProcessState) {
    let process = writers.state(&file);
    if process.runs() && writers.may_run() {
        return (name, copies.held(file), process);
    }
    if process != ProcessState::Gone || !writers.may_run() {
        return (name, file, process);
    }
    let file = RankFile::open(&file.path).unwrap_or(file);
    let process = writers.state(&file);
    (name, file, process)
}

impl Run {
    /// Whether every rank of the world has a file and returned from MPI_Finalize.
    pub fn all_finished(&self) -> bool {
        self.missing.is_empty() && self.ranks.iter().all(|rank| rank.facts.finalized())
    }

    /// Number of calls that were recorded, of all ranks and threads.
    pub fn calls(&self) -> u64 {
        let threads = self.ranks.iter().flat_map(|rank| &rank.threads);
        threads.map(|thread| thread.calls).sum()
    }

    /// Whether it was written by `gammachi whatif --out`, so that its times were not measured.
    pub fn is_simulated(&self) -> bool {
        self.ranks.iter().any(|rank| rank.file.header.recorder_version.starts_with(SIMULATED))
    }

    /// When it began, in nanoseconds since 1970: from `run.json`, or else from the ranks' clocks.
    pub fn begun_ns(&self) -> Option<u64> {
        let anchors = self.ranks.iter().flat_map(|rank| &rank.facts.anchors);
        let described = self.description.as_ref().map(|run| run.start.unix_ns);
        described.or_else(|| anchors.map(|anchor| anchor.realtime_ns).min())
    }

    /// The user's parameters: from the rank files, or else from `run.json`.
    pub fn parameters(&self) -> Vec<(String, String)> {
        let of_files = self.ranks.iter().map(|rank| &rank.file.header.parameters);
        let found = of_files.into_iter().find(|parameters| !parameters.is_empty()).cloned();
        found.or_else(|| Some(self.description.as_ref()?.params.0.clone())).unwrap_or_default()
    }

    /// Opens a run directory and validates its rank files.
    ///
    /// # Errors
    /// If there is no such directory, or no rank file in it that can be opened. If only some files
    /// cannot be opened, each of them is a diagnosis.
    pub fn open(directory: &Path) -> Result<Self, TraceError> {
        Self::open_with_extents(directory, &|_| None)
    }

    /// Like [`Run::open`], but does not scan files for which `known` returns the result of an
    /// earlier scan, one [`ThreadExtent`] per thread.
    ///
    /// # Errors
    /// The same as [`Run::open`].
    pub fn open_with_extents(
        directory: &Path,
        known: &(dyn Fn(&Path) -> Option<Vec<ThreadExtent>> + Sync),
    ) -> Result<Self, TraceError> {
        let opened = Opened::files_of(directory)?;
        let scan = |(name, file, process): (PathBuf, RankFile, ProcessState)| {
            let known = known(&name).filter(|threads| {
                threads.iter().map(|t| t.number).eq(file.threads.iter().map(|t| t.number))
            });
            let threads = known.unwrap_or_else(|| extents(&file));
            RankTrace::new((name, file), process, threads)
        };
        let (by_rank, rest) = opened.take_ranks();
        // Before events are read, which may take long: the state has to be that of the moment that the file shows.
        let writers = Writers::of_directory(directory);
        let copies = CopiesLeft::new();
        let files = by_rank
            .into_par_iter()
            .map(|(_, (name, file))| with_writer((&writers, &copies), name, file));
        let files: Vec<(PathBuf, RankFile, ProcessState)> = files.collect();
        let ranks: Vec<RankTrace> = files.into_par_iter().map(scan).collect();
        let own = 0..ranks.len();
        Ok(Self::new(rest, ranks, (Processes::alone(), own)))
    }

    /// The run of these ranks, ascending; `own` are the positions that this process reads.
    fn new(
        opened: Opened,
        mut ranks: Vec<RankTrace>,
        (processes, own): (Processes, Range<usize>),
    ) -> Self {
        let Opened { directory, world_size, mut diagnoses, spawned, .. } = opened;
        for rank in &ranks {
            diagnoses.extend(diagnoses_of(rank));
        }
        let own_ranks: Vec<u32> = ranks[own].iter().map(|rank| rank.rank).collect();
        // Nothing relates these ranks to the others in time.
        let some_began = ranks.iter().any(RankTrace::has_begun);
        for rank in ranks.extract_if(.., |rank| some_began && !rank.has_begun()) {
            diagnoses.push(FileDiagnosis { file: rank.name.clone(), what: not_begun(&rank) });
        }
        let position = |limit: u32| ranks.partition_point(|rank| rank.rank < limit);
        let own = match (own_ranks.first(), own_ranks.last()) {
            (Some(first), Some(last)) => position(*first)..position(last.saturating_add(1)),
            _ => 0..0,
        };
        let missing = gaps(ranks.iter().map(|rank| rank.rank), world_size);
        let mut notes = Vec::new();
        if ranks.iter().any(|rank| rank.file.header.recorder_version.starts_with(SIMULATED)) {
            notes.push(RunNote::Simulated);
        }
        if spawned > 0 {
            notes.push(RunNote::Spawned { files: spawned });
        }
        if let Some(rank) = ranks.iter().find(|rank| rank.file.header.mpi_family == "unknown") {
            notes.push(RunNote::UnknownMpi { library: rank.file.header.mpi_library.clone() });
        }
        let left_out = ranks.iter().map(|rank| rank.facts.left_out);
        let (communicators, objects) = left_out.fold((0, 0), |sum: (u64, u64), one| {
            (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1))
        });
        if (communicators, objects) != (0, 0) {
            notes.push(RunNote::FreedInTotals { communicators, objects });
        }
        let description = match RunJson::read(&directory) {
            Ok(description) => Some(description),
            Err(error) if error.is_absent() => None,
            Err(error) => {
                let what = FileFault::Description(error.to_string());
                diagnoses.push(FileDiagnosis { file: RUN_JSON.into(), what });
                None
            }
        };
        if let Some(snapshot) = description.as_ref().and_then(|run| run.snapshot.as_ref()) {
            let Snapshot { reason, at, rank, .. } = snapshot;
            let (reason, rank, utc) = (*reason, *rank, Some(at.utc.clone()));
            notes.insert(0, RunNote::Snapshot { reason, rank, utc });
        }
        let symbols = KeptSymbols::read(&directory).unwrap_or_else(|error| {
            let again = "remove it, or make it again with gammachi collect RUN --symbols";
            let what = FileFault::Description(format!("{error}; {again}"));
            diagnoses.push(FileDiagnosis { file: SYMBOLS_JSON.into(), what });
            KeptSymbols::default()
        });
        let symbols = Arc::new(symbols);
        let anonymous = false;
        Self {
            directory,
            world_size,
            ranks,
            missing,
            description,
            symbols,
            diagnoses,
            notes,
            anonymous,
            processes,
            own,
        }
    }

    /// Checks that everything read since the run was opened was readable. Call this before showing
    /// figures.
    ///
    /// # Errors
    /// Names the first file that was truncated since, or whose file system failed.
    pub fn check_readable(&self) -> Result<(), TraceError> {
        let unreadable = self.ranks.iter().find_map(|rank| {
            // If it was so when the file was opened, it is among the diagnoses, which are shown.
            let what = rank.file.unreadable()?;
            (!rank.file.diagnoses.contains(&what)).then(|| (rank, what.to_string()))
        });
        match unreadable {
            Some((rank, what)) => {
                Err(TraceError::Unreadable { file: self.directory.join(&rank.name), what })
            }
            None => Ok(()),
        }
    }

    /// Position of a rank in [`Run::ranks`].
    pub fn position_of(&self, rank: u32) -> Option<usize> {
        // If no file is missing, the position is the rank.
        let same = self.ranks.get(rank as usize).filter(|trace| trace.rank == rank);
        same.map(|_| rank as usize)
            .or_else(|| self.ranks.binary_search_by_key(&rank, |trace| trace.rank).ok())
    }

    /// What `make` makes of the functions of each rank's file, by position. Ranks with the same
    /// functions share it, as all ranks of a program do.
    pub fn of_functions<T>(&self, mut make: impl FnMut(&[String]) -> T) -> Vec<Arc<T>> {
        let mut made: Vec<(&Arc<FunctionTable>, Arc<T>)> = Vec::new();
        let of_ranks = self.ranks.iter().map(|rank| {
            let table = rank.file.function_table();
            let known = made.iter().find(|(known, _)| Arc::ptr_eq(known, table));
            known.map(|(_, of_table)| of_table.clone()).unwrap_or_else(|| {
                made.push((table, Arc::new(make(&table.names))));
                made[made.len() - 1].1.clone()
            })
        });
        of_ranks.collect()
    }

    /// Number of ranks without a readable file.
    pub fn missing_count(&self) -> u32 {
        self.missing.iter().map(|range| range.end() - range.start() + 1).sum()
    }

    /// Names of all regions of the run.
    pub fn region_names(&self) -> BTreeSet<&str> {
        let names = self.ranks.iter().flat_map(|rank| rank.facts.regions.values());
        names.map(String::as_str).collect()
    }
}

/// The world size that most files state; in a tie the larger.
fn usual_world_size(files: &[RankFile]) -> Option<u32> {
    let mut votes = BTreeMap::new();
    for file in files {
        *votes.entry(file.fixed.world_size).or_insert(0u32) += 1;
    }
    votes.into_iter().max_by_key(|&(size, count)| (count, size)).map(|(size, _)| size)
}

/// Why a file that could be opened does not belong to the run.
fn mismatch(file: &RankFile, name: &Path, world_size: u32) -> Option<FileFault> {
    let fixed = &file.fixed;
    if fixed.world_size != world_size {
        return Some(FileFault::OtherRun { ranks: fixed.world_size, world_size });
    }
    let rank = fixed.rank;
    if fixed.world != 0 || rank >= world_size {
        return Some(FileFault::NoSuchRank { rank, world: fixed.world, world_size });
    }
    let expected = trace_format::files::rank_file_path(0, rank);
    (expected != name).then_some(FileFault::OtherName { rank, expected })
}

fn diagnoses_of(rank: &RankTrace) -> Vec<FileDiagnosis<FileFault>> {
    let of_file = rank.file.diagnoses.iter().cloned().map(FileFault::Damaged);
    let of_threads = rank.threads.iter().flat_map(|extent| {
        let thread = extent.number;
        let damage = extent.damage.clone();
        let damage = damage.map(|damage| FileFault::DamagedEvents { thread, damage });
        let calls = extent.overlaps;
        let overlaps = (calls > 0).then_some(FileFault::Overlaps { thread, calls });
        damage.into_iter().chain(overlaps)
    });
    let stopped = rank.facts.stopped.iter();
    let stopped = stopped.map(|(_, reason)| FileFault::Stopped(reason.clone()));
    of_file
        .chain(of_threads)
        .chain(stopped)
        .chain(rank.facts.end_before_begin.then_some(FileFault::EndBeforeBegin))
        .map(|what| FileDiagnosis { file: rank.name.clone(), what })
        .collect()
}

/// The fault of a rank without a begin.
fn not_begun(rank: &RankTrace) -> FileFault {
    let state = match rank.process {
        ProcessState::Gone => NotBegun::Died,
        _ if rank.process.runs() => NotBegun::Runs,
        _ => NotBegun::Unknown,
    };
    FileFault::NotBegun { rank: rank.rank, state }
}

#[cfg(test)]
mod tests;
