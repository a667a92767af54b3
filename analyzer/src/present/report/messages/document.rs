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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(in crate::present::report) struct MessagesPart<'a> {
    /// Matched messages; null at level 0. On one communicator between two processes the n-th send of a tag meets the
    /// n-th receive that took this tag, in the order of posting (MPI's rule). A message counts where its send begins.
    messages: Option<Messages<'a>>,
    /// Messages by sender (row) and receiver; null beyond 256 ranks.
    matrix: Option<MatrixDocument>,
    /// Communicators, alike ones together.
    communicators: Vec<CommunicatorDocument<'a>>,
    /// Messages by size.
    sizes: &'a [SizeClass],
    /// Tests and probes that found nothing, of all ranks.
    polls: PollMetrics,
}

/// Messages of a selection.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Messages<'a> {
    /// Number of matched messages.
    matched: u64,
    /// Sends and receives without a partner.
    unmatched: u64,
    /// Bytes of matched messages.
    bytes: u64,
    /// Why they have no partner.
    unmatched_reasons: Vec<ReasonDocument>,
    #[serde(flatten)]
    metrics: &'a MessageMetrics,
    /// Messages whose send and receive disagree on the size, in the whole run: matching or trace is wrong.
    size_mismatches: u64,
    /// Messages truncated by the receive's buffer, in the whole run.
    truncated: u64,
    /// Requests that were used but never made in the trace, in the whole run.
    unknown_requests: u64,
}

/// Sends and receives without a partner, for one reason.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ReasonDocument {
    /// `cancelled`, `ended with an error`, `receive never completed`, `receive freed before its completion`, `source
    /// of a failed wildcard receive unknown`, `partner's file missing`, `partner died or had not finished`,
    /// `partner's recording ended early or is damaged`, `partner recorded without attributes (level 0)`, `no
    /// partner`, `communicator unknown`, `message handle unknown`, `partner outside the world`, or `no such rank in
    /// the communicator`.
    reason: &'static str,
    #[serde(flatten)]
    sides: Sides,
}

/// Messages by sender (row) and receiver (column).
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MatrixDocument {
    count: Vec<Vec<u64>>,
    /// Their bytes.
    bytes: Vec<Vec<u64>>,
}

/// A communicator, or alike ones.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CommunicatorDocument<'a> {
    #[serde(flatten)]
    metrics: &'a CommunicatorMetrics,
    /// Number of its ranks.
    size: u32,
    /// World ranks in order, as runs of first rank (null: not known, or of another world), stride, number.
    members: Vec<Run>,
    /// Size of the other group of an intercommunicator.
    remote_size: Option<u32>,
    /// Its members.
    remote_members: Option<Vec<Run>>,
    /// Messages on it.
    messages: u64,
    /// Their bytes.
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
