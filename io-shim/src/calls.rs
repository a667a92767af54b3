//! Forwards a call and has it recorded.

use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

use trace_format::file_calls::FileCallKind;

use crate::descriptors::file_of;
use crate::recorder::{ELSEWHERE, is_recorders, recorder};

/// Where a call came from.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// Address on the stack at which the function was entered.
    pub here: usize,
    /// Return address.
    pub site: usize,
}

/// Defines exported functions of the C library, whose arguments are machine words, at most five. `$through` gets the
/// real function, the caller and the arguments.
macro_rules! entries {
    ($($symbol:ident as $inner:ident, $number:expr => $through:expr;)*) => {
        $(
            #[doc = concat!("Interposes `", stringify!($symbol), "`.")]
            ///
            /// # Safety
            /// The caller vouches for the arguments.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C-unwind" fn $symbol() {
                #[cfg(target_arch = "x86_64")]
                core::arch::naked_asm!("mov r9, rsp", "jmp {inner}", inner = sym $inner);
                // Not yet run on AArch64.
                #[cfg(target_arch = "aarch64")]
                core::arch::naked_asm!(
                    "mov x5, sp",
                    "mov x6, x30",
                    "b {inner}",
                    inner = sym $inner
                );
            }

            unsafe extern "C-unwind" fn $inner(
                a: usize,
                b: usize,
                c: usize,
                d: usize,
                e: usize,
                here: usize,
                #[cfg(target_arch = "aarch64")] site: usize,
            ) -> usize {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the word at which the function was entered is its return address.
                let site = unsafe { *(here as *const usize) };
                let caller = $crate::calls::Caller { here, site };
                // SAFETY: the arguments are passed on to the function of this name.
                unsafe { $through(&reals::$symbol, caller, [a, b, c, d, e]) }
            }
        )*

        mod reals {
            use super::*;

            $(
                #[allow(non_upper_case_globals)] // A function's name.
                pub static $symbol: $crate::real::Real = $crate::real::Real::new(
                    match std::ffi::CStr::from_bytes_with_nul(
                        concat!(stringify!($symbol), "\0").as_bytes(),
                    ) {
                        Ok(name) => name,
                        Err(_) => panic!("a name has no zeros"),
                    },
                    $number,
                );
            )*
        }

        /// Looks up all functions behind these. Called when the library is loaded.
        pub fn find_all() {
            $(reals::$symbol.find();)*
        }
    };
}
pub(crate) use entries;

/// Forwards a call on a descriptor, and has it recorded if that is a file. `call` returns the function's result and the
/// bytes that it moved, and is told whether it is recorded.
#[inline(always)]
pub fn on_descriptor(
    descriptor: c_int,
    field: u16,
    caller: Caller,
    call: impl FnOnce(bool) -> (usize, u64),
) -> usize {
    let Some(recorder) = recorder() else { return call(false).0 };
    let is_own = is_recorders(caller.site);
    let file = if is_own { None } else { file_of(recorder, descriptor) };
    let Some(file) = file else { return elsewhere(field, call) };
    let begin = (recorder.begin)();
    let (result, bytes) = call(begin != 0);
    if begin != 0 {
        // SAFETY: the function that was entered there returns only after this one.
        unsafe { (recorder.record)(file, field, bytes, begin, caller.here, caller.site) };
    }
    result
}

/// Forwards a call that is not recorded, and counts its bytes.
#[inline(always)]
fn elsewhere(field: u16, call: impl FnOnce(bool) -> (usize, u64)) -> usize {
    const READ: u16 = FileCallKind::Read as u16;
    const WRITE: u16 = FileCallKind::Write as u16;
    let (result, bytes) = call(false);
    if bytes != 0 {
        match field {
            READ => _ = ELSEWHERE[0].fetch_add(bytes, Relaxed),
            WRITE => _ = ELSEWHERE[1].fetch_add(bytes, Relaxed),
            _ => {}
        }
    }
    result
}

/// Has a call recorded that opened a descriptor.
#[inline(always)]
pub fn opened(descriptor: c_int, begin: u64, field: u16, caller: Caller) {
    if descriptor < 0 || begin == 0 || is_recorders(caller.site) {
        return;
    }
    if let Some(recorder) = recorder()
        && let Some(file) = file_of(recorder, descriptor)
    {
        // SAFETY: the function that was entered there returns only after this one.
        unsafe { (recorder.record)(file, field, 0, begin, caller.here, caller.site) };
    }
}

/// The counter before a call; 0 if nothing is recorded.
#[inline(always)]
pub fn begin() -> u64 {
    recorder().map_or(0, |recorder| (recorder.begin)())
}
