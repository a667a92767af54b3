//! Splits a table into series, one for each combination of parameters: points over the rank count,
//! and how the work grows with it.
//!
//! Repetitions become one point: the run with the smallest τ, with the spread of all.

use crate::models::expression::Expression;
use crate::models::observations::{
    CHI_MAX_S, CHI_MIN_S, FLOPS, GAMMA_THREADS, LackOfCores, Observations, P, RankTimes,
    Repetitions, SUM_GAMMA_S, Spread, TAU_S,
};

use super::error::ScalingError;

/// How the work W grows with p.
#[derive(Debug, Clone)]
pub enum Work {
    /// Not at all: strong scaling. The text gives the reason.
    Constant(&'static str),
    /// As an expression given by the user.
    Expression(Expression),
    /// Like the counted floating-point operations: weak scaling.
    Flops,
}

impl Work {
    /// Whether the work is the same at every rank count.
    pub fn is_constant(&self) -> bool {
        match self {
            Self::Constant(_) => true,
            Self::Expression(expression) => expression.names().is_empty(),
            Self::Flops => false,
        }
    }
}

/// The runs at one rank count: figures of the fastest, and the spread of all.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Rank count.
    pub p: u32,
    /// τ of the fastest run, seconds.
    pub tau_s: f64,
    /// τ over the repetitions, seconds.
    pub spread: Spread,
    /// Standard deviation of τ over the repetitions, relative to their mean; `None` for one run.
    pub relative_sd: Option<f64>,
    /// Σγ of the fastest run, seconds; per thread where it sums over threads.
    pub sum_gamma_s: Option<f64>,
    /// Smallest and largest χ_i of the fastest run, seconds.
    pub chi_range_s: Option<(f64, f64)>,
    /// Floating-point operations of the fastest run.
    pub flops: Option<f64>,
    /// W, in the unit in which the work is given; 1 in strong scaling.
    pub work: f64,
    /// Ranks of the fastest run; empty where not recorded.
    pub ranks: Vec<RankTimes>,
    /// How the ranks of the fastest run lacked cores.
    pub lack: Option<LackOfCores>,
}

impl Point {
    /// χ, the mean overhead time, seconds.
    pub fn chi_s(&self) -> Option<f64> {
        self.sum_gamma_s.map(|sum| self.tau_s - sum / f64::from(self.p))
    }

    /// ε_p = Σγ/(p·τ).
    pub fn parallel_efficiency(&self) -> Option<f64> {
        self.sum_gamma_s.map(|sum| sum / (f64::from(self.p) * self.tau_s))
    }
}

/// The points of one combination of parameters, ascending in p.
#[derive(Debug, Clone)]
pub struct Series {
    /// Parameters that distinguish it from other series, and those that are the same everywhere.
    pub params: Vec<(String, String)>,
    /// At least one; rank counts differ.
    pub points: Vec<Point>,
    /// How the work grows.
    pub work: Work,
}

impl Series {
    /// W at a rank count that was not measured; `None` where the data do not determine it.
    pub fn work_at(&self, p: f64) -> Option<f64> {
        match &self.work {
            Work::Constant(_) => return Some(1.0),
            Work::Expression(expression) => {
                let value_of = |name: &str| match name {
                    P => Some(p),
                    _ => {
                        let param = self.params.iter().find(|(other, _)| other == name);
                        param.and_then(|(_, value)| value.parse().ok())
                    }
                };
                if let Ok(work) = expression.evaluate(&value_of) {
                    return Some(work);
                }
            }
            Work::Flops => {}
        }
        let share = |point: &Point| point.work / f64::from(point.p);
        let (first, last) = (share(self.points.first()?), share(self.points.last()?));
        let proportional =
            self.points.iter().all(|point| (share(point) / first - 1.0).abs() < 0.02);
        proportional.then_some(last * p)
    }
}

