//! Opens a run in several processes. Each opens a part of the files, and tells the others what is in
//! them but the events. Then each scans the events of its own ranks; a file of another rank is mapped
//! only if its events are read.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use trace_format::layout::FIXED_HEADER_BYTES;
use trace_format::reader::{OpenError, Outlines, RankFile};
use trace_format::regular_file;

use crate::processes::Processes;

use super::directory::{self, Listing};
use super::error::TraceError;
use super::extent::ThreadExtent;
use super::opened::{Opened, RankTrace, Run, extents};
use super::process::host_name;
use super::writers::Writers;

/// What one process found in the directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Opening {
    host: String,
    /// A digest of the files, or why there are none.
    found: Result<u64, String>,
}

impl Run {
    /// Like [`Run::open`], in several processes that all call this. The ranks are divided by the
    /// sizes of their files.
    ///
    /// # Errors
    /// Also if the processes do not find the same files, or the program is still running.
    pub fn open_in(directory: &Path, processes: &Processes) -> Result<Self, TraceError> {
        if processes.is_alone() {
            return Self::open(directory);
        }
        let opened = agree(directory, processes, open_together(directory, processes)?, digest)?;
        let (by_rank, opened) = opened.take_ranks();
        let files: Vec<(PathBuf, RankFile)> = by_rank.into_values().collect();
        let bytes: Vec<u64> = files.iter().map(|(_, file)| file.file_bytes()).collect();
        let own = processes.divide(&bytes)[processes.number()].clone();
        let scanned: Vec<Vec<ThreadExtent>> =
            files[own.clone()].par_iter().map(|(_, file)| extents(file)).collect();
        let threads = processes.join(scanned);
        let ranks = files.into_iter().zip(threads);
        let writers = Writers::of_directory(directory);
        let of = |(file, threads): ((PathBuf, RankFile), _)| {
            let process = writers.state(&file.1);
            RankTrace::new(file, process, threads)
        };
        let mut ranks: Vec<RankTrace> = ranks.map(of).collect();
        let states = ranks.iter().map(|rank| rank.process).collect();
        // A process can be looked up on its own host only. What the first process sees counts, as
        // it would alone, but a program that runs anywhere changes its files.
        let states = processes.share::<Vec<_>>(states);
        let runs =
            |at: usize| writers.may_run() && states.iter().any(|of_process| of_process[at].runs());
        if let Some(at) = (0..ranks.len()).find(|at| runs(*at)) {
            return Err(TraceError::Runs { directory: directory.to_owned(), rank: ranks[at].rank });
        }
        for (rank, state) in ranks.iter_mut().zip(&states[0]) {
            rank.process = *state;
        }
        Ok(Self::new(opened, ranks, (processes.clone(), own)))
    }

    /// Like [`Run::check_readable`], for what all processes have read; all call this.
    ///
    /// # Errors
    /// As [`Run::check_readable`], on all processes.
    pub fn check_readable_in_all(&self) -> Result<(), TraceError> {
        if self.processes.is_alone() {
            return self.check_readable();
        }
        let own = self.check_readable();
        let found =
            self.processes.share((host_name(), own.as_ref().err().map(ToString::to_string)));
        own?;
        let other = (0..).zip(found).find_map(|(n, (host, what))| Some((n, host, what?)));
        match other {
            Some((process, host, what)) => Err(TraceError::OnProcess { process, host, what }),
            None => Ok(()),
        }
    }
}

/// Opens the files of a run, each in one process, and those that are no complete rank files in all.
/// The outer error is that of all processes, the inner one this process's own.
fn open_together(
    directory: &Path,
    processes: &Processes,
) -> Result<Result<Opened, TraceError>, TraceError> {
    let listing = agree(directory, processes, directory::list(directory), digest_of_listing)?;
    let count = listing.files.len();
    let begin = |process: usize| process * count / processes.count();
    let part = |process: usize| begin(process)..begin(process + 1);
    let open = |path: &PathBuf| listing.open(path);
    let own: Vec<Result<RankFile, OpenError>> =
        listing.files[part(processes.number())].par_iter().map(open).collect();
    let outlines = processes.share(Outlines::from_files(own.iter().map(|file| file.as_ref().ok())));
    let mut opened = Vec::with_capacity(count);
    let mut own = Some(own);
    for (process, outlines) in outlines.into_iter().enumerate() {
        let paths: &[PathBuf] = &listing.files[part(process)];
        match own.take_if(|_| process == processes.number()) {
            Some(own) => opened.extend(own),
            None => {
                let files = outlines.files(paths).into_par_iter().zip(paths);
                let open_rest = |(file, path): (Option<RankFile>, _)| {
                    file.map_or_else(|| open(path), |file| Ok(listing.as_one_of_all(file)))
                };
                opened.par_extend(files.map(open_rest));
            }
        }
    }
    Ok(Opened::new(directory, listing, opened))
}

/// Fails on all processes unless all found the same, by its digest.
fn agree<T>(
    directory: &Path,
    processes: &Processes,
    result: Result<T, TraceError>,
    digest: impl Fn(&T) -> u64,
) -> Result<T, TraceError> {
    let found = result.as_ref().map(digest).map_err(ToString::to_string);
    let all = processes.share(Opening { host: host_name(), found });
    let result = result?;
    for (process, Opening { host, found }) in all.iter().enumerate() {
        match found {
            Ok(_) if *found == all[0].found => {}
            Ok(_) => {
                return Err(TraceError::FilesDiffer {
                    directory: directory.to_owned(),
                    process,
                    host: host.clone(),
                    first_host: all[0].host.clone(),
                });
            }
            Err(what) => {
                let (host, what) = (host.clone(), what.clone());
                return Err(TraceError::OnProcess { process, host, what });
            }
        }
    }
    Ok(result)
}

/// A number that differs if the processes list other files, or the first is that of another run. A
/// difference between other files shows when one of them is read.
fn digest_of_listing(listing: &Listing) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&listing.files, listing.spawned).hash(&mut hasher);
    let mut start = [0; FIXED_HEADER_BYTES];
    let first = listing.files.first().and_then(|path| regular_file::open(path).ok());
    let read = first.as_ref().and_then(|file| file.read_at(&mut start, 0).ok());
    let bytes = first.and_then(|file| Some(file.metadata().ok()?.len()));
    (read, start, bytes).hash(&mut hasher);
    hasher.finish()
}

/// A number that differs if the processes would not say the same of the files.
fn digest(opened: &Opened) -> u64 {
    let mut hasher = DefaultHasher::new();
    opened.directory.hash(&mut hasher);
    (opened.world_size, opened.spawned).hash(&mut hasher);
    for diagnosis in &opened.diagnoses {
        diagnosis.to_string().hash(&mut hasher);
    }
    for (rank, (name, file)) in &opened.by_rank {
        (rank, name, file.file_bytes(), file.definitions.len()).hash(&mut hasher);
        file.threads.iter().for_each(|thread| thread.number.hash(&mut hasher));
        file.diagnoses.iter().for_each(|one| one.to_string().hash(&mut hasher));
    }
    hasher.finish()
}
