//! Performance counters of processor and kernel (perf_event), if the user asks for them.
//!
//! `--counters` names the counters. The trace gets a definition of each (with the reason if it is
//! unavailable), and readings at the rank's begin and end and at region markers. MPI calls never
//! read a counter, and without `--counters` a marker tests one pointer.
//!
//! A counter covers the process: it is opened for every thread that exists after MPI_Init, and
//! threads made later inherit it. A reading takes two system calls per event and opened thread. It
//! allocates nothing and takes no lock of this process.

use std::ffi::{c_int, c_long, c_ulong};
use std::fs;
use std::sync::OnceLock;

use trace_format::counters::{
    self, CounterEvent, CounterRequest, FLOPS, MAX_COUNTERS, SCALED, UNREADABLE,
};
use trace_format::header::Counter;

use crate::host::descriptors::move_up;

/// Maximum number of descriptors for all counters, and the share of the process's limit that they
/// may use.
const MAX_DESCRIPTORS: usize = 512;
const SHARE_OF_LIMIT: usize = 4;

/// A counter that is being read.
pub struct Opened {
    /// Its number in the trace.
    pub number: u32,
    descriptors: Vec<Descriptor>,
}

/// One event of one thread and of the threads that it starts.
struct Descriptor {
    number: c_int,
    /// The kernel's id of the event. The program may close a descriptor and get its number for
    /// another file.
    id: u64,
    weight: u32,
}

static OPENED: OnceLock<Vec<Opened>> = OnceLock::new();

/// The counters being read. `None` if there are none.
#[inline(always)]
pub fn opened() -> Option<&'static [Opened]> {
    OPENED.get().map(Vec::as_slice)
}

/// Opens the counters and describes the outcome of each. Called once, after MPI_Init.
pub fn open(requests: &[CounterRequest]) -> Vec<Counter> {
    if requests.is_empty() {
        return Vec::new();
    }
    let threads = threads();
    let (mut all, mut described) = (Vec::new(), Vec::new());
    for (number, request) in (0..).zip(requests.iter().take(MAX_COUNTERS)) {
        let built_in = request.events.is_none();
        let mut counter = Counter {
            number,
            name: request.name.clone(),
            events: Vec::new(),
            built_in,
            threads: 0,
            missed_threads: 0,
            unavailable: String::new(),
        };
        let taken: usize = all.iter().map(|opened: &Opened| opened.descriptors.len()).sum();
        match events_of(request).and_then(|events| {
            counter.events.clone_from(&events);
            open_events(&events, &threads, taken)
        }) {
            Ok((descriptors, missed)) => {
                counter.threads = (threads.len() - missed) as u32;
                counter.missed_threads = missed as u32;
                all.push(Opened { number, descriptors });
            }
            Err(why) => counter.unavailable = why,
        }
        described.push(counter);
    }
    if !all.is_empty() {
        let _ = OPENED.set(all);
    }
    described
}

fn events_of(request: &CounterRequest) -> Result<Vec<CounterEvent>, String> {
    match &request.events {
        Some(events) => Ok(events.clone()),
        None if request.name == FLOPS => counters::flops_of(counters::processor().as_ref()),
        None => Err("no built-in counter has this name".into()),
    }
}

/// Ids of the process's threads, beginning with the calling one.
fn threads() -> Vec<c_int> {
    // SAFETY: a system call without arguments.
    let own = unsafe { libc::syscall(libc::SYS_gettid) } as c_int;
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let others = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<c_int>().ok());
    std::iter::once(own).chain(others.filter(|id| *id != own)).collect()
}

/// Opens events for threads. Returns how many threads, other than the calling one, could not be
/// counted.
fn open_events(
    events: &[CounterEvent],
    threads: &[c_int],
    taken: usize,
) -> Result<(Vec<Descriptor>, usize), String> {
    let wanted = events.len() * threads.len();
    if taken + wanted > most_descriptors() {
        return Err(format!(
            "{} threads existed at MPI_Init; {} event(s) for each would need too many open files",
            threads.len(),
            events.len()
        ));
    }
    let mut descriptors = Vec::with_capacity(wanted);
    let mut missed = 0;
    for (index, thread) in threads.iter().enumerate() {
        let before = descriptors.len();
        for event in events {
            match open_event(event, *thread) {
                Ok(descriptor) => descriptors.push(descriptor),
                Err(error) if index == 0 => {
                    close_all(&descriptors);
                    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
                    return Err(counters::refusal(error, paranoid.as_deref().map(str::trim)));
                }
                Err(_) => {
                    // Keep all events of a thread or none: a partial sum would be wrong.
                    close_all(&descriptors[before..]);
                    descriptors.truncate(before);
                    missed += 1;
                    break;
                }
            }
        }
    }
    Ok((descriptors, missed))
}

