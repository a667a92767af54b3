//! Which counter the times of events are read from.

/// Counters that event times are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CounterKind {
    /// x86-64 time-stamp counter, invariant.
    Tsc = 1,
    /// AArch64 virtual counter `cntvct_el0`.
    Cntvct = 2,
    /// `CLOCK_MONOTONIC_RAW` in nanoseconds.
    MonotonicRaw = 3,
}

impl CounterKind {
    /// The kind that a stored number names, if any.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Tsc, Self::Cntvct, Self::MonotonicRaw].into_iter().find(|k| *k as u8 == number)
    }

    /// The counter's usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsc => "rdtsc",
            Self::Cntvct => "cntvct_el0",
            Self::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
        }
    }
}
