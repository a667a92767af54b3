//! Keeps the longest of very many, so that memory is bounded. What is kept does not depend on how the
//! run is divided into shares.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// Something with a length, ticks.
pub(super) trait Duration {
    fn length(&self) -> i64;

    /// Whether it may be dropped if it is short.
    fn is_optional(&self) -> bool;
}

/// What was dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DroppedWaits {
    pub count: u64,
    /// Sum of their lengths.
    pub ticks: i64,
    /// Each was shorter than this.
    pub below: i64,
}

/// Classes of lengths for each power of two.
const CLASSES: u64 = 32;

/// How many optional items have a length of each class, whether they are kept or not; and the sum
/// of their lengths.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Counts {
    of_classes: Vec<u64>,
    ticks: i64,
}

/// The class of a length: lengths below 2 · [`CLASSES`] have a class of their own.
fn class(length: i64) -> usize {
    let length = length.max(0) as u64;
    let octave = u64::from((length / CLASSES).checked_ilog2().unwrap_or(0));
    (octave * CLASSES + (length >> octave)) as usize
}

/// The smallest length of a class.
fn least_of(class: usize) -> i64 {
    let class = class as u64;
    let octave = (class / CLASSES).saturating_sub(1);
    i64::try_from((class - octave * CLASSES) << octave).unwrap_or(i64::MAX)
}

impl Counts {
    fn add(&mut self, length: i64) {
        let class = class(length);
        if class >= self.of_classes.len() {
            self.of_classes.resize(class + 1, 0);
        }
        self.of_classes[class] += 1;
        self.ticks += length;
    }

    fn merge(&mut self, other: &Self) {
        let classes = self.of_classes.len().max(other.of_classes.len());
        self.of_classes.resize(classes, 0);
        self.of_classes.iter_mut().zip(&other.of_classes).for_each(|(own, other)| *own += other);
        self.ticks += other.ticks;
    }

    fn count(&self) -> u64 {
        self.of_classes.iter().sum()
    }

    /// The smallest length that at most `most` items reach.
    fn limit(&self, most: usize) -> i64 {
        let mut longer = 0;
        let too_many = self.of_classes.iter().rposition(|count| {
            longer += count;
            longer > most as u64
        });
        too_many.map_or(0, |class| least_of(class + 1))
    }
}

/// Counts over all shares of a process, so that together they keep little more than the run may.
pub(super) type CountsOfProcess = Arc<Mutex<Counts>>;

/// Items in order of their arrival. If there are too many, the shorter optional ones are dropped.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Longest<T> {
    all: Vec<T>,
    /// Of all optional items that were added here.
    counts: Counts,
    /// How many optional ones of the whole run are kept.
    most: usize,
    /// Shorter optional ones are dropped.
    below: i64,
    /// How many there are here when the shorter ones are dropped next.
    next_drop: usize,
    /// Of items added since they were added to the process's counts.
    #[serde(skip)]
    recent: Counts,
    #[serde(skip)]
    of_process: CountsOfProcess,
}

impl<T: Duration> Longest<T> {
    /// Keeps at most `most` optional items of a run of which a process has this many shares.
    pub fn new(most: usize, shares: usize, of_process: &CountsOfProcess) -> Self {
        Self {
            all: Vec::new(),
            counts: Counts::default(),
            most,
            below: 0,
            next_drop: most / shares.max(1),
            recent: Counts::default(),
            of_process: of_process.clone(),
        }
    }

    pub fn push(&mut self, item: T) {
        if item.is_optional() {
            let length = item.length();
            self.recent.add(length);
            if length < self.below {
                return;
            }
        }
        self.all.push(item);
        if self.all.len() > self.next_drop {
            self.count_recent();
            let counts = self.of_process.lock().unwrap_or_else(PoisonError::into_inner);
            let below = counts.limit(self.most);
            drop(counts);
            self.drop_below(below);
        }
    }

    #[cold]
    fn count_recent(&mut self) {
        let recent = std::mem::take(&mut self.recent);
        self.counts.merge(&recent);
        self.of_process.lock().unwrap_or_else(PoisonError::into_inner).merge(&recent);
    }

