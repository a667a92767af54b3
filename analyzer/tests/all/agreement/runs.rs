//! Runs of every kind that a user may have, made by seed: what a recorder, an importer or an accident would leave.

use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use gammachi_analyzer::export::Progress;
use gammachi_analyzer::export::content::{Choice, Content, Export};
use gammachi_analyzer::formats::{self, Format};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::timeline::communicators::CommunicatorTable;
use gammachi_analyzer::trace::Run;
use serde_json::json;
use trace_format::header::{Definition, Phase};
use trace_format::totals::{ANY_CLASS, HISTOGRAM_BINS, SnapshotHeader, TotalsEntry};

use crate::synthetic_code::{FUNCTIONS, LIBRARY, sampled};
use crate::synthetic_losses::{Exchange, TURNS, meets_after, neighbours_on, on_a_core};
use crate::synthetic_messages::{Attributes, on_world};
use crate::synthetic_trace::{RunDirectory, SyntheticRank, number_of};

const BEGIN: u64 = 1_000_000;

/// A kind of run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Healthy,
    LacksCores,
    Asleep,
    Killed,
    Aborted,
    Deadlocked,
    Hung,
    TotalsOnly,
    SomeTotals,
    Level0,
    Imported,
    Regions,
    TwoHosts,
    Damaged,
    RanksMissing,
    SmallMessages,
    NoOverlap,
    SerialIo,
    Blocked,
    ApartOnHosts,
    Sampled,
}

impl Kind {
    /// What no run of the kind has: what others were made for.
    pub fn has_not(self) -> Vec<&'static str> {
        let made_for = [
            (Self::NoOverlap, "no_overlap"),
            (Self::SerialIo, "serial_io"),
            (Self::Blocked, "blocked"),
            (Self::Asleep, "blocked"),
            (Self::ApartOnHosts, "placement"),
        ];
        let others = made_for.into_iter().filter(|(kind, _)| *kind != self);
        let mut others: Vec<&str> = others.map(|(_, finding)| finding).collect();
        others.retain(|finding| !made_for.contains(&(self, *finding)));
        others
    }

    pub const ALL: [Self; 21] = [
        Self::Healthy,
        Self::LacksCores,
        Self::Asleep,
        Self::Killed,
        Self::Aborted,
        Self::Deadlocked,
        Self::Hung,
        Self::TotalsOnly,
        Self::SomeTotals,
        Self::Level0,
        Self::Imported,
        Self::Regions,
        Self::TwoHosts,
        Self::Damaged,
        Self::RanksMissing,
        Self::SmallMessages,
        Self::NoOverlap,
        Self::SerialIo,
        Self::Blocked,
        Self::ApartOnHosts,
        Self::Sampled,
    ];
}

/// A run, removed when the value is dropped.
pub struct Made {
    directory: RunDirectory,
    /// Where the run is inside the directory, if it is not the directory itself.
    inside: Option<PathBuf>,
}

impl Made {
    pub fn path(&self) -> &Path {
        self.inside.as_deref().unwrap_or_else(|| self.directory.path())
    }
}

/// A call of a rank.
#[derive(Debug, Clone, Copy)]
struct Call {
    name: &'static str,
    begin: u64,
    end: u64,
    attributes: Attributes,
}

/// What every rank of a program calls, and when it ends.
struct Program {
    calls: Vec<Vec<Call>>,
    end: u64,
}

/// How the ranks of a program share their work.
#[derive(Clone, Copy)]
enum Work {
    Even,
    SlowRank(usize),
    SlowTurn(u64),
    Noise,
    Hardly,
}

