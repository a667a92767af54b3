//! A Paraver trace as a run: `.prv` line by line, names from the `.pcf` and hosts from the `.row` beside
//! it.
//!
//! Paraver knows when a message was sent and received, but not by which call: that is the call of the
//! thread in which the time lies. It knows no requests and no communicators of messages either: a send
//! whose call does not block is taken to be complete at the thread's next wait, and all messages to go
//! over MPI_COMM_WORLD. Tasks are ranks.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use trace_format::functions::{Class, class_of};
use trace_format::layout::{COMMUNICATOR_WORLD, COMPLETED, ToolReason};
use trace_format::reader::{Half, RequestState};
use trace_format::writer::Position;

use crate::present::export::paraver::{
    COLLECTIVE, COMMUNICATOR, EXTRAE, POLLS, RECEIVED_BYTES, RECORDER, ROOT, SENT_BYTES, USER,
};
use crate::timeline::matching::operations::{Operation, operation};

use super::rank::{
    ANY_SOURCE, ANY_TAG, ImportedCall, ImportedCommunicator, RankWriter, World, ZERO_TICKS,
};
use super::{ImportError, Imported};

/// Longest line that is read; longer ones are damage.
const LINE_BYTES: u64 = 64 << 20;
/// Event types of MPI calls: 50000001 to this one.
const MPI_TYPES: std::ops::RangeInclusive<u32> = 50_000_001..=50_000_009;

/// What the first line and the communicators behind it say.
struct Header {
    scale_ns: f64,
    /// Node of each task, and its threads.
    tasks: Vec<(usize, u32)>,
    communicators: Vec<ImportedCommunicator>,
}

/// A message that waits for the calls of its ends.
#[derive(Debug, Clone, Copy)]
struct Pending {
    posted: u64,
    received: u64,
    peer: u32,
    tag: i32,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Thread {
    /// The call that is open, its operation, and what it is.
    open: Option<(ImportedCall, Operation, u32)>,
    regions: Vec<String>,
    tool: Option<(ToolReason, u64)>,
    /// Messages that leave in a call that has not ended.
    sends: VecDeque<(u64, u32, i32, u64)>,
    /// Messages whose receiving call has not ended.
    receives: Vec<Pending>,
    /// Receives that were posted by calls that have ended, with what they span and their request.
    posted: VecDeque<(u64, u64, Position, u32)>,
    /// Requests of receives that were found, and when each is complete.
    waiting: Vec<(u64, u32, Pending)>,
    /// Requests of sends that nobody has waited for.
    sent: VecDeque<u32>,
}

struct Reading<'a> {
    world: &'a World,
    ranks: Vec<RankWriter>,
    threads: BTreeMap<(usize, u32), Thread>,
    functions: HashMap<u32, HashMap<u64, String>>,
    numbers: HashMap<String, u16>,
    imported: Imported,
    next_request: u32,
    scale_ns: f64,
    unreceived: u64,
}

fn lines_of(file: &Path) -> io::Result<Box<dyn BufRead>> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let opened = File::open(file)?;
    Ok(match name.ends_with(".gz") {
        true => Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(opened))),
        false => Box::new(BufReader::with_capacity(1 << 18, opened)),
    })
}

/// The file of the same trace with another ending.
fn beside(file: &Path, ending: &str) -> PathBuf {
    let plain = match file.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz")) {
        true => file.with_extension(""),
        false => file.to_owned(),
    };
    plain.with_extension(ending)
}

fn next_line(lines: &mut dyn BufRead, line: &mut String) -> io::Result<bool> {
    line.clear();
    let count = lines.take(LINE_BYTES).read_line(line)?;
    Ok(count > 0)
}

