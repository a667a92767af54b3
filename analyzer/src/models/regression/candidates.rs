//! Tries supports of a weighted problem, fits each and judges it by AICc.
//!
//! Hundreds of neighbouring supports share all but one of their columns. So the common part is
//! orthogonalised once, and each neighbour costs only one more column.

use std::collections::HashMap;

use nalgebra::{DMatrix, DVector};

/// Mean square residuals below this are rounding.
const MIN_MEAN_SQUARE: f64 = 1e-18;
/// A column is linearly dependent on others when less than this share of it is orthogonal to them.
const DEPENDENT: f64 = 1e-10;

/// A support that was fitted, with all coefficients positive.
pub(super) struct Candidate {
    /// AICc; smaller is better.
    pub criterion: f64,
    /// Its columns, in the order of the coefficients.
    pub columns: Vec<usize>,
    /// One per column.
    pub coefficients: Vec<f64>,
}

/// Every support that was tried, by its sorted columns; `None` where the fit has a coefficient that
/// is not positive, because a smaller support then does as well.
pub(super) struct Candidates<'a> {
    f: &'a DMatrix<f64>,
    y: &'a DVector<f64>,
    largest: usize,
    found: HashMap<Vec<usize>, Option<Candidate>>,
    best: Option<(f64, Vec<usize>)>,
}

impl<'a> Candidates<'a> {
    /// Starts without candidates.
    pub fn new(f: &'a DMatrix<f64>, y: &'a DVector<f64>) -> Self {
        // AICc needs at least two more points than columns.
        let largest = f.nrows().saturating_sub(2).min(f.ncols()).max(1);
        Self { f, y, largest, found: HashMap::new(), best: None }
    }

    /// The best support so far, and its criterion.
    pub fn best(&self) -> Option<&(f64, Vec<usize>)> {
        self.best.as_ref()
    }

    /// All candidates, ordered by their columns.
    pub fn sorted(&self) -> Vec<(&Vec<usize>, &Candidate)> {
        let mut all: Vec<_> =
            self.found.iter().filter_map(|(key, c)| c.as_ref().map(|c| (key, c))).collect();
        all.sort_by(|a, b| a.0.cmp(b.0));
        all
    }

    /// Fits a support.
    pub fn try_support(&mut self, support: &[usize]) {
        if let Some((last, rest)) = support.split_last() {
            self.extend(rest, &[*last]);
        }
    }

    /// Fits all supports with one column added, dropped or exchanged.
    pub fn try_neighbours(&mut self, support: &[usize]) {
        let outside: Vec<usize> = (0..self.f.ncols()).filter(|j| !support.contains(j)).collect();
        self.extend(support, &outside);
        for position in 0..support.len() {
            let mut rest = support.to_vec();
            rest.remove(position);
            self.extend(&rest, &outside);
            self.try_support(&rest);
        }
    }

    fn extend(&mut self, support: &[usize], with: &[usize]) {
        if support.len() + 1 > self.largest {
            return;
        }
        let mut base = None;
        for &new in with {
            let mut key = [support, &[new]].concat();
            key.sort_unstable();
            if self.found.contains_key(&key) {
                continue;
            }
            let base = base.get_or_insert_with(|| Base::orthogonalised(self.f, self.y, support));
            let candidate = base.as_ref().and_then(|base| base.with(self.f, support, new));
            if let Some(found) = &candidate {
                let better = |(smallest, known): &(f64, Vec<usize>)| {
                    found.criterion < *smallest || (found.criterion == *smallest && key < *known)
                };
                if self.best.as_ref().is_none_or(better) {
                    self.best = Some((found.criterion, key.clone()));
                }
            }
            self.found.insert(key, candidate);
        }
    }
}

/// An orthogonalised support, F = Q·R, with the projection of y on it and the residual.
struct Base {
    q: Vec<DVector<f64>>,
    /// Column k of R: k + 1 entries.
    r: Vec<Vec<f64>>,
    rotated: Vec<f64>,
    residual: DVector<f64>,
}

/// A unit vector, and its original length.
type Direction = (DVector<f64>, f64);

impl Base {
    fn orthogonalised(f: &DMatrix<f64>, y: &DVector<f64>, support: &[usize]) -> Option<Self> {
        let mut base =
            Self { q: Vec::new(), r: Vec::new(), rotated: Vec::new(), residual: y.clone() };
        for &j in support {
            let (mut column, direction) = base.outside(f, j)?;
            let along = direction.0.dot(&base.residual);
            column.push(direction.1);
            base.r.push(column);
            base.rotated.push(along);
            base.residual.axpy(-along, &direction.0, 1.0);
            base.q.push(direction.0);
        }
        Some(base)
    }

    /// Splits a column into its components along the support, and the direction and length of the
    /// orthogonal rest.
    fn outside(&self, f: &DMatrix<f64>, j: usize) -> Option<(Vec<f64>, Direction)> {
        let mut rest = f.column(j).into_owned();
        let original = rest.norm();
        let mut along = vec![0.0; self.q.len()];
        // Orthogonalising twice is enough (Kahan; Parlett, The Symmetric Eigenvalue Problem,
        // section 6.9).
        for _ in 0..2 {
            for (sum, q) in along.iter_mut().zip(&self.q) {
                let part = q.dot(&rest);
                rest.axpy(-part, q, 1.0);
                *sum += part;
            }
        }
        let length = rest.norm();
        if length <= DEPENDENT * original {
            return None;
        }
        rest /= length;
        Some((along, (rest, length)))
    }

    /// The fit with one additional column.
    fn with(&self, f: &DMatrix<f64>, support: &[usize], new: usize) -> Option<Candidate> {
        let (along, (direction, length)) = self.outside(f, new)?;
        let part = direction.dot(&self.residual);
        let last = part / length;
        if last <= 0.0 {
            return None;
        }
        let mut coefficients: Vec<f64> =
            self.rotated.iter().zip(&along).map(|(y, h)| y - h * last).collect();
        for k in (0..coefficients.len()).rev() {
            coefficients[k] /= self.r[k][k];
            if coefficients[k] <= 0.0 {
                return None;
            }
            for i in 0..k {
                coefficients[i] -= self.r[k][i] * coefficients[k];
            }
        }
        coefficients.push(last);
        let n = f.nrows() as f64;
        let k = coefficients.len() as f64;
        let mut residual = self.residual.clone();
        residual.axpy(-part, &direction, 1.0);
        let squares = (residual.norm_squared() / n).max(MIN_MEAN_SQUARE);
        let criterion = n * squares.ln() + 2.0 * k + 2.0 * k * (k + 1.0) / (n - k - 1.0);
        Some(Candidate { criterion, columns: [support, &[new]].concat(), coefficients })
    }
}
