//! Run directories for tests. A test states which calls a rank made and when, and gets the files
//! that a recorder would have written.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use trace_format::encoding::checksum;
use trace_format::functions;
use trace_format::header::{
    ClockAnchor, ClockExchange, Definition, FileHeader, Phase, ProcessUsage, ThreadUsage,
    UsageReading,
};
use trace_format::layout::*;
use trace_format::reader::SampledThread;
use trace_format::totals::*;
use trace_format::writer::{chunk, chunk_of_slots, definition_chunk, header_area, sample_chunks};

/// A unique directory that is removed when the value is dropped.
#[derive(Debug)]
pub struct RunDirectory(PathBuf);

impl RunDirectory {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gammachi-test-{}-{number}.gammachi", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A directory with the files of these ranks.
    pub fn with_ranks(ranks: &[SyntheticRank]) -> Self {
        let directory = Self::new();
        ranks.iter().for_each(|rank| directory.write(rank));
        directory
    }

    /// A directory with the files of these ranks, with encoded slots.
    #[allow(dead_code, reason = "not every test that shares this file uses it")]
    pub fn of_encoded(ranks: &[SyntheticRank]) -> Self {
        let directory = Self::new();
        let encoded = |rank: &SyntheticRank| SyntheticRank { is_encoded: true, ..rank.clone() };
        ranks.iter().map(encoded).for_each(|rank| directory.write(&rank));
        directory
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self, rank: u32) -> PathBuf {
        self.0.join(rank_file_path(0, rank))
    }

    pub fn write(&self, rank: &SyntheticRank) {
        let path = self.file(rank.fixed.rank);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, rank.bytes()).unwrap();
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Number of a function in the generated files.
pub fn number_of(name: &str) -> u16 {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(functions::names);
    let index = NAMES.iter().position(|other| other == name);
    FIRST_FUNCTION + index.unwrap_or_else(|| panic!("no function {name}")) as u16
}

/// The file of one rank under construction. Its counter runs at 1 GHz unless stated otherwise.
#[derive(Debug, Clone)]
pub struct SyntheticRank {
    pub fixed: FixedHeader,
    pub header: FileHeader,
    pub definitions: Vec<Definition>,
    /// Slots of each thread.
    pub threads: Vec<Vec<Slot>>,
    /// Totals of the first thread, written after its slots.
    pub totals: Option<(SnapshotHeader, Vec<TotalsEntry>)>,
    /// Whether its slots are encoded, as those of full windows are.
    pub is_encoded: bool,
    /// What was sampled of its threads.
    pub sampled: Vec<SampledThread>,
}

impl SyntheticRank {
    /// A rank without events or definitions.
    pub fn new(rank: u32, world_size: u32) -> Self {
        Self {
            fixed: FixedHeader {
                pid: 100 + rank,
                ..FixedHeader::new(CounterKind::Tsc, 0, rank, world_size)
            },
            header: FileHeader {
                recorder_version: "0.1.0".into(),
                program: "/opt/bin/solver".into(),
                build_id: String::new(),
                arguments: vec!["./solver".into()],
                directory: "/opt".into(),
                host: "n0".into(),
                boot_id: "boot-n0".into(),
                mpi_library: "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4".into(),
                mpi_family: "openmpi".into(),
                mpi_version: (3, 1),
                thread_level: 0,
                counter_invariant: true,
                compute: "outside".into(),
                parameters: vec![("N".into(), "4000".into())],
                affinity: vec![rank],
                numa_node: 0,
                function_names: functions::names().join("\n"),
            },
            definitions: Vec::new(),
            threads: vec![Vec::new()],
            totals: None,
            is_encoded: false,
            sampled: Vec::new(),
        }
    }

    /// A rank that ran from `begin` to `end`, with MPI_Init before `begin` and anchors of a 1 GHz
    /// counter. Ranks other than 0 have clock exchanges that find the counter shared.
    pub fn complete(rank: u32, world_size: u32, begin: u64, end: u64) -> Self {
        let mut this = Self::new(rank, world_size);
        this.anchor(begin / 2, 1e9, begin / 2).anchor(begin - 50, 1e9, begin - 50);
        this.anchor(end + 50, 1e9, end + 50);
        if rank != 0 {
            this.exchange(Phase::Init, 0, begin - 40, begin - 40);
            this.exchange(Phase::Finalize, 0, end + 40, end + 40);
        }
        this.call(0, "MPI_Init", begin - 100, begin - 60);
        this.definitions.push(Definition::RankBegin { ticks: begin });
        this.definitions.push(Definition::RankEnd { ticks: end });
        this.definitions.push(Definition::Finalized { lost_events: 0 });
        this
    }

