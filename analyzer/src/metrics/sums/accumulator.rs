//! Accumulates the calls and ticks of a stretch.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trace_format::functions::FIRST_FUNCTION;
use trace_format::meaning::{Class, Meaning};
use trace_format::reader::{RankFile, Totals};

use crate::analysis::segments::ComputeMode;
use crate::analysis::spans::Activity;

/// A function's calls on one rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::metrics) struct CallSums {
    /// Function number; 0 before its first call.
    pub function: u16,
    /// Calls that began in the selection.
    pub count: u64,
    /// Time of these calls; see `CallMetrics::time_s`.
    pub ticks: u64,
    /// Time in the function within the selection's stretches.
    pub inside_ticks: u64,
    /// Time of the longest of these calls.
    pub max_ticks: u64,
    /// Bytes of these calls.
    pub bytes: u64,
    /// Floating-point operations of these calls, for compute functions.
    pub flops: f64,
}

impl CallSums {
    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.ticks = self.ticks.saturating_add(other.ticks);
        self.inside_ticks = self.inside_ticks.saturating_add(other.inside_ticks);
        self.max_ticks = self.max_ticks.max(other.max_ticks);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.flops += other.flops;
    }
}

/// Polls that found nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::metrics) struct PollSums {
    pub calls: u64,
    /// Runs that they were merged into.
    pub runs: u64,
    /// Ticks inside them.
    pub ticks: u64,
}

/// More operations than a call can perform: an exaflop machine does 10²³ in a day.
const MAX_FLOPS: f64 = 1e24;

/// One call, or one run of polls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub function: u16,
    pub count: u64,
    /// The part of its length that counts.
    pub ticks: u64,
    /// Its time within the selection's stretches.
    pub inside_ticks: u64,
    pub bytes: u64,
    /// Operations of a compute function.
    pub flops: Option<f64>,
    /// Class of the error that it returned; 0 for none.
    pub error: u32,
    /// Whether it is a run of polls that found nothing.
    pub polls: bool,
}

/// A thread's ticks in a selection.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ActivityTicks {
    pub useful: u64,
    pub mpi: u64,
    pub tool: u64,
    /// Remaining ticks that are not useful.
    pub other: u64,
}

/// Sums of the calls of all threads, and of the time of the current thread.
#[derive(Debug)]
pub(super) struct Accumulator {
    /// By function number.
    calls: Vec<CallSums>,
    /// Indices of the functions that were called.
    called: Vec<u16>,
    pub polls: PollSums,
    pub flops: Option<f64>,
    pub impossible_flops: u64,
    pub failed: BTreeMap<(u16, u32), u64>,
    /// Calls of the current thread.
    pub thread_calls: u64,
    /// Its ticks by activity, outside and inside regions.
    pub ticks: [[u64; 2]; Activity::COUNT],
}

impl Accumulator {
    /// For a file with this many functions.
    pub fn new(functions: usize) -> Self {
        Self {
            calls: vec![CallSums::default(); functions],
            called: Vec::new(),
            polls: PollSums::default(),
            flops: None,
            impossible_flops: 0,
            failed: BTreeMap::new(),
            thread_calls: 0,
            ticks: Default::default(),
        }
    }

    #[inline]
    fn of_function(&mut self, function: u16) -> Option<&mut CallSums> {
        let index = function.checked_sub(FIRST_FUNCTION)?;
        let sums = self.calls.get_mut(usize::from(index))?;
        if sums.function == 0 {
            sums.function = function;
            self.called.push(index);
        }
        Some(sums)
    }

    /// Adds a plain call that lies entirely in the stretch, and the program's own time before it.
    #[inline]
    pub fn add_plain(
        &mut self,
        (function, ticks, bytes): (u16, u64, u64),
        activity: Activity,
        (own_ticks, in_region): (u64, bool),
    ) {
        self.ticks[Activity::Own as usize][usize::from(in_region)] += own_ticks;
        self.ticks[activity as usize][usize::from(in_region)] += ticks;
        let Some(sums) = self.of_function(function) else { return };
        sums.count += 1;
        sums.ticks += ticks;
        sums.inside_ticks += ticks;
        sums.max_ticks = sums.max_ticks.max(ticks);
        sums.bytes = sums.bytes.saturating_add(bytes);
        self.thread_calls += 1;
    }

    /// Adds a call that counts in the selection.
    pub fn add_call(&mut self, call: &Call) {
        self.add_inside(call.function, call.inside_ticks);
        let Some(sums) = self.of_function(call.function) else { return };
        sums.count = sums.count.saturating_add(call.count);
        sums.ticks = sums.ticks.saturating_add(call.ticks);
        // For a run of polls only the mean is known.
        let mean_ticks = if call.count > 1 { call.ticks / call.count } else { call.ticks };
        sums.max_ticks = sums.max_ticks.max(mean_ticks);
        sums.bytes = sums.bytes.saturating_add(call.bytes);
        self.thread_calls = self.thread_calls.saturating_add(call.count);
        if call.error != 0 {
            *self.failed.entry((call.function, call.error)).or_default() += 1;
        }
        if let Some(flops) = call.flops {
            let flops = self.add_flops(flops);
            if let Some(sums) = self.of_function(call.function) {
                sums.flops += flops;
            }
        }
        if call.polls {
            self.polls.calls = self.polls.calls.saturating_add(call.count);
            self.polls.runs += 1;
            self.polls.ticks = self.polls.ticks.saturating_add(call.ticks);
        }
    }

