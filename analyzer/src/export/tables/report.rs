//! The tables that the report shows, with all their rows and exact numbers.

use crate::analysis::Analysis;
use crate::causes::Causes;
use crate::diagnosis::{Diagnosis, Evidence};
use crate::export::content::Content;
use crate::export::error::ExportError;
use crate::export::progress::Progress;
use crate::metrics::{Metrics, Question, Selection};
use crate::present::Report;
use crate::present::cell_text;
use crate::present::report::tables;
use crate::tables::{self as data, Shown};

use super::causes;
use super::schemas::{Cell, Column, Schema, Tables, Type, whole};

/// One of the report's tables.
#[derive(Debug, Clone)]
pub struct ReportTable {
    /// Its name in exports.
    pub name: &'static str,
    /// The columns that everybody sees.
    columns: Vec<data::Column>,
}

/// The report's tables of a run that have rows, or why they are left out.
///
/// # Errors
/// As [`causes::left_out`].
pub fn report_tables(
    content: &Content,
    progress: &dyn Progress,
) -> Result<Vec<ReportTable>, &'static str> {
    causes::explained(content, progress, all_tables)
}

/// The report's tables that have rows.
pub(super) fn all_tables(analysis: &Analysis, causes: &Causes) -> Vec<ReportTable> {
    let (run, timeline) = (analysis.run, analysis.timeline);
    // A selection of everything is there in every run.
    let Ok(metrics) = Metrics::for_question(analysis, Question::about(&Selection::Whole)) else {
        return Vec::new();
    };
    let evidence = Evidence::of_metrics(run, timeline, &metrics);
    let diagnosis = Diagnosis::new(Evidence { causes: Some(causes), ..evidence });
    let all = tables(&Report::new(&diagnosis, &[])).into_iter();
    let with_rows = all.filter(|(_, table)| table.rows() > 0);
    with_rows.map(|(name, table)| ReportTable::new(name, table)).collect()
}

impl ReportTable {
    fn new(name: &'static str, table: data::Table) -> Self {
        let shown = table.columns.into_iter().filter(|column| column.shown != Shown::Script);
        Self { name, columns: shown.collect() }
    }

    /// The columns of its schema. Cells that are no numbers are words, as on the screen.
    pub fn columns(&self) -> Vec<Column> {
        let kind = |column: &data::Column| match column {
            column if column.is_text() => Type::Name,
            column if column.is_count() => Type::Long,
            _ => Type::Real,
        };
        self.columns.iter().map(|column| (column.key, kind(column), true)).collect()
    }

    /// The units of its columns; `None` of words.
    pub fn units(&self) -> Vec<Option<&'static str>> {
        self.columns.iter().map(data::Column::unit).collect()
    }

    /// Passes on the table.
    ///
    /// # Errors
    /// A row cannot be written.
    pub fn write(&self, to: &mut dyn Tables) -> Result<(), ExportError> {
        let columns = self.columns();
        to.begin(&Schema { name: self.name, columns: &columns })?;
        let rows = self.columns.first().map_or(0, |column| column.cells.len());
        for row in 0..rows {
            let cells = || self.columns.iter().map(|column| &column.cells[row]);
            let words: Vec<String> = cells().map(cell_text).collect();
            let cells = cells().zip(&columns).zip(&words);
            let cells = cells.map(|((cell, (_, kind, _)), words)| match (cell, kind) {
                (data::Cell::Unknown | data::Cell::Nothing, _) => Cell::Empty,
                (_, Type::Name) => Cell::Name(words),
                (data::Cell::Count(count), Type::Long) => whole(*count),
                (cell, _) => cell.number().map_or(Cell::Empty, Cell::Real),
            });
            to.row(&cells.collect::<Vec<_>>())?;
        }
        Ok(())
    }
}
