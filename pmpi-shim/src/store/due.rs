//! When a call that ends has more to do.
//!
//! A call compares its end, which it has read anyway, with one time. It comes from the next reading of
//! what the process has used, or from a signal handler that leaves something to others.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counter from which on there is something to do; the largest while a thread is at it, or nothing
/// ever is.
static DUE: AtomicU64 = AtomicU64::new(u64::MAX);

/// Sets when there is something to do next.
pub fn set(ticks: u64) {
    DUE.store(ticks, Relaxed);
}

/// Whether there is something to do when a call ends.
#[inline(always)]
pub fn is_due(end: u64) -> bool {
    end >= DUE.load(Relaxed)
}

/// Claims what there is to do when a call ends, for one thread: until [`set`] nothing is due.
pub fn claim(end: u64) -> bool {
    let due = DUE.load(Relaxed);
    end >= due && DUE.compare_exchange(due, u64::MAX, Relaxed, Relaxed).is_ok()
}

/// Has the next call that ends do it, unless a thread is at it. May be called in a signal handler.
pub fn at_next_call() {
    let _ = DUE.fetch_update(Relaxed, Relaxed, |due| (due != u64::MAX).then_some(0));
}
