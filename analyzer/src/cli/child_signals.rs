//! Waits for the measured program, whatever signals come meanwhile.
//!
//! In: a command to start. Out: how it ended. Signals that would end us must not do so before the
//! program has ended, and must reach it exactly as they would without us:
//! - A signal from the kernel (Ctrl-C, Ctrl-\, a terminal that hangs up) goes to the whole
//!   foreground group, the program included: it is not sent on.
//! - A signal sent by a process (`kill PID`, a batch system) may have been for us alone: it is sent
//!   on, once for each kind and [`GRACE`], and not when the program ends within [`GRACE`]. Nothing
//!   tells whether the sender meant the whole group; a program that lives on then sees it twice.
//! - A signal that we inherited as ignored (`nohup`) stays ignored by both.
//!
//! No handler is installed: the signals are blocked and taken up one by one, so nothing runs
//! asynchronously. The program starts with the mask that we were started with.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Signals that would end us while the program runs.
const FORWARDED: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];
/// Those of them that mean the end.
const ENDING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// How long a signal that a process sent is held back.
const GRACE: Duration = Duration::from_millis(100);

/// While it is there, signals do not end us; see [`SignalGuard::wait`].
pub struct SignalGuard {
    awaited: libc::sigset_t,
    inherited_mask: libc::sigset_t,
    /// The first signal of [`ENDING`] that came.
    told_to_end: Cell<Option<libc::c_int>>,
}

/// What [`SignalGuard::next`] brings.
enum Arrival {
    /// The child changed its state.
    Child,
    /// A process sent this signal.
    Sent(libc::c_int),
    /// Nothing that matters, or the time is up.
    Nothing,
}

impl SignalGuard {
    /// From here on no signal of the list ends us; to be called before the program is started.
    pub fn new() -> Self {
        // A parent may have left SIGCHLD ignored; then no child could be waited for.
        // SAFETY: SIG_DFL installs no code of ours; the call has no other obligation.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        let mut awaited = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set it is given; it cannot fail for a valid pointer.
        let mut awaited = unsafe {
            libc::sigemptyset(awaited.as_mut_ptr());
            awaited.assume_init()
        };
        for signal in FORWARDED.into_iter().filter(|signal| !is_ignored(*signal)) {
            // SAFETY: the set is initialised and the signal number a valid one.
            unsafe { libc::sigaddset(&mut awaited, signal) };
        }
        let mut inherited_mask = awaited;
        // SAFETY: as above; then the mask of this thread, the only one of the process, is extended,
        // and the old one written to an initialised set.
        unsafe {
            libc::sigaddset(&mut awaited, libc::SIGCHLD);
            libc::pthread_sigmask(libc::SIG_BLOCK, &awaited, &mut inherited_mask);
        }
        Self { awaited, inherited_mask, told_to_end: Cell::new(None) }
    }

    /// Starts the program with the signal mask that we were started with.
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
    /// What the system said when it was asked about the program.
    pub fn wait(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let mut held_back: Vec<(libc::c_int, Instant)> = Vec::new();
        loop {
            let due = held_back.iter().map(|(_, since)| *since + GRACE).min();
            // SIGCHLD cannot be missed, it is blocked; the second is a belt beside the braces.
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

    /// The signal by which we were told to end, while a program ran or between two of them; waits so
    /// long for one that is under way. It is not sent on: no program needs to run.
    pub fn told_to_end(&self, patience: Duration) -> Option<libc::c_int> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let nothing = matches!(self.next(left), Arrival::Nothing);
            if self.told_to_end.get().is_some() || (nothing && left.is_zero()) {
                return self.told_to_end.get();
            }
        }
    }

    /// Signals end us again.
    pub fn release(self) {
        // SAFETY: the set was filled by the system; the old mask is not asked for.
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
        // SAFETY: the set and the time are initialised, `info` is writable; all outlive the call.
        let signal = unsafe { libc::sigtimedwait(&self.awaited, info.as_mut_ptr(), &patience) };
        if signal <= 0 {
            return Arrival::Nothing;
        }
        if signal == libc::SIGCHLD {
            return Arrival::Child;
        }
        if ENDING.contains(&signal) && self.told_to_end.get().is_none() {
            self.told_to_end.set(Some(signal));
        }
        // SAFETY: zeroed above and filled by the call, which returned a signal.
        let code = unsafe { info.assume_init() }.si_code;
        // Codes above 0 are the kernel's own: the terminal's driver has signalled the whole group.
        if code > 0 { Arrival::Nothing } else { Arrival::Sent(signal) }
    }
}

/// Sends a signal to a child that has not been waited for.
fn send(child: &Child, signal: libc::c_int) {
    let Ok(pid) = libc::pid_t::try_from(child.id()) else { return };
    // SAFETY: kill touches no memory. The caller has not reaped the child, so the id is still its.
    unsafe { libc::kill(pid, signal) };
}

/// Whether the process ignores a signal, as one started by `nohup` does.
pub(super) fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action only asks; the old one is written to `action`, which is writable.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: zeroed is a valid sigaction, and so is what the call wrote.
    asked == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}
