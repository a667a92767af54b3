//! Puts the chunks of a file in order: those of each thread, and the missing ones between them.
//!
//! A window's events may also be in a second chunk of the same sequence, to which they were copied,
//! or in the thread's totals. A chunk found in none of these is missing, and later ones are not
//! presented as if they followed directly.

use super::area::{Area, Form};
use super::{Diagnosis, Thread, Totals};
use crate::layout::{CHUNK_HEADER_BYTES, CHUNK_IS_WINDOW, ChunkHeader, SLOT_BYTES};

/// The chunks found by walking over a file.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Chunks of events.
    pub events: Vec<EventChunk>,
    /// Totals chunks.
    pub totals: Vec<(ChunkHeader, Totals)>,
}

/// A chunk of events.
#[derive(Debug)]
pub(super) struct EventChunk {
    pub header: ChunkHeader,
    /// Its offset, and the offset behind it.
    pub at: usize,
    pub end: usize,
    /// Number of slots of an encoded chunk, according to its stream.
    pub encoded: Option<usize>,
}

impl EventChunk {
    pub fn is_window(&self) -> bool {
        self.header.flags & CHUNK_IS_WINDOW != 0
    }

    /// Its slots. They get offsets from `behind` on, unless they are plain slots in the file.
    fn area(&self, behind: usize) -> Area {
        let (at, opened) = (self.at + CHUNK_HEADER_BYTES, self.header.opened_ticks);
        let slots = self.end.saturating_sub(at) / SLOT_BYTES;
        let (form, first, slots, stored_bytes) = match self.encoded {
            Some(encoded) => {
                let form = Form::Encoded { crc: self.header.body_crc };
                (form, behind, encoded, self.header.body_bytes as usize)
            }
            None => (Form::Plain, at, slots, slots * SLOT_BYTES),
        };
        Area { first, bytes: slots * SLOT_BYTES, opened, at, stored_bytes, form }
    }
}

/// The threads in order of their number, and whether a running process overtook the reader.
/// `behind` is an offset behind the end of the file.
pub(super) fn threads(
    mut found: Found,
    mut behind: usize,
    diagnoses: &mut Vec<Diagnosis>,
) -> (Vec<Thread>, bool) {
    let order = |of: &EventChunk| (of.header.thread, of.header.sequence, of.is_window());
    found.events.sort_by_key(order);
    let mut threads: Vec<Thread> = Vec::new();
    let mut outrun = false;
    for (header, totals) in found.totals {
        if threads.iter().any(|thread| thread.number == header.thread) {
            let what = format!("thread {} has two totals; the second are skipped", header.thread);
            diagnoses.push(Diagnosis { offset: 0, what });
            continue;
        }
        threads.push(Thread { totals: Some(totals), ..Thread::new(&header) });
    }
    threads.sort_by_key(|thread| thread.number);
    for of in found.events {
        let (chunk, at) = (&of.header, of.at);
        let index = threads.partition_point(|thread| thread.number < chunk.thread);
        if threads.get(index).is_none_or(|thread| thread.number != chunk.thread) {
            threads.insert(index, Thread::new(chunk));
        }
        let thread = &mut threads[index];
        if chunk.sequence < thread.next_sequence {
            // The window was copied to this chunk, or has been folded already.
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
            outrun |= of.is_window();
            let (found, wanted) = (chunk.sequence, thread.next_sequence);
            diagnoses.push(Diagnosis {
                offset: at as u64,
                what: format!(
                    "chunk {wanted} of thread {} is missing before chunk {found}; the \
                     thread's later events are left out",
                    chunk.thread
                ),
            });
            continue;
        }
        let area = of.area(behind);
        if area.form != Form::Plain {
            behind += area.bytes;
        }
        thread.minor_faults = thread.minor_faults.saturating_add(chunk.previous_minor_faults);
        thread.next_sequence = chunk.sequence.saturating_add(1);
        thread.chunks.push(area);
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
