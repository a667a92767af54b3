//! Queries the dynamic loader: functions by name, objects by address, loading and unloading.
//!
//! In a forked child nothing here asks the loader: functions are found by `host::elf`, and everything else is unknown.

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::host::elf;
use crate::host::forks::in_loader;
use crate::state;

/// Numbers of objects loaded and unloaded by the process so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changes {
    pub loaded: usize,
    pub unloaded: usize,
}

impl Changes {
    /// The present counts; 0 if the loader does not provide them.
    pub fn now() -> Self {
        unsafe extern "C" fn first(
            info: *mut libc::dl_phdr_info,
            size: usize,
            changes: *mut c_void,
        ) -> c_int {
            let known = std::mem::offset_of!(libc::dl_phdr_info, dlpi_tls_modid) <= size;
            if known {
                // SAFETY: the loader passes a valid record of that size; `changes` is passed below.
                unsafe {
                    *changes.cast::<Changes>() = Changes {
                        loaded: (*info).dlpi_adds as usize,
                        unloaded: (*info).dlpi_subs as usize,
                    };
                }
            }
            1
        }
        let mut changes = Self { loaded: 0, unloaded: 0 };
        // SAFETY: callback and argument match.
        unsafe { for_each_object(first, (&raw mut changes).cast()) };
        changes
    }
}

/// Shows `callback` each loaded object until it returns a value other than 0.
///
/// # Safety
/// As for `dl_iterate_phdr`: `callback` gets `data`, and must use it as what it is.
pub unsafe fn for_each_object(
    callback: unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int,
    data: *mut c_void,
) {
    if state::is_child() {
        return;
    }
    // SAFETY: the callback gets the data that it was written for.
    in_loader(|| unsafe { libc::dl_iterate_phdr(Some(callback), data) });
}

/// The function of this name behind ours in load order, or in any loaded object.
pub fn find(name: &CStr) -> Option<*const c_void> {
    next_in_load_order(name).or_else(|| find_in_loaded_objects(name))
}

/// The function of this name behind ours in load order, within the global scope.
pub fn next_in_load_order(name: &CStr) -> Option<*const c_void> {
    if state::is_child() {
        return elf::function(name);
    }
    // SAFETY: a C string; RTLD_NEXT searches behind the object that holds this code.
    let next = in_loader(|| unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) });
    (!next.is_null()).then_some(next.cast_const())
}

/// The function behind the recorder's own of the same name, of type `F`; found at its first use, which may be before the
/// recorder's constructor, in a forked child, or in another tool that interposes the same function.
pub struct Behind<F> {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
    function: PhantomData<F>,
}

impl<F: Copy> Behind<F> {
    /// # Safety
    /// `F` is the type of pointers to the function of this name.
    pub const unsafe fn new(name: &'static CStr) -> Self {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) }
        Self { name, address: AtomicPtr::new(null_mut()), function: PhantomData }
    }

    pub fn get(&self) -> Option<F> {
        let mut address = self.address.load(Relaxed);
        if address.is_null() {
            address = next_in_load_order(self.name)?.cast_mut();
            self.address.store(address, Relaxed);
        }
        // SAFETY: whoever made this vouches that the address, not null, is a pointer of this type.
        Some(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
    }
}

/// A data symbol such as `ompi_mpi_comm_world`. The executable's copy comes first if there is one.
pub fn find_data(name: &CStr) -> Option<*const c_void> {
    find_global(name).or_else(|| find_in_loaded_objects(name))
}

/// A symbol in the global scope. Opens and closes no object, so it may be called where that would be
/// noticed.
pub fn find_global(name: &CStr) -> Option<*const c_void> {
    if state::is_child() {
        return None;
    }
    // SAFETY: a C string.
    let global = in_loader(|| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) });
    (!global.is_null()).then_some(global.cast_const())
}

/// A symbol in the global scope, otherwise one that some object defines for itself and those that opened it
/// (`RTLD_LOCAL`). Opens and closes no object.
pub fn find_in_any_scope(name: &CStr) -> Option<*const c_void> {
    struct Search<'n> {
        name: &'n CStr,
        found: Option<*const c_void>,
    }
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid record of an object that is loaded; `search` is passed below.
        unsafe {
            let (info, search) = (&*info, &mut *search.cast::<Search<'_>>());
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
            if let Some(dynamic) = headers.iter().find(|of| of.p_type == libc::PT_DYNAMIC) {
                let base = info.dlpi_addr as usize;
                let entry = base.wrapping_add(dynamic.p_vaddr as usize) as *const elf::Dynamic;
                search.found = elf::defined_in(entry, base, search.name);
            }
            c_int::from(search.found.is_some())
        }
    }
    find_global(name).or_else(|| {
        let mut search = Search { name, found: None };
        // SAFETY: callback and argument match.
        unsafe { for_each_object(look, (&raw mut search).cast()) };
        search.found
    })
}