impl Program {
    /// Ranks that compute, send to their neighbour and meet, again and again.
    fn new(rng: &mut Rng) -> Self {
        let count = rng.usize(2..=4);
        let turns = rng.u64(4..=14);
        let work = match rng.u8(0..5) {
            0 => Work::Even,
            1 => Work::SlowRank(rng.usize(0..count)),
            2 => Work::SlowTurn(rng.u64(0..turns)),
            3 => Work::Noise,
            _ => Work::Hardly,
        };
        let (messages, in_turn) = (rng.u8(0..3) > 0, rng.u8(0..3) == 0);
        let transfer = [20, 200, 20_000][rng.usize(0..3)];
        let meeting = ["MPI_Allreduce", "MPI_Barrier"][rng.usize(0..2)];
        let mut this = Self { calls: vec![Vec::new(); count], end: BEGIN };
        for turn in 0..turns {
            this.turn(rng, (turn, work), (messages, in_turn, transfer), meeting);
        }
        this
    }

    fn turn(
        &mut self,
        rng: &mut Rng,
        (turn, work): (u64, Work),
        (messages, in_turn, transfer): (bool, bool, u64),
        meeting: &'static str,
    ) {
        let count = self.calls.len();
        let mut own = |rank: usize| match work {
            Work::Even => 10_000,
            Work::SlowRank(slow) => 10_000 + 15_000 * u64::from(rank == slow),
            Work::SlowTurn(slow) => 10_000 + 400_000 * u64::from(turn == slow && rank == 0),
            Work::Noise => rng.u64(1_000..30_000),
            Work::Hardly => 900_000 + rng.u64(0..200),
        };
        let mut at: Vec<u64> = (0..count).map(|rank| self.end + own(rank)).collect();
        if messages {
            for rank in 0..count - 1 {
                let entered = at[rank];
                self.add(
                    rank,
                    "MPI_Send",
                    (entered, entered + 10),
                    on_world(rank as i32 + 1, 7, 80),
                );
                at[rank] = entered + 10;
                let posted = at[rank + 1];
                let done = posted.max(entered) + transfer;
                self.add(rank + 1, "MPI_Recv", (posted, done), on_world(rank as i32, 7, 80));
                at[rank + 1] = done + if in_turn { 10_000 } else { 0 };
            }
        }
        let met = at.iter().max().unwrap() + transfer;
        for (rank, entered) in at.into_iter().enumerate() {
            let bytes = if meeting == "MPI_Barrier" { 0 } else { 8 };
            self.add(rank, meeting, (entered, met), on_world(0, bytes, bytes as u32));
        }
        self.end = met;
    }

    fn add(
        &mut self,
        rank: usize,
        name: &'static str,
        (begin, end): (u64, u64),
        attributes: Attributes,
    ) {
        self.calls[rank].push(Call { name, begin, end, attributes });
    }

    /// The same, where everything takes so many times as long.
    fn slower(mut self, times: u64) -> Self {
        let at = |ticks: u64| BEGIN + (ticks - BEGIN) * times;
        for call in self.calls.iter_mut().flatten() {
            (call.begin, call.end) = (at(call.begin), at(call.end));
        }
        self.end = at(self.end);
        self
    }

    /// The ranks' files at a level of detail.
    fn ranks(&self, level: u8) -> Vec<SyntheticRank> {
        let count = self.calls.len() as u32;
        let of_rank = |(rank, calls): (u32, &Vec<Call>)| {
            let mut made = match level {
                0 => SyntheticRank::complete(rank, count, BEGIN, self.end),
                _ => SyntheticRank::level_1(rank, count, self.end),
            };
            for Call { name, begin, end, attributes } in calls {
                match level {
                    0 => made.call(0, name, *begin, *end),
                    _ => made.call_with(name, *begin, *end, *attributes),
                };
            }
            made.finalize(self.end, self.end + 10);
            made
        };
        (0..).zip(&self.calls).map(of_rank).collect()
    }