    /// Adds the call of MPI_Finalize. It must be the last call.
    pub fn finalize(&mut self, begin: u64, end: u64) -> &mut Self {
        self.call(0, "MPI_Finalize", begin, end)
    }

    /// Makes it a rank that was killed: no end, no second exchange or anchor, not finalized.
    pub fn killed(&mut self) -> &mut Self {
        self.definitions.retain(|definition| match definition {
            Definition::RankEnd { .. } | Definition::Finalized { .. } => false,
            Definition::ClockExchange(exchange) => exchange.phase == Phase::Init,
            _ => true,
        });
        let last = self.definitions.iter().rposition(|d| matches!(d, Definition::ClockAnchor(_)));
        self.definitions.remove(last.unwrap());
        self
    }

    /// An anchor: the counter beside a monotonic clock. The counter runs at `hz`.
    pub fn anchor(&mut self, ticks: u64, hz: f64, monotonic_raw_ns: u64) -> &mut Self {
        let width_ticks = (hz * 20e-9) as u64;
        self.definitions.push(Definition::ClockAnchor(ClockAnchor {
            ticks,
            width_ticks,
            monotonic_raw_ns,
            realtime_ns: 1_700_000_000_000_000_000 + monotonic_raw_ns,
        }));
        self
    }

    /// A clock exchange with a bound of 10 ticks; both are on one host if the readings agree.
    pub fn exchange(&mut self, phase: Phase, parent: u32, child: u64, of_parent: u64) -> &mut Self {
        self.definitions.push(Definition::ClockExchange(ClockExchange {
            phase,
            parent,
            same_host: child == of_parent,
            rounds: 100,
            kept: 10,
            child_ticks: child,
            parent_ticks: of_parent,
            bound_ticks: 10,
            min_round_trip_ticks: 300,
            median_round_trip_ticks: 400,
        }));
        self
    }

    /// How the operating system scheduled the first thread until then; read at the begin or end of
    /// the rank.
    pub fn usage(
        &mut self,
        phase: Phase,
        run_queue_ns: u64,
        involuntary_switches: u64,
    ) -> &mut Self {
        self.thread_usage(0, phase, 0, run_queue_ns, involuntary_switches)
    }

    /// As [`SyntheticRank::usage`], for any thread (`u32::MAX` for one that does not call MPI) and
    /// with its time on a core.
    pub fn thread_usage(
        &mut self,
        thread: u32,
        phase: Phase,
        on_cpu_ns: u64,
        run_queue_ns: u64,
        involuntary_switches: u64,
    ) -> &mut Self {
        let ticks = self.definitions.iter().find_map(|definition| match (definition, phase) {
            (Definition::RankBegin { ticks }, Phase::Init) => Some(*ticks),
            (Definition::RankEnd { ticks }, Phase::Finalize) => Some(*ticks),
            _ => None,
        });
        self.definitions.push(Definition::ThreadUsage(ThreadUsage {
            thread,
            thread_os_id: thread.wrapping_add(1),
            phase,
            ticks: ticks.unwrap_or(0),
            on_cpu_ns,
            run_queue_ns,
            voluntary_switches: 0,
            involuntary_switches,
            minor_faults: 0,
            core: self.fixed.rank,
        }));
        self
    }

    /// Time on a core of the whole process until then, and that of recorded threads that have
    /// ended.
    pub fn process_usage(
        &mut self,
        phase: Phase,
        on_cpu_ns: u64,
        ended_threads_ns: u64,
    ) -> &mut Self {
        self.definitions.push(Definition::ProcessUsage(ProcessUsage {
            phase,
            ticks: 0,
            on_cpu_ns,
            ended_threads_ns,
        }));
        self
    }

