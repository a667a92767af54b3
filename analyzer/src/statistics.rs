//! Medians, quantiles, normal deviates and tests of significance, for every stage.

use statrs::function::beta::beta_reg;

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

/// The probability of at least so many successes beside these failures, if each of them is a success with probability
/// `share`. Neither number has to be whole.
pub fn successes_by_chance(successes: f64, failures: f64, share: f64) -> f64 {
    if successes > 0.0 { beta_reg(successes, failures + 1.0, share) } else { 1.0 }
}

/// Which of several hypotheses are refused, by their probabilities, so that with probability 1 − `alpha` none of them is
/// true (Holm 1979), however they depend on each other.
pub fn holm(probabilities: &[f64], alpha: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let mut refused = vec![false; probabilities.len()];
    for (at, number) in order.into_iter().enumerate() {
        if probabilities[number] > alpha / (probabilities.len() - at) as f64 {
            break;
        }
        refused[number] = true;
    }
    refused
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

    #[test]
    fn significance() {
        // 3 of 4, or 4 of 4, with a fair coin.
        assert!((successes_by_chance(3.0, 1.0, 0.5) - 5.0 / 16.0).abs() < 1e-12);
        assert_eq!(successes_by_chance(0.0, 9.0, 0.5), 1.0);
        assert_eq!(holm(&[0.02, 0.001, 0.6, 0.012], 0.05), [true, true, false, true]);
        assert_eq!(holm(&[0.04, 0.03], 0.05), [false, false]);
    }
}
