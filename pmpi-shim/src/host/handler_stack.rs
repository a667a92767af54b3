//! A stack for a signal handler.
//!
//! Frame and handler would not fit on the alternate stack that Rust and others give their threads.

use std::ptr::null_mut;

/// Size of a handler's stack in bytes; it needs about 20 kB.
const STACK_BYTES: usize = 64 << 10;
/// Size of the page below it, which must not be touched; the largest in use.
const GUARD_BYTES: usize = 64 << 10;

/// Memory for a handler's stack; returns its end.
pub fn make() -> Result<*mut u8, String> {
    let bytes = GUARD_BYTES + STACK_BYTES;
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
    );
    // SAFETY: creates a new mapping, and protects a part of it.
    unsafe {
        let mapping = libc::mmap(null_mut(), bytes, access, kind, -1, 0);
        if mapping == libc::MAP_FAILED || libc::mprotect(mapping, GUARD_BYTES, libc::PROT_NONE) != 0
        {
            return Err("no memory for a signal handler's stack".to_owned());
        }
        Ok(mapping.cast::<u8>().add(bytes))
    }
}