    /// What the process had used when it was read: its time on a core, all of its first thread, which
    /// then waited for one; memory in bytes, now and at most.
    pub fn usage_reading(
        &mut self,
        (phase, ticks): (Phase, u64),
        (on_cpu_ns, run_queue_ns): (u64, u64),
        (resident_bytes, peak_resident_bytes): (u64, u64),
    ) -> &mut Self {
        self.definitions.push(Definition::UsageReading(UsageReading {
            phase,
            ticks,
            on_cpu_ns,
            ended_threads_ns: 0,
            first_thread_on_cpu_ns: on_cpu_ns,
            first_thread_run_queue_ns: run_queue_ns,
            resident_bytes,
            peak_resident_bytes,
        }));
        self
    }

    pub fn region_name(&mut self, id: u32, name: &str) -> &mut Self {
        self.definitions.push(Definition::Region { id, name: name.into() });
        self
    }

    pub fn slot(&mut self, thread: usize, slot: Slot) -> &mut Self {
        if self.threads.len() <= thread {
            self.threads.resize(thread + 1, Vec::new());
        }
        self.threads[thread].push(slot);
        self
    }

    pub fn call(&mut self, thread: usize, name: &str, begin: u64, end: u64) -> &mut Self {
        self.timed(thread, number_of(name), 0, begin, end)
    }

    /// A call that has not returned.
    pub fn open_call(&mut self, thread: usize, name: &str, begin: u64) -> &mut Self {
        let word = slot_word(0, number_of(name) | FUNCTION_OPEN, 0);
        self.slot(thread, Slot { begin, word, ..Slot::default() })
    }

    /// A call that was left by longjmp or an exception.
    pub fn abandoned_call(&mut self, thread: usize, name: &str, begin: u64) -> &mut Self {
        let word = slot_word(0, number_of(name) | FUNCTION_ABANDONED, 0);
        self.slot(thread, Slot { begin, word, ..Slot::default() })
    }

    /// A run of empty polls from `begin` to `end` with `inside` ticks in MPI.
    pub fn polls(
        &mut self,
        name: &str,
        begin: u64,
        end: u64,
        count: u64,
        inside: u64,
    ) -> &mut Self {
        let word = slot_word(DURATION_ESCAPE, number_of(name), 0);
        self.slot(0, Slot { begin, word, ..Slot::default() });
        self.slot(0, Continuation::Polls { count, inside, span: end - begin }.slot())
    }

    /// A compute call with its operations and bytes.
    pub fn compute(
        &mut self,
        name: &str,
        begin: u64,
        end: u64,
        flops: f64,
        bytes: u64,
    ) -> &mut Self {
        let word = slot_word((end - begin) as u32, number_of(name), 0);
        self.slot(0, Slot { begin, word, ..Slot::of_work(flops, bytes) })
    }

    pub fn tool(&mut self, thread: usize, reason: ToolReason, begin: u64, end: u64) -> &mut Self {
        self.timed(thread, TOOL, reason as i32, begin, end)
    }

    /// The end of a parallel region of so many threads, of which one worked longest.
    pub fn team(
        &mut self,
        (threads, slowest): (u16, u32),
        end: u64,
        (team, waits): (Team, TeamWaits),
    ) -> &mut Self {
        self.slot(0, Slot { begin: end, site: 0x1234, ..Slot::of_team(threads, slowest) });
        self.slot(0, Continuation::Team(team).slot());
        self.slot(0, Continuation::TeamWaits(waits).slot())
    }

    /// Calls on a file: kind with flags, and the file's number.
    pub fn file_calls(
        &mut self,
        (field, file): (u16, u32),
        begin: u64,
        calls: FileCalls,
    ) -> &mut Self {
        self.slot(0, Slot { begin, site: 0x1234, ..Slot::of_file_calls(field, file) });
        self.slot(0, Continuation::FileCalls(calls).slot())
    }

    /// The reading of a counter at a region marker.
    pub fn counter_reading(
        &mut self,
        thread: usize,
        reading: CounterSlot,
        begin: u64,
        end: u64,
    ) -> &mut Self {
        self.tool(thread, ToolReason::Counters, begin, end);
        self.threads[thread].last_mut().unwrap().set_payload(reading.payload());
        self
    }

    pub fn region_begin(&mut self, thread: usize, id: u32, at: u64) -> &mut Self {
        self.timed(thread, REGION_BEGIN, id as i32, at, at)
    }

    pub fn region_end(&mut self, thread: usize, id: u32, at: u64) -> &mut Self {
        self.timed(thread, REGION_END, id as i32, at, at)
    }

