//! Functions of the rank count that counts and sizes follow.

/// A function of the rank count p and of the ranks on a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Term {
    /// In formulas.
    pub name: &'static str,
    pub at: fn(f64, f64) -> f64,
}

/// The two factors of p that lie nearest to each other, the larger first: the grid that
/// `MPI_Dims_create` makes in two dimensions.
fn grid(p: f64) -> (f64, f64) {
    let p = p.round().max(1.0) as u64;
    let mut smaller = p.isqrt();
    while !p.is_multiple_of(smaller) {
        smaller -= 1;
    }
    ((p / smaller) as f64, smaller as f64)
}

/// Steps of rounds that have one step more than the one before: merging in a bitonic sort.
fn triangle(rounds: f64) -> f64 {
    rounds * (rounds + 1.0) / 2.0
}

/// What each of the others gets where one rank serves them; all of it where there is only one rank.
pub(super) fn of_others(p: f64) -> f64 {
    1.0 / (p - 1.0).max(1.0)
}

/// The simplest first: of several laws that fit, the first one counts.
pub(super) const TERMS: [Term; 27] = [
    Term { name: "1", at: |_, _| 1.0 },
    Term { name: "p", at: |p, _| p },
    Term { name: "√p", at: |p, _| p.sqrt() },
    Term { name: "log₂p", at: |p, _| p.log2() },
    Term { name: "1/p", at: |p, _| 1.0 / p },
    Term { name: "1/√p", at: |p, _| 1.0 / p.sqrt() },
    Term { name: "1/(p − 1)", at: |p, _| of_others(p) },
    Term { name: "⌈log₂p⌉", at: |p, _| p.log2().ceil() },
    Term { name: "⌈log₂p⌉·(⌈log₂p⌉ + 1)/2", at: |p, _| triangle(p.log2().ceil()) },
    Term { name: "p²", at: |p, _| p * p },
    Term { name: "p²·log₂p", at: |p, _| p * p * p.log2() },
    Term { name: "p·log₂p", at: |p, _| p * p.log2() },
    Term { name: "log₂p/p", at: |p, _| p.log2() / p },
    Term { name: "p^(1/3)", at: |p, _| p.cbrt() },
    Term { name: "p^(-1/3)", at: |p, _| 1.0 / p.cbrt() },
    Term { name: "p^(-2/3)", at: |p, _| p.powf(-2.0 / 3.0) },
    Term { name: "p^(-4/3)", at: |p, _| p.powf(-4.0 / 3.0) },
    Term { name: "p^(-3/2)", at: |p, _| p.powf(-1.5) },
    Term { name: "1/p²", at: |p, _| 1.0 / (p * p) },
    Term { name: "d₀", at: |p, _| grid(p).0 },
    Term { name: "d₁", at: |p, _| grid(p).1 },
    Term { name: "1/d₀", at: |p, _| 1.0 / grid(p).0 },
    Term { name: "1/d₁", at: |p, _| 1.0 / grid(p).1 },
    Term { name: "1/(p·d₀)", at: |p, _| 1.0 / (p * grid(p).0) },
    Term { name: "1/(p·d₁)", at: |p, _| 1.0 / (p * grid(p).1) },
    Term { name: "min(p, C)", at: |p, c| p.min(c) },
    Term { name: "⌈p/C⌉", at: |p, c| (p / c).ceil() },
];

/// Functions of the problem size that counts, sizes and times follow, the simplest first: work in up to three
/// dimensions, faces and edges of it, trees.
pub(super) const SIZE_TERMS: [Term; 13] = [
    TERMS[0],
    Term { name: "N", at: |n, _| n },
    Term { name: "N²", at: |n, _| n * n },
    Term { name: "N³", at: |n, _| n * n * n },
    Term { name: "√N", at: |n, _| n.sqrt() },
    Term { name: "N^(3/2)", at: |n, _| n.powf(1.5) },
    Term { name: "log₂N", at: |n, _| n.log2() },
    Term { name: "N·log₂N", at: |n, _| n * n.log2() },
    Term { name: "N²·log₂N", at: |n, _| n * n * n.log2() },
    Term { name: "N^(1/3)", at: |n, _| n.cbrt() },
    Term { name: "N^(2/3)", at: |n, _| n.powf(2.0 / 3.0) },
    Term { name: "1/N", at: |n, _| 1.0 / n },
    Term { name: "⌈log₂N⌉", at: |n, _| n.log2().ceil() },
];
