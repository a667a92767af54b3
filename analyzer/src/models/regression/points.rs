//! The points to fit, the matrix of basis functions at them, and which columns that matrix can tell
//! apart.

use nalgebra::DMatrix;

use crate::models::evidence::Computation;
use crate::models::observations::LackOfCores;

use super::basis::Basis;
use super::error::RegressionError;

/// Singular values below this share of the largest count as zero; columns are scaled first.
const RANK_TOLERANCE: f64 = 1e-9;
/// A column takes part in a linear dependence when more than this share of it does.
const PARTICIPATION: f64 = 1e-6;

/// Measured times at values of variables.
#[derive(Debug, Clone, Default)]
pub struct Points {
    /// Names of the variables.
    pub variables: Vec<String>,
    /// Constants of the expressions.
    pub constants: Vec<(String, f64)>,
    /// One entry per point, with values in the order of the variables.
    pub values: Vec<Vec<f64>>,
    /// Minimum of the repetitions of each point, seconds; empty for points to predict.
    pub times: Vec<f64>,
    /// Where each point comes from, for error messages.
    pub locations: Vec<String>,
    /// By how much the minima of the repetitions lie above the undisturbed times; `None` without
    /// repetitions.
    pub excess: Option<Excess>,
    /// Computation of the ranks at each point; empty unless known for all.
    pub computations: Vec<Computation>,
    /// How the ranks of each point lacked cores, where they did; empty: of none.
    pub lacks: Vec<Option<LackOfCores>>,
}

/// By how much the smallest of several times exceeds the undisturbed time, relative to it. The
/// undisturbed time is a lower bound of all times.
///
/// The smallest of n times exceeds that bound by E, and the next by E + D, where mean E : mean D =
/// (n − 1) : n if the density of the times at the bound is neither 0 nor infinite (normalised
/// spacings, Rényi 1953).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Excess {
    /// Mean over the points.
    pub mean: f64,
    /// Number of points with repetitions.
    pub points: usize,
}

impl Excess {
    /// Estimates it from the repetitions of each point, seconds. Points with fewer than two are
    /// ignored.
    pub fn from_repetitions<'a>(repetitions: impl IntoIterator<Item = &'a [f64]>) -> Option<Self> {
        let (mut sum, mut points) = (0.0, 0);
        for times in repetitions {
            let mut times = times.to_vec();
            times.sort_by(f64::total_cmp);
            if let [first, second, ..] = times[..] {
                let n = times.len() as f64;
                sum += (second - first) / first * (n - 1.0) / n;
                points += 1;
            }
        }
        (points > 0).then(|| Self { mean: sum / points as f64, points })
    }
}

impl Points {
    /// Number of points.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Some of the points.
    pub fn select(&self, indices: &[usize]) -> Self {
        Self {
            variables: self.variables.clone(),
            constants: self.constants.clone(),
            values: indices.iter().map(|&i| self.values[i].clone()).collect(),
            times: match self.times.is_empty() {
                true => Vec::new(),
                false => indices.iter().map(|&i| self.times[i]).collect(),
            },
            locations: indices.iter().map(|&i| self.locations[i].clone()).collect(),
            excess: self.excess,
            computations: match self.computations.is_empty() {
                true => Vec::new(),
                false => indices.iter().map(|&i| self.computations[i]).collect(),
            },
            lacks: match self.lacks.is_empty() {
                true => Vec::new(),
                false => indices.iter().map(|&i| self.lacks[i]).collect(),
            },
        }
    }

    /// The same points in a canonical order, so that no result depends on the order of the rows.
    pub fn sorted(&self) -> Self {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by(|&i, &j| {
            let by_values = self.values[i].iter().zip(&self.values[j]);
            by_values.map(|(a, b)| a.total_cmp(b)).find(|o| o.is_ne()).unwrap_or_else(|| match self
                .times
                .is_empty()
            {
                true => std::cmp::Ordering::Equal,
                false => self.times[i].total_cmp(&self.times[j]),
            })
        });
        self.select(&order)
    }

    /// The value of a variable or constant at a point.
    pub fn value(&self, point: usize, name: &str) -> Option<f64> {
        let constant = || self.constants.iter().find(|(other, _)| other == name).map(|(_, v)| *v);
        let index = self.variables.iter().position(|other| other == name);
        index.map(|index| self.values[point][index]).or_else(constant)
    }

