//! A run for Paraver: `.prv` with states, events and communications in order of time, `.pcf` with
//! their names, `.row` with those of the ranks. Event types and, where they are known, values are those
//! of Extrae, so that its configurations work.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use trace_format::layout::Plain;
use trace_format::meaning::Class;

use super::content::{Call, Content, Function, What};
use super::extrae::{
    self, COLLECTIVE, COMMUNICATOR, FILES, IS_ROOT, ONE_SIDED, OTHER, POINT_TO_POINT,
    RECEIVED_BYTES, RUNNING, SENT_BYTES, USER,
};
use super::linked::{LinkedStep, walk};
use super::perfetto::step_name;
use super::spill::{Record, Sorted, Spill};
use super::steps::{Kind, Step, Steps};
use super::traffic::{MessageRecord, NEVER, Traffic};
use super::{ExportError, Progress, Written};
use crate::plain_text::printable;

/// Name of the files in the directory that is written to, without their endings.
pub const STEM: &str = "trace";
/// Their endings; a reader opens the last.
pub const ENDINGS: [&str; 3] = ["pcf", "row", "prv"];

/// First of the event types that are ours alone: "gamm" in ASCII, far from the ranges of other tools.
const OWN_TYPES: u32 = 0x6761_6d6d;
/// Stands at the begin of every file that we write: the others of our types mean something only there.
pub const MARK: u32 = OWN_TYPES;
/// Time of the recorder.
pub const RECORDER: u32 = OWN_TYPES + 1;
/// Polls in a run of them, at its begin.
pub const POLLS: u32 = OWN_TYPES + 2;
/// Bound of a rank's clock, nanoseconds, at its begin.
pub const CLOCK_BOUND: u32 = OWN_TYPES + 3;
/// Root of a collective operation: its rank in the communicator, plus 1.
pub const ROOT: u32 = OWN_TYPES + 4;
/// Version of what our types say: value of [`MARK`].
const MARK_VERSION: u32 = 1;

/// First number of a function that Extrae does not number.
const OWN_NUMBERS: u32 = 1000;

/// A stretch of a thread in one of Paraver's states.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct State {
    begin_ns: i64,
    end_ns: i64,
    number: u64,
    state: u32,
    thread: u32,
}
// SAFETY: repr(C), integers only, three of 8 bytes and then two of 4: no padding.
unsafe impl Plain for State {}

impl Record for State {
    type Key = (i64, u64);
    fn key(&self) -> (i64, u64) {
        (self.begin_ns, self.number)
    }
}

/// Paraver's states, by number.
const STATES: [(u32, &str, &str); 14] = [
    (0, "Idle", "117,195,255"),
    (RUNNING, "Running", "0,0,255"),
    (2, "Not created", "255,255,255"),
    (3, "Waiting a message", "255,0,0"),
    (4, "Blocking Send", "255,0,174"),
    (5, "Synchronization", "179,0,0"),
    (6, "Test/Probe", "0,255,0"),
    (8, "Wait/WaitAll", "235,0,0"),
    (10, "Immediate Send", "255,0,255"),
    (11, "Immediate Receive", "100,100,177"),
    (12, "I/O", "172,174,41"),
    (13, "Group Communication", "255,144,26"),
    (15, "Others", "192,224,0"),
    (16, "Send Receive", "66,66,66"),
];

fn state_of(function: Option<&Function>) -> u32 {
    use crate::timeline::matching::operations::Operation;
    let Some(function) = function else { return 15 };
    match (function.operation, function.class) {
        (Operation::Receive | Operation::MatchedReceive, _) => 3,
        (Operation::Send, _) => 4,
        (Operation::Isend, _) => 10,
        (Operation::Ireceive | Operation::MatchedIreceive, _) => 11,
        (Operation::SendReceive | Operation::IsendReceive, _) => 16,
        _ if function.name == "MPI_Barrier" => 5,
        _ if function.name.starts_with("MPI_Test") => 6,
        (_, Class::Probe) => 6,
        (_, Class::Completion) => 8,
        (_, Class::Collective) => 13,
        (_, Class::Io) => 12,
        (_, Class::Compute) => RUNNING,
        _ => 15,
    }
}

struct Out<'a> {
    content: &'a Content<'a>,
    prv: BufWriter<File>,
    /// Where the threads of each rank begin among all of them.
    threads: Vec<usize>,
    /// Node of each rank, from 1 on.
    nodes: Vec<usize>,
    /// Numbers that were used: by event type, value and its name.
    values: BTreeMap<(u32, u32), String>,
}

fn type_of(function: &Function) -> u32 {
    match function.class {
        Class::PointToPoint | Class::Completion | Class::Probe => POINT_TO_POINT,
        Class::Collective => COLLECTIVE,
        Class::OneSided => ONE_SIDED,
        Class::Io => FILES,
        Class::Compute => USER,
        _ => OTHER,
    }
}

