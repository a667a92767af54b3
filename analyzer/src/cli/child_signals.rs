//! Waits for the measured program and handles signals in the meantime.
//!
//! Signals that would end this process must not do so before the program has ended, and must reach
//! the program exactly as they would without gammachi:
//! - A signal from the kernel (Ctrl-C, Ctrl-\, a terminal that hangs up) goes to the whole
//!   foreground group, including the program: it is not forwarded.
//! - A signal sent by a process (`kill PID`, a batch system) may have been sent to this process
//!   alone: it is forwarded after [`GRACE`], at most once per kind and [`GRACE`], unless the
//!   program ends before. It is not known whether the sender meant the whole group; if so, a
//!   program that lives on sees the signal twice.
//! - A signal that was inherited as ignored (`nohup`) stays ignored by both.
//!
//! No handler is installed: the signals are blocked and received one by one, so nothing runs
//! asynchronously. The program starts with the signal mask that this process was started with.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Signals that would end this process while the program runs.
const FORWARDED: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];
/// Those that request termination.
const ENDING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// How long a signal sent by a process is held back.
const GRACE: Duration = Duration::from_millis(100);

/// While it exists, signals do not end this process; see [`SignalGuard::wait`].
pub struct SignalGuard {
    awaited: libc::sigset_t,
    inherited_mask: libc::sigset_t,
    /// The first signal of [`ENDING`] that was received.
    termination: Cell<Option<libc::c_int>>,
}

/// What [`SignalGuard::next`] received.
enum Arrival {
    /// The child changed its state.
    Child,
    /// A process sent this signal.
    Sent(libc::c_int),
    /// Nothing that matters, or the timeout expired.
    Nothing,
}

impl SignalGuard {
    /// From here on, no signal of the list ends this process. Call this before the program is
    /// started.
    pub fn new() -> Self {
        // A parent may have left SIGCHLD ignored; then children could not be waited for.
        // SAFETY: SIG_DFL installs no handler; the call has no other obligation.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        let mut awaited = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set it is given; it cannot fail for a valid pointer.
        let mut awaited = unsafe {
            libc::sigemptyset(awaited.as_mut_ptr());
            awaited.assume_init()
        };
        for signal in FORWARDED.into_iter().filter(|signal| !is_ignored(*signal)) {
            // SAFETY: the set is initialised and the signal number is valid.
            unsafe { libc::sigaddset(&mut awaited, signal) };
        }
        let mut inherited_mask = awaited;
        // SAFETY: the set is initialised and SIGCHLD is valid. The mask of this thread, the only
        // one of the process, is extended, and the old one is written to an initialised set.
        unsafe {
            libc::sigaddset(&mut awaited, libc::SIGCHLD);
            libc::pthread_sigmask(libc::SIG_BLOCK, &awaited, &mut inherited_mask);
        }
        Self { awaited, inherited_mask, termination: Cell::new(None) }
    }

    /// Starts the program with the signal mask that this process was started with.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, command: &mut Command) -> io::Result<Child> {
        let mask = self.inherited_mask;
        let restore = move || {
            // SAFETY: the set was filled by the system.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut()) };
            Ok(())
        };
        // SAFETY: the closure runs between fork and exec and must not allocate or lock;
        // pthread_sigmask is async-signal-safe, and nothing else is called.
        unsafe { command.pre_exec(restore) };
        command.spawn()
    }

    /// Waits until the program has ended.
    ///
    /// # Errors
    /// The error of the system when it was asked about the program.
    pub fn wait(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let mut held_back: Vec<(libc::c_int, Instant)> = Vec::new();
        loop {
            let due = held_back.iter().map(|(_, since)| *since + GRACE).min();
            // SIGCHLD is blocked and cannot be missed; the timeout of one second is a mere
            // safeguard.
            let patience = due.map_or(Duration::from_secs(1), |due| {
                due.saturating_duration_since(Instant::now())
            });
            match self.next(patience) {
                Arrival::Child | Arrival::Nothing => {}
                Arrival::Sent(signal) if held_back.iter().any(|(s, _)| *s == signal) => {}
                Arrival::Sent(signal) => held_back.push((signal, Instant::now())),
            }
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            held_back.retain(|(signal, since)| {
                let wait_on = since.elapsed() < GRACE;
                if !wait_on {
                    send(child, *signal);
                }
                wait_on
            });
        }
    }

    /// The signal that requested termination, while a program ran or between two programs. Waits up
    /// to `patience` for a signal that may be under way. The signal is not forwarded, because no
    /// program needs to be running.
    pub fn termination_signal(&self, patience: Duration) -> Option<libc::c_int> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let nothing = matches!(self.next(left), Arrival::Nothing);
            if self.termination.get().is_some() || (nothing && left.is_zero()) {
                return self.termination.get();
            }
        }
    }

    /// From here on, signals end this process again.
    pub fn release(self) {
        // SAFETY: the set was filled by the system; the old mask is not requested.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.inherited_mask, std::ptr::null_mut())
        };
    }

    fn next(&self, patience: Duration) -> Arrival {
        let patience = libc::timespec {
            tv_sec: patience.as_secs() as libc::time_t,
            tv_nsec: patience.subsec_nanos().into(),
        };
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: the set and the time are initialised and `info` is writable; all outlive the
        // call.
        let signal = unsafe { libc::sigtimedwait(&self.awaited, info.as_mut_ptr(), &patience) };
        if signal <= 0 {
            return Arrival::Nothing;
        }
        if signal == libc::SIGCHLD {
            return Arrival::Child;
        }
        if ENDING.contains(&signal) && self.termination.get().is_none() {
            self.termination.set(Some(signal));
        }
        // SAFETY: zeroed above and filled by the call, which returned a signal.
        let code = unsafe { info.assume_init() }.si_code;
        // Codes above 0 come from the kernel: the terminal driver has signalled the whole group.
        if code > 0 { Arrival::Nothing } else { Arrival::Sent(signal) }
    }
}

/// Sends a signal to a child that has not been waited for.
fn send(child: &Child, signal: libc::c_int) {
    let Ok(pid) = libc::pid_t::try_from(child.id()) else { return };
    // SAFETY: kill touches no memory. The caller has not reaped the child, so its id is still
    // valid.
    unsafe { libc::kill(pid, signal) };
}

/// Whether the process ignores a signal, as one started by `nohup` does.
pub(super) fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action only queries; the old one is written to `action`, which is
    // writable.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: zeroed is a valid sigaction, and so is what the call wrote.
    asked == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}
