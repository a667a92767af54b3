//! Copies what a running job has recorded into a run directory of its own, below the job's.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use thiserror::Error;
use trace_format::files::rank_file_path;
use trace_format::private_directory;
use trace_format::reader::{Cut, RankFile};

use super::hosts::{Hosts, Part, put_part};
use super::rank::{LiveRank, RankState};
use super::run::LiveRun;
use super::waiting::Waiting;
use crate::trace::run_json::{Instant, Params, RunJson, RunJsonError};
use crate::trace::snapshot::{CounterMoment, NAME, Reason, Snapshot};
use crate::trace::{ProcessState, RankFacts};

/// The snapshots of a run, and how many may be kept: the first, and as many of the newest as there is room for.
#[derive(Debug, Clone, Copy)]
pub struct Snapshots {
    /// How many, at least 2.
    pub most: usize,
    /// How many bytes in all.
    pub most_bytes: u64,
}

/// A snapshot that was taken.
#[derive(Debug)]
pub struct Taken {
    /// Its run directory.
    pub path: PathBuf,
    /// Why, as far as the copy shows.
    pub reason: Reason,
    pub rank: Option<u32>,
}

/// Why no snapshot was taken.
#[derive(Debug, Error)]
pub enum NotTaken {
    /// The trace is too long.
    #[error(
        "{}: the trace takes more than the {most_bytes} bytes that snapshots may take: record with --keep last and \
         a smaller --max-bytes, or give more with --most-bytes; the trace itself stays", .directory.display()
    )]
    TooLong { directory: PathBuf, most_bytes: u64 },
    /// A rank's file cannot be read.
    #[error("{}: cannot be read: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The copy cannot be written.
    #[error("{}: cannot be written: {source}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The description of the run cannot be read.
    #[error("{0}")]
    Description(RunJsonError),
}

/// A snapshot in the run directory.
struct Kept {
    number: u32,
    path: PathBuf,
    bytes: u64,
}

impl Snapshots {
    /// Copies what all ranks of this host, and of the others that are watched, have recorded up to this moment.
    ///
    /// # Errors
    /// Nothing is left behind then.
    pub fn take(
        &self,
        run: &mut LiveRun,
        mut hosts: Option<&mut Hosts>,
        reason: Reason,
        rank: Option<u32>,
    ) -> Result<Taken, NotTaken> {
        let directory = run.directory.clone();
        let write = |source| NotTaken::Write { path: directory.clone(), source };
        if let Some(hosts) = &mut hosts {
            hosts.ask(reason, rank);
        }
        let part = part_in(&directory).map_err(write)?;
        let Copied { mut moment, part: own, bytes } = self.copy(run, reason, part.path())?;
        let others = hosts.map_or_else(Vec::new, |hosts| hosts.gather(part.path(), &own));
        let Part { mut processes, mut unanswered } = own;
        for other in others {
            processes.extend(other.processes);
            unanswered.extend(other.unanswered);
            // Their moment was a later one.
            moment = moment_now(run);
        }
        let mut description = description(run).map_err(NotTaken::Description)?;
        let (at, counter) = moment;
        let mut snapshot = Snapshot { reason, at, counter, rank, processes, unanswered };
        description.snapshot = Some(snapshot.clone());
        description.write(part.path()).map_err(write)?;
        // Who waits for whom is known better from the snapshot than from outside.
        let is_still = matches!(reason, Reason::NoProgress | Reason::Outside);
        if is_still && let Some(waiting) = Waiting::find(part.path()) {
            refine(&mut snapshot, &waiting);
            description.snapshot = Some(snapshot.clone());
            description.write(part.path()).map_err(write)?;
        }
        let kept = kept_in(&directory);
        self.make_room(&kept, bytes);
        let number = kept.last().map_or(0, |last| last.number) + 1;
        let path = put_in_place(part.path(), &directory, number).map_err(write)?;
        // It has another name now.
        let _ = part.keep();
        Ok(Taken { path, reason: snapshot.reason, rank: snapshot.rank })
    }