    /// The ranks' files up to a moment, as if they had been killed then.
    fn until(&self, moment: u64) -> Vec<SyntheticRank> {
        let calls = self.calls.iter();
        let calls = calls.map(|of| of.iter().filter(|call| call.end <= moment).copied().collect());
        let mut ranks = Self { calls: calls.collect(), end: moment }.ranks(1);
        for rank in &mut ranks {
            // MPI_Finalize was never called.
            rank.threads[0].pop();
            rank.killed();
        }
        ranks
    }

    /// A moment at which the program was somewhere in its turns.
    fn moment(&self, rng: &mut Rng) -> u64 {
        rng.u64(BEGIN + (self.end - BEGIN) / 4..self.end)
    }
}

/// A run of a kind; the same for the same seed.
pub fn make(kind: Kind, seed: u64) -> Made {
    let mut rng = Rng::with_seed(seed * 64 + kind as u64);
    let rng = &mut rng;
    let program = Program::new(rng);
    match kind {
        Kind::Healthy => ended(&program.ranks(1), Some(0)),
        Kind::LacksCores => ended(&lacks_cores(program.ranks(1), program.end, rng), Some(0)),
        Kind::Asleep => {
            let program = program.slower(200);
            ended(&asleep(program.ranks(1), program.end, rng), None)
        }
        Kind::Killed => killed(&program, rng),
        Kind::Aborted => stopped(&program, rng, |ranks, rng, at| {
            let who = rng.usize(0..ranks.len());
            ranks[who].open_call(0, "MPI_Abort", at);
        }),
        Kind::Deadlocked => stopped(&program, rng, |ranks, _, at| {
            let count = ranks.len() as i32;
            for (number, rank) in (0..).zip(ranks) {
                rank.open_call_with("MPI_Recv", at, on_world((number + 1) % count, 99, 8));
            }
        }),
        Kind::Hung => stopped(&program, rng, |ranks, rng, at| {
            let absent = rng.usize(0..ranks.len());
            let name = ["MPI_Barrier", "MPI_Allreduce"][rng.usize(0..2)];
            let present = ranks.iter_mut().enumerate().filter(|(number, _)| *number != absent);
            present.for_each(|(_, rank)| {
                rank.open_call_with(name, at, on_world(0, 0, 0));
            });
        }),
        Kind::TotalsOnly => ended(&totals(&program, true), Some(0)),
        Kind::SomeTotals => ended(&totals(&program, false), Some(0)),
        Kind::Level0 => ended(&program.ranks(0), Some(rng.u8(0..2))),
        Kind::Imported => imported(&program.ranks(1)),
        Kind::Regions => ended(&regions(program, rng), Some(0)),
        Kind::TwoHosts => ended(&two_hosts(program.ranks(1), rng), Some(0)),
        Kind::Damaged => damaged(&program.ranks(rng.u8(0..2)), rng),
        Kind::RanksMissing => {
            let made = ended(&program.ranks(1), Some(0));
            fs::remove_file(made.directory.file(rng.u32(0..program.calls.len() as u32))).unwrap();
            made
        }
        Kind::SmallMessages => ended(&small_messages(rng).ranks(1), Some(0)),
        Kind::NoOverlap => ended(&no_overlap(rng), Some(0)),
        Kind::SerialIo => {
            let function = ["MPI_File_write", "MPI_File_read_at"][rng.usize(0..2)];
            ended(&meets_after(function, one_long(rng)), Some(0))
        }
        Kind::Blocked => ended(&blocked(rng), None),
        Kind::ApartOnHosts => {
            let hosts = [["n0", "n1", "n0", "n1"], ["n0", "n1", "n1", "n0"]][rng.usize(0..2)];
            ended(&neighbours_on(hosts, rng.u32(50_000..200_000)), Some(0))
        }
        Kind::Sampled => match &*LIBRARY {
            Some(library) => ended(&sampled(library, seed, &work_in_functions(rng)), Some(0)),
            None => ended(&program.ranks(1), Some(0)),
        },
    }
}

