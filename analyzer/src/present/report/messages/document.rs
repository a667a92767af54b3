//! The JSON document's part on messages, described in `docs/reference/report-json.md`.

use serde::Serialize;

use crate::metrics::{
    CommunicatorMetrics, Matrix, MessageMetrics, OneSided, PollMetrics, RankMetrics,
};
use crate::timeline::communicators::Members;

use crate::present::Report;

/// Up to this many ranks, the document contains the matrix.
pub(in crate::present::report) const MAX_RANKS: u32 = 256;

#[derive(Debug, Serialize)]
pub(in crate::present::report) struct MessagesPart<'a> {
    messages: Option<Messages>,
    matrix: Option<MatrixDocument>,
    communicators: Vec<CommunicatorDocument<'a>>,
    sizes: Vec<SizeDocument>,
    polls: PollMetrics,
}

#[derive(Debug, Serialize)]
struct Messages {
    matched: u64,
    unmatched: u64,
    bytes: u64,
    unmatched_reasons: Vec<ReasonDocument>,
    wildcard_receives: u64,
    early: u64,
    early_beyond_bound: u64,
    early_unaligned: u64,
    early_ambiguous: u64,
    size_mismatches: u64,
    truncated: u64,
    unknown_requests: u64,
    /// Absent in runs without one-sided communication.
    #[serde(skip_serializing_if = "Option::is_none")]
    one_sided: Option<OneSidedDocument>,
}

#[derive(Debug, Serialize)]
struct OneSidedDocument {
    accesses: u64,
    put_bytes: u64,
    got_bytes: u64,
}

impl OneSidedDocument {
    fn of(metrics: &OneSided) -> Option<Self> {
        let OneSided { accesses, put_bytes, got_bytes } = *metrics;
        (accesses > 0).then_some(Self { accesses, put_bytes, got_bytes })
    }
}

#[derive(Debug, Serialize)]
struct ReasonDocument {
    reason: &'static str,
    sends: u64,
    receives: u64,
}

#[derive(Debug, Serialize)]
struct MatrixDocument {
    count: Vec<Vec<u64>>,
    bytes: Vec<Vec<u64>>,
}

#[derive(Debug, Serialize)]
struct CommunicatorDocument<'a> {
    name: Option<&'a str>,
    made_by: Option<&'a str>,
    instances: u64,
    size: u32,
    members: Vec<Run>,
    remote_size: Option<u32>,
    remote_members: Option<Vec<Run>>,
    messages: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    one_sided: Option<OneSidedDocument>,
    collectives: u64,
    collective_calls: u64,
    collective_bytes: u64,
}

/// First rank, stride, number of ranks.
type Run = (Option<u32>, i64, u32);

#[derive(Debug, Serialize)]
struct SizeDocument {
    from_bytes: u64,
    to_bytes: u64,
    count: u64,
    bytes: u64,
}

/// Sums the polls of all ranks.
fn polls(ranks: &[RankMetrics]) -> PollMetrics {
    ranks.iter().fold(PollMetrics::default(), |sum, rank| PollMetrics {
        calls: sum.calls.saturating_add(rank.polls.calls),
        runs: sum.runs + rank.polls.runs,
        time_s: sum.time_s + rank.polls.time_s,
    })
}

impl<'a> MessagesPart<'a> {
    pub fn new(report: &Report<'a>) -> Self {
        let metrics = report.metrics.messages.as_ref();
        let world_size = report.run.world_size;
        let small = |_: &&MessageMetrics| world_size <= MAX_RANKS;
        let rows = metrics.map(|metrics| metrics.communicators.iter().map(communicator).collect());
        let sizes = metrics.into_iter().flat_map(|metrics| &metrics.sizes);
        Self {
            messages: metrics.map(messages),
            matrix: metrics.filter(small).map(|metrics| dense(&metrics.matrix, world_size)),
            communicators: rows.unwrap_or_default(),
            sizes: sizes
                .map(|class| SizeDocument {
                    from_bytes: class.from_bytes,
                    to_bytes: class.to_bytes,
                    count: class.traffic.count,
                    bytes: class.traffic.bytes,
                })
                .collect(),
            polls: polls(&report.metrics.ranks),
        }
    }
}

fn messages(metrics: &MessageMetrics) -> Messages {
    let reasons = metrics.unmatched.iter().map(|(reason, sides)| ReasonDocument {
        reason: reason.name(),
        sends: sides.sends,
        receives: sides.receives,
    });
    Messages {
        matched: metrics.total.count,
        unmatched: metrics.unmatched_count(),
        bytes: metrics.total.bytes,
        unmatched_reasons: reasons.collect(),
        wildcard_receives: metrics.wildcard_receives,
        early: metrics.early,
        early_beyond_bound: metrics.early_beyond_bound,
        early_unaligned: metrics.early_unaligned,
        early_ambiguous: metrics.early_ambiguous,
        size_mismatches: metrics.summary.size_mismatches,
        truncated: metrics.summary.truncated,
        unknown_requests: metrics.summary.unknown_requests,
        one_sided: OneSidedDocument::of(&metrics.one_sided),
    }
}

/// A full matrix; rows are senders, columns receivers.
fn dense(matrix: &Matrix, world_size: u32) -> MatrixDocument {
    let zeros = vec![vec![0; world_size as usize]; world_size as usize];
    let mut document = MatrixDocument { count: zeros.clone(), bytes: zeros };
    for (&(source, destination), traffic) in &matrix.pairs {
        let (row, column) = (source as usize, destination as usize);
        if let Some(cell) = document.count.get_mut(row).and_then(|row| row.get_mut(column)) {
            *cell = traffic.count;
        }
        if let Some(cell) = document.bytes.get_mut(row).and_then(|row| row.get_mut(column)) {
            *cell = traffic.bytes;
        }
    }
    document
}

fn communicator(metrics: &CommunicatorMetrics) -> CommunicatorDocument<'_> {
    let group = |index: usize| metrics.groups.get(index);
    let remote = group(1).filter(|_| metrics.inter);
    CommunicatorDocument {
        name: metrics.name.as_deref(),
        made_by: metrics.made_by.as_deref(),
        instances: metrics.instances,
        size: group(0).map_or(0, Members::size),
        members: group(0).map_or(Vec::new(), |members| members.runs().collect()),
        remote_size: remote.map(Members::size),
        remote_members: remote.map(|members| members.runs().collect()),
        messages: metrics.messages.count,
        bytes: metrics.messages.bytes,
        one_sided: OneSidedDocument::of(&metrics.one_sided),
        collectives: metrics.collectives,
        collective_calls: metrics.collective_calls,
        collective_bytes: metrics.collective_bytes,
    }
}
