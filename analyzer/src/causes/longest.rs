//! Keeps the longest of very many, so that memory is bounded.

/// Something with a length, ticks.
pub(super) trait Length {
    fn length(&self) -> i64;

    /// Whether it may be dropped if it is short.
    fn is_optional(&self) -> bool;
}

/// What was dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    pub count: u64,
    /// Sum of their lengths.
    pub ticks: i64,
    /// Each was shorter than this.
    pub below: i64,
}

impl Dropped {
    fn add(&mut self, length: i64) {
        self.count += 1;
        self.ticks += length;
    }
}

/// Items in order of their arrival. If there are too many, the shorter half of the optional ones is dropped, and
/// from then on what is as short as these.
#[derive(Debug)]
pub(super) struct Longest<T> {
    pub all: Vec<T>,
    pub dropped: Dropped,
    most: usize,
}

impl<T> Default for Longest<T> {
    fn default() -> Self {
        Self { all: Vec::new(), dropped: Dropped::default(), most: 0 }
    }
}

impl<T: Length> Longest<T> {
    /// Keeps about `most` items.
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    pub fn push(&mut self, item: T) {
        if item.length() < self.dropped.below && item.is_optional() {
            return self.dropped.add(item.length());
        }
        self.all.push(item);
        if self.all.len() > self.most {
            self.drop_the_short();
        }
    }

    /// Adds what another share kept.
    pub fn merge(&mut self, other: Self) {
        self.all.extend(other.all);
        self.most += other.most;
        let (own, other) = (&mut self.dropped, other.dropped);
        own.count += other.count;
        own.ticks += other.ticks;
        own.below = own.below.max(other.below);
    }

    #[cold]
    fn drop_the_short(&mut self) {
        let optional = self.all.iter().filter(|item| item.is_optional());
        let mut lengths: Vec<i64> = optional.map(Length::length).collect();
        let half = lengths.len() / 2;
        if half > 0 {
            let median = *lengths.select_nth_unstable(half).1;
            // Of equal ones all are dropped.
            let (below, dropped) = (median + 1, &mut self.dropped);
            dropped.below = dropped.below.max(below);
            self.all.retain(|item| {
                let keeps = item.length() >= below || !item.is_optional();
                if !keeps {
                    dropped.add(item.length());
                }
                keeps
            });
        }
        // What must be kept may be more than that.
        if self.all.len() > self.most / 4 * 3 {
            self.most = 2 * self.all.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Item(i64, bool);

    impl Length for Item {
        fn length(&self) -> i64 {
            self.0
        }

        fn is_optional(&self) -> bool {
            self.1
        }
    }

    #[test]
    fn short_ones_are_dropped_and_counted() {
        let mut kept = Longest::new(100);
        let items = (0..10_000i64).map(|at| Item(at * 7919 % 1000, at % 50 != 0));
        let items: Vec<Item> = items.collect();
        items.iter().for_each(|item| kept.push(*item));
        let Dropped { count, ticks, below } = kept.dropped;
        assert_eq!(kept.all.len() as u64 + count, 10_000);
        let all: i64 = items.iter().map(|item| item.0).sum();
        assert_eq!(kept.all.iter().map(|item| item.0).sum::<i64>() + ticks, all);
        let expected = items.iter().filter(|item| item.0 >= below || !item.1).copied();
        let expected: Vec<Item> = expected.collect();
        assert_eq!(kept.all, expected);
        assert!((200..1000).contains(&kept.all.len()), "{}", kept.all.len());
    }

    #[test]
    fn equal_ones_do_not_grow() {
        let mut kept = Longest::new(10);
        (0..1000).for_each(|_| kept.push(Item(5, true)));
        assert_eq!((kept.all.len(), kept.dropped.below), (0, 6));
        kept.push(Item(6, true));
        assert_eq!(kept.all, [Item(6, true)]);
    }
}
