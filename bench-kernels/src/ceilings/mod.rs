//! `kernels ceilings`: the roofs that bound a program's performance (after Yasuda et al.).
//!
//! Measures operations per second of fused multiply-adds on registers and of the system's dgemm,
//! bytes per second of STREAM's triad, and bytes per second of communication alone between pairs
//! that share no link. Each is measured for rank 0 alone and for all ranks at once, and reported
//! per rank and per host.

mod fma;
mod triad;

use clap::Args;
use serde::Serialize;

use crate::blas::{self, Blas};
use crate::conditions::{Conditions, Watch};
use crate::failure::Failure;
use crate::network::{Edge, FlowBuffers, flow_window, partner_across, run_flow};
use crate::output::{Head, OutputOptions};
use crate::sample::{Figure, Sample};
use crate::world::World;

use triad::Triad;

const WARMUP_ROUNDS: usize = 1;
/// Approximate duration of a measured stretch in seconds.
const STRETCH_S: f64 = 0.02;
const SCALE: f64 = 3.0;

/// Measure the machine's ceilings: multiply-add and dgemm peaks, memory and communication bandwidth
///
/// Each figure is a median over rounds with its 95 % interval, for rank 0 alone and for all ranks
/// at once. A host's ceiling is what all its ranks reach together, so start one rank per core.
#[derive(Args)]
#[command(after_help = "Examples:
  mpirun -n 2 kernels ceilings
  mpirun -n 2 kernels ceilings --n 2000 --blas libopenblas.so.0 --json
  mpirun -n 2 kernels ceilings --triad-bytes 268435456 --json")]
pub struct Arguments {
    /// Order of the matrices of dgemm
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=20_000))]
    n: u64,
    /// Bytes of each of the triad's three arrays on each rank [default: four times the largest
    /// cache shared among the ranks of the host, at least 32 MiB]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(8..))]
    triad_bytes: Option<u64>,
    /// Bytes of each message of communication alone
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(1..=1 << 28))]
    message_bytes: u64,
    /// Threads of each rank's BLAS
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=4096))]
    threads: i32,
    /// BLAS library to load [default: the first of MKL, OpenBLAS, BLIS, CBLAS]
    #[arg(long, value_name = "FILE")]
    blas: Option<String>,
    /// Timed rounds
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u64).range(3..=10_000))]
    repetitions: u64,
    #[command(flatten)]
    output: OutputOptions,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    repetitions: usize,
    warmup_rounds: usize,
    instructions: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions_note: Option<&'static str>,
    blas: BlasReport,
    triad: TriadReport,
    message_bytes: u64,
    /// Location of the pairs for communication alone.
    communication_class: Option<&'static str>,
    ceilings: Vec<Ceiling>,
    conditions: Conditions,
}

#[derive(Serialize)]
struct BlasReport {
    /// `None` if no library was found; `note` says why.
    library: Option<String>,
    configuration: Option<String>,
    threads: Option<i32>,
    n: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize)]
struct TriadReport {
    array_bytes: u64,
    largest_cache_bytes: Option<u64>,
    counted_bytes_per_element: f64,
    moved_bytes_per_element: f64,
    stores: &'static str,
}

/// One roof.
#[derive(Serialize)]
struct Ceiling {
    /// `fma`, `dgemm`, `triad` (bytes counted), `communication`.
    name: &'static str,
    unit: &'static str,
    /// Rank 0 while the others sleep; none for communication.
    #[serde(skip_serializing_if = "Option::is_none")]
    alone: Option<Figure>,
    /// Mean over ranks, all at once.
    per_rank: Figure,
    /// The slowest host: all its ranks together, with all hosts running at once.
    per_host: Figure,
    /// All ranks together.
    job: Figure,
}

#[derive(Default)]
struct Samples {
    alone: Sample,
    per_rank: Sample,
    per_host: Sample,
    job: Sample,
}

impl Samples {
    fn add(&mut self, world: &World, own_rate: f64) {
        let rates = world.share(own_rate);
        let job: f64 = rates.iter().sum();
        let host = |host: usize| -> f64 {
            rates
                .iter()
                .zip(&world.hosts)
                .filter(|(_, at)| **at == host)
                .map(|(rate, _)| rate)
                .sum()
        };
        let slowest = (0..world.host_names.len()).map(host).fold(f64::INFINITY, f64::min);
        self.per_rank.add(job / f64::from(world.size));
        self.per_host.add(slowest);
        self.job.add(job);
    }

    fn ceiling(&self, name: &'static str, unit: &'static str) -> Option<Ceiling> {
        Some(Ceiling {
            name,
            unit,
            alone: self.alone.figure(),
            per_rank: self.per_rank.figure()?,
            per_host: self.per_host.figure()?,
            job: self.job.figure()?,
        })
    }
}

