//! How long events of one label take, by classes whose ends are a sixteenth apart or less.

use std::collections::BTreeMap;

/// Classes between a power of two and the next.
const CLASSES_BITS: u32 = 4;

/// Events by duration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Durations {
    /// By number of the class: events and their ticks.
    classes: BTreeMap<u32, (u64, i64)>,
}

/// Below 16 ticks each duration is a class of its own.
fn class_of(ticks: u64) -> u32 {
    let shift = (ticks | 1).ilog2().saturating_sub(CLASSES_BITS);
    (shift << CLASSES_BITS) + (ticks >> shift) as u32
}

impl Durations {
    pub(super) fn add(&mut self, ticks: i64) {
        let class = self.classes.entry(class_of(ticks.max(0) as u64)).or_default();
        *class = (class.0 + 1, class.1 + ticks.max(0));
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (class, (count, ticks)) in &other.classes {
            let own = self.classes.entry(*class).or_default();
            *own = (own.0 + count, own.1 + ticks);
        }
    }

    /// Mean ticks and number of the events of each class, the shortest first.
    pub fn means(&self) -> impl Iterator<Item = (f64, u64)> {
        self.classes.values().map(|(count, ticks)| (*ticks as f64 / *count as f64, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_told_apart_that_differ_by_a_sixteenth() {
        for ticks in [0, 1, 15, 16, 31, 32, 1_000, 123_456_789, u64::MAX >> 1] {
            assert!(class_of(ticks) <= class_of(ticks + 1), "{ticks}");
            assert_ne!(class_of(ticks), class_of(ticks + ticks / 8 + 1), "{ticks}");
        }
        let mut durations = Durations::default();
        [100, 101, 5_000].into_iter().for_each(|ticks| durations.add(ticks));
        let mut twice = durations.clone();
        twice.merge(&durations);
        assert_eq!(twice.means().collect::<Vec<_>>(), [(100.5, 4), (5_000.0, 2)]);
    }
}
