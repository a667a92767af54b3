//! Reads the events of a `.prv` in order of time and writes calls, regions and tool time to the ranks' files.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::path::Path;

use trace_format::markers::ToolReason;
use trace_format::meaning::{Class, Meaning, Operation, Peer};
use trace_format::writer::NewCall;

use crate::formats::paraver::names::{
    COMMUNICATOR, IS_ROOT, MARK, MPI_TYPES, POLLS, RECEIVED_BYTES, RECORDER, ROOT, SENT_BYTES, USER,
};
use crate::import::rank::{ANY_SOURCE, RankWriter, World};
use crate::import::{ImportNote, Imported};
use crate::spill::Sorted;

use super::companions::Names;
use super::ends::{Ahead, End, Queue};
use super::head::Head;
use super::line_error::LineError;
use super::roots::Roots;
use super::scale::Scale;
use super::states::{Life, Outside, States};

pub(super) const WITHOUT_MESSAGE: &str = "calls that send or receive without a message in the trace (their partner is taken to be MPI_PROC_NULL)";
pub(super) const UNKNOWN_COMMUNICATOR: &str =
    "collective operations on a communicator that the trace does not define";
pub(super) const LATE_RECEIVES: &str = "receives that no wait or test call completes";
const ENDS_WITHOUT_CALL: &str = "ends of messages that lie in no call that sends or receives (persistent \
                                 requests, other threads)";
pub(super) const UNKNOWN_ROOT: &str = "calls of collective operations whose root no member names";

/// Why a line was rejected.
pub enum Failure {
    /// The line is invalid.
    Line(LineError),
    /// The run cannot be written.
    Write(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

impl From<LineError> for Failure {
    fn from(what: LineError) -> Self {
        Self::Line(what)
    }
}

/// A call that has not ended.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) call: NewCall,
    pub(super) operation: Operation,
    /// Event type that begins and ends it.
    pub(super) kind: u32,
    /// Communicator by its position in the head.
    pub(super) communicator: Option<u32>,
    /// Whether the call names an unknown communicator.
    pub(super) is_lost: bool,
    /// Whether the rank is the operation's root.
    pub(super) is_root: bool,
    /// The root, if we wrote the file.
    pub(super) root: Option<i32>,
    pub(super) is_rooted: bool,
}

#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) open: Option<OpenCall>,
    /// Open regions, with the event type that ends them.
    pub(super) regions: Vec<(u32, String)>,
    /// Event types of calls and regions inside the open call, which are left out.
    pub(super) inner: Vec<u32>,
    pub(super) tool: Option<(ToolReason, u64)>,
    pub(super) sends: Queue,
    pub(super) receives: Queue,
    /// Requests of posted receives, by the time of their completion.
    pub(super) waiting: BTreeMap<(u64, u32), End>,
    /// Requests whose completion the trace does not have, in order: the next wait completes them.
    pub(super) silent: VecDeque<u32>,
    pub(super) states: States,
}

/// A trace that is being imported.
pub struct Reading<'a> {
    pub(super) world: &'a World,
    scale: Scale,
    pub(super) ranks: Vec<RankWriter>,
    lives: Vec<Life>,
    pub(super) threads: BTreeMap<(usize, u32), Thread>,
    names: Names,
    numbers: HashMap<String, u16>,
    /// Positions of communicators by their numbers in events.
    communicators: HashMap<u64, u32>,
    sends: Ahead<'a>,
    receives: Ahead<'a>,
    pub(super) roots: Roots,
    outside: Outside,
    pub(super) imported: Imported,
    next_request: u32,
    /// Whether we wrote the file.
    pub(super) is_ours: bool,
}

