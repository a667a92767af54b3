//! Synthetic records of runs, for tests: a loop in which four ranks compute in two regions and then
//! meet, with known properties.

use std::collections::BTreeMap;

use super::partners::Partners;
use super::place::{Place, Site};
use super::record::*;
use super::sampled::{Sampled, SampledCode, SampledRow};
use crate::diagnosis::Finding;
use crate::metrics::Oversubscription;

pub const RANKS: u32 = 4;
const ITERATIONS: usize = 128;
/// Nanoseconds that a rank computes per iteration: in smooth, in norm.
pub const SMOOTH: f64 = 6e6;
pub const NORM: f64 = 3e6;
const TRANSFER: i64 = 400_000;
/// Start and end of a rank, nanoseconds.
const START: i64 = 1_000_000;

/// Generates synthetic runs with these properties.
#[derive(Debug, Clone)]
pub struct RunGenerator {
    pub seed: u64,
    /// Relative standard deviations of a run's speed and of an iteration's.
    pub run_spread: f64,
    pub iteration_spread: f64,
    /// Extra time of smooth, as a fraction, on one rank or on all.
    pub slower: f64,
    pub slow_rank: Option<u32>,
    /// Fraction by which everything is slower: another machine.
    pub machine: f64,
    pub allreduces: u64,
    pub message_bytes: u64,
    pub order: [u32; 4],
    pub mhz: u32,
    /// Share of the ranks' time without a core.
    pub lacked_cores: f64,
}

impl Default for RunGenerator {
    fn default() -> Self {
        Self {
            seed: 1,
            run_spread: 0.002,
            iteration_spread: 0.01,
            slower: 0.0,
            slow_rank: None,
            machine: 0.0,
            allreduces: 1,
            message_bytes: 800,
            order: [0, 1, 2, 3],
            mhz: 2450,
            lacked_cores: 0.0,
        }
    }
}

/// Normally distributed numbers (Box and Muller 1958) from a simple generator.
pub struct Noise(fastrand::Rng);

impl Noise {
    pub fn new(seed: u64) -> Self {
        // Consecutive seeds would give numbers that are spread more evenly than random ones.
        let mut mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self(fastrand::Rng::with_seed(mixed ^ (mixed >> 31)))
    }

    pub fn normal(&mut self) -> f64 {
        let (a, b) = (self.0.f64().max(1e-300), self.0.f64());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}

impl RunGenerator {
    /// Generates runs that are alike except for noise.
    pub fn runs(&self, count: u64) -> Vec<RunRecord> {
        (0..count)
            .map(|number| Self { seed: self.seed * 1_000 + number, ..self.clone() }.run())
            .collect()
    }

