//! `kernels cannon`: the product of two matrices by Cannon's algorithm, with five ways to overlap
//! communication and computation (after Touyama and Horiguchi).
//!
//! P = q² ranks form a torus; rank (i, j) holds blocks of order l = N/q. After the initial skew
//! (row i of A moves left by i, column j of B up by j; Touyama and Horiguchi leave it out, which
//! makes the product wrong), each of q steps multiplies and passes A to the left and B up. The
//! blocks are in rings of slots, with the data of step t in slot t mod S. The strategies differ
//! only in how far ahead receives are posted and how many sends may be under way.

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::blas::Blas;
use crate::conditions::{Conditions, Watch};
use crate::failure::Failure;
use crate::output::{Head, OutputOptions};
use crate::sample::{Figure, Sample};
use crate::world::{Request, World};

const TAG_A: i32 = 41;
const TAG_B: i32 = 42;
/// Number of multiply-adds that a rank spends on checking its block. Of larger blocks, only some
/// rows are checked.
const CHECK_WORK: usize = 50_000_000;

/// Multiply two matrices by Cannon's algorithm with five communication strategies
///
/// The number of ranks must be a square, and N a multiple of its root. Each strategy's product is
/// compared with one computed locally from the definition.
#[derive(Args)]
#[command(after_help = "Examples:
  mpirun -n 4 kernels cannon --n 512
  mpirun -n 9 kernels cannon --n 300 --strategies simple,hidden-both --buffers 4
  mpirun -n 4 kernels cannon --n 64 --product loops --json")]
pub struct Arguments {
    /// Order of the matrices
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    n: u64,
    /// Strategies [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    strategies: Vec<Strategy>,
    /// Blocks of A and of B that the strategies with buffers hold ahead
    #[arg(long, value_name = "K", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    buffers: u64,
    /// How a rank multiplies blocks
    #[arg(long, value_enum, default_value_t = Product::Loops)]
    product: Product,
    /// BLAS library to load for --product blas
    #[arg(long, value_name = "FILE")]
    blas: Option<String>,
    /// Timed products of each strategy
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    repetitions: u64,
    #[command(flatten)]
    output: OutputOptions,
}

/// When to communicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Strategy {
    /// Communicate, then compute
    Simple,
    /// Compute while communicating, one block of each matrix ahead
    Hidden,
    /// Receives posted several blocks ahead
    HiddenReceive,
    /// Sends waited for only when their buffer is needed
    HiddenSend,
    /// Both
    HiddenBoth,
}

/// How a rank multiplies blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Product {
    /// Three loops, as in the model: a time of t_f + t_s l³
    Loops,
    /// The system's dgemm
    Blas,
}

impl Strategy {
    fn label(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Number of blocks for which receives are posted ahead, and number of sends that may be under
    /// way.
    fn depth(self, buffers: usize) -> (usize, usize) {
        match self {
            Self::Simple | Self::Hidden => (1, 1),
            Self::HiddenReceive => (buffers, 1),
            Self::HiddenSend => (1, buffers),
            Self::HiddenBoth => (buffers, buffers),
        }
    }
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    grid: usize,
    n: u64,
    block: usize,
    product: Product,
    blas: Option<String>,
    /// Time of one product of two blocks with nothing else going on: t_M.
    block_product_s: Figure,
    /// Time of all products of a rank: t_c = q·t_M.
    computation_s: f64,
    strategies: Vec<StrategyReport>,
    checked: String,
    repetitions: usize,
    warmup_products: usize,
    conditions: Conditions,
}

#[derive(Serialize)]
struct StrategyReport {
    strategy: Strategy,
    /// Number of blocks of A and B together that a rank holds.
    blocks_held: usize,
    /// From the start after a barrier to the end of the last rank, including the skew.
    elapsed_s: Figure,
    /// The skew alone.
    skew_s: Figure,
    /// Elapsed time minus computation: the part that was not hidden.
    not_hidden_s: f64,
}

/// Blocks of one rank and their neighbours.
struct Torus<'w> {
    world: &'w World,
    q: usize,
    i: usize,
    j: usize,
}

