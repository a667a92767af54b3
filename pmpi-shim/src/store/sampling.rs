//! Which threads are sampled, and how: begin, upkeep and end.
//!
//! A thread that calls MPI is sampled from its first window on. Threads that do not are found now
//! and then, when a call ends or a window is full: each that has computed since is sampled from there
//! on. Nothing here runs while nothing is sampled. What the handler reads is kept up to date also
//! while it only answers who asks for stacks.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use trace_format::header::{Sampling, SamplingSource};
use trace_format::samples::NO_THREAD;

use crate::host::counter;
use crate::host::forks::wait_until;
use crate::host::lock::Lock;
use crate::host::sample_signal;
use crate::host::sample_timer::{Target, Timer, cpu_ns};
use crate::host::sampled_stack;
use crate::host::warn::warn;
use crate::state::thread_block::ThreadBlock;
use crate::store::interpreted;
use crate::store::outermost::within;
use crate::store::sample_area;
use crate::store::sampler::{self, Sampler};
use crate::store::site_table::look_at_modules;
use crate::store::stack_answers;
use crate::store::thread_records;

/// The most samples per second that a timer of the kernel's ticks gives.
const MOST_HZ_OF_TICKS: u32 = 99;
/// A thread that has computed for less is not sampled yet.
const LEAST_CPU_NS: u64 = 10_000_000;

/// How threads are sampled.
#[derive(Debug, Clone, Copy)]
struct How {
    source: SamplingSource,
    period_ns: u64,
}

/// The samplers of threads that have ended, and how threads are sampled; `None`: they are not.
struct Threads {
    how: Option<How>,
    free: Vec<&'static Sampler>,
}

static THREADS: Lock<Threads> = Lock::new(Threads { how: None, free: Vec::new() });
/// Number of threads that could not be sampled.
static REFUSED: AtomicU64 = AtomicU64::new(0);

fn handler() -> usize {
    sampler::entry as *const () as usize
}

/// Begins to sample the calling thread, the first, and describes the outcome. Called when recording
/// begins.
pub fn begin(rate_hz: u32) -> Sampling {
    let mut sampling =
        Sampling { rate_hz, source: SamplingSource::TaskClock, unavailable: String::new() };
    if let Err(reason) = try_begin(&mut sampling) {
        sampling.unavailable = reason;
    }
    sampling
}

fn try_begin(sampling: &mut Sampling) -> Result<(), String> {
    look_at_modules();
    sample_area::prepare();
    let signal = sample_signal::take(handler());
    signal.ok_or("the program has handlers for the signals SIGSTKFLT and SIGPROF")?;
    sampled_stack::renew(readings());
    sampler::activate(true);
    let os_id = this_thread();
    let mut threads = THREADS.lock();
    threads.how = Some(How::new(sampling));
    let begun = threads.begin((0, os_id)).or_else(|_| {
        // What the task clock is refused for differs between systems.
        sampling.source = SamplingSource::CpuTimer;
        sampling.rate_hz = sampling.rate_hz.min(MOST_HZ_OF_TICKS);
        threads.how = Some(How::new(sampling));
        threads.begin((0, os_id))
    });
    begun.inspect_err(|_| {
        threads.how = None;
        sampler::activate(false);
    })
}

/// Has threads answer whoever asks for their stacks, if the program leaves a signal for that.
pub fn answer_with_stacks() -> Result<(), String> {
    look_at_modules();
    let Some(signal) = sample_signal::take(handler()) else { return Ok(()) };
    stack_answers::open(signal)?;
    sampled_stack::renew(readings());
    Ok(())
}

impl How {
    fn new(sampling: &Sampling) -> Self {
        let period_ns = 1_000_000_000 / u64::from(sampling.rate_hz.max(1));
        Self { source: sampling.source, period_ns }
    }
}

