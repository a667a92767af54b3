//! Aligned columns: rows of cells come in, lines go out.

/// A table in the making.
#[derive(Debug, Default)]
pub(super) struct Table {
    columns: Vec<Column>,
}

#[derive(Debug)]
struct Column {
    left: bool,
    cells: Vec<String>,
}

impl Table {
    /// Adds a column whose cells end at the same place.
    pub fn right(&mut self, title: &str, cells: impl IntoIterator<Item = String>) {
        self.add(false, title, cells);
    }

    /// Adds a column whose cells begin at the same place.
    pub fn left(&mut self, title: &str, cells: impl IntoIterator<Item = String>) {
        self.add(true, title, cells);
    }

    fn add(&mut self, left: bool, title: &str, cells: impl IntoIterator<Item = String>) {
        let cells = std::iter::once(title.to_owned()).chain(cells).collect();
        self.columns.push(Column { left, cells });
    }

    /// The lines, the titles first, two spaces between columns, none at the end of a line.
    pub fn lines(&self) -> Vec<String> {
        let rows = self.columns.first().map_or(0, |column| column.cells.len());
        let mut lines = vec![String::new(); rows];
        for (index, column) in self.columns.iter().enumerate() {
            let width = column.cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
            for (line, cell) in lines.iter_mut().zip(&column.cells) {
                if index > 0 {
                    line.push_str("  ");
                }
                line.push_str(&match column.left {
                    true => format!("{cell:<width$}"),
                    false => format!("{cell:>width$}"),
                });
            }
        }
        lines.iter().map(|line| line.trim_end().to_owned()).collect()
    }
}
