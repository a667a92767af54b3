//! What is known of each open descriptor.
//!
//! A descriptor is looked at once, at its first call while something is recorded. Whatever may make it another file
//! (`open`, `close`, `dup2` …) forgets what was known, so a wrong entry does not outlive the next of these calls.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use trace_format::preload::{FileRecorder, NOT_RECORDED};

use crate::positions;

/// Larger descriptors are not recorded.
const MAX_DESCRIPTORS: usize = 1 << 16;

/// Nothing is known.
const UNKNOWN: u32 = 0;
/// No regular file.
const OTHER: u32 = 1;
/// The state of a file with number 0.
const FIRST_FILE: u32 = 2;

static STATES: [AtomicU32; MAX_DESCRIPTORS] = [const { AtomicU32::new(UNKNOWN) }; MAX_DESCRIPTORS];

/// The number of a descriptor's file, if its calls are recorded.
#[inline(always)]
pub fn file_of(recorder: &FileRecorder, descriptor: c_int) -> Option<u32> {
    match STATES.get(descriptor as usize)?.load(Relaxed) {
        UNKNOWN => look(recorder, descriptor),
        OTHER => None,
        state => Some(state - FIRST_FILE),
    }
}

/// Like [`file_of`], without a look at a descriptor that is not known.
pub fn known_file_of(descriptor: c_int) -> Option<u32> {
    STATES.get(descriptor as usize)?.load(Relaxed).checked_sub(FIRST_FILE)
}

#[cold]
#[inline(never)]
fn look(recorder: &FileRecorder, descriptor: c_int) -> Option<u32> {
    // Nothing is known for good before something is recorded.
    if (recorder.begin)() == 0 {
        return None;
    }
    let number = (recorder.number)(descriptor);
    let file = (number != NOT_RECORDED).then_some(number);
    let state = file.map_or(OTHER, |number| number + FIRST_FILE);
    STATES[descriptor as usize].store(state, Relaxed);
    file
}

/// Forgets a descriptor. Any number may be passed.
#[inline(always)]
pub fn forget(descriptor: c_int) {
    positions::forget(descriptor);
    if let Some(state) = STATES.get(descriptor as usize) {
        state.store(UNKNOWN, Relaxed);
    }
}

/// Forgets the descriptors from `first` to `last`.
pub fn forget_all(first: u32, last: u32) {
    let end = (last as usize).saturating_add(1).min(MAX_DESCRIPTORS);
    (first as usize..end).for_each(|descriptor| positions::forget(descriptor as c_int));
    let states = STATES.get(first as usize..end).unwrap_or_default();
    for state in states {
        // A page that was never written stays so.
        if state.load(Relaxed) != UNKNOWN {
            state.store(UNKNOWN, Relaxed);
        }
    }
}
