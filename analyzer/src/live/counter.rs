//! The counter that the recorder reads, read by the command.

/// Its usual name.
#[cfg(target_arch = "x86_64")]
pub const NAME: &str = "rdtsc";
#[cfg(target_arch = "aarch64")]
pub const NAME: &str = "cntvct_el0";
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub const NAME: &str = "CLOCK_MONOTONIC_RAW";

use std::time::Duration;

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
    time_by(ClockId::MonotonicRaw).as_nanos() as u64
}

/// Time by a clock of the kernel that is never before zero.
pub fn time_by(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
