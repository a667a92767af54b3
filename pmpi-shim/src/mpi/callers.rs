//! Functions of plug-ins: what a name means to each caller that asked for it.
//!
//! A table without locks, because compute calls come from many threads and from signal handlers. What finds
//! no place is looked for again at each call.

use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire},
};

const PLACES: usize = 1 << 12;
/// Places looked at for one caller.
const STEPS: usize = 16;

/// Never dropped: another thread may be reading it.
struct Known {
    entry: usize,
    caller: usize,
    address: usize,
}

static TABLE: [AtomicPtr<Known>; PLACES] = [const { AtomicPtr::new(null_mut()) }; PLACES];

fn places(entry: usize, caller: usize) -> impl Iterator<Item = &'static AtomicPtr<Known>> {
    let first = (entry.rotate_left(20) ^ caller).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (0..STEPS).map(move |step| &TABLE[(first + step) % PLACES])
}

/// The function that a caller means by an entry's name, if it is known.
pub fn find(entry: usize, caller: usize) -> Option<usize> {
    places(entry, caller).find_map(|place| {
        // SAFETY: what is stored there is never dropped.
        let known = unsafe { place.load(Acquire).as_ref() }?;
        (known.entry == entry && known.caller == caller).then_some(known.address)
    })
}

/// Keeps what a caller means.
pub fn remember(entry: usize, caller: usize, address: usize) {
    let Some(free) = places(entry, caller).find(|place| place.load(Acquire).is_null()) else {
        return;
    };
    let known = Box::into_raw(Box::new(Known { entry, caller, address }));
    if free.compare_exchange(null_mut(), known, AcqRel, Acquire).is_err() {
        // SAFETY: no other thread has seen it.
        drop(unsafe { Box::from_raw(known) });
    }
}

/// Forgets all callers: their code, or the functions, may be gone.
pub fn forget() {
    for place in &TABLE {
        place.store(null_mut(), std::sync::atomic::Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_what_each_caller_would_have_got() {
        assert_eq!(find(1, 10), None);
        remember(1, 10, 100);
        remember(1, 11, 101);
        remember(2, 10, 200);
        assert_eq!((find(1, 10), find(1, 11), find(2, 10)), (Some(100), Some(101), Some(200)));
        forget();
        assert_eq!((find(1, 10), find(2, 10)), (None, None));
    }
}
