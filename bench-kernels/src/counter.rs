//! The processor's cheapest counter, and the duration of one tick.

/// Name of the counter in reports.
#[cfg(target_arch = "x86_64")]
pub const NAME: &str = "tsc";
/// Name of the counter in reports.
#[cfg(target_arch = "aarch64")]
pub const NAME: &str = "cntvct_el0";
/// Name of the counter in reports.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub const NAME: &str = "clock_monotonic_raw";

/// The counter now, in ticks. The read is not serialising, because a recorder's is not, either.
#[inline(always)]
pub fn read() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: RDTSC exists on every x86-64 processor and touches no memory. The system may
        // forbid it to user code (PR_SET_TSC), but only this process could have requested that.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: Linux lets user code read CNTVCT_EL0, and the instruction touches no memory. It
        // is not marked `pure`, so two reads are not merged.
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

/// CLOCK_MONOTONIC_RAW, the clock that nothing adjusts, in ns.
fn monotonic_raw_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: guaranteed here: `now` is a valid timespec for the whole call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// One moment, read from both the counter and the clock.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    ticks: u64,
    clock_ns: u64,
}

impl Moment {
    /// The present moment: of several readings, the one with the counter reads closest around the
    /// clock's.
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

    /// Duration of one tick in ns, from `self` to now. Accurate to about 100 ns over that time.
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
    fn tick_has_plausible_duration() {
        let start = Moment::now();
        while monotonic_raw_ns() < start.clock_ns + 2_000_000 {}
        let ns_per_tick = start.ns_per_tick();
        // From 1 MHz (the slowest generic timers) to 10 GHz.
        assert!((0.1..=1000.0).contains(&ns_per_tick), "{ns_per_tick} ns");
    }
}
