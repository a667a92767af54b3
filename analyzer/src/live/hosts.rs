//! Where watchers of several hosts meet: small files in the run directory, of which each writes its own.
//!
//! Ranks of other hosts cannot be followed from here, so each watcher tells how its ranks stand, about once a second.
//! The one that has the lowest rank judges whether all ranks stand still. Whoever keeps a snapshot asks the others for
//! their parts of it. A message counts from the moment at which it is seen; only after a death clocks are compared.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use trace_format::files::rank_file_path;
use trace_format::private_directory;

use super::first_death::{Closing, Death, Lead, OnClock};
use super::moment::Moment;
use crate::trace::host_name;
use crate::trace::snapshot::{Reason, Unanswered};
use crate::whole_file;

/// Folder of the run directory with the messages.
const FOLDER: &str = ".watch";
const EXTENSION: &str = "json";
/// File of a part of a snapshot that says what the ranks' files do not.
const PART: &str = "part.json";
/// Time between two messages at least.
const PERIOD: Duration = Duration::from_secs(1);
/// Time between two looks for a message that is due: so late it is seen at most.
const DUE: Duration = Duration::from_millis(250);
/// A message that is later than this is overdue; a host from which none came for so long is not heard of.
const OVERDUE: Duration = Duration::from_millis(2500);
const SILENT: Duration = Duration::from_secs(4);
/// How long others may take for their parts of a snapshot.
const GATHER: Duration = Duration::from_secs(4);
const LOOK: Duration = Duration::from_millis(20);

/// What a watcher tells the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Message {
    host: String,
    number: u64,
    /// Its ranks that have not ended.
    alive: Vec<u32>,
    /// Those of them that are outside MPI.
    outside: Vec<u32>,
    /// Seconds since one of them began or ended a call.
    still_s: f64,
    /// Whether it has ended to watch.
    ended: bool,
    /// The last snapshot that it takes.
    request: Option<Request>,
    /// Its clock when it wrote this, in nanoseconds since some moment.
    sent_ns: i64,
    /// The host that judges who died first, and by how much the own clock is ahead of that one's at most.
    ahead: Option<(String, i64)>,
    /// Who died first of its ranks, and up to when it knows.
    death: Option<Death>,
    known_to_ns: i64,
    /// Whether it has told a death.
    told_death: bool,
}

/// A snapshot that a watcher takes, and for which it asks the others for their parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its host and a number.
    id: String,
    pub reason: Reason,
    pub rank: Option<u32>,
}

/// What a host's part of a snapshot says of its ranks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    pub processes: BTreeMap<u32, String>,
    pub unanswered: BTreeMap<u32, Unanswered>,
}

/// The last message of another host.
#[derive(Debug)]
struct Heard {
    message: Message,
    /// When it was seen first.
    at: Instant,
    answered: Option<String>,
    /// By how much the own clock is ahead of its clock.
    lead: Lead,
}

/// A host that is not heard of.
#[derive(Debug, Clone, PartialEq)]
pub struct Silent {
    pub host: String,
    pub ranks: Vec<u32>,
    pub since_s: f64,
}

/// How the ranks of other hosts stand.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Others {
    /// Number of their ranks inside MPI.
    pub inside: usize,
    /// Those outside MPI.
    pub outside: Vec<u32>,
    /// Seconds since one of them began or ended a call; `None`: there are none.
    pub still_s: Option<f64>,
    /// A host that is not heard of.
    pub silent: Option<Silent>,
    /// Whether a watcher of another host judges whether all stand still, or a message is overdue, so that nobody can.
    pub may_not_judge: bool,
}

/// The watchers of the other hosts.
#[derive(Debug)]
pub struct Hosts {
    folder: PathBuf,
    own: Message,
    /// When the last message was written, and when others were last looked for.
    written: Option<Instant>,
    heard: Option<Instant>,
    others: BTreeMap<String, Heard>,
    requests: u64,
    /// Hosts that have not given their part of the last snapshot.
    awaited: Vec<String>,
    /// When the own clock began.
    begun: Instant,
}

impl Hosts {
    /// Those of a run.
    pub fn of(run: &Path) -> Self {
        Self {
            folder: run.join(FOLDER),
            own: Message {
                host: host_name(),
                number: 0,
                alive: Vec::new(),
                outside: Vec::new(),
                still_s: 0.0,
                ended: false,
                request: None,
                sent_ns: 0,
                ahead: None,
                death: None,
                known_to_ns: i64::MIN,
                told_death: false,
            },
            written: None,
            heard: None,
            others: BTreeMap::new(),
            requests: 0,
            awaited: Vec::new(),
            begun: Instant::now(),
        }
    }

