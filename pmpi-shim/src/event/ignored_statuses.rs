//! What MPICH does otherwise where a wait for all ignores its statuses.
//!
//! From MPICH 4.2 on (and Intel's library of today) MPI_Waitall with MPI_STATUSES_IGNORE gives up every
//! request when one of them has failed; given statuses, it stops there and leaves those behind the
//! failed one pending. Statuses of ours stand where the program ignores them, so what the
//! library alone would have given up is given up after the call. Persistent requests stay in both cases, and cannot be told
//! from others by their handles: a program that ever made one is left with what the library did.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::mpi::abi;
use crate::mpi::library::{Entry, MpiLibrary};

static GIVES_UP_ALL: AtomicBool = AtomicBool::new(false);
static PERSISTENT: AtomicBool = AtomicBool::new(false);

/// Whether a library with this version text gives up all requests (MPICH 4.0.3 and 4.1.3 do not, 4.2.3,
/// 4.3.2 and 5.0.2 do, and Intel's 2021.18).
fn gives_up_all(version_text: &str) -> bool {
    let at_least = |name: &str, first: (u32, u32)| {
        let rest = version_text.split_once(name)?.1.trim_start();
        let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?) >= first)
    };
    at_least("MPICH Version:", (4, 2)) == Some(true)
        || at_least("Intel(R) MPI Library", (2021, 18)) == Some(true)
}

/// Takes over what the library is.
pub fn set(library: &MpiLibrary) {
    GIVES_UP_ALL.store(gives_up_all(&library.version_text), Relaxed);
}

/// Notes that the program makes a persistent request.
#[inline(always)]
pub fn persistent() {
    PERSISTENT.store(true, Relaxed);
}

/// Whether the program ever made a persistent request: such a one keeps its handle when it completes.
pub fn knows_persistent() -> bool {
    PERSISTENT.load(Relaxed)
}

/// Whether a wait for all, given `statuses` of ours that were zeroed, has left requests pending that it
/// would have given up without them.
///
/// # Safety
/// The call has returned; it was given this array of `count` requests and as many statuses.
#[inline(always)]
pub unsafe fn left_pending(array: usize, count: usize, statuses: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        GIVES_UP_ALL.load(Relaxed)
            && count > 0
            && abi::request_key(abi::handle_at(array + (count - 1) * abi::handle_stride())) != 0
            && abi::status_error(statuses + (count - 1) * abi::status_bytes()) != 0
            && !PERSISTENT.load(Relaxed)
    }
}

/// Gives up the requests of an array that are left.
///
/// # Safety
/// As [`left_pending`], which has said so; none of them is used by another thread.
#[cold]
#[inline(never)]
pub unsafe fn give_up(array: usize, count: usize) {
    let Some(free) = Entry::of(c"PMPI_Request_free") else { return };
    for index in 0..count {
        let request = array + index * abi::handle_stride();
        // SAFETY: the caller's promise.
        unsafe {
            if abi::request_key(abi::handle_at(request)) != 0 {
                free.call([request]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_that_give_up_all_requests_are_known_by_their_version() {
        for text in ["MPICH Version:      4.2.3", "MPICH Version:\t5.0.2", "MPICH Version: 4.10.0"]
        {
            assert!(gives_up_all(text), "{text}");
        }
        assert!(gives_up_all("Intel(R) MPI Library 2021.18 for Linux* OS"));
        for text in [
            "MPICH Version:      4.1.3",
            "MPICH Version: 4.0.2",
            "Open MPI v5.0.11",
            "",
            "MPICH Version:",
        ] {
            assert!(!gives_up_all(text), "{text}");
        }
        assert!(!gives_up_all("Intel(R) MPI Library 2021.9 for Linux* OS"));
    }
}
