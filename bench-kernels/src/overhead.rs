//! `kernels overhead`: the cost of MPI's cheapest calls, compared with the floor of the same
//! process.
//!
//! Run alternately with and without a recorder, the difference is what the recorder adds per call
//! (`experiments/overhead/measure-overhead` does that). Calls go through [`mpi::ffi`], so each one uses the
//! dynamic symbol, like a C program's. Loops on one rank run on rank 0 while the others wait.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use mpi::ffi;
use mpi::traits::Communicator;
use serde::Serialize;

use crate::blocks::{Blocks, Plan, Summary};
use crate::counter::{self, Moment};
use crate::failure::Failure;
use crate::floor::Floor;
use crate::output::{OutputOptions, print};
use crate::world::library_name;

const TAG: libc::c_int = 7;

/// Time MPI's cheapest calls, and the minimum cost of recording a call
///
/// Each loop is timed in blocks. The median block is the cost of the path; the mean includes
/// everything, even window changes of a recorder and interruptions. The floor consists of two
/// counter reads and a 32-byte store into a populated mapping of a file.
#[derive(Args)]
#[command(after_help = "Examples:
  mpirun -n 1 taskset -c 0 kernels overhead
  mpirun -n 2 kernels overhead --loops ping-pong --calls 200000
  mpirun -n 1 env LD_PRELOAD=libgammachi.so GAMMACHI_LEVEL=0 kernels overhead --json")]
pub struct Arguments {
    /// MPI calls of rank 0 in each loop, rounded up to whole blocks
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    calls: u64,
    /// MPI calls in each timed block
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    block_calls: u64,
    /// Blocks made and discarded at the start of each loop
    #[arg(long, default_value_t = 2)]
    warmup_blocks: usize,
    /// Loops to run [default: all that the number of ranks allows]
    #[arg(long, value_enum, value_delimiter = ',')]
    loops: Vec<Loop>,
    /// Windows of the floor, half before the loops and half after them
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(2..=1 << 16))]
    floor_windows: u64,
    /// Size of one window of the floor in bytes, rounded up to whole blocks
    #[arg(long, default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    floor_window_bytes: u64,
    /// Directory of the floor's file (preferably where a trace would be) [default: the temporary
    /// one]
    #[arg(long, value_name = "DIR")]
    floor_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The loops, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Loop {
    /// MPI_Comm_rank on MPI_COMM_WORLD
    CommRank,
    /// MPI_Sendrecv of 8 bytes to itself on MPI_COMM_SELF
    SendrecvSelf,
    /// MPI_Allreduce of one double on MPI_COMM_SELF
    AllreduceSelf,
    /// MPI_Send and MPI_Recv of 8 bytes between ranks 0 and 1
    PingPong,
}

/// The whole result of rank 0, as `--json` prints it.
#[derive(Serialize)]
struct Report {
    kernel: &'static str,
    mpi: String,
    ranks: libc::c_int,
    counter: CounterReport,
    loops: Vec<LoopReport>,
    floor: FloorReport,
    /// Seconds in MPI's initialisation.
    init_s: f64,
    /// CLOCK_MONOTONIC in seconds, just before finalisation.
    finalize_at_s: f64,
    wrong_results: u64,
}

#[derive(Serialize)]
struct CounterReport {
    name: &'static str,
    hz: f64,
}

#[derive(Serialize)]
struct LoopReport {
    #[serde(rename = "loop")]
    name: Loop,
    #[serde(flatten)]
    summary: Summary,
}

#[derive(Serialize)]
struct FloorReport {
    window_bytes: usize,
    #[serde(flatten)]
    summary: Summary,
}

/// Runs the loops on all ranks; rank 0 prints. Every rank fails if any result was wrong.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let before = Instant::now();
    let universe = mpi::initialize().ok_or(Failure::Init)?;
    let init_s = before.elapsed().as_secs_f64();
    let world = universe.world();
    let (rank, ranks) = (world.rank(), world.size());
    let loops = chosen(&arguments.loops, ranks)?;
    let start = Moment::now();

    let mut wrong = 0;
    let mut floor = None;
    let mut timed = Vec::new();
    if rank == 0 {
        floor = Some(floor_before(arguments));
    }
    for &name in &loops {
        // SAFETY: guaranteed here: MPI is initialised and not yet finalised; all ranks come here.
        unsafe { ffi::MPI_Barrier(ffi::RSMPI_COMM_WORLD) };
        if let Some(blocks) = time_loop(name, arguments, rank, &mut wrong) {
            timed.push((name, blocks));
        }
    }
    let wrong = sum_over_ranks(wrong);

    // Operations that can fail on rank 0 only follow the last call in which others wait.
    if let Some(floor) = floor {
        let mut floor = floor?;
        floor.measure(windows_before_and_after(arguments).1)?;
        let ns_per_tick = start.ns_per_tick();
        let report = Report {
            kernel: "overhead",
            mpi: library_name(),
            ranks,
            counter: CounterReport { name: counter::NAME, hz: 1e9 / ns_per_tick },
            loops: timed
                .iter()
                .map(|(name, blocks)| LoopReport {
                    name: *name,
                    summary: blocks.summary(ns_per_tick),
                })
                .collect(),
            floor: FloorReport {
                window_bytes: floor.window_bytes(),
                summary: floor.into_blocks().summary(ns_per_tick),
            },
            init_s,
            finalize_at_s: monotonic_s(),
            wrong_results: wrong,
        };
        match arguments.json {
            true => OutputOptions::default().print(&report)?,
            false => print(&report.text())?,
        }
    }
    if wrong == 0 { Ok(()) } else { Err(Failure::WrongResults(wrong)) }
}

