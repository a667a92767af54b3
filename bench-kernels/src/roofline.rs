//! `kernels roofline`: matrix products and unrelated communication at the same time, with
//! operations and bytes set independently (after Yasuda et al.).
//!
//! Ranks form pairs that share no link if possible. For each intensity, a rank multiplies matrices
//! while messages to and from its partner are under way. In the same round, the same work without
//! communication and the same communication without work are measured; these are the point's roofs.
//! Communication alone runs with both ways in which a program can wait for it (MPI_Test in a loop,
//! MPI_Waitall), and the faster one is the roof. The order of the runs changes from round to round,
//! and a point is compared with its roofs round by round, so that a machine whose speed drifts
//! (turbo, a neighbour on the same core) affects both alike.

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::blas::{self, Blas};
use crate::buffer::Buffer;
use crate::conditions::{Conditions, Watch};
use crate::failure::Failure;
use crate::network::partner_across;
use crate::output::{Head, OutputOptions};
use crate::sample::{Figure, Sample};
use crate::world::{Request, World, wait_all};

const TAG: i32 = 61;
/// Number of runs of each part for determining the sizes of the points.
const PROBES: usize = 5;
/// Approximate duration of a point in seconds.
const POINT_S: f64 = 0.02;
/// Maximum order of the matrices.
const MAX_ORDER: usize = 256;

/// Sweep the intensity of computation against communication
///
/// Intensity is operations per byte that a rank sends and receives. Each point is a median over
/// rounds; each round covers all intensities.
#[derive(Args)]
#[command(after_help = "Examples:
  mpirun -n 2 kernels roofline
  mpirun -n 4 kernels roofline --intensities 0.1,1,10,100 --message-bytes 65536
  mpirun -n 2 kernels roofline --progress-calls test --json")]
pub struct Arguments {
    /// Operations per byte [default: three per decade from 0.01 to 1000]
    #[arg(long, value_name = "I", value_delimiter = ',')]
    intensities: Vec<f64>,
    /// Maximum size of each message in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 18, value_parser = clap::value_parser!(u64).range(8..=1 << 28))]
    message_bytes: u64,
    /// What a rank does for its messages while it multiplies
    #[arg(long, value_enum, default_value_t = Calls::Test)]
    progress_calls: Calls,
    /// BLAS library to load [default: the first of MKL, OpenBLAS, BLIS, CBLAS]
    #[arg(long, value_name = "FILE")]
    blas: Option<String>,
    /// Timed rounds
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    repetitions: u64,
    #[command(flatten)]
    output: OutputOptions,
}

/// What a rank does for its messages while it multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Calls {
    /// MPI_Test between two products, as programs that overlap do
    Test,
    /// Nothing until all products are done
    None,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    pairs: usize,
    message_bytes: u64,
    progress_calls: Calls,
    blas: String,
    repetitions: usize,
    warmup_rounds: usize,
    points: Vec<PointReport>,
    conditions: Conditions,
}

/// One intensity. Figures are per rank, with the time of the slowest one.
#[derive(Serialize)]
struct PointReport {
    /// Operations per byte sent and received.
    flops_per_byte: f64,
    flops: f64,
    /// Bytes sent; as many are received.
    sent_bytes: u64,
    messages: u64,
    /// Order of the matrices. `products` is the number of products.
    order: usize,
    products: u64,
    elapsed_s: Figure,
    flops_per_s: Figure,
    /// The same products without communication, operations per second.
    computation_alone_flops_per_s: Figure,
    /// The same communication without products, bytes sent and received per second.
    communication_alone_bytes_per_s: Figure,
    /// min(F, B·I): everything overlaps.
    overlap_roof_flops_per_s: f64,
    /// 1/(1/F + 1/(B·I)): nothing overlaps.
    no_overlap_flops_per_s: f64,
    /// Attained rate over the overlap roof, both from the same round.
    share_of_roof: Figure,
    /// How the faster communication alone waited.
    communication_alone_waits_by: Waiting,
}

/// How a rank waits for its messages if it has nothing else to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Waiting {
    /// MPI_Test in a loop.
    Test,
    /// MPI_Waitall.
    Waitall,
}

/// The work of a point on one rank.
#[derive(Clone, Copy, Debug)]
struct Work {
    order: usize,
    products: u64,
    message_bytes: usize,
    messages: u64,
}

impl Work {
    /// Work for an intensity. The part that takes longer fills [`POINT_S`].
    fn new(intensity: f64, flops_per_s: f64, bytes_per_s: f64, most_bytes: usize) -> Self {
        let bytes = (bytes_per_s * POINT_S).min(flops_per_s * POINT_S / intensity);
        // In both directions: half of the bytes are sent, in whole words.
        let sent = ((bytes / 2.0 / 8.0).round() as usize).max(1) * 8;
        let message_bytes = sent.min(most_bytes / 8 * 8);
        let messages = (sent as f64 / message_bytes as f64).round().max(1.0);
        let flops = 2.0 * messages * message_bytes as f64 * intensity;
        // The largest order for which at least eight products fit.
        let order = ((flops / 16.0).cbrt() as usize).clamp(1, MAX_ORDER);
        let products = (flops / blas::flops((order, order, order))).round().max(1.0);
        Self { order, products: products as u64, message_bytes, messages: messages as u64 }
    }

