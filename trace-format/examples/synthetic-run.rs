//! Writes a run directory of any size, as the recorder would have left it, to measure how fast
//! traces are read and displayed.
//!
//! ```text
//! cargo run --release -p gammachi-trace-format --example synthetic-run --features writer -- OUT RANKS CALLS \
//!     [apart] [raw] [all-to-all] [messages-only] [busy-rank] [samples=NUMBER] [code=FILE,BUILD_ID,BEGIN,END]
//! ```
//!
//! In each step, each rank posts two receives and two sends to its neighbours in a ring, computes,
//! waits for all four, exchanges one blocking message in pairs and takes part in an MPI_Allreduce.
//! Every eighth step has an MPI_Bcast, every 64th a run of polls. One region spans all steps, and
//! each tenth of the steps has a region of its own. Durations vary as real ones do. Every message
//! and collective operation is complete, and equal arguments give equal bytes. `apart` places each
//! rank on its own host and omits the clock exchanges; `raw` leaves the windows unencoded. Shapes that are hard to
//! analyse: with `all-to-all` each rank exchanges messages with all others in each step, with `messages-only` there is
//! no collective operation, and with `busy-rank` rank 0 makes ten times as many calls as the others. `samples` are of the
//! program's own code, of all ranks together, 800 call paths and 2,500 instructions of each, between the addresses BEGIN
//! and END (hexadecimal) of a program with symbols.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use trace_format::functions;
use trace_format::header::{
    ClockAnchor, ClockExchange, Communicator, Definition, FileHeader, Module, Phase, Sampling,
    SamplingSource,
};
use trace_format::layout::*;
use trace_format::reader::{Sample, SampledThread};
use trace_format::writer::{chunk, chunk_of_slots, definition_chunk, header_area, sample_chunks};

/// Size of the recorder's windows in bytes.
const CHUNK_BYTES: usize = 256 * 1024;
/// Duration of a step in ticks; a tick is a nanosecond.
const STEP: u64 = 40_000;
const FIRST_STEP: u64 = 2_000_000;
/// Number of calls in a step, and the intervals of steps with extra calls.
const CALLS_A_STEP: u64 = 7;
/// Number of regions inside the region of all steps, each with a tenth of them, and id of the
/// first.
const PARTS: u64 = 10;
const FIRST_PART: u32 = 2;
const BROADCAST_EVERY: u64 = 8;
const POLLS_EVERY: u64 = 64;
/// When each rank computes in every step, counted from the step's time.
const COMPUTES: std::ops::Range<u64> = 5600..7000;
/// Where the sampled code is mapped.
const CODE_BASE: u64 = 0x5555_0000_0000;
/// Call paths in the samples of a rank, and instructions, of which each is on one of them.
const SAMPLED_PATHS: u64 = 800;
const SAMPLED_INSTRUCTIONS: u64 = 2500;

/// The program's code, of which samples are taken.
#[derive(Clone)]
struct Code {
    path: String,
    build_id: String,
    begin: u64,
    end: u64,
}

impl Code {
    /// From `FILE,BUILD_ID,BEGIN,END`.
    fn parse(text: &str) -> Option<Self> {
        let [path, build_id, begin, end] = text.split(',').collect::<Vec<_>>().try_into().ok()?;
        let address = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        let (begin, end) = (address(begin)?, address(end)?);
        let (path, build_id) = (path.to_owned(), build_id.to_owned());
        (begin < end).then_some(Self { path, build_id, begin, end })
    }

    /// An address of the code as it is mapped; the same for the same number.
    fn address(&self, number: u64) -> u64 {
        CODE_BASE + self.begin + noise(0, number, 20, self.end - self.begin)
    }
}

/// What of a run is chosen.
#[derive(Clone)]
struct Choice {
    apart: bool,
    raw: bool,
    all_to_all: bool,
    messages_only: bool,
    busy_rank: bool,
    /// Samples of all ranks.
    samples: u64,
    code: Code,
}

