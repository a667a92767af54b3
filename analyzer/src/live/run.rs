//! A run that is going on, and its ranks on this host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::trace::closed_files::ClosedFiles;
use crate::trace::{TraceError, rank_files};

use super::counter;
use super::rank::{LiveRank, RankState};
use super::seconds::SPAN_S;

/// How long the counter is compared with the system's clock at least.
const COMPARED: Duration = Duration::from_millis(20);

/// A run that is going on.
#[derive(Debug)]
pub struct LiveRun {
    /// The run directory.
    pub directory: PathBuf,
    ranks: BTreeMap<PathBuf, LiveRank>,
    /// Hosts of ranks that cannot be followed from here, and the number of these ranks.
    elsewhere: BTreeMap<PathBuf, String>,
    closed: ClosedFiles,
    /// Counter and time when it was opened.
    begun: (u64, Instant),
}

impl LiveRun {
    /// Opens a run.
    ///
    /// # Errors
    /// The directory cannot be read, or has no rank file that can be.
    pub fn open(directory: &Path) -> Result<Self, TraceError> {
        allow_many_files();
        let mut run = Self {
            directory: directory.to_owned(),
            ranks: BTreeMap::new(),
            elsewhere: BTreeMap::new(),
            closed: ClosedFiles::new(),
            begun: (counter::read(), Instant::now()),
        };
        let first = run.find_ranks()?;
        // So that the counter's rate is known to some parts in a million.
        std::thread::sleep(COMPARED.saturating_sub(run.begun.1.elapsed()));
        match (run.ranks.is_empty() && run.elsewhere.is_empty(), first) {
            (true, first) => Err(TraceError::NoneReadable {
                directory: directory.to_owned(),
                files: 0,
                first: first.unwrap_or_default(),
            }),
            _ => Ok(run),
        }
    }

    /// Opens the files of ranks that have begun since. Returns why the first could not be.
    fn find_ranks(&mut self) -> Result<Option<String>, TraceError> {
        let mut unreadable = None;
        for path in rank_files(&self.directory)? {
            if self.ranks.contains_key(&path) || self.elsewhere.contains_key(&path) {
                continue;
            }
            self.closed.add(&path);
            match LiveRank::open(&path) {
                // A rank that has finished needs no process.
                Ok(mut rank) => {
                    if rank.state == RankState::Finished || rank.is_here() {
                        self.ranks.insert(path, rank);
                    } else {
                        self.elsewhere.insert(path, rank.host().to_owned());
                    }
                }
                // Its process may be writing the header.
                Err(error) => unreadable = unreadable.or(Some(error.to_string())),
            }
        }
        Ok(unreadable)
    }

    /// Notes what the windows show. To be called several times a second: a window has the last 3,200 calls.
    pub fn look(&mut self) {
        let span = (SPAN_S * self.ticks_per_s()) as u64;
        self.ranks.values_mut().for_each(|rank| rank.look(span));
    }

    /// Looks at the processes, and for new ranks.
    pub fn glance(&mut self) {
        // If the directory is gone, the ranks that are known go on.
        let _ = self.find_ranks();
        let ticks_per_s = self.ticks_per_s();
        self.ranks.values_mut().for_each(|rank| rank.glance(ticks_per_s));
        // Last, so that of ranks that have ended by now it is known.
        for (path, closed) in self.closed.take() {
            if let Some(rank) = self.ranks.get_mut(&path) {
                rank.let_go(closed);
            }
        }
    }

    /// Rate of the hardware's counter, measured since the run was opened.
    pub fn ticks_per_s(&self) -> f64 {
        let (ticks, time) = self.begun;
        let since_s = time.elapsed().as_secs_f64().max(1e-6);
        counter::read().wrapping_sub(ticks) as f64 / since_s
    }

    /// The ranks that are followed, in the order of their files.
    pub fn ranks(&self) -> impl Iterator<Item = &LiveRank> + Clone {
        self.ranks.values()
    }

    pub(super) fn ranks_mut(&mut self) -> impl Iterator<Item = &mut LiveRank> {
        self.ranks.values_mut()
    }

    /// Hosts of ranks that cannot be followed from here, one for each of these ranks.
    pub fn elsewhere(&self) -> impl Iterator<Item = &str> {
        self.elsewhere.values().map(String::as_str)
    }

    /// Counter when the first rank left MPI_Init; `None` if none has.
    pub fn begin_ticks(&self) -> Option<u64> {
        self.ranks().filter_map(|rank| rank.begin_ticks).min()
    }

    /// Whether all ranks of this host have returned from MPI_Finalize. Nothing is known of their counter then: the host may
    /// have been started again.
    pub fn has_finished(&self) -> bool {
        self.ranks().all(|rank| rank.state == RankState::Finished)
    }

    /// Whether no rank will do anything any more.
    pub fn has_ended(&self) -> bool {
        self.ranks().all(|rank| matches!(rank.state, RankState::Dead | RankState::Finished))
    }
}

/// Each rank needs some open files, and a host can have hundreds of ranks: more than this process may have at first.
fn allow_many_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Without it, that many ranks cannot be followed.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
