//! Opens a run in several processes. Each opens all files for their headers and definitions, and
//! scans the events of its own ranks alone.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use trace_format::reader::RankFile;

use super::{Opened, RankTrace, Run, ThreadExtent, TraceError, extents, host_name};
use crate::processes::Processes;

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
        let opened = agree(directory, processes, Opened::files_of(directory))?;
        let (by_rank, opened) = opened.take_ranks();
        let files: Vec<(PathBuf, RankFile)> = by_rank.into_values().collect();
        let bytes: Vec<u64> = files.iter().map(|(_, file)| length(file)).collect();
        let own = processes.divide(&bytes)[processes.number()].clone();
        let scanned: Vec<Vec<ThreadExtent>> =
            files[own.clone()].par_iter().map(|(_, file)| extents(file)).collect();
        let threads = processes.join(scanned);
        let ranks = files.into_iter().zip(threads);
        let mut ranks: Vec<RankTrace> =
            ranks.map(|(file, threads)| RankTrace::new(file, threads)).collect();
        let states = ranks.iter().map(|rank| rank.process).collect();
        // A process can be looked up on its own host only. What the first process sees counts, as
        // it would alone, but a program that runs anywhere changes its files.
        let states = processes.share::<Vec<_>>(states);
        let runs = |at: usize| states.iter().any(|of_process| of_process[at].runs());
        if let Some(at) = (0..ranks.len()).find(|at| runs(*at)) {
            return Err(TraceError::Runs { directory: directory.to_owned(), rank: ranks[at].rank });
        }
        for (rank, state) in ranks.iter_mut().zip(&states[0]) {
            rank.process = *state;
        }
        Ok(Self::of(opened, ranks, (processes.clone(), own)))
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

/// Fails on all processes unless all found the same files.
fn agree(
    directory: &Path,
    processes: &Processes,
    opened: Result<Opened, TraceError>,
) -> Result<Opened, TraceError> {
    let found = opened.as_ref().map(digest).map_err(ToString::to_string);
    let all = processes.share(Opening { host: host_name(), found });
    let opened = opened?;
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
    Ok(opened)
}

/// A number that differs if the processes would not read the same.
fn digest(opened: &Opened) -> u64 {
    let mut hasher = DefaultHasher::new();
    opened.directory.hash(&mut hasher);
    (opened.world_size, opened.spawned).hash(&mut hasher);
    for diagnosis in &opened.diagnoses {
        diagnosis.to_string().hash(&mut hasher);
    }
    for (rank, (name, file)) in &opened.by_rank {
        (rank, name, length(file), file.definitions.len()).hash(&mut hasher);
        file.threads.iter().for_each(|thread| thread.number.hash(&mut hasher));
        file.diagnoses.iter().for_each(|one| one.to_string().hash(&mut hasher));
    }
    hasher.finish()
}

/// Size of a file on disk in bytes.
fn length(file: &RankFile) -> u64 {
    std::fs::metadata(&file.path).map_or(0, |metadata| metadata.len())
}
