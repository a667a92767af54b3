//! Headers of the chunks of a rank's file.

use trace_format::encoding::{FRAME_BYTES, checksum};
use trace_format::layout::*;

/// Completes a header with its magic and checksum.
pub fn sealed(mut header: ChunkHeader) -> ChunkHeader {
    header.magic = CHUNK_MAGIC;
    let (from, to) = CHUNK_CRC_COVERS;
    header.crc = checksum(&bytes_of(&header)[from..to]);
    header
}

/// A header without magic and checksum.
pub fn empty_chunk(kind: u16, thread: u32, sequence: u32) -> ChunkHeader {
    ChunkHeader {
        magic: 0,
        kind,
        flags: 0,
        thread,
        sequence,
        length: 0,
        opened_ticks: 0,
        thread_os_id: 0,
        crc: 0,
        previous_minor_faults: 0,
        body_bytes: 0,
        body_crc: 0,
        clearing: 0,
    }
}

/// The header of an event chunk.
pub fn event_header(
    (thread, thread_os_id): (u32, u32),
    sequence: u32,
    opened_ticks: u64,
    length: usize,
    previous_minor_faults: u64,
) -> ChunkHeader {
    sealed(ChunkHeader {
        flags: CHUNK_IS_WINDOW,
        length: length as u64,
        opened_ticks,
        thread_os_id,
        previous_minor_faults,
        ..empty_chunk(CHUNK_EVENTS, thread, sequence)
    })
}

/// The header of a full window's events, which are kept elsewhere.
pub fn archived_header(window: &ChunkHeader, length: u64) -> ChunkHeader {
    sealed(ChunkHeader { flags: 0, length, ..*window })
}

/// The chunk of an area of samples, whose number is `area`.
pub fn sample_area_header(area: u32, length: usize) -> ChunkHeader {
    sealed(ChunkHeader { length: length as u64, ..empty_chunk(CHUNK_SAMPLE_AREA, area, 0) })
}

/// The chunk of the area for stacks.
pub fn stacks_header(length: usize) -> ChunkHeader {
    sealed(ChunkHeader { length: length as u64, ..empty_chunk(CHUNK_STACKS, 0, 0) })
}

/// Bytes of the file that a chunk takes.
pub fn chunk_bytes(body: &[u8]) -> u64 {
    ((CHUNK_HEADER_BYTES + body.len()) as u64).next_multiple_of(CHUNK_GRANULE)
}

/// What stands before a record: its length and checksum.
pub fn frame_of(payload: &[u8]) -> [u8; FRAME_BYTES] {
    (u64::from(checksum(payload)) << 32 | payload.len() as u64).to_le_bytes()
}
