//! What makes the critical path, in the JSON document of `gammachi why`.

use serde::Serialize;

use crate::causes::path_labels::{Group, OnRanks, PathLabel, SizeClass};
use crate::causes::{Causes, Context};
use crate::statistics::quantile;

use super::length::Length;
use super::{places, words};

/// Maximum number of labels.
const MAX_LABELS: usize = 1_000;

/// What has one place in the program and one kind of communicator, on the path and on all ranks.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct LabelPart {
    /// What is done, in words.
    context: String,
    /// The MPI function; null outside calls.
    function: Option<String>,
    /// Where it is called.
    place: Option<String>,
    /// The communicator; null outside calls, and for calls that name none, as `MPI_Wait`.
    communicator: Option<GroupPart>,
    /// The first calls of the function on the communicator, one on each rank.
    first_use: bool,
    /// What lies on the critical path.
    on_path: OnPathPart,
    /// The same events of all ranks.
    on_ranks: OnRanksPart,
}

/// A kind of communicator.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GroupPart {
    ranks: u32,
    /// Distance in `MPI_COMM_WORLD` of members that follow each other; null: it varies, or is not known.
    stride: Option<u32>,
    /// Most members on one host.
    per_host: u32,
}

/// Events on the critical path.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OnPathPart {
    /// Events of which some of the time lies on the path.
    count: u64,
    /// Their time on the path.
    #[serde(flatten)]
    length: Length,
    /// Messages that they send, receive or complete.
    messages: u64,
    /// Bytes of these messages; of collective operations what the rank sends.
    bytes: u64,
}

/// Events of all ranks.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OnRanksPart {
    count: u64,
    /// Most of one rank.
    max_count: u64,
    /// Their time, without waits for known ranks.
    #[serde(flatten)]
    length: Length,
    /// Mean time of one.
    mean_s: f64,
    messages: u64,
    bytes: u64,
    /// The same by size, ascending.
    sizes: Vec<SizePart>,
    /// Number of ranks with such events.
    ranks: usize,
    /// Time of the rank with the least, of the median rank, and of the one with the most.
    min_rank_s: f64,
    median_rank_s: f64,
    max_rank_s: f64,
}

/// Events of one size.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SizePart {
    /// All have at least so many bytes, and fewer than twice as many.
    from_bytes: u64,
    count: u64,
    bytes: u64,
}

pub(super) fn labels(causes: &Causes, labels: &[PathLabel]) -> Vec<LabelPart> {
    labels.iter().take(MAX_LABELS).map(|label| part(causes, label)).collect()
}

fn part(causes: &Causes, label: &PathLabel) -> LabelPart {
    let site = match &label.context {
        Context::Transfer(site) => Some(site),
        _ => None,
    };
    let group = |Group { ranks, stride, per_host }| GroupPart { ranks, stride, per_host };
    let on_path = &label.on_path;
    LabelPart {
        context: words::context(&label.context),
        function: site.map(|site| site.function.clone()),
        place: site.map(places::call_site),
        communicator: label.group.map(group),
        first_use: label.first_use,
        on_path: OnPathPart {
            count: on_path.count,
            length: Length::new(causes, on_path.ticks),
            messages: on_path.messages,
            bytes: on_path.bytes,
        },
        on_ranks: on_ranks(causes, &label.on_ranks),
    }
}

fn on_ranks(causes: &Causes, of: &OnRanks) -> OnRanksPart {
    let s = |ticks: i64| causes.clock.seconds(ticks);
    let of_ranks: Vec<f64> = of.ticks_of_ranks.iter().map(|ticks| s(*ticks)).collect();
    let size = |SizeClass { from, count, bytes }: &SizeClass| SizePart {
        from_bytes: *from,
        count: *count,
        bytes: *bytes,
    };
    OnRanksPart {
        count: of.count,
        max_count: of.max_count,
        length: Length::new(causes, of.ticks),
        mean_s: s(of.ticks) / of.count.max(1) as f64,
        messages: of.messages,
        bytes: of.bytes,
        sizes: of.sizes.iter().map(size).collect(),
        ranks: of_ranks.len(),
        min_rank_s: of_ranks.first().copied().unwrap_or(0.0),
        median_rank_s: if of_ranks.is_empty() { 0.0 } else { quantile(&of_ranks, 0.5) },
        max_rank_s: of_ranks.last().copied().unwrap_or(0.0),
    }
}
