//! Writes tables as Parquet: text with a dictionary, numbers without one, LZ4. A table is a file; a
//! large one that is divided into parts is a directory of the same name, as Spark and Hive lay them
//! out: `calls.parquet/part=0007/calls.parquet`. Readers are given the same name either way.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Stored,
};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type as Node};

use crate::export::content::Export;
use crate::export::dataset::{self, Dataset};
use crate::export::parts::Parts;
use crate::export::tables::{Cell, Column, Schema, Tables, Type};
use crate::export::{ExportError, Written};

/// Rows that are buffered before they are written as a group.
const GROUP_ROWS: usize = 1 << 18;

/// The buffered values of a column.
#[derive(Debug)]
enum Values {
    Int(Vec<i32>),
    Long(Vec<i64>),
    Real(Vec<f64>),
    Name(Vec<ByteArray>),
    Flag(Vec<bool>),
}

#[derive(Debug)]
struct BufferedColumn {
    values: Values,
    /// 1 for rows with a value; empty for columns that always have one.
    defined: Vec<i16>,
    optional: bool,
    /// The last text, shared with the next cell if it is the same.
    last: Option<ByteArray>,
}

impl BufferedColumn {
    fn push(&mut self, cell: &Cell) {
        if self.optional {
            self.defined.push(i16::from(*cell != Cell::Empty));
        }
        match (&mut self.values, cell) {
            (Values::Int(values), Cell::Whole(value)) => values.push(*value as i32),
            (Values::Long(values), Cell::Whole(value)) => values.push(*value),
            (Values::Real(values), Cell::Real(value)) => values.push(*value),
            (Values::Flag(values), Cell::Flag(value)) => values.push(*value),
            (Values::Name(values), Cell::Name(name)) => {
                let same = self.last.as_ref().filter(|last| last.data() == name.as_bytes());
                let value = same.cloned().unwrap_or_else(|| ByteArray::from(*name));
                self.last = Some(value.clone());
                values.push(value);
            }
            _ => {}
        }
    }
}

struct Open {
    path: PathBuf,
    writer: SerializedFileWriter<BufWriter<File>>,
    columns: Vec<BufferedColumn>,
    rows: usize,
}

/// A directory of tables.
#[derive(Debug)]
struct ParquetDataset {
    directory: PathBuf,
}

/// Writes tables, or one part of each.
struct ParquetTables<'d> {
    directory: &'d Path,
    /// Name of the directory of the part, if tables are divided.
    part: Option<String>,
    open: Option<Open>,
}

/// Name of a table's file, or of the directory of its parts.
fn file_of(schema: &Schema) -> String {
    format!("{}.parquet", schema.name)
}

/// Name of a part's directory. The order of the names is that of the numbers.
fn directory_of(part: usize, parts: usize) -> String {
    let digits = (parts - 1).to_string().len().max(4);
    format!("part={part:0digits$}")
}

impl Dataset for ParquetDataset {
    fn prepare(&self, divided: &[&Schema], parts: usize) -> Result<(), ExportError> {
        let make = |path: &Path| fs::create_dir(path).map_err(ExportError::io(path));
        make(&self.directory)?;
        let divided = divided.iter().filter(|_| parts > 1);
        divided.map(|schema| self.directory.join(file_of(schema))).try_for_each(|path| make(&path))
    }

    fn whole(&self) -> Box<dyn Tables + '_> {
        Box::new(ParquetTables { directory: &self.directory, part: None, open: None })
    }

    fn part(&self, part: usize, parts: usize) -> Box<dyn Tables + '_> {
        let part = (parts > 1).then(|| directory_of(part, parts));
        Box::new(ParquetTables { directory: &self.directory, part, open: None })
    }
}

fn failed(path: &Path) -> impl Fn(parquet::errors::ParquetError) -> ExportError + '_ {
    |error| match error {
        parquet::errors::ParquetError::External(source) => match source.downcast() {
            Ok(source) => ExportError::Io { path: path.to_owned(), source: *source },
            Err(other) => ExportError::format(format!("{}: {other}", path.display())),
        },
        other => ExportError::of_file(path)(other),
    }
}

fn node(&(name, kind, optional): &Column) -> Result<Node, parquet::errors::ParquetError> {
    let stored = match kind {
        Type::Int => Stored::INT32,
        Type::Long => Stored::INT64,
        Type::Real => Stored::DOUBLE,
        Type::Name => Stored::BYTE_ARRAY,
        Type::Flag => Stored::BOOLEAN,
    };
    let repetition = if optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let mut builder = Node::primitive_type_builder(name, stored).with_repetition(repetition);
    if kind == Type::Name {
        builder = builder
            .with_converted_type(ConvertedType::UTF8)
            .with_logical_type(Some(LogicalType::String));
    }
    builder.build()
}

