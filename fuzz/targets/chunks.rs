//! Chunk headers of any content with correct checksums, including overlapping, missing, repeated
//! and truncated chunks.
#![no_main]

use images::{Pieces, chunk_header, push_chunk, read_all, sound_area};
use libfuzzer_sys::fuzz_target;
use trace_format::layout::CHUNK_GRANULE;

fuzz_target!(|data: &[u8]| {
    let mut pieces = Pieces(data);
    let mut image = sound_area(1, 0, 1);
    let cut = usize::from(pieces.byte()) * 16;
    for _ in 0..6 {
        if pieces.is_empty() {
            break;
        }
        let (kind, thread, sequence) = (pieces.byte(), pieces.byte(), pieces.byte());
        let (granules, opened, odd) = (pieces.byte(), pieces.byte(), pieces.byte());
        let content = pieces.counted();
        let mut header = chunk_header(kind.into(), thread.into(), sequence.into(), content.len());
        header.opened_ticks = u64::from(opened);
        match granules {
            0 => {}
            255 => header.length = u64::MAX & !(CHUNK_GRANULE - 1),
            254 => header.length = 0,
            some => header.length = u64::from(some) * CHUNK_GRANULE + u64::from(odd & 7),
        }
        push_chunk(&mut image, header, content);
    }
    image.truncate(image.len().saturating_sub(cut));
    read_all(&image);
});
