//! Four lengths: of a lattice or a part, or numbers of ranks in each dimension.

use serde::Serialize;

/// Four lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shape(pub [usize; 4]);

impl Shape {
    /// Their product.
    pub fn volume(self) -> usize {
        self.0.iter().product()
    }

    /// `16x16x16x16`.
    pub fn text(self) -> String {
        self.0.map(|length| length.to_string()).join("x")
    }

    /// Index of a site with these coordinates, the first dimension varying slowest.
    pub fn index(self, at: [usize; 4]) -> usize {
        at.iter().zip(self.0).fold(0, |index, (at, length)| index * length + at)
    }

    /// Coordinates of the site with this index.
    pub fn at(self, index: usize) -> [usize; 4] {
        let mut rest = index;
        let mut at = [0; 4];
        for dimension in (0..4).rev() {
            at[dimension] = rest % self.0[dimension];
            rest /= self.0[dimension];
        }
        at
    }
}

/// Parses `16x16x16x16`.
pub fn shape(text: &str) -> Result<Shape, String> {
    let lengths: Vec<usize> = text.split('x').filter_map(|word| word.parse().ok()).collect();
    match <[usize; 4]>::try_from(lengths) {
        Ok(lengths)
            if text.split('x').count() == 4 && lengths.iter().all(|l| (1..=1024).contains(l)) =>
        {
            Ok(Shape(lengths))
        }
        _ => Err("four numbers from 1 to 1024, such as 16x16x16x16".into()),
    }
}

/// The most even split into exactly `dimensions` dimensions, larger factors first.
pub fn most_even(ranks: usize, dimensions: usize, fits: impl Fn(Shape) -> bool) -> Option<Shape> {
    let mut best: Option<Shape> = None;
    let mut consider = |lengths: [usize; 4]| {
        let split = Shape(lengths);
        let used = lengths.iter().filter(|length| **length > 1).count();
        let descending = lengths.windows(2).all(|pair| pair[0] >= pair[1]);
        if used == dimensions && descending && fits(split) {
            let sum = |shape: Shape| shape.0.iter().sum::<usize>();
            if best.is_none_or(|best| sum(split) < sum(best)) {
                best = Some(split);
            }
        }
    };
    let divisors = |n: usize| (1..=n).filter(move |d| n.is_multiple_of(*d));
    for a in divisors(ranks) {
        for b in divisors(ranks / a) {
            for c in divisors(ranks / a / b) {
                consider([a, b, c, ranks / a / b / c]);
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_splits_of_16_ranks_are_the_most_even() {
        let found: Vec<String> =
            (1..=4).filter_map(|d| most_even(16, d, |_| true)).map(Shape::text).collect();
        assert_eq!(found, ["16x1x1x1", "4x4x1x1", "4x2x2x1", "2x2x2x2"]);
        assert_eq!(most_even(6, 2, |_| true).map(Shape::text).as_deref(), Some("3x2x1x1"));
        assert_eq!(most_even(6, 3, |_| true), None);
    }

    #[test]
    fn indices_and_coordinates_correspond() {
        let lattice = Shape([2, 3, 4, 5]);
        for index in 0..lattice.volume() {
            assert_eq!(lattice.index(lattice.at(index)), index);
        }
        assert!(
            shape("16x16x16").is_err() && shape("0x1x1x1").is_err() && shape("2x2x2x2x").is_err()
        );
    }
}