/// The directory of a finished run; with the launcher's exit code, if it is known.
fn ended(ranks: &[SyntheticRank], code: Option<u8>) -> Made {
    let directory = RunDirectory::with_ranks(ranks);
    if let Some(code) = code {
        describe(directory.path(), code);
    }
    Made { directory, inside: None }
}

/// Writes what `gammachi run` says of a run that has ended.
fn describe(directory: &Path, code: u8) {
    let moment = |ms: u64| json!({ "utc": "2026-01-31T12:00:00.000Z", "unix_ns": ms * 1_000_000 });
    let description = json!({
        "format": "gammachi-run",
        "format_version": 1,
        "gammachi_version": "0",
        "state": "finished",
        "argv": ["mpirun", "-n", "4", "./solver"],
        "program": "/opt/bin/solver",
        "directory": "/opt",
        "host": "n0",
        "library": "/opt/lib/libgammachi.so",
        "level": 1,
        "compute": "outside",
        "params": {},
        "start": moment(1_700_000_000_000),
        "end": moment(1_700_000_001_000),
        "duration_s": 1.0,
        "exit": { "code": code, "signal": null },
        "jobs": 1,
        "environment": {},
    });
    fs::write(directory.join("run.json"), description.to_string()).unwrap();
}

/// Ranks that share a core or wait behind other programs: much, or a little.
fn lacks_cores(mut ranks: Vec<SyntheticRank>, end: u64, rng: &mut Rng) -> Vec<SyntheticRank> {
    let elapsed = (end - BEGIN) as f64;
    let (shared, lack) = (rng.bool(), [0.01, 0.03, 0.1, 0.4, 0.6][rng.usize(0..5)]);
    for rank in &mut ranks {
        if shared {
            rank.header.affinity = vec![0];
        }
        let waited = (elapsed * lack * (0.9 + 0.2 * rng.f64())) as u64;
        let ran = elapsed as u64 - waited;
        rank.thread_usage(0, Phase::Init, 0, 0, 0).thread_usage(0, Phase::Finalize, ran, waited, 9);
    }
    ranks
}

/// Ranks some of which were hardly on a core, and did not wait for one.
fn asleep(mut ranks: Vec<SyntheticRank>, end: u64, rng: &mut Rng) -> Vec<SyntheticRank> {
    for rank in &mut ranks {
        let ran = ((end - BEGIN) as f64 * rng.f64()) as u64;
        rank.thread_usage(0, Phase::Init, 0, 0, 0).thread_usage(0, Phase::Finalize, ran, 0, 0);
        rank.process_usage(Phase::Init, 0, 0).process_usage(Phase::Finalize, ran, 0);
    }
    ranks
}

/// A run in which a process was killed and took the others with it.
fn killed(program: &Program, rng: &mut Rng) -> Made {
    let moment = program.moment(rng);
    let mut ranks = program.until(moment);
    let crashed = rng.usize(0..ranks.len());
    let waits = rng.bool();
    let others = ranks.iter_mut().enumerate().filter(|(number, _)| waits && *number != crashed);
    others.for_each(|(_, rank)| {
        rank.open_call_with("MPI_Recv", moment + 10, on_world(crashed as i32, 5, 8));
    });
    ended(&ranks, Some([139, 137, 1, 255][rng.usize(0..4)]))
}

/// A run that some calls stopped, which `open` adds behind the given moment.
fn stopped(
    program: &Program,
    rng: &mut Rng,
    open: impl Fn(&mut [SyntheticRank], &mut Rng, u64),
) -> Made {
    let moment = program.moment(rng);
    let mut ranks = program.until(moment);
    open(&mut ranks, rng, moment + 10);
    let code = [None, Some(124), Some(1)][rng.usize(0..3)];
    ended(&ranks, code)
}

