//! Holds signals off while this thread does the recorder's own work.
//!
//! A handler may leave an MPI call by `siglongjmp` at any instruction. Inside the recorder's own work that would leave
//! locks taken and windows half changed. The loader's locks are similar: a handler that calls MPI there, and asks the
//! loader for the function, waits for its own thread.

use std::marker::PhantomData;

use crate::state::thread_block::thread_block;

const SIGNAL_SET_BYTES: usize = 8;
/// What an instruction of the thread itself raises; blocked, these end the process.
const OWN: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

/// Holds the thread's signals off until it is dropped. May be nested, and dropped in any order: the last one restores
/// the signals as they were.
pub struct HeldOff {
    /// Belongs to its thread.
    _not_send: PhantomData<*mut ()>,
}

impl HeldOff {
    pub fn begin() -> Self {
        let block = thread_block();
        // A handler that runs before the signals are blocked leaves the count as it found it, or
        // jumps away; afterwards none runs.
        if block.held_off.get() == 0 {
            let own = OWN.iter().fold(0u64, |set, signal| set | 1 << (signal - 1));
            block.signals_before.set(set_blocked(libc::SIG_BLOCK, !own));
        }
        block.held_off.set(block.held_off.get() + 1);
        Self { _not_send: PhantomData }
    }
}

impl Drop for HeldOff {
    fn drop(&mut self) {
        let block = thread_block();
        // A handler that runs as soon as the signals are restored finds the count at 0.
        block.held_off.set(block.held_off.get().saturating_sub(1));
        if block.held_off.get() == 0 {
            set_blocked(libc::SIG_SETMASK, block.signals_before.get());
        }
    }
}

/// Changes the thread's blocked signals and gives those before. By the system call: the C library's function may be
/// somebody's own.
fn set_blocked(how: i32, set: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: both sets are the kernel's 64 signals and outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            how,
            &raw const set,
            &raw mut before,
            SIGNAL_SET_BYTES,
        );
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked() -> u64 {
        // Nothing is added to the blocked signals.
        set_blocked(libc::SIG_BLOCK, 0)
    }

    #[test]
    fn holds_signals_off_and_restores_them() {
        let before = blocked();
        let held = HeldOff::begin();
        let inside = blocked();
        drop(held);
        assert_ne!(inside & 1 << (libc::SIGALRM - 1), 0);
        assert_eq!(inside & 1 << (libc::SIGSEGV - 1), before & 1 << (libc::SIGSEGV - 1));
        assert_eq!(blocked(), before);
        let (outer, inner) = (HeldOff::begin(), HeldOff::begin());
        drop(outer);
        assert_ne!(blocked() & 1 << (libc::SIGALRM - 1), 0, "still held off by the inner one");
        drop(inner);
        assert_eq!(blocked(), before);
        let left = std::panic::catch_unwind(|| {
            let _held = HeldOff::begin();
            panic!("left early")
        });
        assert!(left.is_err());
        assert_eq!(blocked(), before);
    }
}
