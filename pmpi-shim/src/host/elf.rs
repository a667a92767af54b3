//! Objects that the loader has mapped, and their symbols, read from their own tables.
//!
//! In a forked child another thread of the parent may have held the loader's locks, which nobody releases there. So the
//! child finds functions by itself ([`function`]), as the loader does when it binds a call for the first time. (System V
//! gABI, "Dynamic Linking"; the hash table is GNU's.)

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// Elf64_Sym.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Symbol {
    pub name: u32,
    pub info: u8,
    pub other: u8,
    pub section: u16,
    pub value: u64,
    pub size: u64,
}

/// Elf64_Dyn.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dynamic {
    pub tag: i64,
    pub value: u64,
}

pub const DT_NULL: i64 = 0;
pub const DT_STRTAB: i64 = 5;
pub const DT_SYMTAB: i64 = 6;
const DT_HASH: i64 = 4;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const STT_OBJECT: u8 = 1;
const STT_FUNC: u8 = 2;
const RTLD_DI_LINKMAP: c_int = 2;
/// Ends the walk if the parent's other thread was changing the list when the process forked.
const MAX_OBJECTS: usize = 1 << 16;

/// The public part of the loader's record of an object (`link.h`).
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const Dynamic,
    next: *mut LinkMap,
    previous: *mut LinkMap,
}

/// The loader's record of the program, the first of its list.
static FIRST: AtomicPtr<LinkMap> = AtomicPtr::new(null_mut());
/// Where this library is mapped.
static OWN_BASE: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    fn dlinfo(handle: *mut c_void, request: c_int, info: *mut c_void) -> c_int;
}

/// Remembers where the loader's list of objects begins. Called inside the loader's gate, in a process that may fork.
pub fn know_objects(own_base: usize) {
    let mut first: *mut LinkMap = null_mut();
    // SAFETY: without a name, `dlopen` gives a handle of the program, whose record is never removed. `dlinfo` writes the
    // record's address.
    unsafe {
        let program = libc::dlopen(std::ptr::null(), libc::RTLD_LAZY);
        if !program.is_null() {
            dlinfo(program, RTLD_DI_LINKMAP, (&raw mut first).cast());
            libc::dlclose(program);
        }
    }
    OWN_BASE.store(own_base, Relaxed);
    FIRST.store(first, Relaxed);
}

/// The function of this name behind ours in load order, otherwise that of an object before ours. Takes no lock.
pub fn function(name: &CStr) -> Option<*const c_void> {
    let own_base = OWN_BASE.load(Relaxed);
    let (mut object, mut is_behind_ours, mut before) = (FIRST.load(Relaxed), false, None);
    for _ in 0..MAX_OBJECTS {
        // SAFETY: records of the loader's list. The process has one thread, which is here, so none is removed meanwhile.
        let Some(LinkMap { base, dynamic, next, .. }) = (unsafe { object.as_ref() }) else { break };
        if *base == own_base {
            is_behind_ours = true;
        } else if !dynamic.is_null() {
            // SAFETY: the dynamic section of an object that is loaded at `base`.
            let found = unsafe { symbol_of(*dynamic, *base, name, &[STT_FUNC]) };
            if is_behind_ours && found.is_some() {
                return found;
            }
            before = before.or(found);
        }
        object = *next;
    }
    before
}

/// The function or variable of this name that an object defines.
///
/// # Safety
/// `entry` is the dynamic section of an object loaded at `base`.
pub unsafe fn defined_in(entry: *const Dynamic, base: usize, name: &CStr) -> Option<*const c_void> {
    // SAFETY: as promised.
    unsafe { symbol_of(entry, base, name, &[STT_OBJECT, STT_FUNC]) }
}

/// The symbol of this name and of one of these kinds that an object defines.
///
/// # Safety
/// `entry` is the dynamic section of an object loaded at `base`.
unsafe fn symbol_of(
    mut entry: *const Dynamic,
    base: usize,
    name: &CStr,
    kinds: &[u8],
) -> Option<*const c_void> {
    let (mut symbols, mut strings, mut gnu, mut system_v) = (0, 0, 0, 0);
    // SAFETY: a loaded object's section, which ends with DT_NULL.
    unsafe {
        while (*entry).tag != DT_NULL {
            // glibc has relocated these addresses in place, except in sections that are read-only.
            let value = (*entry).value as usize;
            let address = if value < base { base + value } else { value };
            match (*entry).tag {
                DT_SYMTAB => symbols = address,
                DT_STRTAB => strings = address,
                DT_GNU_HASH => gnu = address,
                DT_HASH => system_v = address,
                _ => {}
            }
            entry = entry.add(1);
        }
    }
    if symbols == 0 || strings == 0 {
        return None;
    }
    let matching = |index: u32| {
        // SAFETY: an index of the object's own hash table, whose names are C strings.
        unsafe {
            let symbol = *(symbols as *const Symbol).add(index as usize);
            let own = CStr::from_ptr((strings + symbol.name as usize) as *const c_char);
            let is_defined = kinds.contains(&(symbol.info & 0xf)) && symbol.section != 0;
            (is_defined && own == name).then(|| (base + symbol.value as usize) as *const c_void)
        }
    };
    // SAFETY: the tables of the object's own dynamic section.
    unsafe {
        match (gnu, system_v) {
            (0, 0) => None,
            // Number of buckets, number of symbols.
            (0, table) => (0..*(table as *const u32).add(1)).find_map(matching),
            (table, _) => in_chain(table as *const u32, name).find_map(matching),
        }
    }
}

/// Indices of the symbols in the chain of a name's hash.
///
/// # Safety
/// `table` is the GNU hash table of a loaded object.
unsafe fn in_chain(table: *const u32, name: &CStr) -> impl Iterator<Item = u32> {
    let hash = name
        .to_bytes()
        .iter()
        .fold(5381u32, |h, byte| h.wrapping_mul(33).wrapping_add(u32::from(*byte)));
    // SAFETY: a loaded object's table. The header is four words; then come the filter's words of 64
    // bits, the buckets, and a hash for each symbol from `first` on, whose lowest bit ends a chain.
    unsafe {
        let [buckets, first, filter] = [0, 1, 2].map(|index| *table.add(index));
        let bucket = table.add(4 + 2 * filter as usize);
        let chains = bucket.add(buckets as usize);
        let start = if buckets == 0 { 0 } else { *bucket.add((hash % buckets) as usize) };
        let mut next = (start >= first && start != 0).then_some(start);
        std::iter::from_fn(move || {
            let index = next?;
            let ends = *chains.add((index - first) as usize) & 1 == 1;
            next = (!ends).then_some(index + 1);
            Some(index)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_functions_that_the_loader_finds() {
        know_objects(0);
        for name in [c"getppid", c"malloc", c"dlsym"] {
            // SAFETY: a C string.
            let there = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            assert_eq!(function(name), Some(there.cast_const()), "{name:?}");
        }
        assert_eq!(function(c"no_function_has_this_name"), None);
    }
}
