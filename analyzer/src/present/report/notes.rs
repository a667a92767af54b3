//! Writes the notes of all stages as sentences.

use trace_format::header::KeepingPolicy;

use crate::metrics::{FailedCalls, MessageNote, Note};
use crate::present::context::plural;
use crate::present::quantity::with_prefix;
use crate::present::snapshot;
use crate::timeline::{NotedRanks, TimeNote};
use crate::trace::RunNote;

/// A note on a run as a sentence.
pub(crate) fn run_note(note: &RunNote) -> String {
    match note {
        RunNote::Snapshot { reason, rank, utc } => {
            snapshot::sentence(*reason, *rank, utc.as_deref())
        }
        RunNote::Simulated => {
            "this run is simulated: `gammachi whatif --out` wrote it by replaying another run; its times were not \
             measured"
                .into()
        }
        RunNote::Spawned { files } => format!(
            "{files} files of spawned processes (world-NNN-…) exist, but are not analysed yet"
        ),
        RunNote::UnknownMpi { library } => format!(
            "the recorder does not know the MPI library ({}): function and times of every call are \
             recorded; peers, bytes, communicators and messages are not, because the layout of its handles \
             and statuses is unknown, and clocks were not compared",
            if library.is_empty() { "it gives no version" } else { library }
        ),
        RunNote::FreedInTotals { communicators, objects } => format!(
            "{communicators} communicators and {objects} windows and files (counted on each rank) were \
             freed where calls are kept only as totals: the totals include their calls, but what they were is unknown"
        ),
    }
}