    /// Adds time inside a call that began outside the selection.
    pub fn add_inside(&mut self, function: u16, ticks: u64) {
        if let Some(sums) = self.of_function(function) {
            sums.inside_ticks = sums.inside_ticks.saturating_add(ticks);
        }
    }

    /// Counts a call's operations and returns them, or 0 if they are impossible.
    fn add_flops(&mut self, flops: f64) -> f64 {
        if (0.0..MAX_FLOPS).contains(&flops) {
            *self.flops.get_or_insert(0.0) += flops;
            flops
        } else {
            self.impossible_flops += 1;
            0.0
        }
    }

    /// Adds calls that were kept only as totals.
    pub fn add_totals(&mut self, totals: &Totals, file: &RankFile) {
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        for entry in &totals.calls {
            let Some(Meaning { class, .. }) = file.meaning(entry.function) else { continue };
            let Some(sums) = self.of_function(entry.function) else { continue };
            add(&mut sums.count, entry.count);
            add(&mut sums.ticks, entry.ticks);
            // MPI_Init and MPI_Finalize lie outside τ.
            if *class != Class::Lifetime {
                add(&mut sums.inside_ticks, entry.ticks);
            }
            add(&mut sums.bytes, entry.sent);
            sums.max_ticks = sums.max_ticks.max(entry.max_ticks);
            if *class == Class::Compute {
                let flops = self.add_flops(f64::from_bits(entry.work));
                if let Some(sums) = self.of_function(entry.function) {
                    sums.flops += flops;
                }
            }
        }
        for (function, error, count) in &totals.failed {
            add(self.failed.entry((*function, *error)).or_default(), *count);
        }
        let header = &totals.header;
        add(&mut self.polls.calls, header.polls);
        add(&mut self.polls.runs, header.poll_runs);
        add(&mut self.polls.ticks, header.poll_ticks);
        add(&mut self.thread_calls, header.calls);
    }

    /// Adds the sums of another accumulator.
    pub fn add(&mut self, other: &Self) {
        for index in &other.called {
            let theirs = &other.calls[usize::from(*index)];
            if let Some(ours) = self.of_function(theirs.function) {
                ours.add(theirs);
            }
        }
        self.polls.calls = self.polls.calls.saturating_add(other.polls.calls);
        self.polls.runs += other.polls.runs;
        self.polls.ticks = self.polls.ticks.saturating_add(other.polls.ticks);
        if let Some(flops) = other.flops {
            *self.flops.get_or_insert(0.0) += flops;
        }
        self.impossible_flops += other.impossible_flops;
        for (failed, count) in &other.failed {
            *self.failed.entry(*failed).or_default() += count;
        }
        self.thread_calls = self.thread_calls.saturating_add(other.thread_calls);
        let theirs = other.ticks.iter().flatten();
        self.ticks.iter_mut().flatten().zip(theirs).for_each(|(ours, ticks)| *ours += ticks);
    }

    /// Resets all sums.
    pub fn clear(&mut self) {
        for index in self.called.drain(..) {
            self.calls[usize::from(index)] = CallSums::default();
        }
        let (calls, called) = (std::mem::take(&mut self.calls), std::mem::take(&mut self.called));
        *self = Self { calls, called, ..Self::new(0) };
    }

    /// Calls and time of the current thread, which has ended; the next one starts from 0.
    pub fn end_thread(&mut self, mode: ComputeMode) -> (u64, ActivityTicks) {
        let mut sums = ActivityTicks::default();
        for activity in Activity::ALL {
            for in_region in [false, true] {
                let ticks = self.ticks[activity as usize][usize::from(in_region)];
                *match activity {
                    _ if mode.is_useful(activity, in_region) => &mut sums.useful,
                    Activity::Mpi => &mut sums.mpi,
                    Activity::Tool => &mut sums.tool,
                    Activity::Compute | Activity::Own => &mut sums.other,
                } += ticks;
            }
        }
        self.ticks = Default::default();
        (std::mem::take(&mut self.thread_calls), sums)
    }

    /// Functions that were called, ordered by number.
    pub fn calls(&self) -> Vec<CallSums> {
        let made = |sums: &&CallSums| sums.count > 0 || sums.inside_ticks > 0;
        // Copied: collected in place, the few would keep the memory of all functions.
        self.calls.iter().filter(made).copied().collect()
    }
}
