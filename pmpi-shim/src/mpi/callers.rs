//! Functions of plug-ins: what a name means to each caller.
//!
//! The table has no locks, because compute calls come from many threads and from signal handlers. A
//! caller that does not fit in the table is resolved again at each call.

use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire},
};

const ENTRIES: usize = 1 << 12;
/// Maximum number of entries examined for one caller.
const MAX_PROBES: usize = 16;

/// Never dropped, because another thread may be reading it.
struct Known {
    entry: usize,
    caller: usize,
    address: usize,
}

static TABLE: [AtomicPtr<Known>; ENTRIES] = [const { AtomicPtr::new(null_mut()) }; ENTRIES];

fn candidates(entry: usize, caller: usize) -> impl Iterator<Item = &'static AtomicPtr<Known>> {
    let first = (entry.rotate_left(20) ^ caller).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (0..MAX_PROBES).map(move |step| &TABLE[(first + step) % ENTRIES])
}

/// The function that an entry's name means to a caller, if known.
pub fn find(entry: usize, caller: usize) -> Option<usize> {
    candidates(entry, caller).find_map(|entry_cell| {
        // SAFETY: stored values are never dropped.
        let known = unsafe { entry_cell.load(Acquire).as_ref() }?;
        (known.entry == entry && known.caller == caller).then_some(known.address)
    })
}

/// Stores what a name means to a caller.
pub fn remember(entry: usize, caller: usize, address: usize) {
    let Some(free) =
        candidates(entry, caller).find(|entry_cell| entry_cell.load(Acquire).is_null())
    else {
        return;
    };
    let known = Box::into_raw(Box::new(Known { entry, caller, address }));
    if free.compare_exchange(null_mut(), known, AcqRel, Acquire).is_err() {
        // SAFETY: no other thread has seen it.
        drop(unsafe { Box::from_raw(known) });
    }
}

/// Forgets all callers, because their code or the functions may be gone.
pub fn forget() {
    for entry_cell in &TABLE {
        entry_cell.store(null_mut(), std::sync::atomic::Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_means_what_each_caller_would_have_got() {
        assert_eq!(find(1, 10), None);
        remember(1, 10, 100);
        remember(1, 11, 101);
        remember(2, 10, 200);
        assert_eq!((find(1, 10), find(1, 11), find(2, 10)), (Some(100), Some(101), Some(200)));
        forget();
        assert_eq!((find(1, 10), find(2, 10)), (None, None));
    }
}
