//! Writes a run's content and traffic as rows of [`Tables`]. The columns are explained in
//! `docs/reference/export.md`.

pub mod beside;
pub mod causes;
mod report;
mod schemas;

use std::collections::{HashMap, HashSet};

use crate::analysis::Analysis;
use crate::causes::Causes;
use crate::timeline::matching::Reason;

use super::content::{Call, Content, Export, What};
use super::error::ExportError;
use super::matches::Matches;
use super::parts::Parts;
use super::progress::{Progress, Written};
use super::rows::{MemberRow, MessageRow, TRUNCATED, UnmatchedRow, WILDCARD};
use super::steps::{Kind, Steps};
use super::traffic::NEVER;

pub use report::{ReportTable, report_tables};
pub use schemas::*;

fn time(value: i64) -> Cell<'static> {
    if value == NEVER { Cell::Empty } else { Cell::Whole(value) }
}

/// Writes all tables of a run, each as one.
pub fn write(export: Export, tables: &mut dyn Tables) -> Result<Written, ExportError> {
    let Export { content, progress, .. } = export;
    let matches = Matches::gather(export, &Parts::one(content))?;
    of_participants(content, tables)?;
    progress.stage("calls", Some(content.most_events()));
    tables.begin(&CALLS)?;
    let mut calls = 0;
    for rank in 0..content.head.ranks.len() {
        calls += calls_of(content, rank, &CallFilter::default(), tables, progress)?;
    }
    progress.stage("regions and recorder", Some(content.most_events()));
    recorder(content, tables)?;
    regions(content, tables, progress)?;
    beside::write(content, tables)?;
    progress.stage("messages", Some(matches.row_count()));
    messages(export, &matches, tables)?;
    collectives(export, &matches, tables)?;
    of_results(content, tables, progress)?;
    tables.finish()?;
    Ok(Written { calls, messages: matches.message_count(), collectives: matches.operations })
}

/// Writes the tables that do not grow with the number of calls.
pub(super) fn of_participants(
    content: &Content,
    tables: &mut dyn Tables,
) -> Result<(), ExportError> {
    run(content, tables)?;
    ranks(content, tables)?;
    communicators(content, tables)
}

/// Writes the tables of the analyses: causes, and what the report shows.
pub(super) fn of_results(
    content: &Content,
    tables: &mut dyn Tables,
    progress: &dyn Progress,
) -> Result<(), ExportError> {
    let write = |analysis: &Analysis, causes: &Causes| {
        causes::write(analysis, causes, tables)?;
        report::all_tables(analysis, causes).iter().try_for_each(|table| table.write(tables))
    };
    causes::explained(content, progress, write).unwrap_or(Ok(()))
}

/// Writes one table of a run; [`TABLES`] has them all.
///
/// # Errors
/// A row cannot be written, or what is set aside below `scratch` for sorting cannot be.
pub fn write_one(
    export: Export,
    schema: &'static Schema,
    tables: &mut dyn Tables,
) -> Result<(), ExportError> {
    let Export { content, progress, .. } = export;
    // Tables that come from one source are written together; the others' rows are dropped.
    let mut only = Only { schema, tables, on: false };
    match schema.name {
        "run" => run(content, &mut only)?,
        "ranks" => ranks(content, &mut only)?,
        "communicators" | "members" => communicators(content, &mut only)?,
        "calls" => {
            only.begin(&CALLS)?;
            for rank in 0..content.head.ranks.len() {
                calls_of(content, rank, &CallFilter::default(), &mut only, progress)?;
            }
        }
        "recorder" => recorder(content, &mut only)?,
        "regions" => regions(content, &mut only, progress)?,
        "parallel_regions" | "file_calls" => beside::write_one(content, schema, &mut only)?,
        "messages" | "unmatched" => {
            let matches = Matches::gather(export, &Parts::one(content))?;
            messages(export, &matches, &mut only)?;
        }
        "collectives" => {
            let matches = Matches::gather(export, &Parts::one(content))?;
            collectives(export, &matches, &mut only)?;
        }
        _ => causes::explained(content, progress, |analysis, causes| {
            causes::write(analysis, causes, &mut only)
        })
        .unwrap_or(Ok(()))?,
    }
    only.tables.finish()
}