/// Splits a table into series.
///
/// # Errors
/// A column is missing or holds invalid values, rows cannot be distinguished, it is unclear whether
/// scaling is strong or weak, or the work cannot be evaluated.
pub(super) fn series(
    table: &Observations,
    work: Option<&Expression>,
) -> Result<Vec<Series>, ScalingError> {
    let columns = Columns::read(table)?;
    let parameters = table.parameters();
    let of_work: Vec<&str> = work.map_or(Vec::new(), Expression::names);
    if let Some(work) = work {
        let known: Vec<&str> =
            [P].into_iter().chain(parameters.iter().copied()).chain(columns.flops_name()).collect();
        work.check_names(&known)?;
    }
    let following: Vec<&str> = parameters
        .iter()
        .copied()
        .filter(|name| of_work.contains(name) || follows_p(table, name))
        .collect();
    let distinguishing: Vec<&str> =
        parameters.iter().copied().filter(|name| !following.contains(name)).collect();
    // Parameters that follow p also distinguish series, unless the work is given or every series
    // would be left with one rank count.
    let one_rank_count =
        |groups: &[Repetitions]| groups.iter().all(|group| columns.rank_counts(group) < 2);
    let many_p = columns.rank_counts(&Repetitions { key: Vec::new(), rows: all_rows(table) }) > 1;
    let by_all = table.groups(&parameters)?;
    let merge = work.is_some() || (many_p && !following.is_empty() && one_rank_count(&by_all));
    let keys = if merge { distinguishing } else { parameters };
    let groups = table.groups(&keys)?;
    let mut all = Vec::with_capacity(groups.len());
    for group in &groups {
        let grown = match work {
            Some(expression) => Work::Expression(expression.clone()),
            None if merge => columns.work_by_flops(table, group, &following)?,
            None => Work::Constant("the parameters are the same at every rank count"),
        };
        let params = keys.iter().map(|name| (*name).to_owned()).zip(group.key.clone()).collect();
        let points = columns.points(table, group, &keys, &grown)?;
        all.push(Series { params, points, work: grown });
    }
    all.sort_by(|a, b| by_value(&a.params, &b.params));
    Ok(all)
}

fn all_rows(table: &Observations) -> Vec<usize> {
    (0..table.rows().len()).collect()
}

/// Whether a parameter has one value at each rank count, but not the same value everywhere.
fn follows_p(table: &Observations, name: &str) -> bool {
    let count = |keys: &[&str]| table.groups(keys).map_or(0, |groups| groups.len());
    count(&[P, name]) == count(&[P]) && count(&[name]) > 1
}

fn by_value(a: &[(String, String)], b: &[(String, String)]) -> std::cmp::Ordering {
    for ((_, a), (_, b)) in a.iter().zip(b) {
        let order = match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(a), Ok(b)) => a.total_cmp(&b),
            _ => a.cmp(b),
        };
        if order.is_ne() {
            return order;
        }
    }
    std::cmp::Ordering::Equal
}

/// The figures of the table, one entry per row.
struct Columns {
    p: Vec<u32>,
    tau_s: Vec<f64>,
    sum_gamma_s: Vec<Option<f64>>,
    chi_min_s: Option<Vec<Option<f64>>>,
    chi_max_s: Option<Vec<Option<f64>>>,
    flops: Option<Vec<Option<f64>>>,
}

impl Columns {
    fn read(table: &Observations) -> Result<Self, ScalingError> {
        let optional = |name: &str| table.has(name).then(|| table.known_numbers(name)).transpose();
        let (p, tau_s) = (table.counts(P)?, table.positive_numbers(TAU_S)?);
        let mut sum_gamma_s = table.known_numbers(SUM_GAMMA_S)?;
        for (row, sum) in sum_gamma_s.iter().enumerate() {
            let Some(sum) = sum else { continue };
            let wrong = |what: &str| {
                let cell = sum.to_string();
                table.cell_error(&table.rows()[row], SUM_GAMMA_S, &cell, what)
            };
            if *sum <= 0.0 {
                return Err(wrong("is not above 0").into());
            }
            let threads = table.has(GAMMA_THREADS).then(|| table.numbers(GAMMA_THREADS));
            let threads = threads.transpose()?.map_or(1.0, |threads| threads[row]);
            if *sum > f64::from(p[row]) * tau_s[row] * threads * 1.000_001 {
                return Err(wrong(
                    "is more than p·tau_s, more than there was time: it is the sum over the ranks \
                     of their computation time",
                )
                .into());
            }
        }
        if table.has(GAMMA_THREADS) {
            let threads = table.counts(GAMMA_THREADS)?;
            for (sum, threads) in sum_gamma_s.iter_mut().zip(threads) {
                *sum = sum.map(|sum| sum / f64::from(threads));
            }
        }
        Ok(Self {
            p,
            tau_s,
            sum_gamma_s,
            chi_min_s: optional(CHI_MIN_S)?,
            chi_max_s: optional(CHI_MAX_S)?,
            flops: optional(FLOPS)?,
        })
    }

