//! The recorder's settings from the environment.
//!
//! `trace_format::settings` parses the variables and words the complaints about them. This module
//! supplies them from the environment of the process.

use std::ffi::OsString;
use std::path::PathBuf;

use trace_format::settings::{
    EVERY_RANK, FromEnv, OUT, RUN_ID, SettingError, TEST_CLOCK, TEST_HOST,
};
pub use trace_format::settings::{RecordingOptions as Settings, TestClock};

/// The settings for this run, and one sentence for every value that could not be used.
pub fn read() -> (Settings, Vec<String>) {
    read_from(from_process)
}

fn read_from(lookup: impl Fn(&str) -> Option<OsString>) -> (Settings, Vec<String>) {
    let FromEnv { options, mut errors } = Settings::from_env(&lookup);
    errors.extend(TEST_CLOCK.parsed(&lookup, str::parse::<TestClock>).err());
    errors.extend(TEST_HOST.text(&lookup).err());
    (options, errors.iter().map(SettingError::with_fallback).collect())
}

fn from_process(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// The run directory. Available before MPI is initialised.
pub fn out() -> Option<PathBuf> {
    OUT.value(from_process).map(PathBuf::from)
}

/// The id that `gammachi run` passes to all ranks. Empty if the command did not start the run.
pub fn run_id() -> OsString {
    RUN_ID.value(from_process).unwrap_or_default()
}

/// Whether `gammachi run` ensured that every rank on every host loads the recorder.
pub fn is_every_rank() -> bool {
    EVERY_RANK.value(from_process).is_some()
}

/// Skew of this process's counter, set by a test.
pub fn test_clock() -> Option<TestClock> {
    TEST_CLOCK.parsed(from_process, str::parse).ok().flatten()
}

/// Host name set by tests that simulate several hosts on one.
pub fn test_host() -> Option<String> {
    TEST_HOST.text(from_process).ok().flatten()
}

#[cfg(test)]
mod tests {
    use trace_format::settings::LEVEL;

    use super::*;

    fn complaints(name: &str, value: &str) -> Vec<String> {
        read_from(|asked| (asked == name).then(|| value.into())).1
    }

    #[test]
    fn describes_wrong_value_and_substitute_in_one_sentence() {
        assert_eq!(complaints("", ""), [""; 0]);
        assert_eq!(
            complaints(LEVEL.name, "9"),
            [format!("{}=\"9\": not a detail level; write 0, 1 or 2; using 1", LEVEL.name)]
        );
        assert_eq!(
            complaints(TEST_CLOCK.name, "5"),
            [format!(
                "{}=\"5\": not a skew of the counter; write OFFSET_NS,PPM, such as 5e6,20; the \
                 counter is not skewed",
                TEST_CLOCK.name
            )]
        );
    }

    #[test]
    fn reads_test_hooks_beside_options() {
        assert_eq!(complaints(TEST_CLOCK.name, "5e6,20"), [""; 0]);
        assert_eq!(complaints(TEST_HOST.name, "n7"), [""; 0]);
    }
}