/// Imports a trace by its `.prv`.
///
/// # Errors
/// See [`super::import`].
pub fn import(file: &Path, run: &Path) -> Result<Imported, ImportError> {
    let damaged = |at: usize, what: String| ImportError::Damaged {
        path: file.to_owned(),
        what: format!("line {at}: {what}"),
    };
    let unreadable = |source| ImportError::Read { path: file.to_owned(), source };
    let cannot_write = |source| ImportError::Write { path: run.to_owned(), source };
    let mut lines = lines_of(file).map_err(unreadable)?;
    let mut line = String::new();
    let mut at = 1;
    next_line(&mut *lines, &mut line).map_err(unreadable)?;
    let (mut header, count) = header(line.trim_end()).map_err(|what| damaged(1, what))?;
    for _ in 0..count {
        at += 1;
        next_line(&mut *lines, &mut line).map_err(unreadable)?;
        let of = communicator(line.trim_end(), header.tasks.len());
        header.communicators.push(of.map_err(|what| damaged(at, what))?);
    }
    let functions = names(&beside(file, "pcf"));
    let hosts = hosts(&beside(file, "row"));
    let mpi = functions.iter().filter(|(kind, _)| MPI_TYPES.contains(kind));
    let mpi = mpi.flat_map(|(_, names)| names.values().cloned());
    let world = World {
        size: header.tasks.len() as u32,
        origin: format!("imported from Paraver ({})", file.display()),
        program: String::new(),
        compute: "outside".into(),
        functions: World::function_names(mpi.filter(|name| name.starts_with("MPI_"))),
        communicators: header.communicators,
        zero_unix_ns: 0,
        run_id: super::otf2::run_id(file),
    };
    let ranks: io::Result<Vec<RankWriter>> = header
        .tasks
        .iter()
        .zip(0..)
        .map(|((node, _), rank)| {
            let host = hosts.get(node.saturating_sub(1)).cloned();
            let host = host.unwrap_or_else(|| format!("node{node}"));
            RankWriter::create(run, &world, rank, &host)
        })
        .collect();
    let mut reading = Reading {
        world: &world,
        ranks: ranks.map_err(cannot_write)?,
        threads: BTreeMap::new(),
        functions,
        numbers: world.numbers(),
        imported: Imported { ranks: world.size, ..Imported::default() },
        next_request: 0,
        scale_ns: header.scale_ns,
        unreceived: 0,
    };
    while next_line(&mut *lines, &mut line).map_err(unreadable)? {
        at += 1;
        let text = line.trim_end();
        if text.is_empty() || text.starts_with('#') || text.starts_with('c') {
            continue;
        }
        reading.record(text).map_err(|failure| match failure {
            Failure::Line(what) => damaged(at, what),
            Failure::Write(source) => cannot_write(source),
        })?;
    }
    reading.finish().map_err(cannot_write)
}

enum Failure {
    Line(String),
    Write(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

fn header(line: &str) -> Result<(Header, usize), String> {
    let wrong = |what: &str| format!("not the first line of a Paraver trace: {what}");
    let rest =
        line.strip_prefix("#Paraver").ok_or_else(|| wrong("it does not begin with #Paraver"))?;
    let (_, rest) = rest.split_once("):").ok_or_else(|| wrong("the date is missing"))?;
    let (duration, rest) = rest.split_once(':').ok_or_else(|| wrong("the duration is missing"))?;
    let scale_ns = match duration.trim_end_matches(char::is_alphabetic).len() {
        _ if duration.ends_with("_ns") => 1.0,
        _ if duration.ends_with("_us") => 1e3,
        _ if duration.ends_with("_ms") => 1e6,
        length if length == duration.len() => 1e3,
        _ => return Err(wrong("the unit of time is not known")),
    };
    let (_, rest) =
        rest.split_once(':').ok_or_else(|| wrong("nodes or applications are missing"))?;
    let (applications, rest) =
        rest.split_once(':').ok_or_else(|| wrong("the applications are missing"))?;
    if applications.trim() != "1" {
        return Err(format!("{applications} applications; one is supported"));
    }
    let (_, rest) = rest.split_once('(').ok_or_else(|| wrong("the tasks are missing"))?;
    let (tasks, rest) =
        rest.split_once(')').ok_or_else(|| wrong("the list of tasks has no end"))?;
    let task = |text: &str| -> Option<(usize, u32)> {
        let (threads, node) = text.split_once(':')?;
        Some((node.trim().parse().ok()?, threads.trim().parse().ok()?))
    };
    let tasks: Option<Vec<_>> = tasks.split(',').map(task).collect();
    let tasks = tasks.filter(|tasks| !tasks.is_empty()).ok_or_else(|| wrong("a task is odd"))?;
    let count = rest.trim_start_matches(',').trim();
    let count = if count.is_empty() { 0 } else { count.parse().map_err(|_| wrong("its end"))? };
    Ok((Header { scale_ns, tasks, communicators: Vec::new() }, count))
}

fn communicator(line: &str, tasks: usize) -> Result<ImportedCommunicator, String> {
    let wrong = || format!("not a communicator: {line:?}");
    let rest = line.strip_prefix("c:").or_else(|| line.strip_prefix("i:")).ok_or_else(wrong)?;
    let numbers: Result<Vec<usize>, _> = rest.split(':').map(str::parse).collect();
    let numbers = numbers.map_err(|_| wrong())?;
    let members = numbers.get(3..).unwrap_or_default().iter();
    let members: Option<Vec<u32>> =
        members.map(|task| (1..=tasks).contains(task).then(|| (*task - 1) as u32)).collect();
    let members = members.ok_or_else(wrong)?;
    Ok(ImportedCommunicator { members, ..ImportedCommunicator::default() })
}

/// Names of values by event type.
fn names(pcf: &Path) -> HashMap<u32, HashMap<u64, String>> {
    let mut names: HashMap<u32, HashMap<u64, String>> = HashMap::new();
    for kind in [MPI_TYPES.start(), &(MPI_TYPES.start() + 1), &(MPI_TYPES.start() + 2)] {
        let known = EXTRAE.iter().map(|(name, number)| (u64::from(*number), (*name).to_owned()));
        names.insert(*kind, known.collect());
    }
    let text = fs::read(pcf).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let (mut kinds, mut values) = (Vec::new(), false);
    for line in text.unwrap_or_default().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["EVENT_TYPE"] => (kinds, values) = (Vec::new(), false),
            ["VALUES"] => values = true,
            [_, kind, ..] if !values => kinds.extend(kind.parse::<u32>().ok()),
            [value, ..] if values => {
                let Ok(number) = value.parse::<u64>() else { continue };
                let name = line.trim_start().trim_start_matches(value).trim().to_owned();
                for kind in &kinds {
                    names.entry(*kind).or_default().insert(number, name.clone());
                }
            }
            _ => {}
        }
    }
    names
}

