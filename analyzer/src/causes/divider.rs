//! Divides ticks in proportion to weights.

/// Divides ticks by weights, reusing its memory.
#[derive(Debug, Default)]
pub(super) struct Divider {
    shares: Vec<i64>,
    remainders: Vec<(i64, usize)>,
}

impl Divider {
    /// Divides `ticks` in proportion to weights that add up to `whole`. Shares are rounded down;
    /// ticks that are left go to the largest remainders, ties to the first.
    pub(super) fn divide(
        &mut self,
        ticks: i64,
        weights: impl Iterator<Item = i64>,
        whole: i64,
    ) -> &[i64] {
        self.shares.clear();
        if ticks == whole {
            self.shares.extend(weights);
            return &self.shares;
        }
        let whole = whole.max(1);
        self.remainders.clear();
        let mut left = ticks;
        for (at, weight) in weights.enumerate() {
            let (share, remainder) = match ticks.checked_mul(weight) {
                Some(product) => (product / whole, product % whole),
                None => {
                    let product = i128::from(ticks) * i128::from(weight);
                    let whole = i128::from(whole);
                    ((product / whole) as i64, (product % whole) as i64)
                }
            };
            left -= share;
            self.shares.push(share);
            self.remainders.push((remainder, at));
        }
        if left > 0 {
            self.remainders.sort_by_key(|(remainder, at)| (std::cmp::Reverse(*remainder), *at));
            let largest = self.remainders.iter().take(left as usize);
            largest.for_each(|(_, at)| self.shares[*at] += 1);
        }
        &self.shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_ties_go_to_the_first() {
        let of = |ticks, weights: &[i64]| {
            let mut divider = Divider::default();
            divider.divide(ticks, weights.iter().copied(), weights.iter().sum()).to_vec()
        };
        assert_eq!(of(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(of(5, &[3, 1, 0]), [4, 1, 0]);
        assert_eq!(of(0, &[3, 1]), [0, 0]);
        let shares = of(i64::MAX / 2, &[i64::MAX / 4, i64::MAX / 8, i64::MAX / 2]);
        assert_eq!(shares.iter().sum::<i64>(), i64::MAX / 2);
    }
}