/// The requested loops, or all that this number of ranks allows.
fn chosen(asked: &[Loop], ranks: libc::c_int) -> Result<Vec<Loop>, Failure> {
    if ranks < 2 && asked.contains(&Loop::PingPong) {
        return Err(Failure::Usage(
            "ping-pong needs 2 ranks: start with mpirun -n 2, or omit it from --loops".into(),
        ));
    }
    let wanted = |name: &Loop| match asked {
        [] => ranks >= 2 || *name != Loop::PingPong,
        asked => asked.contains(name),
    };
    Ok(Loop::value_variants().iter().copied().filter(wanted).collect())
}

fn windows_before_and_after(arguments: &Arguments) -> (usize, usize) {
    let windows = arguments.floor_windows as usize;
    (windows / 2, windows - windows / 2)
}

/// Measures the first half of the floor's windows.
fn floor_before(arguments: &Arguments) -> Result<Floor, Failure> {
    let directory = arguments.floor_dir.clone().unwrap_or_else(std::env::temp_dir);
    let (windows, bytes) = (arguments.floor_windows, arguments.floor_window_bytes);
    let mut floor =
        Floor::new(&directory, windows as usize, bytes as usize, arguments.block_calls)?;
    floor.measure(windows_before_and_after(arguments).0)?;
    Ok(floor)
}

/// Times one loop on the ranks that take part in it, and counts wrong results.
fn time_loop(name: Loop, arguments: &Arguments, rank: i32, wrong: &mut u64) -> Option<Blocks> {
    let calls_per_turn = if name == Loop::PingPong { 2 } else { 1 };
    let plan =
        Plan::new(arguments.calls, arguments.block_calls, arguments.warmup_blocks, calls_per_turn);
    match (name, rank) {
        (Loop::CommRank, 0) => Some(comm_rank(&plan, rank, wrong)),
        (Loop::SendrecvSelf, 0) => Some(sendrecv_self(&plan, wrong)),
        (Loop::AllreduceSelf, 0) => Some(allreduce_self(&plan, wrong)),
        (Loop::PingPong, 0) => Some(ping(&plan, wrong)),
        (Loop::PingPong, 1) => {
            pong(&plan, wrong);
            None
        }
        _ => None,
    }
}

fn comm_rank(plan: &Plan, expected: libc::c_int, wrong: &mut u64) -> Blocks {
    // SAFETY: guaranteed by mpi-sys: a constant that the C side initialises before main.
    let world = unsafe { ffi::RSMPI_COMM_WORLD };
    Blocks::run(plan, |_| {
        let mut rank = -1;
        // SAFETY: guaranteed here: MPI is initialised, the communicator valid, `rank` outlives the call.
        unsafe { ffi::MPI_Comm_rank(world, &raw mut rank) };
        *wrong += u64::from(black_box(rank) != expected);
    })
}

fn sendrecv_self(plan: &Plan, wrong: &mut u64) -> Blocks {
    // SAFETY: guaranteed by mpi-sys: constants that the C side initialises before main.
    let (own, word, ignore) =
        unsafe { (ffi::RSMPI_COMM_SELF, ffi::RSMPI_UINT64_T, ffi::RSMPI_STATUS_IGNORE) };
    Blocks::run(plan, |number| {
        let (sent, mut received) = (payload(number), 0_u64);
        // SAFETY: guaranteed here: both buffers hold one 8-byte word each, do not overlap and outlive the
        // call, which completes before it returns; rank 0 is the only rank of MPI_COMM_SELF.
        unsafe {
            let (from, to) = ((&raw const sent).cast(), (&raw mut received).cast());
            ffi::MPI_Sendrecv(from, 1, word, 0, TAG, to, 1, word, 0, TAG, own, ignore);
        }
        *wrong += u64::from(black_box(received) != payload(number));
    })
}