impl Choice {
    /// From the last arguments; the first one that is none of them.
    fn parse(arguments: &[String]) -> Result<Self, &str> {
        let path = "/opt/bin/synthetic".to_owned();
        let code = Code { path, build_id: String::new(), begin: 0x1000, end: 0x10_0000 };
        let (apart, raw, all_to_all, messages_only, busy_rank) = Default::default();
        let mut choice =
            Self { apart, raw, all_to_all, messages_only, busy_rank, samples: 0, code };
        for option in arguments {
            match option.split_once('=').unwrap_or((option, "")) {
                ("apart", "") => choice.apart = true,
                ("raw", "") => choice.raw = true,
                ("all-to-all", "") => choice.all_to_all = true,
                ("messages-only", "") => choice.messages_only = true,
                ("busy-rank", "") => choice.busy_rank = true,
                ("samples", number) => {
                    choice.samples = number.parse::<f64>().map_err(|_| option.as_str())? as u64;
                }
                ("code", code) => choice.code = Code::parse(code).ok_or(option.as_str())?,
                _ => return Err(option),
            }
        }
        Ok(choice)
    }
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<f64>().ok());
    let (Some(out), Some(ranks), Some(calls)) = (arguments.first(), number(1), number(2)) else {
        eprintln!(
            "usage: synthetic-run OUT RANKS CALLS [apart] [raw] [all-to-all] [messages-only] [busy-rank]     (such as \
             /tmp/run 16 1e8)"
        );
        std::process::exit(2);
    };
    let choice = Choice::parse(arguments.get(3..).unwrap_or_default()).unwrap_or_else(|option| {
        eprintln!(
            "synthetic-run: {option:?} is none of `apart`, `raw`, `all-to-all`, `messages-only`, `busy-rank`, \
             `samples=NUMBER`, `code=FILE,BUILD_ID,BEGIN,END`"
        );
        std::process::exit(2);
    });
    let (out, ranks) = (Path::new(out), (ranks as u32).max(2));
    let in_step = match (choice.all_to_all, choice.busy_rank) {
        (true, _) => u64::from(ranks) * (2 * u64::from(ranks) + CALLS_A_STEP - 6),
        (false, true) => (u64::from(ranks) + 9) * CALLS_A_STEP,
        (false, false) => u64::from(ranks) * CALLS_A_STEP,
    };
    let steps = (calls as u64 / in_step).max(1);
    let next = AtomicU32::new(0);
    let worker = || -> io::Result<()> {
        loop {
            let rank = next.fetch_add(1, Ordering::Relaxed);
            if rank >= ranks {
                return Ok(());
            }
            RankWriter::write(out, rank, ranks, steps, &choice)?;
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let results = handles.into_iter().map(|handle| match handle.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.collect::<io::Result<()>>()
    })
}

/// A pseudo-random number below `below`, equal for equal arguments.
fn noise(rank: u32, step: u64, what: u64, below: u64) -> u64 {
    let mut x = u64::from(rank) << 40 ^ step << 8 ^ what;
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ x >> 31) % below
}

/// When a rank begins a step.
fn begin_of(rank: u32, step: u64) -> u64 {
    FIRST_STEP + step * STEP + noise(rank, step, 0, 4000)
}

/// A call on MPI_COMM_WORLD.
fn on_world(peer: u32, tag: i32, bytes: u32, request: u32) -> Slot {
    Slot {
        word: u64::from(COMMUNICATOR_WORLD) << 48,
        peer: peer as i32,
        detail: tag,
        bytes,
        request,
        ..Slot::default()
    }
}

/// The completion of a request, from its peer and tag.
fn completed((from, tag, request): (u32, i32, u32), bytes: u32) -> Slot {
    let (peer, bytes) = (from as i32, bytes.into());
    let state =
        RequestState { request, completed: true, peer, tag, bytes, ..RequestState::default() };
    Continuation::Request(state).slot()
}

struct RankWriter<'c> {
    file: BufWriter<File>,
    rank: u32,
    size: u32,
    choice: &'c Choice,
    numbers: Vec<(&'static str, u16)>,
    slots: Vec<Slot>,
    sequence: u32,
}

