//! Queues between two ranks: how many sends complete on the sender's side alone, with no receive
//! posted (SQ, TQ and RQ of LogPQ, Touyama and Horiguchi).
//!
//! While the receiver is outside MPI, messages can be held in the sender's library, in the network
//! or shared memory, and in buffers that the network fills without the receiver: SQ + TQ, which
//! cannot be distinguished from outside the library. While the receiver is inside MPI but has
//! posted no receive, its library accepts them as unexpected messages: RQ is added. A send that
//! completes in neither case waits for its receive: the library has switched to a rendezvous.

use std::time::Duration;

use serde::Serialize;

use crate::network::pair::Pair;
use crate::world::{Request, World, bytes_of, bytes_of_mut};

const FLOOD: i32 = 21;
const END: i32 = 22;
/// A send that has not completed after this time waits for its receiver.
const GRACE_S: f64 = 0.02;
/// Maximum number of messages in a flood.
const MAX_MESSAGES: u64 = 4096;
/// Maximum size of a flood in bytes.
const MAX_BYTES: u64 = 64 << 20;
/// How long the receiver stays outside MPI, initially and at most.
const HOLD_MS: (u64, u64) = (60, 1000);

/// What the receiver does while messages arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receiver {
    /// Sleeps outside MPI.
    Idle,
    /// Calls MPI all the time, and posts no receive.
    InMpi,
}

/// Number of sends that completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Sends that completed.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether the experiment ended before the queue was full: it holds at least this much.
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
    /// Largest message that completes at its sender without a receive posted; 0 if not even one
    /// byte does.
    pub bytes: u64,
    /// Whether no larger message was tried: there may be no switch at all.
    pub at_least: bool,
}

/// Searches for the eager limit up to `most` bytes. The result is the same on both ranks.
pub fn eager_limit(pair: &Pair, most: usize, buffer: &mut Vec<u8>) -> EagerLimit {
    // A receiver that was kept from its processor may miss the grace time, so a negative result
    // needs three attempts.
    let mut completes = |bytes: u64| {
        (0..3).any(|_| flood(pair, bytes as usize, 1, Receiver::InMpi, buffer).messages == 1)
    };
    // Doubling, then bisection between the last size that completes and the first that does not.
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
    let most = MAX_MESSAGES.min(MAX_BYTES / bytes.max(1)).max(1);
    let mut held = |receiver| {
        // Twice, because an interruption of the sender may cut one short.
        let runs = [0; 2].map(|_| flood(pair, bytes as usize, most, receiver, buffer));
        runs.into_iter().max_by_key(|held| held.messages).expect("there are two runs")
    };
    QueueSize {
        bytes,
        receiver_outside_mpi: held(Receiver::Idle),
        receiver_in_mpi: held(Receiver::InMpi),
    }
}

/// Sends until a send does not complete, or `most` have. The result is the same on both ranks.
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
        // SAFETY: guaranteed here: nobody changes or frees the buffer before the request is
        // complete, either right here or by the wait at the end of this function.
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