impl Torus<'_> {
    fn rank(&self, i: usize, j: usize) -> i32 {
        ((i % self.q) * self.q + j % self.q) as i32
    }
}

/// Element of A (salt 1) and B (salt 5). Small whole numbers, so that sums are exact.
fn element(i: usize, j: usize, salt: usize) -> f64 {
    ((i * 7 + j * 13 + i * j % 11 + salt) % 17) as f64 - 8.0
}

/// Runs the kernel on all ranks; rank 0 prints.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let world = World::start()?;
    let (n, ranks) = (arguments.n as usize, world.size as usize);
    let q = ranks.isqrt();
    if q * q != ranks {
        return Err(Failure::Usage(format!(
            "cannon needs a square number of ranks (1, 4, 9, 16 …) but was started with {ranks}: mpirun -n \
             {} kernels cannon",
            q * q
        )));
    }
    if n % q != 0 {
        return Err(Failure::Usage(format!(
            "--n {n}: not a multiple of {q}, the root of the number of ranks; the next one is {}",
            n.next_multiple_of(q)
        )));
    }
    let watch = Watch::start();
    let blas = match arguments.product {
        Product::Loops => None,
        Product::Blas => {
            let loaded = Blas::load(arguments.blas.as_deref(), 1);
            match loaded {
                Ok(blas) => world.agree(Ok(())).map(|()| Some(blas))?,
                Err(failure) => return world.agree(Err(failure)),
            }
        }
    };
    let (rank, l) = (world.rank as usize, n / q);
    let torus = Torus { world: &world, q, i: rank / q, j: rank % q };
    let multiply = |a: &[f64], b: &[f64], c: &mut [f64]| match &blas {
        Some(blas) => blas.dgemm((l, l, l), a, b, c),
        None => loops(l, a, b, c),
    };
    let own = |salt| -> Vec<f64> {
        (0..l * l).map(|at| element(torus.i * l + at / l, torus.j * l + at % l, salt)).collect()
    };
    let (a, b) = (own(1), own(5));
    let strategies: Vec<Strategy> = Strategy::value_variants()
        .iter()
        .copied()
        .filter(|one| arguments.strategies.is_empty() || arguments.strategies.contains(one))
        .collect();

    let repetitions = arguments.repetitions as usize;
    let progress = arguments.output.progress("cannon", (strategies.len() + 1) * (repetitions + 1));
    let block_product_s =
        time_block(&world, l, repetitions, multiply, || progress.step("block product"));
    let mut reports = Vec::new();
    let mut wrong = Ok(());
    for &strategy in &strategies {
        let (ahead, under_way) = strategy.depth(arguments.buffers as usize);
        let mut ring = Ring::new(l, ahead, under_way);
        let (mut elapsed, mut skews) = (Sample::default(), Sample::default());
        for round in 0..=repetitions {
            ring.load(&a, &b);
            let (total_s, skew_s) = ring.multiply(&torus, strategy, multiply);
            let (total_s, skew_s) = (world.largest(total_s), world.largest(skew_s));
            if round > 0 {
                elapsed.add(total_s);
                skews.add(skew_s);
            }
            progress.step(&strategy.label());
        }
        if wrong.is_ok() {
            wrong = check(&torus, l, n, &ring.c).map_err(|what| {
                Failure::WrongResult(format!("strategy {}: {what}", strategy.label()))
            });
        }
        if let (Some(elapsed_s), Some(skew_s)) = (elapsed.figure(), skews.figure()) {
            let not_hidden_s = elapsed_s.median - q as f64 * block_product_s.median;
            let blocks_held = 2 * (ahead + under_way);
            reports.push(StrategyReport { strategy, blocks_held, elapsed_s, skew_s, not_hidden_s });
        }
    }
    drop(progress);
    world.agree(wrong)?;
    let figures: Vec<Figure> = reports.iter().map(|report| report.elapsed_s.clone()).collect();
    let conditions = watch.end(&world, &figures);
    if world.rank == 0 {
        arguments.output.print(&Report {
            head: Head::new("cannon", &world),
            grid: q,
            n: arguments.n,
            block: l,
            product: arguments.product,
            blas: blas.map(|blas| blas.library),
            computation_s: q as f64 * block_product_s.median,
            block_product_s,
            strategies: reports,
            checked: format!(
                "{} of {l} rows of every block, every element of them",
                check_rows(l, n).count()
            ),
            repetitions,
            warmup_products: 1,
            conditions,
        })?;
    }
    Ok(())
}