    /// Copies what the ranks of this host have recorded for a snapshot of another host.
    ///
    /// # Errors
    /// Nothing is left behind then.
    pub fn take_part(&self, run: &mut LiveRun, reason: Reason, to: &Path) -> Result<(), NotTaken> {
        let directory = run.directory.clone();
        let write = |source| NotTaken::Write { path: directory.clone(), source };
        let folder = part_in(&directory).map_err(write)?;
        let Copied { part, .. } = self.copy(run, reason, folder.path())?;
        put_part(folder.path(), &part, to).map_err(write)?;
        let _ = folder.keep();
        Ok(())
    }

    /// Copies the ranks of this host into a folder.
    fn copy(&self, run: &mut LiveRun, reason: Reason, into: &Path) -> Result<Copied, NotTaken> {
        let directory = run.directory.clone();
        // Where ranks are stuck is seen before the windows are copied.
        let unanswered = match reason.is_standstill() {
            true => run.ask_for_stacks(),
            false => BTreeMap::new(),
        };
        let cuts: Vec<(io::Result<Cut>, ProcessState)> =
            run.ranks_mut().map(|rank| (rank.cut(), process_of(rank))).collect();
        let moment = moment_now(run);
        let first = kept_in(&directory).first().map_or(0, |first| first.bytes);
        let budget = self.most_bytes.saturating_sub(first);
        let mut bytes = 0;
        let mut processes = BTreeMap::new();
        for (of, (cut, process)) in run.ranks().zip(cuts) {
            let path = of.file().path.clone();
            let copy = cut.and_then(|cut| of.copy(&cut, budget.saturating_sub(bytes)));
            let copy = copy.map_err(|source| match source.kind() {
                io::ErrorKind::FileTooLarge => {
                    NotTaken::TooLong { directory: directory.clone(), most_bytes: self.most_bytes }
                }
                _ => NotTaken::Read { path, source },
            })?;
            bytes += copy.len() as u64;
            write_rank(into, of.rank, &copy)
                .map_err(|source| NotTaken::Write { path: directory.clone(), source })?;
            processes.insert(of.rank, process.name().to_owned());
        }
        Ok(Copied { moment, part: Part { processes, unanswered }, bytes })
    }

    /// Removes the oldest snapshots but the first, until there is room for one of so many bytes.
    fn make_room(&self, kept: &[Kept], bytes: u64) {
        let (mut count, mut sum) = (kept.len() + 1, bytes);
        sum += kept.iter().map(|of| of.bytes).sum::<u64>();
        for of in kept.iter().skip(1) {
            if count <= self.most && sum <= self.most_bytes {
                break;
            }
            let _ = fs::remove_dir_all(&of.path);
            (count, sum) = (count - 1, sum - of.bytes);
        }
    }
}

/// The ranks of this host in a snapshot.
struct Copied {
    moment: (Instant, Option<CounterMoment>),
    part: Part,
    bytes: u64,
}

/// This moment, also on the counter of a rank.
fn moment_now(run: &LiveRun) -> (Instant, Option<CounterMoment>) {
    let counter = run.ranks().min_by_key(|of| of.rank);
    let counter = counter.map(|of| CounterMoment { rank: of.rank, ticks: of.now() });
    (Instant::now(), counter)
}

/// A folder for a snapshot that is not whole yet.
fn part_in(directory: &Path) -> io::Result<TempDir> {
    let private = fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix(".flight-").permissions(private).tempdir_in(directory)
}

/// Gives a snapshot its name. A watcher on another host may take the same number.
fn put_in_place(part: &Path, directory: &Path, number: u32) -> io::Result<PathBuf> {
    const TRIES: u32 = 100;
    let mut outcome = Err(io::ErrorKind::AlreadyExists.into());
    for number in number..number + TRIES {
        let path = directory.join(format!("{NAME}{number:03}"));
        outcome = fs::rename(part, &path).map(|()| path);
        let is_taken = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
        };
        if !outcome.as_ref().is_err_and(is_taken) {
            break;
        }
    }
    outcome
}

