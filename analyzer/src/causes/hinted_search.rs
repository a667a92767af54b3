//! Binary search that starts near the previous result. Queries come almost in order of time, and a
//! search from the middle would miss the processor's caches at every step.

/// Returns how many leading items satisfy `is_before`, like [`slice::partition_point`]. The search
/// starts at `hint`, which receives the result.
pub(super) fn partition_point<T>(
    items: &[T],
    hint: &mut usize,
    is_before: impl Fn(&T) -> bool,
) -> usize {
    let start = (*hint).min(items.len());
    let mut step = 1;
    // Items before `from` satisfy `is_before`; items from `to` on do not.
    let (mut from, mut to) = (start, start);
    if to < items.len() && is_before(&items[to]) {
        while to < items.len() && is_before(&items[to]) {
            from = to + 1;
            to = (to + step).min(items.len());
            step *= 2;
        }
    } else {
        while from > 0 && !is_before(&items[from - 1]) {
            to = from - 1;
            from = from.saturating_sub(step);
            step *= 2;
        }
    }
    *hint = from + items[from..to].partition_point(is_before);
    *hint
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_plain_binary_search() {
        let items: Vec<i64> = (0..200).map(|at| at / 3 * 2).collect();
        for length in [0, 1, 2, 5, 200] {
            let items = &items[..length];
            for wanted in -1..140 {
                for start in [0, 1, 4, 57, 199, 200, 1_000] {
                    let mut hint = start;
                    let expected = items.partition_point(|item| *item < wanted);
                    let found = partition_point(items, &mut hint, |item| *item < wanted);
                    assert_eq!((found, hint), (expected, expected), "{length} {wanted} {start}");
                }
            }
        }
    }
}