fn allreduce_self(plan: &Plan, wrong: &mut u64) -> Blocks {
    // SAFETY: guaranteed by mpi-sys: constants that the C side initialises before main.
    let (own, double, plus) = unsafe { (ffi::RSMPI_COMM_SELF, ffi::RSMPI_DOUBLE, ffi::RSMPI_SUM) };
    Blocks::run(plan, |number| {
        let (term, mut sum) = (number as f64 + 0.5, f64::NAN);
        // SAFETY: guaranteed here: both buffers hold one double each, do not overlap and outlive the call.
        unsafe {
            let (from, to) = ((&raw const term).cast(), (&raw mut sum).cast());
            ffi::MPI_Allreduce(from, to, 1, double, plus, own);
        }
        *wrong += u64::from(black_box(sum) != number as f64 + 0.5);
    })
}

/// Rank 0: sends a word and receives its complement.
fn ping(plan: &Plan, wrong: &mut u64) -> Blocks {
    Blocks::run(plan, |number| {
        send_word(payload(number), 1);
        *wrong += u64::from(black_box(receive_word(1)) != !payload(number));
    })
}

/// Rank 1: as many turns as rank 0, including the warm-up.
fn pong(plan: &Plan, wrong: &mut u64) {
    for _ in 0..plan.warmup_blocks + plan.blocks {
        for number in 0..plan.turns {
            let word = receive_word(0);
            *wrong += u64::from(word != payload(number));
            send_word(!word, 0);
        }
    }
}

#[inline(always)]
fn send_word(word: u64, to: libc::c_int) {
    // SAFETY: guaranteed here: one 8-byte word that outlives the call; MPI is initialised.
    unsafe {
        let from = (&raw const word).cast();
        ffi::MPI_Send(from, 1, ffi::RSMPI_UINT64_T, to, TAG, ffi::RSMPI_COMM_WORLD);
    }
}

#[inline(always)]
fn receive_word(from: libc::c_int) -> u64 {
    let mut word = 0_u64;
    // SAFETY: guaranteed here: room for one 8-byte word that outlives the call; MPI is initialised.
    unsafe {
        let (to, world) = ((&raw mut word).cast(), ffi::RSMPI_COMM_WORLD);
        ffi::MPI_Recv(to, 1, ffi::RSMPI_UINT64_T, from, TAG, world, ffi::RSMPI_STATUS_IGNORE);
    }
    word
}

/// A word that reveals lost or duplicated bytes; never 0.
#[inline(always)]
fn payload(number: u64) -> u64 {
    0x0123_4567_89ab_cdef ^ (number << 8)
}

/// The sum over ranks, but at least this rank's own value, because the reduction may be what is
/// broken.
fn sum_over_ranks(own: u64) -> u64 {
    let mut sum = 0_u64;
    // SAFETY: guaranteed here: one word each way, all ranks come here exactly once, MPI is initialised.
    unsafe {
        let (from, to) = ((&raw const own).cast(), (&raw mut sum).cast());
        let (word, plus) = (ffi::RSMPI_UINT64_T, ffi::RSMPI_SUM);
        ffi::MPI_Allreduce(from, to, 1, word, plus, ffi::RSMPI_COMM_WORLD);
    }
    sum.max(own)
}

/// CLOCK_MONOTONIC in seconds, which another process can compare with its own reading.
fn monotonic_s() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: guaranteed here: `now` outlives the call; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

impl Report {
    fn text(&self) -> String {
        let Report { mpi, ranks, counter, .. } = self;
        let noun = if *ranks == 1 { "rank" } else { "ranks" };
        let mut text = format!(
            "{mpi}, {ranks} {noun}, counter {} at {:.1} MHz\n\n",
            counter.name,
            counter.hz / 1e6
        );
        text +=
            "loop                p10 ns   median ns     mean ns      p99 ns   blocks     calls\n";
        let rows = self.loops.iter().map(|row| (row.name.label(), &row.summary));
        for (label, s) in rows.chain([("floor".to_owned(), &self.floor.summary)]) {
            let _ = writeln!(
                text,
                "{label:<14} {:>11.2} {:>11.2} {:>11.2} {:>11.2} {:>8} {:>9}",
                s.p10_ns, s.median_ns, s.mean_ns, s.p99_ns, s.blocks, s.calls
            );
        }
        text + "\nns per call of rank 0; ping-pong: half a round trip. Quantiles over blocks.\n"
    }
}

impl Loop {
    /// The name as written on the command line.
    fn label(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rank_omits_ping_pong_and_rejects_it_if_requested() {
        let all = chosen(&[], 1).expect("loops");
        assert_eq!(all, [Loop::CommRank, Loop::SendrecvSelf, Loop::AllreduceSelf]);
        assert_eq!(chosen(&[], 2).expect("the loops are valid").len(), 4);
        assert!(matches!(chosen(&[Loop::PingPong], 1), Err(Failure::Usage(_))));
    }
}
