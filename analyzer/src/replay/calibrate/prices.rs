//! The prices of latencies and bytes, within and between hosts, that best explain what calls took.

use nalgebra::{Matrix4, Vector4};

use super::sizes::Row;

/// The prices of the terms that best explain the rows. A latency within hosts is not longer than one
/// between them.
pub(super) fn prices(rows: &[Row]) -> [f64; 4] {
    let found = free_prices(rows);
    let uses_between = rows.iter().any(|row| row.terms[1] > 0.0);
    if !uses_between || found[0] <= found[1] {
        return found;
    }
    let merged = rows.iter().map(|row| {
        let [within, between, bytes_within, bytes_between] = row.terms;
        Row { terms: [0.0, within + between, bytes_within, bytes_between], ..*row }
    });
    let [_, latency, within, between] = free_prices(&merged.collect::<Vec<Row>>());
    [latency, latency, within, between]
}

/// The non-negative prices of the terms that best explain the rows, by relative error. What several
/// prices explain equally well goes to latencies, or, if all messages are large, to bytes.
fn free_prices(rows: &[Row]) -> [f64; 4] {
    let (mut squares, mut products, mut scales) = (Matrix4::zeros(), Vector4::zeros(), [0.0; 4]);
    for row in rows.iter().filter(|row| row.cost > 0.0) {
        let terms = Vector4::from(row.terms);
        let weight = row.count / row.cost.powi(2);
        squares += terms * terms.transpose() * weight;
        products += terms * (row.cost * weight);
    }
    for (number, scale) in scales.iter_mut().enumerate() {
        *scale = squares[(number, number)].sqrt();
    }
    let mut best = (0.0, [0.0; 4]);
    let mut subsets: Vec<u32> = (1..16).collect();
    if rows.iter().all(Row::is_large) {
        subsets.reverse();
    }
    // Few prices before many, and prices between hosts before those within: if it cannot be told which
    // level costs, the slower one does.
    subsets.sort_by_key(|subset| (subset.count_ones(), (subset & WITHIN).count_ones()));
    for subset in subsets {
        let is_in = |number: usize| subset >> number & 1 == 1;
        if (0..4).any(|number| is_in(number) && scales[number] <= 0.0) {
            continue;
        }
        let of = |row: usize, column: usize| match is_in(row) && is_in(column) {
            true => squares[(row, column)] / (scales[row] * scales[column]),
            false => f64::from(u8::from(row == column)),
        };
        let right = |row: usize| if is_in(row) { products[row] / scales[row] } else { 0.0 };
        let (matrix, right) = (Matrix4::from_fn(of), Vector4::from_fn(|row, _| right(row)));
        let solution = matrix.cholesky().filter(|_| matrix.determinant() > SINGULAR);
        let Some(found) = solution.map(|cholesky| cholesky.solve(&right)) else { continue };
        // Least squares explain the scalar product of solution and right side.
        let explained = found.dot(&right);
        if found.iter().all(|price| *price >= 0.0) && explained > best.0 * (1.0 + SAME) {
            let price = |number: usize| match is_in(number) {
                true => found[number] / scales[number],
                false => 0.0,
            };
            best = (explained, std::array::from_fn(price));
        }
    }
    best.1
}

/// The prices within hosts, as a set.
const WITHIN: u32 = 0b0101;

/// Smaller determinants of normalised equations mean that prices cannot be told apart.
const SINGULAR: f64 = 1e-9;

/// Explanations whose relative difference is smaller are equally good.
const SAME: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of messages with these latencies and bytes, whose costs follow from the prices.
    fn rows(prices: [f64; 4], terms: &[[f64; 4]]) -> Vec<Row> {
        let cost = |of: &[f64; 4]| of.iter().zip(prices).map(|(term, price)| term * price).sum();
        terms.iter().map(|of| Row { count: 10.0, terms: *of, cost: cost(of) }).collect()
    }

    fn assert_near(found: [f64; 4], expected: [f64; 4]) {
        let is_near = |(a, b): (f64, f64)| (a - b).abs() <= 1e-6 * b.abs().max(1e-12);
        assert!(found.into_iter().zip(expected).all(is_near), "{found:?} instead of {expected:?}");
    }

    #[test]
    fn prices_are_those_that_made_the_times() {
        let expected = [1e-6, 2e-5, 1e-10, 8e-9];
        let terms = [
            [10.0, 0.0, 80.0, 0.0],
            [10.0, 0.0, 1e6, 0.0],
            [0.0, 10.0, 0.0, 80.0],
            [0.0, 10.0, 0.0, 1e6],
            // A collective operation that crosses both.
            [30.0, 10.0, 1e4, 3e4],
        ];
        assert_near(prices(&rows(expected, &terms)), expected);
    }

    #[test]
    fn latency_within_hosts_is_at_most_that_between() {
        // Operations that cross both levels do not tell which of them costs.
        let both = [[20.0, 20.0, 160.0, 160.0], [10.0, 10.0, 80.0, 80.0]];
        assert_near(prices(&rows([1e-6, 3e-6, 0.0, 0.0], &both)), [0.0, 4e-6, 0.0, 0.0]);
        let found =
            prices(&rows([5e-6, 1e-6, 0.0, 0.0], &[[10.0, 0.0, 0.0, 0.0], [0.0, 10.0, 0.0, 0.0]]));
        assert!(found[0] > 0.0 && found[0] == found[1], "{found:?}");
    }

    #[test]
    fn messages_of_one_size_show_one_price() {
        // Small ones show a latency, large ones a time per byte; nothing shows the other hop.
        let small = rows([1e-6, 0.0, 0.0, 0.0], &[[10.0, 0.0, 80.0, 0.0]]);
        assert_near(prices(&small), [1e-6, 0.0, 0.0, 0.0]);
        let large = rows([0.0, 0.0, 1e-9, 0.0], &[[10.0, 0.0, 1e7, 0.0]]);
        assert_near(prices(&large), [0.0, 0.0, 1e-9, 0.0]);
        assert_eq!(prices(&[]), [0.0; 4]);
    }
}