/// The ranks of a program, all or most of whose calls are kept as totals.
fn totals(program: &Program, all: bool) -> Vec<SyntheticRank> {
    let mut ranks = program.ranks(1);
    for (rank, calls) in ranks.iter_mut().zip(&program.calls) {
        let from = if all { 0 } else { calls.len() / 4 };
        let summed = &calls[from..];
        let begin = summed.first().map_or(BEGIN, |call| call.begin.min(BEGIN + 5) * u64::from(all));
        let begin = if all { BEGIN } else { begin.max(calls[from.max(1) - 1].end) };
        // Behind MPI_Init.
        rank.threads[0].truncate(1 + from);
        let mpi: u64 = summed.iter().map(|call| call.end - call.begin).sum();
        let header = SnapshotHeader {
            begin_ticks: begin,
            end_ticks: program.end,
            calls: summed.len() as u64,
            mpi_ticks: mpi,
            own_ticks: (program.end - begin).saturating_sub(mpi),
            ..SnapshotHeader::default()
        };
        let mut names: Vec<&str> = summed.iter().map(|call| call.name).collect();
        names.sort_unstable();
        names.dedup();
        let entry = |name: &&str| {
            let of_name = || summed.iter().filter(|call| call.name == *name);
            let ticks = || of_name().map(|call| call.end - call.begin);
            TotalsEntry {
                function: number_of(name),
                peer_class: ANY_CLASS,
                size_class: ANY_CLASS,
                detail: 0,
                count: of_name().count() as u64,
                ticks: ticks().sum(),
                min_ticks: ticks().min().unwrap_or(0),
                max_ticks: ticks().max().unwrap_or(0),
                sent: 0,
                received: 0,
                work: 0,
                histogram: [0; HISTOGRAM_BINS],
            }
        };
        rank.totals = Some((header, names.iter().map(entry).collect()));
    }
    ranks
}

/// A program that marks its turns as regions.
fn regions(program: Program, rng: &mut Rng) -> Vec<SyntheticRank> {
    let mut ranks = program.ranks(1);
    let every = rng.usize(1..3);
    for (rank, calls) in ranks.iter_mut().zip(&program.calls) {
        rank.region_name(1, "solve").region_name(2, "exchange");
        let init = rank.threads[0][0];
        let finalize = *rank.threads[0].last().unwrap();
        rank.threads[0] = vec![init];
        let mut left = BEGIN;
        for (number, Call { name, begin, end, attributes }) in calls.iter().enumerate() {
            let id = 1 + (number % every) as u32;
            rank.region_begin(0, id, left + 1).region_end(0, id, begin - 1);
            rank.call_with(name, *begin, *end, *attributes);
            left = *end;
        }
        rank.slot(0, finalize);
    }
    ranks
}

/// Ranks on two hosts, whose clocks agree within a bound.
fn two_hosts(mut ranks: Vec<SyntheticRank>, rng: &mut Rng) -> Vec<SyntheticRank> {
    let bound = [10, 1_000, 20_000, 400_000][rng.usize(0..4)];
    let first = ranks.len() / 2;
    for rank in &mut ranks[first.max(1)..] {
        (rank.header.host, rank.header.boot_id) = ("n1".into(), "boot-n1".into());
        for definition in &mut rank.definitions {
            if let Definition::ClockExchange(exchange) = definition {
                (exchange.same_host, exchange.bound_ticks) = (false, bound);
            }
        }
    }
    ranks
}

/// Files that were cut off, or parts of which were overwritten.
fn damaged(ranks: &[SyntheticRank], rng: &mut Rng) -> Made {
    let made = ended(ranks, Some(0));
    for rank in 0..ranks.len() as u32 {
        if rank > 0 && rng.bool() {
            continue;
        }
        let path = made.directory.file(rank);
        let mut bytes = fs::read(&path).unwrap();
        // Of zeros behind a rank's last chunk nobody would miss any.
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        match rng.bool() {
            true => bytes.truncate(rng.usize(used / 2..used)),
            false => {
                let at = rng.usize(used / 4..used - 8);
                bytes[at..at + 8].copy_from_slice(&rng.u64(..).to_le_bytes());
            }
        }
        fs::write(path, bytes).unwrap();
    }
    made
}

