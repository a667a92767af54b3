//! The floor: the minimum cost of recording one call on this machine.
//!
//! It consists of two counter reads and a 32-byte store into a mapped file whose pages were granted
//! and populated before. The file grows by one window at a time. Reserving, mapping and populating
//! a window are outside the timed part, so no iteration faults.

use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};

use crate::blocks::Blocks;
use crate::counter;
use crate::failure::Failure;

/// What is stored for each iteration: the size of one event.
#[repr(C, align(32))]
struct Record {
    begin: u64,
    end: u64,
    number: u64,
    state: u64,
}

const RECORD_BYTES: usize = size_of::<Record>();

/// An unlinked, growing file, and the times of the blocks stored into it.
pub struct Floor {
    file: File,
    path: PathBuf,
    file_bytes: usize,
    window_bytes: usize,
    block_turns: u64,
    blocks: Blocks,
}

impl Floor {
    /// Makes a file in `directory` and unlinks it at once. It is used in `windows` windows of at
    /// least `window_bytes`, each with a whole number of blocks of `block_turns` iterations.
    pub fn new(
        directory: &Path,
        windows: usize,
        window_bytes: usize,
        block_turns: u64,
    ) -> Result<Self, Failure> {
        let path = directory.join(format!("kernels-floor-{}", std::process::id()));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|source| Failure::Floor { doing: "creating", path: path.clone(), source })?;
        fs::remove_file(&path).map_err(|source| Failure::Floor {
            doing: "unlinking",
            path: path.clone(),
            source,
        })?;
        let block_bytes = block_turns as usize * RECORD_BYTES;
        let blocks_per_window = window_bytes.div_ceil(block_bytes).max(1);
        // The offset of a mapping must be a multiple of the page size, at most 64 KiB on Linux's
        // targets.
        let window_bytes = (blocks_per_window * block_bytes).next_multiple_of(64 << 10);
        let blocks = Blocks::with_capacity(windows * blocks_per_window, block_turns);
        Ok(Self { file, path, file_bytes: 0, window_bytes, block_turns, blocks })
    }

    /// Size of one window in bytes, rounded up to whole blocks and pages.
    pub fn window_bytes(&self) -> usize {
        self.window_bytes
    }

    /// Times `windows` more windows.
    pub fn measure(&mut self, windows: usize) -> Result<(), Failure> {
        for _ in 0..windows {
            let window = self.next_window()?;
            let records = window.records();
            let blocks = window.bytes / (self.block_turns as usize * RECORD_BYTES);
            for block in 0..blocks {
                // SAFETY: guaranteed here: `blocks * block_turns` records fit the window (line above).
                let first = unsafe { records.add(block * self.block_turns as usize) };
                self.blocks.time(self.block_turns, |number| {
                    let begin = counter::read();
                    let end = counter::read();
                    let record = Record { begin, end, number, state: 1 };
                    // SAFETY: guaranteed here: `number` is below `block_turns`, so the record lies
                    // in the window, which is mapped writable, granted by the file system and
                    // aligned.
                    unsafe { first.add(number as usize).write(record) };
                });
                black_box(first);
            }
        }
        Ok(())
    }

    /// All blocks measured so far.
    pub fn into_blocks(self) -> Blocks {
        self.blocks
    }

    /// Grows the file by one window, maps it and makes its pages present and writable.
    fn next_window(&mut self) -> Result<Window, Failure> {
        let failure = |doing, source| Failure::Floor { doing, path: self.path.clone(), source };
        let offset = self.file_bytes as libc::off_t;
        let bytes = self.window_bytes;
        // SAFETY: guaranteed here: the descriptor is open for writing as long as `self.file` lives.
        let granted =
            unsafe { libc::posix_fallocate(self.file.as_raw_fd(), offset, bytes as libc::off_t) };
        if granted != 0 {
            return Err(failure("reserving space in", io::Error::from_raw_os_error(granted)));
        }
        let window = Window::map(&self.file, offset, bytes).map_err(|e| failure("mapping", e))?;
        window.populate().map_err(|e| failure("populating", e))?;
        self.file_bytes += bytes;
        Ok(window)
    }
}

/// One mapped range of the file, unmapped when dropped.
struct Window {
    start: NonNull<libc::c_void>,
    bytes: usize,
}

impl Window {
    fn map(file: &File, offset: libc::off_t, bytes: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: guaranteed here: a new mapping at an address chosen by the kernel affects nobody.
        // Nobody else knows the unlinked file, so it cannot shrink beneath the mapping.
        let start = unsafe {
            let (fd, flags) = (file.as_raw_fd(), libc::MAP_SHARED);
            libc::mmap(ptr::null_mut(), bytes, protection, flags, fd, offset)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    fn records(&self) -> *mut Record {
        self.start.as_ptr().cast()
    }

    /// Populates the window by MADV_POPULATE_WRITE or, on kernels before 5.14, by touching each
    /// page.
    fn populate(&self) -> io::Result<()> {
        const MADV_POPULATE_WRITE: libc::c_int = 23;
        // SAFETY: guaranteed here: the range is exactly this mapping, and populating keeps its contents.
        if unsafe { libc::madvise(self.start.as_ptr(), self.bytes, MADV_POPULATE_WRITE) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) {
            return Err(error);
        }
        for offset in (0..self.bytes).step_by(4096) {
            // SAFETY: guaranteed here: the offset lies in the mapping, whose blocks posix_fallocate granted.
            unsafe { self.start.as_ptr().cast::<u8>().add(offset).write_volatile(0) };
        }
        Ok(())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: guaranteed here: mapped by `map`, and no pointer into it outlives the window.
        unsafe { libc::munmap(self.start.as_ptr(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_hold_whole_blocks_and_leave_no_file_behind() {
        let directory = std::env::temp_dir();
        let mut floor = Floor::new(&directory, 3, 100_000, 1_000).expect("a writable directory");
        assert!(!floor.path.exists());
        assert_eq!(floor.window_bytes() % (64 << 10), 0);
        floor.measure(3).expect("room for three windows");
        let summary = floor.into_blocks().summary(1.0);
        assert_eq!((summary.block_calls, summary.blocks), (1_000, 12));
        assert!(summary.median_ns > 0.0);
    }

    #[test]
    fn names_missing_directory() {
        let failure = Floor::new(Path::new("/nonexistent"), 1, 4096, 10).err().expect("a failure");
        let text = failure.to_string();
        assert!(text.contains("/nonexistent") && text.contains("--floor-dir"), "{text}");
    }
}
