//! Where reads of files begin and end: how many begin inside a page, and how far they go.
//!
//! The offset of a descriptor is known from its opening on, or from `lseek`, as long as one thread alone reads by it,
//! nothing writes by it and it is not duplicated; else nothing is said of it. What another process does with a
//! descriptor that it inherited is seen only by `fork`. Each descriptor has its own sums, which go to those of its file
//! when it is closed, so a read adds without locks.

use std::ffi::c_int;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};

use trace_format::file_calls::{FileReads, PAGE};

use crate::descriptors::known_file_of;

/// Larger descriptors are not followed.
const MAX_DESCRIPTORS: usize = 1 << 10;
/// Files with larger numbers are not followed.
const MAX_FILES: usize = 4096;

/// Offsets of a descriptor that was opened elsewhere, and of one that may be anywhere.
const FOREIGN: u64 = u64::MAX;
const UNKNOWN: u64 = u64::MAX - 1;

/// The owner of a descriptor by which several threads read.
const SEVERAL: usize = usize::MAX;

/// Reads of a descriptor or a file.
struct Sums {
    calls: AtomicU64,
    unaligned: AtomicU64,
    bytes: AtomicU64,
    end: AtomicU64,
}

impl Sums {
    const fn new() -> Self {
        Self {
            calls: AtomicU64::new(0),
            unaligned: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            end: AtomicU64::new(0),
        }
    }

    /// Adds a read by the only thread that adds.
    #[inline(always)]
    fn add(&self, offset: u64, bytes: u64) {
        let add = |sum: &AtomicU64, more: u64| sum.store(sum.load(Relaxed) + more, Relaxed);
        add(&self.calls, 1);
        add(&self.unaligned, u64::from(!offset.is_multiple_of(PAGE)));
        add(&self.bytes, bytes);
        let end = offset.saturating_add(bytes);
        if end > self.end.load(Relaxed) {
            self.end.store(end, Relaxed);
        }
    }

    /// Adds the sums of a descriptor, which begin again.
    fn take(&self, of: &Self) {
        // The end first: bytes without their end would look as if they were read again.
        self.end.fetch_max(of.end.load(Relaxed), AcqRel);
        for (sum, more) in
            [(&self.calls, &of.calls), (&self.unaligned, &of.unaligned), (&self.bytes, &of.bytes)]
        {
            sum.fetch_add(more.swap(0, Relaxed), Relaxed);
        }
    }
}

struct Position {
    /// The thread that reads, 0 before the first read.
    owner: AtomicUsize,
    offset: AtomicU64,
    sums: Sums,
}

static POSITIONS: [Position; MAX_DESCRIPTORS] = [const {
    Position { owner: AtomicUsize::new(0), offset: AtomicU64::new(FOREIGN), sums: Sums::new() }
}; MAX_DESCRIPTORS];

static FILES: [Sums; MAX_FILES + 1] = [const { Sums::new() }; MAX_FILES + 1];

/// What no other thread has at the same time.
#[inline(always)]
fn this_thread() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let thread: usize;
        // SAFETY: reads the word to which the thread pointer points and which holds it.
        unsafe {
            core::arch::asm!("mov {}, fs:0", out(reg) thread, options(nostack, readonly, preserves_flags));
        }
        thread
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // SAFETY: it takes no arguments and cannot fail.
        unsafe { libc::pthread_self() as usize }
    }
}

impl Position {
    /// Whether this thread alone has read so far.
    #[inline(always)]
    fn is_own(&self) -> bool {
        let thread = this_thread();
        let owner = self.owner.load(Relaxed);
        if owner == thread {
            return true;
        }
        let is_first =
            owner == 0 && self.owner.compare_exchange(0, thread, Relaxed, Relaxed).is_ok();
        if !is_first {
            self.owner.store(SEVERAL, Relaxed);
        }
        is_first
    }
}

#[inline(always)]
fn of(descriptor: c_int) -> Option<&'static Position> {
    POSITIONS.get(descriptor as usize)
}

/// A read from where the descriptor is has returned so many bytes. It is added if it is recorded.
#[inline(always)]
pub fn has_read(descriptor: c_int, bytes: u64, is_recorded: bool) {
    let Some(position) = of(descriptor) else { return };
    let offset = position.offset.load(Relaxed);
    if offset >= UNKNOWN || !position.is_own() {
        return;
    }
    position.offset.store(offset + bytes, Relaxed);
    if is_recorded && bytes > 0 {
        position.sums.add(offset, bytes);
    }
}

/// A read from this offset of the file has returned so many bytes.
#[inline(always)]
pub fn has_read_at(descriptor: c_int, offset: u64, bytes: u64, is_recorded: bool) {
    if is_recorded
        && bytes > 0
        && let Some(position) = of(descriptor)
        && position.is_own()
    {
        position.sums.add(offset, bytes);
    }
}

