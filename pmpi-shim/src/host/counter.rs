//! The counter that event times are read from, and how it relates to the system's clocks.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use trace_format::counter_kind::CounterKind;
use trace_format::header::{ClockAnchor, SystemClock};

use crate::host::settings::TestClock;
use crate::state::thread_block::{ThreadBlock, thread_block};

static KIND: AtomicU8 = AtomicU8::new(CounterKind::MonotonicRaw as u8);
static INVARIANT: AtomicBool = AtomicBool::new(false);
/// Whether `read_slow` must be used: there is no invariant counter, or a test skews the clock.
static SLOW: AtomicBool = AtomicBool::new(false);
static SKEW_BASE: AtomicU64 = AtomicU64::new(0);
static SKEW_OFFSET: AtomicU64 = AtomicU64::new(0);
static SKEW_RATE: AtomicU64 = AtomicU64::new(0);
/// Counter and CLOCK_MONOTONIC_RAW at the first anchor; 0 before it.
static FIRST_TICKS: AtomicU64 = AtomicU64::new(0);
static FIRST_RAW_NS: AtomicU64 = AtomicU64::new(0);

/// The hardware counter.
#[inline(always)]
fn hardware() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction. A process may be forbidden to use it only by
    // prctl(PR_SET_TSC), which then makes the C library's own clock fatal, too.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: Linux lets user code read the virtual counter.
        unsafe {
            std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
        }
        ticks
    }
}

/// Reads the counter on the path of a call.
#[inline(always)]
pub fn read(block: &ThreadBlock) -> u64 {
    if block.counter_slow.get() == 0 { hardware() } else { read_slow() }
}

/// Reads the counter outside the path of a call.
pub fn now() -> u64 {
    read(thread_block())
}

/// Reads the counter on any thread: the block of one without a window does not say how.
#[inline(always)]
pub fn anywhere() -> u64 {
    if SLOW.load(Relaxed) { read_slow() } else { hardware() }
}

/// Reads a counter other than the plain hardware counter.
#[cold]
#[inline(never)]
pub fn read_slow() -> u64 {
    let ticks = match CounterKind::from_number(KIND.load(Relaxed)) {
        Some(CounterKind::MonotonicRaw) | None => clock_ns(libc::CLOCK_MONOTONIC_RAW),
        Some(_) => hardware(),
    };
    let rate = f64::from_bits(SKEW_RATE.load(Relaxed));
    let since = ticks.wrapping_sub(SKEW_BASE.load(Relaxed)) as i64;
    let drift = (since as f64 * rate) as i64;
    ticks.wrapping_add(SKEW_OFFSET.load(Relaxed)).wrapping_add(drift as u64)
}

/// Chooses the counter of this process. Called once, before anything is recorded.
pub fn choose(test_clock: Option<TestClock>) {
    let invariant = hardware_is_invariant();
    INVARIANT.store(invariant, Relaxed);
    let kind = match () {
        () if !invariant => CounterKind::MonotonicRaw,
        () if cfg!(target_arch = "x86_64") => CounterKind::Tsc,
        () => CounterKind::Cntvct,
    };
    KIND.store(kind as u8, Relaxed);
    if let Some(TestClock { offset_ns, ppm }) = test_clock {
        SKEW_BASE.store(
            if invariant { hardware() } else { clock_ns(libc::CLOCK_MONOTONIC_RAW) },
            Relaxed,
        );
        let per_ns = if invariant { ticks_per_ns() } else { 1.0 };
        SKEW_OFFSET.store((offset_ns * per_ns) as i64 as u64, Relaxed);
        SKEW_RATE.store((ppm * 1e-6).to_bits(), Relaxed);
    }
    SLOW.store(!invariant || test_clock.is_some(), Relaxed);
}

/// Whether a thread's block must use the slow reading.
pub fn is_slow() -> bool {
    SLOW.load(Relaxed)
}

