//! `kernels collectives`: collective calls that all ranks make at the same time (case C) or with
//! rank 0 late (case D), after Masuguchi et al.
//!
//! Each case has its own communicator, made by MPI_Comm_dup, that of C first. This lets a recorder
//! distinguish the cases from each other and from the barriers between the calls.

use clap::{Args, ValueEnum};
use mpi::ffi;
use serde::Serialize;

use crate::blocking::{be_late, delay, sizes};
use crate::conditions::{Conditions, Watch};
use crate::failure::Failure;
use crate::output::{Head, OutputOptions};
use crate::world::World;

/// One word, 1 MB, 4 MB.
const SIZES: [u64; 3] = [8, 1 << 20, 4 << 20];
const BARRIERS: u64 = 11;

/// Call collective operations at the same time (C) or with rank 0 late (D)
///
/// The cost of a collective operation is its longest call. Record it and run `gammachi calibrate kernels RUN`
/// to print the tables from the trace: the longest call and its rank, loop by loop.
#[derive(Args)]
#[command(after_help = "Examples:
  mpirun -n 4 kernels collectives
  gammachi run --out collectives.gammachi -- mpirun -n 4 kernels collectives --delay 0.1
  mpirun -n 4 kernels collectives --functions barrier,bcast --sizes 8 --json")]
pub struct Arguments {
    /// Delay of rank 0 in case D, seconds
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = delay)]
    delay: f64,
    /// Size of each rank's part in bytes [default: 8,1048576,4194304]
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    sizes: Vec<u64>,
    /// Operations [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    functions: Vec<Function>,
    /// Calls of each case and size (eleven for the barrier)
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    repetitions: u64,
    #[command(flatten)]
    output: OutputOptions,
}

/// The operations, in the order in which they are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Function {
    /// MPI_Barrier, eleven times
    Barrier,
    /// MPI_Bcast from rank 0
    Bcast,
    /// MPI_Reduce to rank 0, sums of 64-bit integers
    Reduce,
    /// MPI_Allreduce
    Allreduce,
    /// MPI_Alltoall, with the size for each partner
    Alltoall,
    /// MPI_Allgather
    Allgather,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    delay_s: f64,
    calls: Vec<Call>,
    conditions: Conditions,
}

/// One collective call of all ranks.
#[derive(Serialize)]
struct Call {
    case: char,
    function: Function,
    bytes: u64,
    /// Number of the call among equal ones, from 1.
    number: u64,
    /// The longest call, and the rank that made it.
    longest_s: f64,
    longest_rank: usize,
    /// Duration of rank 0's call.
    rank0_s: f64,
}

/// Runs the kernel on all ranks; rank 0 prints.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let sizes = sizes(&arguments.sizes, &SIZES)?;
    let functions: Vec<Function> = Function::value_variants()
        .iter()
        .copied()
        .filter(|function| arguments.functions.is_empty() || arguments.functions.contains(function))
        .collect();
    let world = World::start()?;
    world.need(2, "collectives")?;
    let most = sizes.iter().max().copied().unwrap_or(8) as usize * world.size as usize;
    let watch = Watch::start();
    let progress = arguments.output.progress("collectives", 2 * functions.len() * sizes.len());
    let mut own = Buffers { from: vec![0; most / 8], into: vec![0; most / 8] };
    let mut calls = Vec::new();
    let mut wrong = 0;
    for case in ['C', 'D'] {
        let communicator = duplicate();
        let late_s = if case == 'D' && world.rank == 0 { arguments.delay } else { 0.0 };
        for &function in &functions {
            let (sizes, times): (&[u64], u64) = match function {
                Function::Barrier => (&[0], BARRIERS),
                _ => (&sizes, arguments.repetitions),
            };
            for &bytes in sizes {
                for number in 1..=times {
                    let words = bytes as usize / 8;
                    own.fill(&world, function, words, number);
                    world.barrier();
                    if late_s > 0.0 {
                        be_late(&world, late_s);
                    }
                    let begin = world.ticks();
                    own.call(communicator, function, words);
                    let s = world.ticks().wrapping_sub(begin) as f64 * world.seconds_per_tick();
                    wrong += own.wrong(&world, function, words, number);
                    let all = world.share(s);
                    let longest_rank =
                        (0..all.len()).max_by(|a, b| all[*a].total_cmp(&all[*b])).unwrap_or(0);
                    calls.push(Call {
                        case,
                        function,
                        bytes,
                        number,
                        longest_s: all[longest_rank],
                        longest_rank,
                        rank0_s: all[0],
                    });
                }
                progress.step(&format!("case {case}, {function:?}, {bytes} bytes"));
            }
        }
        free(communicator);
    }
    drop(progress);
    let conditions = watch.end(&world, &[]);
    let wrong: f64 = world.share(wrong as f64).into_iter().sum();
    if world.rank == 0 {
        arguments.output.print(&Report {
            head: Head::new("collectives", &world),
            delay_s: arguments.delay,
            calls,
            conditions,
        })?;
    }
    if wrong == 0.0 { Ok(()) } else { Err(Failure::WrongResults(wrong as u64)) }
}