    /// Tells the others how the ranks of this host stand, and reads what they tell.
    pub fn meet(&mut self, moment: &Moment) -> Others {
        let alive = moment.ranks.iter().filter(|of| !of.has_ended() && !of.is_ending());
        let alive: Vec<_> = alive.collect();
        self.own.alive = alive.iter().map(|of| of.rank).collect();
        let outside = alive.iter().filter(|of| of.call.is_none());
        self.own.outside = outside.map(|of| of.rank).collect();
        self.own.still_s = (moment.at_s - moment.moved_s()).max(0.0);
        if self.written.is_none_or(|at| at.elapsed() >= PERIOD) {
            self.tell();
            self.hear();
        } else if self.heard.is_none_or(|at| at.elapsed() >= DUE) {
            self.hear_what_is_due();
        }
        self.others()
    }

    /// Tells that nobody watches on this host any more. The last one clears up.
    pub fn end(&mut self) {
        if self.written.is_none() {
            return;
        }
        self.own.ended = true;
        self.tell();
        self.hear();
        if self.others.values().all(|heard| heard.message.ended) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    fn path(&self, host: &str) -> PathBuf {
        self.folder.join(format!("{}.{EXTENSION}", file_name(host)))
    }

    /// Writes the own message. If it cannot be written, this host is silent for the others.
    fn tell(&mut self) {
        self.own.number += 1;
        let now = Instant::now();
        self.written = Some(now);
        self.own.sent_ns = self.on_clock(now);
        self.own.ahead =
            self.judge().map(|heard| (heard.message.host.clone(), heard.lead.ns_at(now)));
        let _ = fs::DirBuilder::new().mode(0o700).create(&self.folder);
        if let Ok(text) = serde_json::to_vec(&self.own) {
            let path = self.path(&self.own.host);
            let _ = whole_file::write(&path, whole_file::PRIVATE, |file| file.write_all(&text));
        }
    }

    fn hear(&mut self) {
        self.heard = Some(Instant::now());
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                self.read_message(&path);
            }
        }
    }

    /// Reads messages that should have come since the last ones.
    fn hear_what_is_due(&mut self) {
        self.heard = Some(Instant::now());
        let due = |heard: &&Heard| !heard.message.ended && heard.at.elapsed() >= PERIOD;
        let due = self.others.values().filter(due).map(|heard| self.path(&heard.message.host));
        for path in due.collect::<Vec<_>>() {
            self.read_message(&path);
        }
    }

    fn read_message(&mut self, path: &Path) {
        let Some(message) = read_json::<Message>(path) else { return };
        if message.host == self.own.host {
            return;
        }
        let at = Instant::now();
        let lead = Lead::of(self.on_clock(at), message.sent_ns, at);
        match self.others.entry(message.host.clone()) {
            Entry::Vacant(new) => {
                new.insert(Heard { message, at, answered: None, lead });
            }
            Entry::Occupied(known) => {
                let heard = known.into_mut();
                if heard.message.number != message.number {
                    (heard.message, heard.at) = (message, at);
                    heard.lead = heard.lead.or(lead);
                }
            }
        }
    }

    /// A moment in nanoseconds of the own clock.
    fn on_clock(&self, at: Instant) -> i64 {
        let ns = |time: Duration| time.as_nanos() as i64;
        match at.checked_duration_since(self.begun) {
            Some(since) => ns(since),
            None => -ns(self.begun.duration_since(at)),
        }
    }

    fn others(&self) -> Others {
        let mut others = Others::default();
        let own = self.own.alive.first();
        for heard in self.others.values().filter(|heard| !heard.message.ended) {
            let Message { host, alive, outside, still_s, .. } = &heard.message;
            let since_s = heard.at.elapsed().as_secs_f64();
            if alive.is_empty() {
                continue;
            }
            if heard.at.elapsed() > SILENT {
                let (host, ranks) = (host.clone(), alive.clone());
                others.silent.get_or_insert(Silent { host, ranks, since_s });
                continue;
            }
            others.inside += alive.len() - outside.len();
            others.outside.extend(outside);
            let still_s = still_s + since_s;
            others.still_s = Some(others.still_s.map_or(still_s, |least| least.min(still_s)));
            others.may_not_judge |= heard.at.elapsed() > OVERDUE;
            others.may_not_judge |= own.is_none_or(|own| alive[0] < *own);
        }
        others
    }

    /// Tells what is known of deaths on this host: the first, with the moments between which it was, and up to when all are
    /// known. Reads what those tell that this one needs to judge.
    pub(super) fn compare_deaths(&mut self, closing: Option<Closing>, known_to: Instant) {
        let death = |Closing { rank, after, before, is_over }| Death {
            rank,
            after_ns: after.map_or(i64::MIN, |after| self.on_clock(after)),
            before_ns: self.on_clock(before),
            is_over,
        };
        self.own.death = closing.map(death);
        self.own.known_to_ns = self.on_clock(known_to);
        match self.judge().map(|judge| self.path(&judge.message.host)) {
            Some(judge) => self.read_message(&judge),
            None => self.hear(),
        }
        self.tell();
    }

    /// The watcher that judges who died first, unless it is this one: that of the first host by name.
    fn judge(&self) -> Option<&Heard> {
        let mut heard = self.others.values().filter(|heard| !heard.message.ended);
        heard
            .find(|heard| heard.at.elapsed() <= SILENT)
            .filter(|first| first.message.host < self.own.host)
    }

    pub(super) fn is_judge(&self) -> bool {
        self.judge().is_none()
    }

    /// How many watchers are known.
    pub(super) fn count(&self) -> u32 {
        self.others.len() as u32 + 1
    }

    /// Whether a rank of another host has died.
    pub fn have_died(&self) -> bool {
        self.others.values().any(|heard| heard.message.death.is_some_and(|death| death.is_over))
    }

    /// Whether another watcher has told a death.
    pub(super) fn have_told_death(&self) -> bool {
        self.others.values().any(|heard| heard.message.told_death)
    }

    /// Whether a watcher was heard of on this host.
    pub(super) fn has_heard_of(&self, host: &str) -> bool {
        host == self.own.host || self.others.contains_key(host)
    }

    /// The first death on each host, on the own clock.
    pub(super) fn deaths(&self) -> Vec<OnClock> {
        let now = Instant::now();
        let own = OnClock::own(self.own.death, self.own.known_to_ns);
        // One that has ended without a death has none.
        let counts = |heard: &&Heard| !heard.message.ended || heard.message.death.is_some();
        let others = self.others.values().filter(counts).map(|heard| {
            let Message { death, known_to_ns, ahead, .. } = &heard.message;
            let ahead = ahead.as_ref().filter(|(of, _)| *of == self.own.host);
            let ahead = ahead.map(|(_, ns)| Lead::of(*ns, 0, heard.at).ns_at(now));
            OnClock::own(*death, *known_to_ns).seen_from(ahead, heard.lead.ns_at(now))
        });
        others.chain([own]).collect()
    }

    /// Asks the others for their parts of a snapshot.
    pub fn ask(&mut self, reason: Reason, rank: Option<u32>) {
        self.own.told_death |= reason == Reason::Dead;
        let heard = |heard: &&Heard| !heard.message.ended && heard.at.elapsed() <= SILENT;
        let heard = self.others.values().filter(heard);
        self.awaited = heard.map(|heard| heard.message.host.clone()).collect();
        if !self.awaited.is_empty() {
            self.requests += 1;
            let id = format!("{}-{}", file_name(&self.own.host), self.requests);
            self.own.request = Some(Request { id, reason, rank });
            self.tell();
        }
    }

    /// Moves the parts that the others have left for the last request into a snapshot's directory. Those who take too long
    /// are missing.
    ///
    /// `own` is this host's part, which is there already: who asks for it meanwhile gets a copy.
    pub fn gather(&mut self, into: &Path, own: &Part) -> Vec<Part> {
        let Some(id) = self.own.request.as_ref().map(|request| request.id.clone()) else {
            return Vec::new();
        };
        let end = Instant::now() + GATHER;
        let mut parts = Vec::new();
        let mut awaited = std::mem::take(&mut self.awaited);
        let own_files = |rank: &u32| rank_file_path(0, *rank);
        let own_files: Vec<PathBuf> = own.processes.keys().map(own_files).collect();
        while !awaited.is_empty() && Instant::now() < end {
            self.hear();
            if self.written.is_none_or(|at| at.elapsed() >= PERIOD) {
                self.tell();
            }
            if let Some((_, to)) = self.asked() {
                // Without it, that snapshot lacks these ranks.
                let _ = give_copy(into, &own_files, own, &to);
            }
            awaited.retain(|host| {
                let from = self.folder.join(part_name(&id, host));
                let Some(part) = read_json(&from.join(PART)) else { return true };
                if move_files(&from, into).is_ok() {
                    parts.push(part);
                }
                let _ = fs::remove_dir_all(&from);
                false
            });
            std::thread::sleep(LOOK);
        }
        self.own.request = None;
        parts
    }

    /// A snapshot of another host that lacks this host's part, and where that is put.
    pub fn asked(&mut self) -> Option<(Request, PathBuf)> {
        let own = &self.own.host;
        self.others.values_mut().find_map(|heard| {
            let request = heard.message.request.clone()?;
            if heard.answered.as_ref() == Some(&request.id) {
                return None;
            }
            heard.answered = Some(request.id.clone());
            // An old one is over.
            let to = self.folder.join(part_name(&request.id, own));
            (heard.at.elapsed() < GATHER).then_some((request, to))
        })
    }
}