/// Names of the nodes.
fn hosts(row: &Path) -> Vec<String> {
    let text = fs::read_to_string(row).unwrap_or_default();
    let mut lines = text.lines().skip_while(|line| !line.contains("LEVEL NODE SIZE"));
    lines.next();
    lines.take_while(|line| !line.is_empty()).map(|line| line.trim().to_owned()).collect()
}

impl Reading<'_> {
    fn ticks(&self, text: &str) -> Result<u64, Failure> {
        let time: u64 = text.parse().map_err(|_| Failure::Line(format!("{text:?} is no time")))?;
        Ok(ZERO_TICKS.saturating_add((time as f64 * self.scale_ns).round() as u64))
    }

    fn place(&self, task: &str, thread: &str) -> Result<(usize, u32), Failure> {
        let number = |text: &str| text.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        let place = number(task).zip(number(thread));
        let place = place.filter(|(task, _)| *task < self.ranks.len());
        let (task, thread) = place
            .ok_or_else(|| Failure::Line(format!("there is no task {task}, thread {thread}")))?;
        Ok((task, thread as u32))
    }

    fn record(&mut self, line: &str) -> Result<(), Failure> {
        let fields: Vec<&str> = line.split(':').collect();
        match fields.as_slice() {
            ["1", _, _, task, thread, _, _, ..] => self.place(task, thread).map(|_| ()),
            ["2", _, _, task, thread, time, pairs @ ..] if pairs.len().is_multiple_of(2) => {
                let (place, at) = (self.place(task, thread)?, self.ticks(time)?);
                self.ranks[place.0].seen(at);
                self.events(place, at, pairs)
            }
            ["3", _, _, t1, h1, sent, _, _, _, t2, h2, posted, received, bytes, tag] => {
                let (from, to) = (self.place(t1, h1)?, self.place(t2, h2)?);
                let (sent, posted) = (self.ticks(sent)?, self.ticks(posted)?);
                let received = self.ticks(received)?;
                let bad = |_| Failure::Line("size or tag is no number".into());
                let bytes: u64 = bytes.parse().map_err(bad)?;
                let tag: i64 = tag.parse().map_err(bad)?;
                self.message((from, sent), to, (posted, received), (bytes, tag as i32))
            }
            _ => Err(Failure::Line(format!(
                "no record of Paraver: {:?}",
                &line[..line.len().min(60)]
            ))),
        }
    }

    fn events(&mut self, place: (usize, u32), at: u64, pairs: &[&str]) -> Result<(), Failure> {
        let mut parsed = Vec::with_capacity(pairs.len() / 2);
        for pair in pairs.chunks(2) {
            let kind = pair[0].parse::<u32>();
            let value = pair[1].parse::<i64>();
            let (Ok(kind), Ok(value)) = (kind, value) else {
                return Err(Failure::Line("an event's type or value is no number".into()));
            };
            parsed.push((kind, value as u64));
        }
        // Ends first: a call may end and the next begin in one line.
        let starts = |kind: u32| MPI_TYPES.contains(&kind) || kind == USER || kind == RECORDER;
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
        let known = self.functions.get(&kind).and_then(|names| names.get(&value)).cloned();
        known.unwrap_or_else(|| format!("event {kind} value {value}"))
    }

    fn begin(
        &mut self,
        place: (usize, u32),
        at: u64,
        kind: u32,
        value: u64,
    ) -> Result<(), Failure> {
        let name = self.name(kind, value);
        let function = self.numbers.get(&name).copied();
        let is_call = function.filter(|_| kind != RECORDER && (kind != USER || is_compute(&name)));
        let thread = self.threads.entry(place).or_default();
        if kind == RECORDER {
            thread.tool = ToolReason::from_number(value as i32).map(|reason| (reason, at));
            return Ok(());
        }
        if thread.open.is_some() {
            self.imported.miss("calls and regions inside calls");
            return Ok(());
        }
        match is_call {
            Some(function) => {
                let compute = is_compute(&name).then_some((0.0, 0));
                if compute.is_some() {
                    self.imported.miss("operations of compute calls");
                }
                let call = ImportedCall { function, begin: at, compute, ..Default::default() };
                thread.open = Some((call, operation(&name), kind));
            }
            None => {
                thread.regions.push(name.clone());
                self.ranks[place.0].marker(place.1, &name, true, at)?;
            }
        }
        Ok(())
    }

    fn attribute(&mut self, place: (usize, u32), kind: u32, value: u64) {
        let communicator = value.checked_sub(1).and_then(|place| u32::try_from(place).ok());
        let id = communicator.and_then(|c| self.ranks[place.0].communicators.get(&c)).copied();
        let Some(Thread { open: Some((call, ..)), .. }) = self.threads.get_mut(&place) else {
            return;
        };
        match kind {
            SENT_BYTES => call.bytes = value,
            RECEIVED_BYTES => call.received = Some(value),
            // Extrae says whether the rank is the root, we say which rank is.
            ROOT => call.peer = value.saturating_sub(1) as i32,
            COMMUNICATOR => call.communicator = id.unwrap_or(0),
            POLLS => call.polls = Some((value, 0)),
            _ => {}
        }
    }

    fn end(&mut self, place: (usize, u32), at: u64, kind: u32) -> Result<(), Failure> {
        let thread = self.threads.entry(place).or_default();
        if kind == RECORDER {
            if let Some((reason, begin)) = thread.tool.take()
                && thread.open.is_none()
            {
                self.ranks[place.0].tool(place.1, reason, (begin, at))?;
            }
            return Ok(());
        }
        match thread.open.take() {
            Some((mut call, operation, of)) if of == kind => {
                call.end = Some(at);
                self.close(place, call, operation, kind)
            }
            other => {
                thread.open = other;
                if kind == USER
                    && let Some(name) = thread.regions.pop()
                {
                    self.ranks[place.0].marker(place.1, &name, false, at)?;
                }
                Ok(())
            }
        }
    }

    fn request(&mut self) -> u32 {
        self.next_request = self.next_request % 0x7fff_fffe + 1;
        self.next_request
    }

    fn close(
        &mut self,
        place: (usize, u32),
        mut call: ImportedCall,
        operation: Operation,
        kind: u32,
    ) -> Result<(), Failure> {
        use Operation::*;
        let (begin, end) = (call.begin, call.end.unwrap_or(call.begin));
        if kind == COLLECTIVE && call.communicator == 0 {
            call.communicator = COMMUNICATOR_WORLD;
        }
        if let Some((count, _)) = call.polls {
            call.polls = Some((count, end - begin));
        }
        if matches!(operation, Collective) && call.received.is_none() {
            call.received = Some(0);
        }
        let fresh = self.request();
        let thread = self.threads.entry(place).or_default();
        if matches!(operation, Send | Isend | SendReceive) {
            let sent = thread.sends.iter().position(|(at, ..)| (begin..=end).contains(at));
            if let Some((_, peer, tag, bytes)) = sent.and_then(|i| thread.sends.remove(i)) {
                (call.peer, call.tag, call.bytes) = (peer as i32, tag, bytes);
                call.communicator = COMMUNICATOR_WORLD;
                if operation == Isend {
                    call.request = fresh;
                    thread.sent.push_back(fresh);
                }
            } else if operation != Isend {
                // To MPI_PROC_NULL, as far as is known.
                call.peer = super::rank::PROC_NULL;
            }
        }
        if matches!(operation, Receive | SendReceive) {
            let found = thread.receives.iter().position(|m| (begin..=end).contains(&m.received));
            let message = found.map(|index| thread.receives.remove(index));
            call.communicator = COMMUNICATOR_WORLD;
            let (peer, tag, bytes) = match message {
                Some(message) => (message.peer as i32, message.tag, message.bytes),
                None => (super::rank::PROC_NULL, 0, 0),
            };
            match operation {
                SendReceive => call.receive = Some(Half { peer, tag, bytes }),
                _ => (call.peer, call.tag, call.bytes) = (peer, tag, bytes),
            }
        }
        if operation == Ireceive {
            (call.peer, call.tag, call.request) = (ANY_SOURCE, ANY_TAG, fresh);
            call.communicator = COMMUNICATOR_WORLD;
        }
        if matches!(operation, CompleteOne | CompleteSeveral) {
            let several = operation == CompleteSeveral;
            let states = thread.complete((begin, end), several);
            match (several, states.first()) {
                (true, _) => call.requests = states,
                (false, Some(state)) => {
                    call.request = state.request;
                    (call.peer, call.tag, call.bytes) = (state.peer, state.tag, state.bytes);
                    call.communicator = COMPLETED;
                }
                (false, None) => {}
            }
        }
        let at = self.ranks[place.0].call(place.1, &call)?;
        if operation == Ireceive {
            let known = thread.receives.iter().position(|m| (begin..=end).contains(&m.posted));
            match known.map(|index| thread.receives.remove(index)) {
                Some(message) => {
                    self.ranks[place.0].change(at, |slot| {
                        (slot.peer, slot.tag) = (message.peer as i32, message.tag);
                    })?;
                    thread.waiting.push((message.received, fresh, message));
                }
                None => thread.posted.push_back((begin, end, at, fresh)),
            }
        }
        Ok(())
    }

    fn message(
        &mut self,
        (from, sent): ((usize, u32), u64),
        to: (usize, u32),
        (posted, received): (u64, u64),
        (bytes, tag): (u64, i32),
    ) -> Result<(), Failure> {
        let sender = self.threads.entry(from).or_default();
        sender.sends.push_back((sent, to.0 as u32, tag, bytes));
        let message = Pending { posted, received, peer: from.0 as u32, tag, bytes };
        let receiver = self.threads.entry(to).or_default();
        let earlier = receiver.posted.iter().position(|(a, b, ..)| (*a..=*b).contains(&posted));
        match earlier.and_then(|index| receiver.posted.remove(index)) {
            Some((_, _, at, request)) => {
                receiver.waiting.push((received, request, message));
                self.ranks[to.0].change(at, |slot| {
                    (slot.peer, slot.tag) = (message.peer as i32, message.tag);
                })?;
            }
            None => receiver.receives.push(message),
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Imported, io::Error> {
        let mut left = 0;
        for (place, mut thread) in std::mem::take(&mut self.threads) {
            if let Some((call, ..)) = thread.open.take() {
                self.ranks[place.0].call(place.1, &call)?;
            }
            left += (thread.sends.len() + thread.receives.len()) as u64;
        }
        self.unreceived += left;
        for rank in self.ranks {
            self.imported.calls += rank.calls;
            rank.finish(self.world, None)?;
        }
        if left > 0 {
            let what = "ends of messages that lie in no call that sends or receives";
            self.imported.missing.insert(what, self.unreceived);
        }
        self.imported.notes.push(
            "Paraver says neither on which communicator a message went nor which request it was: \
             MPI_COMM_WORLD, and the thread's next wait, are taken"
                .into(),
        );
        Ok(self.imported)
    }
}

impl Thread {
    /// What a wait completes that lasts so long: receives that arrive in it, and sends.
    fn complete(&mut self, (begin, end): (u64, u64), several: bool) -> Vec<RequestState> {
        let mut states = Vec::new();
        self.waiting.retain(|(received, request, message)| {
            let takes = (begin..=end).contains(received) && (several || states.is_empty());
            if takes {
                states.push(RequestState {
                    request: *request,
                    completed: true,
                    cancelled: false,
                    peer: message.peer as i32,
                    tag: message.tag,
                    bytes: message.bytes,
                });
            }
            !takes
        });
        while several || states.is_empty() {
            let Some(request) = self.sent.pop_front() else { break };
            let (peer, tag, bytes) = (0, 0, 0);
            states.push(RequestState {
                request,
                completed: true,
                cancelled: false,
                peer,
                tag,
                bytes,
            });
        }
        states
    }
}

/// Of a function that has a number in a run.
fn is_compute(name: &str) -> bool {
    class_of(name) == Class::Compute
}
