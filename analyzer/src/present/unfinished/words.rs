//! Words for a rank's position: its call, its process, and the ranks that it waits for.

use crate::metrics::{
    Awaited, CallRecord, Need, OpenCollective, Partner, Unfinished, UnfinishedRank, WaitsFor,
};
use crate::plain_text::printable;
use crate::present::code_place::file_and_line;
use crate::present::context::{number_list, plural};
use crate::present::quantity::count;
use crate::trace::ProcessState;

pub(super) fn location_text(rank: &UnfinishedRank) -> String {
    if !rank.known {
        return "unknown: recording ended, or the file is damaged".into();
    }
    let Some(position) = rank.position() else { return "outside MPI, having made no call".into() };
    let line = file_and_line(&position.place).map(|line| format!(" ({line})"));
    let line = printable(&line.unwrap_or_default());
    match (position.inside(), position.last_calls.last()) {
        (Some(call), _) => {
            let thread = match rank.threads.len() {
                1 => String::new(),
                _ if rank.is_outside() => {
                    format!(" (thread {}; thread 0 outside MPI)", position.thread)
                }
                _ => format!(" (thread {})", position.thread),
            };
            format!("in {}{line}{thread}", call_text(call))
        }
        (None, Some(last)) => format!("outside MPI, after {}{line}", call_text(last)),
        (None, None) => "outside MPI, having made no call".into(),
    }
}

pub(super) fn process_word(process: ProcessState) -> &'static str {
    if process == ProcessState::Unknown { "" } else { process.name() }
}

/// A call with its recorded arguments.
pub(in crate::present) fn call_text(call: &CallRecord) -> String {
    let arguments = &call.arguments;
    let mut parts = Vec::new();
    if let Some(peer) = arguments.peer {
        let word = match (arguments.root, sends(&call.function)) {
            (true, _) => "root",
            (false, true) => "to",
            (false, false) => "from",
        };
        parts.push(format!("{word} {}", partner_text(peer)));
    }
    if let Some(source) = arguments.source {
        parts.push(format!("from {}", partner_text(source)));
    }
    if let Some(tag) = arguments.tag.filter(|_| arguments.peer.is_some()) {
        parts.push(format!("tag {tag}"));
    }
    if let Some(name) = arguments.communicator.as_deref().filter(|name| *name != "MPI_COMM_WORLD") {
        parts.push(format!("on {}", printable(name)));
    }
    if let Some(requests) = arguments.requests {
        parts.push(plural(requests, "request"));
    }
    if let Some(polls) = call.polls {
        parts.push(format!("{} polls", count(polls)));
    }
    match parts.is_empty() {
        true => call.function.clone(),
        false => format!("{} {}", call.function, parts.join(", ")),
    }
}

fn partner_text(partner: Partner) -> String {
    match partner {
        Partner::Rank(rank) => rank.to_string(),
        Partner::Any => "any".into(),
        Partner::Nobody => "PROC_NULL".into(),
        Partner::Unknown => "?".into(),
    }
}

fn sends(function: &str) -> bool {
    function.to_ascii_lowercase().contains("send")
}

pub(super) fn waits_text(waits: &WaitsFor, unfinished: &Unfinished) -> String {
    match waits {
        WaitsFor::Needs { needs, any } => {
            let mut ranks: Vec<u32> = Vec::new();
            let mut others: Vec<String> = Vec::new();
            for need in needs {
                match need.awaited {
                    Awaited::Rank(rank) => ranks.push(rank),
                    Awaited::AnyOf(_) => {
                        others.push(format!("any of {}", printable(&need.communicator)));
                    }
                    Awaited::Missing(number) => match unfinished.collectives.get(number) {
                        Some(open) => others.push(missing_text(open)),
                        None => others.push("?".into()),
                    },
                }
            }
            ranks.sort_unstable();
            ranks.dedup();
            if !ranks.is_empty() {
                others.insert(0, number_list(ranks));
            }
            others.dedup();
            let text = others.join(if *any { " or " } else { " and " });
            match needs.iter().any(|need: &Need| need.begun) {
                true => format!("{text} to call MPI"),
                false => text,
            }
        }
        WaitsFor::Nobody => "nobody".into(),
        WaitsFor::Unknown => "?".into(),
        WaitsFor::Aborts => "-".into(),
    }
}

pub(super) fn missing_text(open: &OpenCollective) -> String {
    let ranks = number_list(open.missing.0.iter().copied());
    match (open.missing.0.is_empty(), open.missing_unknown) {
        (false, 0) => ranks,
        (true, unknown) => format!("{} not known", plural(unknown as usize, "rank")),
        (false, unknown) => format!("{ranks} and {unknown} not known"),
    }
}