struct Silent;

impl Progress for Silent {
    fn stage(&self, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64) {}
}

/// The run as Paraver shows it, imported.
fn imported(ranks: &[SyntheticRank]) -> Made {
    let measured = RunDirectory::with_ranks(ranks);
    let run = Run::open(measured.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let communicators = CommunicatorTable::new(&run);
    let choice = Choice::default();
    let content = Content::new(&run, &timeline, &communicators, &choice);
    let outside = RunDirectory::new();
    let file = outside.path().join("trace.prv");
    let export = Export { content: &content, scratch: outside.path(), progress: &Silent };
    formats::write(export, Format::Paraver, &file).unwrap();
    // Paraver's files lie beside each other, or in a folder.
    let found = if file.is_dir() { prv_inside(&file) } else { file };
    let path = outside.path().join("imported.gammachi");
    formats::import(&found, &path, None).unwrap();
    Made { directory: outside, inside: Some(path) }
}

fn prv_inside(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|ending| ending == "prv")).unwrap()
}

/// Ranks that exchange many messages of few bytes.
fn small_messages(rng: &mut Rng) -> Program {
    let mut this = Program { calls: vec![Vec::new(); 2], end: BEGIN };
    let (messages, work) = (rng.u64(510..600), rng.u64(10..4_000));
    for _ in 0..messages {
        let (sent, posted) = (this.end + work, this.end + work + 20);
        this.add(0, "MPI_Send", (sent, sent + 400), on_world(1, 3, 8));
        this.add(1, "MPI_Recv", (posted, posted + 500), on_world(0, 3, 8));
        this.end = posted + 500;
    }
    this
}

/// Ranks that hope to hide an exchange behind computation; not all have the time.
fn no_overlap(rng: &mut Rng) -> Vec<SyntheticRank> {
    let waited = rng.u64(1_000_000..4_000_000);
    let exchange = Exchange {
        hosts: [["n0", "n0"], ["n0", "n1"]][rng.usize(0..2)],
        bytes: rng.u32(100_000..8_000_000),
        computed: waited / 2 * rng.u64(1..8),
        waited,
        blocking: waited / 2 * rng.u64(0..2),
        tests: rng.u8(0..4) == 0,
    };
    exchange.ranks()
}

/// How long each rank takes, one of them longest.
fn one_long(rng: &mut Rng) -> [u64; 3] {
    let mut long = [rng.u64(0..3_000); 3];
    long[rng.usize(0..3)] = rng.u64(50_000..200_000);
    long
}

/// How long ranks are in each function in each turn; one of them may be longer in one function.
fn work_in_functions(rng: &mut Rng) -> Vec<Vec<[u64; FUNCTIONS]>> {
    let (ranks, turns) = (rng.usize(2..=4), rng.usize(10..60));
    let (late, function) = (rng.usize(0..ranks), rng.usize(0..FUNCTIONS));
    let longer = rng.u64(0..4) * 15_000_000;
    let mut turn = |rank| {
        let mut usual = [40, 30, 20, 5].map(|ms| ms * 1_000_000 + rng.u64(0..2_000_000));
        usual[function] += if rank == late { longer } else { 0 };
        usual
    };
    (0..ranks).map(|rank| (0..turns).map(|_| turn(rank)).collect()).collect()
}

/// Ranks of which one is late, asleep or not.
fn blocked(rng: &mut Rng) -> Vec<SyntheticRank> {
    let long = one_long(rng).map(|long| 20 * long);
    let mut ranks = meets_after("", long);
    let share = rng.f64();
    on_a_core(&mut ranks, |number| {
        let all = TURNS * (long[number] + 30_000);
        if long[number] >= 1_000_000 { (all as f64 * share) as u64 } else { all }
    });
    ranks
}
