//! Keeps the program from meeting the signal that interrupts sampled threads.
//!
//! A program that installs a handler for it ends the sampling, and nobody asks for stacks by it any more. One that
//! waits for all signals does not get this one. While neither is done, the functions are only forwarded.

use std::ffi::c_int;

use crate::host::loader::Behind;
use crate::host::sample_signal::{self, set_action};
use crate::state::thread_block::thread_block;
use crate::store::outermost::within;
use crate::store::sampling;

/// Ends the sampling if the program wants its signal.
fn give_up_if(wants: bool) {
    if wants && sample_signal::is_of_this_process() {
        let end = || sampling::give_up("the program wants the signal that interrupts its threads");
        within(thread_block(), || _ = std::panic::catch_unwind(end));
    }
}

fn is_ours(signal: c_int) -> bool {
    signal != 0 && signal == sample_signal::taken()
}

/// Interposes `sigaction`.
///
/// # Safety
/// The caller vouches for the arguments.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sigaction(
    signal: c_int,
    action: *const libc::sigaction,
    before: *mut libc::sigaction,
) -> c_int {
    give_up_if(is_ours(signal) && !action.is_null());
    // SAFETY: the caller vouches for the arguments. What the program asks about is what it would find
    // without the recorder: nothing.
    unsafe {
        let result = set_action(signal, action, before);
        if result == 0 && is_ours(signal) && !before.is_null() {
            *before = std::mem::zeroed();
        }
        result
    }
}

/// Interposes `signal`.
///
/// # Safety
/// The caller vouches for the handler.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn signal(number: c_int, handler: usize) -> usize {
    // SAFETY: the C library's function of this name has this type.
    static REAL: Behind<unsafe extern "C-unwind" fn(c_int, usize) -> usize> =
        unsafe { Behind::new(c"signal") };
    give_up_if(is_ours(number));
    // SAFETY: the caller vouches for the arguments.
    REAL.get().map_or(libc::SIG_ERR, |real| unsafe { real(number, handler) })
}

/// A set without the signal that interrupts threads; `None` if it is not in there.
///
/// # Safety
/// The set is a valid one.
unsafe fn without_ours(set: *const libc::sigset_t) -> Option<libc::sigset_t> {
    let ours = sample_signal::taken();
    // SAFETY: a set that the program passes to the C library, which reads it, too; the copy is this frame's.
    unsafe {
        if ours == 0 || set.is_null() || libc::sigismember(set, ours) != 1 {
            return None;
        }
        let mut others = *set;
        libc::sigdelset(&mut others, ours);
        Some(others)
    }
}

macro_rules! waits {
    ($($symbol:ident $literal:literal $refused:expr; ($($argument:ident: $type:ty),*) at $set:ident;)*) => {$(
        /// Interposes the function of this name.
        ///
        /// # Safety
        /// The caller vouches for the arguments.
        #[cfg_attr(not(miri), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $symbol($($argument: $type),*) -> c_int {
            type Wait = unsafe extern "C-unwind" fn($($type),*) -> c_int;
            // SAFETY: the C library's function of this name has this type.
            static REAL: Behind<Wait> = unsafe { Behind::new($literal) };
            // SAFETY: the caller vouches for the arguments.
            unsafe {
                let others = without_ours($set);
                let $set = others.as_ref().map_or($set, |others| &raw const *others);
                REAL.get().map_or($refused, |real| real($($argument),*))
            }
        }
    )*};
}

waits! {
    sigwait c"sigwait" libc::EINVAL; (set: *const libc::sigset_t, signal: *mut c_int) at set;
    sigwaitinfo c"sigwaitinfo" -1; (set: *const libc::sigset_t, info: *mut libc::siginfo_t) at set;
    sigtimedwait c"sigtimedwait" -1;
        (set: *const libc::sigset_t, info: *mut libc::siginfo_t, most: *const libc::timespec) at set;
    signalfd c"signalfd" -1; (descriptor: c_int, set: *const libc::sigset_t, flags: c_int) at set;
}