/// C ← C + A·B of order l.
fn loops(l: usize, a: &[f64], b: &[f64], c: &mut [f64]) {
    for (a, c) in a.chunks_exact(l).zip(c.chunks_exact_mut(l)) {
        for (a, b) in a.iter().zip(b.chunks_exact(l)) {
            for (c, b) in c.iter_mut().zip(b) {
                *c += a * b;
            }
        }
    }
}

/// Time of one block product made on all ranks at once: that of the slowest rank.
fn time_block(
    world: &World,
    l: usize,
    repetitions: usize,
    multiply: impl Fn(&[f64], &[f64], &mut [f64]),
    mut step: impl FnMut(),
) -> Figure {
    let a: Vec<f64> = (0..l * l).map(|at| element(at / l, at % l, 1)).collect();
    let mut c = vec![0.0; l * l];
    let mut sample = Sample::default();
    let times = (100_000 / (l * l * l).max(1)).clamp(1, 1000);
    for round in 0..=repetitions {
        world.barrier();
        let begin = world.ticks();
        for _ in 0..times {
            multiply(&a, &a, &mut c);
        }
        let s = world.ticks().wrapping_sub(begin) as f64 * world.seconds_per_tick() / times as f64;
        std::hint::black_box(&mut c);
        let slowest = world.largest(s);
        if round > 0 {
            sample.add(slowest);
        }
        step();
    }
    sample.figure().expect("at least one repetition")
}

/// Slots for blocks of A and B, and the product.
struct Ring {
    l: usize,
    ahead: usize,
    under_way: usize,
    a: Vec<Vec<f64>>,
    b: Vec<Vec<f64>>,
    c: Vec<f64>,
}

impl Ring {
    fn new(l: usize, ahead: usize, under_way: usize) -> Self {
        let slots = vec![vec![0.0; l * l]; ahead + under_way];
        Self { l, ahead, under_way, a: slots.clone(), b: slots, c: vec![0.0; l * l] }
    }

    /// Copies the rank's own blocks into the slot before the first, where the skew takes them from.
    fn load(&mut self, a: &[f64], b: &[f64]) {
        let last = self.a.len() - 1;
        self.a[last].copy_from_slice(a);
        self.b[last].copy_from_slice(b);
        self.c.fill(0.0);
    }

