//! Sums of events by size: of each size while there are few, then of classes of sizes.

use std::collections::BTreeMap;

use super::label::OnPath;

/// Sizes of one label that are told apart.
const MAX_SIZES: usize = 32;

/// What some events of one label add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct EventSums {
    pub on_path: OnPath,
    pub count: u64,
    /// Without waits for known ranks.
    pub ticks: i64,
    pub messages: u64,
    pub bytes: u64,
}

impl EventSums {
    pub fn add(&mut self, other: &Self) {
        self.on_path.count += other.on_path.count;
        self.on_path.ticks += other.on_path.ticks;
        self.on_path.messages += other.on_path.messages;
        self.on_path.bytes += other.on_path.bytes;
        self.count += other.count;
        self.ticks += other.ticks;
        self.messages += other.messages;
        self.bytes += other.bytes;
    }
}

/// Events of one label, by size.
#[derive(Debug, Clone)]
pub(super) struct Sizes {
    /// By bytes of each event; where there are too many, by the fewest of a class.
    sums: BTreeMap<u64, EventSums>,
    exact: bool,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { sums: BTreeMap::new(), exact: true }
    }
}

/// The fewest bytes of a class: a power of two, or 0.
pub(super) fn class_of(bytes: u64) -> u64 {
    bytes.checked_ilog2().map_or(0, |power| 1 << power)
}

impl Sizes {
    /// Adds events of so many bytes each.
    pub fn add(&mut self, bytes: u64, of: &EventSums) {
        if self.exact && self.sums.len() == MAX_SIZES && !self.sums.contains_key(&bytes) {
            self.give_up();
        }
        let key = if self.exact { bytes } else { class_of(bytes) };
        self.sums.entry(key).or_default().add(of);
    }

    /// Adds those of another rank.
    pub fn merge(&mut self, other: &Self) {
        if !other.exact {
            self.give_up();
        }
        other.sums.iter().for_each(|(bytes, sums)| self.add(*bytes, sums));
    }

    /// From now on only classes are told apart.
    fn give_up(&mut self) {
        self.exact = false;
        for (bytes, sums) in std::mem::take(&mut self.sums) {
            self.sums.entry(class_of(bytes)).or_default().add(&sums);
        }
    }

    /// By bytes of each event, ascending; `None` if there are too many sizes.
    pub fn each(&self) -> Option<impl Iterator<Item = (u64, &EventSums)>> {
        self.exact.then(|| self.sums.iter().map(|(bytes, sums)| (*bytes, sums)))
    }

    /// By the fewest bytes of a class: events and their bytes.
    pub fn classes(&self) -> BTreeMap<u64, (u64, u64)> {
        let mut classes: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (bytes, sums) in &self.sums {
            let class = classes.entry(class_of(*bytes)).or_default();
            *class = (class.0 + sums.count, class.1 + sums.bytes);
        }
        classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_sizes_become_classes() {
        let one = |bytes| EventSums { count: 1, bytes, ..EventSums::default() };
        let mut sizes = Sizes::default();
        (0..MAX_SIZES as u64).for_each(|bytes| sizes.add(bytes, &one(bytes)));
        sizes.add(7, &one(7));
        let of_each = sizes.each().unwrap();
        assert_eq!(of_each.map(|(bytes, of)| (bytes, of.count)).nth(7), Some((7, 2)));
        let mut more = sizes.clone();
        more.add(100, &one(100));
        assert!(more.each().is_none());
        assert_eq!(more.classes()[&16], (16, (16..32).sum()));
        assert_eq!(more.classes()[&64], (1, 100));
        sizes.merge(&more);
        assert!(sizes.each().is_none());
        assert_eq!(sizes.classes()[&4], (10, 2 * (4 + 5 + 6 + 7 + 7)));
    }
}
