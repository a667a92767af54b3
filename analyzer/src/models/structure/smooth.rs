//! Sums of one or two non-negative terms through a few values, weighed by how well they fit.

/// Relative error of a value that no formula is asked to explain.
const NOISE: f64 = 0.01;

/// A formula that is tried: one or two columns, each with its value in every run and where it is asked.
pub(super) struct Tried<'c> {
    pub columns: Vec<&'c Column>,
    /// The runs do not tell it from another formula that is likelier: it only makes the estimate less certain.
    pub is_doubt: bool,
}

impl<'c> Tried<'c> {
    pub fn new(columns: Vec<&'c Column>) -> Self {
        Self { columns, is_doubt: false }
    }
}

/// Weight of a formula that is only a doubt.
const DOUBT: f64 = 0.25;

/// A quantity that is known in every run and where it is asked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub at_runs: Vec<f64>,
    pub asked: f64,
}

impl Column {
    pub fn new(p: &[f64], asked: f64, of: impl Fn(f64) -> f64) -> Self {
        Self { at_runs: p.iter().map(|p| of(*p)).collect(), asked: of(asked) }
    }

    /// Whether the runs do not tell it from another one.
    pub fn is_like(&self, other: &Self) -> bool {
        let ratios = || self.at_runs.iter().zip(&other.at_runs).map(|(own, other)| own / other);
        let first = ratios().next().unwrap_or(1.0);
        ratios().all(|ratio| (ratio / first - 1.0).abs() < 1e-6)
    }
}

/// A value with the standard deviation of its logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub value: f64,
    pub sd: f64,
    /// Relative residual of the formulas, weighed.
    pub residual: f64,
}

struct Fitted {
    value: f64,
    /// Of its relative error.
    sd: f64,
    residual: f64,
    score: f64,
}

/// What formulas say, weighed. Runs with `values` that are not positive do not count. `None` if there is
/// none.
pub(super) fn weighed(values: &[f64], tried: &[Tried]) -> Option<Estimate> {
    let found = |doubts: bool| {
        let tried = tried.iter().filter(move |tried| tried.is_doubt == doubts);
        tried.filter_map(|tried| fit(values, tried)).collect::<Vec<Fitted>>()
    };
    let (fitted, doubts) = (found(false), found(true));
    let best = fitted.iter().map(|of| of.score).fold(f64::INFINITY, f64::min);
    let (mut weights, mut mean, mut squares, mut inside, mut residual) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for of in &fitted {
        let weight = (-0.5 * (of.score - best)).exp();
        let log = of.value.ln();
        weights += weight;
        mean += weight * log;
        squares += weight * log * log;
        inside += weight * of.sd * of.sd;
        residual += weight * of.residual;
    }
    if weights <= 0.0 || !weights.is_finite() {
        return None;
    }
    let mean = mean / weights;
    let doubt = |of: &Fitted| {
        DOUBT * (-0.5 * (of.score - best)).exp() / weights * (of.value.ln() - mean).powi(2)
    };
    let between =
        (squares / weights - mean * mean).max(0.0) + doubts.iter().map(doubt).sum::<f64>();
    let sd = (between + inside / weights).sqrt();
    Some(Estimate { value: mean.exp(), sd, residual: residual / weights })
}

/// Least squares of relative errors with non-negative coefficients; `None` if a column is not used,
/// for then the formula without it is tried as well.
fn fit(values: &[f64], tried: &Tried) -> Option<Fitted> {
    let used: Vec<usize> = (0..values.len()).filter(|run| values[*run] > 0.0).collect();
    let (n, k) = (used.len(), tried.columns.len());
    if n < k || n == 0 {
        return None;
    }
    let of = |column: usize, run: usize| tried.columns[column].at_runs[run] / values[run];
    let sum = |term: &dyn Fn(usize) -> f64| used.iter().map(|run| term(*run)).sum::<f64>();
    let (mut factors, mut leverage) = ([0.0; 2], 0.0);
    let a = &tried.columns[0].asked;
    let aa = sum(&|run| of(0, run).powi(2));
    let ay = sum(&|run| of(0, run));
    if aa <= 0.0 {
        return None;
    }
    if k == 1 {
        factors[0] = ay / aa;
        leverage += a * a / aa;
    } else {
        let b = &tried.columns[1].asked;
        let (bb, ab) = (sum(&|run| of(1, run).powi(2)), sum(&|run| of(0, run) * of(1, run)));
        let by = sum(&|run| of(1, run));
        let determinant = aa * bb - ab * ab;
        if determinant <= 1e-6 * aa * bb {
            return None;
        }
        factors = [(ay * bb - by * ab) / determinant, (by * aa - ay * ab) / determinant];
        leverage += (a * a * bb - 2.0 * a * b * ab + b * b * aa) / determinant;
    }
    if factors[..k].iter().any(|factor| *factor <= 0.0) {
        return None;
    }
    let at = |column: usize, run: usize| factors[column] * of(column, run);
    let squares = sum(&|run| ((0..k).map(|column| at(column, run)).sum::<f64>() - 1.0).powi(2));
    let value: f64 = (0..k).map(|column| factors[column] * tried.columns[column].asked).sum();
    if !(value > 0.0 && value.is_finite()) {
        return None;
    }
    let mean = squares / n as f64;
    let freedom = (n - k).max(1) as f64;
    let noise = (squares / freedom).max(NOISE * NOISE);
    // Akaike's criterion, corrected for few values.
    let correction = match n > k + 2 {
        true => 2.0 * (k * (k + 1)) as f64 / (n - k - 1) as f64,
        false => 2.0 * (k * (k + 1)) as f64,
    };
    let score = n as f64 * (mean + NOISE * NOISE).ln() + 2.0 * k as f64 + 0.5 * correction;
    let sd = (noise * leverage).sqrt() / value;
    Some(Fitted { value, sd, residual: mean.sqrt(), score })
}

/// All formulas of one or two of these columns.
pub(super) fn up_to_two(columns: &[Column]) -> Vec<Tried<'_>> {
    let one = columns.iter().map(|column| Tried::new(vec![column]));
    let pairs = (0..columns.len()).flat_map(|of| (of + 1..columns.len()).map(move |to| (of, to)));
    let two = pairs.map(|(of, to)| Tried::new(vec![&columns[of], &columns[to]]));
    one.chain(two).collect()
}
