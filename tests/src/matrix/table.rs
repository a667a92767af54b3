//! Formats the table: aligned columns, reasons as numbered notes.

use system_tests::Mpi;

use crate::cell::Cell;

/// Formats rows, a legend and the notes that cells refer to.
pub fn table(titles: &[&str], rows: &[(Mpi, Vec<Cell>)]) -> String {
    let mut notes: Vec<&str> = Vec::new();
    let mut lines = vec![["row", "from"].iter().chain(titles).map(|t| (*t).to_owned()).collect()];
    for (mpi, cells) in rows {
        let mut line = vec![mpi.suffix().to_owned(), mpi.origin().to_owned()];
        line.extend(cells.iter().map(|cell| match cell {
            Cell::Checked(count) => count.to_string(),
            Cell::Named(name) => name.clone(),
            Cell::Failed(_) => "FAILED".to_owned(),
            Cell::NotApplicable(reason) => {
                let number = notes.iter().position(|note| note == reason).unwrap_or_else(|| {
                    notes.push(reason);
                    notes.len() - 1
                });
                format!("[{}]", number + 1)
            }
        }));
        lines.push(line);
    }
    let widths: Vec<usize> = (0..lines[0].len())
        .map(|column| lines.iter().map(|line: &Vec<String>| line[column].len()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            // Names are aligned left, numbers right.
            if column < 3 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let line: Vec<String> = cells.collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text.push_str("\nnumbers: events recorded exactly as the program makes them; same: lines that a program prints\n");
    text.push_str("about MPI itself, identical with and without the recorder\n");
    for (index, note) in notes.iter().enumerate() {
        text.push_str(&format!("[{}] {note}\n", index + 1));
    }
    text
}
