//! Tables for the macro `data_table` of `cells.html`.

use minijinja::context;
use minijinja::value::Value;

use crate::plain_text::printable;
use crate::present::cell;
use crate::present::context::all_numbers;
use crate::tables::{Cell, Column, Shown, Table};

/// The columns of a table, and its rows: each a list of cells, and what the script knows of it.
pub(in crate::present) fn laid_out(table: &Table) -> Value {
    let (marks, shown): (Vec<&Column>, Vec<&Column>) =
        table.columns.iter().partition(|column| column.shown == Shown::Script);
    let columns = shown.iter().map(|column| {
        let title = printable(&column.title);
        context! { key => column.key, title => title, is_text => column.is_text() }
    });
    let is_known = |(_, cell): &(&str, &Cell)| **cell != Cell::Nothing;
    let rows = (0..table.rows()).map(|row| {
        let cells = shown.iter().map(|column| {
            let cell = &column.cells[row];
            context! { value => cell.number(), text => cell::text(cell) }
        });
        let marks = marks.iter().map(|column| (column.key, &column.cells[row])).filter(is_known);
        let marks = marks.map(|(key, cell)| (key, mark(cell)));
        context! { cells => cells.collect::<Vec<_>>(), marks => marks.collect::<Vec<_>>() }
    });
    context! { columns => columns.collect::<Vec<_>>(), rows => rows.collect::<Vec<_>>() }
}

/// Its first rows, each with the texts of its cells by key: for what is no table.
pub(super) fn by_key(table: &Table, rows: usize) -> Vec<Value> {
    let (marks, shown): (Vec<&Column>, Vec<&Column>) =
        table.columns.iter().partition(|column| column.shown == Shown::Script);
    let row = |row: usize| {
        let marks = marks.iter().map(|column| (column.key, mark(&column.cells[row])));
        let texts = shown.iter().map(|column| (column.key, cell::text(&column.cells[row])));
        Value::from_iter(marks.chain(texts))
    };
    (0..table.rows().min(rows)).map(row).collect()
}

/// A cell as the script reads it.
fn mark(cell: &Cell) -> String {
    match cell {
        Cell::Ranks(ranks) => all_numbers(ranks.iter().copied()),
        cell => cell.number().map_or_else(|| cell::text(cell), |number| number.to_string()),
    }
}
