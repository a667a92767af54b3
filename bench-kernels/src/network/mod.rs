//! `kernels network`: the cost of a message between two ranks, for each class of pairs.
//!
//! For a pair on one host and a pair on two hosts it measures half the round trip, the overheads
//! o_s and o_r, the gap, and the bandwidths one way and both ways, each over all sizes; linear
//! pieces of these between protocol switches; the eager limit; the queues; and the bandwidth with
//! several partners at once. The definitions follow Touyama and Horiguchi and Yasuda et al.; see
//! docs/guide/calibrate.md.

mod classes;
mod flow;
mod pair;
mod queue;
mod report;

use clap::Args;

use crate::conditions::Watch;
use crate::counter;
use crate::failure::Failure;
use crate::output::{Head, OutputOptions};
use crate::world::World;

pub use classes::partner_across;
pub use flow::{Buffers as FlowBuffers, Edge, run as run_flow, window as flow_window};

use classes::{Class, Shape};
use pair::{Buffers, Pair, SizeSamples};
use queue::{EagerLimit, QueueSize};
use report::{ClassReport, FlowReport, Report};

/// Number of rounds before the timed ones: the first messages open connections, map memory and fill
/// caches.
const WARMUP_ROUNDS: usize = 2;
/// Message sizes of the flows with several partners.
const FLOW_BYTES: [usize; 4] = [1 << 10, 16 << 10, 256 << 10, 4 << 20];

/// Measure latency, overheads, gap, bandwidth, queues and protocol switches of the network
///
/// Ranks 0 and 1 exchange messages of all sizes; if there are several hosts, the first pair on one
/// host and the first pair on two. The other ranks sleep. Every figure is a median over rounds with
/// its 95 % interval. Each round covers all sizes, so that a disturbance of the machine affects all
/// of them alike.
#[derive(Args)]
#[command(after_help = "Examples:
  mpirun -n 2 kernels network
  mpirun -n 2 kernels network --repetitions 50 --json > network.json
  mpirun -n 8 --host a:4,b:4 kernels network --max-bytes 1048576 --json")]
pub struct Arguments {
    /// Largest message, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    max_bytes: u64,
    /// Only these message sizes, bytes [default: 1, 2, 4 … and those next to the eager limit]
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    sizes: Vec<u64>,
    /// Timed rounds
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(3..=100_000))]
    repetitions: u64,
    /// Skip the queue experiments
    #[arg(long)]
    no_queues: bool,
    #[command(flatten)]
    output: OutputOptions,
}

/// Largest message that one MPI call with an `int` count, and the windows of the flow, can carry
/// here.
const MAX_BYTES: u64 = 1 << 28;

impl Arguments {
    fn sizes(&self) -> Result<Vec<u64>, Failure> {
        let named = if self.sizes.is_empty() { "--max-bytes" } else { "--sizes" };
        let asked: &[u64] = if self.sizes.is_empty() { &[self.max_bytes] } else { &self.sizes };
        for &bytes in asked {
            if bytes == 0 {
                return Err(Failure::Usage(format!(
                    "{named} 0: a message of 0 bytes has no bandwidth; the smallest size is 1"
                )));
            }
            if bytes > MAX_BYTES {
                return Err(Failure::Usage(format!(
                    "{named} {bytes}: the largest size is {MAX_BYTES} bytes"
                )));
            }
        }
        let mut sizes = self.sizes.clone();
        if sizes.is_empty() {
            sizes = (0..64).map(|k| 1 << k).take_while(|bytes| *bytes <= self.max_bytes).collect();
            sizes.push(self.max_bytes);
        }
        sizes.sort_unstable();
        sizes.dedup();
        Ok(sizes)
    }
}

/// All measurements of one class, on the rank that made them.
struct ClassSamples {
    eager: EagerLimit,
    sizes: Vec<(u64, SizeSamples)>,
    queues: Vec<QueueSize>,
}