    /// Computes the product. Returns the seconds from the barrier to this rank's end, and those of
    /// the skew.
    fn multiply(
        &mut self,
        torus: &Torus,
        strategy: Strategy,
        multiply: impl Fn(&[f64], &[f64], &mut [f64]),
    ) -> (f64, f64) {
        let (world, q) = (torus.world, torus.q);
        let slots = self.a.len();
        let (i, j) = (torus.i, torus.j);
        world.barrier();
        let begin = world.ticks();
        // The skew: row i of A moves left by i, column j of B up by j.
        let to = (torus.rank(i, j + q - i % q), torus.rank(i + q - j % q, j));
        let from = (torus.rank(i, j + i), torus.rank(i + j, j));
        let receive = self.receive(world, 0, from);
        let send = self.send(world, slots - 1, to);
        wait(receive);
        wait(send);
        let skew = world.ticks().wrapping_sub(begin);

        let to = (torus.rank(i, j + q - 1), torus.rank(i + q - 1, j));
        let from = (torus.rank(i, j + 1), torus.rank(i + 1, j));
        let mut sends: Vec<Option<[Request; 2]>> = (0..q).map(|_| None).collect();
        let mut receives: Vec<Option<[Request; 2]>> = (0..q).map(|_| None).collect();
        let mut posted = 0;
        for step in 0..q {
            // Receives first, as far ahead as the ring allows. A slot is free once its data have
            // been sent on.
            while posted < (step + self.ahead).min(q - 1) {
                posted += 1;
                if let Some(request) = posted.checked_sub(slots).and_then(|old| sends[old].take()) {
                    wait(request);
                }
                receives[posted] = Some(self.receive(world, posted % slots, from));
            }
            if let Some(request) = receives[step].take() {
                wait(request);
            }
            if step + 1 < q {
                sends[step] = Some(self.send(world, step % slots, to));
                if strategy == Strategy::Simple {
                    wait(sends[step].take().expect("the send was started right above"));
                    wait(receives[step + 1].take().expect("the receive was posted in this step"));
                }
            }
            multiply(&self.a[step % slots], &self.b[step % slots], &mut self.c);
            if self.under_way == 1
                && let Some(request) = sends[step].take()
            {
                wait(request);
            }
        }
        sends.into_iter().flatten().for_each(wait);
        let total = world.ticks().wrapping_sub(begin);
        let seconds_per_tick = world.seconds_per_tick();
        (total as f64 * seconds_per_tick, skew as f64 * seconds_per_tick)
    }

    fn bytes(&self) -> usize {
        self.l * self.l * 8
    }

    fn send(&mut self, world: &World, slot: usize, (a, b): (i32, i32)) -> [Request; 2] {
        let bytes = self.bytes();
        let start = |block: &[f64], to, tag| {
            // SAFETY: guaranteed here: the slot is only read until `multiply` has waited for this
            // request. A receive into it is posted after that, and the ring lives longer.
            unsafe { world.start_send(block.as_ptr().cast(), bytes, to, tag) }
        };
        [start(&self.a[slot], a, TAG_A), start(&self.b[slot], b, TAG_B)]
    }

    fn receive(&mut self, world: &World, slot: usize, (a, b): (i32, i32)) -> [Request; 2] {
        let bytes = self.bytes();
        let start = |block: &mut [f64], from, tag| {
            // SAFETY: guaranteed here: nobody reads or writes the slot until `multiply` has waited
            // for this request. Its old data were multiplied and sent on, and the ring lives
            // longer.
            unsafe { world.start_receive(block.as_mut_ptr().cast(), bytes, from, tag) }
        };
        [start(&mut self.a[slot], a, TAG_A), start(&mut self.b[slot], b, TAG_B)]
    }
}

fn wait(requests: [Request; 2]) {
    requests.into_iter().for_each(Request::wait);
}

/// Rows of a block to check: all of them if that is not too much work.
fn check_rows(l: usize, n: usize) -> impl Iterator<Item = usize> {
    (0..l).step_by((l * l * n).div_ceil(CHECK_WORK).max(1))
}

/// Compares this rank's block with the definition of the product.
fn check(torus: &Torus, l: usize, n: usize, c: &[f64]) -> Result<(), String> {
    for row in check_rows(l, n) {
        let i = torus.i * l + row;
        let mut expected = vec![0.0; l];
        for k in 0..n {
            let a = element(i, k, 1);
            for (column, sum) in expected.iter_mut().enumerate() {
                *sum += a * element(k, torus.j * l + column, 5);
            }
        }
        if let Some(column) = (0..l).find(|&column| expected[column] != c[row * l + column]) {
            return Err(format!(
                "element ({i}, {}) is {} and should be {}",
                torus.j * l + column,
                c[row * l + column],
                expected[column]
            ));
        }
    }
    Ok(())
}
