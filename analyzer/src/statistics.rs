//! Medians, quantiles and normal deviates, for every stage.

/// The median, the mean of the two middle values if their number is even; `None` for none. Sorts
/// the values.
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[middle - 1], upper) })
}

/// Of ascending values the one whose rank is nearest to this share of them; `None` for none.
pub fn nearest_rank(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * share).round() as usize).copied()
}

/// The quantile of ascending values, interpolated between the two nearest.
///
/// # Panics
/// There are no values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = share * (sorted.len() - 1) as f64;
    let (below, part) = (rank.floor() as usize, rank.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + part * (sorted[above] - sorted[below])
}

/// A standard normal deviate (Box and Muller 1958).
pub fn normal(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quantiles() {
        for (values, expected) in [
            (&mut [][..], None),
            (&mut [3.0, 1.0, 2.0][..], Some(2.0)),
            (&mut [4.0, 1.0, 3.0, 2.0][..], Some(2.5)),
        ] {
            assert_eq!(median(values), expected);
        }
        let sorted = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(
            [0.0, 0.5, 1.0].map(|share| nearest_rank(&sorted, share)),
            [1.0, 3.0, 4.0].map(Some)
        );
        assert_eq!([0.0, 0.5, 1.0].map(|share| quantile(&sorted, share)), [1.0, 2.5, 4.0]);
        assert_eq!(nearest_rank(&[], 0.5), None);
    }
}