const NAMES: [&str; 12] = [
    "MPI_Init",
    "MPI_Finalize",
    "MPI_Irecv",
    "MPI_Isend",
    "MPI_Waitall",
    "MPI_Send",
    "MPI_Recv",
    "MPI_Allreduce",
    "MPI_Bcast",
    "MPI_Iprobe",
    "MPI_Comm_rank",
    "MPI_Comm_size",
];

impl<'c> RankWriter<'c> {
    fn write(out: &Path, rank: u32, size: u32, steps: u64, choice: &'c Choice) -> io::Result<()> {
        let path = out.join(rank_file_path(0, rank));
        fs::create_dir_all(path.parent().unwrap_or(out))?;
        let names = functions::names();
        let numbers = NAMES.iter().map(|name| {
            let index = names.iter().position(|other| other == name);
            (*name, FIRST_FUNCTION + index.expect("the table contains it") as u16)
        });
        let mut writer = Self {
            file: BufWriter::with_capacity(1 << 20, File::create(path)?),
            rank,
            size,
            choice,
            numbers: numbers.collect(),
            slots: Vec::with_capacity(CHUNK_BYTES / SLOT_BYTES),
            sequence: 0,
        };
        let end = FIRST_STEP + steps * STEP;
        writer.head((steps, end), &names)?;
        writer.call("MPI_Init", 500_000, 900_000, &Slot::default())?;
        writer.marker(REGION_BEGIN, 1, 1_100_000)?;
        for part in 0..PARTS {
            let steps = steps * part / PARTS..steps * (part + 1) / PARTS;
            if steps.is_empty() {
                continue;
            }
            let id = FIRST_PART + part as u32;
            writer.marker(REGION_BEGIN, id, begin_of(rank, steps.start))?;
            for step in steps.clone() {
                writer.step(step)?;
                if choice.busy_rank && rank == 0 {
                    writer.own_messages(step)?;
                }
            }
            writer.marker(REGION_END, id, begin_of(rank, steps.end))?;
        }
        writer.marker(REGION_END, 1, end + 4100)?;
        writer.call("MPI_Finalize", end + 5000, end + 90_000, &Slot::default())?;
        writer.flush_chunk()?;
        if let Some(sampled) = sampled(rank, size, (steps, end), choice) {
            writer.file.write_all(&sample_chunks(0, &sampled)?)?;
        }
        writer.file.flush()
    }

    fn number(&self, name: &str) -> u16 {
        let found = self.numbers.iter().find(|(other, _)| *other == name);
        found.expect("the name is in NAMES").1
    }

    fn step(&mut self, step: u64) -> io::Result<()> {
        let (rank, size) = (self.rank, self.size);
        let left = (rank + size - 1) % size;
        let varies = |what: u64, below: u64| noise(rank, step, what, below);
        if self.choice.all_to_all {
            self.all_to_all(step)?;
        } else {
            self.halo(step)?;
        }
        let base = FIRST_STEP + step * STEP;
        let sends = rank.is_multiple_of(2);
        if sends && rank + 1 < size {
            let at = base + 15_000 + varies(7, 900);
            let slot = on_world(rank + 1, 3, 256, 0);
            self.call("MPI_Send", at, at + 700 + varies(8, 200), &slot)?;
        } else if !sends {
            let at = base + 14_800 + varies(7, 2000);
            let sent = base + 15_000 + noise(rank - 1, step, 7, 900);
            let done = at.max(sent) + 1100 + varies(8, 400);
            self.call("MPI_Recv", at, done, &on_world(rank - 1, 3, 256, 0))?;
        }
        if step.is_multiple_of(POLLS_EVERY) {
            let at = base + 19_500 + varies(9, 100);
            let word = slot_word(DURATION_ESCAPE, 0, COMMUNICATOR_WORLD);
            let polls = Continuation::Polls { count: 20, inside: 1800, span: 2600 }.slot();
            let slot = Slot { word, ..on_world(left, 9, 0, 0) };
            self.stored("MPI_Iprobe", at, &slot, &[polls])?;
        }
        if self.choice.messages_only {
            return Ok(());
        }
        let at = base + 23_000 + varies(10, 4500);
        let slot = Slot { detail: 8, ..on_world(0, 0, 8, 0) };
        self.call("MPI_Allreduce", at, base + 29_000 + varies(11, 250), &slot)?;
        if step.is_multiple_of(BROADCAST_EVERY) {
            let at = base + 30_000 + varies(12, 1500);
            let root = (step / BROADCAST_EVERY % u64::from(size)) as u32;
            let sends = if root == rank { 64 } else { 0 };
            let slot = Slot { detail: 64 - sends, ..on_world(root, 0, sends as u32, 0) };
            self.call("MPI_Bcast", at, base + 33_000 + varies(13, 250), &slot)?;
        }
        Ok(())
    }

