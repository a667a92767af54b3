//! Replacements for functions that no loaded library has.
//!
//! The recorder exports every procedure of the standard, so a program that looks one up with
//! `dlsym` finds the recorder's and may call it. The call then does what a program can expect of an
//! MPI that is absent or lacks the procedure: inquiries whether MPI is initialised or finalized
//! answer "no", and everything else fails with an error. For linear algebra there is no such
//! answer, because results that were never computed would be taken for correct ones. There the
//! process ends, just as the loader ends it for a missing symbol.

use std::ffi::{CStr, c_double, c_int, c_void};
use std::sync::atomic::{
    AtomicBool, AtomicI32,
    Ordering::{AcqRel, Relaxed},
};

use crate::host::loader::find;
use crate::host::warn::warn;
use crate::mpi::library::{Family, MpiLibrary};

/// MPI_ERR_OTHER in the loaded MPI.
static ERROR: AtomicI32 = AtomicI32::new(ERR_OTHER);
/// In Open MPI and the standard ABI. Also used without an MPI.
const ERR_OTHER: c_int = 16;
/// In MPICH and its derivatives.
const ERR_OTHER_OF_MPICH: c_int = 15;

/// The function to call instead. Warns once, noted in `warned`, that the real one is missing.
pub fn stand_in(name: &CStr, warned: &AtomicBool) -> *const c_void {
    let text = name.to_string_lossy();
    let Some(stem) = text.strip_prefix('P').unwrap_or(&text).strip_prefix("MPI_") else {
        return not_of_mpi(&text, warned);
    };
    let stem = stem.strip_suffix("_c").unwrap_or(stem);
    match stem {
        "Initialized" | "Finalized" => return no as *const c_void,
        // As the standard defines them; they need no library.
        "Aint_add" => return add as *const c_void,
        "Aint_diff" => return subtract as *const c_void,
        "Wtime" | "Wtick" => {
            warn_of_procedure(&text, warned, "it returns 0");
            return zero_seconds as *const c_void;
        }
        _ => {}
    }
    let converts = ["_f2c", "_c2f", "_toint", "_fromint"].iter().any(|end| stem.ends_with(end));
    if converts {
        warn_of_procedure(&text, warned, "it returns 0");
        return zero as *const c_void;
    }
    warn_of_procedure(&text, warned, "the call returns an error");
    error as *const c_void
}

fn warn_of_procedure(name: &str, warned: &AtomicBool, outcome: &str) {
    if warned.swap(true, AcqRel) {
        return;
    }
    let library = find(c"PMPI_Init").map(|_| MpiLibrary::detect());
    let lack = match &library {
        Some(library) if library.version_text.is_empty() => "which the loaded MPI lacks".to_owned(),
        Some(library) => format!("which {} lacks", library.version_text),
        None => "but no MPI library is loaded".to_owned(),
    };
    if library.is_some_and(|library| library.family == Family::Mpich) {
        ERROR.store(ERR_OTHER_OF_MPICH, Relaxed);
    }
    warn(&format!("the program calls {name}, {lack}: {outcome}"));
}

fn not_of_mpi(name: &str, warned: &AtomicBool) -> *const c_void {
    if name.contains("fftw") && name.contains("_plan_") {
        warn_of_function(name, warned, "no plan is made");
        return if name.ends_with('_') {
            no_plan_there as *const c_void
        } else {
            zero as *const c_void
        };
    }
    warn_of_function(name, warned, "the process ends, because its results would be wrong");
    // SAFETY: ends the process at once, as the loader would for a missing symbol.
    unsafe { libc::_exit(127) }
}

fn warn_of_function(name: &str, warned: &AtomicBool, outcome: &str) {
    if !warned.swap(true, AcqRel) {
        warn(&format!("the program calls {name}, which no loaded library has: {outcome}"));
    }
}

/// MPI_Initialized, MPI_Finalized.
unsafe extern "C" fn no(flag: *mut c_int) -> c_int {
    if !flag.is_null() {
        // SAFETY: the program passes a pointer to the answer.
        unsafe { flag.write(0) };
    }
    0
}

extern "C" fn add(base: isize, displacement: isize) -> isize {
    base.wrapping_add(displacement)
}

extern "C" fn subtract(first: isize, second: isize) -> isize {
    first.wrapping_sub(second)
}

extern "C" fn zero_seconds() -> c_double {
    0.0
}

extern "C" fn zero() -> usize {
    0
}

extern "C" fn error() -> c_int {
    ERROR.load(Relaxed)
}

/// A planner of FFTW's Fortran interface: returns the null plan through its first argument.
unsafe extern "C" fn no_plan_there(plan: *mut u64) {
    if !plan.is_null() {
        // SAFETY: the program passes a pointer to 64 bits.
        unsafe { plan.write(0) };
    }
}
