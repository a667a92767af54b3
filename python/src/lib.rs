//! The native part of the Python package `gammachi`: a run's tables by Arrow's C stream interface.
//!
//! `Run` keeps a run open: its files mapped, its clocks aligned. `Run::table` gives a `Table`,
//! which any library takes that knows the interface (`__arrow_c_stream__`): nothing goes through text,
//! and consumers that share the memory copy nothing. All work is done without Python's lock. What
//! Python users see is in `gammachi/` beside this folder.

mod columns;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::OnceLock;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::{FieldRef, SchemaRef};
use gammachi_analyzer::export::content::{Choice, Content, Export};
use gammachi_analyzer::export::tables::{self, CallFilter, ReportTable, Schema, TABLES};
use gammachi_analyzer::export::{self, Progress};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::timeline::communicators::CommunicatorTable;
use gammachi_analyzer::trace;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyModule};
use rayon::prelude::*;

use columns::{Columns, Dictionaries, UNIT};

create_exception!(
    gammachi,
    Error,
    PyException,
    "A run or study that cannot be read, recorded or explained."
);

/// No bar: Python users have their own.
struct Silent;

impl Progress for Silent {
    fn stage(&self, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64) {}
}

/// A run directory, opened.
#[pyclass(frozen)]
struct Run {
    run: trace::Run,
    timeline: GlobalTimeline,
    communicators: CommunicatorTable,
    report: OnceLock<Vec<ReportTable>>,
}

fn failed(error: impl std::fmt::Display) -> PyErr {
    Error::new_err(error.to_string())
}

#[pymethods]
impl Run {
    #[new]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| {
            let run = trace::Run::open(&path).map_err(failed)?;
            let communicators = CommunicatorTable::new(&run);
            export::check_plausible(&run, &communicators).map_err(failed)?;
            let timeline = GlobalTimeline::new(&run);
            Ok(Self { run, timeline, communicators, report: OnceLock::new() })
        })
    }

    /// What a reader of any table should know: damage, missing ranks, how good the clocks are.
    #[getter]
    fn remarks(&self) -> Vec<String> {
        let choice = Choice::default();
        export::remarks(&Content::new(&self.run, &self.timeline, &self.communicators, &choice))
    }

    /// Ranks of MPI_COMM_WORLD.
    #[getter]
    fn size(&self) -> u32 {
        self.run.world_size
    }

    /// One table, with what is wanted of it.
    #[pyo3(signature = (name, ranks=None, window=None, functions=None, region=None, columns=None))]
    #[allow(clippy::too_many_arguments, reason = "the keywords of a Python function")]
    fn table(
        &self,
        py: Python<'_>,
        name: &str,
        ranks: Option<Vec<u32>>,
        window: Option<(f64, f64)>,
        functions: Option<HashSet<String>>,
        region: Option<String>,
        columns: Option<Vec<String>>,
    ) -> PyResult<Table> {
        if let Some(absent) = ranks.iter().flatten().find(|rank| **rank >= self.run.world_size) {
            let size = self.run.world_size;
            return Err(PyValueError::new_err(format!(
                "rank {absent}: the run has ranks 0 to {}",
                size - 1
            )));
        }
        let choice = Choice {
            ranks: ranks.map(|ranks| ranks.into_iter().map(|rank| rank..rank + 1).collect()),
            window_s: window.map(|(from, to)| from..to),
        };
        let (filter, columns) = (CallFilter { functions, region }, columns.as_deref());
        py.detach(|| {
            let content = Content::new(&self.run, &self.timeline, &self.communicators, &choice);
            match TABLES.iter().find(|schema| schema.name == name) {
                Some(schema) => self.events(&content, schema, &filter, columns),
                None => self.of_report(&content, name, columns),
            }
        })
    }

    /// Names of the report's tables.
    fn report_tables(&self, py: Python<'_>) -> PyResult<Vec<&'static str>> {
        let choice = Choice::default();
        py.detach(|| {
            let content = Content::new(&self.run, &self.timeline, &self.communicators, &choice);
            Ok(self.report(&content)?.iter().map(|table| table.name).collect())
        })
    }
}