    /// Exchanges two messages with each neighbour in a ring.
    fn halo(&mut self, step: u64) -> io::Result<()> {
        let (rank, size) = (self.rank, self.size);
        let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
        let begin = begin_of(rank, step);
        let varies = |what: u64, below: u64| noise(rank, step, what, below);
        let bytes = 8192u32 << (step / 1024 % 4);
        let posted = [(left, 1, 0x60), (right, 2, 0x61)];
        for (index, (from, tag, request)) in posted.into_iter().enumerate() {
            let at = begin + 300 * index as u64;
            let slot = on_world(from, tag, bytes, request);
            self.call("MPI_Irecv", at, at + 120 + varies(1 + index as u64, 90), &slot)?;
        }
        for (index, (to, tag, request)) in
            [(right, 1, 0x62), (left, 2, 0x63)].into_iter().enumerate()
        {
            let at = begin + 600 + 500 * index as u64;
            let slot = on_world(to, tag, bytes, request);
            self.call("MPI_Isend", at, at + 280 + varies(3 + index as u64, 160), &slot)?;
        }
        let wait = begin + 7000 + varies(5, 2500);
        let sent = |other: u32| begin_of(other, step) + 1100 + 2600;
        let done = (wait + 150).max(sent(left)).max(sent(right)) + varies(6, 300);
        let received = posted.map(|posted| completed(posted, bytes));
        let sent = [0x62, 0x63].map(|request| completed((0, 0, request), 0));
        let statuses = [received, sent].concat();
        self.event("MPI_Waitall", wait, done, &Slot::default(), &statuses)
    }

    /// Exchanges a message with every other rank.
    fn all_to_all(&mut self, step: u64) -> io::Result<()> {
        let (rank, size) = (self.rank, self.size);
        let (begin, others) = (begin_of(rank, step), u64::from(size) - 1);
        let spacing = (5_000 / (2 * others)).max(2);
        let peer = |number: u64| (rank + 1 + number as u32) % size;
        for number in 0..2 * others {
            let at = begin + spacing * number;
            let (name, of) = match number.checked_sub(others) {
                None => ("MPI_Irecv", number),
                Some(of) => ("MPI_Isend", of),
            };
            let slot = on_world(peer(of), 1, 1024, 0x60 + number as u32);
            self.call(name, at, at + spacing / 2, &slot)?;
        }
        let received = |of: u64| completed((peer(of), 1, 0x60 + of as u32), 1024);
        let sent = |of: u64| completed((0, 0, 0x60 + (others + of) as u32), 0);
        let statuses: Vec<Slot> = (0..others).map(received).chain((0..others).map(sent)).collect();
        let wait = begin + 7000 + noise(rank, step, 5, 2500);
        let last_sent = (0..size).map(|other| begin_of(other, step)).max().unwrap_or(begin) + 5_100;
        let done = (wait + 150).max(last_sent) + noise(rank, step, 6, 300);
        self.event("MPI_Waitall", wait, done, &Slot::default(), &statuses)
    }