impl Out<'_> {
    fn time(&self, at_ns: i64) -> i64 {
        (at_ns - self.content.head.first_ns).max(0)
    }

    /// `cpu:application:task:thread`, each from 1 on.
    fn place(&self, rank: usize, thread: u32) -> String {
        let threads = &self.content.head.ranks[rank].threads;
        let index = threads.iter().position(|number| *number == thread).unwrap_or(0);
        format!("{}:1:{}:{}", self.threads[rank] + index + 1, rank + 1, index + 1)
    }

    /// Event type and value of what a step begins.
    fn value(&mut self, step: &Step) -> (u32, u32) {
        let head = &self.content.head;
        let (kind, number) = match (step.kind, step.call.what) {
            (Kind::Region(region), _) => (USER, head.functions.len() as u32 + OWN_NUMBERS + region),
            (Kind::Call, What::Call(function)) => {
                let found = &head.functions[function as usize];
                let known = extrae::number_of(&found.name);
                (type_of(found), known.unwrap_or(OWN_NUMBERS + function))
            }
            (Kind::Call, What::Tool(reason)) => (RECORDER, reason as u32),
            _ => (OTHER, 0),
        };
        let content = self.content;
        self.values.entry((kind, number)).or_insert_with(|| printable(&step_name(content, step)));
        (kind, number)
    }

    fn preamble(&mut self) -> io::Result<()> {
        let head = &self.content.head;
        let nodes = self.nodes.iter().max().copied().unwrap_or(1);
        let cores = (1..=nodes).map(|node| {
            let ranks = self.nodes.iter().zip(&head.ranks).filter(|(of, _)| **of == node);
            ranks.map(|(_, rank)| rank.threads.len().max(1)).sum::<usize>().to_string()
        });
        let cores: Vec<String> = cores.collect();
        let tasks = head.ranks.iter().zip(&self.nodes);
        let tasks: Vec<String> =
            tasks.map(|(rank, node)| format!("{}:{node}", rank.threads.len().max(1))).collect();
        let groups: Vec<String> = head
            .communicators
            .iter()
            .zip(1..)
            .map(|(communicator, number)| {
                let members = communicator.groups.iter().flatten().flatten();
                let places = members.filter_map(|rank| self.content.exported_rank(*rank));
                let places: Vec<String> = places.map(|place| (place + 1).to_string()).collect();
                format!("c:1:{number}:{}:{}\n", places.len(), places.join(":"))
            })
            .collect();
        let date = head.zero_unix_ns.map(|zero| zero + head.first_ns);
        writeln!(
            self.prv,
            "#Paraver ({}):{}_ns:{nodes}({}):1:{}({}),{}",
            date_text(date.unwrap_or(0)),
            self.time(head.last_ns),
            cores.join(","),
            head.ranks.len(),
            tasks.join(","),
            groups.len()
        )?;
        self.prv.write_all(groups.concat().as_bytes())?;
        if let Some(thread) = head.ranks.first().and_then(|rank| rank.threads.first()) {
            writeln!(self.prv, "2:{}:0:{MARK}:{MARK_VERSION}", self.place(0, *thread))?;
        }
        for (rank, of) in head.ranks.iter().enumerate() {
            if let (Some(bound), Some(thread)) = (of.bound_ns, of.threads.first()) {
                let place = self.place(rank, *thread);
                writeln!(self.prv, "2:{place}:0:{CLOCK_BOUND}:{}", bound.ceil() as u64)?;
            }
        }
        Ok(())
    }

    fn state(&mut self, state: &State) -> io::Result<()> {
        let (rank, thread) = self.thread(state.thread as usize);
        let (begin, end) = (self.time(state.begin_ns), self.time(state.end_ns));
        writeln!(self.prv, "1:{}:{begin}:{end}:{}", self.place(rank, thread), state.state)
    }

    /// Rank and thread at a position among all threads.
    fn thread(&self, index: usize) -> (usize, u32) {
        let rank = self.threads.partition_point(|first| *first <= index).saturating_sub(1);
        let within = index - self.threads[rank];
        (rank, self.content.head.ranks[rank].threads.get(within).copied().unwrap_or(0))
    }

    fn message(&mut self, message: &MessageRecord) -> io::Result<()> {
        let (from, to) = (message.source as usize, message.destination as usize);
        let sent = self.time(message.send_begin_ns);
        // A message that was never received ends with the trace.
        let received = match message.receive_end_ns {
            NEVER => self.content.head.last_ns,
            end_ns => end_ns,
        };
        let (posted, received) = (self.time(message.receive_begin_ns), self.time(received));
        let from = self.place(from, message.send_thread);
        let to = self.place(to, message.receive_thread);
        let (bytes, tag) = (message.bytes, message.tag);
        writeln!(self.prv, "3:{from}:{sent}:{sent}:{to}:{posted}:{received}:{bytes}:{tag}")
    }

    fn event(&mut self, linked: &LinkedStep) -> io::Result<()> {
        let step = &linked.step;
        let (kind, value) = self.value(step);
        let place = self.place(step.call.rank, step.call.thread);
        let at = self.time(step.at_ns);
        if !step.begins {
            return writeln!(self.prv, "2:{place}:{at}:{kind}:0");
        }
        write!(self.prv, "2:{place}:{at}:{kind}:{value}")?;
        if let Some((count, _)) = step.call.event.polls {
            write!(self.prv, ":{POLLS}:{count}")?;
        }
        if kind == COLLECTIVE {
            let attributes = self.content.attributes(&step.call);
            let root = attributes.peer.and_then(|root| u64::try_from(root).ok());
            let own_rank = self.content.head.ranks[step.call.rank].rank;
            let facts = [
                (SENT_BYTES, attributes.bytes),
                (RECEIVED_BYTES, attributes.received_bytes),
                (COMMUNICATOR, attributes.standing.map(|s| u64::from(s.communicator) + 1)),
                // Extrae says on the root alone that it is the root; we say on every rank which one it is.
                (IS_ROOT, attributes.peer_rank.filter(|rank| *rank == own_rank).map(|_| 1)),
                (ROOT, root.map(|root| root + 1)),
            ];
            for (kind, value) in facts {
                if let Some(value) = value {
                    write!(self.prv, ":{kind}:{value}")?;
                }
            }
        }
        self.prv.write_all(b"\n")
    }

    fn names(&self) -> String {
        let mut text = String::from(
            "DEFAULT_OPTIONS\n\nLEVEL               THREAD\nUNITS               NANOSEC\n\
             LOOK_BACK           100\nSPEED               1\nFLAG_ICONS          ENABLED\n\
             NUM_OF_STATE_COLORS 1000\nYMAX_SCALE          37\n\n\nDEFAULT_SEMANTIC\n\n\
             THREAD_FUNC         State As Is\n\n\nSTATES\n",
        );
        for (number, name, _) in STATES {
            text += &format!("{number:<5}{name}\n");
        }
        text += "\n\nSTATES_COLOR\n";
        for (number, _, colour) in STATES {
            text += &format!("{number:<5}{{{colour}}}\n");
        }
        let groups = [
            (POINT_TO_POINT, "MPI Point-to-point"),
            (COLLECTIVE, "MPI Collective Comm"),
            (OTHER, "MPI Other"),
            (ONE_SIDED, "MPI One-sided"),
            (FILES, "MPI I/O"),
            (USER, "User function"),
            (RECORDER, "gammachi recorder"),
        ];
        for (kind, title) in groups {
            let values = self.values.range((kind, 0)..=(kind, u32::MAX));
            let values: Vec<String> =
                values.map(|((_, number), name)| format!("{number}   {name}\n")).collect();
            if !values.is_empty() {
                text += &format!("\n\nEVENT_TYPE\n9    {kind}    {title}\nVALUES\n");
                text += &values.concat();
                text += if kind == RECORDER { "" } else { "0   Outside MPI\n" };
            }
        }
        text += "\n\nEVENT_TYPE\n";
        for (kind, title) in [
            (SENT_BYTES, "Send Size in MPI Global OP"),
            (RECEIVED_BYTES, "Recv Size in MPI Global OP"),
            (IS_ROOT, "Root in MPI Global OP"),
            (COMMUNICATOR, "Communicator in MPI Global OP"),
            (MARK, "gammachi: version of these types"),
            (ROOT, "gammachi: root of the operation (rank in the communicator, plus 1)"),
            (POLLS, "gammachi: calls in a run of polls"),
            (CLOCK_BOUND, "gammachi: bound of the rank's clock, ns"),
        ] {
            text += &format!("1    {kind}    {title}\n");
        }
        text
    }

    fn rows(&self) -> String {
        let head = &self.content.head;
        let mut hosts: BTreeMap<usize, &str> = BTreeMap::new();
        let (mut tasks, mut threads) = (String::new(), String::new());
        let mut count = 0;
        for (place, rank) in head.ranks.iter().enumerate() {
            hosts.insert(self.nodes[place], &rank.host);
            tasks += &format!("RANK {}\n", rank.rank);
            for thread in &rank.threads {
                threads += &format!("THREAD 1.{}.{}\n", rank.rank + 1, thread + 1);
                count += 1;
            }
        }
        let nodes: String = hosts.values().map(|host| format!("{}\n", printable(host))).collect();
        format!(
            "LEVEL NODE SIZE {}\n{nodes}\nLEVEL TASK SIZE {}\n{tasks}\nLEVEL THREAD SIZE {count}\n\
             {threads}",
            hosts.len(),
            head.ranks.len()
        )
    }
}

