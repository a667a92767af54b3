//! One rank of a run that is going on.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use trace_format::reader::{Cut, LiveWindows, OpenError, RankFile};

use crate::trace::{ProcessState, RankFacts};

use super::counter;
use super::new_calls::{NewCall, NewCalls};
use super::seconds::{Place, RecentSeconds, place, stretch};

/// What a rank is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankState {
    /// Outside MPI.
    Computing,
    /// Inside an MPI call, or polls again and again.
    InMpi,
    /// Its process was stopped by a signal.
    Stopped,
    /// Its process ended before MPI_Finalize.
    Dead,
    /// MPI_Finalize returned.
    Finished,
}

/// How threads have used the cores so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CoreUse {
    /// Seconds that they were on one.
    pub used_s: f64,
    /// Seconds that they waited for one.
    pub queued_s: f64,
    /// How often they were given one.
    pub turns: u64,
}

impl CoreUse {
    fn add(&mut self, used_ns: u64, queued_ns: u64, turns: u64) {
        self.used_s += used_ns as f64 * 1e-9;
        self.queued_s += queued_ns as f64 * 1e-9;
        self.turns += turns;
    }
}

/// A rank whose file is followed.
#[derive(Debug)]
pub struct LiveRank {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    pub state: RankState,
    file: RankFile,
    /// Counter when MPI_Init returned; `None` before.
    pub begin_ticks: Option<u64>,
    windows: LiveWindows,
    recent: RecentSeconds,
    /// Where its first thread is.
    pub place: Option<Place>,
    /// Operating system's ids of its threads.
    threads: Vec<u32>,
    /// How the threads have used the cores so far; nanoseconds that each waited for one; the largest share that they waited
    /// between the last two glances.
    cores: CoreUse,
    queued: BTreeMap<u32, u64>,
    pub waits_for_core: Option<f64>,
    /// Counter at the last glance.
    glanced: u64,
    /// The calls of its first thread, if somebody takes them.
    calls: Option<NewCalls>,
}

