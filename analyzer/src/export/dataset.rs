//! Writes a run as tables of which the large ones are divided into [`Parts`], with all threads of all
//! processes. What is written does not depend on their number.
//!
//! In a part, rows are in order of time, so that a reader that wants a stretch of time skips most
//! groups of rows, and one that wants a few ranks skips most parts. A part without rows is left out,
//! but never the first, which shows the columns.

use std::path::Path;

use rayon::prelude::*;

use crate::spill::Spill;

use super::content::{Call, Content, Export};
use super::error::{ExportError, agreed};
use super::matches::Matches;
use super::parts::Parts;
use super::progress::{Progress, Written};
use super::rows::RegionRow;
use super::steps::{Kind, Steps};
use super::tables::{
    self, CALLS, COLLECTIVES, Cell, MESSAGES, RECORDER, REGIONS, Schema, Tables, UNMATCHED,
};

/// Makes the tables of a dataset.
pub trait Dataset: Sync {
    /// Makes the directories; the first process calls this before any other function.
    ///
    /// # Errors
    /// A directory cannot be made.
    fn prepare(&self, divided: &[&Schema], parts: usize) -> Result<(), ExportError>;

    /// Receives whole tables.
    fn whole(&self) -> Box<dyn Tables + '_>;

    /// Receives one of `parts` parts of tables.
    fn part(&self, part: usize, parts: usize) -> Box<dyn Tables + '_>;
}

/// Tables that are divided.
const DIVIDED: [&Schema; 6] = [&CALLS, &RECORDER, &REGIONS, &MESSAGES, &UNMATCHED, &COLLECTIVES];

/// One part of one table, begun with its first row.
struct PartTable<'d> {
    schema: &'static Schema<'static>,
    part: usize,
    tables: Box<dyn Tables + 'd>,
    is_begun: bool,
}

impl<'d> PartTable<'d> {
    fn new(dataset: &'d dyn Dataset, schema: &'static Schema, part: usize, parts: usize) -> Self {
        Self { schema, part, tables: dataset.part(part, parts), is_begun: false }
    }

    /// Where to write a row.
    fn begun(&mut self) -> Result<&mut dyn Tables, ExportError> {
        if !self.is_begun {
            self.tables.begin(self.schema)?;
            self.is_begun = true;
        }
        Ok(&mut *self.tables)
    }

    fn finish(mut self) -> Result<(), ExportError> {
        if self.part == 0 {
            self.begun()?;
        }
        self.tables.finish()
    }
}

/// What one thread writes.
#[derive(Debug, Clone, Copy)]
enum Task {
    Messages,
    Unmatched,
    Collectives,
    /// Calls, regions and the recorder's time of a part.
    Calls(usize),
    /// Parallel regions or calls on files of a part.
    Beside(&'static Schema<'static>, usize),
}

struct Writing<'w, 'a> {
    content: &'w Content<'a>,
    parts: &'w Parts,
    matches: &'w Matches,
    dataset: &'w dyn Dataset,
    scratch: &'w Path,
    progress: &'w dyn Progress,
}

/// Writes a run as a dataset. All processes call this.
///
/// # Errors
/// A file cannot be written; on all processes, if one has an error.
pub fn write(export: Export, parts: &Parts, dataset: &dyn Dataset) -> Result<Written, ExportError> {
    let Export { content, scratch, progress } = export;
    let processes = &content.run.processes;
    let prepared = match processes.is_first() {
        true => {
            let divided = DIVIDED.into_iter().chain(tables::beside::recorded(content));
            dataset.prepare(&divided.collect::<Vec<_>>(), parts.count())
        }
        false => Ok(()),
    };
    agreed(processes, prepared)?;
    let matches = Matches::gather(export, parts)?;
    let writing = Writing { content, parts, matches: &matches, dataset, scratch, progress };
    let written = agreed(processes, writing.write())?;
    Ok(written.into_iter().fold(Written::default(), |all, one| Written {
        calls: all.calls + one.calls,
        messages: all.messages + one.messages,
        collectives: all.collectives + one.collectives,
    }))
}

impl Writing<'_, '_> {
    /// Writes this process's parts and, in the first process, the tables that are not divided.
    fn write(&self) -> Result<Written, ExportError> {
        let Self { content, parts, matches, progress, .. } = *self;
        let ranks = parts.own().flat_map(|part| parts.ranks(part));
        let events = ranks.map(|rank| content.trace(rank).file.most_events()).sum::<u64>();
        progress.stage("tables", Some(events + matches.row_count()));
        let tasks = [Task::Messages, Task::Collectives, Task::Unmatched].into_iter();
        let beside = tables::beside::recorded(content);
        let beside = beside.flat_map(|of| parts.own().map(move |part| Task::Beside(of, part)));
        let tasks: Vec<Task> = tasks.chain(parts.own().map(Task::Calls)).chain(beside).collect();
        let calls = tasks.into_par_iter().with_max_len(1).map(|task| self.perform(task));
        let calls = calls.try_reduce(|| 0, |one, other| Ok(one + other))?;
        if content.run.processes.is_first() {
            let mut whole = self.dataset.whole();
            tables::of_participants(content, &mut *whole)?;
            tables::of_results(content, &mut *whole, progress)?;
            whole.finish()?;
        }
        let (messages, collectives) = (matches.message_count(), matches.operations);
        Ok(Written { calls, messages, collectives })
    }