fn properties(schema: &Schema) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(concat!("gammachi ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(Compression::LZ4_RAW);
    for (name, kind, _) in schema.columns {
        let path = ColumnPath::from(*name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), matches!(kind, Type::Name | Type::Int));
        if *kind == Type::Long {
            properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}

impl Open {
    fn write_group(&mut self) -> Result<(), parquet::errors::ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group: SerializedRowGroupWriter<_> = self.writer.next_row_group()?;
        for buffered in &mut self.columns {
            let Some(mut column) = group.next_column()? else { break };
            let defined = buffered.optional.then_some(buffered.defined.as_slice());
            match (column.untyped(), &buffered.values) {
                (ColumnWriter::Int32ColumnWriter(to), Values::Int(values)) => {
                    to.write_batch(values, defined, None)?;
                }
                (ColumnWriter::Int64ColumnWriter(to), Values::Long(values)) => {
                    to.write_batch(values, defined, None)?;
                }
                (ColumnWriter::DoubleColumnWriter(to), Values::Real(values)) => {
                    to.write_batch(values, defined, None)?;
                }
                (ColumnWriter::ByteArrayColumnWriter(to), Values::Name(values)) => {
                    to.write_batch(values, defined, None)?;
                }
                (ColumnWriter::BoolColumnWriter(to), Values::Flag(values)) => {
                    to.write_batch(values, defined, None)?;
                }
                _ => {}
            }
            column.close()?;
            buffered.defined.clear();
            match &mut buffered.values {
                Values::Int(values) => values.clear(),
                Values::Long(values) => values.clear(),
                Values::Real(values) => values.clear(),
                Values::Name(values) => values.clear(),
                Values::Flag(values) => values.clear(),
            }
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

/// Writes a run's tables into a directory that it makes, in parts of about so many calls. All
/// processes that opened the run call this; what is written does not depend on their number.
pub fn write(export: Export, part_calls: u64, path: &Path) -> Result<Written, ExportError> {
    let parts = Parts::with_calls(export.content, part_calls);
    let dataset = ParquetDataset { directory: path.to_owned() };
    dataset::write(export, &parts, &dataset)
}

impl Tables for ParquetTables<'_> {
    fn begin(&mut self, schema: &Schema) -> Result<(), ExportError> {
        self.finish()?;
        let mut path = self.directory.join(file_of(schema));
        if let Some(part) = &self.part {
            path.push(part);
            fs::create_dir(&path).map_err(ExportError::io(&path))?;
            path.push(file_of(schema));
        }
        let file = File::create_new(&path).map_err(ExportError::io(&path))?;
        let fields: Result<Vec<_>, _> =
            schema.columns.iter().map(|column| node(column).map(Arc::new)).collect();
        let root = fields
            .and_then(|fields| Node::group_type_builder(schema.name).with_fields(fields).build())
            .map_err(failed(&path))?;
        let file = BufWriter::with_capacity(1 << 18, file);
        let writer = SerializedFileWriter::new(file, Arc::new(root), Arc::new(properties(schema)));
        let columns = schema.columns.iter().map(|(_, kind, optional)| BufferedColumn {
            values: match kind {
                Type::Int => Values::Int(Vec::new()),
                Type::Long => Values::Long(Vec::new()),
                Type::Real => Values::Real(Vec::new()),
                Type::Name => Values::Name(Vec::new()),
                Type::Flag => Values::Flag(Vec::new()),
            },
            defined: Vec::new(),
            optional: *optional,
            last: None,
        });
        let columns = columns.collect();
        let writer = writer.map_err(failed(&path))?;
        self.open = Some(Open { path, writer, columns, rows: 0 });
        Ok(())
    }

    fn row(&mut self, cells: &[Cell]) -> Result<(), ExportError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
        open.rows += 1;
        if open.rows >= GROUP_ROWS {
            let written = open.write_group();
            written.map_err(failed(&open.path))?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let written = open.write_group().and_then(|()| open.writer.into_inner());
        let file = written.map_err(failed(&open.path))?;
        // A full disk of another host may be reported only now.
        let file = file.into_inner().map_err(|error| error.into_error());
        file.and_then(|file| file.sync_all()).map_err(ExportError::io(&open.path))
    }
}

#[cfg(test)]
mod tests;