fn most_descriptors() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is ours to write.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
    let allowed = if known { limit.rlim_cur } else { libc::rlim_t::MAX };
    usize::try_from(allowed).unwrap_or(usize::MAX).min(MAX_DESCRIPTORS * SHARE_OF_LIMIT)
        / SHARE_OF_LIMIT
}

/// Opens an event for a thread. The error is errno.
fn open_event(event: &CounterEvent, thread: c_int) -> Result<Descriptor, c_int> {
    let mut opened = perf_event_open(event, thread, true);
    if opened == Err(libc::EINVAL) {
        // Linux before 5.13.
        opened = perf_event_open(event, thread, false);
    }
    let number = move_up(opened?);
    let Some(id) = id_of(number) else {
        let error = last_error();
        // SAFETY: the descriptor is ours.
        unsafe { libc::close(number) };
        return Err(error);
    };
    Ok(Descriptor { number, id, weight: event.weight })
}

fn perf_event_open(
    event: &CounterEvent,
    thread: c_int,
    threads_only: bool,
) -> Result<c_int, c_int> {
    const FD_CLOEXEC: c_ulong = 1 << 3;
    let (any_core, no_group): (c_int, c_int) = (-1, -1);
    let attribute = counters::attribute(event, threads_only);
    // SAFETY: the attribute states its own size, and the kernel only reads it.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attribute.as_ptr(),
            thread,
            any_core,
            no_group,
            FD_CLOEXEC,
        )
    };
    if opened < 0 { Err(last_error()) } else { Ok(opened as c_int) }
}

fn last_error() -> c_int {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() }
}

fn close_all(descriptors: &[Descriptor]) {
    for descriptor in descriptors {
        // SAFETY: these descriptors are ours, opened a moment ago and passed to nobody.
        unsafe { libc::close(descriptor.number) };
    }
}

/// The kernel's id of an event. `None` if the descriptor is not an event's.
#[inline]
pub fn id_of(descriptor: c_int) -> Option<u64> {
    /// `PERF_EVENT_IOC_ID` of linux/perf_event.h on x86-64 and AArch64.
    const EVENT_ID: c_long = 0x8008_2407;
    let mut id = 0u64;
    // SAFETY: for an event the kernel writes 8 bytes; other files reject the request.
    let asked = unsafe { libc::syscall(libc::SYS_ioctl, descriptor, EVENT_ID, &raw mut id) };
    (asked == 0).then_some(id)
}

impl Descriptor {
    /// Present count, and whether it is scaled. `None` if there is none.
    #[inline]
    fn read(&self) -> Option<(u64, bool)> {
        if id_of(self.number) != Some(self.id) {
            return None;
        }
        let mut words = [0u64; 3];
        let bytes = size_of_val(&words);
        // SAFETY: writes into the array. The descriptor is our event's, as just checked. (A plain
        // system call, because read() of the C library may be a cancellation point.)
        let read = unsafe { libc::syscall(libc::SYS_read, self.number, words.as_mut_ptr(), bytes) };
        let [count, enabled, running] = words;
        match () {
            () if read != bytes as c_long => None,
            () if running >= enabled => Some((count, false)),
            () if running == 0 => None,
            () => {
                let scaled = u128::from(count) * u128::from(enabled) / u128::from(running);
                Some((u64::try_from(scaled).unwrap_or(u64::MAX), true))
            }
        }
    }
}

impl Opened {
    /// Value since the counter was opened, and its state.
    #[inline]
    pub fn read(&self) -> (u64, u32) {
        let (mut value, mut state) = (0u64, 0);
        for descriptor in &self.descriptors {
            match descriptor.read() {
                Some((count, scaled)) => {
                    value =
                        value.saturating_add(count.saturating_mul(u64::from(descriptor.weight)));
                    state |= if scaled { SCALED } else { 0 };
                }
                None => state |= UNREADABLE,
            }
        }
        (value, state)
    }
}

/// Present values of all counters.
pub fn read() -> Vec<(u32, u64, u32)> {
    let read = |one: &Opened| {
        let (value, state) = one.read();
        (one.number, value, state)
    };
    opened().unwrap_or_default().iter().map(read).collect()
}
