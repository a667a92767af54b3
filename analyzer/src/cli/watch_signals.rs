//! Signals that `gammachi watch` receives.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::time::Duration;

/// Signals that ask it to end, and SIGUSR1, all of them blocked and taken one by one.
#[derive(Debug)]
pub struct WatchSignals {
    awaited: libc::sigset_t,
    asked_to_end: Cell<bool>,
    request: Cell<bool>,
}

impl WatchSignals {
    /// From here on, SIGINT, SIGTERM and SIGHUP are taken by [`WatchSignals::sleep`]; SIGUSR1, too, if it asks for a
    /// snapshot.
    pub fn install(snapshot: bool) -> Self {
        let mut awaited = MaybeUninit::<libc::sigset_t>::zeroed();
        let request = if snapshot { Some(libc::SIGUSR1) } else { None };
        let ending = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
        // SAFETY: the set is filled before it is used, and outlives the calls.
        let awaited = unsafe {
            libc::sigemptyset(awaited.as_mut_ptr());
            for signal in ending.into_iter().chain(request) {
                libc::sigaddset(awaited.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, awaited.as_ptr(), std::ptr::null_mut());
            awaited.assume_init()
        };
        // A file that may not become as long as it should is an error of its own.
        // SAFETY: nobody else sets what this signal does.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        Self { awaited, asked_to_end: Cell::new(false), request: Cell::new(false) }
    }

    /// Whether a signal asked this process to end.
    pub fn asked_to_end(&self) -> bool {
        self.asked_to_end.get()
    }

    /// Whether a snapshot was asked for since the last time.
    pub fn take_request(&self) -> bool {
        self.request.take()
    }

    /// Waits for a time, or for a signal.
    pub fn sleep(&self, time: Duration) {
        let patience = libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos().into(),
        };
        // SAFETY: set and time are initialised and outlive the call; nothing is asked about the signal.
        match unsafe { libc::sigtimedwait(&self.awaited, std::ptr::null_mut(), &patience) } {
            libc::SIGUSR1 => self.request.set(true),
            signal if signal > 0 => self.asked_to_end.set(true),
            _ => {}
        }
    }
}
