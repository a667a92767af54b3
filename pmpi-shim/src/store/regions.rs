//! Names of regions: their ids, and which of them are computation. A table that is read without locks.

use std::ffi::{CStr, c_char};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use trace_format::header::Definition;

use crate::host::own_work::OwnWork;
use crate::store::trace_file::define;

/// Places for names; a program with more regions has the rest under one name.
const MOST_REGIONS: usize = 1024;
/// Name of the regions that found no place; its id is the table's last.
const MORE_REGIONS: &CStr = c"(more regions)";

/// One name: its hash, 0 in a free place, stored after the name.
struct Name {
    hash: AtomicU64,
    name: AtomicPtr<c_char>,
}

static NAMES: [Name; MOST_REGIONS] =
    [const { Name { hash: AtomicU64::new(0), name: AtomicPtr::new(null_mut()) } }; MOST_REGIONS];
static INSERTING: Mutex<()> = Mutex::new(());

/// Names that `--compute regions=NAME,…` gives; none where every region counts.
static CHOSEN_NAMES: OnceLock<Vec<String>> = OnceLock::new();
/// Whether each region is computation.
static COMPUTES: [AtomicBool; MOST_REGIONS] = [const { AtomicBool::new(true) }; MOST_REGIONS];

/// Chooses the regions that are computation, before any begins.
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

/// The place of a name, or the first free one on its way; the last place is never given.
fn place_of(name: &CStr, hash: u64) -> Option<(usize, bool)> {
    let places = MOST_REGIONS - 1;
    (0..places).map(|step| (hash as usize).wrapping_add(step) % places).find_map(|place| {
        let held = NAMES[place].hash.load(Ordering::Acquire);
        if held == 0 {
            return Some((place, false));
        }
        let there = NAMES[place].name.load(Ordering::Relaxed);
        // SAFETY: a stored hash means a stored name, a leaked C string.
        (held == hash && unsafe { CStr::from_ptr(there) } == name).then_some((place, true))
    })
}

/// Id of a region by its name; defines it in the trace when it is new.
pub fn id_of(name: &CStr) -> u32 {
    let hash = hash_of(name);
    match place_of(name, hash) {
        Some((place, true)) => place as u32,
        found => insert(name, hash, found.is_none()),
    }
}

#[cold]
fn insert(name: &CStr, hash: u64, full: bool) -> u32 {
    let _own = OwnWork::begin();
    let _guard = INSERTING.lock().unwrap_or_else(PoisonError::into_inner);
    let (place, name) = match place_of(name, hash) {
        Some((place, true)) => return place as u32,
        Some((place, false)) if !full => (place, name),
        _ => (MOST_REGIONS - 1, MORE_REGIONS),
    };
    let entry = &NAMES[place];
    if entry.hash.load(Ordering::Acquire) == 0 {
        entry.name.store(name.to_owned().into_raw(), Ordering::Relaxed);
        entry.hash.store(hash, Ordering::Release);
        let name = name.to_string_lossy().into_owned();
        let chosen = CHOSEN_NAMES.get().is_none_or(|names| names.contains(&name));
        COMPUTES[place].store(chosen, Ordering::Relaxed);
        let _ = define(&Definition::Region { id: place as u32, name });
    }
    place as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ffi::CString;

    use super::*;

    // One test for all: the table is the process's.
    #[test]
    fn names_have_ids_and_those_without_a_place_share_one() {
        choose("regions=solve,more");
        let solve = id_of(c"solve");
        assert_eq!(id_of(c"solve"), solve);
        let other = id_of(c"other");
        assert_ne!(other, solve);
        assert!(computes(solve as i32) && !computes(other as i32));
        assert!(computes(-1) && computes(i32::MAX), "what is not in the table is not left out");
        let name = |number: usize| CString::new(format!("region {number}")).unwrap();
        let ids: Vec<u32> = (0..MOST_REGIONS).map(|number| id_of(&name(number))).collect();
        let distinct: BTreeSet<&u32> = ids.iter().collect();
        assert_eq!(distinct.len(), MOST_REGIONS - 2, "two places were taken; the last is shared");
        assert_eq!(ids.last(), Some(&(MOST_REGIONS as u32 - 1)));
        assert_eq!((id_of(&name(0)), id_of(c"solve")), (ids[0], solve));
    }
}