/// Passes on the rows of one table.
struct Only<'t> {
    schema: &'static Schema<'static>,
    tables: &'t mut dyn Tables,
    on: bool,
}

impl Tables for Only<'_> {
    fn begin(&mut self, schema: &Schema) -> Result<(), ExportError> {
        self.on = schema.name == self.schema.name;
        if self.on { self.tables.begin(schema) } else { Ok(()) }
    }

    fn row(&mut self, cells: &[Cell]) -> Result<(), ExportError> {
        if self.on { self.tables.row(cells) } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        Ok(())
    }
}

fn run(content: &Content, tables: &mut dyn Tables) -> Result<(), ExportError> {
    let head = &content.head;
    tables.begin(&RUN)?;
    let number = |value: Option<i64>| value.map(|value| value.to_string());
    let window = content.choice.window_s.as_ref();
    let facts = [
        ("run", Some(head.title.clone())),
        ("program", Some(head.program.clone()).filter(|program| !program.is_empty())),
        ("mpi_library", Some(head.mpi_library.clone())),
        ("ranks", Some(head.world_size.to_string())),
        ("level", Some(head.level.to_string())),
        ("time_unit", Some("ns".to_owned())),
        ("zero_unix_ns", number(head.zero_unix_ns)),
        ("clock_bound_ns", head.bound_ns.map(|bound| format!("{bound:.1}"))),
        ("window_begin_s", window.map(|window| window.start.to_string())),
        ("window_end_s", window.map(|window| window.end.to_string())),
        ("written_by", Some(concat!("gammachi ", env!("CARGO_PKG_VERSION")).to_owned())),
    ];
    let parameters = head.parameters.iter();
    let parameters = parameters.map(|(name, value)| (format!("param.{name}"), Some(value.clone())));
    for (key, value) in
        facts.map(|(key, value)| (key.to_owned(), value)).into_iter().chain(parameters)
    {
        tables.row(&[Cell::Name(&key), value.as_deref().map_or(Cell::Empty, Cell::Name)])?;
    }
    Ok(())
}

fn ranks(content: &Content, tables: &mut dyn Tables) -> Result<(), ExportError> {
    tables.begin(&RANKS)?;
    for rank in &content.head.ranks {
        let clock = format!("{:?}", rank.alignment).to_lowercase();
        tables.row(&[
            whole(rank.rank),
            Cell::Name(&rank.host),
            whole(rank.pid),
            whole(rank.threads.len()),
            whole(rank.begin_ns),
            whole(rank.end_ns),
            Cell::Flag(rank.finalized),
            Cell::Name(&clock),
            rank.bound_ns.map_or(Cell::Empty, Cell::Real),
        ])?;
    }
    Ok(())
}

fn communicators(content: &Content, tables: &mut dyn Tables) -> Result<(), ExportError> {
    let communicators = &content.head.communicators;
    tables.begin(&COMMUNICATORS)?;
    for (number, communicator) in communicators.iter().enumerate() {
        tables.row(&[
            whole(number),
            Cell::Name(&communicator.name),
            communicator.made_by.as_deref().map_or(Cell::Empty, Cell::Name),
            Cell::Flag(communicator.inter),
            whole(communicator.groups.iter().map(Vec::len).sum::<usize>()),
        ])?;
    }
    tables.begin(&MEMBERS)?;
    for (number, communicator) in communicators.iter().enumerate() {
        for (group, members) in communicator.groups.iter().enumerate() {
            for (position, member) in members.iter().enumerate() {
                tables.row(&[whole(number), whole(group), whole(position), maybe(*member)])?;
            }
        }
    }
    Ok(())
}

/// Selects calls by more than rank and time.
#[derive(Debug, Clone, Default)]
pub struct CallFilter {
    /// Only calls of these MPI functions.
    pub functions: Option<HashSet<String>>,
    /// Only calls that begin inside of this region, on the thread that marked it.
    pub region: Option<String>,
}

