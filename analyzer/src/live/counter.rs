//! The counter that the recorder reads, read by the command.

/// Its usual name.
#[cfg(target_arch = "x86_64")]
pub const NAME: &str = "rdtsc";
#[cfg(target_arch = "aarch64")]
pub const NAME: &str = "cntvct_el0";
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub const NAME: &str = "CLOCK_MONOTONIC_RAW";

use rustix::time::{ClockId, clock_gettime};
use trace_format::counter_kind::CounterKind;

/// Reads the hardware's counter.
#[inline]
pub fn read() -> u64 {
    let ticks: u64;
    // SAFETY: every x86-64 processor has the instruction, and Linux lets programs read AArch64's
    // virtual counter; neither touches memory.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    unsafe {
        #[cfg(target_arch = "x86_64")]
        {
            ticks = std::arch::x86_64::_rdtsc();
        }
        #[cfg(target_arch = "aarch64")]
        std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        ticks = clock_ns();
    }
    ticks
}

/// Reads the counter of a kind.
pub fn read_kind(kind: CounterKind) -> u64 {
    if kind == CounterKind::MonotonicRaw { clock_ns() } else { read() }
}

/// CLOCK_MONOTONIC_RAW in nanoseconds.
pub fn clock_ns() -> u64 {
    let time = clock_gettime(ClockId::MonotonicRaw);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
