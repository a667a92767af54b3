//! Reads what was recorded: calls and markers by rank and thread.
//!
//! Opening a [`Trace`] reads every stream of a run to its end and checks it: no diagnosis, no
//! damage, events in order, no event ends before it begins, no two events of a thread overlap.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trace_format::files::rank_file_path;
use trace_format::header::{Definition, is_finalized};
use trace_format::layout::{REGION_BEGIN, REGION_END, TOOL};
use trace_format::markers::ToolReason;
use trace_format::reader::{Event, RankFile};

/// The ranks of a run.
#[derive(Debug)]
pub struct Trace {
    /// The run directory.
    pub directory: PathBuf,
    /// By rank.
    pub ranks: Vec<RankTrace>,
}

/// One rank's file, read.
#[derive(Debug)]
pub struct RankTrace {
    /// The open file, for header and definitions.
    pub file: RankFile,
    /// By thread number.
    pub threads: Vec<ThreadTrace>,
}

/// One thread's events.
#[derive(Debug)]
pub struct ThreadTrace {
    /// Number in the file.
    pub number: u32,
    /// Calls and markers in order of their begin.
    pub events: Vec<Named>,
}

/// An event with its function's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Name of the function; `TOOL`, `BEGIN name` or `END name` for markers.
    pub name: String,
    /// The event as read from the file.
    pub event: Event,
}

impl Named {
    /// Whether it is a call, not a marker.
    pub fn is_call(&self) -> bool {
        !matches!(self.event.function, TOOL | REGION_BEGIN | REGION_END)
    }

    /// Whether the call had not returned.
    pub fn is_open(&self) -> bool {
        self.event.end.is_none() && !self.event.abandoned
    }
}

impl Trace {
    /// Opens the files of a run that has ended.
    ///
    /// # Errors
    /// What is missing or unsound, as a sentence.
    pub fn open(directory: &Path, ranks: u32) -> Result<Self, String> {
        let ranks =
            (0..ranks).map(|rank| RankTrace::open(&directory.join(rank_file_path(0, rank))));
        Ok(Self { directory: directory.to_owned(), ranks: ranks.collect::<Result<_, _>>()? })
    }

    /// Opens the files of a job that is still running; `None` while a file is missing or its header
    /// is not yet written.
    pub fn open_unfinished(directory: &Path, ranks: u32) -> Option<Self> {
        Self::open(directory, ranks).ok()
    }

    /// One rank.
    pub fn rank(&self, rank: usize) -> &RankTrace {
        &self.ranks[rank]
    }
}

impl RankTrace {
    /// Opens and checks one file.
    ///
    /// # Errors
    /// What is missing or unsound, as a sentence.
    pub fn open(path: &Path) -> Result<Self, String> {
        let file = RankFile::open(path).map_err(|error| error.to_string())?;
        if !file.diagnoses.is_empty() {
            return Err(format!("{}: {:?}", path.display(), file.diagnoses));
        }
        let regions: BTreeMap<i32, &str> = file
            .definitions
            .iter()
            .filter_map(|definition| match definition {
                Definition::Region { id, name } => Some((*id as i32, name.as_str())),
                _ => None,
            })
            .collect();
        let name_of = |event: &Event| {
            let region = || regions.get(&event.peer).copied().unwrap_or("(undefined)");
            match event.function {
                TOOL => "TOOL".to_owned(),
                REGION_BEGIN => format!("BEGIN {}", region()),
                REGION_END => format!("END {}", region()),
                function => file.function_name(function).unwrap_or("(unknown)").to_owned(),
            }
        };
        let mut threads = Vec::new();
        for thread in &file.threads {
            let mut events = file.events(thread);
            let named: Vec<Named> =
                events.by_ref().map(|event| Named { name: name_of(&event), event }).collect();
            if let Some(damage) = events.damage() {
                return Err(format!("{}: thread {}: {damage}", path.display(), thread.number));
            }
            check_order(&named)
                .map_err(|what| format!("{}: thread {}: {what}", path.display(), thread.number))?;
            threads.push(ThreadTrace { number: thread.number, events: named });
        }
        Ok(Self { file, threads })
    }

    /// Names of the first thread's calls in order.
    pub fn calls(&self) -> Vec<&str> {
        self.threads.first().map(ThreadTrace::calls).unwrap_or_default()
    }

    /// The first thread's last event, if any.
    pub fn last(&self) -> Option<&Named> {
        self.threads.first()?.events.last()
    }

    /// Calls of a name, over all threads.
    pub fn count(&self, name: &str) -> usize {
        self.threads.iter().map(|thread| thread.count(name)).sum()
    }

    /// Number of tool events with this reason, over all threads.
    pub fn tool_events(&self, reason: ToolReason) -> usize {
        let events = self.threads.iter().flat_map(|thread| &thread.events);
        let of_reason =
            |named: &&Named| named.event.function == TOOL && named.event.peer == reason as i32;
        events.filter(of_reason).count()
    }

    /// Events whose call had not returned, over all threads.
    pub fn open_calls(&self) -> Vec<&str> {
        let events = self.threads.iter().flat_map(|thread| &thread.events);
        events.filter(|named| named.is_open()).map(|named| named.name.as_str()).collect()
    }

    /// Whether MPI_Finalize returned.
    pub fn is_finalized(&self) -> bool {
        is_finalized(&self.file.definitions)
    }

    /// Why recording stopped before the program ended; `None` if it did not.
    pub fn stopped(&self) -> Option<&str> {
        self.file.definitions.iter().find_map(|definition| match definition {
            Definition::Stopped { reason, .. } => Some(reason.as_str()),
            _ => None,
        })
    }
}

impl ThreadTrace {
    /// Names of the calls in order.
    pub fn calls(&self) -> Vec<&str> {
        let calls = self.events.iter().filter(|named| named.is_call());
        calls.map(|named| named.name.as_str()).collect()
    }

    /// Names of calls and markers in order, without tool events.
    pub fn marked(&self) -> Vec<&str> {
        let events = self.events.iter().filter(|named| named.event.function != TOOL);
        events.map(|named| named.name.as_str()).collect()
    }

    /// Calls of a name.
    pub fn count(&self, name: &str) -> usize {
        self.events.iter().filter(|named| named.name == name).count()
    }
}

/// Checks that events are in order and do not overlap. There are two exceptions: MPI_Finalize
/// contains a tool event, the recorder's work before it calls the library's function; and runs of
/// alternating polls overlap each other.
fn check_order(events: &[Named]) -> Result<(), String> {
    let mut free_from = 0;
    for (index, Named { name, event }) in events.iter().enumerate() {
        let inside_finalize = event.function == TOOL
            && index.checked_sub(1).is_some_and(|before| events[before].name == "MPI_Finalize");
        let alternating = event.polls.is_some()
            && index.checked_sub(1).is_some_and(|before| {
                let before = &events[before].event;
                before.polls.is_some() && before.begin <= event.begin
            });
        if event.begin < free_from && !inside_finalize && !alternating {
            return Err(format!("event {index} ({name}) begins before the one before it ended"));
        }
        match event.end {
            Some(end) if end < event.begin => {
                return Err(format!("event {index} ({name}) ends before it begins"));
            }
            Some(end) => free_from = free_from.max(end),
            None => free_from = free_from.max(event.begin),
        }
    }
    Ok(())
}
