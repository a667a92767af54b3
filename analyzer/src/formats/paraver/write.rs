//! Writes a run for Paraver: `.prv` with states, events and communications in order of time, `.pcf`
//! with their names, `.row` with the names of ranks. Event types and, if known, values are those of
//! Extrae, so that its configurations work.

mod labels;
mod states;
mod writer;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use trace_format::meaning::Class;

use crate::export::content::{Export, Function, What};
use crate::export::linked::{LinkedStep, walk};
use crate::export::steps::{Kind, Step, step_name};
use crate::export::traffic::{MessageRecord, NEVER, Traffic};
use crate::export::{ExportError, Written};
use crate::plain_text::printable;

use super::names::{
    CLOCK_BOUND, COLLECTIVE, COMMUNICATOR, FILES, IS_ROOT, MARK, MARK_VERSION, ONE_SIDED, OTHER,
    OWN_NUMBERS, POINT_TO_POINT, POLLS, RECEIVED_BYTES, RECORDER, ROOT, SENT_BYTES, STEM, USER,
    number_of,
};

use states::{State, states};
use writer::ParaverWriter;

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

impl ParaverWriter<'_> {
    fn time(&self, at_ns: i64) -> i64 {
        (at_ns - self.content.head.first_ns).max(0)
    }

    /// `cpu:application:task:thread`, each from 1 on.
    fn place(&self, rank: usize, thread: u32) -> String {
        let threads = &self.content.head.ranks[rank].threads;
        let index = threads.iter().position(|number| *number == thread).unwrap_or(0);
        format!("{}:1:{}:{}", self.threads[rank] + index + 1, rank + 1, index + 1)
    }

    /// Event type and value of the call or region that a step begins.
    fn value(&mut self, step: &Step) -> (u32, u32) {
        let head = &self.content.head;
        let (kind, number) = match (step.kind, step.call.what) {
            (Kind::Region(region), _) => (USER, head.functions.len() as u32 + OWN_NUMBERS + region),
            (Kind::Call, What::Call(function)) => {
                let found = &head.functions[function as usize];
                let known = number_of(&found.name);
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
                // Extrae marks only the root; we also write the root's rank on every rank.
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
}

/// `21/11/2026 at 09:15`, UTC.
fn date_text(unix_ns: i64) -> String {
    let moment = crate::trace::run_json::Instant::from_unix_ns(unix_ns.max(0) as u64).utc;
    let part = |range: std::ops::Range<usize>| moment.get(range).unwrap_or("00").to_owned();
    format!("{}/{}/{} at {}", part(8..10), part(5..7), part(0..4), part(11..16))
}

/// Writes the three files into a directory that it makes.
pub fn write(export: Export, path: &Path) -> Result<Written, ExportError> {
    let Export { content, scratch, .. } = export;
    let traffic = Traffic::gather(export)?;
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
    let states = states(export, &threads).map_err(&aside)?;
    fs::create_dir(path).map_err(ExportError::io(path))?;
    let file_of = |ending: &str| path.join(format!("{STEM}.{ending}"));
    let prv = file_of("prv");
    let failed = ExportError::io(&prv);
    let file = BufWriter::with_capacity(1 << 20, File::create_new(&prv).map_err(&failed)?);
    let mut out = ParaverWriter { content, prv: file, threads, nodes, values: BTreeMap::new() };
    out.preamble().map_err(&failed)?;
    let mut states = states.iter().peekable();
    let mut messages = traffic.messages.iter().peekable();
    let mut due = |out: &mut ParaverWriter, at_ns: i64| -> Result<(), ExportError> {
        // An error is returned at once.
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
    let written = walk(export, &traffic, &mut |linked| {
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
