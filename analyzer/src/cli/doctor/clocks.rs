//! Examines the sources of times: the counter that the recorder uses, and the system's clock.

use std::fs;
use std::hint::black_box;

use rustix::time::{ClockId, clock_getres};

use super::finding::{Finding, Mark};
use crate::live::counter::{self, NAME as COUNTER, clock_ns};
use crate::statistics::median;

/// How long the counter is compared with the system's clock, nanoseconds.
const COMPARISON_NS: u64 = 50_000_000;
/// Two reads that are further apart than this were interrupted.
const INTERRUPTION_NS: f64 = 1000.0;
/// Number of reads in one measurement of their cost.
const READS: u32 = 1000;
/// Number of measurements, whose median is taken.
const REPEATS: usize = 101;

pub(super) fn findings() -> Vec<Finding> {
    let comparison = compare_with_clock();
    let mut findings = vec![constancy()];
    findings.extend(clock_source());
    findings.extend([frequency(&comparison), counter_cost(&comparison), clock_cost()]);
    findings.push(interruptions(&comparison));
    findings
}

fn clock_resolution_ns() -> u64 {
    let resolution = clock_getres(ClockId::MonotonicRaw);
    resolution.tv_sec as u64 * 1_000_000_000 + resolution.tv_nsec as u64
}

/// Whether the counter runs at a constant rate, whatever the cores do.
fn constancy() -> Finding {
    let invariant = counter_is_invariant();
    let (mark, value, meaning) = if invariant {
        (
            Mark::Ok,
            format!("{COUNTER} runs at a constant rate"),
            "Event times come from it; ranks of one host share one clock.",
        )
    } else {
        (
            Mark::Limit,
            format!("{COUNTER} does not guarantee a constant rate"),
            "Event times come from CLOCK_MONOTONIC_RAW instead, which costs more per call.",
        )
    };
    Finding::new("counter", mark, value, meaning)
        .with("counter", COUNTER)
        .with("invariant", invariant)
}

