//! Restores MPICH's behaviour for waits for all requests that ignore their statuses.
//!
//! From version 4.2 on, MPICH (and Intel's library from 2021.18 on) frees all requests of an
//! MPI_Waitall with MPI_STATUSES_IGNORE when one of them has failed. Given statuses, it stops at
//! the failed request and leaves those behind it pending. The recorder substitutes statuses of its
//! own where the program ignores them, so after the call it frees the requests that the library
//! would have freed. Persistent requests survive in both cases and cannot be told from others by
//! their handles: if a program ever made one, the recorder leaves the library's result as it is.
//!
//! Only its status tells which message a receive from any source took, so not substituting where an
//! error handler may be set would lose all sources in mpi4py. The requests are freed by
//! MPI_Request_free, which calls no error handler and does not wait; MPI_Wait would call the handler
//! again when a second request has failed.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::mpi::abi;
use crate::mpi::library::{Entry, MpiLibrary};

static FREES_ALL: AtomicBool = AtomicBool::new(false);
static PERSISTENT: AtomicBool = AtomicBool::new(false);

/// Whether a library with this version text frees all requests (MPICH 4.0.3 and 4.1.3 do not;
/// 4.2.3, 4.3.2 and 5.0.2 do, as does Intel's 2021.18).
fn frees_all(version_text: &str) -> bool {
    let at_least = |name: &str, first: (u32, u32)| {
        let rest = version_text.split_once(name)?.1.trim_start();
        let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?) >= first)
    };
    at_least("MPICH Version:", (4, 2)) == Some(true)
        || at_least("Intel(R) MPI Library", (2021, 18)) == Some(true)
}

/// Stores which behaviour the library has.
pub fn set(library: &MpiLibrary) {
    FREES_ALL.store(frees_all(&library.version_text), Relaxed);
}

/// Notes that the program makes a persistent request.
#[inline(always)]
pub fn persistent() {
    PERSISTENT.store(true, Relaxed);
}

/// Whether the program ever made a persistent request. Such a request keeps its handle when it
/// completes.
pub fn knows_persistent() -> bool {
    PERSISTENT.load(Relaxed)
}

/// Whether a wait for all, called with zeroed `statuses` of the recorder's, left requests pending
/// that it would have freed without them.
///
/// # Safety
/// The call has returned. It was given this array of `count` requests and as many statuses.
#[inline(always)]
pub unsafe fn left_pending(array: usize, count: usize, statuses: usize) -> bool {
    // SAFETY: `count` requests and statuses stand there.
    unsafe {
        FREES_ALL.load(Relaxed)
            && count > 0
            && abi::request_key(abi::handle_at(array + (count - 1) * abi::handle_stride())) != 0
            && abi::status_error(statuses + (count - 1) * abi::status_bytes()) != 0
            && !PERSISTENT.load(Relaxed)
    }
}

/// Frees the remaining requests of an array.
///
/// # Safety
/// As for [`left_pending`], which returned true. No other thread uses any of the requests.
#[cold]
#[inline(never)]
pub unsafe fn free_remaining(array: usize, count: usize) {
    let Some(free) = Entry::find(c"PMPI_Request_free") else { return };
    for index in 0..count {
        let request = array + index * abi::handle_stride();
        // SAFETY: one of `count` requests, which no other thread uses.
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
    fn recognises_libraries_that_free_all_requests_by_version() {
        for text in ["MPICH Version:      4.2.3", "MPICH Version:\t5.0.2", "MPICH Version: 4.10.0"]
        {
            assert!(frees_all(text), "{text}");
        }
        assert!(frees_all("Intel(R) MPI Library 2021.18 for Linux* OS"));
        for text in [
            "MPICH Version:      4.1.3",
            "MPICH Version: 4.0.2",
            "Open MPI v5.0.11",
            "",
            "MPICH Version:",
        ] {
            assert!(!frees_all(text), "{text}");
        }
        assert!(!frees_all("Intel(R) MPI Library 2021.9 for Linux* OS"));
    }
}
