//! Aligns two sequences (Needleman and Wunsch 1970).

/// Pairs of positions, ascending in both sequences, with the largest sum of scores; among several
/// such alignments the one that pairs early positions. `score` is `None` for a pair that does not
/// match.
pub(super) fn pairs(
    (own, other): (usize, usize),
    score: impl Fn(usize, usize) -> Option<u32>,
) -> Vec<(usize, usize)> {
    let width = other + 1;
    // The largest sum that the rest of both sequences reaches from each pair of positions.
    let mut best = vec![0u32; (own + 1) * width];
    for i in (0..own).rev() {
        for j in (0..other).rev() {
            let skipped = best[(i + 1) * width + j].max(best[i * width + j + 1]);
            let paired = score(i, j).map_or(0, |score| score + best[(i + 1) * width + j + 1]);
            best[i * width + j] = skipped.max(paired);
        }
    }
    let (mut i, mut j, mut found) = (0, 0, Vec::new());
    while i < own && j < other {
        let here = best[i * width + j];
        let paired = score(i, j).map(|score| score + best[(i + 1) * width + j + 1]);
        if paired == Some(here) {
            found.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[i * width + j + 1] == here {
            j += 1;
        } else {
            i += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aligned(own: &str, other: &str) -> Vec<(usize, usize)> {
        let (own, other): (Vec<char>, Vec<char>) = (own.chars().collect(), other.chars().collect());
        pairs((own.len(), other.len()), |i, j| (own[i] == other[j]).then_some(1))
    }

    #[test]
    fn keeps_order_and_pairs_early() {
        assert_eq!(aligned("abc", "abc"), [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(aligned("abc", "axbc"), [(0, 0), (1, 2), (2, 3)]);
        assert_eq!(aligned("aa", "aaa"), [(0, 0), (1, 1)]);
        assert_eq!(aligned("ab", "ba").len(), 1);
        assert_eq!(aligned("", "ab"), []);
    }
}