#[cfg(target_arch = "x86_64")]
fn counter_is_invariant() -> bool {
    // CPUID 0x80000007, EDX bit 8: invariant TSC (Intel SDM 18.17.1, AMD APM 3 E.4.7).
    super::host::cpuid(0x8000_0000).eax >= 0x8000_0007
        && super::host::cpuid(0x8000_0007).edx & 1 << 8 != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn counter_is_invariant() -> bool {
    cfg!(target_arch = "aarch64")
}

/// The clock source of the kernel, which compares the TSC with other clocks and abandons it if it
/// deviates.
fn clock_source() -> Option<Finding> {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = fs::read_to_string(path).ok()?.trim().to_owned();
    let (mark, meaning) = match source.as_str() {
        "tsc" | "arch_sys_counter" => (Mark::Ok, "The kernel trusts the counter too."),
        "kvm-clock" | "xen" | "hyperv_clocksource_tsc_page" | "hyperv_clocksource" => {
            (Mark::Note, "The kernel prefers its hypervisor's clock; usual in a virtual machine.")
        }
        _ => (
            Mark::Limit,
            "The kernel does not trust the counter on this machine: cores may disagree, and \
             ranks of one host may not share one clock.",
        ),
    };
    Some(Finding::new("clocksource", mark, source.clone(), meaning).with("clocksource", source))
}

/// A comparison of the counter with the system's clock.
struct Comparison {
    ticks_per_ns: f64,
    /// Uncertainty from reading both ends, parts per million.
    uncertainty_ppm: f64,
    spun_ns: f64,
    interruptions: u64,
    longest_ns: f64,
    lost_ns: f64,
}

/// Counter and clock at the same moment: the narrowest of several readings, and its width in ticks.
fn anchor() -> (u64, u64, u64) {
    let readings = (0..50).map(|_| {
        let before = counter::read();
        let ns = clock_ns();
        let after = counter::read();
        (before + after.wrapping_sub(before) / 2, ns, after.wrapping_sub(before))
    });
    readings.min_by_key(|(_, _, width)| *width).expect("fifty readings")
}

fn compare_with_clock() -> Comparison {
    let (from_ticks, from_ns, from_width) = anchor();
    let mut gaps: Vec<u64> = Vec::new();
    // A rough rate for detecting gaps; their lengths are computed with the exact rate.
    let rough_ticks_per_ns = {
        let (ticks, ns) = (counter::read(), clock_ns());
        while clock_ns() < ns + 1_000_000 {}
        (counter::read() - ticks) as f64 / (clock_ns() - ns) as f64
    };
    let end = counter::read() + (COMPARISON_NS as f64 * rough_ticks_per_ns) as u64;
    let begin = counter::read();
    let mut last = begin;
    while last < end {
        let now = counter::read();
        if (now.saturating_sub(last)) as f64 > INTERRUPTION_NS * rough_ticks_per_ns {
            gaps.push(now - last);
        }
        last = now;
    }
    let (to_ticks, to_ns, to_width) = anchor();
    let ticks_per_ns = (to_ticks - from_ticks) as f64 / (to_ns - from_ns).max(1) as f64;
    let gaps_ns = gaps.iter().map(|ticks| *ticks as f64 / ticks_per_ns);
    Comparison {
        ticks_per_ns,
        uncertainty_ppm: (from_width + to_width) as f64 / 2.0 / (to_ticks - from_ticks) as f64
            * 1e6,
        spun_ns: (last - begin) as f64 / ticks_per_ns,
        interruptions: gaps.len() as u64,
        longest_ns: gaps_ns.clone().fold(0.0, f64::max),
        lost_ns: gaps_ns.sum(),
    }
}

fn frequency(comparison: &Comparison) -> Finding {
    let ghz = comparison.ticks_per_ns;
    Finding::new(
        "frequency",
        Mark::Ok,
        format!("{ghz:.6} GHz, within {:.1} ppm", comparison.uncertainty_ppm),
        "Measured against CLOCK_MONOTONIC_RAW for 50 ms; a run measures it over its whole length.",
    )
    .with("hz", ghz * 1e9)
    .with("uncertainty_ppm", comparison.uncertainty_ppm)
}

fn counter_cost(comparison: &Comparison) -> Finding {
    let ns = |ticks: f64| ticks / comparison.ticks_per_ns;
    let cost_ns = ns(cost_ticks(counter::read));
    let step_ns = ns(step_ticks(counter::read) as f64);
    let (mark, meaning) = if cost_ns < 50.0 {
        (Mark::Ok, "Every recorded call reads it twice.")
    } else {
        (
            Mark::Limit,
            "Every recorded call reads it twice; at this cost the hypervisor traps the \
             instruction, and short calls look longer than they are.",
        )
    };
    Finding::new(
        "read",
        mark,
        format!("{cost_ns:.1} ns per read, steps of {step_ns:.2} ns"),
        meaning,
    )
    .with("cost_ns", cost_ns)
    .with("step_ns", step_ns)
}

fn clock_cost() -> Finding {
    let cost_ns = cost_ticks(clock_ns);
    let (resolution_ns, step_ns) = (clock_resolution_ns(), step_ticks(clock_ns));
    let (mark, meaning) = if cost_ns < 200.0 {
        (Mark::Ok, "Read only at the ends of a run, to tie the counter to seconds.")
    } else {
        (Mark::Note, "Read by a system call on this machine; harmless while the counter is usable.")
    };
    Finding::new("system clock",
        mark,
        format!(
            "CLOCK_MONOTONIC_RAW: resolution {resolution_ns} ns, {cost_ns:.0} ns per read, steps of \
             {step_ns} ns"
        ),
        meaning,
    )
    .with("resolution_ns", resolution_ns)
    .with("cost_ns", cost_ns)
    .with("step_ns", step_ns)
}

fn interruptions(comparison: &Comparison) -> Finding {
    let share = comparison.lost_ns / comparison.spun_ns;
    let (mark, meaning) = match share {
        share if share < 0.002 => (Mark::Ok, "This core is quiet."),
        share if share < 0.02 => {
            (Mark::Note, "Something else uses this core now and then; repeat measurements.")
        }
        _ => (
            Mark::Limit,
            "Something else uses this core, or the hypervisor takes it away: times vary from run to run, and it may \
             cause waits for a slow rank.",
        ),
    };
    Finding::new(
        "interruptions",
        mark,
        format!(
            "{} longer than 1 µs in {:.0} ms, {:.2} % of the time, the longest {:.0} µs",
            comparison.interruptions,
            comparison.spun_ns / 1e6,
            share * 100.0,
            comparison.longest_ns / 1e3
        ),
        meaning,
    )
    .with("count", comparison.interruptions)
    .with("share", share)
    .with("longest_ns", comparison.longest_ns)
}

/// Ticks of one read, median over repeats.
fn cost_ticks(read: impl Fn() -> u64) -> f64 {
    let costs = (0..REPEATS).map(|_| {
        let from = read();
        for _ in 0..READS {
            black_box(read());
        }
        read().wrapping_sub(from) as f64 / f64::from(READS)
    });
    median(&mut costs.collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

/// The largest number that divides all observed steps.
fn step_ticks(read: impl Fn() -> u64) -> u64 {
    let mut last = read();
    let mut step = 0;
    for _ in 0..10_000 {
        let now = read();
        step = greatest_common_divisor(step, now.wrapping_sub(last));
        last = now;
    }
    step
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greatest_common_divisors() {
        assert_eq!(greatest_common_divisor(0, 36), 36);
        assert_eq!(greatest_common_divisor(72, 36), 36);
        assert_eq!(greatest_common_divisor(25, 36), 1);
    }

    #[test]
    fn counter_runs_forward() {
        let comparison = compare_with_clock();
        assert!(comparison.ticks_per_ns > 0.0 && comparison.ticks_per_ns.is_finite());
        assert!(comparison.lost_ns <= comparison.spun_ns);
    }
}
