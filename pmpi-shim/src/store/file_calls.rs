//! Merges calls on files into records.
//!
//! A record is an event without length and one continuation. Further calls of its kind at its place on its file only
//! add to it, as long as the thread has no other event in between, except for up to [`MAX_KINDS`] such records that a
//! loop makes in turn. So a call costs the same whether a file is written in one piece or in a million, and what a
//! killed rank had written is in its window.

use std::ptr::null_mut;

use trace_format::file_calls::{FileCallKind, FileCalls};
use trace_format::layout::TOOL;
use trace_format::layout::{Continuation, Slot, slot_word};

use crate::host::counter;
use crate::host::own_work::OwnWork;
use crate::state;
use crate::state::thread_block::ThreadBlock;
use crate::store::due;
use crate::store::file_sums;
use crate::store::outermost::{enter, is_inside, leave};
use crate::store::slots::{publish, put};
use crate::store::window::{file_calls_for_later, make_room, take_slot};

/// Maximum number of records that grow side by side.
const MAX_KINDS: usize = 8;
/// Slots of a record.
const RECORD_SLOTS: usize = 2;

/// A call on a file that has just returned.
#[derive(Debug, Clone, Copy)]
pub struct FileCall {
    pub file: u32,
    /// Kind and flags.
    pub field: u16,
    pub bytes: u64,
    pub begin: u64,
    pub end: u64,
    /// Return address.
    pub site: usize,
}

/// Records a call that was entered at `here`.
///
/// # Safety
/// As for [`enter`].
#[inline(always)]
pub unsafe fn record(block: &ThreadBlock, here: usize, call: FileCall) {
    if block.window.get().is_null() {
        return file_sums::add(call.file, call.field, call.alone());
    }
    if is_inside(block, here) {
        return keep_for_later(block, call);
    }
    // SAFETY: the caller vouches for `here`. Inside an open call no handler writes slots; they are the thread's own.
    unsafe {
        enter(block, here);
        if !grow(block, call) {
            begin(block, call);
        }
    }
    leave(block);
}

/// Adds a call to its record, if that may still grow.
///
/// # Safety
/// The thread is inside an open call.
#[inline(always)]
unsafe fn grow(block: &ThreadBlock, call: FileCall) -> bool {
    let (first, behind) = block.file_calls.get();
    if first.is_null() || behind != block.cursor.get() {
        return false;
    }
    let word = slot_word(0, TOOL, call.field);
    let mut record = behind;
    // SAFETY: the records from `first` on are the thread's own.
    unsafe {
        while record > first {
            record = record.sub(RECORD_SLOTS);
            if (*record).word != word
                || (*record).detail != call.file as i32
                || (*record).site != call.site as u64
            {
                continue;
            }
            let more = record.add(1);
            // As [`Continuation::FileCalls`] lies in a slot, whose word stays.
            let [calls, inside] = (*more).payload();
            (*more).begin += call.bytes;
            (*more).set_payload([calls + 1, inside + call.ticks()]);
            (*more).site = call.end.wrapping_sub((*record).begin);
            return true;
        }
    }
    false
}

/// Begins a record with a call.
///
/// # Safety
/// As for [`grow`].
#[cold]
#[inline(never)]
unsafe fn begin(block: &ThreadBlock, call: FileCall) {
    if !state::is_recording() || block.paused_at.get() != 0 {
        return;
    }
    let (window, before) = (block.window.get(), block.cursor.get());
    write_later(block);
    make_room(block, RECORD_SLOTS);
    if !state::is_recording() {
        return;
    }
    // Nothing in a window begins before the window was opened, or before the event in front of it.
    let is_next = block.window.get() == window && block.cursor.get() == before;
    let at = if is_next { call.begin } else { counter::read(block) };
    write(block, at, call.file, call.field, call.site, call.alone());
}

/// Writes a record that may grow.
fn write(block: &ThreadBlock, at: u64, file: u32, field: u16, site: usize, calls: FileCalls) {
    let slot = Slot { begin: at, site: site as u64, ..Slot::of_file_calls(field, file) };
    // SAFETY: both slots were taken, and so are the thread's own; the continuation is there before the event is
    // published.
    unsafe {
        let (first, behind) = block.file_calls.get();
        let event = take_slot(block);
        put(take_slot(block), Continuation::FileCalls(calls));
        event.write(Slot { word: 0, ..slot });
        publish(event, slot.word);
        let first = if behind == event && !first.is_null() { first } else { event };
        let full = event.offset_from_unsigned(first) >= (MAX_KINDS - 1) * RECORD_SLOTS;
        block.file_calls.set((if full { event } else { first }, block.cursor.get()));
    }
}