/// A note on the times as a sentence.
pub(crate) fn time_note(note: &TimeNote) -> String {
    let of = |ranks: &NotedRanks, what: &str| {
        let others = match ranks.count {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        format!("rank {}{others}: {what}", ranks.first)
    };
    match note {
        TimeNote::AssumedShared(ranks) => of(
            ranks,
            "clock never measured; assumed to share the counter of the other ranks of its host",
        ),
        TimeNote::Estimated(ranks) => of(
            ranks,
            "clock never compared with those of other hosts; its offset is estimated from the program's \
             messages and collective operations, and right within the bound stated",
        ),
        TimeNote::Unconnected(ranks) => of(
            ranks,
            "clock offset cannot be estimated: no messages or collective operations bound it from both \
             sides",
        ),
        TimeNote::Contradictory(ranks) => of(
            ranks,
            "clock offset cannot be estimated: messages contradict each other (the counter did not run \
             evenly, or calls are missing)",
        ),
        TimeNote::Unaligned(ranks) => of(
            ranks,
            "clock not aligned: placed by the system's wall clock, times across ranks may be wrong by \
             milliseconds or more",
        ),
        TimeNote::GuessedFrequency(ranks) => of(
            ranks,
            "counter frequency not measured (the rank's recording was not completed) but estimated; times \
             may be wrong by a factor",
        ),
        TimeNote::WholeProcess => {
            "--from-start: elapsed time is from the start of the first process (time 0) to the end of the \
             last one; MPI_Init and MPI_Finalize count as MPI, and the time before and between them as \
             usual"
                .into()
        }
        TimeNote::ProcessBeginUnknown(ranks) => of(
            ranks,
            "the trace does not say when the process started; the start of MPI_Init, its first event, is \
             used instead",
        ),
    }
}

/// A note on the metrics as a sentence.
pub(in crate::present) fn sentence(note: &Note) -> String {
    match note {
        Note::ComputeModesDiffer { used, other } => {
            format!("ranks were recorded with different --compute ({used}, {other}); {used} is used")
        }
        Note::ComputeModeUnknown(mode) => {
            format!("--compute {mode:?} is not known here; outside is used")
        }
        Note::NotParticipating { ranks, of, first } => format!(
            "{ranks} of {of} ranks take no part in the selection (the first is rank {first}); efficiency is \
             computed over the remaining ranks"
        ),
        Note::OccurrencesDiffer => "ranks have different numbers of occurrences: elapsed time is from the \
                                    first begin to the last end, and what lies between a rank's \
                                    occurrences counts as outside"
            .into(),
        Note::MessagesNotRequested => "messages and communicators are left out (--no-messages)".into(),
        Note::SeveralThreads => "a rank with several threads computes while any of them computes, and is in MPI while \
                                 none computes and any is in MPI; calls and waits are those of each thread"
            .into(),
        Note::CallsFailed(rows) => failed(rows),
        Note::Messages(what, count) => of_messages(*what, *count),
        Note::CodeNotSampled { why, ranks } => {
            format!("the code of {} was not sampled: {why}", plural(*ranks, "rank"))
        }
        Note::CodeSampledAtTicks => {
            "code was sampled at the kernel's ticks: what a program does right after a tick is counted too rarely or too \
             often"
                .into()
        }
        Note::SitesWithoutNames { module, why } => {
            format!("call sites: {module} {why}; offsets in it are shown")
        }
        Note::KeptAsTotals { calls, of, policy, stretch_s: (from, to) } => {
            let why = match policy {
                KeepingPolicy::Totals => "the run was recorded for totals only",
                KeepingPolicy::Last => "the limit was reached, and the newest are kept",
                KeepingPolicy::First => "the limit on bytes was reached (--max-bytes)",
            };
            let messages = if calls == of { "not known" } else { "those of the other calls" };
            format!(
                "{calls} of {of} calls are kept as totals, not one by one ({why}), from {from:.3} to \
                 {to:.3} s: counts, times and efficiency include them; messages and communicators are \
                 {messages}"
            )
        }
        Note::ThreadsInTotals(first) => format!(
            "ranks with totals and several threads (the first is rank {first}): how their threads \
             overlapped in that time is not known; their computing time (γ) is computed as if the totals of all \
             threads began at the same moment"
        ),
        Note::MemoryGrew(of) => {
            let bytes = |bytes: u64| format!("{}B", with_prefix(bytes as f64));
            let others = match of.others_bytes {
                0 => "the others' did not grow".to_owned(),
                others => format!("the others' by {} (median)", bytes(others)),
            };
            format!(
                "memory: rank {} grew from {} at its start to {} when it was last read (most: {}); {others}",
                of.rank,
                bytes(of.memory.first_bytes),
                bytes(of.memory.last_bytes),
                bytes(of.memory.peak_bytes)
            )
        }
        Note::NoBlasSeen => "only BLAS counts as computation, but no BLAS call was seen (linked statically, or none \
            made): record with --compute outside"
            .into(),
    }
}

fn of_messages(what: MessageNote, count: u64) -> String {
    let one_or = |one, several| if count == 1 { one } else { several };
    let message = one_or("message", "messages");
    let operation = one_or("collective operation", "collective operations");
    let text = match what {
        MessageNote::SizeMismatch => {
            format!(
                "{message} of a different size from the receive: the matching or the trace is wrong"
            )
        }
        MessageNote::Truncated => {
            format!("{message} longer than the receive's buffer: truncated (MPI_ERR_TRUNCATE)")
        }
        MessageNote::RequestsUnknown => format!(
            "completed {} created by calls that are not recorded",
            one_or("request was", "requests were")
        ),
        MessageNote::CommunicatorsUnknown => {
            format!("{} on unknown communicators", one_or("collective call", "collective calls"))
        }
        MessageNote::Mismatched => {
            format!("{operation} in which ranks called different functions")
        }
        MessageNote::Incomplete => format!(
            "{operation} {} incomplete: ranks died, left no file, were cut off, or belong to another world",
            one_or("is", "are")
        ),
        MessageNote::Early => format!(
            "{message} {} before being sent: times across ranks are off by more than the messages took; \
             --causal moves them apart",
            one_or("arrives", "arrive")
        ),
        MessageNote::EarlyAmbiguous => format!(
            "{message} {} to arrive before being sent where several threads of a rank use the same \
             communicator, partner and tag: which send met which receive is ambiguous there, and says \
             nothing about the clocks",
            one_or("seems", "seem")
        ),
    };
    format!("{count} {text}")
}

/// Maximum number of kinds of failed calls named.
const MAX_NAMED: usize = 5;

fn failed(rows: &[FailedCalls]) -> String {
    let calls = match rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.count)) {
        1 => "1 call returned an error".to_owned(),
        all => format!("{all} calls returned an error"),
    };
    let named = |row: &FailedCalls| match row.count {
        1 => format!("{} {}", row.function, row.error),
        count => format!("{} {} ({count} times)", row.function, row.error),
    };
    let mut which: Vec<String> = rows.iter().take(MAX_NAMED).map(named).collect();
    if rows.len() > MAX_NAMED {
        which.push(format!("{} more kinds", rows.len() - MAX_NAMED));
    }
    format!(
        "{calls}: {}; failed calls are left out of messages, collective operations and bytes",
        which.join(", ")
    )
}