/// Gives another host a copy of files that are in a snapshot already.
fn give_copy(from: &Path, files: &[PathBuf], part: &Part, to: &Path) -> io::Result<()> {
    let private = fs::Permissions::from_mode(0o700);
    let mut folder = tempfile::Builder::new();
    let folder = folder.prefix(".copy-").permissions(private);
    let folder = folder.tempdir_in(to.parent().unwrap_or(from))?;
    for file in files {
        private_directory::make_for(folder.path(), &folder.path().join(file))?;
        fs::copy(from.join(file), folder.path().join(file))?;
    }
    put_part(folder.path(), part, to)?;
    let _ = folder.keep();
    Ok(())
}

/// Puts a part of a snapshot in its place, once all of it is there.
///
/// # Errors
/// It cannot be written.
pub fn put_part(from: &Path, part: &Part, to: &Path) -> io::Result<()> {
    fs::write(from.join(PART), serde_json::to_vec(part)?)?;
    fs::rename(from, to)
}

/// The folder of a part. What another host wrote names no folder elsewhere.
fn part_name(id: &str, host: &str) -> String {
    format!("{}.{}.part", file_name(id), file_name(host))
}

/// A host's name as that of a file.
fn file_name(host: &str) -> String {
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    host.chars().map(|c| if valid(c) { c } else { '_' }).collect()
}