/// Runs the kernel on all ranks; rank 0 prints.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let world = World::start()?;
    let watch = Watch::start();
    let array_bytes = triad_bytes(arguments, &world);
    let loaded = Blas::load(arguments.blas.as_deref(), arguments.threads);
    // A library that was named must exist. The default one may be absent, which is reported.
    let blas = match (loaded, &arguments.blas) {
        (Err(failure), Some(_)) => return world.agree(Err(failure)),
        (loaded, _) => loaded,
    };
    if arguments.blas.is_some() {
        world.agree(Ok(()))?;
    }
    let everywhere =
        world.share(f64::from(u8::from(blas.is_ok()))).into_iter().all(|one| one > 0.0);
    let (blas, blas_note) = match blas {
        Ok(blas) if everywhere => (Some(blas), None),
        Ok(_) => (None, Some("not every rank found a BLAS library".to_owned())),
        Err(failure) => (None, Some(failure.to_string())),
    };

    let rounds = arguments.repetitions as usize + WARMUP_ROUNDS;
    let progress = arguments.output.progress("ceilings", 4 * rounds);
    let mut ceilings = Vec::new();
    let instructions = fma::best();
    let fma = measure_fma(&world, &instructions, rounds, |_| progress.step("multiply-add"))?;
    ceilings.extend(fma.ceiling("fma", "flop/s"));
    if let Some(blas) = &blas {
        let dgemm =
            measure_dgemm(&world, blas, arguments.n as usize, rounds, || progress.step("dgemm"))?;
        ceilings.extend(dgemm.ceiling("dgemm", "flop/s"));
    }
    let triad = measure_triad(&world, array_bytes, rounds, || progress.step("triad"))?;
    ceilings.extend(triad.ceiling("triad", "B/s"));
    if world.size >= 2 {
        let step = || progress.step("communication alone");
        let bytes = arguments.message_bytes as usize;
        let communication = measure_communication(&world, bytes, rounds, step)?;
        ceilings.extend(communication.ceiling("communication", "B/s"));
    }
    drop(progress);

    let figures: Vec<Figure> = ceilings.iter().map(|ceiling| ceiling.job.clone()).collect();
    let conditions = watch.end(&world, &figures);
    if world.rank == 0 {
        arguments.output.print(&Report {
            head: Head::new("ceilings", &world),
            repetitions: arguments.repetitions as usize,
            warmup_rounds: WARMUP_ROUNDS,
            instructions: instructions.name,
            instructions_note: instructions.note,
            blas: BlasReport {
                library: blas.as_ref().map(|blas| blas.library.clone()),
                configuration: blas.as_ref().and_then(|blas| blas.configuration.clone()),
                threads: blas.as_ref().and_then(|blas| blas.threads),
                n: arguments.n,
                note: blas_note,
            },
            triad: TriadReport {
                array_bytes,
                largest_cache_bytes: triad::largest_cache_bytes(),
                counted_bytes_per_element: triad::COUNTED_BYTES,
                moved_bytes_per_element: triad::MOVED_BYTES,
                stores: "ordinary: a store first reads its line where the processor allocates it",
            },
            message_bytes: arguments.message_bytes,
            communication_class: match (world.size, world.host_names.len()) {
                (1, _) => None,
                (_, 1) => Some("same-host"),
                _ => Some("other-host"),
            },
            ceilings,
            conditions,
        })?;
    }
    Ok(())
}

/// Bytes of each array, the same on all ranks.
fn triad_bytes(arguments: &Arguments, world: &World) -> u64 {
    if let Some(bytes) = arguments.triad_bytes {
        return bytes;
    }
    let ranks = world.ranks_on_host_of(world.rank) as u64;
    let wanted = (4 * triad::largest_cache_bytes().unwrap_or(32 << 20) / ranks).max(32 << 20);
    // At most an eighth of the available memory, for all arrays of the host's ranks.
    let most = triad::available_memory_bytes().map_or(u64::MAX, |free| free / 8 / ranks / 3);
    -world.largest(-(wanted.min(most) as f64)) as u64
}

/// In every round, first rank 0 alone, then all ranks at once. `work` returns the rate of its work,
/// and what is wrong.
fn rounds_of(
    world: &World,
    rounds: usize,
    mut work: impl FnMut() -> f64,
    mut step: impl FnMut(usize),
) -> Samples {
    let mut samples = Samples::default();
    for round in 0..rounds {
        let alone = (world.rank == 0).then(&mut work);
        world.rest();
        world.barrier();
        let own = work();
        if round < WARMUP_ROUNDS {
            world.share(own);
        } else {
            if let Some(alone) = alone {
                samples.alone.add(alone);
            }
            samples.add(world, own);
        }
        step(round);
    }
    samples
}

