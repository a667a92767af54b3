//! Errors in a table of observations. Each message says where the error is and what to do.

use std::io;

use thiserror::Error;

use super::table::Origin;

/// Why a table cannot be read or used.
#[derive(Debug, Error)]
pub enum ObservationsError {
    /// The file cannot be read.
    #[error("{source_name}: cannot be read: {source}")]
    Read {
        source_name: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file holds nothing but comments and blank lines.
    #[error(
        "{source_name}: is empty; a table begins with a line of column names, such as \
         p,tau_s,sum_gamma_s"
    )]
    Empty { source_name: String },
    /// The file is not CSV.
    #[error("{source_name}, line {line}: {what}")]
    Syntax {
        source_name: String,
        /// Counted from 1.
        line: u64,
        /// What is wrong, and what to do.
        what: String,
    },
    /// There are column names, but no row.
    #[error("{source_name}: has column names but no rows; add one row per run")]
    NoRows { source_name: String },
    /// A column has no name.
    #[error("{source_name}: column {} has no name; name it in the first line", .index + 1)]
    NamelessColumn {
        source_name: String,
        /// Counted from 0.
        index: usize,
    },
    /// Two columns have the same name.
    #[error("{source_name}: two columns are named {column}; rename or remove one")]
    RepeatedColumn {
        source_name: String,
        /// The name.
        column: String,
    },
    /// A row is longer or shorter than the first line.
    #[error(
        "{source_name}, {origin}: has {cells} cells, but there are {columns} columns; leave a cell \
         empty where a value is not known"
    )]
    UnevenRow {
        source_name: String,
        /// The row.
        origin: Origin,
        cells: usize,
        /// Number of columns of the table.
        columns: usize,
    },
    /// A required column is missing.
    #[error("{source_name}: has no column {column}; its columns are {there}")]
    MissingColumn {
        source_name: String,
        /// The missing column.
        column: String,
        /// The columns of the table.
        there: String,
    },
    /// A cell does not hold what its column requires.
    #[error("{source_name}, {origin}: {column} {}{what}", quoted(.cell))]
    Cell {
        source_name: String,
        /// The row.
        origin: Origin,
        column: String,
        /// The text of the cell.
        cell: String,
        /// What is wrong with it.
        what: String,
    },
    /// Nothing in the table distinguishes two rows.
    #[error(
        "{source_name}: {first} and {second} are both {key}; number repetitions in a column rep, or \
         remove one"
    )]
    Duplicate {
        source_name: String,
        /// The earlier row.
        first: Origin,
        /// The later row.
        second: Origin,
        /// What they share, such as `p=4, N=1000, rep=1`.
        key: String,
    },
}

fn quoted(cell: &str) -> String {
    if cell.is_empty() { String::new() } else { format!("{cell:?} ") }
}
