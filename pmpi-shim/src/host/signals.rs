//! Signals held off while this thread is inside the loader.
//!
//! The loader's locks can be taken again by the thread that holds them, but not at every instruction of taking and
//! releasing: a handler that calls MPI there, and asks the loader for the function, waits for its own thread.

const SIGNAL_SET_BYTES: usize = 8;
/// What an instruction of the thread itself raises; blocked, these end the process.
const OWN: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

/// The thread's signals as they were, restored when this is dropped.
struct HeldOff {
    before: u64,
}

impl HeldOff {
    fn begin() -> Self {
        let own = OWN.iter().fold(0u64, |set, signal| set | 1 << (signal - 1));
        Self { before: set_blocked(libc::SIG_BLOCK, !own) }
    }
}

impl Drop for HeldOff {
    fn drop(&mut self) {
        set_blocked(libc::SIG_SETMASK, self.before);
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

/// Runs `work` with the thread's signals held off.
pub fn without_signals<R>(work: impl FnOnce() -> R) -> R {
    let _held_off = HeldOff::begin();
    work()
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
        let inside = without_signals(blocked);
        assert_ne!(inside & 1 << (libc::SIGALRM - 1), 0);
        assert_eq!(inside & 1 << (libc::SIGSEGV - 1), before & 1 << (libc::SIGSEGV - 1));
        assert_eq!(blocked(), before);
        let left = std::panic::catch_unwind(|| without_signals(|| panic!("left early")));
        assert!(left.is_err());
        assert_eq!(blocked(), before);
    }
}
