//! The way to the functions that ours stand in front of.
//!
//! `MPI_X` goes to the next `MPI_X` in load order, so that another tool sees the call too; `PMPI_X`
//! to the MPI library. Where the library was loaded with RTLD_LOCAL (Python), the next in load order
//! does not exist: then the loaded objects are asked one by one, by handle. What lies in an object that the
//! program closes is looked for again (`closed_objects`).

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use trace_format::markers::ToolReason;

use crate::absent;
use crate::callers;
use crate::counter;
use crate::life;
use crate::path::make_room;
use crate::thread_block::ThreadBlock;
use crate::weak_references::{self, Changes};
use crate::window;

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

    /// As [`RealEntry::get`] for an outermost call that is about to take its slot: looking for the function
    /// is the tool's time.
    ///
    /// # Safety
    /// `block` is the calling thread's; its call is open and has no slot yet.
    #[inline(always)]
    pub unsafe fn get_outermost(&'static self, block: *mut ThreadBlock) -> *const c_void {
        let address = self.address.load(Relaxed);
        // SAFETY: the caller's promise.
        if address.is_null() { unsafe { self.resolve_outermost(block) } } else { address }
    }

    #[cold]
    #[inline(never)]
    unsafe fn resolve_outermost(&'static self, block: *mut ThreadBlock) -> *const c_void {
        // SAFETY: the caller's promise. A new window is opened before the time is read.
        unsafe {
            if !life::is_recording() || (*block).paused_at != 0 {
                return self.resolve();
            }
            make_room(block, 1);
            let begin = counter::read(block);
            let address = self.resolve();
            window::tool_event(block, ToolReason::Entries, begin);
            address
        }
    }

    /// As [`RealEntry::get`], for a name that several libraries may have, loaded so that only their own
    /// users see them (plug-ins, Python modules): where the name is not in the global scope, each
    /// caller gets what it would have got without us.
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
        if all || address_info(address).is_none() {
            listed.address.store(null_mut(), Relaxed);
        }
        entry = listed.next.load(Relaxed);
    }
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE` of Linux.
const CANCEL_DISABLE: c_int = 1;

/// Guards a stretch of the recorder's own work off the path: `errno` stays as the program left it, and a
/// thread that is to be cancelled is not cancelled in it, where the MPI call itself would go on.
pub struct OwnWork {
    errno: c_int,
    cancel_state: c_int,
}

impl OwnWork {
    /// Begins such a stretch, until dropped.
    pub fn begin() -> Self {
        let mut cancel_state = 0;
        // SAFETY: both places are the calling thread's own.
        unsafe {
            pthread_setcancelstate(CANCEL_DISABLE, &mut cancel_state);
            Self { errno: *libc::__errno_location(), cancel_state }
        }
    }
}

impl Drop for OwnWork {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe {
            *libc::__errno_location() = self.errno;
            pthread_setcancelstate(self.cancel_state, null_mut());
        }
    }
}

/// The function of that name behind ours in load order or in any loaded object.
pub fn find(name: &CStr) -> Option<*const c_void> {
    next_in_load_order(name).or_else(|| find_in_loaded_objects(name))
}

fn next_in_load_order(name: &CStr) -> Option<*const c_void> {
    // SAFETY: a C string; RTLD_NEXT means behind the object that this code lies in.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!next.is_null()).then_some(next.cast_const())
}

/// A data symbol such as `ompi_mpi_comm_world`: first where the executable has a copy of it.
pub fn find_data(name: &CStr) -> Option<*const c_void> {
    // SAFETY: a C string.
    let global = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if global.is_null() { find_in_loaded_objects(name) } else { Some(global) }
}

/// Names of the loaded shared objects, as the loader knows them.
fn loaded_objects() -> Vec<CString> {
    unsafe extern "C" fn keep(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        names: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid record, and `names` is the vector handed over below.
        let (name, names) =
            unsafe { ((*info).dlpi_name, &*names.cast::<UnsafeCell<Vec<CString>>>()) };
        if !name.is_null() {
            // SAFETY: a C string of the loader; the vector is used by this thread alone.
            unsafe {
                let name = CStr::from_ptr(name);
                if !name.is_empty() {
                    (*names.get()).push(name.to_owned());
                }
            }
        }
        0
    }
    let names = UnsafeCell::new(Vec::new());
    // SAFETY: the callback and its argument fit each other.
    unsafe { libc::dl_iterate_phdr(Some(keep), (&raw const names).cast_mut().cast()) };
    names.into_inner()
}

fn find_in_loaded_objects(name: &CStr) -> Option<*const c_void> {
    loaded_objects().into_iter().find_map(|object| find_in_object(&object, name))
}

/// The function of that name in a loaded object or what it needs, other than ours.
fn find_in_object(object: &CStr, name: &CStr) -> Option<*const c_void> {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: C strings; NOLOAD only takes a reference to what is loaded, given back at once.
    let address = unsafe {
        let handle = libc::dlopen(object.as_ptr(), flags);
        if handle.is_null() {
            return None;
        }
        let address = libc::dlsym(handle, name.as_ptr());
        libc::dlclose(handle);
        address
    };
    let ours = base_of(find_in_object as *const c_void);
    (!address.is_null() && base_of(address) != ours).then_some(address.cast_const())
}

/// Path of the object that an address lies in, as the loader knows it.
pub fn object_of(address: *const c_void) -> Option<String> {
    let info = address_info(address)?;
    let name: *const c_char = info.dli_fname;
    if name.is_null() {
        return None;
    }
    // SAFETY: a C string that the loader keeps while the object is loaded.
    Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

fn address_info(address: *const c_void) -> Option<libc::Dl_info> {
    let mut info = libc::Dl_info {
        dli_fname: null(),
        dli_fbase: null_mut(),
        dli_sname: null(),
        dli_saddr: null_mut(),
    };
    // SAFETY: `info` is ours to be written; any address may be asked.
    (unsafe { libc::dladdr(address, &mut info) } != 0).then_some(info)
}

fn base_of(address: *const c_void) -> *const c_void {
    address_info(address).map_or(null(), |info| info.dli_fbase)
}