    fn flops_name(&self) -> Option<&'static str> {
        let all = self.flops.as_ref().is_some_and(|flops| flops.iter().all(Option::is_some));
        all.then_some(FLOPS)
    }

    fn rank_counts(&self, group: &Repetitions) -> usize {
        let mut counts: Vec<u32> = group.rows.iter().map(|row| self.p[*row]).collect();
        counts.sort_unstable();
        counts.dedup();
        counts.len()
    }

    /// Decides between strong and weak scaling by the counted operations.
    fn work_by_flops(
        &self,
        table: &Observations,
        group: &Repetitions,
        following: &[&str],
    ) -> Result<Work, ScalingError> {
        let counted: Option<Vec<f64>> = self
            .flops
            .as_ref()
            .and_then(|flops| group.rows.iter().map(|row| flops[*row]).collect());
        let unclear = || ScalingError::Unclear {
            source_name: table.source().to_owned(),
            params: following.join(", "),
        };
        let spread = Spread::from_values(
            &counted.filter(|all| all.iter().all(|f| *f > 0.0)).ok_or_else(unclear)?,
        );
        match spread.relative() < 0.05 {
            true => Ok(Work::Constant("the counted operations are the same at every rank count")),
            false => Ok(Work::Flops),
        }
    }

    fn points(
        &self,
        table: &Observations,
        group: &Repetitions,
        keys: &[&str],
        work: &Work,
    ) -> Result<Vec<Point>, ScalingError> {
        let rows = table.select(&group.rows);
        let mut by_p: Vec<&str> = vec![P];
        by_p.extend(keys);
        let mut points = Vec::new();
        for repetitions in rows.repetitions(&by_p)? {
            // Map indices within the group to indices in the table.
            let rows = repetitions.rows.iter().map(|row| group.rows[*row]).collect();
            let repetitions = Repetitions { rows, ..repetitions };
            let fastest = repetitions.smallest(&self.tau_s);
            let of = |column: &Option<Vec<Option<f64>>>| column.as_ref().and_then(|c| c[fastest]);
            points.push(Point {
                p: self.p[fastest],
                tau_s: self.tau_s[fastest],
                spread: repetitions.spread(&self.tau_s),
                relative_sd: relative_sd(repetitions.rows.iter().map(|row| self.tau_s[*row])),
                sum_gamma_s: self.sum_gamma_s[fastest],
                chi_range_s: of(&self.chi_min_s).zip(of(&self.chi_max_s)),
                flops: of(&self.flops),
                work: self.work(table, fastest, work)?,
                ranks: table.rows()[fastest].ranks.clone(),
                lack: table.rows()[fastest].lack,
            });
        }
        points.sort_by_key(|point| point.p);
        Ok(points)
    }

    fn work(&self, table: &Observations, row: usize, work: &Work) -> Result<f64, ScalingError> {
        let flops = || self.flops.as_ref().and_then(|flops| flops[row]);
        let value = match work {
            Work::Constant(_) => 1.0,
            Work::Flops => flops().unwrap_or(f64::NAN),
            Work::Expression(expression) => {
                let mut values: Vec<(&str, f64)> = Vec::new();
                for name in expression.names() {
                    let value = match name {
                        P => f64::from(self.p[row]),
                        FLOPS => flops().unwrap_or(f64::NAN),
                        _ => table.select(&[row]).numbers(name)?[0],
                    };
                    values.push((name, value));
                }
                let value_of =
                    |name: &str| values.iter().find(|(other, _)| *other == name).map(|(_, v)| *v);
                expression.evaluate(&value_of)?
            }
        };
        match value > 0.0 && value.is_finite() {
            true => Ok(value),
            false => Err(ScalingError::NoWork { location: table.location(row), value }),
        }
    }
}

fn relative_sd(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|value| (value / mean - 1.0).powi(2)).sum::<f64>();
    (values.len() > 1).then(|| (square / (n - 1.0)).sqrt())
}
