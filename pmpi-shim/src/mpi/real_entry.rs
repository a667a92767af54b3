//! The way to the functions that ours stand in front of.
//!
//! `MPI_X` goes to the next `MPI_X` in load order, so that another tool sees the call too; `PMPI_X`
//! to the MPI library. Where the library was loaded with RTLD_LOCAL (Python), the next in load order
//! does not exist: then the loaded objects are asked one by one, by handle. What lies in an object that the
//! program closes is looked for again (`closed_objects`).

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

/// An interposed name and the function behind it, resolved at the first call, and again when the object
/// that it lies in was closed.
pub struct RealEntry {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
    /// Whether it is among [`ENTRIES`].
    is_listed: AtomicBool,
    next: AtomicPtr<RealEntry>,
    /// Objects ever loaded when no library had it; 0 before.
    absent_among: AtomicUsize,
    said_absent: AtomicBool,
}

/// The entries that were ever resolved; the first of a list.
static ENTRIES: AtomicPtr<RealEntry> = AtomicPtr::new(null_mut());

impl RealEntry {
    /// An entry that is not resolved yet.
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

    /// The function; what [`absent`] has in its place when no loaded library has it.
    #[inline(always)]
    pub fn get(&'static self) -> *const c_void {
        let address = self.address.load(Relaxed);
        if address.is_null() { self.resolve() } else { address }
    }

    /// The function, null where it is not known yet.
    #[inline(always)]
    pub fn known(&'static self) -> *const c_void {
        self.address.load(Relaxed)
    }

    /// As [`RealEntry::get`], for a name that several libraries may have, loaded so that only their own
    /// users see them (plug-ins, Python modules): where the name is not in the global scope, each
    /// caller gets what it would get if the recorder were not loaded.
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
        // A caller's code asks for absent procedures after the first call of a present one.
        let _ = std::panic::catch_unwind(weak_references::repair);
        // A library that is loaded later may have what is absent now.
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

/// Forgets what lay in objects that are not loaded any more; `all` forgets every function.
pub fn forget_unloaded(all: bool) {
    callers::forget();
    let mut entry = ENTRIES.load(Acquire);
    // SAFETY: the list is made of entries that are never moved or dropped.
    while let Some(listed) = unsafe { entry.as_ref() } {
        let address = listed.address.load(Relaxed);
        if all || !is_loaded(address) {
            listed.address.store(null_mut(), Relaxed);
        }
        entry = listed.next.load(Relaxed);
    }
}
