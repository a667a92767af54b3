//! Sums of calls on files that are no events at once: those inside calls of MPI, whose own slot is open, and those of
//! threads without windows.
//!
//! A signal handler may add at any instruction, so all numbers are added to atomically.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use trace_format::file_calls::{FileCallKind, FileCalls};
use trace_format::header::FileSum;

use crate::store::known_files::MAX_FILES;

const KINDS: usize = FileCallKind::ALL.len();

/// Calls of a kind on a file.
#[derive(Debug, Default)]
pub struct Sum {
    calls: AtomicU64,
    bytes: AtomicU64,
    inside: AtomicU64,
}

impl Sum {
    const fn new() -> Self {
        Self { calls: AtomicU64::new(0), bytes: AtomicU64::new(0), inside: AtomicU64::new(0) }
    }

    fn add(&self, more: FileCalls) {
        self.bytes.fetch_add(more.bytes, Relaxed);
        self.inside.fetch_add(more.inside, Relaxed);
        self.calls.fetch_add(more.calls, Relaxed);
    }

    /// Takes what was added; `None` if that is nothing.
    fn take(&self) -> Option<FileCalls> {
        let calls = self.calls.swap(0, Relaxed);
        let inside = self.inside.swap(0, Relaxed);
        let bytes = self.bytes.swap(0, Relaxed);
        (calls != 0).then_some(FileCalls { calls, bytes, inside, span: inside })
    }
}

/// By file and kind, over all threads; only pages that are used take memory.
static PROCESS: [[Sum; KINDS]; MAX_FILES as usize + 1] =
    [const { [const { Sum::new() }; KINDS] }; MAX_FILES as usize + 1];

/// Adds calls that will be no event.
pub fn add(file: u32, field: u16, calls: FileCalls) {
    if let (Some(of_file), Some(kind)) =
        (PROCESS.get(file as usize), FileCallKind::from_field(field))
    {
        of_file[kind as usize].add(calls);
    }
}

/// Takes the sums of the files with these numbers and below.
pub fn take_all(last_file: u32) -> Vec<FileSum> {
    let mut all = Vec::new();
    for (file, kinds) in PROCESS.iter().enumerate().take(last_file as usize + 1) {
        for (kind, sum) in kinds.iter().enumerate() {
            all.extend(sum.take().map(|mut calls| {
                calls.span = 0;
                FileSum { file: file as u32, kind: kind as u16, calls }
            }));
        }
    }
    all
}

/// Number of files and kinds that a call of MPI may work on with sums of its own.
const MAX_LATER: usize = 16;

/// What a thread did inside calls of MPI, to be written when they have ended.
#[derive(Debug, Default)]
pub struct Later {
    /// File and kind plus one; 0: free.
    keys: [AtomicU64; MAX_LATER],
    sums: [Sum; MAX_LATER],
}

impl Later {
    /// Adds calls, to the sums of the process if there are too many kinds.
    pub fn add(&self, file: u32, field: u16, calls: FileCalls) {
        let wanted = (u64::from(file) << 16 | u64::from(field)) + 1;
        for (key, sum) in self.keys.iter().zip(&self.sums) {
            let claimed = key.compare_exchange(0, wanted, Relaxed, Relaxed);
            if claimed.is_ok() || claimed == Err(wanted) {
                return sum.add(calls);
            }
        }
        add(file, field, calls);
    }

    /// Takes all of it. No signal handler runs meanwhile.
    pub fn take(&self, mut each: impl FnMut(u32, u16, FileCalls)) {
        for (key, sum) in self.keys.iter().zip(&self.sums) {
            let taken = key.swap(0, Relaxed);
            if let (Some(key), Some(calls)) = (taken.checked_sub(1), sum.take()) {
                each((key >> 16) as u32, key as u16, calls);
            }
        }
    }

    /// Whether there is nothing to take.
    pub fn is_empty(&self) -> bool {
        self.keys[0].load(Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(bytes: u64) -> FileCalls {
        FileCalls { calls: 1, bytes, inside: 2, span: 2 }
    }

    #[test]
    fn keeps_kinds_apart_until_they_are_taken() {
        let later = Later::default();
        assert!(later.is_empty());
        for (file, field, bytes) in [(3, 2, 10), (3, 1, 20), (3, 2, 30), (0, 2, 5)] {
            later.add(file, field, calls(bytes));
        }
        assert!(!later.is_empty());
        let mut taken = Vec::new();
        later.take(|file, field, of| taken.push((file, field, of.calls, of.bytes, of.inside)));
        assert_eq!(taken, [(3, 2, 2, 40, 4), (3, 1, 1, 20, 2), (0, 2, 1, 5, 2)]);
        assert!(later.is_empty());
        later.take(|_, _, _| panic!("nothing is left"));
    }

    #[test]
    fn too_many_kinds_become_sums_of_the_process() {
        let later = Later::default();
        for file in 1..=20 {
            later.add(file, FileCallKind::Write as u16, calls(7));
        }
        let mut taken = 0;
        later.take(|_, _, _| taken += 1);
        let rest = take_all(MAX_FILES);
        assert_eq!((taken, rest.len()), (MAX_LATER, 20 - MAX_LATER));
        assert!(rest.iter().all(|sum| sum.calls.bytes == 7 && sum.calls.span == 0));
        assert!(take_all(MAX_FILES).is_empty());
    }
}
