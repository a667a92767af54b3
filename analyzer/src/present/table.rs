//! Tables with aligned columns.
//!
//! If a table is wider than the terminal, the cells of its text columns are broken between words; only words too long
//! for a column of their own are shortened, in the middle. If that is not enough, the columns that do not fit follow
//! below, with the first column repeated.

use std::ops::Range;

use super::blocks::INDENT;
use super::context::{plural, shortened as shortened_name};
use super::quantity::TimeUnit;
use super::{cell, width};
use crate::plain_text::printable;
use crate::tables::{self, Cell, Shown};

/// Smallest width of a text column that is narrowed: its longest word, but within these bounds.
const MIN_TEXT_COLUMNS: usize = 10;
const MAX_WORD_COLUMNS: usize = 30;
const GAP: usize = 2;

#[derive(Debug, Default)]
pub(super) struct Table {
    columns: Vec<Column>,
}

/// The lines of a table, with its details; none if it has no rows.
pub fn lines(table: &tables::Table) -> Vec<String> {
    lines_of(table, &[Shown::Always, Shown::Detail])
}

/// The same without details.
pub(super) fn brief_lines(table: &tables::Table) -> Vec<String> {
    lines_of(table, &[Shown::Always])
}

/// A line on rows that are left out, if there are any.
pub(super) fn more(left_out: usize, what: &str) -> Option<String> {
    (left_out > 0)
        .then(|| format!("{} (--json lists all)", plural(left_out, &format!("more {what}"))))
}

fn lines_of(table: &tables::Table, shown: &[Shown]) -> Vec<String> {
    let mut laid_out = Table::default();
    laid_out.extend(table, shown, cell::brief);
    if table.rows() > 0 { laid_out.lines() } else { Vec::new() }
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

    /// The width below which it is not narrowed.
    fn min_width(&self) -> usize {
        if !self.left {
            return self.width();
        }
        let words = self.cells.iter().flat_map(|cell| cell.split(' '));
        let longest = words.map(|word| word.chars().count()).max().unwrap_or(0);
        longest.clamp(MIN_TEXT_COLUMNS, MAX_WORD_COLUMNS)
    }
}

/// A table of these rows, to which columns are added.
#[derive(Debug)]
pub(super) struct RowTable<'r, T> {
    rows: &'r [T],
    table: Table,
}

