//! The chunks of a file put in order: what each thread has, and what is missing between.
//!
//! A window's events may stand in a second chunk of the same sequence, to which they were copied, or
//! in the thread's totals. A chunk that is in neither place is missing, and what follows it is not
//! shown as if it followed.

use super::{Diagnosis, Thread, Totals};
use crate::layout::{CHUNK_HEADER_BYTES, CHUNK_IS_WINDOW, ChunkHeader, SLOT_BYTES};

/// What the walk over a file found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Event chunks: header, offset of the chunk, offset behind it.
    pub events: Vec<(ChunkHeader, usize, usize)>,
    /// Totals chunks.
    pub totals: Vec<(ChunkHeader, Totals)>,
}

/// The threads, in order of their number, and whether a running process was faster than the reader.
pub(super) fn threads(mut found: Found, diagnoses: &mut Vec<Diagnosis>) -> (Vec<Thread>, bool) {
    let is_window = |chunk: &ChunkHeader| chunk.flags & CHUNK_IS_WINDOW != 0;
    found.events.sort_by_key(|(chunk, ..)| (chunk.thread, chunk.sequence, is_window(chunk)));
    let mut threads: Vec<Thread> = Vec::new();
    let mut outrun = false;
    for (header, totals) in found.totals {
        if threads.iter().any(|thread| thread.number == header.thread) {
            let what = format!("thread {} has totals twice; these are left out", header.thread);
            diagnoses.push(Diagnosis { offset: 0, what });
            continue;
        }
        threads.push(Thread { totals: Some(totals), ..Thread::new(&header) });
    }
    threads.sort_by_key(|thread| thread.number);
    for (chunk, at, end) in found.events {
        let place = threads.partition_point(|thread| thread.number < chunk.thread);
        if threads.get(place).is_none_or(|thread| thread.number != chunk.thread) {
            threads.insert(place, Thread::new(&chunk));
        }
        let thread = &mut threads[place];
        if chunk.sequence < thread.next_sequence {
            // The window that this chunk is a copy of, or one that is folded already.
            continue;
        }
        if let Some(Totals { header, .. }) = &thread.totals
            && thread.next_sequence == header.first_sequence
        {
            thread.next_sequence = header.next_sequence;
            thread.totals_at = thread.chunks.len();
            if chunk.sequence < thread.next_sequence {
                continue;
            }
        }
        if chunk.sequence != thread.next_sequence {
            outrun |= is_window(&chunk);
            let (found, wanted) = (chunk.sequence, thread.next_sequence);
            diagnoses.push(Diagnosis {
                offset: at as u64,
                what: format!(
                    "chunk {found} of thread {} follows chunk {wanted} that is missing; the \
                     thread's later events are left out",
                    chunk.thread
                ),
            });
            continue;
        }
        let first = at + CHUNK_HEADER_BYTES;
        let bytes = end.saturating_sub(first) / SLOT_BYTES * SLOT_BYTES;
        thread.minor_faults = thread.minor_faults.saturating_add(chunk.previous_minor_faults);
        thread.next_sequence = chunk.sequence.saturating_add(1);
        thread.chunks.push((first, bytes, chunk.opened_ticks));
    }
    for thread in &mut threads {
        if let Some(Totals { header, .. }) = &thread.totals
            && thread.next_sequence == header.first_sequence
        {
            thread.totals_at = thread.chunks.len();
        }
    }
    (threads, outrun)
}
