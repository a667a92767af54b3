//! Divides the ranks of a run into shares.

use std::ops::Range;

/// Divides positions into at most `count` ranges, none of them empty, with as nearly equal sums of
/// weights as whole positions allow. A weight of 0 counts as 1.
pub(crate) fn divide(weights: &[u64], count: usize) -> Vec<Range<usize>> {
    let weights = || weights.iter().map(|weight| u128::from(*weight).max(1));
    let (all, last) = (weights().sum::<u128>(), weights().len());
    let mut ranges = Vec::with_capacity(count);
    let (mut begin, mut sum) = (0, 0u128);
    for (position, weight) in (1..).zip(weights()) {
        sum += weight;
        if sum * count as u128 >= all * (ranges.len() as u128 + 1) || position == last {
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
        assert_eq!(divide(&[9, 1, 1, 1, 9], 2), [0..3, 3..5]);
        assert_eq!(divide(&[100, 1, 1], 3), [0..1, 1..2, 2..3]);
        assert_eq!(divide(&[0, 0], 5), [0..1, 1..2]);
        assert_eq!(divide(&[], 2), []);
    }
}
