//! Ranks whose code was sampled while they ran functions of the C library, which every test program has loaded.

use std::fs;
use std::sync::LazyLock;

use fastrand::Rng;
use object::{Object, ObjectSymbol, SymbolKind};
use trace_format::header::{Definition, Module, Sampling, SamplingSource};
use trace_format::reader::{Sample, SampledThread};

use crate::synthetic_messages::on_world;
use crate::synthetic_trace::SyntheticRank;

/// Samples per second.
pub const RATE_HZ: u32 = 99;
/// Number of functions that ranks run; the last one calls the others.
pub const FUNCTIONS: usize = 4;
const BEGIN: u64 = 1_000_000;
const TRANSFER: u64 = 10_000;

/// The C library.
pub struct Library {
    pub path: String,
    pub build_id: String,
    /// Addresses of functions.
    pub functions: [u64; FUNCTIONS],
}

/// The C library of this program; `None` if it is not a shared one.
#[allow(dead_code, reason = "not every test that shares this file uses it")]
pub static LIBRARY: LazyLock<Option<Library>> = LazyLock::new(|| {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let mut paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let path = paths.find(|path| path.contains("/libc.so.") || path.contains("/libc-"))?;
    let data = fs::read(path).ok()?;
    let file = object::File::parse(&*data).ok()?;
    let id = file.build_id().ok()??;
    let build_id = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let is_function =
        |of: &object::Symbol| of.kind() == SymbolKind::Text && of.size() >= 64 && of.address() > 0;
    let mut all: Vec<u64> =
        file.dynamic_symbols().filter(is_function).map(|of| of.address()).collect();
    all.sort_unstable();
    // Functions with several names would be given any of them.
    let alone = all.chunk_by(|a, b| a == b).filter(|same| same.len() == 1).map(|same| same[0]);
    let functions: Vec<u64> = alone.step_by(7).take(FUNCTIONS).collect();
    Some(Library { path: path.to_owned(), build_id, functions: functions.try_into().ok()? })
});

/// Ranks that compute and meet again and again; `work` gives for each rank and turn how many ns it is in each function,
/// one after the other.
pub fn sampled(library: &Library, seed: u64, work: &[Vec<[u64; FUNCTIONS]>]) -> Vec<SyntheticRank> {
    let turns = work.first().map_or(0, Vec::len);
    let mut met = vec![BEGIN];
    for turn in 0..turns {
        let longest = work.iter().map(|of_rank| of_rank[turn].iter().sum::<u64>()).max();
        met.push(met[turn] + longest.unwrap_or(0) + TRANSFER);
    }
    let (count, end) = (work.len() as u32, met[turns]);
    let mut random = Rng::with_seed(seed);
    let of_rank = |(rank, of_rank): (u32, &Vec<[u64; FUNCTIONS]>)| {
        let mut made = SyntheticRank::level_1(rank, count, end);
        let Library { path, build_id, functions } = library;
        let (path, build_id) = (path.clone(), build_id.clone());
        let (base, begin, end_of_code, ticks) = (0, 0, u64::MAX / 2, 0);
        let module = Module { path, identity: build_id, base, begin, end: end_of_code, ticks };
        made.definitions.push(Definition::Module(module));
        made.definitions.push(Definition::Sampling(Sampling {
            rate_hz: RATE_HZ,
            source: SamplingSource::TaskClock,
            unavailable: String::new(),
        }));
        let period = 1e9 / f64::from(RATE_HZ);
        let (mut cpu, mut next) = (0.0, random.f64() * period);
        let mut samples = Vec::new();
        for (begin, in_functions) in met.iter().zip(of_rank) {
            let mut at = *begin as f64;
            for (address, long) in functions.iter().zip(in_functions) {
                while next < cpu + *long as f64 {
                    let ticks = (at + next - cpu) as u64;
                    samples.push(Sample {
                        ticks,
                        address: address + 4,
                        path: Some(0),
                        complete: true,
                    });
                    next += period;
                }
                (cpu, at) = (cpu + *long as f64, at + *long as f64);
            }
        }
        for (turn, in_functions) in of_rank.iter().enumerate() {
            let entered = met[turn] + in_functions.iter().sum::<u64>();
            made.call_with("MPI_Allreduce", entered, met[turn + 1], on_world(0, 8, 8));
        }
        made.sampled.push(SampledThread {
            thread: Some(0),
            os_id: 1,
            begin: BEGIN,
            end: Some(end),
            cpu_ns: cpu as u64,
            delivered: samples.len() as u64,
            paths: vec![vec![functions[FUNCTIONS - 1] + 9]],
            samples,
            ..SampledThread::default()
        });
        made.finalize(end, end + 10);
        made
    };
    (0..).zip(work).map(of_rank).collect()
}
