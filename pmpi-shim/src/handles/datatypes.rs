//! Sizes of datatypes, cached per thread by handle.
//!
//! MPI is queried only about a datatype that it has accepted and that no other thread can have
//! freed.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::handles::cache::{forget_handles, index_of, is_fresh};
use crate::host::lock::Lock;
use crate::host::own_work::OwnWork;
use crate::mpi::abi;
use crate::mpi::library::{Entry, ask};
use crate::state::thread_block::{CACHED_SIZES, ThreadBlock};

/// Sizes of the program's own committed datatypes, by handle.
static COMMITTED: Lock<Option<HashMap<usize, u64>>> = Lock::new(None);

fn with_committed<T>(work: impl FnOnce(&mut HashMap<usize, u64>) -> T) -> T {
    let mut guard = COMMITTED.lock();
    work(guard.get_or_insert_with(HashMap::new))
}

/// How the size of a datatype may be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// Only from the thread's cache. Before a call MPI may not be queried, because a handle that is
    /// not a datatype would invoke the program's error handler.
    Cached,
    /// From MPI, too. The call with that datatype has succeeded.
    Queried,
}

/// Bytes of one element of a datatype. `None` if only MPI could tell and may not be queried.
/// The caches were refreshed in this call.
#[inline(always)]
pub fn size(block: &ThreadBlock, handle: usize, sizes: Sizes) -> Option<u64> {
    let cached = &block.sizes[index_of(handle, CACHED_SIZES)];
    let (known, size) = cached.get();
    if known == handle && handle != 0 {
        return Some(size);
    }
    if sizes == Sizes::Cached {
        return None;
    }
    let size = find_size(handle, is_fresh(block))?;
    cached.set((handle, size));
    Some(size)
}

/// Finds the size of a datatype that MPI has accepted. If another thread may have freed it since
/// (`fresh` is false), MPI is queried only if it is a predefined one.
#[cold]
#[inline(never)]
fn find_size(handle: usize, fresh: bool) -> Option<u64> {
    let _own = OwnWork::begin();
    let committed = with_committed(|sizes| sizes.get(&handle).copied());
    if committed.is_some() || !(fresh || abi::is_predefined(handle)) {
        return committed;
    }
    Some(query_size(handle))
}

/// Stores the size of a datatype that the program has just committed.
#[cold]
#[inline(never)]
pub fn committed(handle: usize) {
    let _own = OwnWork::begin();
    let size = query_size(handle);
    with_committed(|sizes| sizes.insert(handle, size));
}

/// Forgets a datatype that the program is about to free.
#[cold]
#[inline(never)]
pub fn forget(handle: usize) {
    let _own = OwnWork::begin();
    with_committed(|sizes| sizes.remove(&handle));
    forget_handles();
}

fn query_size(handle: usize) -> u64 {
    if handle == 0 || handle == abi::datatype_null() {
        return 0;
    }
    static TYPE_SIZE: OnceLock<Option<Entry>> = OnceLock::new();
    let mut size = 0i64;
    let entry = *TYPE_SIZE.get_or_init(|| Entry::find(c"PMPI_Type_size_x"));
    // SAFETY: the arguments of MPI_Type_size_x, which writes an MPI_Count of 64 bits.
    if entry.is_some_and(|entry| unsafe { entry.call([handle, &raw mut size as usize]) }) {
        return size.max(0) as u64;
    }
    ask(c"PMPI_Type_size", handle).map_or(0, |size| size.max(0) as u64)
}