    fn flops(&self) -> f64 {
        self.products as f64 * blas::flops((self.order, self.order, self.order))
    }

    fn bytes(&self) -> f64 {
        2.0 * self.messages as f64 * self.message_bytes as f64
    }
}

/// The parts that run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Products and messages.
    Both,
    Products,
    Messages(Waiting),
}

const PARTS: [Part; 4] =
    [Part::Both, Part::Products, Part::Messages(Waiting::Test), Part::Messages(Waiting::Waitall)];

/// Seconds of each part, round by round, in the order of [`PARTS`].
#[derive(Default)]
struct Samples([Sample; PARTS.len()]);

/// Runs the kernel on all ranks; rank 0 prints.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(bad) =
        arguments.intensities.iter().find(|i| !(i.is_finite() && (1e-6..=1e9).contains(*i)))
    {
        return Err(Failure::Usage(format!(
            "--intensities {bad}: operations a byte must be from 1e-6 to 1e9"
        )));
    }
    let intensities: Vec<f64> = match arguments.intensities.is_empty() {
        true => (-6..=9).map(|third| 10_f64.powf(f64::from(third) / 3.0)).collect(),
        false => arguments.intensities.clone(),
    };
    let world = World::start()?;
    world.need(2, "roofline")?;
    if world.size % 2 != 0 {
        return Err(Failure::Usage(format!(
            "roofline needs pairs, that is an even number of ranks, but was started with {}",
            world.size
        )));
    }
    let partners = partner_across(&world.hosts);
    if let Some(alone) = partners.iter().position(Option::is_none) {
        return Err(Failure::Usage(format!(
            "roofline needs a partner for every rank, but rank {alone} has none: start as many ranks on \
             each host, on an even number of hosts"
        )));
    }
    let partner = partners[world.rank as usize].expect("checked above");
    let watch = Watch::start();
    let loaded = Blas::load(arguments.blas.as_deref(), 1);
    let blas = match loaded {
        Ok(blas) => world.agree(Ok(())).map(|()| blas)?,
        Err(failure) => return world.agree(Err(failure)),
    };
    let mut bench = Bench::new(&world, &blas, partner, arguments);

    // Approximate rates of the machine, to determine the sizes of the points.
    let most_bytes = arguments.message_bytes as usize;
    let probe = Work { order: MAX_ORDER, products: 20, message_bytes: most_bytes, messages: 8 };
    bench.run(&probe, Part::Both);
    // The best of several runs: an interrupted one would make all points too small.
    let mut best =
        |part| (0..PROBES).map(|_| bench.run(&probe, part)).fold(f64::INFINITY, f64::min);
    let flops_per_s = probe.flops() / best(Part::Products);
    let bytes_per_s = probe.bytes() / best(Part::Messages(Waiting::Waitall));
    let works: Vec<Work> = intensities
        .iter()
        .map(|&intensity| Work::new(intensity, flops_per_s, bytes_per_s, most_bytes))
        .collect();

    let rounds = arguments.repetitions as usize + 1;
    let progress = arguments.output.progress("roofline", rounds);
    let mut samples: Vec<Samples> = works.iter().map(|_| Samples::default()).collect();
    for round in 0..rounds {
        for (work, samples) in works.iter().zip(&mut samples) {
            for turn in 0..PARTS.len() {
                let at = (round + turn) % PARTS.len();
                let seconds = bench.run(work, PARTS[at]);
                if round > 0 {
                    samples.0[at].add(seconds);
                }
            }
        }
        progress.step(&format!("round {} of {rounds}", round + 1));
    }
    drop(progress);
    let wrong = bench.wrong;
    let points: Vec<PointReport> = works
        .iter()
        .zip(&samples)
        .filter_map(|(work, samples)| PointReport::new(work, samples))
        .collect();
    world.agree(match wrong {
        0 => Ok(()),
        wrong => Err(Failure::WrongResults(wrong)),
    })?;
    let figures: Vec<Figure> = points.iter().map(|point| point.elapsed_s.clone()).collect();
    let conditions = watch.end(&world, &figures);
    if world.rank == 0 {
        arguments.output.print(&Report {
            head: Head::new("roofline", &world),
            pairs: world.size as usize / 2,
            message_bytes: arguments.message_bytes,
            progress_calls: arguments.progress_calls,
            blas: blas.library,
            repetitions: arguments.repetitions as usize,
            warmup_rounds: 1,
            points,
            conditions,
        })?;
    }
    Ok(())
}