fn measure_fma(
    world: &World,
    instructions: &fma::Instructions,
    rounds: usize,
    step: impl FnMut(usize),
) -> Result<Samples, Failure> {
    let mut wrong = 0.0;
    let mut turns = 100_000;
    let mut work = || {
        let begin = world.ticks();
        let sum = instructions.run(turns, std::hint::black_box(0.5));
        let seconds = world.ticks().wrapping_sub(begin) as f64 * world.seconds_per_tick();
        if sum != instructions.expected() {
            wrong = sum;
        }
        let rate = (turns * instructions.flops_per_turn) as f64 / seconds;
        turns = (rate * STRETCH_S / instructions.flops_per_turn as f64) as u64 + 1;
        rate
    };
    work();
    let samples = rounds_of(world, rounds, work, step);
    world.agree(match wrong == 0.0 {
        true => Ok(()),
        false => Err(Failure::WrongResult(format!(
            "the multiply-adds gave {wrong} instead of {}",
            instructions.expected()
        ))),
    })?;
    Ok(samples)
}

fn measure_dgemm(
    world: &World,
    blas: &Blas,
    n: usize,
    rounds: usize,
    mut step: impl FnMut(),
) -> Result<Samples, Failure> {
    // Small whole numbers: every order of summation gives the same product.
    let entry = |i: usize, j: usize, salt: usize| ((i * 7 + j * 13 + salt) % 17) as f64 - 8.0;
    let matrix = |salt| (0..n * n).map(|at| entry(at / n, at % n, salt)).collect::<Vec<f64>>();
    let (a, b, mut c) = (matrix(1), matrix(5), vec![0.0; n * n]);
    let mut products = 0.0;
    let mut times = 1;
    let mut work = || {
        let begin = world.ticks();
        for _ in 0..times {
            blas.dgemm((n, n, n), &a, &b, &mut c);
        }
        let seconds = world.ticks().wrapping_sub(begin) as f64 * world.seconds_per_tick();
        products += f64::from(times);
        let rate = f64::from(times) * blas::flops((n, n, n)) / seconds;
        times = ((rate * STRETCH_S / blas::flops((n, n, n))) as i32).max(1);
        rate
    };
    work();
    let samples = rounds_of(world, rounds, work, |_| step());
    // Rows spread over the whole matrix, and every element of each.
    let wrong =
        (0..n).step_by((n / 8).max(1)).flat_map(|i| (0..n).map(move |j| (i, j))).find(|&(i, j)| {
            let sum: f64 = (0..n).map(|k| a[i * n + k] * b[k * n + j]).sum();
            c[i * n + j] != products * sum
        });
    world.agree(match wrong {
        None => Ok(()),
        Some((i, j)) => Err(Failure::WrongResult(format!(
            "{}: element ({i}, {j}) of a product of order {n} is wrong",
            blas.library
        ))),
    })?;
    Ok(samples)
}

fn measure_triad(
    world: &World,
    array_bytes: u64,
    rounds: usize,
    mut step: impl FnMut(),
) -> Result<Samples, Failure> {
    let mut triad = Triad::new((array_bytes / 8).max(1) as usize);
    let samples = rounds_of(
        world,
        rounds,
        || {
            let mut passes = 0.0;
            let begin = world.ticks();
            let seconds = loop {
                triad.pass(std::hint::black_box(SCALE));
                passes += 1.0;
                let seconds = world.ticks().wrapping_sub(begin) as f64 * world.seconds_per_tick();
                if seconds > STRETCH_S {
                    break seconds;
                }
            };
            passes * triad.elements() as f64 * triad::COUNTED_BYTES / seconds
        },
        |_| step(),
    );
    let wrong = triad.wrong(SCALE);
    world.agree(match wrong {
        0 => Ok(()),
        wrong => Err(Failure::WrongResult(format!("{wrong} elements of the triad are wrong"))),
    })?;
    Ok(samples)
}

/// All pairs exchange messages in both directions at once. A rank's rate counts what it sends and
/// receives.
fn measure_communication(
    world: &World,
    bytes: usize,
    rounds: usize,
    mut step: impl FnMut(),
) -> Result<Samples, Failure> {
    let partner = partner_across(&world.hosts)[world.rank as usize];
    let mut buffers = FlowBuffers::default();
    let mut samples = Samples::default();
    let mut wrong = 0;
    for round in 0..rounds {
        world.barrier();
        let mut rate = 0.0;
        if let Some(partner) = partner {
            let edges = [Edge::new(world.rank, partner), Edge::new(partner, world.rank)];
            let measured =
                run_flow(world, &edges, bytes, flow_window(bytes), &mut buffers, &mut wrong);
            // The leader knows the rate of both directions, of which its partner has an equal
            // share.
            rate = measured.unwrap_or(0.0);
        }
        let rates = world.share(rate);
        let both = partner.map_or(0.0, |partner| rate.max(rates[partner as usize]));
        if round >= WARMUP_ROUNDS {
            samples.add(world, both);
        } else {
            world.share(both);
        }
        step();
    }
    world.agree(match wrong {
        0 => Ok(()),
        wrong => Err(Failure::WrongResults(wrong)),
    })?;
    Ok(samples)
}
