//! The samples of a rank, each with the number of its stack: samples are far more than stacks, and only stacks are
//! resolved.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use trace_format::header::{Module, SamplingSource};
use trace_format::reader::{RankFile, SampledThread};

use super::modules::modules;

/// In place of a path: the stack could not be read.
pub(crate) const NO_PATH: u32 = u32::MAX;

/// Where code was when it was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Stack {
    /// Address of the instruction.
    pub address: u64,
    /// Number of its callers among the rank's paths, or [`NO_PATH`].
    pub path: u32,
    /// Whether the callers reach to the begin of the thread.
    pub is_complete: bool,
    /// How many modules had replaced others by then.
    pub replaced: u32,
}

/// The samples of a rank.
#[derive(Debug, Default)]
pub(crate) struct RankSamples {
    /// Return addresses, innermost first.
    pub paths: Vec<Vec<u64>>,
    /// By number, in the order in which they first occur.
    pub stacks: Vec<Stack>,
    pub threads: Vec<ThreadSamples>,
}

/// The samples of a thread.
#[derive(Debug)]
pub(crate) struct ThreadSamples {
    /// Its number in the rank's file; `None` if it never called MPI.
    pub thread: Option<u32>,
    /// Ticks of the rank's counter, and the stack; by time.
    pub samples: Vec<(u64, u32)>,
    /// Seconds in the kernel or with signals masked, over the whole run; `None` if not known.
    pub kernel_s: Option<f64>,
    /// Samples that were lost for want of space, over the whole run.
    pub lost: u64,
}

impl RankSamples {
    /// The samples in a rank's file.
    pub(super) fn read(file: &RankFile) -> Self {
        let Some(sampling) = file.sampling().filter(|of| of.rate_hz > 0) else {
            return Self::default();
        };
        // Ticks of the thread's CPU clock come too late or too early, so they do not tell what is in the kernel.
        let counts_kernel = sampling.source == SamplingSource::TaskClock;
        let hz = counts_kernel.then_some(f64::from(sampling.rate_hz));
        let replacements = Replacements::new(&modules(&file.definitions));
        Self::new(file.sampled_threads(), &replacements, hz)
    }

    /// `hz` is the rate of a timer that also counts where no sample can be taken.
    pub fn new(threads: Vec<SampledThread>, replacements: &Replacements, hz: Option<f64>) -> Self {
        let mut all = Self::default();
        let mut numbers: FxHashMap<Stack, u32> = FxHashMap::default();
        for thread in threads {
            let first_path = all.paths.len() as u32;
            let samples = thread.samples.iter().map(|sample| {
                let stack = Stack {
                    address: sample.address,
                    path: sample.path.map_or(NO_PATH, |path| first_path + path),
                    is_complete: sample.complete,
                    replaced: replacements.before(sample.ticks),
                };
                let number = *numbers.entry(stack).or_insert_with(|| {
                    all.stacks.push(stack);
                    all.stacks.len() as u32 - 1
                });
                (sample.ticks, number)
            });
            let samples = samples.collect();
            let cpu_s = (thread.cpu_ns > 0).then_some(thread.cpu_ns as f64 * 1e-9);
            let kernel_s =
                cpu_s.zip(hz).map(|(cpu_s, hz)| (cpu_s - thread.delivered as f64 / hz).max(0.0));
            all.paths.extend(thread.paths);
            all.threads.push(ThreadSamples {
                thread: thread.thread,
                samples,
                kernel_s,
                lost: thread.lost,
            });
        }
        all
    }
}

/// Modules that were loaded where another one was or had been.
#[derive(Debug)]
pub(crate) struct Replacements {
    /// When such modules were loaded, ascending.
    ticks: Vec<u64>,
}

impl Replacements {
    pub fn new(all: &[&Module]) -> Self {
        let mut by_address: Vec<&Module> = all.to_vec();
        by_address.sort_unstable_by_key(|module| (module.begin, module.end));
        let is_same = |one: &Module, other: &Module| {
            (&one.path, &one.identity, one.base) == (&other.path, &other.identity, other.base)
        };
        let mut ticks = Vec::new();
        let mut largest: Option<&Module> = None;
        for module in by_address {
            if let Some(before) =
                largest.filter(|before| before.end > module.begin && !is_same(before, module))
            {
                ticks.extend([before.ticks, module.ticks]);
            }
            if largest.is_none_or(|before| before.end < module.end) {
                largest = Some(module);
            }
        }
        ticks.sort_unstable();
        ticks.dedup();
        Self { ticks }
    }

    /// How many of them had been loaded by then.
    fn before(&self, ticks: u64) -> u32 {
        self.ticks.partition_point(|loaded| *loaded <= ticks) as u32
    }

    /// The module that an address belonged to after so many of them. A module may be listed some time after it was
    /// loaded.
    pub fn module<'m>(
        &self,
        modules: &[&'m Module],
        address: u64,
        replaced: u32,
    ) -> Option<&'m Module> {
        let mut there =
            modules.iter().filter(|module| (module.begin..module.end).contains(&address));
        let first = there.next()?;
        let until = (replaced as usize).checked_sub(1).and_then(|last| self.ticks.get(last));
        let last = there.rfind(|module| until.is_some_and(|until| module.ticks <= *until));
        Some(last.unwrap_or(first))
    }
}