/// Writes the calls of one rank, by its position among the exported ranks, as rows of [`CALLS`];
/// gives how many. The table must have been begun.
///
/// # Errors
/// A row cannot be written.
pub fn calls_of(
    content: &Content,
    rank: usize,
    filter: &CallFilter,
    tables: &mut dyn Tables,
    progress: &dyn Progress,
) -> Result<u64, ExportError> {
    let regions = &content.head.regions;
    let region = filter.region.as_ref().map(|name| regions.iter().position(|r| r == name));
    // How often each thread has begun the region without ending it.
    let mut depth: HashMap<u32, u32> = HashMap::new();
    let mut count = 0;
    for call in content.calls_of_any_time(rank) {
        progress.advance(1 + call.event.continuations as u64);
        match (region, call.what) {
            (Some(wanted), What::RegionBegin(begun)) if wanted == Some(begun as usize) => {
                *depth.entry(call.thread).or_default() += 1;
            }
            (Some(wanted), What::RegionEnd(ended)) if wanted == Some(ended as usize) => {
                let open = depth.entry(call.thread).or_default();
                *open = open.saturating_sub(1);
            }
            _ => {}
        }
        let Some(function) = content.function(&call) else { continue };
        if region.is_some() && depth.get(&call.thread).is_none_or(|open| *open == 0)
            || filter.functions.as_ref().is_some_and(|names| !names.contains(&function.name))
            || !content.wants_time(call.begin_ns)
        {
            continue;
        }
        count += 1;
        call_row(content, &call, tables)?;
    }
    Ok(count)
}

/// Writes a call as a row of [`CALLS`], unless it is none of a function.
pub(super) fn call_row(
    content: &Content,
    call: &Call,
    tables: &mut dyn Tables,
) -> Result<bool, ExportError> {
    let Some(function) = content.function(call) else { return Ok(false) };
    let head = &content.head.ranks[call.rank];
    let clock = &content.timeline.ranks[head.position].clock;
    let attributes = content.attributes(call);
    let polls = call.event.polls;
    let error = content.error_name(call);
    tables.row(&[
        whole(head.rank),
        whole(call.thread),
        whole(call.begin_ns),
        maybe(call.end_ns),
        Cell::Name(&function.name),
        Cell::Name(function.class.name()),
        maybe(attributes.standing.map(|standing| standing.communicator)),
        maybe(attributes.peer_rank),
        maybe(attributes.tag),
        maybe(attributes.bytes),
        maybe(attributes.received_bytes),
        maybe(attributes.request),
        maybe(polls.map(|(count, _)| count)),
        maybe(polls.map(|(_, ticks)| (clock.duration_s(ticks) * 1e9).round() as i64)),
        attributes.flops.map_or(Cell::Empty, Cell::Real),
        Cell::Flag(call.event.abandoned),
        error.as_deref().map_or(Cell::Empty, Cell::Name),
    ])?;
    Ok(true)
}

/// Whether it is time of the recorder.
pub(super) fn is_recorder(call: &Call) -> bool {
    matches!(call.what, What::Tool(_))
}

/// Writes time of the recorder as a row of [`RECORDER`]; nothing for anything else.
pub(super) fn recorder_row(
    content: &Content,
    call: &Call,
    tables: &mut dyn Tables,
) -> Result<(), ExportError> {
    let What::Tool(reason) = call.what else { return Ok(()) };
    tables.row(&[
        whole(content.head.ranks[call.rank].rank),
        whole(call.thread),
        whole(call.begin_ns),
        maybe(call.end_ns),
        Cell::Name(&format!("{reason:?}").to_lowercase()),
    ])
}

fn recorder(content: &Content, tables: &mut dyn Tables) -> Result<(), ExportError> {
    tables.begin(&RECORDER)?;
    for rank in 0..content.head.ranks.len() {
        for call in content.calls_of(rank) {
            recorder_row(content, &call, tables)?;
        }
    }
    Ok(())
}

