//! Finds transfers that computation was to hide, and that were left to the call that completes them: a rank begins to
//! send and receive, computes, and waits (docs/decisions/0137-transfers-that-were-not-hidden.md).
//!
//! A trace does not show when a message moves. Within a host it moves only while a rank is inside MPI, because a
//! processor has to copy it, unless a thread of the library does (progress threads). Between hosts the evidence is that
//! as many bytes were there in half the time elsewhere in the run.

use std::collections::BTreeMap;
use std::ops::Range;

use super::graph::{Graph, LinkKind, Message, NO_OP, OpNumber};
use super::network::{Hop, Placement};
use super::what_if::WhatIf;
use crate::trace::Run;

/// Calls that complete fewer bytes are not looked at: the library keeps a copy of such messages, and takes it out only
/// inside MPI.
const MIN_BYTES: f64 = 16384.0;
/// Within a host, a call waited if it took at least this share of the computation before it: shorter ones only look
/// whether all is there.
const MIN_PART: f64 = 0.05;
/// Between hosts, the computation lasts this many times as long as such a transfer took elsewhere …
const ROOM: f64 = 2.0;
/// … and the wait at least this share of that.
const MIN_WAIT: f64 = 0.5;
/// Share of a stretch between two calls that may be neither computation nor the recorder's: in more, the rank called
/// MPI, which may have moved messages.
const MAX_OTHER: f64 = 1e-4;

/// Settings with which a thread of the MPI library moves messages.
const PROGRESS_THREADS: [&str; 2] = ["MPICH_ASYNC_PROGRESS", "I_MPI_ASYNC_PROGRESS"];

/// Transfers that one stretch of computation did not hide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NotHidden {
    /// The computation, by its number in the graph's contexts.
    pub context: u32,
    /// Number of calls that waited for transfers which could have moved before.
    pub calls: u64,
    /// Number of calls that completed transfers after this computation.
    pub of: u64,
    /// Seconds that the former waited, over all ranks.
    pub waited_s: f64,
    /// Of these, seconds for which the computation lasted, too.
    pub hideable_s: f64,
    /// Seconds of computation, after both sides had begun, before these calls.
    pub computed_s: f64,
    /// Bytes that they received or sent, whichever is more.
    pub bytes: f64,
}

/// What a call completes after a stretch of computation.
struct Completion {
    hop: Hop,
    /// Bytes received, and sent: both directions may move at once.
    directions: [f64; 2],
    /// When both sides of all its messages had begun.
    begun_s: f64,
}

impl Completion {
    /// Bytes of the larger direction.
    fn bytes(&self) -> f64 {
        self.directions[0].max(self.directions[1])
    }
}

impl WhatIf<'_> {
    /// Transfers that could have moved before the calls that complete them, by the computation before these; most time
    /// first.
    pub fn not_hidden(&self) -> Vec<NotHidden> {
        let graph = &self.graph;
        let spans = Spans::new(graph, &self.placement);
        let needs_mpi = !has_progress_threads(graph.run);
        let mut found: BTreeMap<u32, NotHidden> = BTreeMap::new();
        for line in &graph.lines {
            let mut left_s = line.begin_s;
            let mut first = line.ops.start;
            for op in line.ops.clone().filter(|op| !graph.links(*op).is_empty()) {
                let recorded = graph.recorded[op as usize];
                let before = first..op + 1;
                let before_s = std::mem::replace(&mut left_s, recorded.left_s);
                first = op + 1;
                let Some(of) = completion(graph, &self.placement, op) else { continue };
                let is_kept = of.bytes() <= self.kept_bytes(of.hop);
                let room_s = recorded.entered_s - of.begun_s.max(before_s);
                let other_s = recorded.entered_s - before_s - computed_s(graph, before);
                if is_kept || room_s <= 0.0 || other_s > MAX_OTHER * room_s {
                    continue;
                }
                let waited_s = recorded.left_s - recorded.entered_s;
                let was_not_hidden = match of.hop {
                    Hop::Within if needs_mpi => waited_s >= MIN_PART * room_s,
                    hop => spans.least(hop, of.bytes()).is_some_and(|least_s| {
                        room_s >= ROOM * least_s && waited_s >= MIN_WAIT * least_s
                    }),
                };
                let context = graph.ops[op as usize].context;
                let sum = found.entry(context).or_insert(NotHidden { context, ..NONE });
                sum.of += 1;
                if was_not_hidden {
                    sum.calls += 1;
                    sum.waited_s += waited_s;
                    sum.hideable_s += waited_s.min(room_s);
                    sum.computed_s += room_s;
                    sum.bytes += of.bytes();
                }
            }
        }
        let mut found: Vec<NotHidden> = found.into_values().filter(|sum| sum.calls > 0).collect();
        found.sort_by(|a, b| b.hideable_s.total_cmp(&a.hideable_s));
        found
    }

    /// Bytes up to which the library may have taken a message.
    fn kept_bytes(&self, hop: Hop) -> f64 {
        let hop = hop as usize;
        let is_shown = self.calibration.samples.eager_shown[hop];
        let limit = if is_shown { self.calibration.network.eager_bytes[hop] } else { 0.0 };
        limit.max(MIN_BYTES)
    }
}

