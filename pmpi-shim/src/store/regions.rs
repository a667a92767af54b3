//! Names of regions: their ids, and which of them count as computation. The table is read without
//! locks.

use std::ffi::{CStr, c_char};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use trace_format::header::Definition;

use crate::host::lock::Lock;
use crate::host::own_work::OwnWork;
use crate::store::trace_file::define;

/// Capacity of the table. A program with more regions has the rest under one name.
const MAX_REGIONS: usize = 1024;
/// Name of the regions that do not fit. Its id is the table's last.
const MORE_REGIONS: &CStr = c"(more regions)";

/// One name and its hash. The hash is 0 in a free entry and is stored after the name.
struct Name {
    hash: AtomicU64,
    name: AtomicPtr<c_char>,
}

static NAMES: [Name; MAX_REGIONS] =
    [const { Name { hash: AtomicU64::new(0), name: AtomicPtr::new(null_mut()) } }; MAX_REGIONS];
static INSERTING: Lock<()> = Lock::new(());

/// Names given by `--compute regions=NAME,…`; none if every region counts.
static CHOSEN_NAMES: OnceLock<Vec<String>> = OnceLock::new();
/// Whether each region is computation.
static COMPUTES: [AtomicBool; MAX_REGIONS] = [const { AtomicBool::new(true) }; MAX_REGIONS];

/// Chooses the regions that count as computation, before any begins.
pub fn choose(compute: &str) {
    if let Some(names) = compute.strip_prefix("regions=") {
        let _ = CHOSEN_NAMES.set(names.split(',').map(str::to_owned).collect());
    }
}

/// Whether a region's time is computation with `--compute regions`.
pub fn computes(id: i32) -> bool {
    usize::try_from(id)
        .ok()
        .and_then(|id| COMPUTES.get(id))
        .is_none_or(|computes| computes.load(Ordering::Relaxed))
}

fn hash_of(name: &CStr) -> u64 {
    let hash = name.to_bytes().iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash | 1
}

/// Index of a name and whether it is there; otherwise that of the first free entry. The last entry
/// is never given out.
fn index_of(name: &CStr, hash: u64) -> Option<(usize, bool)> {
    let entries = MAX_REGIONS - 1;
    (0..entries).map(|step| (hash as usize).wrapping_add(step) % entries).find_map(|index| {
        let held = NAMES[index].hash.load(Ordering::Acquire);
        if held == 0 {
            return Some((index, false));
        }
        let there = NAMES[index].name.load(Ordering::Relaxed);
        // SAFETY: if the hash is stored, so is the name, a leaked C string.
        (held == hash && unsafe { CStr::from_ptr(there) } == name).then_some((index, true))
    })
}

/// Id of a region by its name. A new one is defined in the trace.
pub fn id_of(name: &CStr) -> u32 {
    let hash = hash_of(name);
    match index_of(name, hash) {
        Some((index, true)) => index as u32,
        found => insert(name, hash, found.is_none()),
    }
}

#[cold]
fn insert(name: &CStr, hash: u64, full: bool) -> u32 {
    let _own = OwnWork::begin();
    let _guard = INSERTING.lock();
    let (index, name) = match index_of(name, hash) {
        Some((index, true)) => return index as u32,
        Some((index, false)) if !full => (index, name),
        _ => (MAX_REGIONS - 1, MORE_REGIONS),
    };
    let entry = &NAMES[index];
    if entry.hash.load(Ordering::Acquire) == 0 {
        entry.name.store(name.to_owned().into_raw(), Ordering::Relaxed);
        entry.hash.store(hash, Ordering::Release);
        let name = name.to_string_lossy().into_owned();
        let chosen = CHOSEN_NAMES.get().is_none_or(|names| names.contains(&name));
        COMPUTES[index].store(chosen, Ordering::Relaxed);
        let _ = define(&Definition::Region { id: index as u32, name });
    }
    index as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ffi::CString;

    use super::*;

    // A single test, because the table is a global of the process.
    #[test]
    fn gives_names_ids_and_those_beyond_capacity_a_shared_one() {
        choose("regions=solve,more");
        let solve = id_of(c"solve");
        assert_eq!(id_of(c"solve"), solve);
        let other = id_of(c"other");
        assert_ne!(other, solve);
        assert!(computes(solve as i32) && !computes(other as i32));
        assert!(computes(-1) && computes(i32::MAX), "regions outside the table count");
        let name = |number: usize| CString::new(format!("region {number}")).unwrap();
        let ids: Vec<u32> = (0..MAX_REGIONS).map(|number| id_of(&name(number))).collect();
        let distinct: BTreeSet<&u32> = ids.iter().collect();
        assert_eq!(distinct.len(), MAX_REGIONS - 2, "two entries were taken; the last is shared");
        assert_eq!(ids.last(), Some(&(MAX_REGIONS as u32 - 1)));
        assert_eq!((id_of(&name(0)), id_of(c"solve")), (ids[0], solve));
    }
}
