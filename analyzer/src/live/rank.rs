//! One rank of a run that is going on.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use trace_format::reader::{Cut, LiveWindow, LiveWindows, OpenError, RankFile};

use crate::trace::closed_files::Closed;
use crate::trace::{KnownProcess, ProcessState, RankFacts};

use super::counter;
use super::new_calls::{NewCall, NewCalls};
use super::schedstat::schedstat;
use super::seconds::{Place, RecentSeconds, SPAN_S, place, stretch};
use super::totals::{CallCount, Totals};

/// Over how much time at least the share is taken that threads waited for a core, in seconds.
const QUEUED_S: f64 = 1.0;

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

impl RankState {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Computing, Self::InMpi, Self::Stopped, Self::Dead, Self::Finished];
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
    totals: Totals,
    /// Calls of each thread.
    calls: BTreeMap<u32, CallCount>,
    /// Where its first thread is.
    pub place: Option<Place>,
    /// Operating system's ids of its threads.
    threads: Vec<u32>,
    /// The scheduler's accounts of them.
    accounts: BTreeMap<u32, File>,
    /// How they have used the cores so far, and nanoseconds that each waited for one.
    cores: CoreUse,
    queued: BTreeMap<u32, u64>,
    /// The latter when a span of time began, by the counter, and the largest share of the last one that they waited.
    queued_before: (u64, BTreeMap<u32, u64>),
    pub waits_for_core: Option<f64>,
    /// The calls of its first thread, if somebody takes them.
    new_calls: Option<NewCalls>,
    /// The process that writes its file.
    process: Option<KnownProcess>,
    /// When the kernel was asked for its state, and what that was.
    asked: Option<(Instant, ProcessState)>,
    /// Whether one of its threads had a core since the last glance.
    ran: bool,
    /// Whether its only thread has slept since before the last look.
    sleeps: bool,
    /// When that let go of it, if it has ended or is about to.
    pub closed: Option<Closed>,
    /// Counter at the last look.
    looked: u64,
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
            totals: Totals::default(),
            calls: BTreeMap::new(),
            place: None,
            threads: Vec::new(),
            cores: CoreUse::default(),
            accounts: BTreeMap::new(),
            queued: BTreeMap::new(),
            queued_before: (0, BTreeMap::new()),
            waits_for_core: None,
            new_calls: None,
            process: None,
            asked: None,
            ran: false,
            sleeps: false,
            closed: None,
            looked: 0,
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
        self.new_calls.get_or_insert_default().take()
    }

    /// Nobody takes its calls any more.
    pub(super) fn leave_calls(&mut self) {
        self.new_calls = None;
    }

    /// How its threads have used the cores so far.
    pub fn cores(&self) -> CoreUse {
        self.cores
    }

    /// Nanoseconds for which its first thread has waited for a core.
    pub(super) fn queued_ns(&self) -> Option<u64> {
        self.queued.get(self.threads.first()?).copied()
    }

    /// Finds its area for stacks, which it may have made since a look last searched.
    pub(super) fn find_stacks(&mut self) -> io::Result<()> {
        self.windows.find_windows()
    }

    pub(super) fn windows(&self) -> &LiveWindows {
        &self.windows
    }

    /// Whether its process can be seen from here.
    pub fn is_here(&mut self) -> bool {
        self.find_process() != ProcessState::Unknown
    }

    pub fn host(&self) -> &str {
        &self.file.header.host
    }

    /// How many ranks MPI_COMM_WORLD has.
    pub fn world_size(&self) -> usize {
        self.file.fixed.world_size as usize
    }

    pub fn program(&self) -> &str {
        &self.file.header.program
    }

    /// The counter of its events, now.
    pub fn now(&self) -> u64 {
        counter::read_kind(self.file.counter)
    }

    /// The same at the last look, if it goes on.
    pub fn looked(&self) -> Option<u64> {
        Some(self.looked).filter(|looked| *looked > 0 && !self.has_ended())
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
    pub(super) fn look(&mut self, span: u64, ticks_per_s: f64) {
        // Of one that had died before it was looked at, the windows show the last moment.
        if self.state == RankState::Finished
            || self.state == RankState::Dead && self.place.is_some()
        {
            return;
        }
        // Before the windows are read: whatever is written later shows in the next account.
        self.note_queue(ticks_per_s);
        let Ok(windows) = self.windows.look(self.sleeps) else { return };
        let now = counter::read_kind(self.file.counter);
        self.looked = now;
        // Two windows of a thread take turns.
        let mut of_threads: BTreeMap<u32, Vec<&LiveWindow>> = BTreeMap::new();
        windows.for_each(|window| of_threads.entry(window.thread).or_default().push(window));
        self.threads.clear();
        let mut is_first = true;
        for (thread, mut windows) in of_threads {
            windows.sort_unstable_by_key(|window| window.sequence);
            let Some(newest) = windows.last().copied() else { continue };
            self.threads.push(newest.os_id);
            self.calls.entry(thread).or_default().count(&self.file, &windows);
            // Of a process with several threads, the first one that called MPI stands for the rank.
            if std::mem::take(&mut is_first) {
                self.place = Some(place(&self.file, newest, now));
            }
            if thread == 0 {
                if let Some(calls) = &mut self.new_calls {
                    calls.read(&self.file, &windows);
                }
                let from = match self.recent.counted_to() {
                    0 => now.saturating_sub(span).max(self.begin_ticks.unwrap_or(now)),
                    counted_to => counted_to,
                };
                windows.retain(|window| window.sequence + 1 >= newest.sequence);
                let stretch = stretch(&self.file, &windows, from, now);
                self.totals.add(stretch, from, SPAN_S / span as f64);
                self.recent.add(stretch, now.saturating_sub(span));
            }
        }
        self.sleeps &= self.is_alone();
    }

    /// Whether it has no threads that call MPI but that of which the kernel tells the state.
    fn is_alone(&self) -> bool {
        self.threads == [self.file.fixed.pid]
    }

    /// What it did since it was first looked at.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// How many calls its threads made since it was first looked at.
    pub fn calls(&self) -> u64 {
        self.calls.values().map(CallCount::total).sum()
    }

    /// Looks at its process, and at the definitions if they may have changed.
    pub(super) fn glance(&mut self) {
        if self.has_ended() {
            return;
        }
        let process = self.process_now();
        if process.runs() {
            self.closed.take_if(|closed| closed.goes_on());
        }
        if (self.begin_ticks.is_none() || self.place.is_none() || !process.runs())
            && let Ok(file) = RankFile::open(&self.file.path)
        {
            self.file = file;
            self.note_definitions();
        }
        self.state = match (self.state, process, self.place) {
            (RankState::Finished, ..) => RankState::Finished,
            (_, ProcessState::Gone, _) => RankState::Dead,
            (_, process, _) if is_stopped(process) => RankState::Stopped,
            (_, _, Some(Place::InMpi { .. })) => RankState::InMpi,
            _ => RankState::Computing,
        };
    }

    /// The state of its process. The kernel takes longer to tell it than all else, so it is asked only now and then: one that
    /// had a core since the last glance was neither stopped nor dead, and one that sleeps needs a core to be.
    fn process_now(&mut self) -> ProcessState {
        const ASKED: Duration = Duration::from_millis(250);
        const ASKED_RARELY: Duration = Duration::from_secs(2);
        let ran = std::mem::take(&mut self.ran);
        let is_known = self.closed.is_none() && self.accounts.len() == self.threads.len();
        if let Some((at, state)) = self.asked.filter(|_| is_known) {
            let state = if ran && state.runs() { ProcessState::Runs('R') } else { state };
            self.asked = Some((at, state));
            // A stopped one that goes on is stopped until it has a core.
            let rarely = ran || self.sleeps && !is_stopped(state);
            if at.elapsed() < if rarely { ASKED_RARELY } else { ASKED } {
                return state;
            }
        }
        let state = self.find_process();
        self.asked = Some((Instant::now(), state));
        // Not every kernel keeps accounts, and that of a thread that runs may be an old one.
        let has_account = is_known && self.cores.turns > 0;
        let is_running = !state.runs() || state == ProcessState::Runs('R');
        self.sleeps = has_account && self.is_alone() && !is_running;
        state
    }

    /// Notes that its process has let go of its file: it is about to end, or MPI_Finalize has returned.
    pub(super) fn let_go(&mut self, closed: Closed) {
        self.closed = self.closed.or(Some(closed));
        if let Ok(file) = RankFile::open(&self.file.path) {
            self.file = file;
            self.note_definitions();
        }
    }

    /// State of its process now.
    pub(super) fn process(&self) -> ProcessState {
        let known = self.process.as_ref().and_then(KnownProcess::state);
        known.unwrap_or_else(|| ProcessState::detect(&self.file))
    }

    /// The same; remembers the process.
    fn find_process(&mut self) -> ProcessState {
        if let Some(state) = self.process.as_ref().and_then(KnownProcess::state) {
            return state;
        }
        self.process = KnownProcess::new(&self.file);
        self.process()
    }

    fn note_definitions(&mut self) {
        let facts = RankFacts::from_definitions(&self.file.definitions);
        self.begin_ticks = facts.begin_ticks;
        if facts.finalized() {
            self.state = RankState::Finished;
        }
    }

    /// Reads how its threads used the cores, and how long they waited for one.
    fn note_queue(&mut self, ticks_per_s: f64) {
        let process = self.file.fixed.pid;
        let before = std::mem::take(&mut self.cores);
        self.accounts.retain(|thread, _| self.threads.contains(thread));
        self.queued.retain(|thread, _| self.threads.contains(thread));
        for thread in &self.threads {
            let account = match self.accounts.entry(*thread) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    match File::open(format!("/proc/{process}/task/{thread}/schedstat")) {
                        Ok(file) => new.insert(file),
                        Err(_) => continue,
                    }
                }
            };
            let Some([on_core, waited, turns]) = schedstat(account) else {
                // It has ended.
                self.accounts.remove(thread);
                continue;
            };
            if turns > 0 {
                self.queued.insert(*thread, waited);
                self.cores.add(on_core, waited, turns);
            }
        }
        let CoreUse { used_s, turns, .. } = self.cores;
        self.ran |= used_s > before.used_s || turns > before.turns;
        self.sleeps &= (used_s, turns) == (before.used_s, before.turns);
        let now = self.now();
        let (since, before) = &self.queued_before;
        let since_s = now.saturating_sub(*since) as f64 / ticks_per_s;
        if since_s < QUEUED_S {
            return;
        }
        let waited = self.queued.iter().filter_map(|(thread, now_ns)| {
            Some(now_ns.saturating_sub(*before.get(thread)?) as f64 * 1e-9)
        });
        let longest_s = waited.max_by(f64::total_cmp);
        self.waits_for_core = longest_s.map(|waited_s| (waited_s / since_s).clamp(0.0, 1.0));
        self.queued_before = (now, self.queued.clone());
    }

    /// Share of the last seconds outside MPI and the recorder; `None` if it has ended, or nothing was seen of it.
    pub fn efficiency(&self) -> Option<f64> {
        self.recent.efficiency().filter(|_| !self.has_ended())
    }
}

