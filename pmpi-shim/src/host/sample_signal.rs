//! The signal that interrupts sampled threads.
//!
//! It must be one of the old signals, of which at most one is pending: of the real-time ones many
//! would queue up in a thread that blocks them, and when the queue is full, the kernel sends SIGIO
//! instead, which ends the program. SIGSTKFLT is used by nobody; else SIGPROF is taken, unless the
//! program has a handler for it.

use std::ffi::c_int;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::host::loader::Behind;

const CANDIDATES: [c_int; 2] = [libc::SIGSTKFLT, libc::SIGPROF];

/// The signal; 0 while there is none.
static TAKEN: AtomicI32 = AtomicI32::new(0);
/// The process that took it.
static PROCESS: AtomicI32 = AtomicI32::new(0);

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
    // SAFETY: the C library's function of this name has this type.
    static REAL: Behind<Sigaction> = unsafe { Behind::new(c"sigaction") };
    // SAFETY: the caller vouches for the arguments.
    REAL.get().map_or(-1, |real| unsafe { real(signal, action, before) })
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
    install(signal, handler).then(|| {
        TAKEN.store(signal, Relaxed);
        // SAFETY: a system call without arguments.
        PROCESS.store(unsafe { libc::getpid() }, Relaxed);
        signal
    })
}

/// Has a signal come to a handler, or sets SIG_IGN or SIG_DFL.
fn install(signal: c_int, handler: usize) -> bool {
    // SAFETY: a zeroed action may be written over; the handler takes what SA_SIGINFO promises.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        // Also those that the C library keeps to itself: a thread must not be cancelled in there.
        (&raw mut action.sa_mask).write_bytes(0xff, 1);
        set_action(signal, &action, null_mut()) == 0
    }
}

/// The signal that was taken; 0: none.
pub fn taken() -> c_int {
    TAKEN.load(Relaxed)
}

/// Whether the calling process took the signal. A child made by vfork has the parent's memory, but handlers of its own.
pub fn is_of_this_process() -> bool {
    // SAFETY: a system call without arguments.
    PROCESS.load(Relaxed) == unsafe { libc::getpid() }
}

/// Gives the signal back, after which nobody is sent it, unless it no longer comes to this handler: then it is the
/// program's.
pub fn give_back(handler: usize) {
    if is_kept(handler) {
        install_after_discarding(libc::SIG_DFL);
    }
    TAKEN.store(0, Relaxed);
}

/// Discards the signals that threads hold off. They would end another program that this process becomes.
pub fn discard_pending(handler: usize) {
    if is_kept(handler) {
        install_after_discarding(handler);
    }
}

/// Ignoring a signal discards it where threads hold it off.
fn install_after_discarding(handler: usize) {
    install(taken(), libc::SIG_IGN);
    install(taken(), handler);
}

/// Whether the signal that was taken still comes to this handler.
pub fn is_kept(handler: usize) -> bool {
    taken() != 0 && handler_of(taken()) == handler
}