/// Runs the kernel on all ranks; rank 0 prints.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let sizes = arguments.sizes()?;
    let world = World::start()?;
    world.need(2, "network")?;
    let watch = Watch::start();
    let rounds = arguments.repetitions as usize + WARMUP_ROUNDS;
    let classes = classes::of_world(&world);
    let progress = arguments.output.progress("network", 2 * classes.len() * rounds);

    let mut wrong = 0;
    let mut reports = Vec::new();
    for class in &classes {
        let mut measured = None;
        if class.takes_part(world.rank) {
            let pair = Pair { world: &world, first: class.pair.0, second: class.pair.1 };
            let step =
                |round: usize| progress.step(&format!("{}, round {round} of {rounds}", class.name));
            measured = Some(measure(&pair, arguments, &sizes, rounds, step, &mut wrong));
        }
        world.rest();
        let flows = measure_flows(&world, class, arguments, rounds, &mut wrong, |round| {
            progress.step(&format!("{}, several partners, round {round} of {rounds}", class.name));
        });
        if let Some(report) = ClassReport::gather(&world, class, measured, flows) {
            reports.push(report);
        }
    }
    let wrong: f64 = world.share(wrong as f64).into_iter().sum();
    drop(progress);

    let conditions = watch.end(&world, reports.iter().flat_map(ClassReport::figures));
    if world.rank == 0 {
        let report = Report {
            head: Head::new("network", &world),
            counter: counter::NAME,
            counter_hz: 1.0 / world.seconds_per_tick(),
            repetitions: arguments.repetitions as usize,
            warmup_rounds: WARMUP_ROUNDS,
            classes: reports,
            conditions,
        };
        arguments.output.print(&report)?;
    }
    if wrong == 0.0 { Ok(()) } else { Err(Failure::WrongResults(wrong as u64)) }
}

/// Measures everything about one pair. Both ranks call it; the first one's samples count.
fn measure(
    pair: &Pair,
    arguments: &Arguments,
    sizes: &[u64],
    rounds: usize,
    step: impl Fn(usize),
    wrong: &mut u64,
) -> ClassSamples {
    let most = *sizes.last().expect("there is at least one size") as usize;
    let mut buffers = Buffers::new(most + 1);
    let mut flood = Vec::new();
    // The first message opens the connection, which must not be part of an experiment.
    pair.meet();
    let eager = queue::eager_limit(pair, most, &mut flood);
    let mut all = sizes.to_vec();
    if arguments.sizes.is_empty() && !eager.at_least && eager.bytes > 0 {
        all.extend([eager.bytes, eager.bytes + 1]);
        all.sort_unstable();
        all.dedup();
    }
    let mut samples: Vec<(u64, SizeSamples)> =
        all.into_iter().map(|bytes| (bytes, SizeSamples::default())).collect();
    for round in 0..rounds {
        if round == WARMUP_ROUNDS {
            samples.iter_mut().for_each(|(_, sample)| *sample = SizeSamples::default());
        }
        for (bytes, sample) in &mut samples {
            *wrong += pair.repeat(*bytes as usize, sample, &mut buffers);
        }
        step(round + 1);
    }
    let queue_sizes = report::queue_sizes(&eager, most as u64);
    let queues = match arguments.no_queues {
        true => Vec::new(),
        false => {
            queue_sizes.iter().map(|&bytes| queue::queue_size(pair, bytes, &mut flood)).collect()
        }
    };
    ClassSamples { eager, sizes: samples, queues }
}

/// Measures flows with several partners at once. Every rank calls it.
fn measure_flows(
    world: &World,
    class: &Class,
    arguments: &Arguments,
    rounds: usize,
    wrong: &mut u64,
    step: impl Fn(usize),
) -> Vec<FlowReport> {
    let most = arguments.sizes.iter().copied().max().unwrap_or(arguments.max_bytes) as usize;
    let sizes: Vec<usize> = FLOW_BYTES.into_iter().filter(|bytes| *bytes <= most).collect();
    let shapes: Vec<Shape> = class.shapes(world);
    let mut buffers = flow::Buffers::default();
    let mut samples = vec![crate::sample::Sample::default(); shapes.len() * sizes.len()];
    for round in 0..rounds {
        let mut at = 0;
        for shape in &shapes {
            for &bytes in &sizes {
                let window = flow::window(bytes * shape.partners);
                let rate = flow::run(world, &shape.edges, bytes, window, &mut buffers, wrong);
                if let Some(rate) = rate.filter(|_| round >= WARMUP_ROUNDS) {
                    samples[at].add(rate);
                }
                at += 1;
            }
        }
        step(round + 1);
    }
    world.rest();
    let mut reports = Vec::new();
    let mut samples = samples.into_iter();
    for shape in &shapes {
        for &bytes in &sizes {
            let sample = samples.next().expect("there is a sample for each");
            if let Some(figure) = report::at_zero(world, shape.leader(), sample).figure() {
                reports.push(FlowReport {
                    shape: shape.name,
                    partners: shape.partners,
                    bytes: bytes as u64,
                    bytes_per_s: figure,
                });
            }
        }
    }
    reports
}
