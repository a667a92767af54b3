//! The functions behind ours of the same name.

use std::ffi::{CStr, c_long, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The arguments of a call: machine words, of which a function reads as many as it has.
pub type Arguments = [usize; 5];

type Function = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize) -> usize;

/// The next function of a name in load order: the C library's, or another tool's.
pub struct Real {
    name: &'static CStr,
    /// The system call with the same arguments; −1: none.
    number: c_long,
    address: AtomicPtr<c_void>,
}

impl Real {
    pub const fn new(name: &'static CStr, number: c_long) -> Self {
        Self { name, number, address: AtomicPtr::new(null_mut()) }
    }

    /// Looks the function up. Called when the library is loaded.
    pub fn find(&self) -> *mut c_void {
        // SAFETY: a C string; RTLD_NEXT searches behind this library.
        let address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(address, Relaxed);
        address
    }

    /// Calls the function. Before this library was initialised the system is called instead: the loader may be at work,
    /// or an allocator that it would call.
    ///
    /// # Safety
    /// The caller vouches for the arguments.
    #[inline(always)]
    pub unsafe fn call(&self, arguments: Arguments) -> usize {
        let address = self.address.load(Relaxed);
        if address.is_null() {
            // SAFETY: as above.
            return unsafe { self.call_early(arguments) };
        }
        let [a, b, c, d, e] = arguments;
        // SAFETY: the function of this name, to which the arguments belong; it reads no more than it has.
        unsafe { transmute::<*mut c_void, Function>(address)(a, b, c, d, e) }
    }

    #[cold]
    #[inline(never)]
    unsafe fn call_early(&self, [a, b, c, d, e]: Arguments) -> usize {
        // SAFETY: the system call of this function, with its arguments; or the function itself.
        unsafe {
            if self.number >= 0 {
                return libc::syscall(self.number, a, b, c, d, e) as usize;
            }
            let address = self.find();
            if address.is_null() {
                *libc::__errno_location() = libc::ENOSYS;
                return usize::MAX;
            }
            transmute::<*mut c_void, Function>(address)(a, b, c, d, e)
        }
    }
}
