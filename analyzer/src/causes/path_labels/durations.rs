//! How long events of one label take, by classes whose ends are a sixteenth apart or less.

/// Classes between a power of two and the next.
const CLASSES_BITS: u32 = 4;

/// Events of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Class {
    number: u32,
    count: u64,
    ticks: i64,
}

/// Events by duration.
#[derive(Debug, Clone, Default)]
pub struct Durations {
    /// Ascending.
    classes: Vec<Class>,
    /// The one of the last event: the next is often of the same.
    last: usize,
}

impl PartialEq for Durations {
    fn eq(&self, other: &Self) -> bool {
        self.classes == other.classes
    }
}

/// Below 16 ticks each duration is a class of its own.
fn class_of(ticks: u64) -> u32 {
    let shift = (ticks | 1).ilog2().saturating_sub(CLASSES_BITS);
    (shift << CLASSES_BITS) + (ticks >> shift) as u32
}

impl Durations {
    pub(super) fn add(&mut self, ticks: i64) {
        let ticks = ticks.max(0);
        self.add_class(Class { number: class_of(ticks as u64), count: 1, ticks });
    }

    pub(super) fn merge(&mut self, other: &Self) {
        other.classes.iter().for_each(|class| self.add_class(*class));
    }

    fn add_class(&mut self, of: Class) {
        if self.classes.get(self.last).is_none_or(|class| class.number != of.number) {
            self.last = self.classes.partition_point(|class| class.number < of.number);
            if self.classes.get(self.last).is_none_or(|class| class.number != of.number) {
                self.classes.insert(self.last, Class { count: 0, ticks: 0, ..of });
            }
        }
        let class = &mut self.classes[self.last];
        class.count += of.count;
        class.ticks += of.ticks;
    }

    /// Mean ticks and number of the events of each class, the shortest first.
    pub fn means(&self) -> impl Iterator<Item = (f64, u64)> {
        self.classes.iter().map(|class| (class.ticks as f64 / class.count as f64, class.count))
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
        [5_000, 100, 101].into_iter().for_each(|ticks| durations.add(ticks));
        let mut twice = durations.clone();
        twice.merge(&durations);
        assert_eq!(twice.means().collect::<Vec<_>>(), [(100.5, 4), (5_000.0, 2)]);
    }
}