impl Threads {
    /// Begins to sample a thread: its number or [`NO_THREAD`], and the system's id.
    fn begin(&mut self, thread: (u32, u32)) -> Result<(), String> {
        let sampler = self.free.pop().map_or_else(Sampler::make, Ok)?;
        self.begin_with(sampler, thread)
    }

    fn begin_with(
        &mut self,
        sampler: &'static Sampler,
        (number, os_id): (u32, u32),
    ) -> Result<(), String> {
        let How { source, period_ns } = self.how.ok_or("nothing is sampled")?;
        sampler.assign(os_id);
        sampler.area.begin((number, os_id), counter::now());
        let target = Target { thread: os_id, signal: sample_signal::taken(), period_ns };
        match Timer::start(source, target) {
            Ok(timer) => {
                sampler.timer.set(Some(timer));
                Ok(())
            }
            Err(error) => {
                self.release(sampler);
                Err(format!("no timer: {}", std::io::Error::from_raw_os_error(error)))
            }
        }
    }

    /// Ends sampling of a thread that has ended, or will not be interrupted any more.
    fn release(&mut self, sampler: &'static Sampler) {
        if let Some(timer) = sampler.timer.take() {
            timer.stop();
        }
        sampler.area.end(counter::now());
        sampler.area.vacate();
        sampler.thread.store(0, Relaxed);
        self.free.push(sampler);
    }
}

fn readings() -> impl Iterator<Item = &'static sampled_stack::Reading> + Clone {
    sampler::all().map(|sampler| &sampler.reading).chain(stack_answers::reading())
}

/// Whether a signal may run the handler.
fn has_handler() -> bool {
    sampler::is_active() || stack_answers::is_open()
}

fn this_thread() -> u32 {
    // SAFETY: the system call has no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Begins to sample the calling thread, which has its first window, unless it is sampled already.
pub fn begin_thread((number, os_id): (u32, u32)) {
    if !sampler::is_active() {
        return;
    }
    let mut threads = THREADS.lock();
    match sampler::of_thread(os_id) {
        Some(sampler) => sampler.area.set_thread(number),
        None if threads.begin((number, os_id)).is_err() => _ = REFUSED.fetch_add(1, Relaxed),
        None => {}
    }
}

/// Whether threads are sampled.
#[inline]
pub fn is_active() -> bool {
    sampler::is_active()
}

/// A sampler for a thread that is being made. `None` if it cannot be sampled.
pub fn prepare_thread() -> Option<&'static Sampler> {
    let mut threads = THREADS.lock();
    let sampler = threads.free.pop().map_or_else(Sampler::make, Ok);
    sampler.inspect_err(|_| _ = REFUSED.fetch_add(1, Relaxed)).ok()
}

/// Takes a sampler back whose thread was not made.
pub fn discard(sampler: &'static Sampler) {
    THREADS.lock().free.push(sampler);
}

/// Begins to sample the calling thread, which has just been made, with a sampler of
/// [`prepare_thread`]. Needs little stack.
pub fn begin_new_thread(sampler: &'static Sampler) {
    let mut threads = THREADS.lock();
    if !sampler::is_active() {
        return threads.free.push(sampler);
    }
    if threads.begin_with(sampler, (NO_THREAD, this_thread())).is_err() {
        REFUSED.fetch_add(1, Relaxed);
    }
}

/// Ends sampling of the calling thread, which is ending.
pub fn end_thread(block: &ThreadBlock) {
    if !sampler::is_active() {
        return;
    }
    let mut threads = THREADS.lock();
    if let Some(sampler) = sampler::of_thread(this_thread()) {
        sampler.read_cpu();
        threads.release(sampler);
    }
    block.sampler.set(std::ptr::null_mut());
}

/// Brings up to date what handlers read, and empties what they have filled.
pub fn look() {
    if has_handler() {
        look_at_modules();
        sampled_stack::renew(readings());
        sampler::all().for_each(|sampler| sampler.area.append_full());
        interpreted::define_new(true);
    }
}