impl PointReport {
    fn new(work: &Work, samples: &Samples) -> Option<Self> {
        let [both, products, by_test, by_waitall] = &samples.0;
        let (messages, waiting) = match by_test.median() < by_waitall.median() {
            true => (by_test, Waiting::Test),
            false => (by_waitall, Waiting::Waitall),
        };
        let rates = |work: f64, times: &Sample| -> Option<Figure> {
            times.values().iter().map(|s| work / s).collect::<Sample>().figure()
        };
        let rounds = both.values().iter().zip(products.values()).zip(messages.values());
        let shares: Sample =
            rounds.map(|((both, products), messages)| products.max(*messages) / both).collect();
        let intensity = work.flops() / work.bytes();
        let computation = rates(work.flops(), products)?;
        let communication = rates(work.bytes(), messages)?;
        let (f, b) = (computation.median, communication.median);
        Some(Self {
            flops_per_byte: intensity,
            flops: work.flops(),
            sent_bytes: work.messages * work.message_bytes as u64,
            messages: work.messages,
            order: work.order,
            products: work.products,
            elapsed_s: both.figure()?,
            flops_per_s: rates(work.flops(), both)?,
            overlap_roof_flops_per_s: f.min(b * intensity),
            no_overlap_flops_per_s: 1.0 / (1.0 / f + 1.0 / (b * intensity)),
            share_of_roof: shares.figure()?,
            communication_alone_waits_by: waiting,
            computation_alone_flops_per_s: computation,
            communication_alone_bytes_per_s: communication,
        })
    }
}

/// Buffers of a rank.
struct Bench<'w> {
    world: &'w World,
    blas: &'w Blas,
    partner: i32,
    calls: Calls,
    a: Vec<f64>,
    c: Vec<f64>,
    out: Buffer,
    into: Buffer,
    wrong: u64,
}

/// Number of messages under way at once.
const WINDOW: u64 = 8;

impl<'w> Bench<'w> {
    fn new(world: &'w World, blas: &'w Blas, partner: i32, arguments: &Arguments) -> Self {
        let words = MAX_ORDER * MAX_ORDER;
        let bytes = arguments.message_bytes as usize;
        Self {
            world,
            blas,
            partner,
            calls: arguments.progress_calls,
            // Every row sums to the order, so products of A with ones remain easy to check.
            a: vec![1.0; words],
            c: vec![0.0; words],
            out: Buffer::filled(bytes, 0x3c),
            into: Buffer::filled(bytes * WINDOW as usize, 0),
            wrong: 0,
        }
    }

    /// Runs a part and returns the seconds of the slowest rank.
    fn run(&mut self, work: &Work, part: Part) -> f64 {
        let n = work.order;
        self.c[..n * n].fill(0.0);
        self.into.fill(0);
        let (products, messages, calls) = match part {
            Part::Both => (work.products, work.messages, self.calls),
            Part::Products => (work.products, 0, self.calls),
            Part::Messages(Waiting::Test) => (0, work.messages, Calls::Test),
            Part::Messages(Waiting::Waitall) => (0, work.messages, Calls::None),
        };
        self.world.barrier();
        let begin = self.world.ticks();
        let mut under_way: Vec<Request> = Vec::new();
        let (mut sent, mut done) = (0, 0);
        loop {
            // Starts a new window when the last one is complete.
            let through = match calls {
                Calls::Test => under_way.iter_mut().all(Request::is_complete),
                Calls::None => under_way.is_empty() || done == products,
            };
            if through {
                wait_all(std::mem::take(&mut under_way));
                let count = WINDOW.min(messages - sent);
                self.start(count, work.message_bytes, &mut under_way);
                sent += count;
            }
            if done < products {
                self.blas.dgemm((n, n, n), &self.a, &self.a, &mut self.c);
                done += 1;
            } else if sent == messages {
                break;
            }
        }
        wait_all(under_way);
        let seconds = self.world.ticks().wrapping_sub(begin) as f64 * self.world.seconds_per_tick();
        let expected = (products as usize * n) as f64;
        self.wrong += u64::from(self.c[..n * n].iter().any(|value| *value != expected));
        let arrived = messages.min(WINDOW) as usize * work.message_bytes;
        self.wrong += u64::from(self.into[..arrived].iter().any(|byte| *byte != 0x3c));
        self.world.largest(seconds)
    }

    fn start(&mut self, count: u64, bytes: usize, under_way: &mut Vec<Request>) {
        let pieces = self.into.chunks_mut(bytes).take(count as usize);
        for piece in pieces {
            // SAFETY: guaranteed here: `run` waits for every request before it returns or starts
            // another on the same piece, and nobody reads the pieces before that.
            under_way.push(unsafe {
                self.world.start_receive(piece.as_mut_ptr(), bytes, self.partner, TAG)
            });
        }
        for _ in 0..count {
            // SAFETY: guaranteed here: the buffer is never written after its creation.
            under_way.push(unsafe {
                self.world.start_send(self.out.as_ptr(), bytes, self.partner, TAG)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_and_bytes_give_requested_intensity() {
        for third in -6..=9 {
            let wanted = 10_f64.powf(f64::from(third) / 3.0);
            let work = Work::new(wanted, 20e9, 4e9, 1 << 18);
            let found = work.flops() / work.bytes();
            assert!((found / wanted - 1.0).abs() < 0.3, "{wanted}: {found} {work:?}");
            let longest = (work.flops() / 20e9).max(work.bytes() / 4e9);
            assert!((0.5..2.0).contains(&(longest / POINT_S)), "{wanted}: {longest} s");
        }
    }
}