impl Run {
    /// A table of single events.
    fn events(
        &self,
        content: &Content,
        schema: &'static Schema<'static>,
        filter: &CallFilter,
        columns: Option<&[String]>,
    ) -> PyResult<Table> {
        let dictionaries = Dictionaries::new(schema, columns).map_err(PyValueError::new_err)?;
        if let Some(region) = &filter.region
            && !content.head.regions.contains(region)
        {
            let known = content.head.regions.join(", ");
            let known = if known.is_empty() { "none".to_owned() } else { known };
            return Err(PyValueError::new_err(format!(
                "no region {region:?}; the run has {known}"
            )));
        }
        let collected = if schema.name == tables::CALLS.name {
            let ranks = (0..content.head.ranks.len()).into_par_iter();
            let of_rank = |rank| {
                let mut columns = Columns::new(&dictionaries);
                tables::calls_of(content, rank, filter, &mut columns, &Silent).map(|_| columns)
            };
            ranks.map(of_rank).collect::<Result<Vec<_>, _>>().map_err(failed)?
        } else {
            let of_causes = [
                &tables::WAITS,
                &tables::CAUSES,
                &tables::ITERATIONS,
                &tables::CRITICAL_PATH,
                &tables::PATH_LABELS,
                &tables::PATH_LABEL_SIZES,
            ];
            if of_causes.iter().any(|one| one.name == schema.name) {
                can_be_told(content, schema.name)?;
            }
            let mut columns = Columns::new(&dictionaries);
            let scratch = std::env::temp_dir();
            let export = Export { content, scratch: &scratch, progress: &Silent };
            tables::write_one(export, schema, &mut columns).map_err(failed)?;
            vec![columns]
        };
        self.table_of(&dictionaries, collected)
    }

    /// The report's tables, which are computed once.
    fn report(&self, content: &Content) -> PyResult<&[ReportTable]> {
        can_be_told(content, "report")?;
        let compute = || tables::report_tables(content, &Silent).unwrap_or_default();
        Ok(self.report.get_or_init(compute))
    }

    /// One of the report's tables.
    fn of_report(
        &self,
        content: &Content,
        name: &str,
        columns: Option<&[String]>,
    ) -> PyResult<Table> {
        let report = self.report(content)?;
        let table = report.iter().find(|table| table.name == name).ok_or_else(|| {
            let names = TABLES.iter().map(|schema| schema.name);
            let names: Vec<&str> = names.chain(report.iter().map(|table| table.name)).collect();
            PyValueError::new_err(format!("no table {name:?}; there are {}", names.join(", ")))
        })?;
        let schema = Schema { name: table.name, columns: &table.columns() };
        let dictionaries = Dictionaries::with_units(&schema, table.units(), columns);
        let dictionaries = dictionaries.map_err(PyValueError::new_err)?;
        let mut columns = Columns::new(&dictionaries);
        table.write(&mut columns).map_err(failed)?;
        self.table_of(&dictionaries, vec![columns])
    }

    fn table_of(&self, dictionaries: &Dictionaries, collected: Vec<Columns>) -> PyResult<Table> {
        self.run.check_readable().map_err(failed)?;
        let (schema, batches) = dictionaries.batches(collected).map_err(failed)?;
        Ok(Table { schema, batches })
    }
}

/// Whether the causes of a run are explained.
fn can_be_told(content: &Content, name: &str) -> PyResult<()> {
    match tables::causes::left_out(content) {
        Some(why) => Err(failed(format!("{name}: cannot be told: {why}"))),
        None => Ok(()),
    }
}

/// A table, ready for any library that takes Arrow's C stream.
#[pyclass(frozen)]
struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Table {
    /// Arrow's C stream interface; each call gives a stream of its own over the same memory.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer keep to its own schema.
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Units of the columns that have one.
    #[getter]
    fn units(&self) -> BTreeMap<String, String> {
        let fields = self.schema.fields().iter();
        let unit =
            |field: &FieldRef| Some((field.name().clone(), field.metadata().get(UNIT)?.clone()));
        fields.filter_map(unit).collect()
    }

    /// Bytes of all buffers.
    #[getter]
    fn nbytes(&self) -> usize {
        self.batches.iter().map(RecordBatch::get_array_memory_size).sum()
    }
}

/// The module `gammachi._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Error", module.py().get_type::<Error>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Run>()?;
    module.add_class::<Table>()
}
