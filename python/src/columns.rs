//! Collects the rows of a table in Arrow's columns.
//!
//! Text columns are dictionaries. Several [`Columns`] of one table, filled by different threads, share
//! one [`Dictionaries`], so that a name has the same number in all batches; [`Dictionaries::batches`]
//! completes them when all rows are there.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray,
};
use arrow_buffer::{BooleanBufferBuilder, NullBufferBuilder};
use arrow_schema::{ArrowError, DataType, Field, Metadata, Schema as ArrowSchema, SchemaRef};
use gammachi_analyzer::export::tables::{Cell, Schema, Tables, Type};
use gammachi_analyzer::export::{ExportError, FormatError};
use rustc_hash::FxHashMap;

/// Rows of a batch: large enough for consumers, small enough that a buffer seldom grows in vain.
const BATCH: usize = 1 << 17;

/// The key of a column's unit in its metadata.
pub const UNIT: &str = "unit";

/// Which columns of a table are wanted, and the names that occur in each.
pub struct Dictionaries<'s> {
    schema: &'s Schema<'s>,
    units: Vec<Option<&'static str>>,
    wanted: Vec<bool>,
    names: Vec<Mutex<Names>>,
}

#[derive(Default)]
struct Names {
    numbers: FxHashMap<Box<str>, i32>,
    in_order: Vec<Box<str>>,
}

/// The unit of a column of single events, in which its name ends.
fn unit(column: &str) -> Option<&'static str> {
    let mut ends = [("_ns", "ns"), ("bytes", "B")].into_iter();
    ends.find(|(end, _)| column.ends_with(end)).map(|(_, unit)| unit)
}

impl<'s> Dictionaries<'s> {
    /// Of a table of single events, with all its columns or those named.
    ///
    /// # Errors
    /// As [`Self::with_units`].
    pub fn new(schema: &'s Schema, columns: Option<&[String]>) -> Result<Self, String> {
        Self::with_units(schema, schema.columns.iter().map(|column| unit(column.0)), columns)
    }

    /// Of a table whose columns have these units, with all its columns or those named.
    ///
    /// # Errors
    /// The name of a column that the table does not have, with those that it has.
    pub fn with_units(
        schema: &'s Schema,
        units: impl IntoIterator<Item = Option<&'static str>>,
        columns: Option<&[String]>,
    ) -> Result<Self, String> {
        let mut wanted = vec![columns.is_none(); schema.columns.len()];
        for name in columns.unwrap_or_default() {
            match schema.columns.iter().position(|(column, ..)| column == name) {
                Some(at) => wanted[at] = true,
                None => {
                    let all: Vec<&str> = schema.columns.iter().map(|(name, ..)| *name).collect();
                    let table = schema.name;
                    return Err(format!(
                        "{table} has no column {name:?}; it has {}",
                        all.join(", ")
                    ));
                }
            }
        }
        let names = schema.columns.iter().map(|_| Mutex::default()).collect();
        Ok(Self { schema, units: units.into_iter().collect(), wanted, names })
    }

    fn number(&self, column: usize, name: &str) -> i32 {
        let mut names = self.names[column].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = names.numbers.get(name) {
            return *number;
        }
        let number = i32::try_from(names.in_order.len()).expect("fewer names than memory holds");
        names.numbers.insert(name.into(), number);
        names.in_order.push(name.into());
        number
    }

    fn arrow_schema(&self) -> SchemaRef {
        let columns = self.schema.columns.iter().zip(&self.units).zip(&self.wanted);
        let fields = columns.filter(|(_, wanted)| **wanted).map(|((column, unit), _)| {
            let (name, holds, nullable) = column;
            let holds = match holds {
                Type::Int => DataType::Int32,
                Type::Long => DataType::Int64,
                Type::Real => DataType::Float64,
                Type::Flag => DataType::Boolean,
                Type::Name => {
                    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
                }
            };
            let unit: Metadata = unit.map(|unit| (UNIT, unit)).into_iter().collect();
            Field::new(*name, holds, *nullable).with_metadata(unit)
        });
        Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()))
    }

    /// The columns, with their dictionaries, of everything that was collected, in this order.
    ///
    /// # Errors
    /// Columns that do not fit their schema: a fault of this library.
    pub fn batches(
        &self,
        collected: Vec<Columns>,
    ) -> Result<(SchemaRef, Vec<RecordBatch>), ArrowError> {
        let schema = self.arrow_schema();
        let dictionaries: Vec<ArrayRef> = self
            .names
            .iter()
            .map(|names| {
                let names = names.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::new(StringArray::from_iter_values(names.in_order.iter())) as ArrayRef
            })
            .collect();
        let complete = |(at, column): (usize, Column)| -> Result<ArrayRef, ArrowError> {
            let nulls = {
                let mut known = column.known;
                known.finish()
            };
            Ok(match column.values {
                Values::Int(values) => Arc::new(Int32Array::new(values.into(), nulls)),
                Values::Long(values) => Arc::new(Int64Array::new(values.into(), nulls)),
                Values::Real(values) => Arc::new(Float64Array::new(values.into(), nulls)),
                Values::Flag(mut values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
                Values::Name(numbers) => {
                    let numbers = Int32Array::new(numbers.into(), nulls);
                    let names = dictionaries[at].clone();
                    Arc::new(DictionaryArray::<Int32Type>::try_new(numbers, names)?)
                }
            })
        };
        let mut batches = Vec::new();
        for chunk in collected.into_iter().flat_map(Columns::chunks) {
            let columns = chunk.into_iter().enumerate();
            let columns = columns.filter_map(|(at, column)| Some((at, column?)));
            let columns = columns.map(complete).collect::<Result<Vec<_>, _>>()?;
            // Without a column, as when none is wanted, there are no rows either.
            if columns.first().is_some_and(|column| !column.is_empty()) {
                batches.push(RecordBatch::try_new(schema.clone(), columns)?);
            }
        }
        Ok((schema, batches))
    }
}