    /// Exchanges messages with itself, nine times as many calls as the others make in a step.
    fn own_messages(&mut self, step: u64) -> io::Result<()> {
        for number in 0..3 * CALLS_A_STEP {
            let at = FIRST_STEP + step * STEP + 36_000 + 150 * number;
            let slot = |request: u32| on_world(0, 4, 64, request);
            self.call("MPI_Irecv", at, at + 30, &slot(0x70))?;
            self.call("MPI_Isend", at + 40, at + 70, &slot(0x71))?;
            let statuses = [completed((0, 4, 0x70), 64), completed((0, 0, 0x71), 0)];
            self.event("MPI_Waitall", at + 80, at + 120, &Slot::default(), &statuses)?;
        }
        Ok(())
    }

    fn call(&mut self, name: &str, begin: u64, end: u64, slot: &Slot) -> io::Result<()> {
        self.event(name, begin, end, slot, &[])
    }

    fn event(
        &mut self,
        name: &str,
        begin: u64,
        end: u64,
        slot: &Slot,
        more: &[Slot],
    ) -> io::Result<()> {
        let word = slot.word | (end - begin);
        self.stored(name, begin, &Slot { word, ..*slot }, more)
    }

    fn marker(&mut self, function: u16, region: u32, at: u64) -> io::Result<()> {
        let word = slot_word(0, function, 0);
        self.put(Slot { begin: at, word, peer: region as i32, ..Slot::default() }, &[])
    }

    fn stored(&mut self, name: &str, begin: u64, slot: &Slot, more: &[Slot]) -> io::Result<()> {
        let number = self.number(name);
        let word = slot.word | u64::from(number) << 32;
        self.put(Slot { begin, word, site: 0x40_1000 + 32 * u64::from(number), ..*slot }, more)
    }

    fn put(&mut self, slot: Slot, more: &[Slot]) -> io::Result<()> {
        let room = (CHUNK_BYTES - CHUNK_HEADER_BYTES) / SLOT_BYTES;
        if self.slots.len() + 1 + more.len() > room {
            self.flush_chunk()?;
        }
        self.slots.push(slot);
        self.slots.extend(more);
        Ok(())
    }

    fn flush_chunk(&mut self) -> io::Result<()> {
        let Some(first) = self.slots.first() else { return Ok(()) };
        let opened = if self.sequence == 0 { 0 } else { first.begin };
        let chunk = match self.choice.raw {
            true => {
                let kind = (CHUNK_EVENTS, 0, self.sequence, opened);
                chunk(kind, bytes_of_all(&self.slots))
            }
            false => chunk_of_slots((0, self.sequence, opened), &self.slots),
        };
        self.file.write_all(&chunk)?;
        self.sequence += 1;
        self.slots.clear();
        Ok(())
    }

    fn head(&mut self, (steps, end): (u64, u64), names: &[String]) -> io::Result<()> {
        let (rank, size) = (self.rank, self.size);
        let host = if self.choice.apart { rank } else { 0 };
        let header = FileHeader {
            recorder_version: env!("CARGO_PKG_VERSION").into(),
            program: "/opt/bin/synthetic".into(),
            arguments: vec!["synthetic".into()],
            directory: "/opt".into(),
            host: format!("n{host}"),
            boot_id: format!("synthetic-{host}"),
            mpi_library: "Open MPI v4.1.4 (synthetic)".into(),
            mpi_family: "openmpi".into(),
            mpi_version: (3, 1),
            counter_invariant: true,
            compute: "outside".into(),
            affinity: vec![rank],
            function_names: names.join("\n"),
            ..FileHeader::default()
        };
        let fixed = FixedHeader {
            pid: 1000 + rank,
            run_id: [7; 16],
            ..FixedHeader::new(CounterKind::Tsc, 1, rank, size)
        };
        self.file.write_all(&header_area(&fixed, &header)?)?;
        let mut definitions = definitions(rank, size, end, self.choice.apart);
        if self.choice.samples > 0 {
            let Code { path, build_id, begin, end } = self.choice.code.clone();
            let (base, begin, end) = (CODE_BASE, CODE_BASE + begin, CODE_BASE + end);
            let module = Module { path, identity: build_id, base, begin, end, ticks: 0 };
            let per_second =
                self.choice.samples as f64 / f64::from(size) / (steps * STEP) as f64 * 1e9;
            let sampling = Sampling {
                rate_hz: (per_second as u32).max(1),
                source: SamplingSource::TaskClock,
                unavailable: String::new(),
            };
            definitions.extend([Definition::Module(module), Definition::Sampling(sampling)]);
        }
        self.file.write_all(&definition_chunk(&definitions)?)
    }
}

