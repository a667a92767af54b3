//! Event slots and continuations of any content, in two chunks of one thread and one of another.
#![no_main]

use images::{Pieces, chunk_header, push_chunk, read_all, sound_area};
use libfuzzer_sys::fuzz_target;
use trace_format::layout::CHUNK_EVENTS;

fuzz_target!(|data: &[u8]| {
    let mut pieces = Pieces(data);
    let mut image = sound_area(pieces.byte() & 3, 0, 1);
    let cut = usize::from(pieces.byte());
    for (thread, sequence) in [(0, 0), (1, 0), (0, 1)] {
        let slots = if sequence == 1 { pieces.0 } else { pieces.counted() };
        let mut header = chunk_header(CHUNK_EVENTS, thread, sequence, slots.len());
        header.opened_ticks = if sequence == 1 { 1 << 20 } else { 0 };
        push_chunk(&mut image, header, slots);
    }
    image.truncate(image.len() - cut);
    read_all(&image);
});
