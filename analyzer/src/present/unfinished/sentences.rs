//! Sentences on which ranks wait for which.

use super::screen::lasted;
use super::words::{call_text, missing_text, process_word};
use crate::diagnosis::Finding;
use crate::metrics::{
    Cause, CauseKind, OpenCollective, ThreadPosition, Unfinished, UnfinishedRank, WaitsFor,
};
use crate::plain_text::printable;
use crate::present::code_place::file_and_line;
use crate::present::context::{number_list, plural};
use crate::present::quantity::seconds;
use crate::trace::ProcessState;

/// Maximum number of ranks named in a circular wait.
const MAX_IN_CIRCLE: usize = 6;
/// Maximum number of sentences on deadlocks, on collective operations and on causes, each.
const MAX_SENTENCES: usize = 3;

/// Deadlocks, collective operations that lack members, and the ranks at the ends of chains of waiting.
pub(in crate::present) fn sentences(unfinished: &Unfinished) -> Vec<String> {
    let mut sentences = Vec::new();
    for deadlock in unfinished.deadlocks.iter().take(MAX_SENTENCES) {
        let what = match deadlock.certain {
            true => "Deadlock",
            false => {
                "Circular wait (one of its ranks polls or has further threads, which may resolve it)"
            }
        };
        let ranks = &deadlock.ranks;
        let named = ranks.iter().zip(ranks.iter().cycle().skip(1)).take(MAX_IN_CIRCLE);
        let mut parts: Vec<String> = named
            .map(|(rank, next)| {
                let call = unfinished.rank(*rank).and_then(UnfinishedRank::position);
                let call = call.and_then(ThreadPosition::inside).map_or("?".into(), call_text);
                format!("rank {rank} in {call} waits for {next}")
            })
            .collect();
        if ranks.len() > MAX_IN_CIRCLE {
            parts.push(format!("and so on over {}", plural(ranks.len(), "rank")));
        }
        sentences.push(format!("{what}: {}.", parts.join("; ")));
    }
    let lacking = |open: &&OpenCollective| !open.missing.0.is_empty() || open.missing_unknown > 0;
    for open in unfinished.awaited_collectives().filter(lacking).take(MAX_SENTENCES) {
        sentences.push(collective_sentence(open));
    }
    let few = unfinished.causes.iter().take(MAX_SENTENCES);
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
    // If the first thread is outside MPI, its position is the cause, whatever other threads wait for.
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
        CauseKind::NotRecorded => "whose recording ended earlier".into(),
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
                    "which was outside MPI, {after}: it died there, or was computing until the run ended"
                ),
            }
        }
        CauseKind::Aborts => "which called MPI_Abort".into(),
        CauseKind::InsideCall => match (inside, position.and_then(|p| p.waits_for.as_ref())) {
            (Some(call), Some(WaitsFor::Nobody)) => format!(
                "which has been in {} for {} although nothing it waits for is missing",
                call_text(call),
                lasted(unfinished, call.begin_s)
            ),
            (Some(call), _) => format!(
                "which has been in {} for {}; the rank it waits for is not recorded",
                call_text(call),
                lasted(unfinished, call.begin_s)
            ),
            (None, _) => "which is inside a call".into(),
        },
    };
    format!("{who} for rank {}, {which}.", cause.rank)
}

/// A deadlock or a hang in few words; `None` for other findings.
pub(in crate::present) fn short(finding: &Finding, unfinished: &Unfinished) -> Option<String> {
    match finding {
        Finding::Deadlock { ranks, certain } => {
            let what = if *certain { "Deadlock" } else { "Circular wait" };
            let waits = waits(unfinished, ranks.len());
            Some(match ranks[..] {
                [rank] => format!("{what}: rank {rank} {waits} for itself."),
                _ => {
                    let place = common_call(unfinished, ranks);
                    let ranks = number_list(ranks.iter().copied());
                    format!("{what}: ranks {ranks} {waits} for each other{place}.")
                }
            })
        }
        Finding::Hang { by, waiting } => {
            let who = match waiting[..] {
                [one] => format!("Rank {one}"),
                ref several => plural(several.len(), "rank"),
            };
            Some(format!("{who} {} for rank {by}.", waits(unfinished, waiting.len())))
        }
        _ => None,
    }
}

/// Where all these ranks are, `" in MPI_Recv (ring.c:42)"`; empty if they are inside different calls.
fn common_call(unfinished: &Unfinished, ranks: &[u32]) -> String {
    let place = |rank: &u32| {
        let position = unfinished.rank(*rank)?.position()?;
        let function = &position.inside()?.function;
        let line =
            file_and_line(&position.place).map_or(String::new(), |line| format!(" ({line})"));
        Some(printable(&format!(" in {function}{line}")))
    };
    let mut places: Vec<Option<String>> = ranks.iter().map(place).collect();
    places.dedup();
    match &mut places[..] {
        [Some(one)] => std::mem::take(one),
        _ => String::new(),
    }
}

/// The verb "wait", in the past tense for a job that is over.
fn waits(unfinished: &Unfinished, ranks: usize) -> &'static str {
    match (unfinished.running, ranks) {
        (false, _) => "waited",
        (true, 1) => "waits",
        (true, _) => "wait",
    }
}
