//! Describes changes in words for readers, and names them in the document.

use crate::present::context::plural;
use crate::present::quantity::{count, seconds, with_prefix};
use crate::replay::{Assembled, Change, Layout, NotReplayable, Origin, WhatIf};

/// A question's key in documents; `+` separates several changes.
pub(super) fn keys(changes: &[Change]) -> String {
    changes.iter().map(key).collect::<Vec<_>>().join("+")
}

fn key(change: &Change) -> String {
    match change {
        Change::IdealNetwork => "ideal_network".to_owned(),
        Change::Latency(factor) => format!("latency_x{factor}"),
        Change::Bandwidth(factor) => format!("bandwidth_x{factor}"),
        Change::Overhead(factor) => format!("overhead_x{factor}"),
        Change::Network(_) => "network".to_owned(),
        Change::Placement(mapping) => match mapping.layout {
            Layout::Block => format!("map_block_{}", mapping.hosts),
            Layout::Cyclic => format!("map_cyclic_{}", mapping.hosts),
            Layout::File(_) => "map_file".to_owned(),
            Layout::Traffic => "map_traffic".to_owned(),
        },
        Change::RankSpeed(rank, speed) => format!("rank_{rank}_x{speed}"),
        Change::RegionSpeed(name, speed) => format!("region_{name}_x{speed}"),
        Change::Balance(None) => "balance".to_owned(),
        Change::Balance(Some(region)) => format!("balance_{region}"),
        Change::MedianRank => "ranks_as_median".to_owned(),
        Change::NoNoise => "no_noise".to_owned(),
        Change::BalancedThreads => "threads_balanced".to_owned(),
        Change::FileSpeed(factor) => format!("io_x{factor}"),
    }
}

/// A question as readers see it.
pub fn sentence(changes: &[Change], what_if: &WhatIf) -> String {
    let words: Vec<String> = changes.iter().map(|change| words(change, what_if)).collect();
    words.join(", ")
}

fn words(change: &Change, what_if: &WhatIf) -> String {
    match change {
        Change::IdealNetwork => "no transfer takes time (ideal network)".to_owned(),
        Change::Latency(factor) => format!("latency {}", times(*factor)),
        Change::Bandwidth(factor) => format!("bandwidth {}", times(*factor)),
        Change::Overhead(factor) => format!("overhead of calls {}", times(*factor)),
        Change::Network(other) => network(other),
        Change::Placement(mapping) => {
            let hosts = plural(mapping.hosts as usize, "host");
            match &mapping.layout {
                Layout::Block => format!("ranks placed in blocks on {hosts}"),
                Layout::Cyclic => format!("ranks placed cyclically on {hosts}"),
                Layout::File(name) => format!("ranks placed on {hosts} as in {name}"),
                Layout::Traffic => format!("ranks that exchange much placed together, on {hosts}"),
            }
        }
        Change::RankSpeed(position, speed) => {
            let rank = what_if.graph.run.ranks[*position].rank;
            format!("rank {rank} computes {speed} times as fast")
        }
        Change::RegionSpeed(name, speed) => format!("region {name} is {speed} times as fast"),
        Change::Balance(None) => "computation divided evenly among the ranks".to_owned(),
        Change::Balance(Some(region)) => format!("region {region} divided evenly"),
        Change::MedianRank => "no rank computes longer than the median rank".to_owned(),
        Change::NoNoise => "no interruptions of computation".to_owned(),
        Change::BalancedThreads => {
            "work of each parallel region divided evenly among its threads".to_owned()
        }
        Change::FileSpeed(factor) => format!("calls on files outside MPI {factor} times as fast"),
    }
}

/// How another network differs from the run's.
fn network(other: &Assembled) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(other.machine.as_ref().map(|name| format!("the network of {name}")));
    for (hop, of) in ["", " between hosts"].into_iter().enumerate() {
        if other.latency[hop] == Origin::Given {
            parts.push(format!("latency{of} {}", seconds(other.network.latency[hop])));
        }
        if other.per_byte[hop] == Origin::Given {
            let bandwidth = with_prefix(1.0 / other.network.per_byte[hop]);
            parts.push(format!("bandwidth{of} {bandwidth}B/s"));
        }
    }
    if other.overhead == Origin::Given {
        parts.push(format!("overhead per call {}", seconds(other.network.overhead)));
    }
    if other.eager_bytes[0] == Origin::Given {
        parts.push(format!("eager limit {} B", count(other.network.eager_bytes[0] as u64)));
    }
    parts.join(", ")
}

fn times(factor: f64) -> String {
    match factor {
        factor if factor > 0.0 && factor < 1.0 && (1.0 / factor).fract() < 1e-9 => {
            format!("/ {}", 1.0 / factor)
        }
        factor => format!("x {factor}"),
    }
}

/// Why a run cannot be replayed, worded as the end of a sentence.
pub fn reason(why: NotReplayable) -> &'static str {
    match why {
        NotReplayable::NoAttributes => {
            "it was recorded at level 0, which keeps no peers and communicators (record with --level 1)"
        }
        NotReplayable::NotWhole => {
            "some of its calls are kept only as totals (record without --profile-only and without \
             a size limit)"
        }
        NotReplayable::MissingRanks => "some of its ranks have no file",
        NotReplayable::TooLong => "it has more than 4 billion calls",
        NotReplayable::NoTime => "it has no length",
    }
}

/// The word for a parameter's origin.
pub(super) fn origin(of: Origin) -> &'static str {
    match of {
        Origin::Run => "run",
        Origin::Assumed => "assumed",
        Origin::Machine => "machine",
        Origin::Given => "given",
    }
}
