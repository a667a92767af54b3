//! Ranks that did not finish ([`Unfinished`]), as the value of the key `unfinished` in the JSON document.

use serde::Serialize;

use crate::metrics::{
    Awaited, CallRecord, CauseKind, Partner, ThreadPosition, Unfinished, UnfinishedRank, WaitsFor,
};
use crate::trace::ProcessState;

#[derive(Debug, Serialize)]
pub(in crate::present) struct UnfinishedPart<'a> {
    running: bool,
    until_s: f64,
    at_least: bool,
    ranks: Vec<RankPart<'a>>,
    collectives: Vec<CollectivePart<'a>>,
    deadlocks: Vec<DeadlockPart<'a>>,
    causes: Vec<CausePart<'a>>,
}

#[derive(Debug, Serialize)]
struct RankPart<'a> {
    rank: u32,
    process: &'static str,
    known: bool,
    stuck: bool,
    last_stamp_s: f64,
    threads: Vec<ThreadPart<'a>>,
}

#[derive(Debug, Serialize)]
struct ThreadPart<'a> {
    thread: u32,
    inside: Option<CallPart<'a>>,
    file: Option<&'a str>,
    line: Option<u32>,
    waits_for: Option<WaitPart<'a>>,
    last_calls: Vec<CallPart<'a>>,
}

#[derive(Debug, Serialize)]
struct CallPart<'a> {
    function: &'a str,
    begin_s: f64,
    end_s: Option<f64>,
    polls: Option<u64>,
    peer: Option<PartnerPart>,
    source: Option<PartnerPart>,
    root: Option<PartnerPart>,
    tag: Option<i32>,
    communicator: Option<&'a str>,
    requests: Option<usize>,
}

/// A rank, or a word where there is no rank.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum PartnerPart {
    Rank(u32),
    Word(&'static str),
}

#[derive(Debug, Serialize)]
struct WaitPart<'a> {
    kind: &'static str,
    needs: Vec<NeedPart<'a>>,
}

#[derive(Debug, Serialize)]
struct NeedPart<'a> {
    operation: &'static str,
    rank: Option<u32>,
    any_of: Option<&'a str>,
    collective: Option<usize>,
    tag: Option<i32>,
    communicator: &'a str,
    begun: bool,
    count: u64,
}

#[derive(Debug, Serialize)]
struct CollectivePart<'a> {
    function: &'a str,
    communicator: &'a str,
    number: Option<u64>,
    inside: &'a [u32],
    missing: &'a [u32],
    missing_unknown: u32,
    mismatched: bool,
}

#[derive(Debug, Serialize)]
struct DeadlockPart<'a> {
    ranks: &'a [u32],
    certain: bool,
}

#[derive(Debug, Serialize)]
struct CausePart<'a> {
    rank: u32,
    kind: &'static str,
    waiting: &'a [u32],
}

impl<'a> UnfinishedPart<'a> {
    pub fn new(unfinished: &'a Unfinished) -> Self {
        let collectives = unfinished.collectives.iter().map(|open| CollectivePart {
            function: &open.function,
            communicator: &open.communicator,
            number: open.number,
            inside: &open.inside.0,
            missing: &open.missing.0,
            missing_unknown: open.missing_unknown,
            mismatched: open.mismatched,
        });
        let deadlocks = unfinished
            .deadlocks
            .iter()
            .map(|deadlock| DeadlockPart { ranks: &deadlock.ranks, certain: deadlock.certain });
        let causes = unfinished.causes.iter().map(|cause| CausePart {
            rank: cause.rank,
            kind: match cause.kind {
                CauseKind::Finalized => "finalized",
                CauseKind::WithoutFile => "without a file",
                CauseKind::NotRecorded => "not recorded",
                CauseKind::Died => "died",
                CauseKind::OutsideMpi => "outside MPI",
                CauseKind::Aborts => "aborts",
                CauseKind::InsideCall => "inside a call",
            },
            waiting: &cause.waiting.0,
        });
        Self {
            running: unfinished.running,
            until_s: unfinished.until_s,
            at_least: unfinished.at_least,
            ranks: unfinished.ranks.iter().map(RankPart::new).collect(),
            collectives: collectives.collect(),
            deadlocks: deadlocks.collect(),
            causes: causes.collect(),
        }
    }
}

impl<'a> RankPart<'a> {
    fn new(rank: &'a UnfinishedRank) -> Self {
        Self {
            rank: rank.rank,
            process: match rank.process {
                ProcessState::Runs('R') => "on a core",
                ProcessState::Runs('T' | 't') => "stopped",
                ProcessState::Runs(_) => "asleep",
                ProcessState::Gone => "gone",
                ProcessState::Unknown => "unknown",
            },
            known: rank.known,
            stuck: rank.stuck,
            last_stamp_s: rank.last_stamp_s,
            threads: rank.threads.iter().map(ThreadPart::new).collect(),
        }
    }
}

impl<'a> ThreadPart<'a> {
    fn new(thread: &'a ThreadPosition) -> Self {
        Self {
            thread: thread.thread,
            inside: thread.inside().map(CallPart::new),
            file: thread.place.file.as_deref(),
            line: thread.place.line,
            waits_for: thread.waits_for.as_ref().map(WaitPart::new),
            last_calls: thread.last_calls.iter().map(CallPart::new).collect(),
        }
    }
}

impl<'a> CallPart<'a> {
    fn new(call: &'a CallRecord) -> Self {
        let arguments = &call.arguments;
        let partner = |partner: Partner| match partner {
            Partner::Rank(rank) => PartnerPart::Rank(rank),
            Partner::Any => PartnerPart::Word("any"),
            Partner::Nobody => PartnerPart::Word("nobody"),
            Partner::Unknown => PartnerPart::Word("unknown"),
        };
        Self {
            function: &call.function,
            begin_s: call.begin_s,
            end_s: call.end_s,
            polls: call.polls,
            peer: arguments.peer.filter(|_| !arguments.root).map(partner),
            source: arguments.source.map(partner),
            root: arguments.peer.filter(|_| arguments.root).map(partner),
            tag: arguments.tag,
            communicator: arguments.communicator.as_deref(),
            requests: arguments.requests,
        }
    }
}

impl<'a> WaitPart<'a> {
    fn new(waits: &'a WaitsFor) -> Self {
        let (kind, needs) = match waits {
            WaitsFor::Needs { needs, any: false } => ("all", &needs[..]),
            WaitsFor::Needs { needs, any: true } => ("any", &needs[..]),
            WaitsFor::Nobody => ("nobody", &[][..]),
            WaitsFor::Unknown => ("unknown", &[][..]),
            WaitsFor::Aborts => ("aborts", &[][..]),
        };
        let needs = needs.iter().map(|need| {
            let (mut rank, mut any_of, mut collective) = (None, None, None);
            match need.awaited {
                Awaited::Rank(of) => rank = Some(of),
                Awaited::AnyOf(_) => any_of = Some(need.communicator.as_str()),
                Awaited::Missing(number) => collective = Some(number),
            }
            NeedPart {
                operation: need.operation,
                rank,
                any_of,
                collective,
                tag: need.tag,
                communicator: &need.communicator,
                begun: need.begun,
                count: need.count,
            }
        });
        Self { kind, needs: needs.collect() }
    }
}
