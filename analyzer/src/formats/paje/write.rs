//! Writes a run as a Pajé trace: containers for the run, its ranks and their threads, a state per
//! call or region, a link per message. Events are in order of time, as readers require.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::export::content::{Call, Content, Export, What};
use crate::export::linked::{StepWriter, write_steps};
use crate::export::steps::{Kind, Link, Step, step_name};
use crate::export::{ExportError, Written};
use crate::plain_text::printable;

/// Header of the file: the fields of each kind of event.
const HEADER: &str = "\
%EventDef PajeDefineContainerType 0
%  Alias string
%  Type string
%  Name string
%EndEventDef
%EventDef PajeDefineStateType 1
%  Alias string
%  Type string
%  Name string
%EndEventDef
%EventDef PajeDefineLinkType 2
%  Alias string
%  Type string
%  StartContainerType string
%  EndContainerType string
%  Name string
%EndEventDef
%EventDef PajeDefineEntityValue 3
%  Alias string
%  Type string
%  Name string
%  Color color
%EndEventDef
%EventDef PajeCreateContainer 4
%  Time date
%  Alias string
%  Type string
%  Container string
%  Name string
%EndEventDef
%EventDef PajeDestroyContainer 5
%  Time date
%  Type string
%  Name string
%EndEventDef
%EventDef PajePushState 6
%  Time date
%  Type string
%  Container string
%  Value string
%EndEventDef
%EventDef PajePushState 7
%  Time date
%  Type string
%  Container string
%  Value string
%  Communicator string
%  Peer string
%  Tag string
%  Bytes string
%  ReceivedBytes string
%  Operation string
%EndEventDef
%EventDef PajePopState 8
%  Time date
%  Type string
%  Container string
%EndEventDef
%EventDef PajeStartLink 9
%  Time date
%  Type string
%  Container string
%  StartContainer string
%  Value string
%  Key string
%  Bytes string
%  Tag string
%  Communicator string
%EndEventDef
%EventDef PajeEndLink 10
%  Time date
%  Type string
%  Container string
%  EndContainer string
%  Value string
%  Key string
%EndEventDef
%EventDef PajeDefineEventType 11
%  Alias string
%  Type string
%  Name string
%EndEventDef
%EventDef PajeNewEvent 12
%  Time date
%  Type string
%  Container string
%  Value string
%EndEventDef
";

/// Puts a text in quotation marks and replaces those inside.
fn quoted(text: &str) -> String {
    format!("\"{}\"", printable(text).replace('"', "'"))
}

/// Colours by kind, as fractions of red, green and blue.
fn colour(class: Option<trace_format::meaning::Class>, kind: Kind, what: What) -> &'static str {
    use trace_format::meaning::Class;
    match (kind, what, class) {
        (Kind::Region(_), ..) => "0.85 0.85 0.75",
        (_, What::Tool(_), _) => "0.40 0.40 0.40",
        (.., Some(Class::PointToPoint)) => "0.00 0.45 0.70",
        (.., Some(Class::Completion | Class::Probe)) => "0.34 0.71 0.91",
        (.., Some(Class::Collective)) => "0.84 0.37 0.00",
        (.., Some(Class::OneSided)) => "0.80 0.47 0.65",
        (.., Some(Class::Io)) => "0.94 0.89 0.26",
        (.., Some(Class::Compute)) => "0.00 0.62 0.45",
        _ => "0.60 0.60 0.60",
    }
}

struct PajeWriter<'a> {
    content: &'a Content<'a>,
    file: BufWriter<File>,
    named: Vec<bool>,
    line: String,
}

impl PajeWriter<'_> {
    fn write_line(&mut self) -> io::Result<()> {
        self.line.push('\n');
        self.file.write_all(self.line.as_bytes())?;
        self.line.clear();
        Ok(())
    }

    /// Seconds since the first timestamp, with nanoseconds.
    fn time(&self, at_ns: i64) -> String {
        let ns = (at_ns - self.content.head.first_ns).max(0);
        format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    }

    /// Facts for which Pajé has no records: the date, clocks, communicators.
    fn facts(&self) -> Vec<String> {
        let head = &self.content.head;
        let mut facts = Vec::new();
        if let Some(zero) = head.zero_unix_ns {
            facts.push(format!("time 0 is {} ns since 1970-01-01 UTC", zero + head.first_ns));
        }
        if let Some(bound) = head.bound_ns {
            facts.push(format!("clocks of ranks agree within {bound:.0} ns"));
        }
        for (number, communicator) in head.communicators.iter().enumerate() {
            let members = communicator.groups.iter().flatten();
            let members: Vec<String> = members
                .map(|rank| rank.map_or_else(|| "?".to_owned(), |rank| rank.to_string()))
                .collect();
            let name = &communicator.name;
            facts.push(format!("communicator {number} {name}: ranks {}", members.join(" ")));
        }
        facts
    }

    /// The alias of a step's state, which is defined at its first use.
    fn value(&mut self, step: &Step) -> io::Result<usize> {
        let head = &self.content.head;
        let (functions, regions) = (head.functions.len(), head.regions.len());
        let index = match (step.kind, step.call.what) {
            (Kind::Region(region), _) => functions + region as usize,
            (_, What::Call(function)) => function as usize,
            (_, What::Tool(reason)) => functions + regions + reason as usize,
            _ => functions,
        };
        if self.named.len() <= index {
            self.named.resize(index + 1, false);
        }
        if !std::mem::replace(&mut self.named[index], true) {
            let class = self.content.function(&step.call).map(|function| function.class);
            let colour = colour(class, step.kind, step.call.what);
            let name = quoted(&step_name(self.content, step));
            writeln!(self.file, "3 v{index} S {name} \"{colour}\"")?;
        }
        Ok(index)
    }
}