/// The samples of a rank, evenly over the times that it computes.
fn sampled(
    rank: u32,
    size: u32,
    (steps, end): (u64, u64),
    choice: &Choice,
) -> Option<SampledThread> {
    let count = choice.samples / u64::from(size);
    let in_step = count.div_ceil(steps).max(1);
    let sample = |number: u64| {
        let (step, place) = (number / in_step, number % in_step);
        let length = COMPUTES.end - COMPUTES.start;
        let instruction = noise(rank, number, 21, SAMPLED_INSTRUCTIONS);
        Sample {
            ticks: FIRST_STEP + step * STEP + COMPUTES.start + length * place / in_step,
            address: choice.code.address(instruction),
            path: Some((instruction % SAMPLED_PATHS) as u32),
            complete: true,
        }
    };
    // The callers of four paths are one path again, and so on.
    let path = |number: u64| {
        let callers = (0..5).map(|depth| choice.code.address(number >> (2 * depth) << 8 | depth));
        callers.collect()
    };
    let samples: Vec<Sample> = (0..count).map(sample).collect();
    let period_ns = (steps * STEP).checked_div(count)?;
    Some(SampledThread {
        thread: Some(0),
        os_id: 1000 + rank,
        begin: FIRST_STEP,
        end: Some(end),
        cpu_ns: count * period_ns,
        delivered: count,
        paths: (0..SAMPLED_PATHS).map(path).collect(),
        samples,
        ..SampledThread::default()
    })
}

fn definitions(rank: u32, size: u32, end: u64, apart: bool) -> Vec<Definition> {
    let anchor = |ticks: u64| {
        Definition::ClockAnchor(ClockAnchor {
            ticks,
            width_ticks: 30,
            monotonic_raw_ns: ticks,
            realtime_ns: 1_800_000_000_000_000_000 + ticks,
        })
    };
    let exchange = |phase, ticks: u64| {
        Definition::ClockExchange(ClockExchange {
            phase,
            parent: 0,
            same_host: true,
            rounds: 100,
            kept: 10,
            child_ticks: ticks,
            parent_ticks: ticks,
            bound_ticks: 10,
            min_round_trip_ticks: 300,
            median_round_trip_ticks: 400,
        })
    };
    let communicator = |id, hash, rank_in_it, size, members| {
        Definition::Communicator(Communicator {
            id,
            ticks: 0,
            hash,
            instance: 0,
            size,
            rank: rank_in_it,
            inter: false,
            members,
            remote_members: Vec::new(),
            remote_size: 0,
            parent: 0,
            made_by: 0,
        })
    };
    let world = if rank == 0 { vec![(0, 1, size)] } else { Vec::new() };
    let own = vec![(i64::from(rank), 0, 1)];
    let mut definitions = vec![
        anchor(100_000),
        communicator(COMMUNICATOR_WORLD, 7, rank, size, world),
        communicator(COMMUNICATOR_SELF, 100 + u64::from(rank), 0, 1, own),
        Definition::Region { id: 1, name: "solve".into() },
        Definition::RankBegin { ticks: 1_000_000 },
        Definition::RankEnd { ticks: end + 4500 },
        anchor(end + 60_000),
        Definition::Finalized { lost_events: 0 },
    ];
    if rank != 0 && !apart {
        let exchanges = [exchange(Phase::Init, 950_000), exchange(Phase::Finalize, end + 50_000)];
        definitions.splice(1..1, exchanges);
    }
    let parts = (FIRST_PART..).zip(0..PARTS);
    definitions
        .extend(parts.map(|(id, part)| Definition::Region { id, name: format!("part {part}") }));
    definitions
}
