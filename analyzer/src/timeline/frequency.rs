//! Determines the frequency of each rank's counter from the clock anchors of all ranks.

use std::collections::HashMap;

use trace_format::counter_kind::CounterKind;
use trace_format::header::ClockAnchor;

use crate::trace::RankTrace;

/// How a frequency was determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrequencyBasis {
    /// The counter counts nanoseconds.
    Exact,
    /// From two anchors of this rank.
    Measured,
    /// From two anchors of another rank of the same host.
    HostMate,
    /// From one anchor: counter divided by time since boot.
    SinceBoot,
    /// Not known; 1 GHz is assumed.
    Unknown,
}

/// A counter's frequency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frequency {
    /// Ticks per second of CLOCK_MONOTONIC_RAW.
    pub ticks_per_s: f64,
    /// Relative uncertainty: half the sum of the anchors' widths over their distance.
    pub relative_uncertainty: f64,
    /// How it was determined.
    pub basis: FrequencyBasis,
}

impl Frequency {
    /// Whether it is an estimate that may be far off.
    pub fn is_guess(&self) -> bool {
        matches!(self.basis, FrequencyBasis::SinceBoot | FrequencyBasis::Unknown)
    }
}

/// Plausible frequencies of a counter, in Hz; any other is considered damaged.
const POSSIBLE_HZ: std::ops::Range<f64> = 1e5..1e11;
/// A rank's own measurement is used if its relative uncertainty is at most this.
const GOOD_ENOUGH: f64 = 1e-6;

/// The frequency of every rank's counter, in the order of the ranks.
///
/// Ranks with the same kernel and kind of counter share the measurement with the longest baseline,
/// unless their own is good enough.
pub(super) fn of_ranks(ranks: &[RankTrace]) -> Vec<Frequency> {
    let mut best: HashMap<(&str, u8), Frequency> = HashMap::new();
    let owns: Vec<_> = ranks.iter().map(|rank| measured(&rank.facts.anchors)).collect();
    for (rank, own) in ranks.iter().zip(&owns) {
        let Some(own) = own else { continue };
        let shared = Frequency { basis: FrequencyBasis::HostMate, ..*own };
        let entry = best.entry(counter_of(rank)).or_insert(shared);
        if own.relative_uncertainty < entry.relative_uncertainty {
            *entry = shared;
        }
    }
    ranks
        .iter()
        .zip(owns)
        .map(|(rank, own)| {
            if rank.file.counter == CounterKind::MonotonicRaw {
                return Frequency {
                    ticks_per_s: 1e9,
                    relative_uncertainty: 0.0,
                    basis: FrequencyBasis::Exact,
                };
            }
            let shared = best.get(&counter_of(rank)).copied();
            own.filter(|own| own.relative_uncertainty <= GOOD_ENOUGH)
                .or_else(|| match (own, shared) {
                    (Some(own), Some(shared)) => {
                        Some(if own.relative_uncertainty <= shared.relative_uncertainty {
                            own
                        } else {
                            shared
                        })
                    }
                    (own, shared) => own.or(shared),
                })
                .unwrap_or_else(|| since_boot(&rank.facts.anchors))
        })
        .collect()
}

/// Boot id and kind of counter; ranks that agree in both may share a counter.
fn counter_of(rank: &RankTrace) -> (&str, u8) {
    (&rank.file.header.boot_id, rank.file.counter as u8)
}

/// The frequency between the two anchors that are furthest apart.
fn measured(anchors: &[ClockAnchor]) -> Option<Frequency> {
    let first = anchors.iter().min_by_key(|anchor| anchor.ticks)?;
    let last = anchors.iter().max_by_key(|anchor| anchor.ticks)?;
    let ticks = last.ticks.checked_sub(first.ticks).filter(|ticks| *ticks > 0)?;
    let time_ns = last.monotonic_raw_ns.checked_sub(first.monotonic_raw_ns)?;
    let ticks_per_s = ticks as f64 / (time_ns as f64 * 1e-9);
    let width = first.width_ticks as f64 + last.width_ticks as f64;
    let relative_uncertainty = (width / 2.0 + 1.0) / ticks as f64;
    (POSSIBLE_HZ.contains(&ticks_per_s) && relative_uncertainty < 0.1).then_some(Frequency {
        ticks_per_s,
        relative_uncertainty,
        basis: FrequencyBasis::Measured,
    })
}

/// The frequency from one anchor: counters, like CLOCK_MONOTONIC_RAW, start near 0 at boot.
fn since_boot(anchors: &[ClockAnchor]) -> Frequency {
    let estimate = anchors
        .first()
        .map(|anchor| anchor.ticks as f64 / (anchor.monotonic_raw_ns as f64 * 1e-9))
        .filter(|hz| POSSIBLE_HZ.contains(hz));
    match estimate {
        Some(ticks_per_s) => {
            Frequency { ticks_per_s, relative_uncertainty: 1.0, basis: FrequencyBasis::SinceBoot }
        }
        None => Frequency {
            ticks_per_s: 1e9,
            relative_uncertainty: 1.0,
            basis: FrequencyBasis::Unknown,
        },
    }
}
