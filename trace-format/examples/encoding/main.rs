//! Measures the size of encoded windows and the speed of encoding and decoding.
//!
//! ```text
//! cargo run --release -p gammachi-trace-format --features reader --example encoding -- [RANK-FILE...] [NAME...]
//! ```
//!
//! Uses generated streams (those whose names contain one of NAME, if any) and rank files. Slots of
//! version 1 get a call site: their own if they have one, otherwise one made from function, peer
//! and bytes. Every window is decoded again and compared. For comparison, the same windows are
//! compressed with zstd -1.

mod made;

use std::hint::black_box;
use std::io;
use std::path::Path;
use std::time::Instant;

use trace_format::encoded::{Decoder, Encoder, Words};
use trace_format::layout::*;

/// Slots of a window of 256 KiB.
const WINDOW_SLOTS: usize = (256 * 1024 - CHUNK_HEADER_BYTES) / size_of::<Words>();
/// Measurements of each stream.
const ROUNDS: usize = 101;

fn main() -> io::Result<()> {
    println!(
        "{:28} {:>7} {:>9} {:>10} {:>16} {:>16} {:>7} {:>11}",
        "stream",
        "slots/",
        "bytes a",
        "bytes a",
        "encode, ns/call",
        "decode, ns/slot",
        "zstd -1",
        "zstd ns"
    );
    println!(
        "{:28} {:>7} {:>9} {:>10} {:>16} {:>16} {:>7} {:>11}",
        "", "call", "call", "slot", "min (median)", "min (median)", "b/call", "call"
    );
    let arguments = std::env::args().skip(1);
    let (paths, parts): (Vec<_>, Vec<_>) = arguments.partition(|text| Path::new(text).exists());
    let mut streams = made::streams();
    streams.retain(|(name, _)| parts.is_empty() || parts.iter().any(|part| name.contains(part)));
    for path in paths {
        let slots = slots_of(&std::fs::read(&path)?);
        streams.push((path, slots));
    }
    for (name, slots) in streams {
        measure(&name, &slots)?;
    }
    Ok(())
}

fn is_call(slot: &Words) -> bool {
    (slot[1] >> 32) as u16 != CONTINUATION
}

/// Splits slots into windows of whole calls.
fn windows(slots: &[Words]) -> Vec<&[Words]> {
    let mut windows = Vec::new();
    let mut rest = slots;
    while rest.len() > WINDOW_SLOTS {
        let most = (1..=WINDOW_SLOTS).rev().find(|at| is_call(&rest[*at]));
        let (window, behind) = rest.split_at(most.unwrap_or(WINDOW_SLOTS));
        windows.push(window);
        rest = behind;
    }
    windows.push(rest);
    windows
}

