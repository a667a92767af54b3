//! In which order the processes of ranks let go of their files.
//!
//! Which process ended first is hard to see from outside: one that dies closes its sockets before it counts as ended.
//! A launcher that misses it then kills the others, and these may count as ended before it does. But the recorder's
//! descriptor is among the last that a process has opened, the kernel closes these first, and it lists in order which
//! files have lost their last writer, however late somebody asks.

use std::collections::HashMap;
use std::mem::{MaybeUninit, take};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

/// A process that goes on for so long without its file records no more, but has not ended.
const GOES_ON: Duration = Duration::from_secs(1);

/// Place in the order, and between which moments it was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    pub order: u64,
    pub after: Instant,
    /// When it was seen.
    pub seen: Instant,
}

impl Closed {
    /// Whether its process, which runs now, did not end at that time.
    pub fn goes_on(&self) -> bool {
        self.seen.elapsed() > GOES_ON
    }
}

/// Files that are watched until their last writer closes them.
#[derive(Debug)]
pub struct ClosedFiles {
    /// `None`: this user watches too many files already.
    events: Option<OwnedFd>,
    paths: HashMap<i32, PathBuf>,
    noted: Vec<(PathBuf, Closed)>,
    closed: u64,
    /// What was closed before is noted.
    noted_to: Instant,
}

impl ClosedFiles {
    pub fn new() -> Self {
        let events = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok();
        let (paths, noted) = Default::default();
        Self { events, paths, noted, closed: 0, noted_to: Instant::now() }
    }

    /// Watches a file that a process on this host writes.
    pub fn add(&mut self, path: &Path) {
        let Some(events) = &self.events else { return };
        if let Ok(watch) = add_watch(events, path, WatchFlags::CLOSE_WRITE) {
            self.paths.insert(watch, path.to_owned());
        }
    }

    /// Becomes readable when a file is closed; negative: there is no such thing.
    pub fn readable(&self) -> RawFd {
        self.events.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Notes the files that have been closed since the last time; not before a moment, if that is known.
    pub fn note(&mut self, after: Option<Instant>) {
        const BYTES: usize = 4096;
        let Some(events) = &self.events else { return };
        let begin = Instant::now();
        let mut buffer = [MaybeUninit::uninit(); BYTES];
        let mut reader = Reader::new(events, &mut buffer);
        // It ends with an error when there are no more.
        while let Ok(event) = reader.next() {
            let seen = Instant::now();
            let after = after.map_or(self.noted_to, |after| after.max(self.noted_to)).min(seen);
            if let Some(path) = self.paths.get(&event.wd()) {
                self.noted.push((path.clone(), Closed { order: self.closed, after, seen }));
                self.closed += 1;
            }
        }
        self.noted_to = begin;
    }

    /// The files that have been closed since the last time, and up to when.
    pub fn take(&mut self) -> (Vec<(PathBuf, Closed)>, Instant) {
        self.note(None);
        (take(&mut self.noted), self.noted_to)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn order_is_kept_however_late_somebody_asks() {
        let directory = tempfile::tempdir().unwrap();
        let path = |number: usize| directory.path().join(format!("{number}"));
        let mut files: Vec<Option<File>> =
            (0..3).map(|number| File::create(path(number)).ok()).collect();
        let mut closed = ClosedFiles::new();
        (0..3).for_each(|number| closed.add(&path(number)));
        // A reader is no writer.
        drop(File::open(path(0)));
        assert_eq!(closed.take().0, []);
        for number in [1, 2, 0] {
            files[number] = None;
        }
        let order = |of: Vec<(PathBuf, Closed)>| {
            of.into_iter().map(|(path, closed)| (path, closed.order)).collect::<Vec<_>>()
        };
        assert_eq!(order(closed.take().0), [(path(1), 0), (path(2), 1), (path(0), 2)]);
        assert_eq!(order(closed.take().0), []);
    }
}
