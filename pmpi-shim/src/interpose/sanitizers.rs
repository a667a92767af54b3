//! Programs built with AddressSanitizer: its runtime refuses to start when another library stands
//! before it in the list of loaded ones, as every preloaded library does.
//!
//! The runtime asks the process for default options by a weak symbol; the executable's own answer, if it
//! has one, comes before ours, and the user's `ASAN_OPTIONS` have the last word. Loading first is harmless
//! here: the recorder interposes nothing of what the sanitizer interposes.

use std::ffi::{CStr, c_char};

const OPTIONS: &CStr = c"verify_asan_link_order=0";

/// What AddressSanitizer's runtime takes as default options.
#[unsafe(no_mangle)]
pub extern "C" fn __asan_default_options() -> *const c_char {
    OPTIONS.as_ptr()
}