fn read_json<T: for<'d> Deserialize<'d>>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Moves the files in the folders of a directory to folders of the same names in another one.
fn move_files(from: &Path, into: &Path) -> io::Result<()> {
    for folder in fs::read_dir(from)?.flatten() {
        if !folder.file_type()?.is_dir() {
            continue;
        }
        let to = into.join(folder.file_name());
        if let Err(error) = fs::create_dir(&to)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(error);
        }
        for file in fs::read_dir(folder.path())?.flatten() {
            fs::rename(file.path(), to.join(file.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
impl Hosts {
    /// Takes the name of another host, whose clock is behind.
    pub(super) fn pretend(&mut self, host: &str, behind: Duration) {
        self.own.host = host.into();
        self.begun += behind;
    }

    /// Waits until another watcher is heard of, and a death, unless there was one here.
    pub(super) fn greet(&mut self, died_here: bool) {
        while self.others.is_empty() || !died_here && !self.have_died() {
            self.tell();
            std::thread::sleep(LOOK);
            self.hear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(run: &Path, name: &str) -> Hosts {
        let mut hosts = Hosts::of(run);
        hosts.own.host = name.into();
        hosts
    }

    /// Tells how ranks stand, and hears the others.
    fn meets(hosts: &mut Hosts, alive: &[u32], outside: &[u32], still_s: f64) -> Others {
        (hosts.own.alive, hosts.own.outside) = (alive.to_vec(), outside.to_vec());
        hosts.own.still_s = still_s;
        hosts.tell();
        hosts.hear();
        hosts.others()
    }

    #[test]
    fn hosts_tell_each_other_how_their_ranks_stand() {
        let folder = tempfile::tempdir().unwrap();
        let (mut first, mut second) = (hosts(folder.path(), "a/1"), hosts(folder.path(), "b"));
        assert_eq!(meets(&mut first, &[0, 1], &[], 3.0), Others::default());
        let seen = meets(&mut second, &[2, 3], &[3], 7.0);
        assert_eq!((seen.inside, &seen.outside[..]), (2, &[][..]));
        assert!(seen.may_not_judge && (3.0..3.5).contains(&seen.still_s.unwrap()), "{seen:?}");
        let seen = meets(&mut first, &[0, 1], &[], 4.0);
        assert_eq!((seen.inside, &seen.outside[..], seen.may_not_judge), (1, &[3][..], false));
        first.others.get_mut("b").unwrap().at -= OVERDUE;
        assert!(first.others().may_not_judge);
        // Nothing comes from the second one for long.
        first.others.get_mut("b").unwrap().at -= SILENT * 2;
        let seen = meets(&mut first, &[0, 1], &[], 5.0);
        assert_eq!((seen.inside, seen.still_s), (0, None));
        assert_eq!(seen.silent.unwrap().ranks, [2, 3]);
        second.end();
        assert_eq!(meets(&mut first, &[0, 1], &[], 6.0), Others::default());
    }

    #[test]
    fn message_is_looked_for_as_soon_as_it_is_due() {
        let folder = tempfile::tempdir().unwrap();
        let (mut first, mut second) = (hosts(folder.path(), "a"), hosts(folder.path(), "b"));
        meets(&mut second, &[2], &[], 1.0);
        meets(&mut first, &[0], &[], 1.0);
        second.tell();
        first.hear_what_is_due();
        assert_eq!(first.others["b"].message.number, 1, "the next one is not due");
        first.others.get_mut("b").unwrap().at -= PERIOD;
        first.hear_what_is_due();
        assert_eq!(first.others["b"].message.number, 2);
    }

    #[test]
    fn host_that_is_not_heard_of_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (mut first, mut second) = (hosts(folder.path(), "a"), hosts(folder.path(), "b"));
        meets(&mut second, &[2], &[], 1.0);
        meets(&mut first, &[0], &[], 1.0);
        first.others.get_mut("b").unwrap().at -= SILENT;
        let begin = Instant::now();
        first.ask(Reason::Vanished, Some(2));
        assert_eq!(first.gather(folder.path(), &Part::default()), []);
        assert!(begin.elapsed() < GATHER);
    }

    #[test]
    fn host_that_waits_for_parts_is_heard_of() {
        let folder = tempfile::tempdir().unwrap();
        let (mut first, mut second) = (hosts(folder.path(), "a"), hosts(folder.path(), "b"));
        meets(&mut second, &[2], &[], 1.0);
        meets(&mut first, &[0], &[], 1.0);
        first.ask(Reason::Stopped, Some(0));
        let asked = first.own.number;
        assert_eq!(first.gather(folder.path(), &Part::default()), [], "the second one is silent");
        second.hear();
        let message = &second.others["a"].message;
        assert!(message.number > asked && message.request.is_some(), "{message:?}");
    }

    #[test]
    fn snapshot_gathers_the_parts_of_other_hosts() {
        let folder = tempfile::tempdir().unwrap();
        let (mut first, mut second) = (hosts(folder.path(), "a"), hosts(folder.path(), "b"));
        for _ in 0..2 {
            meets(&mut second, &[2], &[], 1.0);
            meets(&mut first, &[0], &[], 1.0);
        }
        first.ask(Reason::NoProgress, Some(2));
        second.hear();
        let (request, to) = second.asked().unwrap();
        assert_eq!((request.reason, request.rank), (Reason::NoProgress, Some(2)));
        assert!(second.asked().is_none(), "it is asked once");
        let from = folder.path().join("from");
        fs::create_dir_all(from.join("ranks-000")).unwrap();
        fs::write(from.join("ranks-000/file"), "2").unwrap();
        let part = Part { processes: BTreeMap::from([(2, "asleep".into())]), ..Part::default() };
        put_part(&from, &part, &to).unwrap();
        let into = folder.path().join("into");
        fs::create_dir_all(into.join("ranks-000")).unwrap();
        let own = Part { processes: BTreeMap::from([(0, "asleep".into())]), ..Part::default() };
        let file = into.join(rank_file_path(0, 0));
        private_directory::make_for(&into, &file).unwrap();
        fs::write(file, "0").unwrap();
        assert_eq!(first.gather(&into, &own), [part]);
        assert_eq!(fs::read_to_string(into.join("ranks-000/file")).unwrap(), "2");
        assert!(!to.exists());
        assert_eq!(first.gather(&into, &own), [], "nothing was asked for since");
        // The second one asks while the first one gathers.
        second.ask(Reason::Stopped, Some(2));
        let (_, to) = {
            first.hear();
            first.asked().unwrap()
        };
        give_copy(&into, &[rank_file_path(0, 0)], &own, &to).unwrap();
        let of_second = folder.path().join("second");
        fs::create_dir(&of_second).unwrap();
        assert_eq!(second.gather(&of_second, &Part::default()), [own]);
        assert_eq!(fs::read_to_string(of_second.join(rank_file_path(0, 0))).unwrap(), "0");
    }
}
