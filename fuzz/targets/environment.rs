//! The recorder's settings from an environment of any content, and which variables a trace keeps.
#![no_main]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)] // The recorder uses more of it than this target.
#[path = "../../pmpi-shim/src/settings.rs"]
mod settings;

const NAMES: [&str; 8] = [
    "GAMMACHI_OUT",
    "GAMMACHI_LEVEL",
    "GAMMACHI_COMPUTE",
    "GAMMACHI_PARAMS",
    "GAMMACHI_CLOCK_ROUNDS",
    "GAMMACHI_TEST_CLOCK",
    "GAMMACHI_MAX_BYTES",
    "GAMMACHI_KEEP",
];

fuzz_target!(|data: &[u8]| {
    let mut values = data.split(|byte| *byte == 0);
    for name in NAMES {
        // SAFETY: the fuzzer calls on one thread, and nothing else reads the environment meanwhile.
        unsafe { std::env::set_var(name, OsStr::from_bytes(values.next().unwrap_or_default())) };
    }
    let settings = settings::Settings::read();
    assert!(settings.level <= 2 && settings.clock_rounds >= 1);
    assert!(settings.complaints.len() <= NAMES.len());
    let _ = settings::test_clock();
    if let Ok(name) = std::str::from_utf8(data) {
        assert!(!trace_format::environment::is_kept(name) || !name.contains("TOKEN"));
    }
});