fn is_stopped(process: ProcessState) -> bool {
    matches!(process, ProcessState::Runs('T' | 't'))
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::os::unix::fs::FileExt;
    use std::process::{Child, Command};

    use rustix::process::{Pid, Signal, kill_process};
    use trace_format::encoding::checksum;
    use trace_format::layout::*;

    use super::super::run::LiveRun;
    use super::*;
    use crate::synthetic_trace::{RunDirectory, SyntheticRank, number_of};
    use crate::trace::host_name;

    struct Sleeper(Child);

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    impl Sleeper {
        fn signal(&self, signal: Signal) {
            kill_process(Pid::from_child(&self.0), signal).unwrap();
        }
    }

    /// Adds an empty window of a process's first thread to a file. Returns where its first slot lies.
    fn add_window(file: &File, process: u32) -> u64 {
        let at = file.metadata().unwrap().len().next_multiple_of(CHUNK_GRANULE);
        let mut header: ChunkHeader = read_plain(&[0; CHUNK_HEADER_BYTES]).unwrap();
        (header.magic, header.kind, header.flags) = (CHUNK_MAGIC, CHUNK_EVENTS, CHUNK_IS_WINDOW);
        (header.length, header.opened_ticks) = (MAPPING_GRANULE, 3000);
        header.thread_os_id = process;
        let (from, to) = CHUNK_CRC_COVERS;
        header.crc = checksum(&bytes_of(&header)[from..to]);
        file.set_len(at + MAPPING_GRANULE).unwrap();
        file.write_all_at(bytes_of(&header), at).unwrap();
        at + CHUNK_HEADER_BYTES as u64
    }

    /// Looks until the rank is as expected.
    fn look_until(run: &mut LiveRun, what: &str, is_so: impl Fn(&LiveRank) -> bool) {
        const PATIENCE: Duration = Duration::from_secs(60);
        let end = Instant::now() + PATIENCE;
        while !run.ranks().all(&is_so) {
            assert!(Instant::now() < end, "not {what}: {:?}", run.ranks().next());
            std::thread::sleep(Duration::from_millis(20));
            run.look();
            run.glance();
        }
    }

    /// The process is another program, so that what it writes is known.
    #[test]
    fn windows_of_a_thread_that_sleeps_are_not_read_until_it_has_a_core() {
        let directory = RunDirectory::new();
        let mut rank = SyntheticRank::complete(0, 1, 1000, 2000);
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        (rank.header.host, rank.header.boot_id) = (host_name(), boot_id.trim().to_owned());
        directory.write(&rank);
        let file = OpenOptions::new().read(true).write(true).open(directory.file(0)).unwrap();
        let mut command = Command::new("sleep");
        let child = command.arg("1000").stdin(file.try_clone().unwrap()).spawn().unwrap();
        let process = Sleeper(child);
        rank.fixed.pid = process.0.id();
        directory.write(rank.killed());
        let slot = add_window(&file, rank.fixed.pid);

        let mut run = LiveRun::open(directory.path()).unwrap();
        look_until(&mut run, "asleep", |rank| rank.sleeps);
        let call = slot_word(0, number_of("MPI_Recv") | FUNCTION_OPEN, 0);
        let call = Slot { begin: 4000, word: call, ..Slot::default() };
        file.write_all_at(bytes_of(&call), slot).unwrap();
        for _ in 0..20 {
            run.look();
            run.glance();
        }
        let is_inside = |rank: &LiveRank| matches!(rank.place, Some(Place::InMpi { .. }));
        assert!(run.ranks().all(|rank| rank.sleeps && !is_inside(rank)));
        process.signal(Signal::STOP);
        look_until(&mut run, "stopped", |rank| rank.state == RankState::Stopped);
        assert!(run.ranks().all(is_inside), "it had a core to stop");
        process.signal(Signal::CONT);
        look_until(&mut run, "in MPI", |rank| rank.state == RankState::InMpi);
        look_until(&mut run, "asleep again", |rank| rank.sleeps);
        drop(process);
        look_until(&mut run, "dead", |rank| rank.state == RankState::Dead);
    }
}
