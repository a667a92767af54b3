//! The table of measured runs that models are fitted to.
//!
//! An [`Observations`] has one row per run and named columns; it is read from CSV or built from the
//! figures of recorded runs. Cells stay text until a model asks for their column as numbers. So a
//! text column that no model uses does no harm, and every error can name the table, the line (or
//! run) and the column.
//!
//! The columns in [`FIGURES`] have a fixed meaning; every other column is a parameter of the run,
//! such as `N`.

mod csv_table;
mod error;
mod recorded;
mod repetitions;
mod table;

pub use error::ObservationsError;
pub use recorded::{RunFigures, UnusableRun};
pub use repetitions::{Repetitions, Spread};
pub use table::{
    CHI_MAX_S, CHI_MIN_S, CHI_S, FIGURES, FLOPS, GAMMA_THREADS, LackOfCores, Observations, Origin,
    P, REP, RUN, RankTimes, Row, SUM_GAMMA_S, TAU_S,
};

impl Observations {
    /// Builds a table from rows.
    ///
    /// # Errors
    /// A column has no name, two columns have the same name, a row has more or fewer cells than
    /// there are columns, or there are no rows.
    pub fn new(
        source: impl Into<String>,
        names: Vec<String>,
        rows: Vec<Row>,
    ) -> Result<Self, ObservationsError> {
        let source = source.into();
        for (index, name) in names.iter().enumerate() {
            if name.is_empty() {
                return Err(ObservationsError::NamelessColumn { source_name: source, index });
            }
            if names[..index].contains(name) {
                let column = name.clone();
                return Err(ObservationsError::RepeatedColumn { source_name: source, column });
            }
        }
        if rows.is_empty() {
            return Err(ObservationsError::NoRows { source_name: source });
        }
        if let Some(row) = rows.iter().find(|row| row.cells.len() != names.len()) {
            return Err(ObservationsError::UnevenRow {
                source_name: source,
                origin: row.origin.clone(),
                cells: row.cells.len(),
                columns: names.len(),
            });
        }
        Ok(Self { source, names, rows })
    }

    /// The file or directory that the table comes from; every error names it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Names of the columns, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The runs, in order.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Whether there is a column of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|other| other == name)
    }

    /// Columns that are parameters of the runs, not figures.
    pub fn parameters(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).filter(|name| !FIGURES.contains(name)).collect()
    }

    /// The table restricted to these rows, in this order.
    ///
    /// # Panics
    /// An index is not below the number of rows.
    pub fn select(&self, rows: &[usize]) -> Self {
        Self { rows: rows.iter().map(|row| self.rows[*row].clone()).collect(), ..self.clone() }
    }

    /// Appends a column of numbers, one per row.
    ///
    /// # Errors
    /// The table already has a column of that name.
    ///
    /// # Panics
    /// There are not as many numbers as rows.
    pub fn with_column(mut self, name: &str, numbers: &[f64]) -> Result<Self, ObservationsError> {
        assert_eq!(numbers.len(), self.rows.len(), "one number per row");
        for (row, number) in self.rows.iter_mut().zip(numbers) {
            row.cells.push(number.to_string());
        }
        self.names.push(name.to_owned());
        Self::new(self.source, self.names, self.rows)
    }

    /// The cells of a column as text, one per row; empty where not known.
    ///
    /// # Errors
    /// There is no such column.
    pub fn texts(&self, name: &str) -> Result<Vec<&str>, ObservationsError> {
        let column = self.index(name)?;
        Ok(self.rows.iter().map(|row| row.cells[column].as_str()).collect())
    }

    /// A column of numbers, one per row.
    ///
    /// # Errors
    /// There is no such column; a cell is empty, not a number, or not finite.
    pub fn numbers(&self, name: &str) -> Result<Vec<f64>, ObservationsError> {
        let known = self.known_numbers(name)?;
        let filled = known.into_iter().zip(&self.rows).map(|(number, row)| {
            number.ok_or_else(|| self.cell_error(row, name, "", "is empty; a number is needed"))
        });
        filled.collect()
    }

    /// A column of numbers, one per row; `None` where the cell is empty.
    ///
    /// # Errors
    /// There is no such column; a cell is not a number, or not finite.
    pub fn known_numbers(&self, name: &str) -> Result<Vec<Option<f64>>, ObservationsError> {
        let column = self.index(name)?;
        let cells = self.rows.iter().map(|row| (row, row.cells[column].as_str()));
        cells
            .map(|(row, cell)| match cell.parse::<f64>() {
                _ if cell.is_empty() => Ok(None),
                Ok(number) if number.is_finite() => Ok(Some(number)),
                Ok(_) => Err(self.cell_error(row, name, cell, "is not a finite number")),
                Err(_) => Err(self.cell_error(row, name, cell, "is not a number")),
            })
            .collect()
    }

    /// A column of numbers above 0, such as times, one per row.
    ///
    /// # Errors
    /// Those of [`Observations::numbers`]; a number is not above 0.
    pub fn positive_numbers(&self, name: &str) -> Result<Vec<f64>, ObservationsError> {
        let numbers = self.numbers(name)?;
        match numbers.iter().position(|number| *number <= 0.0) {
            None => Ok(numbers),
            Some(at) => {
                let cell = numbers[at].to_string();
                Err(self.cell_error(&self.rows[at], name, &cell, "is not above 0"))
            }
        }
    }

    /// A column of whole numbers of at least 1, such as rank counts, one per row.
    ///
    /// # Errors
    /// Those of [`Observations::numbers`]; a number is not whole, or below 1.
    pub fn counts(&self, name: &str) -> Result<Vec<u32>, ObservationsError> {
        let whole = |number: &f64| {
            (number.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(number))
                .then_some(*number as u32)
        };
        let numbers = self.numbers(name)?;
        let counted = numbers.iter().zip(&self.rows).map(|(number, row)| {
            whole(number).ok_or_else(|| {
                let cell = number.to_string();
                self.cell_error(row, name, &cell, "is not a whole number from 1 to 4294967295")
            })
        });
        counted.collect()
    }

    /// Where a row is, for error messages: the table, and the line or run.
    pub fn location(&self, row: usize) -> String {
        format!("{}, {}", self.source, self.rows[row].origin)
    }

    /// Builds an error about one cell.
    pub fn cell_error(&self, row: &Row, column: &str, cell: &str, what: &str) -> ObservationsError {
        ObservationsError::Cell {
            source_name: self.source.clone(),
            origin: row.origin.clone(),
            column: column.into(),
            cell: cell.into(),
            what: what.into(),
        }
    }

    fn index(&self, name: &str) -> Result<usize, ObservationsError> {
        self.names.iter().position(|other| other == name).ok_or_else(|| {
            ObservationsError::MissingColumn {
                source_name: self.source.clone(),
                column: name.into(),
                there: self.names.join(", "),
            }
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
