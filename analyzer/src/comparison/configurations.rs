//! Sides with several configurations, such as studies: which runs of both belong together.

use std::cmp::Ordering;

use super::basis::Basis;
use super::compared::Comparison;
use super::record::RunRecord;
use super::statistics::{ALPHA, discoveries};
use super::subject::{Difference, Mixed};

/// The runs of both sides with the same rank count and parameters; one side may have none.
#[derive(Debug, Default)]
pub struct Configuration {
    /// Runs before the change.
    pub before: Vec<RunRecord>,
    pub after: Vec<RunRecord>,
}

impl Configuration {
    pub fn first(&self) -> Option<&RunRecord> {
        self.before.first().or(self.after.first())
    }
}

/// Whether two configurations of one program are told apart by what a user chose.
fn is_other(what: &[Difference]) -> bool {
    let chosen = [Difference::Ranks, Difference::Parameters];
    !what.contains(&Difference::Program) && what.iter().any(|one| chosen.contains(one))
}

/// Groups the runs of a side by configuration, by rank count and parameters.
///
/// # Errors
/// Two runs that differ in another way: on another machine, of another program, recorded
/// differently.
pub fn split(runs: Vec<RunRecord>) -> Result<Vec<Vec<RunRecord>>, Mixed> {
    let mut groups: Vec<Vec<RunRecord>> = Vec::new();
    for run in runs {
        match groups.iter_mut().find(|group| group[0].is_alike(&run)) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    for (at, group) in groups.iter().enumerate() {
        for other in &groups[at + 1..] {
            let what = group[0].differences(&other[0]);
            if !is_other(&what) {
                return Err(Mixed::new(&group[0], &other[0], what));
            }
        }
    }
    groups.sort_by(|a, b| order(&a[0], &b[0]));
    Ok(groups)
}

/// Pairs the configurations of both sides, in ascending order.
pub fn pair(before: Vec<Vec<RunRecord>>, after: Vec<Vec<RunRecord>>) -> Vec<Configuration> {
    let alone = |before| Configuration { before, after: Vec::new() };
    let mut all: Vec<Configuration> = before.into_iter().map(alone).collect();
    for after in after {
        let is_same = |of: &&mut Configuration| {
            of.after.is_empty() && {
                let what = of.before[0].differences(&after[0]);
                !what.contains(&Difference::Program) && !is_other(&what)
            }
        };
        match all.iter_mut().find(is_same) {
            Some(configuration) => configuration.after = after,
            None => all.push(Configuration { before: Vec::new(), after }),
        }
    }
    all.sort_by(|a, b| match (a.first(), b.first()) {
        (Some(a), Some(b)) => order(a, b),
        _ => Ordering::Equal,
    });
    all
}

/// Orders by rank count, then by parameters, numbers by their size.
fn order(one: &RunRecord, other: &RunRecord) -> Ordering {
    let values = |of: &RunRecord| -> Vec<String> {
        let params: Vec<String> = of.work().map(|(_, value)| value.clone()).collect();
        if params.is_empty() { of.arguments.clone() } else { params }
    };
    let compare = |(a, b): (&String, &String)| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => x.total_cmp(&y),
        _ => a.cmp(b),
    };
    let (a, b) = (values(one), values(other));
    let mut by_values = a.iter().zip(&b).map(compare);
    let by_values = by_values.find(|order| order.is_ne()).unwrap_or(a.len().cmp(&b.len()));
    one.ranks.cmp(&other.ranks).then(by_values)
}

/// Which of several comparisons differ with certainty, considering how many there are.
pub fn certain(of: &[Comparison]) -> Vec<bool> {
    let p_values: Vec<f64> = of
        .iter()
        .map(|one| match one.basis {
            Basis::Scatter => one.decisive().p,
            Basis::Counts => 0.0,
            Basis::LackOfCores { .. } => 1.0,
        })
        .collect();
    let found = discoveries(&p_values, 2.0 * ALPHA);
    of.iter().zip(found).map(|(one, found)| found && one.is_certain()).collect()
}
