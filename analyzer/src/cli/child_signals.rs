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
//! - A signal that was inherited as ignored (`nohup`, `&` in a script) stays ignored by this process,
//!   and the program starts with it ignored. It is forwarded all the same, because a launcher or
//!   program may have installed a handler since.
//! - SIGKILL cannot be received: the program gets a signal from the system when this process dies.
//!
//! No handler is installed: the signals are blocked and received one by one, so nothing runs
//! asynchronously. The program starts with the signal mask that this process was started with.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use crate::trace::run_json::Sender;

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
    /// The first signal of [`ENDING`] that was received and was not inherited as ignored.
    termination: RefCell<Option<Request>>,
}

/// A signal that requested termination.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its number.
    pub signal: libc::c_int,
    /// When it was received.
    pub at: Instant,
    /// Who sent it; `None`: the system.
    pub sender: Option<Sender>,
    /// Whether the program was sent it, too.
    pub forwarded: bool,
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
        // Ignored ones are in the set, too: Linux discards an ignored signal only if it is not
        // blocked, so sigtimedwait receives it, and the program inherits that it is ignored.
        for signal in FORWARDED {
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
        Self { awaited, inherited_mask, termination: RefCell::new(None) }
    }

    /// Starts the program with the signal mask that this process was started with. It gets
    /// `on_death` if this process is killed; the calling thread must live until the program has
    /// ended, because the system watches that thread.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, command: &mut Command, on_death: libc::c_int) -> io::Result<Child> {
        let mask = self.inherited_mask;
        let parent = std::process::id();
        let prepare = move || {
            // SAFETY: the set was filled by the system; prctl with these arguments and getppid
            // touch no memory.
            unsafe {
                libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
                libc::prctl(libc::PR_SET_PDEATHSIG, on_death);
                if libc::getppid() as u32 != parent {
                    // It died before the system was asked to watch it; nobody reads the error.
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
            }
            Ok(())
        };
        // SAFETY: the closure runs between fork and exec and must not allocate or lock; it calls
        // only pthread_sigmask, prctl and getppid, which are async-signal-safe.
        unsafe { command.pre_exec(prepare) };
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
                    let mut termination = self.termination.borrow_mut();
                    if let Some(request) = termination.as_mut().filter(|r| r.signal == *signal) {
                        request.forwarded = true;
                    }
                }
                wait_on
            });
        }
    }

    /// The first request for termination while a program ran.
    pub fn termination(&self) -> Option<Request> {
        self.termination.borrow().clone()
    }

    /// The signal that requested termination, while a program ran or between two programs. Waits up
    /// to `patience` for a signal that may be under way. The signal is not forwarded, because no
    /// program needs to be running.
    pub fn termination_signal(&self, patience: Duration) -> Option<libc::c_int> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let nothing = matches!(self.next(left), Arrival::Nothing);
            let signal = self.termination.borrow().as_ref().map(|request| request.signal);
            if signal.is_some() || (nothing && left.is_zero()) {
                return signal;
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
        // SAFETY: zeroed above and filled by the call, which returned a signal.
        let info = unsafe { info.assume_init() };
        // Codes above 0 come from the kernel: the terminal driver has signalled the whole group.
        let by_system = info.si_code > 0;
        let mut termination = self.termination.borrow_mut();
        if ENDING.contains(&signal) && !is_ignored(signal) && termination.is_none() {
            // SAFETY: a signal that a process sent carries its number.
            let sender = (!by_system).then(|| sender(unsafe { info.si_pid() }));
            *termination = Some(Request { signal, at: Instant::now(), sender, forwarded: false });
        }
        if by_system { Arrival::Nothing } else { Arrival::Sent(signal) }
    }
}

/// The process that has just sent a signal, with its name if it still runs.
fn sender(pid: libc::pid_t) -> Sender {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    Sender { pid, name: name.map(|name| name.trim_end().to_owned()) }
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
