//! Numbers the call paths. Each is written to the trace once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use trace_format::header::Definition;

use crate::store::trace_file::define;

/// Maximum number of paths in a process. Calls on further paths have only a call site.
const MAX_PATHS: usize = 1 << 16;

static NUMBERS: Mutex<Option<HashMap<Box<[u64]>, u32>>> = Mutex::new(None);

/// The number of a path (return addresses, innermost first). A new path is written to the trace.
/// `None` if there are too many paths or no space.
pub fn number_of(path: &[u64]) -> Option<u32> {
    let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    let numbers = numbers.get_or_insert_default();
    if let Some(&number) = numbers.get(path) {
        return Some(number);
    }
    let number = numbers.len() as u32;
    if numbers.len() >= MAX_PATHS {
        return None;
    }
    define(&Definition::Path { number, addresses: path.to_vec() }).ok()?;
    numbers.insert(path.into(), number);
    Some(number)
}
