//! Merges runs of tests and probes that found nothing into one record each.
//!
//! A run consists of calls of one function on one communicator. Between its polls the thread has no
//! other events, except polls of up to [`MAX_KINDS`] such runs that a loop makes in turn. Their
//! records stand side by side: each is the slot of the first poll and a continuation with number of
//! polls, time inside and span. Further polls only add to it.

use trace_format::layout::{Continuation, DURATION_ESCAPE, Slot, slot_word};

use crate::state::thread_block::ThreadBlock;
use crate::store::slots::{append, publish, put, take_back};

/// Maximum number of runs that grow side by side.
const MAX_KINDS: usize = 16;
/// Slots of a run's record.
const RUN_SLOTS: usize = 2;

/// Adds a poll that found nothing to its run among the last records, or starts a new run with it.
///
/// # Safety
/// `slot` is that of the last event that the thread took, with at least one reserved slot free
/// behind it.
#[inline(never)]
pub unsafe fn merge(
    block: &ThreadBlock,
    slot: *mut Slot,
    begin: u64,
    duration: u64,
    function: u16,
    communicator: u16,
) {
    // SAFETY: the slot, the reserved ones behind it and the records from `first` on are the
    // thread's own.
    unsafe {
        let growing = !block.polls.get().0.is_null() && block.polls.get().1 == slot;
        let first = if growing { block.polls.get().0 } else { slot };
        let mut run = slot;
        while run > first {
            run = run.sub(RUN_SLOTS);
            if (*run).function() != function || (*run).communicator() != communicator {
                continue;
            }
            let more = run.add(1);
            if let Some(Continuation::Polls { count, inside, .. }) = Continuation::decode(&*more) {
                let (count, inside) = (count + 1, inside + duration);
                let span = begin.wrapping_add(duration).wrapping_sub((*run).begin);
                put(more, Continuation::Polls { count, inside, span });
            }
            // The poll's own slot and its continuations become empty again.
            take_back(block, slot);
            return;
        }
        // Only the record's own continuations may follow its slot.
        take_back(block, slot.add(1));
        append(block, Continuation::Polls { count: 1, inside: duration, span: duration });
        publish(slot, slot_word(DURATION_ESCAPE, function, communicator));
        let behind = block.cursor.get();
        let full = slot.offset_from_unsigned(first) >= MAX_KINDS * RUN_SLOTS;
        block.polls.set((if full { slot } else { first }, behind));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes polls of (begin, duration, function) on one communicator one after the other, and
    /// returns the slots then in use.
    fn polls(of: &[(u64, u64, u16)]) -> Vec<Slot> {
        polls_on(of.iter().map(|&(begin, duration, function)| (begin, duration, function, 2)))
    }

    fn polls_on(of: impl IntoIterator<Item = (u64, u64, u16, u16)>) -> Vec<Slot> {
        let mut slots = [Slot::default(); 64];
        // SAFETY: a thread's block is all zero when the thread starts.
        let block: Box<ThreadBlock> = unsafe { Box::new(std::mem::zeroed()) };
        block.level.set(1);
        block.cursor.set(slots.as_mut_ptr());
        for (begin, duration, function, communicator) in of {
            let slot = block.cursor.get();
            // SAFETY: the slots are the test's own.
            unsafe {
                block.cursor.set(slot.add(1));
                (*slot).begin = begin;
                merge(&block, slot, begin, duration, function, communicator);
            }
        }
        // SAFETY: both lie in the array.
        let used = unsafe { block.cursor.get().offset_from_unsigned(slots.as_ptr()) };
        assert!(slots[used..].iter().all(|slot| slot.word == 0), "free slots are empty");
        slots[..used].to_vec()
    }

    #[test]
    fn merges_polls_into_one_record_with_number_time_and_span() {
        let slots = polls(&[(100, 5, 40), (110, 6, 40), (130, 7, 40)]);
        assert_eq!(runs(&slots), [(40, 2, 100, 3, 18, 37)]);
    }

    #[test]
    fn starts_new_run_for_another_function() {
        let slots = polls(&[(100, 5, 40), (110, 5, 41), (120, 1 << 33, 41)]);
        let long = (1 << 33) + 5;
        assert_eq!(runs(&slots), [(40, 2, 100, 1, 5, 5), (41, 2, 110, 2, long, long + 5)]);
    }

    /// Function, communicator, begin, number, ticks inside and span of each run.
    fn runs(slots: &[Slot]) -> Vec<(u16, u16, u64, u64, u64, u64)> {
        let run = |[run, more]: &[Slot; 2]| {
            let Some(Continuation::Polls { count, inside, span }) = Continuation::decode(more)
            else {
                panic!("{more:?}")
            };
            (run.function(), run.communicator(), run.begin, count, inside, span)
        };
        slots.as_chunks().0.iter().map(run).collect()
    }

    #[test]
    fn grows_runs_of_alternating_polls_side_by_side() {
        let in_turn =
            (0..30).map(|step| (100 + 10 * step, 4 + step % 3, [40, 40, 41][step as usize % 3]));
        let in_turn = in_turn.enumerate().map(|(index, (begin, duration, function))| {
            (begin, duration, function, [7, 8, 0][index % 3])
        });
        assert_eq!(
            runs(&polls_on(in_turn)),
            [(40, 7, 100, 10, 40, 274), (40, 8, 110, 10, 50, 275), (41, 0, 120, 10, 60, 276)]
        );
    }

    #[test]
    fn starts_over_if_too_many_kinds_alternate() {
        let kinds = MAX_KINDS as u64 + 1;
        let round = |from: u64| (0..kinds).map(move |kind| (from + kind, 1, 40, kind as u16));
        let found = runs(&polls_on(round(100).chain([(500, 1, 40, MAX_KINDS as u16)])));
        assert_eq!(found.len() as u64, kinds);
        assert_eq!(
            found[MAX_KINDS],
            (40, MAX_KINDS as u16, 100 + kinds - 1, 2, 2, 401 - kinds + 1)
        );
    }
}