const NONE: NotHidden = NotHidden {
    context: 0,
    calls: 0,
    of: 0,
    waited_s: 0.0,
    hideable_s: 0.0,
    computed_s: 0.0,
    bytes: 0.0,
};

/// Whether a rank's MPI library was told to move messages by a thread of its own.
fn has_progress_threads(run: &Run) -> bool {
    let is_set = |name: &str, value: &str| {
        let value = value.trim().to_ascii_lowercase();
        PROGRESS_THREADS.contains(&name)
            && !matches!(value.as_str(), "" | "0" | "no" | "off" | "false" | "disable")
    };
    let of_ranks = run.ranks.iter().flat_map(|rank| &rank.facts.environment);
    let of_run = run.description.iter().flat_map(|of| &of.environment);
    of_ranks
        .map(|(name, value)| (name, value))
        .chain(of_run)
        .any(|(name, value)| is_set(name, value))
}

/// The messages that a call completes, if it only completes such as both sides had begun before, all within hosts or
/// all between hosts.
fn completion(graph: &Graph, placement: &Placement, op: OpNumber) -> Option<Completion> {
    let entered = |op: OpNumber| graph.recorded[op as usize].entered_s;
    let mut found: Option<Completion> = None;
    for link in graph.links(op) {
        let direction = match link.kind {
            LinkKind::CompleteReceive => 0,
            LinkKind::CompleteSend => 1,
            _ => return None,
        };
        let message: &Message = &graph.messages[link.of as usize];
        if message.send == NO_OP || message.receive == NO_OP {
            return None;
        }
        let hop = placement.hop(message.lines);
        let begun_s = entered(message.send).max(entered(message.receive));
        let so_far = found.get_or_insert(Completion { hop, directions: [0.0; 2], begun_s });
        if so_far.hop != hop {
            return None;
        }
        so_far.begun_s = so_far.begun_s.max(begun_s);
        so_far.directions[direction] += message.bytes;
    }
    found
}

/// Seconds of computation and of the recorder before these operations.
fn computed_s(graph: &Graph, ops: Range<OpNumber>) -> f64 {
    let of_op = |op: OpNumber| {
        let of = &graph.ops[op as usize];
        let is_computing = graph.contexts.get(of.context).is_computing();
        let own_s = if is_computing { graph.own[op as usize] } else { 0.0 };
        own_s + f64::from(of.library_s)
    };
    ops.map(of_op).sum()
}

/// How long transfers took at most: bytes and seconds, within hosts and between, ascending by bytes.
struct Spans([Vec<(f64, f64)>; 2]);

impl Spans {
    fn new(graph: &Graph, placement: &Placement) -> Self {
        let mut spans = [Vec::new(), Vec::new()];
        for op in 0..graph.ops.len() as OpNumber {
            let received = graph.links(op).iter().filter(|link| link.kind.completes_receive());
            let mut messages = received.map(|link| &graph.messages[link.of as usize]).peekable();
            let Some(first) = messages.peek() else { continue };
            let hop = placement.hop(first.lines);
            let (mut bytes, mut begun_s) = (0.0, f64::NEG_INFINITY);
            let mut is_whole = true;
            for message in messages {
                is_whole &= message.send != NO_OP && message.receive != NO_OP;
                is_whole &= placement.hop(message.lines) == hop;
                if is_whole {
                    let entered = |op: OpNumber| graph.recorded[op as usize].entered_s;
                    begun_s = begun_s.max(entered(message.send)).max(entered(message.receive));
                    bytes += message.bytes;
                }
            }
            let span_s = graph.recorded[op as usize].left_s - begun_s;
            if is_whole && bytes >= MIN_BYTES && span_s > 0.0 {
                spans[hop as usize].push((bytes, span_s));
            }
        }
        for of_hop in &mut spans {
            of_hop.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut least_s = f64::INFINITY;
            for (_, span_s) in of_hop.iter_mut().rev() {
                least_s = least_s.min(*span_s);
                *span_s = least_s;
            }
        }
        Self(spans)
    }

    /// The shortest time that a transfer of at least so many bytes took.
    fn least(&self, hop: Hop, bytes: f64) -> Option<f64> {
        let of_hop = &self.0[hop as usize];
        let at = of_hop.partition_point(|(other, _)| *other < bytes);
        of_hop.get(at).map(|(_, span_s)| *span_s)
    }
}