/// Like [`look`]. Also finds threads that have begun to compute or ended, and whether the program has
/// taken the signal.
pub fn look_at_threads() {
    look();
    if !has_handler() {
        return;
    }
    if !sample_signal::is_kept(handler()) {
        return give_up("the program uses their signal itself");
    }
    if !sampler::is_active() {
        return;
    }
    let Some(mut threads) = THREADS.try_lock() else { return };
    let present = present_threads();
    for sampler in sampler::all() {
        let thread = sampler.thread.load(Relaxed);
        if thread != 0 && !present.contains(&thread) {
            threads.release(sampler);
        }
    }
    let numbers = thread_records::os_ids();
    for os_id in present {
        if sampler::of_thread(os_id).is_none() && cpu_ns(os_id) >= LEAST_CPU_NS {
            let number = numbers.iter().position(|id| *id == os_id);
            let number = number.map_or(NO_THREAD, |number| number as u32);
            if threads.begin((number, os_id)).is_err() {
                REFUSED.fetch_add(1, Relaxed);
            }
        }
    }
}

/// Ids of the process's threads.
fn present_threads() -> Vec<u32> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Ends sampling for good, because of something that the program does, and says so.
pub fn give_up(reason: &str) {
    let was_active = sampler::is_active();
    end();
    sample_signal::give_back(handler());
    if was_active {
        warn(&format!("samples end here; the program continues: {reason}"));
    }
}

/// Samples the calling thread again, after [`end`], and the others when they are found.
pub fn resume() {
    if sample_signal::taken() == 0 {
        return;
    }
    if stack_answers::has_area() {
        let _ = stack_answers::open(sample_signal::taken());
    }
    let mut threads = THREADS.lock();
    if threads.how.is_none() {
        return sampled_stack::renew(readings());
    }
    for sampler in sampler::all().filter(|sampler| sampler.thread.load(Relaxed) != 0) {
        threads.release(sampler);
    }
    sampler::activate(true);
    sampled_stack::renew(readings());
    let _ = threads.begin((0, this_thread()));
}

/// Ends sampling of all threads, and answers. Handlers that are at work have finished then.
pub fn end() {
    let answered = stack_answers::close();
    if !sampler::is_active() {
        if answered {
            sample_signal::discard_pending(handler());
        }
        return;
    }
    let _threads = THREADS.lock();
    for sampler in sampler::all().filter(|sampler| sampler.thread.load(Relaxed) != 0) {
        if let Some(timer) = sampler.timer.take() {
            timer.stop();
        }
    }
    sampler::activate(false);
    wait_until(|| sampler::all().all(|sampler| !sampler.is_at_work()));
    sample_signal::discard_pending(handler());
    for sampler in sampler::all().filter(|sampler| sampler.thread.load(Relaxed) != 0) {
        sampler.read_cpu();
        sampler.area.end(counter::now());
        sampler.area.append_full();
    }
    interpreted::define_new(true);
    let refused = REFUSED.swap(0, Relaxed);
    if refused > 0 {
        warn(&format!("{refused} threads could not be sampled"));
    }
}

/// Whether samples or stacks lie in the file, where nothing else may take their place.
pub fn has_areas() -> bool {
    sampler::all().next().is_some() || stack_answers::has_area()
}

/// Unloads modules, perhaps, while no handler reads their tables.
pub fn unloading<R>(block: &ThreadBlock, unload: impl FnOnce() -> R) -> R {
    if !has_handler() {
        return unload();
    }
    within(block, || sampled_stack::withdraw(readings()));
    let result = unload();
    within(block, || {
        sampled_stack::allow();
        let _ = std::panic::catch_unwind(look);
    });
    result
}

/// In a forked process, where nothing is sampled.
pub fn leave_to_parent(block: &ThreadBlock) {
    sampler::activate(false);
    stack_answers::leave_to_parent();
    sample_signal::give_back(handler());
    block.sampler.set(std::ptr::null_mut());
}
