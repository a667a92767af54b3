//! Finds the functions behind the wrappers.
//!
//! `MPI_X` forwards to the next `MPI_X` in load order, so that another tool sees the call, too;
//! `PMPI_X` forwards to the MPI library. If the library was loaded with RTLD_LOCAL (as Python
//! does), there is no next function in load order; then the loaded objects are searched one by one,
//! by handle. A function in an object that the program closes is looked up again
//! (`closed_objects`).

use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use crate::host::loader::{
    Changes, find, find_in_object, is_loaded, next_in_load_order, object_of,
};
use crate::host::own_work::OwnWork;
use crate::mpi::absent;
use crate::mpi::callers;
use crate::mpi::weak_references;

/// An interposed name and the function behind it. It is resolved at the first call, and again if
/// the object that contains it was closed.
pub struct RealEntry {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
    /// Whether the entry is in the list [`ENTRIES`].
    is_listed: AtomicBool,
    next: AtomicPtr<RealEntry>,
    /// Number of objects ever loaded when no library had the function; 0 before.
    absent_among: AtomicUsize,
    said_absent: AtomicBool,
}

/// Head of the list of entries that were ever resolved.
static ENTRIES: AtomicPtr<RealEntry> = AtomicPtr::new(null_mut());

impl RealEntry {
    /// An entry that has not been resolved yet.
    pub const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            address: AtomicPtr::new(null_mut()),
            is_listed: AtomicBool::new(false),
            next: AtomicPtr::new(null_mut()),
            absent_among: AtomicUsize::new(0),
            said_absent: AtomicBool::new(false),
        }
    }

    /// The function, or its replacement from [`absent`] if no loaded library has it.
    #[inline(always)]
    pub fn get(&'static self) -> *const c_void {
        let address = self.address.load(Relaxed);
        if address.is_null() { self.resolve() } else { address }
    }

    /// The function; null if it has not been resolved.
    #[inline(always)]
    pub fn known(&'static self) -> *const c_void {
        self.address.load(Relaxed)
    }

    /// Like [`RealEntry::get`], for a name that several libraries may define, loaded so that only
    /// their own users see them (plug-ins, Python modules). If the name is not in the global scope,
    /// each caller gets the function that it would get without the recorder.
    #[inline(always)]
    pub fn get_for(&'static self, caller: usize) -> *const c_void {
        let address = self.address.load(Relaxed);
        if address.is_null() { self.resolve_for(caller) } else { address }
    }

    #[cold]
    #[inline(never)]
    fn resolve_for(&'static self, caller: usize) -> *const c_void {
        let key = &raw const *self as usize;
        if let Some(known) = callers::find(key, caller) {
            return known as *const c_void;
        }
        let _own = OwnWork::begin();
        if let Some(address) = next_in_load_order(self.name) {
            return self.keep(address);
        }
        let own = object_of(caller as *const c_void)
            .and_then(|object| CString::new(object).ok())
            .and_then(|object| find_in_object(&object, self.name));
        let Some(address) = own else { return self.resolve() };
        callers::remember(key, caller, address as usize);
        address
    }

    #[cold]
    #[inline(never)]
    fn resolve(&'static self) -> *const c_void {
        let _own = OwnWork::begin();
        // Code that tests for absent procedures does so after the first call of a present one.
        let _ = std::panic::catch_unwind(weak_references::repair);
        // A library loaded later may have what is absent now.
        let loaded = Changes::now().loaded;
        if self.absent_among.load(Relaxed) != loaded || loaded == 0 {
            if let Some(address) = find(self.name) {
                return self.keep(address);
            }
            self.absent_among.store(loaded, Relaxed);
        }
        absent::stand_in(self.name, &self.said_absent)
    }

    fn keep(&'static self, address: *const c_void) -> *const c_void {
        if !self.is_listed.swap(true, AcqRel) {
            let own = (&raw const *self).cast_mut();
            let _ = ENTRIES.fetch_update(AcqRel, Acquire, |first| {
                self.next.store(first, Relaxed);
                Some(own)
            });
        }
        self.address.store(address.cast_mut(), Relaxed);
        address
    }
}

/// Forgets functions in objects that are no longer loaded; with `all`, forgets every function.
pub fn forget_unloaded(all: bool) {
    callers::forget();
    let mut entry = ENTRIES.load(Acquire);
    // SAFETY: listed entries are never moved or dropped.
    while let Some(listed) = unsafe { entry.as_ref() } {
        let address = listed.address.load(Relaxed);
        if all || !is_loaded(address) {
            listed.address.store(null_mut(), Relaxed);
        }
        entry = listed.next.load(Relaxed);
    }
}