    pub fn run(&self) -> RunRecord {
        let mut noise = Noise::new(self.seed);
        let speed = (1.0 + self.machine) * (1.0 + self.run_spread * noise.normal());
        // Consecutive iterations are correlated: each inherits a part of the previous one.
        let mut drift = 0.0;
        let mut computing = [[0i64; RANKS as usize]; 2];
        let mut waiting: BTreeMap<(u32, u32), i64> = BTreeMap::new();
        let (mut elapsed, mut waits) = (Vec::new(), Vec::new());
        let mut figures = [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
        for _ in 0..ITERATIONS {
            drift = 0.6 * drift + 0.8 * self.iteration_spread * noise.normal();
            let mut of_ranks = [[0i64; 2]; RANKS as usize];
            for (rank, of_rank) in of_ranks.iter_mut().enumerate() {
                let is_slow = self.slow_rank.is_none_or(|slow| slow as usize == rank);
                let extra = if is_slow { 1.0 + self.slower } else { 1.0 };
                let own = 1.0 + 0.002 * noise.normal();
                *of_rank =
                    [SMOOTH * extra, NORM].map(|ns| (ns * speed * (1.0 + drift) * own) as i64);
                computing[0][rank] += of_rank[0];
                computing[1][rank] += of_rank[1];
            }
            let sums = of_ranks.map(|of| of[0] + of[1]);
            let last = (0..RANKS as usize).max_by_key(|rank| sums[*rank]).unwrap();
            let mut waited = 0;
            for (rank, sum) in sums.iter().enumerate().filter(|(rank, _)| *rank != last) {
                *waiting.entry((rank as u32, last as u32)).or_default() += sums[last] - sum;
                waited += sums[last] - sum;
            }
            elapsed.push(sums[last] + TRANSFER);
            waits.push(waited / i64::from(RANKS));
            for (at, figures) in figures.iter_mut().enumerate() {
                let of_place = of_ranks.map(|of| of[at]);
                figures[0].push(of_place.iter().sum::<i64>() / i64::from(RANKS));
                figures[1].push(of_place.into_iter().max().unwrap());
            }
        }
        let sums = Sums { elapsed, waits, figures, computing, waiting };
        self.record(&sums)
    }

    fn record(&self, of: &Sums) -> RunRecord {
        let elapsed_ns = of.elapsed.iter().sum::<i64>() + START;
        let sites = ["MPI_Sendrecv", "MPI_Allreduce"].map(|function| Site {
            function: function.to_owned(),
            within: Some("main".to_owned()),
            file: Some("made.c".to_owned()),
            line: Some(40),
            module: "made".to_owned(),
            number: 0,
        });
        let record = RunRecord {
            format: FORMAT.to_owned(),
            format_version: FORMAT_VERSION,
            gammachi_version: "0".to_owned(),
            run: format!("made-{}", self.seed),
            begun_ns: Some(1_700_000_000_000_000_000 + self.seed * 1_000_000_000),
            program: "made".to_owned(),
            build_id: "ab".to_owned(),
            arguments: Vec::new(),
            params: BTreeMap::new(),
            mpi: "MPI 1".to_owned(),
            level: 1,
            compute: "outside".to_owned(),
            ranks: RANKS,
            machine: Machine {
                hosts: vec!["here".to_owned()],
                host_count: 1,
                ranks_per_host: RANKS,
                cores_per_host: (4, 4),
                counter_mhz: self.mhz,
                processors: vec!["AMD EPYC 7763".into()],
            },
            elapsed_ns,
            tree: None,
            ranks_per_group: 1,
            sites: sites.to_vec(),
            parts: of.parts(),
            iterations: Some(of.iterations()),
            phases: vec![Phase {
                anchor: Place::Inside(0),
                iterations: 128,
                ns: elapsed_ns - START,
            }],
            counts: self.counts(),
            partners: Some(self.partners()),
            lacked_cores: Some(self.lacked_cores),
            code: None,
            parallel_regions: None,
            files: None,
            each_file: Vec::new(),
            findings: self.lack().into_iter().collect(),
            simulated: false,
        };
        RunRecord::parse(&record.text().unwrap()).unwrap()
    }

    /// What a diagnosis says of ranks that lack cores.
    fn lack(&self) -> Option<Finding> {
        let share = Some(self.lacked_cores);
        let few = Oversubscription::FewCores { host: "here".into(), ranks: 4, cores: 2 };
        (self.lacked_cores >= 0.05).then(|| Finding::LackOfCores {
            decisive: self.lacked_cores >= 0.25,
            share,
            held_up: share,
            shown_by: vec![few],
            while_computing_s: None,
            ranks_missing: false,
        })
    }

    fn counts(&self) -> Counts {
        let turns = ITERATIONS as u64 * u64::from(RANKS);
        let calls = [("MPI_Sendrecv", turns), ("MPI_Allreduce", self.allreduces * turns)];
        let calls = calls.map(|(name, count)| (name.to_owned(), count));
        Counts {
            calls: calls.into(),
            bytes: [("MPI_Sendrecv".to_owned(), turns * self.message_bytes)].into(),
            sites: vec![(0, turns), (1, self.allreduces * turns)],
            messages: Some(turns),
            message_bytes: Some(turns * self.message_bytes),
            sizes: [(1 << self.message_bytes.ilog2(), turns)].into(),
            collectives: [("MPI_Allreduce/4/8".to_owned(), self.allreduces * ITERATIONS as u64)]
                .into(),
            regions: [("smooth".to_owned(), turns), ("norm".to_owned(), turns)].into(),
        }
    }

    fn partners(&self) -> Partners {
        let next = |at: usize| self.order[(at + 1) % 4];
        let pairs = (0..4).map(|at| ((self.order[at], next(at)), ITERATIONS as u64)).collect();
        Partners::new(&pairs, |_| 0)
    }
}

/// The samples of a run: seconds in each function on every rank, sampled at a rate; a run's speed scatters.
pub fn sampled(
    seed: u64,
    hz: f64,
    run_spread: f64,
    functions: &[(&str, [f64; RANKS as usize])],
) -> SampledCode {
    let mut noise = Noise::new(seed);
    let period = 1e9 / hz;
    let sums = [0, 1, 2, 3].map(|rank| functions.iter().map(|(_, of)| of[rank]).sum::<f64>());
    let row = |(at, (name, seconds)): (usize, &(&str, [f64; RANKS as usize]))| {
        let speed = 1.0 + run_spread * noise.normal();
        let count = |(seconds, sum): (&f64, f64)| {
            let mean = seconds * speed * hz;
            let deviation = (mean * (1.0 - seconds / sum)).sqrt();
            ((mean + deviation * noise.normal()).round().max(0.0) * period) as i64
        };
        let what = Sampled {
            function: Some((*name).to_owned()),
            module: "made".to_owned(),
            file: Some("made.c".to_owned()),
            line: Some(10 + at as u32),
            ..Sampled::default()
        };
        SampledRow { what, by_ranks: seconds.iter().zip(sums).map(count).collect() }
    };
    let rows = functions.iter().enumerate().map(row).collect();
    SampledCode { period_ns: period as i64, at_ticks: false, ranks: RANKS, rows }
}

/// The times of the ranks of a synthetic run.
struct Sums {
    elapsed: Vec<i64>,
    waits: Vec<i64>,
    figures: [[Vec<i64>; 2]; 2],
    computing: [[i64; RANKS as usize]; 2],
    waiting: BTreeMap<(u32, u32), i64>,
}

fn region(name: &str) -> Place {
    Place::Region(name.to_owned())
}

impl Sums {
    fn parts(&self) -> Vec<Part> {
        let plain = |kind, place, ns| Part {
            kind,
            place,
            state: None,
            delayed_by: None,
            ns,
            by_ranks: Vec::new(),
        };
        let computed = |at: usize, name: &str| Part {
            by_ranks: self.computing[at].to_vec(),
            ..plain(Kind::Computing, region(name), self.computing[at].iter().sum())
        };
        let mut parts = vec![computed(0, "smooth"), computed(1, "norm")];
        let mut for_rank: BTreeMap<u32, i64> = BTreeMap::new();
        for ((_, delayed_by), ns) in &self.waiting {
            *for_rank.entry(*delayed_by).or_default() += ns;
        }
        parts.extend(for_rank.into_iter().map(|(delayed_by, ns)| Part {
            state: Some("wait_at_nxn".to_owned()),
            delayed_by: Some(delayed_by),
            ..plain(Kind::Waiting, Place::Inside(1), ns)
        }));
        let transfer = TRANSFER * ITERATIONS as i64 * i64::from(RANKS);
        parts.push(plain(Kind::Transfer, Place::Inside(0), transfer));
        parts.push(plain(Kind::StartAndEnd, Place::None, START * i64::from(RANKS)));
        parts
    }

    fn iterations(&self) -> Iterations {
        let thin = |figures: &[i64]| {
            figures.chunks(2).map(|two| (two[0] + two[1]) / 2).collect::<Vec<_>>()
        };
        let series = |at: usize, name: &str| Series {
            place: region(name),
            mean: thin(&self.figures[at][0]),
            most: thin(&self.figures[at][1]),
        };
        let computing = (0..ITERATIONS).map(|at| self.figures[0][0][at] + self.figures[1][0][at]);
        Iterations {
            anchor: Place::Inside(0),
            count: ITERATIONS as u64,
            per_figure: 2,
            elapsed: thin(&self.elapsed),
            median: None,
            computing: thin(&computing.collect::<Vec<_>>()),
            waiting: thin(&self.waits),
            places: vec![series(0, "smooth"), series(1, "norm")],
        }
    }
}
