//! What changed between two measurements of one machine, beyond noise.
//!
//! A figure has changed when the 95 % intervals of the two medians do not overlap *and* the medians
//! differ by more than [`MIN_CHANGE`]. Intervals alone would report a few changes among a hundred
//! figures of an unchanged machine.

use super::description::Machine;
use super::measured::Measured;
use super::network::{PairClass, SizeTimes};

/// Relative change below which a figure counts as unchanged.
pub const MIN_CHANGE: f64 = 0.05;

/// A quantity that changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The quantity: `network same-host half_rtt_s`, `ceilings dgemm per_host`.
    pub what: String,
    /// Message size at which it changed most; `None` where it does not depend on the size.
    pub bytes: Option<u64>,
    /// Median before.
    pub before: f64,
    /// Median now.
    pub now: f64,
    /// Number of sizes that changed, and number of sizes compared.
    pub sizes: (usize, usize),
}

impl Change {
    /// Relative change of the median.
    pub fn relative(&self) -> f64 {
        self.now / self.before - 1.0
    }
}

/// The changes from `before` to `now`, and the number of figures compared.
pub fn changes(before: &Machine, now: &Machine) -> (Vec<Change>, usize) {
    let mut changes = Vec::new();
    let mut compared = 0;
    for class in &now.network.classes {
        let Some(old) = before.network.class(&class.class) else { continue };
        for (name, quantity) in QUANTITIES {
            let pairs: Vec<(u64, &Measured, &Measured)> = class
                .sizes
                .iter()
                .filter_map(|size| {
                    let old = old.sizes.iter().find(|old| old.bytes == size.bytes)?;
                    Some((size.bytes, quantity(old), quantity(size)))
                })
                .collect();
            compared += pairs.len();
            let changed: Vec<_> =
                pairs.iter().filter(|(_, before, now)| is_changed(before, now)).collect();
            let size = |(_, before, now): &&&(u64, &Measured, &Measured)| {
                (now.median / before.median).ln().abs()
            };
            if let Some((bytes, before, now)) =
                changed.iter().max_by(|a, b| size(a).total_cmp(&size(b)))
            {
                changes.push(Change {
                    what: format!("network {} {name}", class.class),
                    bytes: Some(*bytes),
                    before: before.median,
                    now: now.median,
                    sizes: (changed.len(), pairs.len()),
                });
            }
        }
        compared += 1;
        changes.extend(eager_change(old, class));
    }
    for ceiling in &now.ceilings.ceilings {
        let Some(old) = before.ceilings.named(&ceiling.name) else { continue };
        let figures = [
            ("per_rank", &old.per_rank, &ceiling.per_rank),
            ("per_host", &old.per_host, &ceiling.per_host),
        ];
        for (name, before, now) in figures {
            compared += 1;
            if is_changed(before, now) {
                changes.push(Change {
                    what: format!("ceilings {} {name}", ceiling.name),
                    bytes: None,
                    before: before.median,
                    now: now.median,
                    sizes: (1, 1),
                });
            }
        }
    }
    (changes, compared)
}

type Quantity = fn(&SizeTimes) -> &Measured;

const QUANTITIES: [(&str, Quantity); 6] = [
    ("half_rtt_s", |size| &size.half_rtt_s),
    ("gap_s", |size| &size.gap_s),
    ("send_overhead_s", |size| &size.send_overhead_s),
    ("receive_overhead_s", |size| &size.receive_overhead_s),
    ("one_way_bytes_per_s", |size| &size.one_way_bytes_per_s),
    ("both_ways_bytes_per_s", |size| &size.both_ways_bytes_per_s),
];

fn is_changed(before: &Measured, now: &Measured) -> bool {
    let apart = now.low > before.high || now.high < before.low;
    let relative = (now.median - before.median).abs() / before.median.abs().max(f64::MIN_POSITIVE);
    apart && before.median > 0.0 && now.median > 0.0 && relative > MIN_CHANGE
}

/// The eager limit is not a sample with noise: a difference means that the library or its settings
/// have changed.
fn eager_change(before: &PairClass, now: &PairClass) -> Option<Change> {
    let (before, now_limit) = (before.eager_limit, now.eager_limit);
    let ratio = now_limit.bytes.max(1) as f64 / before.bytes.max(1) as f64;
    (ratio.ln().abs() > MIN_CHANGE || before.at_least != now_limit.at_least).then(|| Change {
        what: format!("network {} eager_limit, bytes", now.class),
        bytes: None,
        before: before.bytes as f64,
        now: now_limit.bytes as f64,
        sizes: (1, 1),
    })
}
