//! A run that is going on, and its ranks on this host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::trace::{TraceError, rank_files};

use super::closings::Closings;
use super::counter;
use super::first_death::Closing;
use super::rank::{LiveRank, RankState};
use super::seconds::SPAN_S;

/// How long the counter is compared with the system's clock at least.
const COMPARED: Duration = Duration::from_millis(20);
/// How often new ranks are looked for once all are known: the program may start others.
const SEARCH: Duration = Duration::from_secs(1);

/// A run that is going on.
#[derive(Debug)]
pub struct LiveRun {
    /// The run directory.
    pub directory: PathBuf,
    ranks: BTreeMap<PathBuf, LiveRank>,
    /// Hosts of ranks that cannot be followed from here, and the number of these ranks.
    elsewhere: BTreeMap<PathBuf, String>,
    closed: Closings,
    /// When ranks were looked for.
    searched: Option<Instant>,
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
            closed: Closings::new(),
            searched: None,
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
        let ticks_per_s = self.ticks_per_s();
        let span = (SPAN_S * ticks_per_s) as u64;
        self.ranks.values_mut().for_each(|rank| rank.look(span, ticks_per_s));
    }

    /// Looks at the processes, and for new ranks.
    pub fn glance(&mut self) {
        // If the directory is gone, the ranks that are known go on.
        let known = self.ranks.len() + self.elsewhere.len();
        let expected = self.ranks().next().map_or(0, LiveRank::world_size);
        if known < expected || self.searched.is_none_or(|at| at.elapsed() >= SEARCH) {
            let _ = self.find_ranks();
            self.searched = Some(Instant::now());
        }
        self.ranks.values_mut().for_each(LiveRank::glance);
        // Last, so that of ranks that have ended by now it is known.
        self.note_closed();
    }

    /// From here on, it is known to a fraction of a millisecond when processes let go of their files.
    pub fn note_closings_at_once(&mut self) {
        self.closed.note_at_once();
    }

    /// Notes which processes have let go of their files. Returns up to when.
    fn note_closed(&mut self) -> Instant {
        let (closed, known_to) = self.closed.take();
        for (path, closed) in closed {
            if let Some(rank) = self.ranks.get_mut(&path) {
                rank.let_go(closed);
            }
        }
        known_to
    }

    /// The first rank that died on this host, or is about to, and up to when that is known. `otherwise`: the first if
    /// nothing is known of files.
    pub(super) fn look_for_deaths(&mut self, otherwise: Option<u32>) -> (Option<Closing>, Instant) {
        let known_to = self.note_closed();
        let ranks = self.ranks.values_mut().filter(|rank| rank.closed.is_some());
        ranks.for_each(LiveRank::glance);
        let is_dead = |rank: &LiveRank| rank.state == RankState::Dead;
        let dying = self.ranks().filter(|rank| {
            is_dead(rank) || rank.closed.is_some() && rank.state != RankState::Finished
        });
        let order = |rank: &&LiveRank| (rank.closed.is_none(), rank.closed.map(|of| of.order));
        let first = dying.clone().min_by_key(order);
        let closing = first.map(|first| Closing {
            rank: match first.closed {
                Some(_) => first.rank,
                None => otherwise.unwrap_or(first.rank),
            },
            // Of which the order is not known may have died before.
            after: match dying.clone().all(|rank| rank.closed.is_some()) {
                true => first.closed.map(|closed| closed.after),
                false => None,
            },
            before: first.closed.map_or(known_to, |closed| closed.seen),
            is_over: dying.clone().any(is_dead),
        });
        (closing, known_to)
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

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::os::unix::fs::FileExt;

    use memmap2::MmapMut;

    use super::*;
    use crate::synthetic_trace::{RunDirectory, SyntheticRank};
    use crate::trace::host_name;

    /// Two ranks that this process writes: it has mapped their files. The descriptors are what it lets go of.
    struct Ranks {
        run: LiveRun,
        descriptors: Vec<Option<File>>,
        _mappings: Vec<MmapMut>,
        _directory: RunDirectory,
    }

    fn rank(number: u32) -> SyntheticRank {
        let mut rank = SyntheticRank::complete(number, 2, 1000, 2000);
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        (rank.header.host, rank.header.boot_id) = (host_name(), boot_id.trim().to_owned());
        rank.fixed.pid = std::process::id();
        rank
    }

    fn watch_two_ranks() -> Ranks {
        let directory = RunDirectory::new();
        let open = |number| {
            let path = directory.file(number);
            OpenOptions::new().read(true).write(true).open(path).unwrap()
        };
        let map = |number| {
            directory.write(rank(number).killed());
            // SAFETY: nothing reads or writes through it.
            unsafe { MmapMut::map_mut(&open(number)) }.unwrap()
        };
        let mappings = (0..2).map(map).collect();
        let descriptors = (0..2).map(|number| Some(open(number))).collect();
        let mut run = LiveRun::open(directory.path()).unwrap();
        run.note_closings_at_once();
        run.look();
        run.glance();
        Ranks { run, descriptors, _mappings: mappings, _directory: directory }
    }

    fn dying(ranks: &mut Ranks) -> Option<(u32, bool)> {
        let (closing, _) = ranks.run.look_for_deaths(None);
        closing.map(|closing| (closing.rank, closing.is_over))
    }

    /// As on a full disk, or if the recorder gave up.
    #[test]
    fn rank_that_goes_on_without_its_file_is_not_the_first_to_die() {
        let mut ranks = watch_two_ranks();
        assert_eq!(dying(&mut ranks), None);
        let before = Instant::now();
        ranks.descriptors[0] = None;
        assert_eq!(dying(&mut ranks), Some((0, false)), "it may be about to end");
        let closed = ranks.run.ranks_mut().next().unwrap().closed.as_mut().unwrap();
        assert!(before - Duration::from_millis(1) < closed.after && closed.after <= closed.seen);
        closed.seen -= Duration::from_secs(2);
        assert_eq!(dying(&mut ranks), None);
        ranks.descriptors[1] = None;
        assert_eq!(dying(&mut ranks), Some((1, false)));
    }

    #[test]
    fn rank_that_has_returned_from_finalize_does_not_die() {
        let mut ranks = watch_two_ranks();
        let file = ranks.descriptors[1].take().unwrap();
        file.write_all_at(&rank(1).bytes(), 0).unwrap();
        drop(file);
        assert_eq!(dying(&mut ranks), None);
        assert_eq!(ranks.run.ranks().nth(1).unwrap().state, RankState::Finished);
    }
}