impl<'a> Reading<'a> {
    /// Begins with a trace's head and messages; makes the ranks' files.
    ///
    /// # Errors
    /// A file cannot be made.
    pub fn new(
        world: &'a World,
        head: &Head,
        run: &Path,
        names: Names,
        (sends, receives): (&'a Sorted<End>, &'a Sorted<End>),
        hosts: &[String],
    ) -> io::Result<Self> {
        let create = |((node, _), rank): (&(usize, u32), u32)| {
            let host = node.checked_sub(1).and_then(|node| hosts.get(node)).cloned();
            let host = host.unwrap_or_else(|| format!("node{node}"));
            RankWriter::create(run, world, rank, &host)
        };
        let ranks: io::Result<Vec<RankWriter>> = head.tasks.iter().zip(0..).map(create).collect();
        let communicators = head.communicators.iter().zip(0..);
        Ok(Self {
            world,
            scale: Scale { ns: head.scale_ns, tasks: head.tasks.len() },
            ranks: ranks?,
            lives: vec![Life::default(); head.tasks.len()],
            threads: BTreeMap::new(),
            names,
            numbers: world.numbers(),
            communicators: communicators.map(|((number, _), place)| (*number, place)).collect(),
            sends: Ahead::new(sends),
            receives: Ahead::new(receives),
            roots: Roots::default(),
            outside: Outside::default(),
            imported: Imported { ranks: world.size, ..Imported::default() },
            next_request: 0,
            is_ours: false,
        })
    }

    /// Processes a line.
    ///
    /// # Errors
    /// The line is invalid, or a file cannot be written.
    pub fn record(&mut self, line: &str) -> Result<(), Failure> {
        let fields: Vec<&str> = line.split(':').collect();
        match fields.as_slice() {
            ["1", _, _, task, thread, begin, end, state] => {
                let place = self.scale.place(task, thread)?;
                let stretch = (self.scale.ticks(begin)?, self.scale.ticks(end)?);
                let state = state.parse().map_err(|_| LineError::State)?;
                self.state(place, stretch, state);
                Ok(())
            }
            ["2", _, _, task, thread, time, pairs @ ..] if pairs.len().is_multiple_of(2) => {
                let (place, at) = (self.scale.place(task, thread)?, self.scale.ticks(time)?);
                self.queue_ends_until(at)?;
                self.events(place, at, pairs)
            }
            // Read in the first pass.
            ["3", ..] => Ok(()),
            _ => Err(Failure::Line(LineError::record(line))),
        }
    }

    fn state(&mut self, place: (usize, u32), stretch: (u64, u64), state: u32) {
        if self.is_ours {
            // In our own files, states repeat the events.
            return;
        }
        if place.1 == 0 {
            self.lives[place.0].state(stretch, state);
        }
        self.threads.entry(place).or_default().states.add(stretch, state);
    }

    /// Adds the ends of messages up to a time to their threads' queues.
    fn queue_ends_until(&mut self, at: u64) -> io::Result<()> {
        while let Some(end) = self.sends.next_until(at)? {
            self.threads.entry((end.task as usize, end.thread)).or_default().sends.add(end);
        }
        while let Some(end) = self.receives.next_until(at)? {
            self.threads.entry((end.task as usize, end.thread)).or_default().receives.add(end);
        }
        Ok(())
    }

    fn events(&mut self, place: (usize, u32), at: u64, pairs: &[&str]) -> Result<(), Failure> {
        let mut parsed = Vec::with_capacity(pairs.len() / 2);
        for pair in pairs.chunks(2) {
            let kind = pair[0].parse::<u32>();
            // Values have 64 bits and may be signed.
            let value =
                pair[1].parse::<u64>().or_else(|_| pair[1].parse::<i64>().map(|v| v as u64));
            let (Ok(kind), Ok(value)) = (kind, value) else {
                return Err(Failure::Line(LineError::Event));
            };
            parsed.push((kind, value));
        }
        if parsed.iter().any(|(kind, _)| *kind == MARK) {
            self.is_ours = true;
        }
        let ours = self.is_ours;
        let starts =
            |kind: u32| MPI_TYPES.contains(&kind) || kind == USER || ours && kind == RECORDER;
        if parsed.iter().any(|(kind, _)| starts(*kind)) {
            self.ranks[place.0].note_time(at);
        }
        // Ends first: a call may end and the next one begin in the same line.
        let (ends, begins): (Vec<_>, Vec<_>) =
            parsed.iter().filter(|(kind, _)| starts(*kind)).partition(|(_, value)| *value == 0);
        for (kind, _) in ends {
            self.end(place, at, kind)?;
        }
        for (kind, value) in begins {
            self.begin(place, at, kind, value)?;
        }
        for (kind, value) in parsed.iter().filter(|(kind, _)| !starts(*kind)) {
            self.attribute(place, *kind, *value);
        }
        Ok(())
    }

