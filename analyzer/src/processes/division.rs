//! Divides the ranks of a run into shares.

use std::ops::Range;

/// Divides positions into at most `count` ranges, none of them empty, with as nearly equal sums of
/// weights as whole positions allow. A weight of 0 counts as 1.
pub(crate) fn divide(weights: &[u64], count: usize) -> Vec<Range<usize>> {
    let weight = |position: usize| weights.get(position).map_or(0, |w| u128::from(*w).max(1));
    let last = weights.len();
    let all: u128 = (0..last).map(weight).sum();
    let mut ranges = Vec::with_capacity(count);
    let (mut begin, mut sum) = (0, 0u128);
    for position in 1..=last {
        sum += weight(position - 1);
        // The sum with half of the next weight: whether a range that ends here is nearer to its share
        // than one that ends behind the next.
        let is_nearest = || {
            let number = ranges.len() + 1;
            number < count
                && (2 * sum + weight(position)) * count as u128 >= 2 * all * number as u128
        };
        if position == last || is_nearest() {
            ranges.push(begin..position);
            begin = position;
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_all_positions_once_and_balance_weights() {
        assert_eq!(divide(&[1; 8], 4), [0..2, 2..4, 4..6, 6..8]);
        assert_eq!(divide(&[9, 1, 1, 1, 9], 2), [0..2, 2..5]);
        assert_eq!(divide(&[100, 1, 1], 3), [0..1, 1..2, 2..3]);
        // Nearly equal weights, of which the second half is a little heavier.
        assert_eq!(divide(&[99, 99, 99, 99, 100, 100, 100, 100], 2), [0..4, 4..8]);
        assert_eq!(divide(&[10, 10, 10, 1], 3), [0..1, 1..2, 2..4]);
        assert_eq!(divide(&[1, 1, 1], 1).len(), 1);
        assert_eq!(divide(&[0, 0], 5), [0..1, 1..2]);
        assert_eq!(divide(&[], 2), []);
    }
}
