//! A run whose files are open.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use trace_format::reader::RankFile;

use crate::processes::Processes;

use super::extent::ThreadExtent;
use super::facts::RankFacts;
use super::fault::{FileDiagnosis, FileFault, RunNote};
use super::kept_symbols::KeptSymbols;
use super::process::ProcessState;
use super::run_json::RunJson;
use super::samples::RankSamples;

/// One rank's file and what was read from it.
#[derive(Debug)]
pub struct RankTrace {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Its file's path below the run directory.
    pub name: PathBuf,
    /// The mapped file.
    pub file: RankFile,
    /// The facts from its definitions.
    pub facts: RankFacts,
    /// One per thread, in the order of [`RankFile::threads`].
    pub threads: Vec<ThreadExtent>,
    /// State of its process; not determined if MPI_Finalize returned.
    pub process: ProcessState,
    samples: OnceLock<RankSamples>,
}

impl RankTrace {
    pub(super) fn new(
        (name, file): (PathBuf, RankFile),
        process: ProcessState,
        threads: Vec<ThreadExtent>,
    ) -> Self {
        let facts = RankFacts::from_definitions(&file.definitions);
        Self {
            rank: file.fixed.rank,
            name,
            file,
            facts,
            threads,
            process,
            samples: OnceLock::new(),
        }
    }

    /// The samples of its code, decoded once for all who ask.
    pub(crate) fn samples(&self) -> &RankSamples {
        self.samples.get_or_init(|| RankSamples::read(&self.file))
    }

    /// Whether the begin of its elapsed time is known: MPI_Init returned, or an event was recorded.
    pub(super) fn has_begun(&self) -> bool {
        self.facts.begin_ticks.is_some()
            || self.facts.end_ticks.is_some()
            || self.threads.iter().any(|thread| thread.first_ticks.is_some())
    }

    /// Extent of the thread that called MPI first.
    pub fn main_thread(&self) -> Option<&ThreadExtent> {
        self.threads.iter().find(|thread| thread.number == 0)
    }

    /// Whether another tool recorded it: such ranks have no process.
    pub fn is_imported(&self) -> bool {
        self.file.fixed.pid == 0
    }
}

/// An opened run directory.
#[derive(Debug)]
pub struct Run {
    /// The directory as it was given.
    pub directory: PathBuf,
    /// Ranks of MPI_COMM_WORLD, whether their files were found or not.
    pub world_size: u32,
    /// The ranks whose files could be opened, ascending.
    pub ranks: Vec<RankTrace>,
    /// Ranks without a readable file, or that never returned from MPI_Init.
    pub missing: Vec<RangeInclusive<u32>>,
    /// Contents of `run.json`, if `gammachi run` wrote it.
    pub description: Option<RunJson>,
    /// Names of functions that its directory carries along.
    pub symbols: Arc<KeptSymbols>,
    pub diagnoses: Vec<FileDiagnosis<FileFault>>,
    /// Other facts that a reader should know.
    pub notes: Vec<RunNote>,
    /// Whether [`Run::anonymise`] was applied; then the date is left out, too.
    pub anonymous: bool,
    /// The processes that analyse it.
    pub processes: Processes,
    /// Positions of the ranks whose events this process reads when the run is divided.
    pub own: Range<usize>,
}

/// The extents of a file's threads.
pub(super) fn extents(file: &RankFile) -> Vec<ThreadExtent> {
    file.threads.iter().map(|thread| ThreadExtent::scan(file, thread)).collect()
}

/// The rank files of a run directory, opened, and what is wrong with the others.
pub(super) struct Opened {
    pub(super) directory: PathBuf,
    pub(super) world_size: u32,
    /// Name and file by rank.
    pub(super) by_rank: BTreeMap<u32, (PathBuf, RankFile)>,
    pub(super) diagnoses: Vec<FileDiagnosis<FileFault>>,
    /// Number of rank files of spawned worlds.
    pub(super) spawned: usize,
}

/// The numbers below `count` that are missing from an ascending sequence.
pub(super) fn gaps(present: impl Iterator<Item = u32>, count: u32) -> Vec<RangeInclusive<u32>> {
    let mut gaps = Vec::new();
    let mut next = 0;
    for number in present.chain([count]) {
        if number > next {
            gaps.push(next..=number - 1);
        }
        next = number.saturating_add(1);
    }
    gaps
}