impl LiveRank {
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        let file = RankFile::open(path)?;
        let mut rank = Self {
            rank: file.fixed.rank,
            state: RankState::Computing,
            file,
            begin_ticks: None,
            windows: LiveWindows::follow(path).map_err(io)?,
            recent: RecentSeconds::default(),
            place: None,
            threads: Vec::new(),
            cores: CoreUse::default(),
            queued: BTreeMap::new(),
            waits_for_core: None,
            glanced: 0,
            calls: None,
        };
        rank.note_definitions();
        Ok(rank)
    }

    /// Its file, as it was when it was last read as a whole.
    pub fn file(&self) -> &RankFile {
        &self.file
    }

    /// Copies its windows as they are now.
    pub(super) fn cut(&mut self) -> io::Result<Cut> {
        self.windows.cut()
    }

    /// Its file up to this cut.
    pub(super) fn copy(&self, cut: &Cut, most_bytes: u64) -> io::Result<Vec<u8>> {
        self.windows.copy(cut, most_bytes)
    }

    /// Operating system's ids of its threads that call MPI, as of the last look.
    pub(super) fn threads(&self) -> &[u32] {
        &self.threads
    }

    /// The calls of its first thread since the last time, from the first time on; `None` if some were missed.
    pub(super) fn take_calls(&mut self) -> Option<Vec<NewCall>> {
        self.calls.get_or_insert_default().take()
    }

    /// How its threads have used the cores so far.
    pub fn cores(&self) -> CoreUse {
        self.cores
    }

    /// Nanoseconds for which its first thread has waited for a core.
    pub(super) fn queued_ns(&self) -> Option<u64> {
        self.queued.get(self.threads.first()?).copied()
    }

    pub(super) fn windows(&self) -> &LiveWindows {
        &self.windows
    }

    /// Whether its process can be seen from here.
    pub fn is_here(&self) -> bool {
        ProcessState::detect(&self.file) != ProcessState::Unknown
    }

    pub fn host(&self) -> &str {
        &self.file.header.host
    }

    pub fn program(&self) -> &str {
        &self.file.header.program
    }

    /// The counter of its events, now.
    pub fn now(&self) -> u64 {
        counter::read_kind(self.file.counter)
    }

    /// Name of a function.
    pub fn function(&self, number: u16) -> &str {
        self.file.function_name(number).unwrap_or("?")
    }

    /// Ticks of the last seconds that its windows showed.
    pub fn seen(&self) -> u64 {
        self.recent.seen()
    }

    fn has_ended(&self) -> bool {
        matches!(self.state, RankState::Dead | RankState::Finished)
    }

    /// Notes what its windows show since the last look; efficiency is that of the last `span` ticks.
    pub(super) fn look(&mut self, span: u64) {
        // Of one that had died before it was looked at, the windows show the last moment.
        if self.state == RankState::Finished
            || self.state == RankState::Dead && self.place.is_some()
        {
            return;
        }
        let Ok(mut windows) = self.windows.look() else { return };
        let now = self.now();
        // A thread has two windows, in turn.
        windows.sort_unstable_by_key(|window| (window.thread, window.sequence));
        let places = windows.iter().map(|window| (window.thread, place(&self.file, window, now)));
        let places: BTreeMap<u32, Place> = places.collect();
        // Of a process with several threads, the first one that called MPI stands for the rank.
        self.place = places.first_key_value().map(|(_, place)| *place).or(self.place);
        let newest = windows.chunk_by(|a, b| a.thread == b.thread).filter_map(|of| of.last());
        self.threads = newest.map(|window| window.os_id).collect();
        if let Some(calls) = &mut self.calls {
            calls.read(&self.file, &windows);
        }
        if let Some(window) = windows.iter().rfind(|window| window.thread == 0) {
            let from = match self.recent.counted_to() {
                0 => now.saturating_sub(span).max(self.begin_ticks.unwrap_or(now)),
                counted_to => counted_to,
            };
            let stretch = stretch(&self.file, window, from, now);
            self.recent.add(stretch, now.saturating_sub(span));
        }
    }

    /// Looks at its process, and at the definitions if they may have changed.
    pub(super) fn glance(&mut self, ticks_per_s: f64) {
        if self.has_ended() {
            return;
        }
        let process = ProcessState::detect(&self.file);
        if (self.begin_ticks.is_none() || self.place.is_none() || !process.runs())
            && let Ok(file) = RankFile::open(&self.file.path)
        {
            self.file = file;
            self.note_definitions();
        }
        self.state = match (self.state, process, self.place) {
            (RankState::Finished, ..) => RankState::Finished,
            (_, ProcessState::Gone, _) => RankState::Dead,
            (_, ProcessState::Runs('T' | 't'), _) => RankState::Stopped,
            (_, _, Some(Place::InMpi { .. })) => RankState::InMpi,
            _ => RankState::Computing,
        };
        self.note_queue(ticks_per_s);
    }

    fn note_definitions(&mut self) {
        let facts = RankFacts::from_definitions(&self.file.definitions);
        self.begin_ticks = facts.begin_ticks;
        if facts.finalized() {
            self.state = RankState::Finished;
        }
    }

    /// Reads how long its threads waited for a core.
    fn note_queue(&mut self, ticks_per_s: f64) {
        let process = self.file.fixed.pid;
        let now = self.now();
        self.cores = CoreUse::default();
        let mut queued = BTreeMap::new();
        for thread in &self.threads {
            let path = format!("/proc/{process}/task/{thread}/schedstat");
            let text = fs::read_to_string(path).unwrap_or_default();
            let mut fields = text.split_whitespace().map_while(|field| field.parse().ok());
            let mut next = || fields.next().unwrap_or(0_u64);
            let (on_core, waited, turns) = (next(), next(), next());
            if turns > 0 {
                queued.insert(*thread, waited);
                self.cores.add(on_core, waited, turns);
            }
        }
        let since_s = now.saturating_sub(self.glanced) as f64 / ticks_per_s;
        let waited = queued.iter().filter_map(|(thread, now_ns)| {
            Some(now_ns.saturating_sub(*self.queued.get(thread)?) as f64 * 1e-9)
        });
        let longest_s = waited.max_by(f64::total_cmp);
        self.waits_for_core = longest_s.map(|waited_s| (waited_s / since_s).clamp(0.0, 1.0));
        (self.queued, self.glanced) = (queued, now);
    }

    /// Share of the last seconds outside MPI and the recorder; `None` if it has ended, or nothing was seen of it.
    pub fn efficiency(&self) -> Option<f64> {
        self.recent.efficiency().filter(|_| !self.has_ended())
    }
}
