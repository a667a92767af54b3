//! Queues between two ranks: how many sends complete on the sender's side alone, with no receive
//! posted (LogPQ's SQ, TQ and RQ, SCIENCE D).
//!
//! While the receiver is outside MPI, messages can lie in the sender's library, in the network or
//! shared memory, and in what the network fills without the receiver: SQ + TQ, which cannot be told
//! apart from outside the library. While the receiver is inside MPI but has posted no receive, its
//! library takes them in as unexpected messages: RQ comes on top. A send that does not complete in
//! either case waits for its receive: the library has switched to a rendezvous.

use std::time::Duration;

use serde::Serialize;

use crate::network::pair::Pair;
use crate::world::{Request, World, bytes_of, bytes_of_mut};

const FLOOD: i32 = 21;
const END: i32 = 22;
/// A send that has not completed after this long waits for its receiver.
const GRACE_S: f64 = 0.02;
/// Most messages of a flood.
const MOST_MESSAGES: u64 = 4096;
/// Most bytes of a flood.
const MOST_BYTES: u64 = 64 << 20;
/// How long the receiver stays outside MPI, at first and at most.
const HOLD_MS: (u64, u64) = (60, 1000);

/// What the receiver does while messages come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receiver {
    /// Sleeps outside MPI.
    Idle,
    /// Calls MPI all the time, and posts no receive.
    InMpi,
}

/// How much completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Sends that completed.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The experiment ended here, not the queue: it holds at least this much.
    pub at_least: bool,
}

/// The queues at one message size.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueueSize {
    /// Message size.
    pub bytes: u64,
    /// With the receiver outside MPI: sender and transport, SQ + TQ.
    pub receiver_outside_mpi: Held,
    /// With the receiver in MPI: SQ + TQ + RQ.
    pub receiver_in_mpi: Held,
}

/// Where the library switches from eager to rendezvous.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EagerLimit {
    /// Largest message that completes on its sender without a receive posted; 0 when even one byte
    /// does not.
    pub bytes: u64,
    /// No larger message was tried: there may be no switch at all.
    pub at_least: bool,
}

/// Searches the eager limit up to `most` bytes; the same on both ranks.
pub fn eager_limit(pair: &Pair, most: usize, buffer: &mut Vec<u8>) -> EagerLimit {
    // A receiver that was kept from its processor may miss the grace time: no is said three times.
    let mut completes = |bytes: u64| {
        (0..3).any(|_| flood(pair, bytes as usize, 1, Receiver::InMpi, buffer).messages == 1)
    };
    // Doubling, then bisection between the last that does and the first that does not.
    let (mut low, mut high) = (0, 1_u64);
    while high <= most as u64 && completes(high) {
        low = high;
        high *= 2;
    }
    if high > most as u64 {
        return EagerLimit { bytes: low, at_least: true };
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if completes(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    EagerLimit { bytes: low, at_least: false }
}

/// Both queue experiments at one size.
pub fn queue_size(pair: &Pair, bytes: u64, buffer: &mut Vec<u8>) -> QueueSize {
    let most = MOST_MESSAGES.min(MOST_BYTES / bytes.max(1)).max(1);
    let mut held = |receiver| {
        // Twice; what an interruption of the sender cut short does not count.
        let runs = [0; 2].map(|_| flood(pair, bytes as usize, most, receiver, buffer));
        runs.into_iter().max_by_key(|held| held.messages).expect("two runs")
    };
    QueueSize {
        bytes,
        receiver_outside_mpi: held(Receiver::Idle),
        receiver_in_mpi: held(Receiver::InMpi),
    }
}

/// Sends until one does not complete, or `most` have; the same result on both ranks.
fn flood(pair: &Pair, bytes: usize, most: u64, receiver: Receiver, buffer: &mut Vec<u8>) -> Held {
    let mut hold_ms = HOLD_MS.0;
    loop {
        pair.meet();
        buffer.resize(buffer.len().max(bytes), 0);
        let (held, in_time) = match pair.world.rank == pair.first {
            true => send_flood(pair, bytes, most, receiver, hold_ms, buffer),
            false => take_flood(pair, bytes, receiver, hold_ms, buffer),
        };
        if in_time || hold_ms >= HOLD_MS.1 {
            return held;
        }
        hold_ms *= 4;
    }
}

fn send_flood(
    pair: &Pair,
    bytes: usize,
    most: u64,
    receiver: Receiver,
    hold_ms: u64,
    buffer: &[u8],
) -> (Held, bool) {
    let world = pair.world;
    let grace_ticks = (GRACE_S / world.seconds_per_tick()) as u64;
    let begin = world.ticks();
    let mut messages = 0;
    let mut waiting = None;
    while messages < most && waiting.is_none() {
        // SAFETY: ours: nobody changes or frees the buffer before the request is complete: either
        // right here, or by the wait at the end of this function.
        let mut request = unsafe { world.start_send(buffer.as_ptr(), bytes, pair.second, FLOOD) };
        match completes_in(world, &mut request, grace_ticks) {
            true => messages += 1,
            false => waiting = Some(request),
        }
    }
    let elapsed_s = world.ticks().wrapping_sub(begin) as f64 * world.seconds_per_tick();
    let in_time = receiver == Receiver::InMpi || elapsed_s < hold_ms as f64 * 1e-3;
    let at_least = waiting.is_none() || !in_time;
    let sent = messages + u64::from(waiting.is_some());
    let note = [sent, messages, u64::from(at_least), u64::from(in_time)];
    world.send(bytes_of(&note), pair.second, END);
    if let Some(request) = waiting {
        request.wait();
    }
    (Held { messages, bytes: messages * bytes as u64, at_least }, in_time)
}

fn take_flood(
    pair: &Pair,
    bytes: usize,
    receiver: Receiver,
    hold_ms: u64,
    buffer: &mut [u8],
) -> (Held, bool) {
    let world = pair.world;
    match receiver {
        Receiver::Idle => std::thread::sleep(Duration::from_millis(hold_ms)),
        Receiver::InMpi => {
            while !world.has_come(pair.first, END) {
                world.poke();
            }
        }
    }
    let mut note = [0_u64; 4];
    world.receive(bytes_of_mut(&mut note), pair.first, END);
    let [sent, messages, at_least, in_time] = note;
    for _ in 0..sent {
        world.receive(&mut buffer[..bytes], pair.first, FLOOD);
    }
    (Held { messages, bytes: messages * bytes as u64, at_least: at_least != 0 }, in_time != 0)
}

fn completes_in(world: &World, request: &mut Request, ticks: u64) -> bool {
    let begin = world.ticks();
    loop {
        if request.is_complete() {
            return true;
        }
        if world.ticks().wrapping_sub(begin) > ticks {
            return false;
        }
    }
}
