//! When processes let go of their files, to a fraction of a millisecond, however seldom somebody looks.

use std::fs::File;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::schedstat::schedstat;
use crate::trace::closed_files::{Closed, ClosedFiles};

/// A thread runs so long after it was woken at most, beside the time for which it waited for a core.
const WAKES: Duration = Duration::from_micros(200);
/// How long the thread may take until somebody else notes what was closed.
const STEP: Duration = Duration::from_millis(1);
const STEPS: usize = 50;

/// Files that are watched until their last writer closes them.
#[derive(Debug)]
pub struct Closings {
    files: Arc<Mutex<ClosedFiles>>,
    /// Whether a thread notes them.
    at_once: bool,
}

impl Closings {
    pub fn new() -> Self {
        Self { files: Arc::new(Mutex::new(ClosedFiles::new())), at_once: false }
    }

    /// Watches a file that a process on this host writes.
    pub fn add(&self, path: &Path) {
        lock(&self.files).add(path);
    }

    /// From here on, a thread notes each when it happens, as long as this process lives.
    pub fn note_at_once(&mut self) {
        let files = self.files.clone();
        let readable = lock(&files).readable();
        let started = thread::Builder::new().name("closings".into());
        let started = started.spawn(move || note_each(&files, readable));
        self.at_once = readable >= 0 && started.is_ok();
    }

    /// The files that have been closed since the last time, and up to when.
    pub fn take(&self) -> (Vec<(PathBuf, Closed)>, Instant) {
        for _ in 0..STEPS {
            let mut files = lock(&self.files);
            // The thread knows better when that was.
            if !self.at_once || !waits(files.readable(), 0) {
                return files.take();
            }
            drop(files);
            thread::sleep(STEP);
        }
        lock(&self.files).take()
    }
}

/// Nothing that holds the lock can panic between two changes.
fn lock(files: &Mutex<ClosedFiles>) -> MutexGuard<'_, ClosedFiles> {
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes each file that is closed. It was closed when this thread was woken: before it ran, it waited for a core, and the
/// kernel says for how long.
fn note_each(files: &Mutex<ClosedFiles>, readable: RawFd) {
    let account = File::open("/proc/thread-self/schedstat").ok();
    let queued_ns = || account.as_ref().and_then(schedstat).map(|[_, queued_ns, _]| queued_ns);
    loop {
        let before = queued_ns();
        if !waits(readable, -1) {
            thread::sleep(STEP);
            continue;
        }
        let woken = Instant::now();
        let queued_ns = before.zip(queued_ns()).map(|(before, now)| now.saturating_sub(before));
        let queued = queued_ns.map(Duration::from_nanos);
        let after = queued.and_then(|queued| woken.checked_sub(queued + WAKES));
        lock(files).note(after);
    }
}

/// Whether events wait to be read, or come within so many milliseconds.
fn waits(readable: RawFd, patience_ms: libc::c_int) -> bool {
    let mut entry = libc::pollfd { fd: readable, events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is that of one initialised entry, which outlives the call.
    let ready = unsafe { libc::poll(&raw mut entry, 1, patience_ms) };
    ready > 0 && entry.revents & libc::POLLIN != 0
}
