//! Reads the process's own memory where it may no longer be what it was, or not be mapped.
//!
//! The kernel copies, and refuses where a load would end the program. Each read is a system call.

use std::ffi::c_void;

/// Copies the bytes at an address. Returns `false` if not all of them can be read. May be called in
/// a signal handler.
pub fn read(address: u64, bytes: &mut [u8]) -> bool {
    let from = libc::iovec { iov_base: address as *mut c_void, iov_len: bytes.len() };
    let to = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: the slice.
    unsafe { read_many(&[from], &[to]) == bytes.len() }
}

/// Copies several blocks with one system call, up to the first that cannot be read as a whole. Returns
/// the number of bytes copied. May be called in a signal handler.
///
/// # Safety
/// `to` are blocks that may be written.
pub unsafe fn read_many(from: &[libc::iovec], to: &[libc::iovec]) -> usize {
    // SAFETY: the kernel writes to `to` only, and checks the other addresses. A thread's id stands
    // for its process.
    let read = unsafe {
        let process = libc::syscall(libc::SYS_gettid);
        libc::syscall(
            libc::SYS_process_vm_readv,
            process,
            to.as_ptr(),
            to.len(),
            from.as_ptr(),
            from.len(),
            0usize,
        )
    };
    usize::try_from(read).unwrap_or(0)
}

/// Whether the system allows such reads; some containers do not.
pub fn is_readable() -> bool {
    let known = 0x5eed_u64;
    let mut bytes = [0; 8];
    read(&raw const known as u64, &mut bytes) && u64::from_ne_bytes(bytes) == known
}

/// A copy of the beginning of an object.
#[derive(Clone, Copy)]
pub struct Copied<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> Copied<BYTES> {
    pub fn new(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }

    /// Copies the first `bytes` of an object; `None` if they cannot be read.
    pub fn read(address: u64, bytes: usize) -> Option<Self> {
        let mut copied = [0; BYTES];
        (address != 0 && read(address, copied.get_mut(..bytes)?)).then_some(Self(copied))
    }

    /// The word at an offset; 0 beyond the copy.
    pub fn word(&self, at: usize) -> u64 {
        let bytes = self.0.get(at..).and_then(<[u8]>::first_chunk::<8>);
        bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }

    /// The half of a word at an offset; 0 beyond the copy.
    pub fn half(&self, at: usize) -> u32 {
        let bytes = self.0.get(at..).and_then(<[u8]>::first_chunk::<4>);
        bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }

    /// The byte at an offset; 0 beyond the copy.
    pub fn byte(&self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;

    use super::*;

    #[test]
    fn unmapped_memory_is_not_read() {
        if !is_readable() {
            return;
        }
        const PAGE: usize = 64 << 10;
        // SAFETY: a mapping of the test's own, whose second half is made unreadable.
        let mapped = unsafe {
            let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let mapped = libc::mmap(null_mut(), 2 * PAGE, access, kind, -1, 0);
            assert_ne!(mapped, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(mapped.byte_add(PAGE), PAGE, libc::PROT_NONE), 0);
            mapped.byte_add(PAGE - 16).cast::<u64>().write(7);
            mapped
        };
        let last = mapped as u64 + PAGE as u64 - 16;
        assert_eq!(Copied::<32>::read(last, 16).map(|copied| copied.word(0)), Some(7));
        assert!(Copied::<32>::read(last, 17).is_none());
        assert!(Copied::<32>::read(8, 8).is_none() && Copied::<32>::read(0, 8).is_none());
        // SAFETY: made above.
        unsafe { libc::munmap(mapped, 2 * PAGE) };
        assert!(Copied::<32>::read(last, 8).is_none());
    }
}
