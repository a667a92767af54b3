//! A run of two ranks with any definitions and events, through all stages: open, timeline, metrics,
//! report as text and JSON.
#![no_main]

use images::stages::{RANKS, through_all_stages};
use images::{Pieces, chunk_header, framed, push_chunk, sound_area};
use libfuzzer_sys::fuzz_target;
use trace_format::layout::{CHUNK_DEFINITIONS, CHUNK_EVENTS};

fuzz_target!(|data: &[u8]| {
    let mut pieces = Pieces(data);
    let (level, chosen) = (pieces.byte() & 1, pieces.byte());
    let images = [0, 1].map(|rank| {
        let mut image = sound_area(level, rank, RANKS);
        let content = framed(&mut Pieces(pieces.counted()));
        push_chunk(&mut image, chunk_header(CHUNK_DEFINITIONS, 0, 0, content.len()), &content);
        for thread in 0..2 {
            let slots = pieces.counted();
            if thread == 0 || !slots.is_empty() {
                push_chunk(&mut image, chunk_header(CHUNK_EVENTS, thread, 0, slots.len()), slots);
            }
        }
        image
    });
    through_all_stages(&images, chosen);
});
