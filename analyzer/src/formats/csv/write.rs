//! Writes tables as comma-separated text, one file per table.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use crate::export::content::Export;
use crate::export::tables::{self, Cell, Schema, Tables};
use crate::export::{ExportError, Written};

/// Writes `TABLE.csv` files into a directory that it makes.
#[derive(Debug)]
pub struct CsvTables {
    directory: PathBuf,
    open: Option<(PathBuf, csv::Writer<BufWriter<File>>)>,
    text: String,
}

impl CsvTables {
    /// For this directory, which must exist and be empty.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), open: None, text: String::new() }
    }
}

/// Writes a run's tables into a directory that it makes.
pub fn write(export: Export, path: &Path) -> Result<Written, ExportError> {
    fs::create_dir(path).map_err(ExportError::io(path))?;
    tables::write(export, &mut CsvTables::new(path))
}

impl Tables for CsvTables {
    fn begin(&mut self, schema: &Schema) -> Result<(), ExportError> {
        self.finish()?;
        let path = self.directory.join(format!("{}.csv", schema.name));
        let file = File::create_new(&path).map_err(ExportError::io(&path))?;
        let mut writer = csv::Writer::from_writer(BufWriter::with_capacity(1 << 18, file));
        let titles = schema.columns.iter().map(|column| column.0);
        let written = writer.write_record(titles);
        written.map_err(|error| ExportError::io(&path)(error.into()))?;
        self.open = Some((path, writer));
        Ok(())
    }

    fn row(&mut self, cells: &[Cell]) -> Result<(), ExportError> {
        use std::fmt::Write;
        let Some((path, writer)) = &mut self.open else { return Ok(()) };
        let write = |writer: &mut csv::Writer<_>, field: &str| {
            writer.write_field(field).map_err(|error| ExportError::io(path)(error.into()))
        };
        for cell in cells {
            self.text.clear();
            // Writing to a String does not fail.
            let _ = match cell {
                Cell::Empty => Ok(()),
                Cell::Whole(value) => write!(self.text, "{value}"),
                Cell::Real(value) => write!(self.text, "{value}"),
                Cell::Flag(value) => write!(self.text, "{value}"),
                Cell::Name(name) => {
                    write(writer, name)?;
                    continue;
                }
            };
            write(writer, &self.text)?;
        }
        let ended = writer.write_record(None::<&[u8]>);
        ended.map_err(|error| ExportError::io(path)(error.into()))
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        let Some((path, mut writer)) = self.open.take() else { return Ok(()) };
        writer.flush().map_err(ExportError::io(&path))
    }
}
