//! Decides whether two lists of exit codes can come from one distribution.
//!
//! A launcher that sees a rank die kills the others, and which of them it reports varies: for an
//! `exit(5)`, MPICH's launcher returns 5 in 95 of 100 bare runs, otherwise 1 or 9. Exit codes are
//! therefore compared as distributions.

use std::collections::BTreeMap;

/// Lists whose distance is less probable than this count as different.
pub const MIN_PROBABILITY: f64 = 1e-4;
const SHUFFLES: u32 = 50_000;

/// Distance of two equally long lists: the number of runs whose code would have to change.
fn distance(first: &[i32], second: &[i32]) -> u32 {
    let mut surplus: BTreeMap<i32, i32> = BTreeMap::new();
    for code in first {
        *surplus.entry(*code).or_default() += 1;
    }
    for code in second {
        *surplus.entry(*code).or_default() -= 1;
    }
    surplus.values().filter(|count| **count > 0).sum::<i32>() as u32
}

/// Probability that two lists drawn from one distribution are at least as far apart as these, by a
/// permutation test with a fixed seed.
///
/// # Panics
/// If the lists are not equally long.
pub fn probability_of_one_distribution(first: &[i32], second: &[i32]) -> f64 {
    assert_eq!(first.len(), second.len());
    let found = distance(first, second);
    let mut all = [first, second].concat();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut below = |bound: usize| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    };
    let mut as_far = 0;
    for _ in 0..SHUFFLES {
        for at in (1..all.len()).rev() {
            all.swap(at, below(at + 1));
        }
        let (one, other) = all.split_at(first.len());
        as_far += u32::from(distance(one, other) >= found);
    }
    f64::from(as_far) / f64::from(SHUFFLES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeated(codes: &[(i32, usize)]) -> Vec<i32> {
        codes.iter().flat_map(|(code, count)| vec![*code; *count]).collect()
    }

    #[test]
    fn accepts_lists_from_one_distribution() {
        for (first, second) in [
            (&[(5, 12)][..], &[(5, 12)][..]),
            (&[(5, 11), (9, 1)], &[(5, 12)]),
            (&[(5, 11), (1, 1)], &[(5, 11), (9, 1)]),
            (&[(5, 6), (9, 6)], &[(5, 9), (9, 3)]),
        ] {
            let found = probability_of_one_distribution(&repeated(first), &repeated(second));
            assert!(found > 0.1, "{first:?} {second:?}: {found}");
        }
    }

    #[test]
    fn rejects_lists_from_different_distributions() {
        for (first, second) in [
            (&[(5, 12)][..], &[(0, 12)][..]),
            (&[(5, 12)], &[(5, 2), (137, 10)]),
            (&[(5, 11), (9, 1)], &[(9, 12)]),
        ] {
            let found = probability_of_one_distribution(&repeated(first), &repeated(second));
            assert!(found < MIN_PROBABILITY * 5.0, "{first:?} {second:?}: {found}");
        }
    }
}
