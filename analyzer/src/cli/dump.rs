//! `gammachi dump`: prints the events or messages of a run, one per line.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use trace_format::reader::Event;

use super::error::{CommandError, eprint_message};
use crate::analysis::Analysis;
use crate::plain_text::for_terminal;
use crate::present::dump::{Dump, event_titles, message_titles};
use crate::timeline::GlobalTimeline;
use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::matching::{self, MatchFinding, MatchSink, Message, Unmatched};
use crate::trace::Run;

/// Prints every recorded call, or every message, one per line.
///
/// Calls are ordered by their start on the global timeline. Messages are printed as soon as their
/// matches are certain, roughly in order of completion; those without a partner are printed with
/// the reason.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gammachi dump hpl-20260131-120000.gammachi --rank 1 | head\n  \
                  gammachi dump hpl-20260131-120000.gammachi --function MPI_Send --from 1.5 --to 2\n  \
                  gammachi dump hpl-20260131-120000.gammachi --messages --json\n\nTimes are seconds \
                  since the first rank left MPI_Init. Peers are ranks in the call's\ncommunicator, \
                  those of --messages ranks of MPI_COMM_WORLD."
)]
pub struct DumpArguments {
    /// Run directory printed by `gammachi run`
    #[arg(value_name = "RUN")]
    pub run: PathBuf,

    /// Only calls of this rank; with --messages, messages to or from it
    #[arg(long, value_name = "N")]
    pub rank: Option<u32>,

    /// Only calls of this function, such as MPI_Send
    #[arg(long, value_name = "NAME", conflicts_with = "messages")]
    pub function: Option<String>,

    /// Only what begins at this second or later (for a message, its send)
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub from: Option<f64>,

    /// Only what begins before this second
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub to: Option<f64>,

    /// Print messages (matched sends and receives) instead of calls
    #[arg(long)]
    pub messages: bool,

    /// Print a JSON object per line
    #[arg(long)]
    pub json: bool,
}

impl DumpArguments {
    fn selects_time(&self, begin_s: f64) -> bool {
        self.from.is_none_or(|from| begin_s >= from) && self.to.is_none_or(|to| begin_s < to)
    }
}

pub fn dump(arguments: &DumpArguments) -> Result<(), CommandError> {
    let run = Run::open(&arguments.run)?;
    check(arguments, &run)?;
    let timeline = GlobalTimeline::new(&run);
    let communicators = CommunicatorTable::new(&run);
    let dump = Dump::new(&run, &timeline, &communicators);
    let mut lines =
        LineWriter { out: BufWriter::new(io::stdout().lock()), json: arguments.json, failed: None };
    if arguments.messages {
        if !arguments.json {
            lines.line(&message_titles());
        }
        let mut sink = MessageLines { arguments, dump: &dump, lines };
        Analysis::new(&run, &timeline).matches_in_order(&mut sink);
        sink.lines.finish()?;
        return Ok(run.check_readable()?);
    }
    if !arguments.json {
        lines.line(&event_titles());
    }
    let wanted = |rank: usize, event: &Event| {
        let trace = &run.ranks[rank];
        let of_function = |name: &String| trace.file.function_name(event.function) == Some(name);
        arguments.function.as_ref().is_none_or(of_function)
            && arguments.selects_time(dump.clock(rank).seconds(event.begin))
    };
    let positions = 0..run.ranks.len();
    let asked =
        |position: &usize| arguments.rank.is_none_or(|number| run.ranks[*position].rank == number);
    let analysis = Analysis::new(&run, &timeline);
    for (rank, thread, event) in analysis.in_order(positions.filter(asked), wanted) {
        let line = dump.event(rank, thread, &event);
        lines.print(&line, || line.text());
        if lines.failed.is_some() {
            break;
        }
    }
    for trace in &run.ranks {
        for thread in &trace.file.threads {
            if let Some(totals) = &thread.totals {
                eprint_message(&format!(
                    "rank {} thread {}: {} calls were kept as totals only and are not listed; \
                     `gammachi report` has their sums",
                    trace.rank, thread.number, totals.header.calls
                ));
            }
        }
    }
    lines.finish()?;
    Ok(run.check_readable()?)
}

fn check(arguments: &DumpArguments, run: &Run) -> Result<(), CommandError> {
    if let Some(rank) = arguments.rank
        && run.position_of(rank).is_none()
    {
        let what = match rank < run.world_size {
            true => "left no readable file".to_owned(),
            false => format!("does not exist: the run has {} ranks", run.world_size),
        };
        return Err(CommandError::usage(format!("--rank {rank}: rank {rank} {what}")));
    }
    if let Some(name) = &arguments.function {
        let known = |name: &String| {
            run.ranks.iter().any(|trace| trace.file.function_names().contains(name))
        };
        if !known(name) {
            return Err(CommandError::usage(format!(
                "--function {name}: no such function; names are written as in C, such as MPI_Barrier"
            )));
        }
    }
    if arguments.messages && !matching::is_possible(run) {
        return Err(CommandError::Input(format!(
            "{}: recorded at level 0, function and times, without messages; record with \
             --level 1",
            run.directory.display()
        )));
    }
    Ok(())
}

/// Writes lines until the first failure.
struct LineWriter<W: Write> {
    out: W,
    json: bool,
    failed: Option<io::Error>,
}

impl<W: Write> LineWriter<W> {
    fn line(&mut self, text: &str) {
        if self.failed.is_none() {
            self.failed = writeln!(self.out, "{}", for_terminal(text, false)).err();
        }
    }

    fn print(&mut self, value: &impl Serialize, text: impl FnOnce() -> String) {
        if self.failed.is_some() {
            return;
        }
        if !self.json {
            return self.line(&text());
        }
        match serde_json::to_string(value) {
            Ok(line) => self.line(&line),
            Err(error) => self.failed = Some(error.into()),
        }
    }

    fn finish(mut self) -> Result<(), CommandError> {
        let result = match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        };
        result.map_err(CommandError::standard_output)
    }
}

struct MessageLines<'a, W: Write> {
    arguments: &'a DumpArguments,
    dump: &'a Dump<'a>,
    lines: LineWriter<W>,
}

impl<W: Write> MatchSink for MessageLines<'_, W> {
    fn take(&mut self, finding: &MatchFinding) {
        match finding {
            MatchFinding::Message(message) => self.message(message),
            MatchFinding::Unmatched(unmatched) => self.unmatched(unmatched),
            _ => {}
        }
    }
}

impl<W: Write> MessageLines<'_, W> {
    fn message(&mut self, message: &Message) {
        let ends = [message.send.rank, message.receive.rank];
        if self.arguments.rank.is_none_or(|rank| ends.contains(&rank))
            && self.arguments.selects_time(message.send.begin_s)
        {
            let line = self.dump.message(message);
            self.lines.print(&line, || line.text());
        }
    }

    fn unmatched(&mut self, unmatched: &Unmatched) {
        let ends = [Some(unmatched.rank), unmatched.partner];
        if self.arguments.rank.is_none_or(|rank| ends.contains(&Some(rank)))
            && self.arguments.selects_time(unmatched.begin_s)
        {
            let line = self.dump.unmatched(unmatched);
            self.lines.print(&line, || line.text());
        }
    }
}
