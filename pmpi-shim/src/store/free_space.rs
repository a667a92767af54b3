//! Space of the file that a thread fills with chunks, again and again.
//!
//! What is free in it is an unfinished chunk, which readers ignore: at any moment, chunks follow each other without gaps.

use std::ops::{Range, RangeInclusive};

use trace_format::layout::*;

use crate::store::chunk_headers::{archived_header, chunk_bytes, empty_chunk, sealed};
use crate::store::trace_file::{TraceFile, lock};

fn mark(
    file: &mut TraceFile,
    space: Range<u64>,
    (thread, thread_os_id): (u32, u32),
) -> Result<(), String> {
    if space.is_empty() {
        return Ok(());
    }
    let length = space.end - space.start;
    let free = ChunkHeader { length, thread_os_id, ..empty_chunk(CHUNK_UNFINISHED, thread, 0) };
    file.write(space.start, bytes_of(&sealed(free)))
}

/// Free space for chunks of a thread, as much of this many bytes as the limit allows; `None` if it does not allow the
/// least.
pub fn take(bytes: RangeInclusive<u64>, thread: (u32, u32)) -> Result<Option<Range<u64>>, String> {
    let mut guard = lock();
    let file = guard.as_mut().ok_or("no trace file")?;
    let left = file.max_bytes.saturating_sub(file.end) / CHUNK_GRANULE * CHUNK_GRANULE;
    if left < *bytes.start() {
        file.full = true;
        return Ok(None);
    }
    let space = file.end..file.end + left.min(bytes.end().next_multiple_of(CHUNK_GRANULE));
    file.grant(space.start, (space.end - space.start) as usize)?;
    mark(file, space.clone(), thread)?;
    file.end = space.end;
    Ok(Some(space))
}

/// Makes space with the chunks in it one free chunk.
pub fn mark_free(space: Range<u64>, thread: (u32, u32)) -> Result<(), String> {
    mark(lock().as_mut().ok_or("no trace file")?, space, thread)
}

/// Writes a chunk at the begin of free space; what is left of it stays free. Returns the chunk's length.
pub fn write(space: Range<u64>, window: &ChunkHeader, body: &[u8]) -> Result<u64, String> {
    let mut guard = lock();
    let file = guard.as_mut().ok_or("no trace file")?;
    let length = chunk_bytes(body);
    // Until the chunk has its own header, that of the free space covers all of it.
    mark(file, space.start + length..space.end, (window.thread, window.thread_os_id))?;
    file.write(space.start + CHUNK_HEADER_BYTES as u64, body)?;
    file.write(space.start, bytes_of(&archived_header(window, length)))?;
    Ok(length)
}
