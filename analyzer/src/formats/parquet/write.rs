//! Writes tables as Parquet, one file per table: text with a dictionary, numbers without one, LZ4.

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

use crate::export::content::Content;
use crate::export::tables::{self, Cell, Column, Schema, Tables, Type};
use crate::export::{ExportError, Progress, Written};

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

/// Writes `TABLE.parquet` files into a directory that it makes.
pub struct ParquetTables {
    directory: PathBuf,
    open: Option<Open>,
}

impl ParquetTables {
    /// For this directory, which must not exist.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), open: None }
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

/// Writes a run's tables into a directory that it makes.
///
/// # Errors
/// A file cannot be written.
pub fn write(
    content: &Content,
    path: &Path,
    scratch: &Path,
    progress: &dyn Progress,
) -> Result<Written, ExportError> {
    tables::write(content, &mut ParquetTables::new(path), scratch, progress)
}

impl Tables for ParquetTables {
    fn begin(&mut self, schema: &'static Schema) -> Result<(), ExportError> {
        self.finish()?;
        fs::create_dir_all(&self.directory).map_err(ExportError::io(&self.directory))?;
        let path = self.directory.join(format!("{}.parquet", schema.name));
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
        let written = open.write_group().and_then(|()| open.writer.close());
        written.map(|_| ()).map_err(failed(&open.path))
    }
}