fn regions(
    content: &Content,
    tables: &mut dyn Tables,
    progress: &dyn Progress,
) -> Result<(), ExportError> {
    tables.begin(&REGIONS)?;
    for rank in 0..content.head.ranks.len() {
        // Open regions of each thread. Inner regions wait until the outer one ends, so that rows
        // are in order of their beginning.
        let mut open: HashMap<u32, Vec<usize>> = HashMap::new();
        let mut held: Vec<(i64, Option<i64>, u32, u32)> = Vec::new();
        let passed = |call: &Call| progress.advance(1 + call.event.continuations as u64);
        for step in Steps::new(content, content.calls_of(rank), &passed) {
            let Kind::Region(region) = step.kind else { continue };
            let stack = open.entry(step.call.thread).or_default();
            if step.begins {
                stack.push(held.len());
                held.push((step.at_ns, None, step.call.thread, region));
            } else if let Some(index) = stack.pop() {
                held[index].1 = Some(step.at_ns);
            }
            if open.values().all(Vec::is_empty) {
                for (begin_ns, end_ns, thread, region) in held.drain(..) {
                    tables.row(&[
                        whole(content.head.ranks[rank].rank),
                        whole(thread),
                        whole(begin_ns),
                        whole(end_ns.unwrap_or(begin_ns)),
                        Cell::Name(&content.head.regions[region as usize]),
                    ])?;
                }
            }
        }
    }
    Ok(())
}

fn messages(export: Export, matches: &Matches, tables: &mut dyn Tables) -> Result<(), ExportError> {
    let Export { content, scratch, progress } = export;
    tables.begin(&MESSAGES)?;
    for row in matches.messages() {
        progress.advance(1);
        message_row(content, &row.map_err(ExportError::io(scratch))?, tables)?;
    }
    tables.begin(&UNMATCHED)?;
    for row in matches.unmatched() {
        progress.advance(1);
        unmatched_row(content, &row.map_err(ExportError::io(scratch))?, tables)?;
    }
    Ok(())
}

/// Writes a message as a row of [`MESSAGES`].
pub(super) fn message_row(
    content: &Content,
    row: &MessageRow,
    tables: &mut dyn Tables,
) -> Result<(), ExportError> {
    let rank = |place: u32| whole(content.head.ranks[place as usize].rank);
    tables.row(&[
        rank(row.source),
        rank(row.destination),
        whole(row.communicator),
        whole(row.tag),
        whole(row.bytes),
        whole(row.send_begin_ns),
        time(row.send_end_ns),
        whole(row.receive_begin_ns),
        time(row.receive_end_ns),
        whole(row.send_thread),
        whole(row.receive_thread),
        Cell::Flag(row.flags & WILDCARD != 0),
        Cell::Flag(row.flags & TRUNCATED != 0),
    ])
}

/// Writes a send or receive without a partner as a row of [`UNMATCHED`].
pub(super) fn unmatched_row(
    content: &Content,
    row: &UnmatchedRow,
    tables: &mut dyn Tables,
) -> Result<(), ExportError> {
    let receives = row.receives != 0;
    let known = |number: u32| maybe((number != u32::MAX).then_some(number));
    tables.row(&[
        Cell::Name(if receives { "receive" } else { "send" }),
        whole(content.head.ranks[row.rank as usize].rank),
        whole(row.begin_ns),
        known(row.partner),
        known(row.communicator),
        if receives { Cell::Empty } else { whole(row.bytes) },
        Cell::Name(Reason::ALL[row.reason as usize].name()),
    ])
}

fn collectives(
    export: Export,
    matches: &Matches,
    tables: &mut dyn Tables,
) -> Result<(), ExportError> {
    let Export { content, scratch, progress } = export;
    tables.begin(&COLLECTIVES)?;
    for row in matches.members() {
        progress.advance(1);
        member_row(content, &row.map_err(ExportError::io(scratch))?, tables)?;
    }
    Ok(())
}

/// Writes a member of a collective operation, with the operation's number and function, as a row of
/// [`COLLECTIVES`].
pub(super) fn member_row(
    content: &Content,
    (row, operation, function): &(MemberRow, u64, &str),
    tables: &mut dyn Tables,
) -> Result<(), ExportError> {
    tables.row(&[
        whole(*operation),
        Cell::Name(function),
        whole(row.communicator),
        whole(row.number),
        whole(content.head.ranks[row.rank as usize].rank),
        whole(row.thread),
        whole(row.begin_ns),
        time(row.end_ns),
        time(row.complete_ns),
        whole(row.sent_bytes),
        whole(row.received_bytes),
        whole(row.missing),
        Cell::Flag(row.mismatched != 0),
    ])
}