    fn name(&self, kind: u32, value: u64) -> String {
        let known = self.names.get(&kind).and_then(|names| names.get(&value)).cloned();
        known.unwrap_or_else(|| format!("event {kind} value {value}"))
    }

    /// Writes a thread's states outside its calls up to a time.
    fn write_states_before(&mut self, place: (usize, u32), at: u64) -> io::Result<()> {
        let thread = self.threads.entry(place).or_default();
        if thread.open.is_some() {
            return Ok(());
        }
        while let Some((reason, stretch)) = thread.states.before(at, &mut self.outside) {
            self.ranks[place.0].tool(place.1, reason, stretch)?;
        }
        Ok(())
    }

    fn begin(
        &mut self,
        place: (usize, u32),
        at: u64,
        kind: u32,
        value: u64,
    ) -> Result<(), Failure> {
        self.write_states_before(place, at)?;
        let name = self.name(kind, value);
        let function = self.numbers.get(&name).copied();
        let is_recorder = kind == RECORDER;
        let is_call = function.filter(|_| !is_recorder && (kind != USER || is_compute(&name)));
        let thread = self.threads.entry(place).or_default();
        if is_recorder {
            thread.tool = ToolReason::from_number(value as i32).map(|reason| (reason, at));
            return Ok(());
        }
        if thread.open.is_some() {
            thread.inner.push(kind);
            self.imported.miss("calls and regions inside calls");
            return Ok(());
        }
        match is_call {
            Some(function) => {
                let compute = is_compute(&name).then_some((0.0, 0));
                if compute.is_some() {
                    self.imported.miss("operations of compute calls");
                }
                let call = NewCall { function, begin: at, compute, ..Default::default() };
                let Meaning { class, operation, fields, .. } = *Meaning::by_name(&name);
                thread.open = Some(OpenCall {
                    call,
                    operation,
                    kind,
                    communicator: None,
                    is_lost: false,
                    is_root: false,
                    root: None,
                    is_rooted: class == Class::Collective && fields.peer == Peer::Root,
                });
            }
            None => {
                if MPI_TYPES.contains(&kind) {
                    self.imported
                        .miss("MPI calls without a name (no .pcf, or not in it), as regions");
                }
                thread.regions.push((kind, name.clone()));
                self.ranks[place.0].marker(place.1, &name, true, at)?;
            }
        }
        Ok(())
    }

    fn attribute(&mut self, place: (usize, u32), kind: u32, value: u64) {
        let known = self.communicators.get(&value).copied();
        let id = known.and_then(|c| self.ranks[place.0].communicators.get(&c)).copied();
        let ours = self.is_ours;
        let Some(Thread { open: Some(open), .. }) = self.threads.get_mut(&place) else {
            return;
        };
        match kind {
            SENT_BYTES => open.call.bytes = value,
            RECEIVED_BYTES => open.call.received = Some(value),
            IS_ROOT => open.is_root = value != 0,
            COMMUNICATOR => {
                open.is_lost = id.is_none();
                open.call.communicator = id.unwrap_or(0);
                open.communicator = known.filter(|_| id.is_some());
            }
            ROOT if ours => open.root = value.checked_sub(1).and_then(|root| root.try_into().ok()),
            POLLS if ours => open.call.polls = Some((value, 0)),
            _ => {}
        }
    }

