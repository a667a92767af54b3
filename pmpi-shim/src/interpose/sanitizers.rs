//! Lets programs built with AddressSanitizer start. Its runtime refuses to start if another library
//! precedes it in the list of loaded ones, as every preloaded library does.
//!
//! The runtime queries default options from the process by a weak symbol. If the executable defines
//! one, that comes before ours, and the user's `ASAN_OPTIONS` override both. Being loaded first is
//! harmless here: of what the sanitizer interposes the recorder interposes only functions for signals,
//! which it forwards to the next library.

use std::ffi::{CStr, c_char};

const OPTIONS: &CStr = c"verify_asan_link_order=0";

/// Default options for AddressSanitizer's runtime.
#[unsafe(no_mangle)]
pub extern "C" fn __asan_default_options() -> *const c_char {
    OPTIONS.as_ptr()
}
