//! Floating-point operations of dense linear algebra, computed from the sizes. The expressions in
//! `trace-format/compute/functions.txt` use these functions.
//!
//! Counts are those of the usual algorithms: LAPACK Working Note 41 for factorisations and solvers,
//! Golub and Van Loan for eigenvalues and singular values, whose iterations depend on the data. A
//! division counts as a multiplication; diagonals known to be 1 are included.

use std::ops::Add;

/// Multiplications and additions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operations {
    multiplications: f64,
    additions: f64,
    /// Whether they are already real operations, whatever the type.
    are_real: bool,
}

impl Add for Operations {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            multiplications: self.multiplications + other.multiplications,
            additions: self.additions + other.additions,
            are_real: self.are_real,
        }
    }
}

impl Operations {
    /// Real floating-point operations: a complex multiplication counts as 6, an addition as 2. 0
    /// for sizes that the library rejects.
    pub fn flops(self, complex: bool) -> f64 {
        let (of_one, of_other) = if complex && !self.are_real { (6.0, 2.0) } else { (1.0, 1.0) };
        let flops = of_one * self.multiplications + of_other * self.additions;
        if flops.is_finite() { flops.max(0.0) } else { 0.0 }
    }
}

pub fn pair(multiplications: f64, additions: f64) -> Operations {
    Operations { multiplications, additions, are_real: false }
}

pub fn real(multiplications: f64, additions: f64) -> Operations {
    Operations { multiplications, additions, are_real: true }
}

/// As many additions as multiplications.
pub fn each(number: f64) -> Operations {
    pair(number, number)
}

/// Order of the square matrix multiplied with an m × n matrix from one side.
pub fn order(side: u8, m: f64, n: f64) -> f64 {
    if side == b'L' { m } else { n }
}

/// A triangular matrix of order n applied to r vectors.
pub fn triangle(n: f64, r: f64) -> Operations {
    pair(r * n * (n + 1.0) / 2.0, r * n * (n - 1.0) / 2.0)
}

/// A triangular matrix with k diagonals beside the main one, applied to a vector.
pub fn triangle_band(n: f64, k: f64) -> Operations {
    let k = k.min((n - 1.0).max(0.0));
    let elements = n * (k + 1.0) - k * (k + 1.0) / 2.0;
    pair(elements, elements - n)
}

/// Elements of an m × n matrix with `below` diagonals below the main one and `above` above it.
pub fn band(m: f64, n: f64, below: f64, above: f64) -> f64 {
    // The corner beyond a diagonal has t columns (or rows), the first with d elements.
    let corner = |d: f64, most: f64| {
        let t = d.min(most).max(0.0);
        t * d - t * (t - 1.0) / 2.0
    };
    m * n - corner(m - below - 1.0, n) - corner(n - above - 1.0, m)
}

pub fn lu(m: f64, n: f64) -> Operations {
    let (long, short) = (m.max(n), m.min(n));
    let common = short * short * (long - short / 3.0);
    let multiplications = 0.5 * (common + short * (long - short)) + 2.0 * short / 3.0;
    pair(multiplications, 0.5 * (common - short * long) + short / 6.0)
}

pub fn lu_solve(n: f64, r: f64) -> Operations {
    pair(r * n * n, r * n * (n - 1.0))
}

pub fn lu_inverse(n: f64) -> Operations {
    let n3 = 2.0 * n * n * n / 3.0;
    pair(n3 + 0.5 * n * n + 5.0 * n / 6.0, n3 - 1.5 * n * n + 5.0 * n / 6.0)
}

pub fn cholesky(n: f64) -> Operations {
    let n3 = n * n * n / 6.0;
    pair(n3 + 0.5 * n * n + n / 3.0, n3 - n / 6.0)
}

pub fn cholesky_solve(n: f64, r: f64) -> Operations {
    pair(r * n * (n + 1.0), r * n * (n - 1.0))
}

pub fn cholesky_inverse(n: f64) -> Operations {
    let n3 = n * n * n / 3.0;
    pair(n3 + n * n + 2.0 * n / 3.0, n3 - 0.5 * n * n + n / 6.0)
}

pub fn triangular_inverse(n: f64) -> Operations {
    let n3 = n * n * n / 6.0;
    pair(n3 + 0.5 * n * n + n / 3.0, n3 - 0.5 * n * n + n / 3.0)
}

pub fn qr(m: f64, n: f64) -> Operations {
    if m > n {
        pair(
            n * (n * (0.5 - n / 3.0 + m) + m + 23.0 / 6.0),
            n * (n * (0.5 - n / 3.0 + m) + 5.0 / 6.0),
        )
    } else {
        pair(
            m * (m * (-0.5 - m / 3.0 + n) + 2.0 * n + 23.0 / 6.0),
            m * (m * (-0.5 - m / 3.0 + n) + n + 5.0 / 6.0),
        )
    }
}

/// The first n columns of an m × m orthogonal matrix from k reflectors: 4mnk − 2(m+n)k² + 4k³/3.
pub fn make_q(m: f64, n: f64, k: f64) -> Operations {
    each(2.0 * m * n * k - (m + n) * k * k + 2.0 * k * k * k / 3.0)
}

/// k reflectors applied to an m × n matrix: 4mnk minus 2k² times the other side.
pub fn apply_q(side: u8, m: f64, n: f64, k: f64) -> Operations {
    let (along, across) = if side == b'L' { (m, n) } else { (n, m) };
    each(across * k * (2.0 * along - k))
}

pub fn least_squares(m: f64, n: f64, r: f64) -> Operations {
    let (long, short) = (m.max(n), m.min(n));
    qr(long, short) + apply_q(b'L', long, r, short) + triangle(short, r)
}

/// Values alone: 4n³/3. With vectors: a multiple of n³ that depends on the algorithm.
pub fn eigen_symmetric(jobz: u8, n: f64, with_vectors: f64) -> Operations {
    let factor = if jobz == b'V' { with_vectors } else { 4.0 / 3.0 };
    each(factor * n * n * n / 2.0)
}

/// Values alone: 10n³. With vectors: 25n³.
pub fn eigen_general(left: u8, right: u8, n: f64) -> Operations {
    let vectors = left == b'V' || right == b'V';
    each(if vectors { 25.0 } else { 10.0 } * n * n * n / 2.0)
}

/// Values alone: 4mn² − 4n³/3. With vectors: 14mn² + 8n³ or 6mn² + 20n³, whichever is less (m ≥ n).
pub fn singular_values(left: u8, right: u8, m: f64, n: f64) -> Operations {
    let (long, short) = (m.max(n), m.min(n));
    let (ln2, n3) = (long * short * short, short * short * short);
    let flops = match (left, right) {
        (b'N', b'N') => 4.0 * ln2 - 4.0 * n3 / 3.0,
        _ => (14.0 * ln2 + 8.0 * n3).min(6.0 * ln2 + 20.0 * n3),
    };
    each(flops / 2.0)
}
