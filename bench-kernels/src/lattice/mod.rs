//! `kernels lattice`: halo exchange on a periodic four-dimensional lattice, split in one to four
//! dimensions (after Masuguchi et al., whose program was QCDMPI).
//!
//! Each site holds six words. In each iteration, every word is updated with the sum of its
//! neighbours' in all eight directions. For each split dimension, twelve faces (six words, forward
//! and backward) are exchanged by non-blocking calls. The arithmetic wraps in 64 bits, so the
//! result is identical for every split, and is compared with the same iterations without a split.

mod part;
mod shape;

use clap::Args;
use serde::Serialize;

use crate::conditions::{Conditions, Watch};
use crate::failure::Failure;
use crate::output::{Head, OutputOptions};
use crate::sample::{Figure, Sample};
use crate::world::World;

use part::{FIRST_TAG, Part, WORDS, checksum_without_split};
use shape::{Shape, most_even, shape};

/// Number of site updates that rank 0 spends on the same iterations without a split.
const MAX_CHECK_WORK: usize = 200_000_000;

/// Exchange halos on a 4-D periodic lattice, split in 1 to 4 dimensions
///
/// Every split must give the same result, which is checked. The document has time, messages and
/// bytes of an iteration, the time predicted from the measured network, and the most suitable
/// split.
#[derive(Args)]
#[command(after_help = "Examples:
  mpirun -n 16 kernels lattice
  mpirun -n 4 kernels lattice --lattice 8x8x8x8 --iterations 20
  mpirun -n 4 kernels lattice --split 4x1x1x1 --split 2x2x1x1 --json")]
pub struct Arguments {
    /// Global lattice
    #[arg(long, value_name = "AxBxCxD", default_value = "16x16x16x16", value_parser = shape)]
    lattice: Shape,
    /// Ranks in each dimension; may be given several times [default: the most even splits in one,
    /// two, three and four dimensions]
    #[arg(long, value_name = "AxBxCxD", value_parser = shape)]
    split: Vec<Shape>,
    /// Timed iterations of each split
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    iterations: u64,
    #[command(flatten)]
    output: OutputOptions,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    lattice: String,
    iterations: u64,
    warmup_iterations: u64,
    splits: Vec<SplitReport>,
    /// The split with the least predicted communication on the network measured here. `None` if
    /// ranks share processors.
    suits: Option<String>,
    /// Whether the result equals that of the iterations made without a split.
    checked: bool,
    /// Whether times are meaningful: they are not if ranks share processors.
    times_meaningful: bool,
    conditions: Conditions,
}

#[derive(Serialize)]
struct SplitReport {
    split: String,
    dimensions: usize,
    local: String,
    iteration_s: Figure,
    exchange_s: Figure,
    messages: u64,
    bytes: u64,
    /// Sum over the split dimensions of twelve messages of the face's size, from the half round
    /// trip measured between neighbours right before.
    predicted_exchange_s: f64,
    checksum: String,
}

/// Runs the kernel on all ranks; rank 0 prints.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let world = World::start()?;
    let ranks = world.size as usize;
    let splits = splits(arguments, ranks)?;
    let watch = Watch::start();
    let steps = splits.len() * (arguments.iterations as usize + 1);
    let progress = arguments.output.progress("lattice", steps);
    let mut reports = Vec::new();
    let mut checksums = Vec::new();
    for split in &splits {
        let mut part = Part::new(&world, arguments.lattice, *split);
        let predicted_exchange_s = predict(&part, &world);
        let (mut iterations, mut exchanges) = (Sample::default(), Sample::default());
        for round in 0..=arguments.iterations {
            world.barrier();
            let begin = world.ticks();
            part.exchange(&world);
            let exchanged = world.ticks();
            part.update();
            let end = world.ticks();
            let s = world.seconds_per_tick();
            let exchange_s = world.largest(exchanged.wrapping_sub(begin) as f64 * s);
            let iteration_s = world.largest(end.wrapping_sub(begin) as f64 * s);
            if round > 0 {
                exchanges.add(exchange_s);
                iterations.add(iteration_s);
            }
            progress.step(&split.text());
        }
        let checksum = sum_over_ranks(&world, part.checksum());
        checksums.push(checksum);
        let dimensions = split.0.iter().filter(|ranks| **ranks > 1).count();
        if let (Some(iteration_s), Some(exchange_s)) = (iterations.figure(), exchanges.figure()) {
            reports.push(SplitReport {
                split: split.text(),
                dimensions,
                local: part.local.text(),
                iteration_s,
                exchange_s,
                messages: 2 * WORDS as u64 * dimensions as u64,
                bytes: part.bytes_sent(),
                predicted_exchange_s,
                checksum: format!("{checksum:016x}"),
            });
        }
    }
    drop(progress);
    let turns = arguments.iterations as usize + 1;
    let affordable = arguments.lattice.volume() * WORDS * turns <= MAX_CHECK_WORK;
    let mut result = Ok(());
    if world.rank == 0 && affordable {
        let truth = checksum_without_split(arguments.lattice, turns);
        if let Some(at) = checksums.iter().position(|checksum| *checksum != truth) {
            result = Err(Failure::WrongResult(format!(
                "split {}: checksum {:016x}, without a split {truth:016x}",
                splits[at].text(),
                checksums[at]
            )));
        }
    } else if checksums.windows(2).any(|pair| pair[0] != pair[1]) {
        result = Err(Failure::WrongResult("the splits give different checksums".into()));
    }
    world.agree(result)?;
    let figures: Vec<Figure> = reports.iter().map(|report| report.iteration_s.clone()).collect();
    let conditions = watch.end(&world, &figures);
    if world.rank == 0 {
        let best =
            reports.iter().min_by(|a, b| a.predicted_exchange_s.total_cmp(&b.predicted_exchange_s));
        arguments.output.print(&Report {
            head: Head::new("lattice", &world),
            lattice: arguments.lattice.text(),
            iterations: arguments.iterations,
            warmup_iterations: 1,
            suits: best.map(|report| report.split.clone()).filter(|_| !conditions.oversubscribed()),
            checked: affordable,
            times_meaningful: !conditions.oversubscribed(),
            splits: reports,
            conditions,
        })?;
    }
    Ok(())
}

