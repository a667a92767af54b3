//! The stack that a thread was started with.
//!
//! `pthread_getattr_np` would tell, but it allocates, and a signal handler that calls MPI may have
//! interrupted `malloc`. So the list of mappings is read, with system calls only.

use std::ops::Range;

use crate::host::own_work::OwnWork;
use crate::state::thread_block::ThreadBlock;

const LIST: &std::ffi::CStr = c"/proc/self/maps";

/// The stack that the thread was started with, found at the first need.
pub fn range(block: &ThreadBlock) -> Range<usize> {
    let (begin, end) = block.own_stack.get();
    if begin != end {
        return begin..end;
    }
    let _own = OwnWork::begin();
    let stack = find();
    block.own_stack.set((stack.start, stack.end));
    stack
}

/// Addresses of the stack that the calling thread was started with; mapped as long as the thread
/// lives. Empty if the kernel does not tell. Takes no lock and allocates nothing.
pub fn find() -> Range<usize> {
    // SAFETY: system calls without pointers; the process's auxiliary vector.
    let (is_first, first_stack, own) = unsafe {
        let is_first = libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid());
        // The executable's name is above the first frame of the first stack. The descriptor of
        // every other thread is above its stack.
        (is_first, libc::getauxval(libc::AT_EXECFN) as usize, libc::pthread_self() as usize)
    };
    let top = if is_first { first_stack } else { own };
    let most = stack_limit();
    let Some((mapping, below)) = mapping_of(top) else { return 0..0 };
    // The first stack grows down to its limit. If the kernel merged mappings, nothing beyond the
    // limit is taken.
    let lowest = top.saturating_sub(most);
    let lowest = if is_first { lowest.max(below) } else { lowest.max(mapping.start) };
    lowest..top
}

/// Maximum size of a stack in bytes, according to the process's limit.
fn stack_limit() -> usize {
    /// Used if there is no limit: less than any thread's default.
    const UNLIMITED: usize = 2 << 20;
    // SAFETY: a zeroed limit may be written over.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        let known = libc::getrlimit(libc::RLIMIT_STACK, &mut limit) == 0;
        let limited = known && limit.rlim_cur != libc::RLIM_INFINITY;
        if limited { limit.rlim_cur as usize } else { UNLIMITED }
    }
}

/// The mapping that holds an address, and the end of the one below it.
fn mapping_of(address: usize) -> Option<(Range<usize>, usize)> {
    // SAFETY: the path ends with a null byte; the buffer is this frame's; the descriptor is closed
    // here. (Plain system calls are used because the C library's functions are cancellation
    // points.)
    unsafe {
        let file = libc::syscall(
            libc::SYS_openat,
            libc::AT_FDCWD,
            LIST.as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
        );
        if file < 0 {
            return None;
        }
        let mut lines = Lines::new(address);
        let mut bytes = [0u8; 512];
        let mut found = None;
        while found.is_none() {
            let count = libc::syscall(libc::SYS_read, file, bytes.as_mut_ptr(), bytes.len());
            if count <= 0 {
                break;
            }
            found = bytes[..count as usize].iter().find_map(|&byte| lines.take(byte));
        }
        libc::syscall(libc::SYS_close, file);
        found
    }
}

/// Parses lines `begin-end …` byte by byte.
struct Lines {
    address: usize,
    /// The line's numbers so far, and the index of the one being read; 2: the rest of the line.
    numbers: [usize; 2],
    at: usize,
    /// End of the mapping on the line before.
    below: usize,
}

impl Lines {
    fn new(address: usize) -> Self {
        Self { address, numbers: [0; 2], at: 0, below: 0 }
    }

    /// Returns the mapping that holds the address once both of its numbers are read.
    fn take(&mut self, byte: u8) -> Option<(Range<usize>, usize)> {
        match (byte, self.at) {
            (b'\n', _) => {
                self.below = self.numbers[1];
                (self.numbers, self.at) = ([0; 2], 0);
            }
            (_, 2) => {}
            (b'-', 0) => self.at = 1,
            (b' ', 1) => {
                self.at = 2;
                let mapping = self.numbers[0]..self.numbers[1];
                return mapping.contains(&self.address).then_some((mapping, self.below));
            }
            (digit, at) => {
                let digit = char::from(digit).to_digit(16).unwrap_or(0) as usize;
                self.numbers[at] = self.numbers[at] << 4 | digit;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(text: &str, address: usize) -> Option<(Range<usize>, usize)> {
        let mut lines = Lines::new(address);
        text.bytes().find_map(|byte| lines.take(byte))
    }

    #[test]
    fn finds_mapping_and_end_of_the_one_below() {
        let text =
            "1000-3000 r-xp 0 fd:00 1-2 /usr/bin/a-b c\n7f00-7f80 rw-p 0\n7fff0-80000 rw-p 0\n";
        assert_eq!(mapping(text, 0x1000), Some((0x1000..0x3000, 0)));
        assert_eq!(mapping(text, 0x7f7f), Some((0x7f00..0x7f80, 0x3000)));
        assert_eq!(mapping(text, 0x7fff0), Some((0x7fff0..0x80000, 0x7f80)));
        assert_eq!(mapping(text, 0x7f80), None);
        assert_eq!(mapping("", 1), None);
    }

    #[test]
    fn stack_of_thread_contains_its_frames() {
        let inside = || {
            let (here, stack) = (0u8, find());
            assert!(stack.contains(&(&raw const here as usize)), "{stack:x?}");
            stack
        };
        let outer = inside();
        let inner = std::thread::spawn(inside).join().expect("the thread asserts");
        assert!(inner.end <= outer.start || outer.end <= inner.start, "{outer:x?} {inner:x?}");
        let large = std::thread::Builder::new().stack_size(64 << 20).spawn(inside);
        large.expect("64 MiB").join().expect("the thread asserts");
    }
}
