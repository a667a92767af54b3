//! The JSON document's part on messages, described in `docs/reference/report-json.md`.

use serde::Serialize;

use crate::metrics::{
    CommunicatorMetrics, Matrix, MessageMetrics, PollMetrics, RankMetrics, SizeClass,
};
use crate::present::shown::Report;
use crate::timeline::communicators::Members;
use crate::timeline::matching::Sides;

/// Up to this many ranks, the document contains the matrix.
pub(in crate::present::report) const MAX_RANKS: u32 = 256;

#[derive(Debug, Serialize)]
pub(in crate::present::report) struct MessagesPart<'a> {
    messages: Option<Messages<'a>>,
    matrix: Option<MatrixDocument>,
    communicators: Vec<CommunicatorDocument<'a>>,
    sizes: &'a [SizeClass],
    polls: PollMetrics,
}

#[derive(Debug, Serialize)]
struct Messages<'a> {
    matched: u64,
    unmatched: u64,
    bytes: u64,
    unmatched_reasons: Vec<ReasonDocument>,
    #[serde(flatten)]
    metrics: &'a MessageMetrics,
    size_mismatches: u64,
    truncated: u64,
    unknown_requests: u64,
}

#[derive(Debug, Serialize)]
struct ReasonDocument {
    reason: &'static str,
    #[serde(flatten)]
    sides: Sides,
}

#[derive(Debug, Serialize)]
struct MatrixDocument {
    count: Vec<Vec<u64>>,
    bytes: Vec<Vec<u64>>,
}

#[derive(Debug, Serialize)]
struct CommunicatorDocument<'a> {
    #[serde(flatten)]
    metrics: &'a CommunicatorMetrics,
    size: u32,
    members: Vec<Run>,
    remote_size: Option<u32>,
    remote_members: Option<Vec<Run>>,
    messages: u64,
    bytes: u64,
}

/// First rank, stride, number of ranks.
type Run = (Option<u32>, i64, u32);

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
        Self {
            messages: metrics.map(messages),
            matrix: metrics.filter(small).map(|metrics| dense(&metrics.matrix, world_size)),
            communicators: rows.unwrap_or_default(),
            sizes: metrics.map_or(&[], |metrics| &metrics.sizes),
            polls: polls(&report.metrics.ranks),
        }
    }
}

fn messages(metrics: &MessageMetrics) -> Messages<'_> {
    let reasons = metrics.unmatched.iter();
    let reasons = reasons.map(|(of, sides)| ReasonDocument { reason: of.name(), sides: *sides });
    Messages {
        matched: metrics.total.count,
        unmatched: metrics.unmatched_count(),
        bytes: metrics.total.bytes,
        unmatched_reasons: reasons.collect(),
        metrics,
        size_mismatches: metrics.summary.size_mismatches,
        truncated: metrics.summary.truncated,
        unknown_requests: metrics.summary.unknown_requests,
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
        metrics,
        size: group(0).map_or(0, Members::size),
        members: group(0).map_or(Vec::new(), |members| members.runs().collect()),
        remote_size: remote.map(Members::size),
        remote_members: remote.map(|members| members.runs().collect()),
        messages: metrics.messages.count,
        bytes: metrics.messages.bytes,
    }
}