/// The requested splits, or the most even ones.
fn splits(arguments: &Arguments, ranks: usize) -> Result<Vec<Shape>, Failure> {
    let lattice = arguments.lattice;
    let fits =
        |split: Shape| split.0.iter().zip(lattice.0).all(|(ranks, length)| length % ranks == 0);
    for split in &arguments.split {
        if split.volume() != ranks {
            return Err(Failure::Usage(format!(
                "--split {}: needs {} ranks, but {ranks} were started",
                split.text(),
                split.volume()
            )));
        }
        if !fits(*split) {
            return Err(Failure::Usage(format!(
                "--split {}: does not divide the lattice {}: each length must be a multiple of its ranks",
                split.text(),
                lattice.text()
            )));
        }
    }
    if !arguments.split.is_empty() {
        return Ok(arguments.split.clone());
    }
    let found: Vec<Shape> =
        (1..=4).filter_map(|dimensions| most_even(ranks, dimensions, fits)).collect();
    match (found.is_empty(), ranks) {
        (_, 1) => Ok(vec![Shape([1; 4])]),
        (false, _) => Ok(found),
        (true, _) => Err(Failure::Usage(format!(
            "--lattice {}: cannot be divided among {ranks} ranks: its lengths must be multiples of the \
             ranks in their dimension",
            lattice.text()
        ))),
    }
}

/// Predicted seconds of the exchange, from the half round trip of ranks 0 and 1 at each face's
/// size.
fn predict(part: &Part, world: &World) -> f64 {
    let dimensions = (0..4).filter(|dimension| part.split.0[*dimension] > 1);
    let exchange =
        |dimension| 2.0 * WORDS as f64 * half_round_trip(world, part.message_bytes(dimension));
    dimensions.map(exchange).sum()
}

/// Median half round trip between ranks 0 and 1 in seconds, on all ranks.
fn half_round_trip(world: &World, bytes: usize) -> f64 {
    const TRIPS: usize = 15;
    let mut data = vec![1_u8; bytes];
    let mut sample = Sample::default();
    for _ in 0..TRIPS {
        let begin = world.ticks();
        match world.rank {
            0 => {
                world.send(&data, 1, FIRST_TAG);
                world.receive(&mut data, 1, FIRST_TAG);
            }
            1 => {
                world.receive(&mut data, 0, FIRST_TAG);
                world.send(&data, 0, FIRST_TAG);
            }
            _ => {}
        }
        sample.add(world.ticks().wrapping_sub(begin) as f64 * world.seconds_per_tick() / 2.0);
    }
    world.share(sample.median())[0]
}

/// Wrapping sum of all ranks' words, on all ranks.
fn sum_over_ranks(world: &World, own: u64) -> u64 {
    // A double carries 32 bits exactly.
    let low = world.share((own & 0xffff_ffff) as f64);
    let high = world.share((own >> 32) as f64);
    let words = low.into_iter().zip(high).map(|(low, high)| (high as u64) << 32 | low as u64);
    words.fold(0, u64::wrapping_add)
}
