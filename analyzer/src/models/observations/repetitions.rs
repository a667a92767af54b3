//! Repetitions of one configuration: a table comes in, its rows by configuration go out.

use super::{Observations, ObservationsError, REP};

/// Rows that are repetitions of one configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repetitions {
    /// What they share, one a key column, as the first of them writes it.
    pub key: Vec<String>,
    /// Their indices in the table, in its order.
    pub rows: Vec<usize>,
}

/// How repeated measurements of one figure are spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// How many there are.
    pub number: usize,
    /// The smallest: the one to fit.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of at least one value.
    ///
    /// # Panics
    /// There is no value.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
            _ => sorted[middle],
        };
        Self { number: sorted.len(), min: sorted[0], median, max: sorted[sorted.len() - 1] }
    }

    /// (max − min)/median; 0 for one value.
    pub fn relative(&self) -> f64 {
        (self.max - self.min) / self.median
    }
}

impl Repetitions {
    /// The row with the smallest of these values, one a row of the table: the run to fit.
    pub fn smallest(&self, values: &[f64]) -> usize {
        let smallest = self.rows.iter().min_by(|a, b| values[**a].total_cmp(&values[**b]));
        *smallest.expect("a configuration has at least one row")
    }

    /// The spread of these values, one a row of the table.
    pub fn spread(&self, values: &[f64]) -> Spread {
        Spread::of(&self.rows.iter().map(|row| values[*row]).collect::<Vec<_>>())
    }
}

impl Observations {
    /// The rows by configuration: those that agree in the key columns. Numbers agree by value
    /// (`1000` and `1e3`), everything else by text. Configurations come in the order of their first
    /// row.
    ///
    /// # Errors
    /// A key column is missing; two rows agree in the key columns and have the same `rep`, or the
    /// table has no column `rep`.
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

    /// The rows by what they share in the key columns, as [`Observations::repetitions`] but whether
    /// or not they are repetitions.
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
