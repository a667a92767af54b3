//! Copies files whose oldest chunks are replaced while they are read.
//!
//! With `--keep last` a running process writes newer events over its oldest ones. An analysis reads events several times
//! and would find other ones each time, so it reads a copy.

use std::sync::atomic::{AtomicU64, Ordering};

use trace_format::header::{Definition, Keeping, KeepingPolicy};
use trace_format::reader::{LiveWindows, RankFile};

/// How much memory the copies of a run may take in all. Files beyond it are read as they are, and what is replaced
/// meanwhile counts as damage.
const MOST_BYTES: u64 = 2 << 30;

/// What is left of the memory for the copies of a run.
pub(super) struct CopiesLeft(AtomicU64);

impl CopiesLeft {
    pub fn new() -> Self {
        Self(AtomicU64::new(MOST_BYTES))
    }

    /// A copy of the file of a running process, if its oldest events may be replaced; else the file.
    pub fn held(&self, file: RankFile) -> RankFile {
        let replaces = |definition: &Definition| match definition {
            Definition::Keeping(Keeping { policy, .. }) => *policy == KeepingPolicy::Last,
            _ => false,
        };
        if !file.definitions.iter().any(replaces) {
            return file;
        }
        self.copy(&file).unwrap_or(file)
    }

    fn copy(&self, file: &RankFile) -> Option<RankFile> {
        let mut live = LiveWindows::follow(&file.path).ok()?;
        let cut = live.cut().ok()?;
        let bytes = live.copy(&cut, self.0.load(Ordering::Relaxed)).ok()?;
        let take = |left: u64| left.checked_sub(bytes.len() as u64);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        RankFile::from_bytes(&file.path, &bytes).ok()
    }
}
