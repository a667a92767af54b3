//! Reads and writes [`Observations`] as CSV.
//!
//! The text is UTF-8 with or without a byte order mark; lines end with LF or CRLF. Cells are
//! separated by commas, and quoted where they contain one. Lines that begin with `#` are comments.
//! The first line names the columns. Blanks around a cell are ignored.

use std::fs;
use std::io::Write;
use std::path::Path;

use csv::{ReaderBuilder, StringRecord, Trim, WriterBuilder};

use super::error::ObservationsError;
use super::table::{Observations, Origin, Row};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Observations {
    /// Reads a CSV file.
    ///
    /// # Errors
    /// The file cannot be read, is empty, or is not such a table; see [`Observations::new`].
    pub fn read(path: &Path) -> Result<Self, ObservationsError> {
        let source_name = path.display().to_string();
        match fs::read(path) {
            Ok(text) => Self::from_csv(source_name, &text),
            Err(source) => Err(ObservationsError::Read { source_name, source }),
        }
    }

    /// Reads CSV text; errors call it `source`.
    ///
    /// # Errors
    /// The text is empty, or not such a table; see [`Observations::new`].
    pub fn from_csv(source: impl Into<String>, text: &[u8]) -> Result<Self, ObservationsError> {
        let source = source.into();
        let mut reader = ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(Trim::All)
            .flexible(true)
            .has_headers(false)
            .from_reader(text);
        let mut names: Option<Vec<String>> = None;
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| syntax(&source, &error))?;
            let line = record.position().map_or(0, |from| line_of(text, from.byte()));
            let cells: Vec<String> = record.iter().map(str::to_owned).collect();
            if cells.iter().all(String::is_empty) {
                continue;
            }
            match names {
                None => names = Some(header(&source, line, &record, cells)?),
                Some(_) => {
                    let (origin, ranks) = (Origin::Line(line), Vec::new());
                    rows.push(Row { origin, cells, ranks, lack: None });
                }
            }
        }
        match names {
            Some(names) => Self::new(source, names, rows),
            None => Err(ObservationsError::Empty { source_name: source }),
        }
    }

    /// Writes the table as CSV.
    pub fn write_csv(&self, out: impl Write) -> std::io::Result<()> {
        let mut writer = WriterBuilder::new().from_writer(out);
        writer.write_record(&self.names)?;
        for row in &self.rows {
            writer.write_record(&row.cells)?;
        }
        writer.flush()
    }
}

/// The line on which a record begins, counted from 1. `from` is where the reader began to look,
/// which is before any line ends, blank lines and comments that it skipped.
fn line_of(text: &[u8], from: u64) -> u64 {
    let mut at = usize::try_from(from).unwrap_or(usize::MAX).min(text.len());
    if at == 0 && text.starts_with(BYTE_ORDER_MARK) {
        at = BYTE_ORDER_MARK.len();
    }
    while let Some(byte) = text.get(at) {
        match byte {
            b'\r' | b'\n' => at += 1,
            b'#' => at += text[at..].iter().take_while(|byte| **byte != b'\n').count(),
            _ => break,
        }
    }
    1 + text[..at].iter().filter(|byte| **byte == b'\n').count() as u64
}

fn header(
    source: &str,
    line: u64,
    record: &StringRecord,
    cells: Vec<String>,
) -> Result<Vec<String>, ObservationsError> {
    let separator = ['\t', ';'].into_iter().find(|c| record.len() == 1 && record[0].contains(*c));
    match separator {
        None => Ok(cells),
        Some(separator) => Err(ObservationsError::Syntax {
            source_name: source.to_owned(),
            line,
            what: format!(
                "columns are separated by {separator:?}; separate them by commas, and write numbers \
                 with a point"
            ),
        }),
    }
}

fn syntax(source: &str, error: &csv::Error) -> ObservationsError {
    let line = error.position().map_or(0, csv::Position::line);
    let what = match error.kind() {
        csv::ErrorKind::Utf8 { .. } => "is not UTF-8 text; save the table as UTF-8".to_owned(),
        _ => format!("is not CSV: {error}"),
    };
    ObservationsError::Syntax { source_name: source.to_owned(), line, what }
}
