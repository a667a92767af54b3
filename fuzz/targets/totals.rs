//! A run of two ranks with any contents of totals chunks, with correct checksums, and event chunks,
//! including windows, at any position in their order: through all stages.
#![no_main]

use images::stages::run_of_data;
use images::{Pieces, chunk_header, push_chunk};
use libfuzzer_sys::fuzz_target;
use trace_format::encoding::checksum;
use trace_format::layout::{
    CHUNK_EVENTS, CHUNK_HEADER_BYTES, CHUNK_IS_WINDOW, CHUNK_TOTALS, CHUNK_UNFINISHED,
};
use trace_format::totals::{
    SELECTOR_AT, SNAPSHOT_CRC_BYTES, SnapshotHeader, TOTALS_CHUNK_BYTES, TotalsEntry, snapshot_at,
};

/// The data behind the header of a totals chunk: one snapshot with a correct checksum.
fn totals(pieces: &mut Pieces) -> Vec<u8> {
    let mut content = vec![0; TOTALS_CHUNK_BYTES - CHUNK_HEADER_BYTES];
    let selector = u64::from(pieces.byte());
    let entries = usize::from(pieces.byte() & 7);
    content[SELECTOR_AT - CHUNK_HEADER_BYTES..][..8].copy_from_slice(&selector.to_le_bytes());
    let bytes = size_of::<SnapshotHeader>() + entries * size_of::<TotalsEntry>();
    let given = pieces.counted();
    let snapshot =
        &mut content[snapshot_at((selector & 1) as usize) - CHUNK_HEADER_BYTES..][..bytes];
    let used = given.len().min(bytes);
    snapshot[..used].copy_from_slice(&given[..used]);
    snapshot[4..8].copy_from_slice(&(entries as u32).to_le_bytes());
    let crc = checksum(&snapshot[SNAPSHOT_CRC_BYTES..]);
    snapshot[..4].copy_from_slice(&crc.to_le_bytes());
    content
}

fuzz_target!(|data: &[u8]| {
    run_of_data(data, |image, pieces| {
        let content = totals(pieces);
        push_chunk(image, chunk_header(CHUNK_TOTALS, 0, 0, content.len()), &content);
        for _ in 0..3 {
            let (sequence, what) = (pieces.byte(), pieces.byte());
            let slots = pieces.counted();
            let kind = if what & 2 == 0 { CHUNK_EVENTS } else { CHUNK_UNFINISHED };
            let mut header =
                chunk_header(kind, u32::from(what >> 7), u32::from(sequence), slots.len());
            header.flags = if what & 1 == 0 { 0 } else { CHUNK_IS_WINDOW };
            header.opened_ticks = u64::from(sequence) << (what >> 2 & 15);
            push_chunk(image, header, slots);
        }
    });
});
