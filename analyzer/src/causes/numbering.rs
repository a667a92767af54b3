//! Numbers what recurs in nearly the same order, as the calls of a loop do.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Numbers in the order in which things first occurred. Each number remembers which two came after it the last
/// times, so that most look-ups compare instead of hashing.
#[derive(Debug)]
pub(super) struct Numbering<T> {
    numbers: FxHashMap<T, u32>,
    all: Vec<T>,
    /// By number those that came after it, the last one first.
    after: Vec<[u32; 2]>,
    last: usize,
}

impl<T> Default for Numbering<T> {
    fn default() -> Self {
        let (numbers, all, after) = Default::default();
        Self { numbers, all, after, last: 0 }
    }
}

impl<T: Copy + Eq + Hash> Numbering<T> {
    /// The number of something, a new one if it occurs for the first time.
    #[inline]
    pub fn number(&mut self, item: T) -> u32 {
        let expected = self.after.get(self.last).copied().unwrap_or_default();
        for number in expected {
            if self.all.get(number as usize) == Some(&item) {
                self.last = number as usize;
                return number;
            }
        }
        self.look_up(item)
    }

    fn look_up(&mut self, item: T) -> u32 {
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(item).or_insert(next);
        if number == next {
            self.all.push(item);
            self.after.push([0; 2]);
        }
        let [last, _] = self.after[self.last];
        self.after[self.last] = [number, last];
        self.last = number as usize;
        number
    }

    /// By number.
    pub fn all(&self) -> &[T] {
        &self.all
    }

    /// The same, without what is needed to add more.
    pub fn into_all(self) -> Vec<T> {
        self.all
    }
}

impl<T: Copy + Eq + Hash> FromIterator<T> for Numbering<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut numbering = Self::default();
        items.into_iter().for_each(|item| {
            numbering.number(item);
        });
        numbering
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_first_occurrences_whatever_the_order_later() {
        let mut numbering = Numbering::default();
        let items = ["a", "a", "b", "c", "b", "c", "a", "c", "c", "b", "d", "a", "b"];
        let numbers: Vec<u32> = items.iter().map(|item| numbering.number(*item)).collect();
        assert_eq!(numbers, [0, 0, 1, 2, 1, 2, 0, 2, 2, 1, 3, 0, 1]);
        assert_eq!(numbering.all(), ["a", "b", "c", "d"]);
        let again: Numbering<&str> = numbering.into_all().into_iter().collect();
        assert_eq!(again.into_all(), ["a", "b", "c", "d"]);
    }
}
