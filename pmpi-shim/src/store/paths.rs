//! Numbers the call paths. Each is written to the trace once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use trace_format::header::Definition;

use crate::host::lock::Lock;
use crate::store::trace_file::define;

/// Maximum number of paths in a process. Calls on further paths have only a call site.
const MAX_PATHS: u32 = 1 << 16;

/// The paths of the code that is loaded now.
static NUMBERS: Lock<Option<HashMap<Box<[u64]>, u32>>> = Lock::new(None);
/// The next number.
static NEXT: AtomicU32 = AtomicU32::new(0);
/// Whether libraries were closed since a path was numbered.
static STALE: AtomicBool = AtomicBool::new(false);

/// Must be called when libraries were closed: the same addresses may be other code now.
pub fn forget_unloaded() {
    STALE.store(true, Relaxed);
}

/// The number of a path (return addresses, innermost first). A new path is written to the trace.
/// `None` if there are too many paths or no space.
pub fn number_of(path: &[u64]) -> Option<u32> {
    let mut numbers = NUMBERS.lock();
    let numbers = numbers.get_or_insert_default();
    if STALE.swap(false, Relaxed) {
        numbers.clear();
    }
    if let Some(&number) = numbers.get(path) {
        return Some(number);
    }
    let number = NEXT.load(Relaxed);
    if number >= MAX_PATHS {
        return None;
    }
    define(&Definition::Path { number, addresses: path.to_vec() }).ok()?;
    NEXT.store(number + 1, Relaxed);
    numbers.insert(path.into(), number);
    Some(number)
}