    /// Returns the number of calls that it wrote.
    fn perform(&self, task: Task) -> Result<u64, ExportError> {
        let (content, matches) = (self.content, self.matches);
        let aside = ExportError::io(self.scratch);
        match task {
            Task::Messages => {
                let mut table = ByPart::new(self, &MESSAGES);
                for row in matches.messages() {
                    let row = row.map_err(&aside)?;
                    tables::message_row(content, &row, table.writer(row.part)?)?;
                }
                table.finish()?;
            }
            Task::Unmatched => {
                let mut table = ByPart::new(self, &UNMATCHED);
                for row in matches.unmatched() {
                    let row = row.map_err(&aside)?;
                    tables::unmatched_row(content, &row, table.writer(row.part)?)?;
                }
                table.finish()?;
            }
            Task::Collectives => {
                let mut table = ByPart::new(self, &COLLECTIVES);
                for row in matches.members() {
                    let row = row.map_err(&aside)?;
                    tables::member_row(content, &row, table.writer(row.0.part)?)?;
                }
                table.finish()?;
            }
            Task::Calls(part) => return self.calls_of(part),
            Task::Beside(schema, part) => {
                let mut table = PartTable::new(self.dataset, schema, part, self.parts.count());
                let ranks = self.parts.ranks(part);
                tables::beside::rows(content, ranks, schema, |cells| table.begun()?.row(cells))?;
                table.finish()?;
            }
        }
        Ok(0)
    }

    /// Writes the calls, the regions and the recorder's time of a part.
    fn calls_of(&self, part: usize) -> Result<u64, ExportError> {
        let Self { content, parts, dataset, scratch, progress, .. } = *self;
        let table = |schema| PartTable::new(dataset, schema, part, parts.count());
        let (mut calls, mut recorder) = (table(&CALLS), table(&RECORDER));
        let (mut count, mut failed) = (0, None);
        let mut write = |call: &Call| -> Result<(), ExportError> {
            progress.advance(1 + call.event.continuations as u64);
            if content.function(call).is_some() {
                tables::call_row(content, call, calls.begun()?)?;
                count += 1;
            } else if tables::is_recorder(call) {
                tables::recorder_row(content, call, recorder.begun()?)?;
            }
            Ok(())
        };
        // The steps end at the first error.
        let written = content.calls_of_ranks(parts.ranks(part)).map_while(|call| {
            write(&call).map_err(|error| failed = Some(error)).ok().map(|()| call)
        });
        let regions = match content.head.regions.is_empty() {
            true => {
                written.for_each(drop);
                Spill::new(scratch)
            }
            false => self.regions_of(written)?,
        };
        if let Some(error) = failed {
            return Err(error);
        }
        calls.finish()?;
        recorder.finish()?;
        let aside = ExportError::io(scratch);
        let mut table = table(&REGIONS);
        for row in regions.sorted().map_err(&aside)?.iter() {
            let row = row.map_err(&aside)?;
            table.begun()?.row(&[
                tables::whole(content.head.ranks[row.rank as usize].rank),
                tables::whole(row.thread),
                tables::whole(row.begin_ns),
                tables::whole(row.end_ns),
                Cell::Name(&content.head.regions[row.region as usize]),
            ])?;
        }
        table.finish()?;
        Ok(count)
    }

    /// Collects the regions among calls.
    fn regions_of(
        &self,
        calls: impl Iterator<Item = Call>,
    ) -> Result<Spill<RegionRow>, ExportError> {
        let mut open: std::collections::HashMap<(usize, u32), Vec<RegionRow>> = Default::default();
        let mut regions = Spill::new(self.scratch);
        let mut number = 0;
        for step in Steps::new(self.content, calls, &|_| {}) {
            let (Kind::Region(region), Call { rank, thread, .. }) = (step.kind, step.call) else {
                continue;
            };
            let stack = open.entry((rank, thread)).or_default();
            if step.begins {
                let (begin_ns, end_ns) = (step.at_ns, step.at_ns);
                let rank = rank as u32;
                stack.push(RegionRow {
                    begin_ns,
                    end_ns,
                    number,
                    rank,
                    thread,
                    region,
                    reserved: 0,
                });
                number += 1;
            } else if let Some(row) = stack.pop() {
                let row = RegionRow { end_ns: step.at_ns, ..row };
                regions.push(row).map_err(ExportError::io(self.scratch))?;
            }
        }
        Ok(regions)
    }
}

/// The parts of one table, one after another.
struct ByPart<'w, 'a> {
    writing: &'w Writing<'w, 'a>,
    schema: &'static Schema<'static>,
    open: Option<PartTable<'w>>,
    has_first: bool,
}

impl<'w, 'a> ByPart<'w, 'a> {
    fn new(writing: &'w Writing<'w, 'a>, schema: &'static Schema) -> Self {
        Self { writing, schema, open: None, has_first: false }
    }

    /// Where to write a row of a part.
    fn writer(&mut self, part: u32) -> Result<&mut dyn Tables, ExportError> {
        let (part, Writing { parts, dataset, .. }) = (part as usize, self.writing);
        if self.open.as_ref().is_none_or(|open| open.part != part) {
            self.close()?;
        }
        self.has_first |= part == 0;
        let new = || PartTable::new(*dataset, self.schema, part, parts.count());
        self.open.get_or_insert_with(new).begun()
    }

    fn close(&mut self) -> Result<(), ExportError> {
        self.open.take().map_or(Ok(()), PartTable::finish)
    }

    fn finish(mut self) -> Result<(), ExportError> {
        self.close()?;
        if !self.has_first && self.writing.parts.own().contains(&0) {
            self.writer(0)?;
        }
        self.close()
    }
}