fn measure(name: &str, slots: &[Words]) -> io::Result<()> {
    let windows = windows(slots);
    let calls = slots.iter().filter(|slot| is_call(slot)).count().max(1) as f64;
    let opened = |window: &[Words]| window.first().map_or(0, |slot| slot[0]);
    let mut encoder = Box::new(Encoder::new());
    let mut decoder = Box::new(Decoder::new());
    let mut out = vec![0; size_of::<[Words; WINDOW_SLOTS]>() + 64];
    let mut streams = Vec::new();
    let mut bytes = 0;
    for window in &windows {
        let Some(used) = encoder.encode(opened(window), window, &mut out) else {
            bytes += size_of_val(*window);
            continue;
        };
        bytes += used;
        streams.push((opened(window), out[..used].to_vec(), *window));
    }
    let mut decoded = Vec::new();
    let decoded_slots: usize = streams.iter().map(|(.., window)| window.len()).sum();
    let decoded_slots = decoded_slots.max(1) as f64;
    for (opened, stream, window) in &streams {
        decoded.clear();
        let result = decoder.decode(*opened, stream, window.len(), &mut decoded);
        assert!(result.is_ok() && decoded == *window, "{name}: {result:?}");
    }
    let encode_ns = times(|| {
        for window in &windows {
            black_box(encoder.encode(opened(window), window, &mut out));
        }
    });
    let decode_ns = times(|| {
        for (opened, stream, window) in &streams {
            decoded.clear();
            let _ = decoder.decode(*opened, stream, window.len(), &mut decoded);
            black_box(&decoded);
        }
    });
    let raw: Vec<Vec<u8>> = windows
        .iter()
        .map(|window| window.iter().flatten().flat_map(|word| word.to_le_bytes()).collect())
        .collect();
    let mut compressor = zstd::bulk::Compressor::new(1)?;
    let mut packed = 0;
    let began = Instant::now();
    for window in &raw {
        packed += compressor.compress(window)?.len();
    }
    let zstd_ns = began.elapsed().as_nanos() as f64;
    let given_up = windows.len() - streams.len();
    let rejected = if given_up == 0 {
        String::new()
    } else {
        format!("  ({given_up} of {} windows not worth encoding)", windows.len())
    };
    println!(
        "{:28} {:7.2} {:9.2} {:10.2} {:>16} {:>16} {:7.2} {:11.1}{rejected}",
        name.chars().rev().take(28).collect::<Vec<_>>().into_iter().rev().collect::<String>(),
        slots.len() as f64 / calls,
        bytes as f64 / calls,
        bytes as f64 / slots.len() as f64,
        format!("{:.1} ({:.1})", encode_ns.0 / calls, encode_ns.1 / calls),
        format!("{:.2} ({:.2})", decode_ns.0 / decoded_slots, decode_ns.1 / decoded_slots),
        packed as f64 / calls,
        zstd_ns / calls,
    );
    Ok(())
}

/// Shortest and median duration of some work in nanoseconds.
fn times(mut work: impl FnMut()) -> (f64, f64) {
    let mut times = [0; ROUNDS];
    for time in &mut times {
        let began = Instant::now();
        work();
        *time = began.elapsed().as_nanos() as u64;
    }
    times.sort_unstable();
    (times[0] as f64, times[ROUNDS / 2] as f64)
}

/// The event slots of a rank file of version 1.
fn slots_of(file: &[u8]) -> Vec<Words> {
    let mut slots = Vec::new();
    let mut at = HEADER_BYTES as usize;
    while let Some(header) = file.get(at..).and_then(read_plain::<ChunkHeader>) {
        let length = header.length as usize;
        if header.magic != CHUNK_MAGIC || length == 0 {
            at += CHUNK_GRANULE as usize;
            continue;
        }
        let end = (at + length).min(file.len());
        if header.kind == CHUNK_EVENTS && header.thread == 0 {
            let found = file[at + CHUNK_HEADER_BYTES..end].chunks_exact(SLOT_BYTES);
            let used = found.map_while(read_plain::<Slot>).take_while(|slot| slot.word != 0);
            used.for_each(|slot| add(&mut slots, &slot));
        }
        at += length;
    }
    slots
}

fn add(slots: &mut Vec<Words>, slot: &Slot) {
    let is_continuation = slot.function_and_flags() == CONTINUATION;
    if is_continuation && slot.duration() == CONTINUES_SITE {
        if let Some(event) = slots.iter_mut().rev().find(|slot| is_call(slot)) {
            event[4] = slot.begin;
        }
        return;
    }
    let object = u64::from(slot.peer as u32) | u64::from(slot.tag as u32) << 32;
    let amount = u64::from(slot.bytes) | u64::from(slot.request) << 32;
    let kind = u64::from(slot.function()) << 40 ^ object << 8 ^ u64::from(slot.bytes);
    let made_up = 0x40_0000 + 0x9c * (kind.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57);
    let site = if is_continuation { 0 } else { made_up };
    slots.push([slot.begin, slot.word, object, amount, site]);
}