/// `21/11/2026 at 09:15`, UTC.
fn date_text(unix_ns: i64) -> String {
    let moment = crate::trace::run_json::Instant::from_unix_ns(unix_ns.max(0) as u64).utc;
    let part = |range: std::ops::Range<usize>| moment.get(range).unwrap_or("00").to_owned();
    format!("{}/{}/{} at {}", part(8..10), part(5..7), part(0..4), part(11..16))
}

/// The states of all threads: what they do by their innermost call, and between calls running.
fn states(
    content: &Content,
    first_threads: &[usize],
    scratch: &Path,
    progress: &dyn Progress,
) -> io::Result<Sorted<State>> {
    progress.stage("states", Some(content.slots()));
    let passed = |call: &Call| progress.advance(1 + call.event.continuations as u64);
    let mut spill = Spill::new(scratch);
    let all: usize = content.head.ranks.iter().map(|rank| rank.threads.len()).sum();
    let mut since: Vec<Option<i64>> = vec![None; all];
    let mut stacks: Vec<Vec<u32>> = vec![Vec::new(); all];
    let mut number = 0;
    for step in Steps::new(content, content.calls(), &passed) {
        if step.kind != Kind::Call {
            continue;
        }
        let threads = &content.head.ranks[step.call.rank].threads;
        let within = threads.iter().position(|thread| *thread == step.call.thread).unwrap_or(0);
        let thread = first_threads[step.call.rank] + within;
        let state = stacks[thread].last().copied().unwrap_or(RUNNING);
        if let Some(begin_ns) = since[thread].filter(|begin_ns| *begin_ns < step.at_ns) {
            number += 1;
            let thread = thread as u32;
            spill.push(State { begin_ns, end_ns: step.at_ns, number, state, thread })?;
        }
        since[thread] = Some(step.at_ns);
        match step.begins {
            true => stacks[thread].push(state_of(content.function(&step.call))),
            false => _ = stacks[thread].pop(),
        }
    }
    spill.sorted()
}