/// The snapshots of a run, oldest first.
fn kept_in(directory: &Path) -> Vec<Kept> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let kept = entries.filter_map(|entry| {
        let name = entry.file_name();
        let number = name.to_str()?.strip_prefix(NAME)?.parse().ok()?;
        Some(Kept { number, bytes: bytes_in(&entry.path()), path: entry.path() })
    });
    let mut kept: Vec<Kept> = kept.collect();
    kept.sort_by_key(|of| of.number);
    kept
}

fn bytes_in(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_in(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

fn process_of(rank: &LiveRank) -> ProcessState {
    match rank.state {
        RankState::Finished => ProcessState::Unknown,
        _ => rank.process(),
    }
}

fn write_rank(run: &Path, rank: u32, bytes: &[u8]) -> io::Result<()> {
    let path = run.join(rank_file_path(0, rank));
    private_directory::make_for(run, &path)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}

/// What the copy of ranks that stand still shows of the reason.
fn refine(snapshot: &mut Snapshot, waiting: &Waiting) {
    match waiting.deadlocks.first() {
        Some(cycle) => {
            (snapshot.reason, snapshot.rank) = (Reason::Deadlock, Some(cycle.named));
        }
        None => snapshot.rank = snapshot.rank.or(waiting.cause),
    }
}

/// The description of a run; if `gammachi run` did not start it, what its files say.
fn description(run: &LiveRun) -> Result<RunJson, RunJsonError> {
    match RunJson::read(&run.directory) {
        Err(error) if error.is_absent() => {}
        read => return read,
    }
    let Some(first) = run.ranks().min_by_key(|rank| rank.rank).map(LiveRank::file) else {
        return RunJson::read(&run.directory);
    };
    let facts = |file: &RankFile| RankFacts::from_definitions(&file.definitions);
    let anchors = run.ranks().flat_map(|rank| facts(rank.file()).anchors);
    let begin_ns = anchors.map(|anchor| anchor.realtime_ns).min().unwrap_or_default();
    let header = &first.header;
    Ok(RunJson {
        argv: header.arguments.clone(),
        program: Some(header.program.clone()).filter(|program| !program.is_empty()),
        directory: header.directory.clone(),
        host: header.host.clone(),
        level: first.fixed.level,
        compute: header.compute.clone(),
        params: Params(header.parameters.clone()),
        environment: facts(first).environment.into_iter().collect(),
        ..RunJson::begun(Instant::from_unix_ns(begin_ns))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(directory: &Path, limits: Snapshots, bytes: u64) -> Vec<String> {
        let kept = kept_in(directory);
        limits.make_room(&kept, bytes);
        let number = kept.last().map_or(0, |last| last.number) + 1;
        let path = directory.join(format!("{NAME}{number:03}"));
        fs::create_dir(&path).unwrap();
        fs::write(path.join("file"), vec![1; bytes as usize]).unwrap();
        let names = kept_in(directory).into_iter().map(|of| of.path);
        names.map(|path| path.file_name().unwrap().to_str().unwrap()[7..].to_owned()).collect()
    }

    #[test]
    fn first_and_newest_stay() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Snapshots { most: 3, most_bytes: 1000 };
        let take = |bytes| kept(folder.path(), limits, bytes);
        assert_eq!(take(100), ["001"]);
        assert_eq!(take(100), ["001", "002"]);
        assert_eq!(take(100), ["001", "002", "003"]);
        assert_eq!(take(100), ["001", "003", "004"]);
        assert_eq!(take(700), ["001", "004", "005"]);
        assert_eq!(take(700), ["001", "006"]);
        assert_eq!(take(100), ["001", "006", "007"]);
    }
}
