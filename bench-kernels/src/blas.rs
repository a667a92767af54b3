//! The system's CBLAS, loaded when a kernel needs it and called through its dynamic symbol.
//!
//! The library is loaded with RTLD_GLOBAL and the function then looked up in the whole process, as
//! the loader does for a program linked with it. So a preloaded library in front of it (a recorder
//! that counts operations) sees the call like a user's.

use std::ffi::{CStr, CString, c_char, c_double, c_int, c_void};
use std::mem::transmute;

use crate::failure::Failure;

/// Usual names of libraries that export `cblas_dgemm`, fastest first.
const CANDIDATES: [&CStr; 8] = [
    c"libmkl_rt.so.2",
    c"libopenblas.so.0",
    c"libblis.so.4",
    c"libblis.so.3",
    c"libarmpl.so",
    c"libcblas.so.3",
    c"libsatlas.so.3",
    c"libblas.so.3",
];

const ROW_MAJOR: c_int = 101;
const NO_TRANSPOSE: c_int = 111;

type Dgemm = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_double,
    *const c_double,
    c_int,
    *const c_double,
    c_int,
    c_double,
    *mut c_double,
    c_int,
);

/// A loaded CBLAS.
pub struct Blas {
    dgemm: Dgemm,
    /// File that contains the library's own `cblas_dgemm`.
    pub library: String,
    /// The library's description of itself, if it has one (OpenBLAS: version and kernel).
    pub configuration: Option<String>,
    /// Threads used by one call; `None` if the library does not tell.
    pub threads: Option<i32>,
}

impl Blas {
    /// Loads the named library, or the first of the usual ones, and sets its number of threads if
    /// possible.
    pub fn load(named: Option<&str>, threads: i32) -> Result<Self, Failure> {
        let absent = |what: String| {
            Failure::Machine(format!(
                "{what}; install one (Debian: apt-get install libopenblas0-pthread) or name it with \
                 --blas FILE"
            ))
        };
        let handle = match named {
            Some(name) => {
                let file = CString::new(name)
                    .map_err(|_| Failure::Usage("--blas: the name contains a zero byte".into()))?;
                open(&file).ok_or_else(|| absent(format!("--blas {name}: {}", loader_error())))?
            }
            None => CANDIDATES.iter().find_map(|name| open(name)).ok_or_else(|| {
                absent("no library with cblas_dgemm was found (OpenBLAS, MKL, BLIS, CBLAS)".into())
            })?,
        };
        // SAFETY: guaranteed here: the handle is open, the name ends with a zero.
        let own = unsafe { libc::dlsym(handle, c"cblas_dgemm".as_ptr()) };
        if own.is_null() {
            return Err(absent("the BLAS library has no cblas_dgemm".into()));
        }
        // SAFETY: guaranteed here: this searches the whole process; the first symbol found is the
        // one that a linked program would call.
        let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"cblas_dgemm".as_ptr()) };
        let dgemm = if first.is_null() { own } else { first };
        // SAFETY: guaranteed by CBLAS: a function of this name has this signature (LP64).
        let dgemm = unsafe { transmute::<*mut c_void, Dgemm>(dgemm) };
        Ok(Self {
            dgemm,
            library: file_of(own),
            configuration: configuration(handle),
            threads: set_threads(handle, threads),
        })
    }

    /// C ← C + A·B, in row-major order: A is m×k, B k×n, C m×n.
    ///
    /// # Panics
    /// If a slice is too short.
    #[inline]
    pub fn dgemm(&self, (m, n, k): (usize, usize, usize), a: &[f64], b: &[f64], c: &mut [f64]) {
        assert!(a.len() >= m * k && b.len() >= k * n && c.len() >= m * n, "a matrix is too short");
        let int = |value: usize| value as c_int;
        // SAFETY: guaranteed by CBLAS: it reads A and B and writes C within the given sizes,
        // checked above, and keeps no pointer.
        unsafe {
            (self.dgemm)(
                ROW_MAJOR,
                NO_TRANSPOSE,
                NO_TRANSPOSE,
                int(m),
                int(n),
                int(k),
                1.0,
                a.as_ptr(),
                int(k.max(1)),
                b.as_ptr(),
                int(n.max(1)),
                1.0,
                c.as_mut_ptr(),
                int(n.max(1)),
            );
        }
    }
}

/// Number of floating-point operations of a product.
pub fn flops((m, n, k): (usize, usize, usize)) -> f64 {
    2.0 * m as f64 * n as f64 * k as f64
}

fn open(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: guaranteed here: the name ends with a zero; the library's initialisers run as for any
    // of its users.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    (!handle.is_null()).then_some(handle)
}

fn loader_error() -> String {
    // SAFETY: guaranteed by the loader: NULL or a text that lasts to the next call of this thread.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            "cannot be loaded".into()
        } else {
            CStr::from_ptr(text).to_string_lossy().into()
        }
    }
}

fn file_of(function: *mut c_void) -> String {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: guaranteed by the loader: it fills the structure or returns 0; the name is valid
    // as long as the library.
    unsafe {
        if libc::dladdr(function, info.as_mut_ptr()) == 0 {
            return "unknown".into();
        }
        let name = info.assume_init().dli_fname;
        let name = CStr::from_ptr(name).to_string_lossy().into_owned();
        std::fs::canonicalize(&name).map_or(name, |path| path.to_string_lossy().into_owned())
    }
}

fn configuration(handle: *mut c_void) -> Option<String> {
    // SAFETY: guaranteed by OpenBLAS: a function of this name takes nothing and returns a lasting text.
    unsafe {
        let function = libc::dlsym(handle, c"openblas_get_config".as_ptr());
        if function.is_null() {
            return None;
        }
        let function = transmute::<*mut c_void, unsafe extern "C" fn() -> *const c_char>(function);
        Some(CStr::from_ptr(function()).to_string_lossy().trim().to_owned())
    }
}

fn set_threads(handle: *mut c_void, threads: i32) -> Option<i32> {
    for name in [c"openblas_set_num_threads", c"MKL_Set_Num_Threads", c"bli_thread_set_num_threads"]
    {
        // SAFETY: guaranteed by the libraries: functions of these names take one number (BLIS's has
        // 64 bits, for which the same register is used).
        unsafe {
            let function = libc::dlsym(handle, name.as_ptr());
            if !function.is_null() {
                transmute::<*mut c_void, unsafe extern "C" fn(i64)>(function)(i64::from(threads));
                return Some(threads);
            }
        }
    }
    None
}