/// Writes the three files into a directory that it makes.
pub(super) fn write(
    content: &Content,
    path: &Path,
    scratch: &Path,
    progress: &dyn Progress,
) -> Result<Written, ExportError> {
    let traffic = Traffic::gather(content, scratch, progress)?;
    let aside = ExportError::io(scratch);
    let ranks = &content.head.ranks;
    let mut hosts: Vec<&str> = Vec::new();
    let mut nodes = Vec::new();
    for rank in ranks {
        let known = hosts.iter().position(|host| *host == rank.host);
        nodes.push(
            1 + known.unwrap_or_else(|| {
                hosts.push(&rank.host);
                hosts.len() - 1
            }),
        );
    }
    let threads = ranks.iter().scan(0, |sum, rank| {
        let first = *sum;
        *sum += rank.threads.len();
        Some(first)
    });
    let threads: Vec<usize> = threads.collect();
    let states = states(content, &threads, scratch, progress).map_err(&aside)?;
    fs::create_dir(path).map_err(ExportError::io(path))?;
    let file_of = |ending: &str| path.join(format!("{STEM}.{ending}"));
    let prv = file_of("prv");
    let failed = ExportError::io(&prv);
    let file = BufWriter::with_capacity(1 << 20, File::create_new(&prv).map_err(&failed)?);
    let mut out = Out { content, prv: file, threads, nodes, values: BTreeMap::new() };
    out.preamble().map_err(&failed)?;
    let mut states = states.iter().peekable();
    let mut messages = traffic.messages.iter().peekable();
    let mut due = |out: &mut Out, at_ns: i64| -> Result<(), ExportError> {
        // An error is handed on at once.
        while let Some(state) =
            states.next_if(|s| s.as_ref().map_or(true, |state| state.begin_ns <= at_ns))
        {
            out.state(&state.map_err(&aside)?).map_err(&failed)?;
        }
        while let Some(message) =
            messages.next_if(|m| m.as_ref().map_or(true, |m| m.send_begin_ns <= at_ns))
        {
            out.message(&message.map_err(&aside)?).map_err(&failed)?;
        }
        Ok(())
    };
    let written = walk(content, &traffic, scratch, progress, &mut |linked| {
        due(&mut out, linked.step.at_ns)?;
        out.event(linked).map_err(&failed)
    })?;
    due(&mut out, i64::MAX)?;
    out.prv.flush().map_err(&failed)?;
    for (ending, text) in [("pcf", out.names()), ("row", out.rows())] {
        let path = file_of(ending);
        fs::write(&path, text).map_err(ExportError::io(&path))?;
    }
    Ok(written)
}
