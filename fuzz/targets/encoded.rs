//! Encoded chunks of any content with correct checksums, alone and in a file; and any slots, which
//! must survive encoding and decoding.
#![no_main]

use std::cell::RefCell;

use images::{Pieces, chunk_header, push_chunk, read_all, sound_area};
use libfuzzer_sys::fuzz_target;
use trace_format::encoded::{Decoder, Encoder, Words};
use trace_format::encoding::checksum;
use trace_format::layout::{CHUNK_ENCODED, ChunkHeader, SLOT_BYTES};
use trace_format::plain::read_plain;

/// Maximum number of slots from a stream.
const MAX_SLOTS: usize = 20_000;

thread_local! {
    static CODEC: RefCell<(Box<Encoder>, Box<Decoder>)> = RefCell::default();
}

fuzz_target!(|data: &[u8]| {
    let mut pieces = Pieces(data);
    let (kind, opened) = (pieces.byte() % 4, u64::from(pieces.byte()));
    let rest = pieces.0;
    match kind {
        0 => in_a_file(rest, opened),
        1 => round(rest, opened),
        _ => CODEC.with_borrow_mut(|(_, decoder)| {
            let mut slots = Vec::new();
            let _ = decoder.decode(opened, rest, MAX_SLOTS, &mut slots);
            assert!(slots.len() <= MAX_SLOTS, "more slots than are allowed");
        }),
    }
});

fn in_a_file(body: &[u8], opened_ticks: u64) {
    let mut image = sound_area(1, 0, 1);
    let header = chunk_header(CHUNK_ENCODED, 0, 0, body.len());
    let (body_bytes, body_crc) = (body.len() as u32, checksum(body));
    push_chunk(&mut image, ChunkHeader { opened_ticks, body_bytes, body_crc, ..header }, body);
    read_all(&image);
}

fn round(bytes: &[u8], opened: u64) {
    let slots: Vec<Words> = bytes.chunks_exact(SLOT_BYTES).filter_map(read_plain).collect();
    let mut out = vec![0; size_of_val(&slots[..]) + 64];
    CODEC.with_borrow_mut(|(encoder, decoder)| {
        let Some(used) = encoder.encode(opened, &slots, &mut out) else { return };
        let mut back = Vec::new();
        let outcome = decoder.decode(opened, &out[..used], slots.len(), &mut back);
        assert_eq!((outcome, &back), (Ok(()), &slots), "decoding restores the slots");
    });
}
