//! The tables that the report shows, with all their rows and exact numbers.

use crate::analysis::Analysis;
use crate::causes::Causes;
use crate::diagnosis::{Diagnosis, Evidence};
use crate::export::error::ExportError;
use crate::metrics::{Metrics, Question, Selection};
use crate::present::Report;
use crate::present::cell_text;
use crate::present::report::tables;
use crate::tables::{self as data, Shown};

use super::schemas::{Cell, Column, Schema, Tables, Type};

/// Writes the report's tables that have rows. Cells that are no numbers are words, as on the screen.
pub(super) fn write(
    (analysis, causes): (&Analysis, &Causes),
    to: &mut dyn Tables,
) -> Result<(), ExportError> {
    let (run, timeline) = (analysis.run, analysis.timeline);
    // A selection of everything is there in every run.
    let Ok(metrics) = Metrics::for_question(analysis, Question::about(&Selection::Whole)) else {
        return Ok(());
    };
    let evidence = Evidence::of_metrics(run, timeline, &metrics);
    let diagnosis = Diagnosis::new(Evidence { causes: Some(causes), ..evidence });
    for (name, table) in tables(&Report::new(&diagnosis, &[])) {
        if table.rows() > 0 {
            write_table(name, &table, to)?;
        }
    }
    Ok(())
}

fn write_table(
    name: &str,
    table: &data::Table,
    tables: &mut dyn Tables,
) -> Result<(), ExportError> {
    let is_shown = |column: &&data::Column| column.shown != Shown::Script;
    let shown: Vec<&data::Column> = table.columns.iter().filter(is_shown).collect();
    let kind = |column: &data::Column| if column.is_text() { Type::Name } else { Type::Real };
    let columns = shown.iter().map(|column| (column.key, kind(column), true));
    let columns: Vec<Column> = columns.collect();
    tables.begin(&Schema { name, columns: &columns })?;
    for row in 0..table.rows() {
        let words: Vec<String> = shown.iter().map(|column| cell_text(&column.cells[row])).collect();
        let cells = shown.iter().zip(&columns).zip(&words);
        let cells = cells.map(|((column, (_, kind, _)), words)| match (&column.cells[row], kind) {
            (data::Cell::Unknown | data::Cell::Nothing, _) => Cell::Empty,
            (_, Type::Name) => Cell::Name(words),
            (cell, _) => cell.number().map_or(Cell::Empty, Cell::Real),
        });
        tables.row(&cells.collect::<Vec<_>>())?;
    }
    Ok(())
}