    fn end(&mut self, place: (usize, u32), at: u64, kind: u32) -> Result<(), Failure> {
        self.write_states_before(place, at)?;
        let thread = self.threads.entry(place).or_default();
        if kind == RECORDER {
            if let Some((reason, begin)) = thread.tool.take()
                && thread.open.is_none()
            {
                self.ranks[place.0].tool(place.1, reason, (begin, at))?;
            }
            return Ok(());
        }
        if thread.inner.last() == Some(&kind) {
            thread.inner.pop();
            return Ok(());
        }
        match thread.open.take() {
            Some(mut open) if open.kind == kind => {
                open.call.end = Some(at);
                thread.inner.clear();
                thread.states.call_ended(at);
                self.close(place, open)
            }
            other => {
                thread.open = other;
                match thread.regions.pop() {
                    Some((of, name)) if of == kind => {
                        self.ranks[place.0].marker(place.1, &name, false, at)?;
                    }
                    other => {
                        thread.regions.extend(other);
                        self.imported.miss("ends of calls and regions that never began");
                    }
                }
                Ok(())
            }
        }
    }

    pub(super) fn request(&mut self) -> u32 {
        self.next_request = self.next_request % 0x7fff_fffe + 1;
        self.next_request
    }

    /// Completes the run.
    pub fn finish(mut self, head: &Head, bound_ns: Option<f64>) -> Result<Imported, io::Error> {
        self.queue_ends_until(u64::MAX)?;
        let mut left = 0;
        let mut silent = 0u64;
        let mut working = vec![0u32; self.ranks.len()];
        for (place, mut thread) in std::mem::take(&mut self.threads) {
            if let Some(OpenCall { mut call, operation, .. }) = thread.open.take() {
                if operation != Operation::Nothing {
                    // Its partner is not known.
                    call.peer = ANY_SOURCE;
                }
                self.ranks[place.0].call(place.1, &call)?;
            }
            while let Some((reason, stretch)) = thread.states.before(u64::MAX, &mut self.outside) {
                self.ranks[place.0].tool(place.1, reason, stretch)?;
            }
            left += thread.sends.leftover() + thread.receives.leftover();
            silent += thread.waiting.len() as u64;
            working[place.0] += 1;
        }
        let threads: u64 = head.tasks.iter().map(|(_, threads)| u64::from(*threads)).sum();
        let silent_threads = threads.saturating_sub(working.iter().map(|n| u64::from(*n)).sum());
        let unknown_roots = std::mem::take(&mut self.roots).finish();
        for (what, count) in [
            (ENDS_WITHOUT_CALL, left),
            (LATE_RECEIVES, silent),
            (UNKNOWN_ROOT, unknown_roots),
            ("communicators of two groups", head.intercommunicators),
            ("threads without any event", silent_threads),
        ] {
            *self.imported.missing.entry(what).or_default() += count;
        }
        self.imported.missing.retain(|_, count| *count > 0);
        let whole = (self.scale.to_ticks(0), self.scale.to_ticks(head.duration));
        for (mut rank, life) in self.ranks.into_iter().zip(&self.lives) {
            let ours = self.is_ours;
            self.imported.calls += rank.calls;
            rank.set_life(life.known().or((!ours).then_some(whole)));
            rank.finish(self.world, bound_ns)?;
        }
        self.imported.notes.push(ImportNote::LacksOfParaver);
        if !self.outside.is_empty() {
            let states = self.outside.iter().map(|(state, ticks)| (*state, *ticks)).collect();
            self.imported.notes.push(ImportNote::OtherStates(states));
        }
        Ok(self.imported)
    }
}

/// Whether a function of the run is a compute function.
fn is_compute(name: &str) -> bool {
    Meaning::by_name(name).class == Class::Compute
}
