//! Bandwidth of messages in given directions: bytes per second of all of them together.
//!
//! Receives are posted first. The leader (the lowest rank that takes part) starts its clock when
//! all are ready and stops it when all have reported that everything arrived. Both notifications
//! are included in the time, as in the customary bandwidth test.

use crate::buffer::Buffer;
use crate::world::{Pending, World};

const DATA: i32 = 11;
const READY: i32 = 12;
const START: i32 = 13;
const DONE: i32 = 14;
/// Maximum number of bytes in a window.
const WINDOW_BYTES: usize = 16 << 20;
/// Maximum number of messages per edge under way at once.
const MAX_MESSAGES: usize = 64;

/// A direction of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    from: i32,
    to: i32,
}

impl Edge {
    /// From one rank to another.
    pub fn new(from: i32, to: i32) -> Self {
        Self { from, to }
    }
}

/// Buffers of one rank, grown as needed.
#[derive(Default)]
pub struct Buffers {
    out: Buffer,
    into: Buffer,
}

/// Number of messages per edge under way at once, for a message size.
pub fn window(bytes: usize) -> usize {
    (WINDOW_BYTES / bytes.max(1)).clamp(2, MAX_MESSAGES)
}

/// Runs a flow. Returns bytes per second on the leader, `None` on all other ranks.
///
/// Every rank that takes part must call it with the same arguments; others may. Bytes that arrive
/// wrong are counted. The flow runs twice and the second run counts: bandwidth is that of a
/// continuing stream, with the buffers where the last window left them.
pub fn run(
    world: &World,
    edges: &[Edge],
    bytes: usize,
    window: usize,
    buffers: &mut Buffers,
    wrong: &mut u64,
) -> Option<f64> {
    once(world, edges, bytes, window, buffers, wrong);
    once(world, edges, bytes, window, buffers, wrong)
}

fn once(
    world: &World,
    edges: &[Edge],
    bytes: usize,
    window: usize,
    buffers: &mut Buffers,
    wrong: &mut u64,
) -> Option<f64> {
    let me = world.rank;
    let ranks: Vec<i32> = {
        let mut ranks: Vec<i32> = edges.iter().flat_map(|edge| [edge.from, edge.to]).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    };
    if !ranks.contains(&me) {
        return None;
    }
    let leader = ranks[0];
    let outgoing: Vec<i32> =
        edges.iter().filter(|edge| edge.from == me).map(|edge| edge.to).collect();
    let incoming: Vec<i32> =
        edges.iter().filter(|edge| edge.to == me).map(|edge| edge.from).collect();
    let sends = |rank: i32| edges.iter().any(|edge| edge.from == rank);
    let Buffers { out, into } = buffers;
    out.grow(bytes, 0x5a);
    into.grow(incoming.len() * window * bytes, 0);
    let out = &out[..bytes];
    let into = &mut into[..incoming.len() * window * bytes];
    mark(into, bytes, 0);

    let mut pending = Pending::with_capacity(world, (incoming.len() + outgoing.len()) * window);
    let mut pieces = into.chunks_mut(bytes.max(1));
    for _ in 0..window {
        for &from in &incoming {
            pending.receive(pieces.next().expect("there is a piece for each message"), from, DATA);
        }
    }
    let mut word = [0_u8; 1];
    let others = || ranks.iter().copied().filter(|rank| *rank != leader);
    let begin;
    if me == leader {
        for rank in others() {
            world.receive(&mut word, rank, READY);
        }
        begin = world.ticks();
        for rank in others().filter(|rank| sends(*rank)) {
            world.send(&word, rank, START);
        }
    } else {
        world.send(&word, leader, READY);
        if sends(me) {
            world.receive(&mut word, leader, START);
        }
        begin = 0;
    }
    for _ in 0..window {
        for &to in &outgoing {
            pending.send(out, to, DATA);
        }
    }
    pending.wait();
    let rate = if me == leader {
        for rank in others() {
            world.receive(&mut word, rank, DONE);
        }
        let seconds = world.ticks().wrapping_sub(begin) as f64 * world.seconds_per_tick();
        Some((edges.len() * window * bytes) as f64 / seconds)
    } else {
        world.send(&word, leader, DONE);
        None
    };
    for piece in into.chunks(bytes.max(1)) {
        *wrong += u64::from(piece.first() != Some(&0x5a) || piece.last() != Some(&0x5a));
    }
    rate
}

/// Changes a buffer so that a missing message is detected.
fn mark(into: &mut [u8], bytes: usize, value: u8) {
    for piece in into.chunks_mut(bytes.max(1)) {
        let last = piece.len() - 1;
        piece[0] = value;
        piece[last] = value;
    }
}
