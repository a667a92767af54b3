//! Fits linear pieces of a time over message sizes, with breaks at protocol switches.
//!
//! A single line across a protocol switch is wrong (compare Touyama and Horiguchi), so breaks are
//! put where the library is known to switch, and further ones where the data require them: all ways
//! to divide the sizes into at most [`MAX_PIECES`] pieces are compared by least squares of
//! *relative* deviations and the Bayesian information criterion. Uncertainties are from a bootstrap
//! over the repetitions.

use serde::Serialize;

/// Maximum number of pieces.
const MAX_PIECES: usize = 5;
/// Minimum number of sizes in a piece.
const MIN_POINTS: usize = 3;
/// Relative scatter below which medians are not trusted, so that noise does not create pieces.
const FLOOR: f64 = 0.02;
/// Number of bootstrap resamples.
const RESAMPLES: usize = 200;

/// All repetitions at one size.
#[derive(Clone, Debug)]
pub struct Point {
    /// Message size.
    pub bytes: u64,
    /// Seconds, one value per repetition.
    pub values: Vec<f64>,
}

/// A line over a range of sizes: seconds = fixed + (bytes − `from_zero`) · per_byte, with
/// `from_zero` = 1 for gaps (g + (s−1)G) and 0 for times of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Piece {
    /// Smallest size in the piece.
    pub from_bytes: u64,
    /// Largest size in the piece.
    pub to_bytes: u64,
    /// The fixed part, seconds.
    pub fixed_s: f64,
    /// 95 % interval of the fixed part.
    pub fixed_interval_s: (f64, f64),
    /// Seconds per byte.
    pub per_byte_s: f64,
    /// 95 % interval of the seconds per byte.
    pub per_byte_interval_s: (f64, f64),
    /// Largest relative deviation of a median from the line.
    pub worst_misfit: f64,
}

/// Sums of weighted least squares with the weights 1/y².
#[derive(Clone, Copy, Default)]
struct Sums {
    n: f64,
    w: f64,
    wx: f64,
    wxx: f64,
    wy: f64,
    wxy: f64,
}

impl Sums {
    fn add(&mut self, x: f64, y: f64) {
        let w = 1.0 / (y * y);
        self.n += 1.0;
        self.w += w;
        self.wx += w * x;
        self.wxx += w * x * x;
        self.wy += w * y;
        self.wxy += w * x * y;
    }

    /// Fixed part and slope, both at least 0.
    fn line(&self) -> (f64, f64) {
        let determinant = self.w * self.wxx - self.wx * self.wx;
        if determinant > 1e-12 * self.w * self.wxx {
            let slope = (self.w * self.wxy - self.wx * self.wy) / determinant;
            let fixed = (self.wy - slope * self.wx) / self.w;
            match (fixed >= 0.0, slope >= 0.0) {
                (true, true) => return (fixed, slope),
                (false, _) if self.wxx > 0.0 => return (0.0, self.wxy / self.wxx),
                _ => {}
            }
        }
        (self.wy / self.w, 0.0)
    }
}

fn fit(points: &[(f64, f64)]) -> (f64, f64) {
    let mut sums = Sums::default();
    points.iter().for_each(|&(x, y)| sums.add(x, y));
    sums.line()
}

fn misfit(points: &[(f64, f64)]) -> f64 {
    let (fixed, slope) = fit(points);
    points.iter().map(|&(x, y)| ((y - fixed - slope * x) / y).powi(2)).sum()
}

/// Fits pieces, with a break after each size of `switches` that leaves enough points on both sides.
///
/// Points whose median is not positive (a difference within the noise) are ignored.
pub fn pieces(points: &[Point], switches: &[u64], from_zero: u64) -> Vec<Piece> {
    let median = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_unstable_by(f64::total_cmp);
        crate::sample::quantile(&values, 0.5)
    };
    let kept: Vec<&Point> = points.iter().filter(|point| median(&point.values) > 0.0).collect();
    let x = |point: &Point| (point.bytes.saturating_sub(from_zero)) as f64;
    let xy: Vec<(f64, f64)> = kept.iter().map(|point| (x(point), median(&point.values))).collect();
    if xy.len() < MIN_POINTS {
        return Vec::new();
    }
    let mut forced: Vec<usize> = switches
        .iter()
        .map(|&switch| kept.iter().take_while(|point| point.bytes <= switch).count())
        .filter(|&at| at >= MIN_POINTS && xy.len() - at >= MIN_POINTS)
        .collect();
    forced.sort_unstable();
    forced.dedup();
    let ends = best_cuts(&xy, &forced);

    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut begin = 0;
    let mut pieces = Vec::new();
    for end in ends {
        let range = begin..end;
        let (fixed, slope) = fit(&xy[range.clone()]);
        let (mut fixeds, mut slopes) = (Vec::new(), Vec::new());
        for _ in 0..RESAMPLES {
            let resampled: Vec<(f64, f64)> = kept[range.clone()]
                .iter()
                .map(|point| {
                    let pick = |_| point.values[random.below(point.values.len())];
                    let values: Vec<f64> = (0..point.values.len()).map(pick).collect();
                    (x(point), median(&values))
                })
                .filter(|(_, y)| *y > 0.0)
                .collect();
            if resampled.len() >= 2 {
                let (fixed, slope) = fit(&resampled);
                fixeds.push(fixed);
                slopes.push(slope);
            }
        }
        let distance = |&(x, y): &(f64, f64)| ((y - fixed - slope * x) / y).abs();
        pieces.push(Piece {
            from_bytes: kept[begin].bytes,
            to_bytes: kept[end - 1].bytes,
            fixed_s: fixed,
            fixed_interval_s: interval(fixeds, fixed),
            per_byte_s: slope,
            per_byte_interval_s: interval(slopes, slope),
            worst_misfit: xy[range].iter().map(distance).fold(0.0, f64::max),
        });
        begin = end;
    }
    pieces
}

