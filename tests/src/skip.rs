//! Skips tests that cannot run on this machine.

use std::process::Command;

/// Reports that a test is skipped, and why; `key` is in `tests/may-skip`.
///
/// # Panics
/// If `tests/may-skip` does not contain the key: then the test fails.
#[track_caller]
pub fn skip(key: &str, why: &str) {
    // The run-time variable comes first, as in `directories::repository`.
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    let script = format!("{package}/../tests/skip");
    let output = Command::new(script).arg(key).arg(why).output().expect("tests/skip starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
}
