//! Groups the rows of a table by configuration, and sums up repeated measurements.

use super::error::ObservationsError;
use super::table::{Observations, P, REP};
use crate::statistics::median;

/// Rows that are repetitions of one configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repetitions {
    /// Their common values of the key columns, as the first row writes them.
    pub key: Vec<String>,
    /// Their row indices, ascending.
    pub rows: Vec<usize>,
}

/// Spread of repeated measurements of one figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Number of measurements.
    pub number: usize,
    /// The smallest; models are fitted to it.
    pub min: f64,
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// The spread of at least one value.
    ///
    /// # Panics
    /// `values` is empty.
    pub fn from_values(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        let median = median(&mut sorted).expect("there is at least one value");
        Self { number: sorted.len(), min: sorted[0], median, max: sorted[sorted.len() - 1] }
    }

    /// (max − min)/median; 0 for one value.
    pub fn relative(&self) -> f64 {
        (self.max - self.min) / self.median
    }
}

impl Repetitions {
    /// The row to fit: the one with the smallest value. `values` has one entry per row of the
    /// table.
    pub fn smallest(&self, values: &[f64]) -> usize {
        let smallest = self.rows.iter().min_by(|a, b| values[**a].total_cmp(&values[**b]));
        *smallest.expect("a configuration has at least one row")
    }

    /// The spread over these rows. `values` has one entry per row of the table.
    pub fn spread(&self, values: &[f64]) -> Spread {
        Spread::from_values(&self.rows.iter().map(|row| values[*row]).collect::<Vec<_>>())
    }
}

impl Observations {
    /// Groups the rows by configuration, that is, by equal values in the key columns. Numbers are
    /// compared by value (`1000` equals `1e3`), everything else as text. Groups are ordered by
    /// their first row.
    ///
    /// # Errors
    /// A key column is missing; or two rows agree in the key columns, and either have the same
    /// `rep` or the table has no column `rep`.
    pub fn repetitions(&self, keys: &[&str]) -> Result<Vec<Repetitions>, ObservationsError> {
        let groups = self.groups(keys)?;
        let rep = if self.has(REP) { Some(self.texts(REP)?) } else { None };
        for group in &groups {
            for (index, second) in group.rows.iter().enumerate() {
                let same = |first: &&usize| {
                    rep.as_ref().is_none_or(|rep| agree(rep[**first], rep[*second]))
                };
                if let Some(first) = group.rows[..index].iter().find(same) {
                    return Err(self.duplicate(keys, group, *first, *second));
                }
            }
        }
        Ok(groups)
    }

    /// Groups the rows like [`Observations::repetitions`], but does not check that the rows of a
    /// group are distinct repetitions.
    ///
    /// # Errors
    /// A key column is missing.
    pub fn groups(&self, keys: &[&str]) -> Result<Vec<Repetitions>, ObservationsError> {
        let columns: Vec<Vec<&str>> =
            keys.iter().map(|name| self.texts(name)).collect::<Result<_, _>>()?;
        let mut groups: Vec<Repetitions> = Vec::new();
        for row in 0..self.rows.len() {
            let key: Vec<&str> = columns.iter().map(|column| column[row]).collect();
            let same = |group: &&mut Repetitions| {
                group.key.iter().zip(&key).all(|(there, here)| agree(there, here))
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.rows.push(row),
                None => groups.push(Repetitions {
                    key: key.into_iter().map(str::to_owned).collect(),
                    rows: vec![row],
                }),
            }
        }
        Ok(groups)
    }

    /// The rank count and parameters, except the keys, in which rows of the same group differ. A
    /// column other than `p` with a value that occurs only once is taken for a measurement.
    ///
    /// # Errors
    /// A key column is missing.
    pub fn varying_within(
        &self,
        groups: &[Repetitions],
        keys: &[&str],
    ) -> Result<Vec<&str>, ObservationsError> {
        let mut found = Vec::new();
        let rank_count = self.has(P).then_some(P);
        let names = rank_count.into_iter().chain(self.parameters());
        for name in names.filter(|name| !keys.contains(name)) {
            let cells = self.texts(name)?;
            let recurs = |a: usize| (0..cells.len()).any(|b| a != b && agree(cells[a], cells[b]));
            let differs = |group: &Repetitions| {
                group.rows.iter().any(|row| !agree(cells[*row], cells[group.rows[0]]))
            };
            if groups.iter().any(differs) && (name == P || (0..cells.len()).all(recurs)) {
                found.push(name);
            }
        }
        Ok(found)
    }

    fn duplicate(
        &self,
        keys: &[&str],
        group: &Repetitions,
        first: usize,
        second: usize,
    ) -> ObservationsError {
        let mut key: Vec<String> =
            keys.iter().zip(&group.key).map(|(name, value)| format!("{name}={value}")).collect();
        if let Ok(rep) = self.texts(REP) {
            key.push(format!("{REP}={}", rep[second]));
        }
        ObservationsError::Duplicate {
            source_name: self.source.clone(),
            first: self.rows[first].origin.clone(),
            second: self.rows[second].origin.clone(),
            key: key.join(", "),
        }
    }
}

fn agree(a: &str, b: &str) -> bool {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}