    fn drop_below(&mut self, below: i64) {
        self.below = self.below.max(below);
        let below = self.below;
        self.all.retain(|item| !item.is_optional() || item.length() >= below);
        self.next_drop = self.next_drop.max(2 * self.all.len());
    }

    /// No more items come from this share.
    pub fn end_share(&mut self) {
        self.count_recent();
    }

    /// Adds what another share or process kept.
    pub fn merge(&mut self, other: Self) {
        self.all.extend(other.all);
        self.counts.merge(&other.counts);
        let below = self.counts.limit(self.most).max(other.below);
        if self.all.len() > self.most {
            self.drop_below(below);
        }
    }

    /// What is kept, and what is not.
    pub fn finish(mut self) -> (Vec<T>, DroppedWaits) {
        self.count_recent();
        self.drop_below(self.counts.limit(self.most));
        let kept = self.all.iter().filter(|item| item.is_optional());
        let (count, ticks) =
            kept.fold((0, 0), |(count, ticks), item| (count + 1, ticks + item.length()));
        let count = self.counts.count() - count;
        (self.all, DroppedWaits { count, ticks: self.counts.ticks - ticks, below: self.below })
    }
}

impl<T: Duration> Default for Longest<T> {
    fn default() -> Self {
        Self::new(0, 1, &CountsOfProcess::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Item(i64, bool);

    impl Duration for Item {
        fn length(&self) -> i64 {
            self.0
        }

        fn is_optional(&self) -> bool {
            self.1
        }
    }

    /// What is kept if the items are divided among shares in turn.
    fn kept(items: &[Item], most: usize, shares: usize) -> (Vec<Item>, DroppedWaits) {
        let counts = CountsOfProcess::default();
        let mut of_shares: Vec<Longest<Item>> =
            (0..shares).map(|_| Longest::new(most, shares, &counts)).collect();
        items.iter().enumerate().for_each(|(at, item)| of_shares[at % shares].push(*item));
        let merged = of_shares.into_iter().map(|mut of_share| {
            of_share.end_share();
            of_share
        });
        let merged = merged.reduce(|mut a, b| {
            a.merge(b);
            a
        });
        merged.unwrap().finish()
    }

    #[test]
    fn short_ones_are_dropped_and_counted() {
        let items = (0..10_000i64).map(|at| Item(at * 7919 % 1000, at % 50 != 0));
        let items: Vec<Item> = items.collect();
        let (all, DroppedWaits { count, ticks, below }) = kept(&items, 100, 1);
        assert_eq!(all.len() as u64 + count, 10_000);
        let sum: i64 = items.iter().map(|item| item.0).sum();
        assert_eq!(all.iter().map(|item| item.0).sum::<i64>() + ticks, sum);
        let expected = items.iter().filter(|item| item.0 >= below || !item.1).copied();
        let expected: Vec<Item> = expected.collect();
        assert_eq!(all, expected);
        let optional = all.iter().filter(|item| item.1).count();
        assert!((50..=100).contains(&optional), "{optional}");
    }

    #[test]
    fn what_is_kept_does_not_depend_on_the_shares() {
        let items = (0..10_000i64).map(|at| Item(at * at * 7919 % 100_003, at % 50 != 0));
        let items: Vec<Item> = items.collect();
        let sorted = |(mut all, dropped): (Vec<Item>, DroppedWaits)| {
            all.sort_by_key(|item| (item.0, item.1));
            (all, dropped)
        };
        let alone = sorted(kept(&items, 100, 1));
        for shares in 2..10 {
            assert_eq!(sorted(kept(&items, 100, shares)), alone, "{shares} shares");
        }
    }

    #[test]
    fn equal_ones_do_not_grow() {
        let mut kept = Longest::new(10, 1, &CountsOfProcess::default());
        (0..1000).for_each(|_| kept.push(Item(5, true)));
        assert!(kept.all.len() <= 11);
        kept.push(Item(6, true));
        let (all, dropped) = kept.finish();
        assert_eq!((all, dropped.count, dropped.below), (vec![Item(6, true)], 1000, 6));
    }

    #[test]
    fn classes_follow_each_other() {
        assert_eq!((class(-1), class(0)), (0, 0));
        for at in 1..=class(i64::MAX) {
            assert_eq!((class(least_of(at)), class(least_of(at) - 1)), (at, at - 1));
        }
    }
}