    fn timed(
        &mut self,
        thread: usize,
        function: u16,
        peer: i32,
        begin: u64,
        end: u64,
    ) -> &mut Self {
        let duration = end - begin;
        if duration < u64::from(DURATION_ESCAPE) {
            let word = slot_word(duration as u32, function, 0);
            return self.slot(thread, Slot { begin, word, peer, ..Slot::default() });
        }
        let word = slot_word(DURATION_ESCAPE, function, 0);
        self.slot(thread, Slot { begin, word, peer, ..Slot::default() });
        self.slot(thread, Continuation::Duration { ticks: duration, error: 0 }.slot())
    }

    /// Scales and shifts all counter readings, as if the counter were skewed. Exchanges keep the
    /// parent's readings.
    pub fn skewed(&self, offset: i64, rate: f64) -> Self {
        let skew = |ticks: u64| (ticks as f64 * rate).round() as u64;
        let skew = |ticks: u64| skew(ticks).wrapping_add_signed(offset);
        let mut skewed = self.clone();
        for slot in skewed.threads.iter_mut().flatten() {
            let end = skew(slot.begin + u64::from(slot.duration()));
            slot.begin = skew(slot.begin);
            let duration = end - slot.begin;
            slot.word = slot.word & !0xffff_ffff | duration;
        }
        for definition in &mut skewed.definitions {
            match definition {
                Definition::ClockAnchor(anchor) => anchor.ticks = skew(anchor.ticks),
                Definition::ClockExchange(exchange) => {
                    exchange.child_ticks = skew(exchange.child_ticks);
                    exchange.same_host = false;
                }
                Definition::RankBegin { ticks } | Definition::RankEnd { ticks } => {
                    *ticks = skew(*ticks);
                }
                _ => {}
            }
        }
        skewed
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut file = header_area(&self.fixed, &self.header).unwrap();
        file.extend(definition_chunk(&self.definitions).unwrap());
        if let Some((header, entries)) = &self.totals {
            let header = SnapshotHeader {
                entries: entries.len() as u32,
                first_sequence: 1,
                next_sequence: 2,
                ..*header
            };
            let mut snapshot = bytes_of(&header).to_vec();
            snapshot.extend(entries.iter().flat_map(|entry| bytes_of(entry).to_vec()));
            let crc = checksum(&snapshot[SNAPSHOT_CRC_BYTES..]);
            snapshot[..SNAPSHOT_CRC_BYTES].copy_from_slice(&crc.to_le_bytes());
            let mut content = vec![0; TOTALS_CHUNK_BYTES - CHUNK_HEADER_BYTES];
            content[SELECTOR_AT - CHUNK_HEADER_BYTES..][..8].copy_from_slice(&2u64.to_le_bytes());
            content[snapshot_at(0) - CHUNK_HEADER_BYTES..][..snapshot.len()]
                .copy_from_slice(&snapshot);
            file.extend(chunk((CHUNK_TOTALS, 0, 0, 0), &content));
        }
        let slots_per_chunk = (MAPPING_GRANULE as usize - CHUNK_HEADER_BYTES) / SLOT_BYTES;
        for (thread, slots) in self.threads.iter().enumerate() {
            for (sequence, slots) in whole_events(slots, slots_per_chunk).enumerate() {
                let opened = slots[0].begin;
                let (thread, sequence) = (thread as u32, sequence as u32);
                file.extend(match self.is_encoded {
                    true => chunk_of_slots((thread, sequence, opened), slots),
                    false => chunk((CHUNK_EVENTS, thread, sequence, opened), bytes_of_all(slots)),
                });
            }
        }
        for (area, sampled) in (0..).zip(&self.sampled) {
            file.extend(sample_chunks(area, sampled).unwrap());
        }
        file
    }
}

/// Splits slots into pieces of at most `most` slots without splitting an event.
fn whole_events(slots: &[Slot], most: usize) -> impl Iterator<Item = &[Slot]> {
    let mut rest = slots;
    std::iter::from_fn(move || {
        let behind = |at: &usize| rest.get(*at).is_none_or(|slot| slot.function() != CONTINUATION);
        let end = (1..=most.min(rest.len())).rev().find(behind)?;
        let (piece, left) = rest.split_at(end);
        rest = left;
        Some(piece)
    })
}