/// Ends (exclusive) of the pieces, including the last one.
fn best_cuts(xy: &[(f64, f64)], forced: &[usize]) -> Vec<usize> {
    let n = xy.len();
    // best[k][end]: least misfit of the first `end` points in k + 1 pieces, and the begin of the
    // last one.
    let crosses = |begin: usize, end: usize| forced.iter().any(|&cut| begin < cut && cut < end);
    let cost = |begin: usize, end: usize| match end - begin < MIN_POINTS || crosses(begin, end) {
        true => f64::INFINITY,
        false => misfit(&xy[begin..end]),
    };
    let mut best: Vec<Vec<(f64, usize)>> = vec![(0..=n).map(|end| (cost(0, end), 0)).collect()];
    for k in 1..MAX_PIECES.max(forced.len() + 1) {
        let row = (0..=n).map(|end| {
            let options = (0..end).map(|begin| (best[k - 1][begin].0 + cost(begin, end), begin));
            options.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, 0))
        });
        best.push(row.collect());
    }
    let score = |k: usize| {
        let parameters = 3 * (k + 1) - 1;
        let scatter = (best[k][n].0 / n as f64).max(FLOOR * FLOOR);
        n as f64 * scatter.ln() + parameters as f64 * (n as f64).ln()
    };
    let chosen = (0..best.len())
        .filter(|&k| best[k][n].0.is_finite())
        .min_by(|&a, &b| score(a).total_cmp(&score(b)));
    let Some(mut k) = chosen else { return vec![n] };
    let mut ends = vec![n];
    while k > 0 {
        ends.push(best[k][*ends.last().expect("there is at least one end")].1);
        k -= 1;
    }
    ends.reverse();
    ends
}

fn interval(mut values: Vec<f64>, otherwise: f64) -> (f64, f64) {
    if values.is_empty() {
        return (otherwise, otherwise);
    }
    values.sort_unstable_by(f64::total_cmp);
    (crate::sample::quantile(&values, 0.025), crate::sample::quantile(&values, 0.975))
}

/// Xorshift generator, which gives the same resamples in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eager: 1 µs + 0.2 ns per byte up to 4096; rendezvous: 3 µs + 0.1 ns per byte; ±1 % scatter.
    fn points() -> Vec<Point> {
        let time = |bytes: u64| match bytes <= 4096 {
            true => 1e-6 + 0.2e-9 * bytes as f64,
            false => 3e-6 + 0.1e-9 * bytes as f64,
        };
        let scatter = |i: u64| 1.0 + 0.01 * ((i * 7 % 11) as f64 / 5.0 - 1.0);
        let sizes = (0..23).map(|k| 1_u64 << k);
        let values = |bytes| (0..21).map(|i| time(bytes) * scatter(i)).collect();
        sizes.map(|bytes| Point { bytes, values: values(bytes) }).collect()
    }

    #[test]
    fn finds_unannounced_switch_and_both_lines() {
        let found = pieces(&points(), &[], 0);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].to_bytes, found[1].from_bytes), (4096, 8192));
        for (piece, fixed, per_byte) in [(&found[0], 1e-6, 0.2e-9), (&found[1], 3e-6, 0.1e-9)] {
            assert!((piece.fixed_s / fixed - 1.0).abs() < 0.02, "{piece:?}");
            assert!((piece.per_byte_s / per_byte - 1.0).abs() < 0.05, "{piece:?}");
            assert!(
                piece.fixed_interval_s.0 <= fixed && fixed <= piece.fixed_interval_s.1,
                "{piece:?}"
            );
        }
    }

    #[test]
    fn breaks_at_known_switch_even_if_data_do_not_show_it() {
        let straight = |bytes: u64| vec![1e-6 + 1e-9 * bytes as f64; 5];
        let points: Vec<Point> =
            (0..12).map(|k| Point { bytes: 1 << k, values: straight(1 << k) }).collect();
        assert_eq!(pieces(&points, &[], 0).len(), 1);
        let found = pieces(&points, &[64], 0);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].to_bytes, 64);
        // Too few points on one side, so no break there.
        assert_eq!(pieces(&points, &[1], 0).len(), 1);
    }

    #[test]
    fn lines_are_nonnegative_and_need_enough_points() {
        let falling: Vec<Point> = (0..6)
            .map(|k| Point { bytes: 1 << k, values: vec![2e-6 - 1e-9 * k as f64; 3] })
            .collect();
        let found = pieces(&falling, &[], 0);
        assert!(
            found.iter().all(|piece| piece.per_byte_s >= 0.0 && piece.fixed_s > 0.0),
            "{found:?}"
        );
        assert!(pieces(&falling[..2], &[], 0).is_empty());
    }
}