impl<'r, T> RowTable<'r, T> {
    pub fn right(&mut self, title: &str, cell: impl Fn(&'r T) -> String) {
        self.table.right(title, self.rows.iter().map(cell));
    }

    pub fn left(&mut self, title: &str, cell: impl Fn(&'r T) -> String) {
        self.table.left(title, self.rows.iter().map(cell));
    }

    pub fn lines(&self) -> Vec<String> {
        self.table.lines()
    }
}

impl Table {
    /// A table with a row for each of these.
    pub fn with_rows<T>(rows: &[T]) -> RowTable<'_, T> {
        RowTable { rows, table: Self::default() }
    }

    /// Adds the columns of a table that are no details; seconds are in the unit of `elapsed_s`.
    pub fn add_all(&mut self, table: &tables::Table, elapsed_s: f64) {
        let unit = TimeUnit::for_seconds(elapsed_s);
        self.extend(table, &[Shown::Always], |cell, column| match cell {
            Cell::Seconds(seconds) => unit.column(*seconds, elapsed_s),
            Cell::Text(text) => shortened_name(&printable(text)),
            cell => cell::brief(cell, column),
        });
    }

    fn extend(
        &mut self,
        table: &tables::Table,
        shown: &[Shown],
        text: impl Fn(&Cell, &tables::Column) -> String,
    ) {
        for column in table.columns.iter().filter(|column| shown.contains(&column.shown)) {
            let cells = column.cells.iter().map(|cell| text(cell, column));
            self.add(column.is_text(), &column.title, cells);
        }
    }

    pub fn right(&mut self, title: &str, cells: impl IntoIterator<Item = String>) {
        self.add(false, title, cells);
    }

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

    /// Narrows the widest text columns of a range until it fits, and tells whether it does.
    fn narrow(&self, widths: &mut [usize], columns: usize, range: Range<usize>) -> bool {
        let gaps = GAP * range.len().saturating_sub(1);
        let mut excess =
            (widths[range.clone()].iter().sum::<usize>() + gaps).saturating_sub(columns);
        while excess > 0 {
            let can_give = |at: &usize| widths[*at] > self.columns[*at].min_width();
            let Some(widest) = range.clone().filter(can_give).max_by_key(|at| widths[*at]) else {
                return false;
            };
            widths[widest] -= 1;
            excess -= 1;
        }
        true
    }

    /// Draws some columns, with the table's first column before them.
    fn draw(&self, widths: &[usize], shown: Range<usize>) -> Vec<String> {
        let rows = self.columns.first().map_or(0, |column| column.cells.len());
        let repeated = (shown.start > 0).then_some(0);
        let shown: Vec<usize> = repeated.into_iter().chain(shown).collect();
        let mut lines = Vec::new();
        for row in 0..rows {
            let cells =
                shown.iter().map(|index| broken(&self.columns[*index].cells[row], widths[*index]));
            let cells: Vec<Vec<String>> = cells.collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for at in 0..height {
                let parts = shown.iter().zip(&cells).map(|(index, cell)| {
                    let (part, width) = (cell.get(at).map_or("", String::as_str), widths[*index]);
                    match self.columns[*index].left {
                        true => format!("{part:<width$}"),
                        false => format!("{part:>width$}"),
                    }
                });
                let line = parts.collect::<Vec<_>>().join(&" ".repeat(GAP));
                lines.push(line.trim_end().to_owned());
            }
        }
        lines
    }
}

/// The lines of a cell, broken between words; a cell that fits stays as it is.
fn broken(cell: &str, width: usize) -> Vec<String> {
    if cell.chars().count() <= width {
        return vec![cell.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    for word in cell.split(' ').filter(|word| !word.is_empty()) {
        let word = shortened(word, width);
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// Shortens a word in its middle, because file names and line numbers are at its end.
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
    fn wide_tables_are_broken_between_words_then_continued_below() {
        let mut table = Table::default();
        table.right("rank", ["0", "1"].map(String::from));
        table.left("where", ["MPI_Allreduce at main (comes_late.c:45)", "-"].map(String::from));
        table.right("seconds", ["1.25", "0.75"].map(String::from));
        let wide = table.lines_within(None);
        assert_eq!(wide[1], "   0  MPI_Allreduce at main (comes_late.c:45)     1.25");
        let narrow = table.lines_within(Some(40));
        assert_eq!(
            narrow,
            [
                "rank  where                      seconds",
                "   0  MPI_Allreduce at main         1.25",
                "      (comes_late.c:45)",
                "   1  -                             0.75",
            ]
        );
        let continued = table.lines_within(Some(31));
        assert_eq!(continued[1], "   0  MPI_Allreduce at main");
        let second = continued.iter().position(|line| line == "rank  seconds").expect("continued");
        assert_eq!(continued[second + 1], "   0     1.25");
        assert!(continued.iter().all(|line| line.chars().count() <= 31), "{continued:#?}");
    }

    #[test]
    fn details_are_for_whoever_has_room_and_marks_for_nobody() {
        let mut table = tables::Table::default();
        table.add("rank", "rank", [Cell::Count(0), Cell::Unknown]);
        table.detail("count", "count", [Cell::Count(3), Cell::Nothing]);
        table.add("place", "where", [Cell::Text("main".to_owned()), Cell::Unknown]);
        table.mark("group", [Cell::Count(7), Cell::Count(8)]);
        let expected = ["rank  count  where     ", "   0      3  main", "   ?      -  unknown"]
            .map(str::trim_end);
        assert_eq!(lines(&table), expected);
        assert_eq!(brief_lines(&table), ["rank  where", "   0  main", "   ?  unknown"]);
        assert!(lines(&tables::Table::default()).is_empty());
    }

    #[test]
    fn only_words_without_a_line_of_their_own_are_shortened() {
        let mut table = Table::default();
        let long = "in a_very_long_name_of_a_function_in_some_library.f90:1234";
        table.left("where", [long].map(String::from));
        table.right("seconds", ["1.25"].map(String::from));
        let lines = table.lines_within(Some(40));
        assert_eq!(
            lines[1..],
            ["in                                  1.25", "a_very_lon…ome_library.f90:1234"]
                .map(String::from)
        );
    }
}
