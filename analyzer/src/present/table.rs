//! Tables with aligned columns.
//!
//! If a table is wider than the terminal, its text columns are shortened in the middle. If that is not enough, they
//! are shown in full, and the columns that do not fit follow below, with the first column repeated.

use std::ops::Range;

use super::blocks::INDENT;
use super::width;

/// Smallest width to which text columns are shortened.
const MIN_TEXT_COLUMNS: usize = 24;
const GAP: usize = 2;

/// A table to which columns are added.
#[derive(Debug, Default)]
pub(super) struct Table {
    columns: Vec<Column>,
}

#[derive(Debug)]
struct Column {
    left: bool,
    cells: Vec<String>,
}

impl Column {
    fn width(&self) -> usize {
        self.cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

impl Table {
    /// Adds a right-aligned column.
    pub fn right(&mut self, title: &str, cells: impl IntoIterator<Item = String>) {
        self.add(false, title, cells);
    }

    /// Adds a left-aligned column.
    pub fn left(&mut self, title: &str, cells: impl IntoIterator<Item = String>) {
        self.add(true, title, cells);
    }

    fn add(&mut self, left: bool, title: &str, cells: impl IntoIterator<Item = String>) {
        let cells = std::iter::once(title.to_owned()).chain(cells).collect();
        self.columns.push(Column { left, cells });
    }

    /// The lines, titles first, with two spaces between columns and no trailing spaces.
    pub fn lines(&self) -> Vec<String> {
        self.lines_within(width::for_tables(INDENT))
    }

    fn lines_within(&self, columns: Option<usize>) -> Vec<String> {
        let full: Vec<usize> = self.columns.iter().map(Column::width).collect();
        let Some(columns) = columns else { return self.draw(&full, 0..full.len()) };
        let mut widths = full.clone();
        if self.narrow(&mut widths, columns, 0..full.len()) {
            return self.draw(&widths, 0..full.len());
        }
        // Columns continue below, so none needs to be shortened for the others.
        let mut widths = full;
        let mut lines = Vec::new();
        let mut from = 0;
        while from < widths.len() {
            let first = if from > 0 { widths[0] + GAP } else { 0 };
            let mut used = first + widths[from];
            let mut to = from + 1;
            // The first column alone would say nothing.
            let alone = |to| from == 0 && to == 1;
            while to < widths.len() && (alone(to) || used + GAP + widths[to] <= columns) {
                used += GAP + widths[to];
                to += 1;
            }
            self.narrow(&mut widths, columns.saturating_sub(first), from..to);
            lines.extend(self.draw(&widths, from..to));
            from = to;
        }
        lines
    }

    /// Shortens the widest text columns of a range until it fits, and tells whether it does: none is shortened
    /// below [`MIN_TEXT_COLUMNS`].
    fn narrow(&self, widths: &mut [usize], columns: usize, range: Range<usize>) -> bool {
        let gaps = GAP * range.len().saturating_sub(1);
        let mut excess =
            (widths[range.clone()].iter().sum::<usize>() + gaps).saturating_sub(columns);
        while excess > 0 {
            let texts = range.clone().filter(|at| self.columns[*at].left);
            let Some(widest) = texts.max_by_key(|at| widths[*at]) else { return false };
            if widths[widest] <= MIN_TEXT_COLUMNS {
                return false;
            }
            widths[widest] -= 1;
            excess -= 1;
        }
        true
    }

    /// Draws some columns, with the table's first column before them.
    fn draw(&self, widths: &[usize], shown: Range<usize>) -> Vec<String> {
        let rows = self.columns.first().map_or(0, |column| column.cells.len());
        let mut lines = vec![String::new(); rows];
        let repeated = (shown.start > 0).then_some(0);
        for (number, index) in repeated.into_iter().chain(shown).enumerate() {
            let (column, width) = (&self.columns[index], widths[index]);
            for (line, cell) in lines.iter_mut().zip(&column.cells) {
                if number > 0 {
                    line.push_str("  ");
                }
                let cell = shortened(cell, width);
                line.push_str(&match column.left {
                    true => format!("{cell:<width$}"),
                    false => format!("{cell:>width$}"),
                });
            }
        }
        lines.iter().map(|line| line.trim_end().to_owned()).collect()
    }
}

/// Shortens a text in its middle, because file names and line numbers are at its end.
fn shortened(cell: &str, width: usize) -> String {
    let length = cell.chars().count();
    if length <= width {
        return cell.to_owned();
    }
    let begin = width / 3;
    let end = width - begin - 1;
    let head: String = cell.chars().take(begin).collect();
    let tail: String = cell.chars().skip(length - end).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_tables_are_shortened_then_continued_below() {
        let mut table = Table::default();
        table.right("rank", ["0", "1"].map(String::from));
        table.left("where", ["MPI_Allreduce at main (comes_late.c:45)", "-"].map(String::from));
        table.right("seconds", ["1.25", "0.75"].map(String::from));
        let wide = table.lines_within(None);
        assert_eq!(wide[1], "   0  MPI_Allreduce at main (comes_late.c:45)     1.25");
        let narrow = table.lines_within(Some(40));
        assert_eq!(narrow[0], "rank  where                      seconds");
        assert_eq!(narrow[1], "   0  MPI_Allr…comes_late.c:45)     1.25");
        assert!(narrow.iter().all(|line| line.chars().count() <= 40), "{narrow:#?}");
        let continued = table.lines_within(Some(31));
        assert_eq!(continued[1], "   0  MPI_Allr…comes_late.c:45)");
        assert_eq!(continued[3], "rank  seconds");
        assert_eq!(continued[4], "   0     1.25");
    }
}
