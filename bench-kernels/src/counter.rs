//! The cheapest counter of the processor, and how long one tick of it is.

/// What [`read`] reads, as reports name it.
#[cfg(target_arch = "x86_64")]
pub const NAME: &str = "tsc";
/// What [`read`] reads, as reports name it.
#[cfg(target_arch = "aarch64")]
pub const NAME: &str = "cntvct_el0";
/// What [`read`] reads, as reports name it.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub const NAME: &str = "clock_monotonic_raw";

/// The counter now, in ticks. Not serialising: that is what a recorder's stamp costs too.
#[inline(always)]
pub fn read() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: RDTSC exists on every x86-64 processor and touches no memory; the system
        // may forbid it to user code (PR_SET_TSC), which only this process could have asked for.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: Linux lets user code read CNTVCT_EL0; the instruction touches no memory. It
        // is not marked `pure`, so that two reads stay two reads.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack));
        }
        ticks
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        monotonic_raw_ns()
    }
}

/// CLOCK_MONOTONIC_RAW: the clock that nothing steers, in ns.
fn monotonic_raw_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: ours: `now` is a valid timespec for the whole call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// One moment on both the counter and the clock.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    ticks: u64,
    clock_ns: u64,
}

impl Moment {
    /// Now: of several readings the one whose counter reads lie closest around the clock's.
    pub fn now() -> Self {
        (0..32)
            .map(|_| {
                let before = read();
                let clock_ns = monotonic_raw_ns();
                let width = read().wrapping_sub(before);
                (width, Self { ticks: before.wrapping_add(width / 2), clock_ns })
            })
            .min_by_key(|(width, _)| *width)
            .map(|(_, moment)| moment)
            .expect("the range is not empty")
    }

    /// Length of one tick in ns, from `self` to now; good to about 100 ns over the time between.
    pub fn ns_per_tick(self) -> f64 {
        let now = Self::now();
        let clock_ns = now.clock_ns.wrapping_sub(self.clock_ns);
        clock_ns as f64 / now.ticks.wrapping_sub(self.ticks).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_has_a_plausible_length() {
        let start = Moment::now();
        while monotonic_raw_ns() < start.clock_ns + 2_000_000 {}
        let ns_per_tick = start.ns_per_tick();
        // 1 MHz (the slowest generic timers) to 10 GHz.
        assert!((0.1..=1000.0).contains(&ns_per_tick), "{ns_per_tick} ns");
    }
}