/// Size in bytes of what is at a symbol's address, as its object states it; 0: not known.
pub fn size_of_symbol(address: *const c_void) -> u64 {
    unsafe extern "C" {
        fn dladdr1(
            address: *const c_void,
            info: *mut libc::Dl_info,
            symbol: *mut *const libc::Elf64_Sym,
            what: c_int,
        ) -> c_int;
    }
    const SYMBOL: c_int = 1;
    if state::is_child() {
        return 0;
    }
    // SAFETY: a zeroed record may be written over; the symbol is the loader's and stays.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let mut symbol: *const libc::Elf64_Sym = null();
        in_loader(|| dladdr1(address, &mut info, &mut symbol, SYMBOL));
        symbol.as_ref().map_or(0, |symbol| symbol.st_size)
    }
}

/// Names of the loaded shared objects, as the loader knows them.
fn loaded_objects() -> Vec<CString> {
    unsafe extern "C" fn keep(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        names: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid record, and `names` is the vector passed below.
        let (name, names) =
            unsafe { ((*info).dlpi_name, &*names.cast::<UnsafeCell<Vec<CString>>>()) };
        if !name.is_null() {
            // SAFETY: the loader's C string; only this thread uses the vector.
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
    // SAFETY: callback and argument match.
    unsafe { for_each_object(keep, (&raw const names).cast_mut().cast()) };
    names.into_inner()
}

/// File names of the loaded OpenMP runtimes: GNU's, LLVM's, Intel's.
pub fn loaded_openmp() -> Vec<String> {
    let is_runtime =
        |file: &str| ["libgomp", "libomp.", "libiomp5."].iter().any(|name| file.starts_with(name));
    let file = |object: CString| {
        let object = object.to_string_lossy();
        object.rsplit('/').next().filter(|file| is_runtime(file)).map(str::to_owned)
    };
    loaded_objects().into_iter().filter_map(file).collect()
}

fn find_in_loaded_objects(name: &CStr) -> Option<*const c_void> {
    loaded_objects().into_iter().find_map(|object| find_in_object(&object, name))
}

/// The function of this name in a loaded object or its dependencies, other than ours.
pub fn find_in_object(object: &CStr, name: &CStr) -> Option<*const c_void> {
    if state::is_child() {
        return None;
    }
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: C strings. NOLOAD only takes a reference to an object that is already loaded; it is
    // released at once.
    let address = in_loader(|| unsafe {
        let handle = libc::dlopen(object.as_ptr(), flags);
        if handle.is_null() {
            return null_mut();
        }
        let address = libc::dlsym(handle, name.as_ptr());
        libc::dlclose(handle);
        address
    });
    let ours = base_of(find_in_object as *const c_void);
    (!address.is_null() && base_of(address) != ours).then_some(address.cast_const())
}

/// Path of the object that contains an address, as the loader knows it.
pub fn object_of(address: *const c_void) -> Option<String> {
    let info = address_info(address)?;
    let name: *const c_char = info.dli_fname;
    if name.is_null() {
        return None;
    }
    // SAFETY: the loader keeps this C string while the object is loaded.
    Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

fn address_info(address: *const c_void) -> Option<libc::Dl_info> {
    if state::is_child() {
        return None;
    }
    let mut info = libc::Dl_info {
        dli_fname: null(),
        dli_fbase: null_mut(),
        dli_sname: null(),
        dli_saddr: null_mut(),
    };
    // SAFETY: `info` is ours to write; any address may be queried.
    let found = in_loader(|| unsafe { libc::dladdr(address, &mut info) });
    (found != 0).then_some(info)
}

fn base_of(address: *const c_void) -> *const c_void {
    address_info(address).map_or(null(), |info| info.dli_fbase)
}

/// Prepares for forks of this process. Called once.
pub fn expect_forks() {
    let own = base_of(expect_forks as *const c_void);
    in_loader(|| elf::know_objects(own.addr()));
}

/// Whether an address lies in a loaded object.
pub fn is_loaded(address: *const c_void) -> bool {
    address_info(address).is_some()
}