/// Adds a call inside a call of MPI, whose slot is open, to what is written when that has ended. So does a signal
/// handler that interrupts the recorder.
#[cold]
#[inline(never)]
fn keep_for_later(block: &ThreadBlock, call: FileCall) {
    if !state::is_recording() || block.paused_at.get() != 0 {
        return;
    }
    let field = call.field | FileCallKind::INSIDE_MPI;
    match file_calls_for_later(block) {
        Some(later) => {
            later.add(call.file, field, call.alone());
            due::at_next_call();
        }
        None => file_sums::add(call.file, field, call.alone()),
    }
}

/// Writes what the thread did inside calls of MPI.
/// The event of the thread's last call is complete, or it has room of its own.
pub fn write_later(block: &ThreadBlock) {
    let Some(later) = file_calls_for_later(block) else { return };
    if later.is_empty() || !state::is_recording() || block.paused_at.get() != 0 {
        return;
    }
    let _own = OwnWork::begin();
    later.take(|file, field, calls| {
        make_room(block, RECORD_SLOTS);
        if !state::is_recording() {
            return;
        }
        write(block, counter::read(block), file, field, 0, calls);
        // It is complete.
        block.file_calls.set((null_mut(), null_mut()));
    });
}

impl FileCall {
    #[inline(always)]
    fn ticks(&self) -> u64 {
        self.end.wrapping_sub(self.begin)
    }

    /// As the first call of a record.
    fn alone(&self) -> FileCalls {
        let ticks = self.ticks();
        FileCalls { calls: 1, bytes: self.bytes, inside: ticks, span: ticks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: u16 = FileCallKind::Write as u16;
    const READ: u16 = FileCallKind::Read as u16;

    /// Records calls (file, kind, begin), each of 5 ticks and 100 bytes, and returns the records' files, kinds, begins,
    /// calls, bytes, ticks inside and spans.
    fn records(of: &[(u32, u16, u64)]) -> Vec<(u32, u16, u64, FileCalls)> {
        let mut slots = [Slot::default(); 64];
        // SAFETY: a thread's block is all zero when the thread starts.
        let block: Box<ThreadBlock> = unsafe { Box::new(std::mem::zeroed()) };
        block.cursor.set(slots.as_mut_ptr());
        // SAFETY: behind the last slot.
        block.end.set(unsafe { slots.as_mut_ptr().add(64) });
        for &(file, field, begin) in of {
            let call = FileCall { file, field, bytes: 100, begin, end: begin + 5, site: 77 };
            // SAFETY: the slots are the test's own.
            if unsafe { !grow(&block, call) } {
                write(&block, call.begin, file, field, call.site, call.alone());
            }
        }
        // SAFETY: both lie in the array.
        let used = unsafe { block.cursor.get().offset_from_unsigned(slots.as_ptr()) };
        slots[..used]
            .as_chunks()
            .0
            .iter()
            .map(|[event, more]: &[Slot; 2]| {
                let Some(Continuation::FileCalls(calls)) = Continuation::decode(more) else {
                    panic!("{more:?}")
                };
                (event.detail as u32, event.communicator(), event.begin, calls)
            })
            .collect()
    }

    fn sum(calls: u64, span: u64) -> FileCalls {
        FileCalls { calls, bytes: 100 * calls, inside: 5 * calls, span }
    }

    #[test]
    fn calls_on_one_file_are_one_record() {
        let found = records(&[(1, WRITE, 10), (1, WRITE, 20), (1, WRITE, 30)]);
        assert_eq!(found, [(1, WRITE, 10, sum(3, 25))]);
    }

    #[test]
    fn files_and_kinds_in_turn_have_a_record_each() {
        let turn = [(1, WRITE), (2, WRITE), (2, READ)];
        let calls: Vec<_> =
            (0..12).map(|n| (turn[n % 3].0, turn[n % 3].1, 10 * n as u64)).collect();
        let spans = [95, 95, 95];
        let expected: Vec<_> =
            (0..3).map(|n| (turn[n].0, turn[n].1, 10 * n as u64, sum(4, spans[n]))).collect();
        assert_eq!(records(&calls), expected);
    }

    #[test]
    fn many_files_in_turn_begin_records_again() {
        let calls: Vec<_> = (0..20).map(|n| (n % 10 + 1, WRITE, 10 * u64::from(n))).collect();
        let found = records(&calls);
        assert_eq!(found.iter().map(|(.., of)| of.calls).sum::<u64>(), 20);
        assert!(found.len() > 10, "{found:?}");
    }
}