/// The chosen counter.
pub fn kind() -> CounterKind {
    CounterKind::from_number(KIND.load(Relaxed)).unwrap_or(CounterKind::MonotonicRaw)
}

/// Whether the counter has a constant rate and is shared by the host's cores.
pub fn is_invariant() -> bool {
    INVARIANT.load(Relaxed)
}

#[cfg(target_arch = "x86_64")]
fn hardware_is_invariant() -> bool {
    cpuid(0x8000_0000).eax >= 0x8000_0007 && cpuid(0x8000_0007).edx & (1 << 8) != 0
}

/// What the processor answers to CPUID.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "safe to call in newer releases of Rust")]
pub fn cpuid(leaf: u32) -> std::arch::x86_64::CpuidResult {
    // SAFETY: every x86-64 processor has the instruction, and it touches no memory.
    unsafe { std::arch::x86_64::__cpuid(leaf) }
}

#[cfg(target_arch = "aarch64")]
fn hardware_is_invariant() -> bool {
    true
}

/// Nanoseconds of a system clock.
pub fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours to write.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds per tick, measured since the first anchor. Accurate enough for a bound.
pub fn ns_per_tick() -> f64 {
    let (ticks, raw_ns) = (FIRST_TICKS.load(Relaxed), FIRST_RAW_NS.load(Relaxed));
    let since = now().wrapping_sub(ticks);
    let since_ns = clock_ns(libc::CLOCK_MONOTONIC_RAW).wrapping_sub(raw_ns);
    since_ns as f64 / since.max(1) as f64
}

/// What the kernel says about its clock. `None` if the query is not allowed.
pub fn system_clock() -> Option<SystemClock> {
    // SAFETY: a zeroed timex requests no change and may be written over.
    let (state, kernel) = unsafe {
        let mut kernel: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&mut kernel), kernel)
    };
    (state >= 0).then(|| SystemClock {
        ticks: now(),
        synchronised: state != libc::TIME_ERROR && kernel.status & libc::STA_UNSYNC == 0,
        most_error_ns: (kernel.maxerror.max(0) as u64).saturating_mul(1000),
    })
}

/// A reading of the counter together with the system's clocks: the tightest of several.
pub fn anchor() -> ClockAnchor {
    let read_once = || {
        let before = now();
        let monotonic_raw_ns = clock_ns(libc::CLOCK_MONOTONIC_RAW);
        let realtime_ns = clock_ns(libc::CLOCK_REALTIME);
        let width_ticks = now().wrapping_sub(before);
        ClockAnchor {
            ticks: before.wrapping_add(width_ticks / 2),
            width_ticks,
            monotonic_raw_ns,
            realtime_ns,
        }
    };
    let mut best = read_once();
    for _ in 0..8 {
        let next = read_once();
        if next.width_ticks < best.width_ticks {
            best = next;
        }
    }
    if FIRST_RAW_NS.load(Relaxed) == 0 {
        FIRST_TICKS.store(best.ticks, Relaxed);
        FIRST_RAW_NS.store(best.monotonic_raw_ns, Relaxed);
    }
    best
}

/// The hardware counter's rate from a short measurement. Accurate enough for the test clock only.
fn ticks_per_ns() -> f64 {
    let (ticks, ns) = tight_pair();
    while clock_ns(libc::CLOCK_MONOTONIC_RAW) < ns + 2_000_000 {}
    let (later_ticks, later_ns) = tight_pair();
    (later_ticks - ticks) as f64 / (later_ns - ns) as f64
}

/// Hardware counter and clock at one moment: the tightest of several readings, since the thread may
/// be descheduled between the two.
fn tight_pair() -> (u64, u64) {
    let readings = (0..16).map(|_| {
        let before = hardware();
        let ns = clock_ns(libc::CLOCK_MONOTONIC_RAW);
        let width = hardware().wrapping_sub(before);
        (width, before + width / 2, ns)
    });
    readings.min().map_or((0, 0), |(_, ticks, ns)| (ticks, ns))
}