/// The descriptor was opened by a call that returned it, and begins at the start of a file.
pub fn at_start(descriptor: c_int) {
    if let Some(position) = of(descriptor) {
        position.offset.store(0, Relaxed);
    }
}

/// `lseek` has moved it.
pub fn moved_to(descriptor: c_int, offset: isize) {
    if let (Some(position), true) = (of(descriptor), offset >= 0)
        && position.offset.load(Relaxed) != FOREIGN
    {
        position.offset.store(offset as u64, Relaxed);
    }
}

/// A call has moved it that is not followed.
#[inline(always)]
pub fn moved(descriptor: c_int) {
    if let Some(position) = of(descriptor)
        && position.offset.load(Relaxed) < UNKNOWN
    {
        position.offset.store(UNKNOWN, Relaxed);
    }
}

/// Something else may move it from now on.
pub fn shared(descriptor: c_int) {
    if let Some(position) = of(descriptor) {
        position.offset.store(FOREIGN, Relaxed);
    }
}

/// Another process has all descriptors, too.
pub extern "C" fn all_shared() {
    for position in &POSITIONS {
        // A page that was never written stays so.
        if position.offset.load(Relaxed) != FOREIGN {
            position.offset.store(FOREIGN, Relaxed);
        }
    }
}

/// The descriptor becomes another file, or none.
#[inline(always)]
pub fn forget(descriptor: c_int) {
    let Some(position) = of(descriptor) else { return };
    if position.offset.load(Relaxed) != FOREIGN || position.owner.load(Relaxed) != 0 {
        end(descriptor, position);
    }
}

#[cold]
#[inline(never)]
fn end(descriptor: c_int, position: &Position) {
    fold(descriptor, position);
    let Sums { calls, unaligned, bytes, end } = &position.sums;
    for sum in [calls, unaligned, bytes, end] {
        sum.store(0, Relaxed);
    }
    position.offset.store(FOREIGN, Relaxed);
    position.owner.store(0, Relaxed);
}

/// Adds what is known of a descriptor to its file.
fn fold(descriptor: c_int, position: &Position) {
    if position.sums.calls.load(Relaxed) > 0
        && let Some(file) = known_file_of(descriptor)
        && let Some(sums) = FILES.get(file as usize)
    {
        sums.take(&position.sums);
    }
}

/// What is known of the reads of a file so far. Number 0 stands for several.
pub extern "C" fn of_file(file: u32) -> FileReads {
    for (descriptor, position) in POSITIONS.iter().enumerate() {
        if position.sums.calls.load(Relaxed) > 0 && known_file_of(descriptor as c_int) == Some(file)
        {
            fold(descriptor as c_int, position);
        }
    }
    let Some(sums) = FILES.get(file as usize) else { return FileReads::default() };
    FileReads {
        calls: sums.calls.load(Relaxed),
        unaligned: sums.unaligned.load(Relaxed),
        bytes: sums.bytes.load(Relaxed),
        end: sums.end.load(Relaxed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(position: &Position) -> [u64; 4] {
        let Sums { calls, unaligned, bytes, end } = &position.sums;
        [calls, unaligned, bytes, end].map(|sum| sum.load(Relaxed))
    }

    #[test]
    fn offsets_are_followed_as_long_as_they_are_known() {
        const DESCRIPTOR: c_int = 1000;
        let position = of(DESCRIPTOR).unwrap();
        has_read(DESCRIPTOR, 100, true);
        assert_eq!(sums(position), [0; 4], "it was not opened here");
        at_start(DESCRIPTOR);
        has_read(DESCRIPTOR, 100, true);
        has_read(DESCRIPTOR, 100, false);
        has_read(DESCRIPTOR, 10, true);
        assert_eq!(sums(position), [2, 1, 110, 210]);
        moved_to(DESCRIPTOR, 4096);
        has_read(DESCRIPTOR, 100, true);
        has_read_at(DESCRIPTOR, 8193, 100, true);
        assert_eq!(sums(position), [4, 2, 310, 8293]);
        moved(DESCRIPTOR);
        has_read(DESCRIPTOR, 100, true);
        moved_to(DESCRIPTOR, 0);
        has_read(DESCRIPTOR, 100, true);
        assert_eq!(sums(position), [5, 2, 410, 8293]);
        std::thread::spawn(|| has_read(DESCRIPTOR, 100, true)).join().unwrap();
        has_read(DESCRIPTOR, 100, true);
        assert_eq!(sums(position), [5, 2, 410, 8293], "two threads read");
        forget(DESCRIPTOR);
        at_start(DESCRIPTOR);
        shared(DESCRIPTOR);
        moved_to(DESCRIPTOR, 0);
        has_read(DESCRIPTOR, 100, true);
        assert_eq!(sums(position), [0; 4], "duplicated");
    }
}