impl StepWriter for PajeWriter<'_> {
    fn preamble(&mut self) -> io::Result<()> {
        let head = &self.content.head;
        let mut text = HEADER.to_owned();
        text += "0 R 0 \"Run\"\n0 P R \"Rank\"\n0 T P \"Thread\"\n1 S T \"State\"\n\
                 2 M R T T \"Message\"\n11 F R \"Fact\"\n";
        text += &format!("4 0 run R 0 {}\n", quoted(&head.title));
        for (place, rank) in head.ranks.iter().enumerate() {
            let name = quoted(&format!("rank {}", rank.rank));
            text += &format!("4 0 p{place} P run {name}\n");
            for &thread in &rank.threads {
                let name = quoted(&format!("rank {} thread {thread}", rank.rank));
                text += &format!("4 0 p{place}t{thread} T p{place} {name}\n");
            }
        }
        // Not as comments, because ViTE warns about each.
        for fact in self.facts() {
            text += &format!("12 0 F run {}\n", quoted(&fact));
        }
        self.file.write_all(text.as_bytes())
    }

    fn begin(&mut self, step: &Step, sent: &[Link], operation: Option<&Link>) -> io::Result<()> {
        let value = self.value(step)?;
        let Call { rank, thread, .. } = step.call;
        let time = self.time(step.at_ns);
        if step.kind == Kind::Call {
            let attributes = self.content.attributes(&step.call);
            let name = |number: u32| quoted(&self.content.head.communicators[number as usize].name);
            let word = |value: Option<String>| value.unwrap_or_else(|| "-".into());
            let communicator = word(attributes.standing.map(|s| name(s.communicator)));
            let peer = word(attributes.peer_rank.map(|rank| rank.to_string()));
            let tag = word(attributes.tag.map(|tag| tag.to_string()));
            let bytes = word(attributes.bytes.map(|bytes| bytes.to_string()));
            let received = word(attributes.received_bytes.map(|bytes| bytes.to_string()));
            let operation = word(operation.map(|link| link.number.to_string()));
            self.line = format!(
                "7 {time} S p{rank}t{thread} v{value} {communicator} {peer} {tag} {bytes} {received} \
                 {operation}"
            );
        } else {
            self.line = format!("6 {time} S p{rank}t{thread} v{value}");
        }
        self.write_line()?;
        for link in sent {
            let communicator =
                quoted(&self.content.head.communicators[link.communicator as usize].name);
            self.line = format!(
                "9 {time} M run p{rank}t{thread} p2p m{} {} {} {communicator}",
                link.number, link.bytes, link.tag
            );
            self.write_line()?;
        }
        Ok(())
    }

    fn end(&mut self, step: &Step, received: &[Link]) -> io::Result<()> {
        let Call { rank, thread, .. } = step.call;
        let time = self.time(step.at_ns);
        for link in received {
            self.line = format!("10 {time} M run p{rank}t{thread} p2p m{}", link.number);
            self.write_line()?;
        }
        self.line = format!("8 {time} S p{rank}t{thread}");
        self.write_line()
    }

    fn close(mut self) -> io::Result<()> {
        let head = &self.content.head;
        let time = self.time(head.last_ns);
        let mut text = String::new();
        for (place, rank) in head.ranks.iter().enumerate() {
            for thread in &rank.threads {
                text += &format!("5 {time} T p{place}t{thread}\n");
            }
            text += &format!("5 {time} P p{place}\n");
        }
        text += &format!("5 {time} R run\n");
        self.file.write_all(text.as_bytes())?;
        self.file.flush()
    }
}

/// Writes the run.
pub fn write(export: Export, path: &Path) -> Result<Written, ExportError> {
    let writer =
        |content, file| PajeWriter { content, file, named: Vec::new(), line: String::new() };
    write_steps(export, path, writer)
}
