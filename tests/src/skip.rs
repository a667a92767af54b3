//! Tests that cannot be run on this machine.

use std::process::Command;

/// Says that a test is not run, and why; `key` is a line's of `tests/may-skip`.
///
/// # Panics
/// When `tests/may-skip` does not name the key: then the test has failed.
#[track_caller]
pub fn skip(key: &str, why: &str) {
    // Cargo says at run time too where the sources lie that are tested.
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    let script = format!("{package}/../tests/skip");
    let said = Command::new(script).arg(key).arg(why).output().expect("tests/skip starts");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr).trim());
    eprint!("{}", String::from_utf8_lossy(&said.stderr));
}
