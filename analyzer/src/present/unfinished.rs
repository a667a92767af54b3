//! Ranks that did not finish, for people: [`Unfinished`] comes in, a table of where they stand, who
//! waits for whom in sentences, and last calls go out.

use std::collections::BTreeMap;

use crate::metrics::{
    CallRecord, Cause, CauseKind, Need, OpenCollective, Partner, ThreadPosition, Unfinished,
    UnfinishedRank, WaitsFor, Whom,
};
use crate::plain_text::printable;
use crate::trace::ProcessState;

use super::context::{number_list, plural};
use super::quantity::{count, seconds};
use super::table::Table;

/// Rows of the table.
const MOST_ROWS: usize = 20;
/// Ranks of a circle that are named.
const MOST_IN_CIRCLE: usize = 6;
/// Collective operations, and ends of chains, that get a sentence.
const MOST_SENTENCES: usize = 3;
/// Ranks whose last calls are shown.
const MOST_LAST: usize = 4;

/// What an array of ranks with the same position has in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    stands: String,
    waits: String,
    process: &'static str,
}

/// Ranks that stand alike.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Position {
    /// The ranks, `0-3,8`.
    pub ranks: String,
    /// In which call with which arguments, or where else.
    pub stands: String,
    /// Since when the earliest of them does, global seconds.
    pub since_s: f64,
    /// For how long, in words.
    pub lasted: String,
    /// Whom they wait for.
    pub waits_for: String,
    /// What their processes do; empty where it is not known.
    pub process: &'static str,
}

/// At most so many positions, by their first ranks, and how many more there are.
pub(super) fn positions(unfinished: &Unfinished, most: usize) -> (Vec<Position>, usize) {
    let mut rows: BTreeMap<Row, (Vec<u32>, f64)> = BTreeMap::new();
    for rank in &unfinished.ranks {
        let position = rank.position();
        let inside = position.and_then(ThreadPosition::inside);
        let since_s = match (inside, position.and_then(|position| position.last_calls.last())) {
            (Some(call), _) => call.begin_s,
            (None, Some(last)) => last.end_s.unwrap_or(last.begin_s),
            (None, None) => rank.last_stamp_s,
        };
        let row = Row {
            stands: stands(rank),
            waits: position
                .and_then(|p| p.waits_for.as_ref())
                .map_or("-".into(), |waits| waits_text(waits, unfinished)),
            process: process_word(rank.process),
        };
        let (ranks, earliest) = rows.entry(row).or_insert((Vec::new(), f64::INFINITY));
        ranks.push(rank.rank);
        *earliest = earliest.min(since_s);
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, (ranks, _))| ranks[0]);
    let left_out = rows.len().saturating_sub(most);
    rows.truncate(most);
    let positions = rows.into_iter().map(|(row, (ranks, since_s))| Position {
        ranks: number_list(ranks),
        stands: row.stands,
        since_s,
        lasted: lasted(unfinished, since_s),
        waits_for: row.waits,
        process: row.process,
    });
    (positions.collect(), left_out)
}

/// The table: ranks that stand alike share a row.
pub(super) fn position_lines(unfinished: &Unfinished) -> Vec<String> {
    let (rows, left_out) = positions(unfinished, MOST_ROWS);
    let mut table = Table::default();
    table.left("rank", rows.iter().map(|row| row.ranks.clone()));
    table.left("stands", rows.iter().map(|row| row.stands.clone()));
    table.right("since", rows.iter().map(|row| seconds(row.since_s)));
    table.right("for", rows.iter().map(|row| row.lasted.clone()));
    table.left("waits for", rows.iter().map(|row| row.waits_for.clone()));
    if rows.iter().any(|row| !row.process.is_empty()) {
        table.left("process", rows.iter().map(|row| row.process.to_owned()));
    }
    let mut lines = table.lines();
    if left_out > 0 {
        lines.push(format!("{} (--json lists all)", plural(left_out, "more position")));
    }
    lines
}

fn lasted(unfinished: &Unfinished, since_s: f64) -> String {
    let lasted = seconds((unfinished.until_s - since_s).max(0.0));
    if unfinished.at_least { format!(">= {lasted}") } else { lasted }
}

fn stands(rank: &UnfinishedRank) -> String {
    if !rank.known {
        return "not known: recording ended, or the file is damaged".into();
    }
    let Some(position) = rank.position() else { return "outside MPI, without a call".into() };
    match (position.inside(), position.last_calls.last()) {
        (Some(call), _) => {
            let thread = match rank.threads.len() {
                1 => String::new(),
                _ if rank.is_outside() => {
                    format!(" (thread {}; thread 0 outside MPI)", position.thread)
                }
                _ => format!(" (thread {})", position.thread),
            };
            format!("in {}{thread}", call_text(call))
        }
        (None, Some(last)) => format!("outside MPI, after {}", call_text(last)),
        (None, None) => "outside MPI, without a call".into(),
    }
}

