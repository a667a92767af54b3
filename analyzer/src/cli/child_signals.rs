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
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, getppid, kill_process, set_parent_process_death_signal as set_death_signal,
};

use crate::trace::run_json::Sender;

/// Signals that would end this process while the program runs.
const FORWARDED: [Signal; 6] =
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];
/// Those that request termination.
const ENDING: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
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
    pub signal: libc::c_int,
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
    Sent(Signal),
    /// Nothing that matters, or the timeout expired.
    Nothing,
}

impl SignalGuard {
    /// From here on, no signal of the list ends this process. Call this before the program is
    /// started.
    pub fn new() -> Self {
        // Ignored ones are in the set, too: Linux discards an ignored signal only if it is not
        // blocked, so sigtimedwait receives it, and the program inherits that it is ignored.
        let awaited = FORWARDED.map(Signal::as_raw).into_iter().chain([libc::SIGCHLD]);
        // SAFETY: a zeroed set is valid for sigemptyset to initialise; the signal numbers are valid.
        // The mask of this thread, the only one of the process, is extended, and the old one is
        // written. SIG_DFL installs no handler: a parent may have left SIGCHLD ignored, and then
        // children could not be waited for.
        let (awaited, inherited_mask) = unsafe {
            let (mut set, mut old) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&mut set);
            for signal in awaited {
                libc::sigaddset(&mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut old);
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            (set, old)
        };
        Self { awaited, inherited_mask, termination: RefCell::new(None) }
    }

    /// Starts the program with the signal mask that this process was started with. It gets
    /// `on_death` if this process is killed; the calling thread must live until the program has
    /// ended, because the system watches that thread.
    pub fn start(&self, command: &mut Command, on_death: Signal) -> io::Result<Child> {
        let mask = self.inherited_mask;
        let parent = Pid::from_raw(std::process::id().cast_signed());
        let prepare = move || {
            set_mask(&mask);
            set_death_signal(Some(on_death))?;
            match getppid() == parent {
                true => Ok(()),
                // It died before the system was asked to watch it; nobody reads the error.
                false => Err(io::ErrorKind::BrokenPipe.into()),
            }
        };
        // SAFETY: the closure runs between fork and exec and must not allocate or lock; it only
        // makes the system calls sigprocmask, prctl and getppid.
        unsafe { command.pre_exec(prepare) };
        command.spawn()
    }

    /// Waits until the program has ended.
    pub fn wait(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let mut held_back: Vec<(Signal, Instant)> = Vec::new();
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
                    // Not waited for, so its id is still valid.
                    let _ = kill_process(Pid::from_child(child), *signal);
                    let mut termination = self.termination.borrow_mut();
                    if let Some(request) =
                        termination.as_mut().filter(|r| r.signal == signal.as_raw())
                    {
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
        set_mask(&self.inherited_mask);
    }

    fn next(&self, patience: Duration) -> Arrival {
        let patience = libc::timespec {
            tv_sec: patience.as_secs() as libc::time_t,
            tv_nsec: patience.subsec_nanos().into(),
        };
        // SAFETY: the set and the time are initialised, a zeroed `siginfo_t` is valid, and all
        // outlive the call. What it says about the sender is used only if a process sent the signal.
        let (number, code, pid) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let number = libc::sigtimedwait(&self.awaited, &mut info, &patience);
            (number, info.si_code, info.si_pid())
        };
        if number == libc::SIGCHLD {
            return Arrival::Child;
        }
        let Some(signal) = FORWARDED.into_iter().find(|signal| signal.as_raw() == number) else {
            return Arrival::Nothing;
        };
        // Codes above 0 come from the kernel: the terminal driver has signalled the whole group.
        let by_system = code > 0;
        let mut termination = self.termination.borrow_mut();
        if ENDING.contains(&signal) && !is_ignored(number) && termination.is_none() {
            let sender = (!by_system).then(|| sender(pid));
            let at = Instant::now();
            *termination = Some(Request { signal: number, at, sender, forwarded: false });
        }
        if by_system { Arrival::Nothing } else { Arrival::Sent(signal) }
    }
}

fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: the set was filled by the system; the old mask is not requested.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

/// The process that has just sent a signal, with its name if it still runs.
fn sender(pid: libc::pid_t) -> Sender {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    Sender { pid, name: name.map(|name| name.trim_end().to_owned()) }
}

/// Whether the process ignores a signal, as one started by `nohup` does.
pub(super) fn is_ignored(signal: libc::c_int) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
