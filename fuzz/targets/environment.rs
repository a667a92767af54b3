//! The recorder's settings from an environment of any content, and the variables that a trace
//! keeps.
#![no_main]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use libfuzzer_sys::fuzz_target;
use trace_format::settings::{FromEnv, RecordingOptions, TEST_CLOCK, TestClock, VARIABLES};

fuzz_target!(|data: &[u8]| {
    let values: Vec<&[u8]> = data.split(|byte| *byte == 0).collect();
    let lookup = |name: &str| {
        let index = VARIABLES.iter().position(|variable| variable.name == name)?;
        values.get(index).map(|value| OsStr::from_bytes(value).to_owned())
    };
    let FromEnv { options, errors } = RecordingOptions::from_env(lookup);
    assert!(options.level <= 2 && options.clock.rounds >= 1);
    for error in &errors {
        assert!(!error.with_fallback().contains('\n'));
    }
    let _ = TEST_CLOCK.parsed(lookup, str::parse::<TestClock>);
    let written = options.to_env();
    let again = RecordingOptions::from_env(|name| {
        written.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone())
    });
    assert_eq!(again, FromEnv { options, errors: Vec::new() });
    if let Ok(name) = std::str::from_utf8(data) {
        assert!(!trace_format::environment::is_kept(name) || !name.contains("TOKEN"));
    }
});