fn process_word(process: ProcessState) -> &'static str {
    match process {
        ProcessState::Runs('R') => "on a core",
        ProcessState::Runs('T' | 't') => "stopped",
        ProcessState::Runs(_) => "asleep",
        ProcessState::Gone => "gone",
        ProcessState::Unknown => "",
    }
}

/// A call with what its record says about its arguments.
pub(super) fn call_text(call: &CallRecord) -> String {
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

fn waits_text(waits: &WaitsFor, unfinished: &Unfinished) -> String {
    match waits {
        WaitsFor::Needs { needs, any } => {
            let mut ranks: Vec<u32> = Vec::new();
            let mut others: Vec<String> = Vec::new();
            for need in needs {
                match need.whom {
                    Whom::Rank(rank) => ranks.push(rank),
                    Whom::AnyOf(_) => {
                        others.push(format!("any of {}", printable(&need.communicator)));
                    }
                    Whom::Missing(number) => match unfinished.collectives.get(number) {
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

fn missing_text(open: &OpenCollective) -> String {
    let ranks = number_list(open.missing.0.iter().copied());
    match (open.missing.0.is_empty(), open.missing_unknown) {
        (false, 0) => ranks,
        (true, unknown) => format!("{} not known", plural(unknown as usize, "rank")),
        (false, unknown) => format!("{ranks} and {unknown} not known"),
    }
}

/// Deadlocks, collective operations without all their members, and where the chains end.
pub(super) fn sentences(unfinished: &Unfinished) -> Vec<String> {
    let mut sentences = Vec::new();
    for deadlock in unfinished.deadlocks.iter().take(MOST_SENTENCES) {
        let what = match deadlock.certain {
            true => "Deadlock",
            false => "Circular wait (a rank of it polls or has more threads, which may end it)",
        };
        let ranks = &deadlock.ranks;
        let named = ranks.iter().zip(ranks.iter().cycle().skip(1)).take(MOST_IN_CIRCLE);
        let mut parts: Vec<String> = named
            .map(|(rank, next)| {
                let call = unfinished.rank(*rank).and_then(UnfinishedRank::position);
                let call = call.and_then(ThreadPosition::inside).map_or("?".into(), call_text);
                format!("rank {rank} in {call} waits for {next}")
            })
            .collect();
        if ranks.len() > MOST_IN_CIRCLE {
            parts.push(format!("and so on over {}", plural(ranks.len(), "rank")));
        }
        sentences.push(format!("{what}: {}.", parts.join("; ")));
    }
    let lacking = |open: &&OpenCollective| !open.missing.0.is_empty() || open.missing_unknown > 0;
    for open in unfinished.awaited_collectives().filter(lacking).take(MOST_SENTENCES) {
        sentences.push(collective_sentence(open));
    }
    let few = unfinished.causes.iter().take(MOST_SENTENCES);
    sentences.extend(few.map(|cause| cause_sentence(cause, unfinished)));
    sentences
}

fn collective_sentence(open: &OpenCollective) -> String {
    let which = match open.number {
        Some(number) => {
            format!("{} (collective #{number} of {})", open.function, printable(&open.communicator))
        }
        None => format!("{} on {}", open.function, printable(&open.communicator)),
    };
    let inside = format!(
        "{} inside ({}), missing: {}",
        plural(open.inside.0.len(), "rank"),
        number_list(open.inside.0.iter().copied()),
        missing_text(open)
    );
    match open.mismatched {
        true => format!("{which}: {inside}; its members called different functions."),
        false => format!("{which}: {inside}."),
    }
}

fn cause_sentence(cause: &Cause, unfinished: &Unfinished) -> String {
    let waits = waits(unfinished, cause.waiting.0.len());
    let who = match &cause.waiting.0[..] {
        [one] => format!("Rank {one} {waits}"),
        ranks => format!("Ranks {} {waits}", number_list(ranks.iter().copied())),
    };
    let rank = unfinished.rank(cause.rank);
    // Of a rank that is outside MPI in its first thread that one tells, whatever other threads wait for.
    let first = rank.filter(|_| cause.kind == CauseKind::OutsideMpi);
    let first = first.and_then(|rank| rank.threads.iter().find(|thread| thread.thread == 0));
    let position = first.or_else(|| rank.and_then(UnfinishedRank::position));
    let last = position.and_then(|position| position.last_calls.last());
    let after = last.map_or_else(
        || "before any call".into(),
        |last| {
            let at_s = last.end_s.unwrap_or(last.begin_s);
            format!("after {} at {}", call_text(last), seconds(at_s))
        },
    );
    let inside = position.and_then(ThreadPosition::inside);
    let which = match cause.kind {
        CauseKind::Finalized => "which has returned from MPI_Finalize".into(),
        CauseKind::WithoutFile => "which left no readable file".into(),
        CauseKind::NotRecorded => "of which the record ends earlier".into(),
        CauseKind::Died => match inside {
            Some(call) => format!("whose process died inside {}", call_text(call)),
            None => format!("whose process died outside MPI, {after}"),
        },
        CauseKind::OutsideMpi if rank.is_some_and(|rank| rank.waits_in_other_thread()) => {
            format!("whose first thread is outside MPI, {after}, while another waits")
        }
        CauseKind::OutsideMpi => {
            let process = rank.map_or(ProcessState::Unknown, |rank| rank.process);
            match process {
                ProcessState::Runs('R') => {
                    format!("which computes outside MPI (its process is on a core), {after}")
                }
                ProcessState::Runs(_) => format!(
                    "which is outside MPI (its process is {}), {after}",
                    process_word(process)
                ),
                _ => format!(
                    "which was outside MPI, {after}: it died there, or computed until the run ended"
                ),
            }
        }
        CauseKind::Aborts => "which called MPI_Abort".into(),
        CauseKind::InsideCall => match (inside, position.and_then(|p| p.waits_for.as_ref())) {
            (Some(call), Some(WaitsFor::Nobody)) => format!(
                "which is inside {} since {}, with all that it needs",
                call_text(call),
                seconds(call.begin_s)
            ),
            (Some(call), _) => format!(
                "which is inside {} since {}; whom that waits for is not recorded",
                call_text(call),
                seconds(call.begin_s)
            ),
            (None, _) => "which is inside a call".into(),
        },
    };
    format!("{who} for rank {}, {which}.", cause.rank)
}

/// For the verdict: the gravest in few words.
pub(super) fn short(unfinished: &Unfinished) -> Option<String> {
    if let Some(deadlock) = unfinished.deadlocks.first() {
        let mut ranks = deadlock.ranks.clone();
        ranks.sort_unstable();
        let what = if deadlock.certain { "Deadlock" } else { "Circular wait" };
        return Some(match ranks.len() {
            1 => format!("{what}: rank {} {} for itself.", ranks[0], waits(unfinished, 1)),
            _ => {
                let waits = waits(unfinished, ranks.len());
                format!("{what}: ranks {} {waits} for each other.", number_list(ranks))
            }
        });
    }
    let cause = unfinished.causes.first()?;
    let who = plural(cause.waiting.0.len(), "rank");
    let waits = waits(unfinished, cause.waiting.0.len());
    Some(format!("{who} {waits} for rank {}.", cause.rank))
}

/// The verb: of a job that is over it says what was.
fn waits(unfinished: &Unfinished, ranks: usize) -> &'static str {
    match (unfinished.running, ranks) {
        (false, _) => "waited",
        (true, 1) => "waits",
        (true, _) => "wait",
    }
}

/// Last calls of the ranks that matter most: ends of chains, circles, then the lowest.
pub(super) fn last_call_lines(unfinished: &Unfinished) -> Vec<String> {
    let causes = unfinished.causes.iter().map(|cause| cause.rank);
    let circles = unfinished.deadlocks.iter().flat_map(|deadlock| deadlock.ranks.iter().copied());
    let all = unfinished.ranks.iter().map(|rank| rank.rank);
    let mut shown: Vec<u32> = Vec::new();
    for rank in causes.chain(circles).chain(all) {
        if shown.len() < MOST_LAST && !shown.contains(&rank) {
            shown.push(rank);
        }
    }
    shown.sort_unstable();
    let ranks = shown.into_iter().filter_map(|rank| unfinished.rank(rank));
    let lines = ranks.filter_map(|rank| {
        let calls = &rank.position()?.last_calls;
        // Equal ones in a row are one, with the time of the last.
        let mut merged: Vec<(String, usize, f64)> = Vec::new();
        for call in calls {
            let text = call_text(call);
            match merged.last_mut().filter(|(other, ..)| *other == text) {
                Some((_, times, at_s)) => (*times, *at_s) = (*times + 1, call.begin_s),
                None => merged.push((text, 1, call.begin_s)),
            }
        }
        let calls: Vec<String> = merged
            .into_iter()
            .map(|(text, times, at_s)| match times {
                1 => format!("{text} ({})", seconds(at_s)),
                _ => format!("{text} x{times} ({})", seconds(at_s)),
            })
            .collect();
        Some(format!("rank {}: {}", rank.rank, calls.join(", ")))
    });
    lines.filter(|line| !line.ends_with(": ")).collect()
}
