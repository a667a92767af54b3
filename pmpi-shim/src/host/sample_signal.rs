//! The signal that interrupts sampled threads.
//!
//! It must be one of the old signals, of which at most one is pending: of the real-time ones many
//! would queue up in a thread that blocks them, and when the queue is full, the kernel sends SIGIO
//! instead, which ends the program. SIGSTKFLT is used by nobody; else SIGPROF is taken, unless the
//! program has a handler for it.

use std::ffi::c_int;
use std::mem::transmute;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering::Relaxed};

use crate::host::loader::next_in_load_order;

const CANDIDATES: [c_int; 2] = [libc::SIGSTKFLT, libc::SIGPROF];

/// The signal; 0 while there is none.
static TAKEN: AtomicI32 = AtomicI32::new(0);

/// The C library's function of that type, behind the recorder's own.
type Sigaction = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;

/// Changes what a signal does, by the C library.
///
/// # Safety
/// As for `sigaction`.
pub unsafe fn set_action(
    signal: c_int,
    action: *const libc::sigaction,
    before: *mut libc::sigaction,
) -> c_int {
    static REAL: AtomicPtr<libc::c_void> = AtomicPtr::new(null_mut());
    let mut real = REAL.load(Relaxed);
    if real.is_null() {
        let Some(found) = next_in_load_order(c"sigaction") else { return -1 };
        real = found.cast_mut();
        REAL.store(real, Relaxed);
    }
    // SAFETY: the C library's function of this name; the caller vouches for the arguments.
    unsafe { transmute::<*mut libc::c_void, Sigaction>(real)(signal, action, before) }
}

/// What a signal does now: the address of its handler, or SIG_DFL and so on.
fn handler_of(signal: c_int) -> usize {
    // SAFETY: a zeroed action may be written over.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        match set_action(signal, null(), &mut now) {
            0 => now.sa_sigaction,
            _ => libc::SIG_ERR,
        }
    }
}

/// Takes a signal that the program does not use, for this handler. `None` if there is none.
pub fn take(handler: usize) -> Option<c_int> {
    let is_free = |signal: &&c_int| [libc::SIG_DFL, handler].contains(&handler_of(**signal));
    let signal = *CANDIDATES.iter().find(is_free)?;
    // SAFETY: a zeroed action may be written over; the handler takes what SA_SIGINFO promises.
    let taken = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        // Also those that the C library keeps to itself: a thread must not be cancelled in there.
        (&raw mut action.sa_mask).write_bytes(0xff, 1);
        set_action(signal, &action, null_mut()) == 0
    };
    taken.then(|| {
        TAKEN.store(signal, Relaxed);
        signal
    })
}

/// The signal that was taken; 0: none.
pub fn taken() -> c_int {
    TAKEN.load(Relaxed)
}

/// Gives the signal back, after which nobody is sent it, unless it no longer comes to this handler: then it is the
/// program's.
pub fn give_back(handler: usize) {
    let signal = TAKEN.swap(0, Relaxed);
    if signal == 0 || handler_of(signal) != handler {
        return;
    }
    // One that a thread holds off would end the program later. Ignoring the signal discards it.
    for usual in [libc::SIG_IGN, libc::SIG_DFL] {
        // SAFETY: a zeroed action may be written over.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = usual;
            set_action(signal, &action, null_mut());
        }
    }
}

/// Whether the signal that was taken still comes to this handler.
pub fn is_kept(handler: usize) -> bool {
    taken() != 0 && handler_of(taken()) == handler
}
