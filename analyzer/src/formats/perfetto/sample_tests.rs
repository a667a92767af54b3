//! Reads samples back from a trace for Perfetto.

use std::collections::HashMap;

use crate::export::content::Export;
use crate::export::samples::test_run::exported;

use super::encoded::{INTERNED_DATA, PERF_SAMPLE, TIMESTAMP, TRACK_EVENT};
use super::samples::{CALLSTACKS, FRAMES, FUNCTION_NAMES, SEQUENCE};
use super::write::write;

/// The fields of a message: numbers, and the bytes of the others.
pub(super) fn fields(mut message: &[u8]) -> Vec<(u32, u64, &[u8])> {
    fn varint(message: &mut &[u8]) -> u64 {
        let mut value = 0;
        for (at, byte) in message.iter().enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                *message = &message[at + 1..];
                break;
            }
        }
        value
    }
    let mut all = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let (number, inner) = match key & 7 {
            0 => (varint(&mut message), &[][..]),
            wire => {
                let length = if wire == 1 { 8 } else { varint(&mut message) as usize };
                let (inner, rest) = message.split_at(length);
                message = rest;
                (0, inner)
            }
        };
        all.push(((key >> 3) as u32, number, inner));
    }
    all
}

pub(super) fn number(of: &[(u32, u64, &[u8])], field: u32) -> Option<u64> {
    of.iter().find(|(number, ..)| *number == field).map(|(_, value, _)| *value)
}

#[test]
fn samples_have_threads_times_and_stacks() {
    let trace = exported(|content, path, progress| {
        let scratch = path.parent().expect("a folder");
        write(Export { content, scratch, progress }, path)
    });
    let mut names: HashMap<u64, String> = HashMap::new();
    let (mut frames, mut stacks) = (HashMap::new(), HashMap::new());
    let mut samples: Vec<(u64, u64, u64, u64)> = Vec::new();
    let mut slices = Vec::new();
    let trace = fields(&trace);
    for (_, _, packet) in &trace {
        let packet = fields(packet);
        if number(&packet, 10) != Some(SEQUENCE) {
            continue;
        }
        let of = |field: u32| packet.iter().filter(move |(number, ..)| *number == field);
        for (kind, _, entry) in of(INTERNED_DATA).flat_map(|(.., data)| fields(data)) {
            let entry = fields(entry);
            let iid = number(&entry, 1).expect("a number");
            match kind {
                FUNCTION_NAMES => {
                    let name = String::from_utf8_lossy(entry[1].2).into_owned();
                    drop(names.insert(iid, name));
                }
                FRAMES => drop(frames.insert(iid, number(&entry, 2).expect("a name"))),
                CALLSTACKS => {
                    let of = entry.iter().filter(|(field, ..)| *field == 2);
                    drop(stacks.insert(iid, of.map(|(_, frame, _)| *frame).collect::<Vec<_>>()));
                }
                _ => {}
            }
        }
        let at = number(&packet, TIMESTAMP).unwrap_or(0);
        for (.., sample) in of(PERF_SAMPLE) {
            let sample = fields(sample);
            let value = |field| number(&sample, field).expect("a number");
            samples.push((value(2), value(3), at, value(4)));
        }
        for (.., event) in of(TRACK_EVENT) {
            let event = fields(event);
            let name = event.iter().find(|(field, ..)| *field == 23).expect("a name").2;
            slices.push((String::from_utf8_lossy(name).into_owned(), at));
        }
    }
    let count = |pid: u64| samples.iter().filter(|(of, tid, ..)| *of == pid && *tid == pid).count();
    assert_eq!((count(1), count(2)), (198, 396));
    assert!(samples.chunk_by(|a, b| a.0 == b.0).all(|of| of.is_sorted_by_key(|(.., at, _)| *at)));
    for (.., stack) in &samples {
        let of = stacks[stack].iter().map(|frame| names[&frames[frame]].as_str());
        assert_eq!(of.collect::<Vec<_>>(), ["[code]", "[code]"]);
    }
    let kernel: Vec<_> = slices.iter().filter(|(name, _)| name.contains("kernel")).collect();
    assert_eq!(kernel.len(), 4);
    assert_eq!(kernel[1].1 - kernel[0].1, 500_000_000);
}
