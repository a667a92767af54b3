//! Tables of parallel regions and of calls on files, in the order in which the records were written.

use std::ops::Range;

use crate::export::beside::{Beside, FileCalls, Record, Team, kind_name};
use crate::export::content::Content;
use crate::export::error::ExportError;
use crate::trace::symbols::SourceLocation;

use super::schemas::{Cell, FILE_CALLS, PARALLEL_REGIONS, Schema, Tables, maybe, whole};

/// The tables of what was recorded.
pub fn recorded(content: &Content) -> impl Iterator<Item = &'static Schema<'static>> + use<> {
    let teams = content.has_teams().then_some(&PARALLEL_REGIONS);
    teams.into_iter().chain(content.has_file_calls().then_some(&FILE_CALLS))
}

/// Writes one of them, without its beginning, of ranks by their positions among
/// [`crate::export::content::Head::ranks`].
///
/// # Errors
/// A row cannot be written.
pub fn rows(
    content: &Content,
    ranks: Range<usize>,
    schema: &Schema,
    mut row: impl FnMut(&[Cell]) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let Some(mut beside) = Beside::new(content) else { return Ok(()) };
    let wants_teams = schema.name == PARALLEL_REGIONS.name;
    beside.of_ranks(ranks, |beside, record| match record {
        Record::Team(team) if wants_teams => row(&team_cells(content, beside, &team)),
        Record::FileCalls(calls) if !wants_teams => row(&file_cells(content, beside, &calls)),
        _ => Ok(()),
    })
}

/// Writes those of a run, each as one.
///
/// # Errors
/// A row cannot be written.
pub fn write(content: &Content, tables: &mut dyn Tables) -> Result<(), ExportError> {
    recorded(content).try_for_each(|schema| write_one(content, schema, tables))
}

/// Writes one of them as one.
///
/// # Errors
/// A row cannot be written.
pub fn write_one(
    content: &Content,
    schema: &Schema,
    tables: &mut dyn Tables,
) -> Result<(), ExportError> {
    tables.begin(schema)?;
    rows(content, 0..content.head.ranks.len(), schema, |cells| tables.row(cells))
}

fn text(of: Option<&str>) -> Cell<'_> {
    of.map_or(Cell::Empty, Cell::Name)
}

fn team_cells<'c>(content: &Content, beside: &'c Beside, of: &Team) -> [Cell<'c>; 15] {
    let SourceLocation { function, file, line } = beside.place(of.place);
    [
        whole(content.head.ranks[of.rank].rank),
        whole(of.thread),
        whole(of.begin_ns),
        whole(of.end_ns),
        whole(of.threads),
        maybe(of.slowest),
        whole(of.work_ns),
        whole(of.longest_ns),
        whole(of.barriers_ns),
        whole(of.locks_ns),
        whole(of.tasks_ns),
        whole(of.ends_ns),
        text(function.as_deref()),
        text(file.as_deref()),
        maybe(*line),
    ]
}

fn file_cells<'c>(content: &Content, beside: &'c Beside, of: &FileCalls) -> [Cell<'c>; 11] {
    [
        whole(content.head.ranks[of.rank].rank),
        whole(of.thread),
        whole(of.begin_ns),
        whole(of.end_ns),
        Cell::Flag(of.is_inside_mpi),
        Cell::Name(kind_name(of.kind)),
        whole(of.file + 1),
        text(beside.files.name(of.file)),
        whole(of.calls),
        whole(of.bytes),
        whole(of.inside_ns),
    ]
}