fn duplicate() -> ffi::MPI_Comm {
    // SAFETY: guaranteed here: all ranks come here; the handle outlives the call.
    unsafe {
        let mut communicator = ffi::RSMPI_COMM_NULL;
        ffi::MPI_Comm_dup(ffi::RSMPI_COMM_WORLD, &raw mut communicator);
        communicator
    }
}

fn free(communicator: ffi::MPI_Comm) {
    let mut communicator = communicator;
    // SAFETY: guaranteed here: all ranks come here with a communicator that nothing is pending on.
    unsafe { ffi::MPI_Comm_free(&raw mut communicator) };
}

struct Buffers {
    from: Vec<u64>,
    into: Vec<u64>,
}

impl Buffers {
    /// The data that this rank contributes: a word that encodes rank, position and call.
    fn word(rank: u64, at: u64, number: u64) -> u64 {
        (rank + 1) * 1_000_003 + at * 17 + number
    }

    fn fill(&mut self, world: &World, function: Function, words: usize, number: u64) {
        let (rank, size) = (world.rank as u64, world.size as usize);
        let length = if function == Function::Alltoall { words * size } else { words };
        for (at, word) in self.from[..length].iter_mut().enumerate() {
            *word = Self::word(rank, at as u64, number);
        }
        self.into.fill(0);
        if function == Function::Bcast && rank == 0 {
            self.into[..words].copy_from_slice(&self.from[..words]);
        }
    }

    fn call(&mut self, communicator: ffi::MPI_Comm, function: Function, words: usize) {
        let (from, into, count) =
            (self.from.as_ptr().cast(), self.into.as_mut_ptr().cast(), words as i32);
        // SAFETY: guaranteed here: both buffers hold `words` words for each rank and outlive the call; all
        // ranks of the communicator make it with the same arguments.
        unsafe {
            let (kind, sum) = (ffi::RSMPI_UINT64_T, ffi::RSMPI_SUM);
            match function {
                Function::Barrier => ffi::MPI_Barrier(communicator),
                Function::Bcast => ffi::MPI_Bcast(into, count, kind, 0, communicator),
                Function::Reduce => ffi::MPI_Reduce(from, into, count, kind, sum, 0, communicator),
                Function::Allreduce => {
                    ffi::MPI_Allreduce(from, into, count, kind, sum, communicator)
                }
                Function::Alltoall => {
                    ffi::MPI_Alltoall(from, count, kind, into, count, kind, communicator)
                }
                Function::Allgather => {
                    ffi::MPI_Allgather(from, count, kind, into, count, kind, communicator)
                }
            };
        }
    }

    /// Number of words that differ from the correct result of the operation.
    fn wrong(&self, world: &World, function: Function, words: usize, number: u64) -> u64 {
        let (me, size) = (world.rank as u64, world.size as u64);
        let own = words as u64;
        let expected = |at: u64| match function {
            Function::Barrier => None,
            Function::Bcast => (at < own).then(|| Self::word(0, at, number)),
            Function::Reduce if me != 0 => None,
            Function::Reduce | Function::Allreduce => {
                (at < own).then(|| (0..size).map(|rank| Self::word(rank, at, number)).sum())
            }
            Function::Alltoall => {
                (at < own * size).then(|| Self::word(at / own, me * own + at % own, number))
            }
            Function::Allgather => {
                (at < own * size).then(|| Self::word(at / own, at % own, number))
            }
        };
        let differs = |(at, word): (usize, &u64)| {
            expected(at as u64).is_some_and(|expected| expected != *word)
        };
        self.into.iter().enumerate().filter(|pair| differs(*pair)).count() as u64
    }
}