enum Values {
    Int(Vec<i32>),
    Long(Vec<i64>),
    Real(Vec<f64>),
    /// Numbers of names.
    Name(Vec<i32>),
    Flag(BooleanBufferBuilder),
}

struct Column {
    values: Values,
    known: NullBufferBuilder,
}

impl Column {
    fn new(holds: Type) -> Self {
        let values = match holds {
            Type::Int => Values::Int(Vec::with_capacity(BATCH)),
            Type::Long => Values::Long(Vec::with_capacity(BATCH)),
            Type::Real => Values::Real(Vec::with_capacity(BATCH)),
            Type::Name => Values::Name(Vec::with_capacity(BATCH)),
            Type::Flag => Values::Flag(BooleanBufferBuilder::new(BATCH)),
        };
        Self { values, known: NullBufferBuilder::new(BATCH) }
    }

    fn shrink(&mut self) {
        match &mut self.values {
            Values::Int(values) | Values::Name(values) => values.shrink_to_fit(),
            Values::Long(values) => values.shrink_to_fit(),
            Values::Real(values) => values.shrink_to_fit(),
            Values::Flag(_) => {}
        }
    }
}

type Chunk = Vec<Option<Column>>;

/// Rows of one table, collected in columns.
pub struct Columns<'d> {
    dictionaries: &'d Dictionaries<'d>,
    full: Vec<Chunk>,
    last: Chunk,
    rows: usize,
    /// Numbers of the names seen in each column: the shared dictionary is locked once per name, not per row.
    known_names: Vec<FxHashMap<Box<str>, i32>>,
}

impl<'d> Columns<'d> {
    /// None yet.
    pub fn new(dictionaries: &'d Dictionaries<'d>) -> Self {
        let columns = dictionaries.schema.columns.len();
        let known_names = (0..columns).map(|_| FxHashMap::default()).collect();
        let last = Self::empty(dictionaries);
        Self { dictionaries, full: Vec::new(), last, rows: 0, known_names }
    }

    fn empty(dictionaries: &Dictionaries) -> Chunk {
        let columns = dictionaries.schema.columns.iter().zip(&dictionaries.wanted);
        columns.map(|((_, holds, _), wanted)| wanted.then(|| Column::new(*holds))).collect()
    }

    fn chunks(mut self) -> impl Iterator<Item = Chunk> {
        self.last.iter_mut().flatten().for_each(Column::shrink);
        self.full.into_iter().chain([self.last])
    }
}

impl Tables for Columns<'_> {
    fn begin(&mut self, _: &Schema) -> Result<(), ExportError> {
        Ok(())
    }

    fn row(&mut self, cells: &[Cell]) -> Result<(), ExportError> {
        if self.rows == BATCH {
            let next = Self::empty(self.dictionaries);
            self.full.push(std::mem::replace(&mut self.last, next));
            self.rows = 0;
        }
        for (at, (column, cell)) in self.last.iter_mut().zip(cells).enumerate() {
            let Some(Column { values, known }) = column else { continue };
            known.append(*cell != Cell::Empty);
            match (values, cell) {
                (Values::Int(values), Cell::Empty) => values.push(0),
                (Values::Int(values), Cell::Whole(value)) => {
                    let value = i32::try_from(*value)
                        .map_err(|_| too_large(self.dictionaries.schema, at, *value))?;
                    values.push(value);
                }
                (Values::Long(values), Cell::Empty) => values.push(0),
                (Values::Long(values), Cell::Whole(value)) => values.push(*value),
                (Values::Real(values), Cell::Empty) => values.push(0.0),
                (Values::Real(values), Cell::Real(value)) => values.push(*value),
                (Values::Flag(values), Cell::Flag(value)) => values.append(*value),
                (Values::Flag(values), Cell::Empty) => values.append(false),
                (Values::Name(values), Cell::Empty) => values.push(0),
                (Values::Name(values), Cell::Name(name)) => {
                    let known_names = &mut self.known_names[at];
                    let number = match known_names.get(*name) {
                        Some(number) => *number,
                        None => {
                            let number = self.dictionaries.number(at, name);
                            known_names.insert((*name).into(), number);
                            number
                        }
                    };
                    values.push(number);
                }
                _ => return Err(ExportError::format("a cell of another type than its column")),
            }
        }
        self.rows += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        Ok(())
    }
}

fn too_large(schema: &Schema, column: usize, value: i64) -> ExportError {
    let (name, ..) = schema.columns[column];
    let error: FormatError = format!("{}.{name}: {value} does not fit 32 bits", schema.name).into();
    ExportError::format(error)
}