    /// Basis functions at the points: points × columns.
    ///
    /// # Errors
    /// A name is neither variable nor constant, or a function has no value at a point.
    pub fn matrix(&self, basis: &Basis) -> Result<DMatrix<f64>, RegressionError> {
        let names: Vec<&str> = self
            .variables
            .iter()
            .map(String::as_str)
            .chain(self.constants.iter().map(|(name, _)| name.as_str()))
            .collect();
        for column in &basis.columns {
            column.check_names(&names).map_err(|source| {
                let name = match &source {
                    crate::models::expression::ExpressionError::UnknownName { name, .. } => {
                        name.clone()
                    }
                    _ => String::new(),
                };
                RegressionError::UnknownName { source, name }
            })?;
        }
        let mut matrix = DMatrix::zeros(self.len(), basis.columns.len());
        for (j, column) in basis.columns.iter().enumerate() {
            for i in 0..self.len() {
                matrix[(i, j)] =
                    column.evaluate(&|name| self.value(i, name)).map_err(|source| {
                        RegressionError::NoValue { location: self.locations[i].clone(), source }
                    })?;
            }
        }
        Ok(matrix)
    }
}

/// Which columns a matrix of basis functions can tell apart.
#[derive(Debug, Clone)]
pub struct Identifiability {
    /// Numerical rank of the scaled matrix.
    pub rank: usize,
    /// Ratio of the largest to the smallest singular value that is not zero.
    pub condition: f64,
    /// Groups of columns that are linearly dependent on these points.
    pub groups: Vec<Vec<usize>>,
    /// Orthonormal basis of the dependences, columns × directions, for scaled columns.
    null_space: DMatrix<f64>,
    scales: Vec<f64>,
}

impl Identifiability {
    /// Analyses a matrix of points × columns. Rows are divided by the times, so that small runs
    /// count.
    pub fn analyse(matrix: &DMatrix<f64>, times: &[f64]) -> Self {
        let (rows, columns) = matrix.shape();
        let mut scaled = matrix.clone();
        for (mut row, time) in scaled.row_iter_mut().zip(times) {
            row /= *time;
        }
        let mut scales = Vec::new();
        for mut column in scaled.column_iter_mut() {
            let length = column.norm();
            let length = if length > 0.0 { length } else { 1.0 };
            column /= length;
            scales.push(length);
        }
        // Padding with zero rows makes the decomposition return all right singular vectors.
        let square = scaled.resize_vertically(rows.max(columns), 0.0);
        let svd = square.svd(false, true);
        let values = &svd.singular_values;
        let largest = values.max();
        let zero: Vec<usize> =
            (0..columns).filter(|&k| values[k] <= RANK_TOLERANCE * largest).collect();
        let smallest = values
            .iter()
            .copied()
            .filter(|value| *value > RANK_TOLERANCE * largest)
            .fold(largest, f64::min);
        let null_space = match &svd.v_t {
            Some(v_t) => v_t.select_rows(&zero).transpose(),
            None => DMatrix::zeros(columns, 0),
        };
        Self {
            rank: columns - zero.len(),
            condition: largest / smallest,
            groups: groups(&null_space),
            null_space,
            scales,
        }
    }

    /// How far the data leave the model's value undecided at a row of basis functions: 0 where they
    /// decide it, 1 where only the rule for choosing among equal models does.
    pub fn undecided(&self, row: &[f64]) -> f64 {
        let scaled: Vec<f64> = row.iter().zip(&self.scales).map(|(f, s)| f / s).collect();
        let row = nalgebra::DVector::from_vec(scaled);
        match row.norm() {
            0.0 => 0.0,
            length => self.null_space.tr_mul(&row).norm() / length,
        }
    }
}

/// Columns joined by dependences: connected components of the projector on the null space.
fn groups(null_space: &DMatrix<f64>) -> Vec<Vec<usize>> {
    let columns = null_space.nrows();
    let projector = null_space * null_space.transpose();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut seen = vec![false; columns];
    for first in 0..columns {
        if seen[first] || projector[(first, first)] <= PARTICIPATION {
            continue;
        }
        let mut group = Vec::new();
        let mut open = vec![first];
        seen[first] = true;
        while let Some(j) = open.pop() {
            group.push(j);
            for k in 0..columns {
                if !seen[k] && projector[(j, k)].abs() > PARTICIPATION {
                    seen[k] = true;
                    open.push(k);
                }
            }
        }
        group.sort_unstable();
        groups.push(group);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_comes_from_the_two_smallest_times_of_each_point() {
        let excess = |repetitions: &[&[f64]]| Excess::from_repetitions(repetitions.iter().copied());
        assert_eq!(excess(&[&[3.0], &[7.0]]), None, "nothing was repeated");
        let found = excess(&[&[5.0, 2.0, 2.2, 9.0], &[1.0], &[4.0, 4.4]]).unwrap();
        // 0.1·3/4 and 0.1·1/2.
        assert!((found.mean - 0.0625).abs() < 1e-12 && found.points == 2, "{found:?}");
    }
}
