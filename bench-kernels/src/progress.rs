//! Reports a kernel's progress on standard error.

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use crate::world;

/// Minimum time between two lines on a terminal.
const PERIOD: Duration = Duration::from_millis(200);

/// Whether to show progress.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct ProgressOption {
    /// Show progress on standard error: on a terminal only, as lines `progress: PER CENT WHAT`, or
    /// not at all
    #[arg(long, value_enum, default_value_t = When::Auto)]
    progress: When,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum When {
    /// On a terminal
    #[default]
    Auto,
    /// As plain lines, for a program that shows them
    Lines,
    /// Never
    Never,
}

/// Shows steps of rank 0.
pub struct Progress {
    kind: When,
    what: &'static str,
    steps: usize,
    done: Cell<usize>,
    shown: Cell<Option<Instant>>,
}

impl ProgressOption {
    /// Starts showing `steps` steps.
    pub fn start(self, what: &'static str, steps: usize) -> Progress {
        let quiet = !world::prints_for_all()
            || (self.progress == When::Auto && !std::io::stderr().is_terminal());
        let kind = if quiet { When::Never } else { self.progress };
        Progress { kind, what, steps: steps.max(1), done: Cell::new(0), shown: Cell::new(None) }
    }
}

impl Progress {
    /// Marks one step as done. Must be called between measurements, not inside one.
    pub fn step(&self, detail: &str) {
        let done = self.done.get() + 1;
        self.done.set(done);
        let due = self.shown.get().is_none_or(|last| last.elapsed() >= PERIOD);
        if self.kind == When::Never || !(due || done == self.steps) {
            return;
        }
        self.shown.set(Some(Instant::now()));
        let percent = 100 * done.min(self.steps) / self.steps;
        let mut out = std::io::stderr().lock();
        // A failure to show progress is ignored.
        let _ = match self.kind {
            When::Lines => writeln!(out, "progress: {percent} {} {detail}", self.what),
            _ => write!(out, "\r\x1b[K{} {percent:3} % {detail}", self.what),
        };
        let _ = out.flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.kind == When::Auto && self.shown.get().is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
