//! What the environment asks of the recorder.
//!
//! `trace_format::settings` reads the variables and says what is wrong with them; here they come from
//! this process's environment.

use std::ffi::OsString;
use std::path::PathBuf;

use trace_format::settings::{
    EVERY_RANK, FromEnv, OUT, RUN_ID, SettingError, TEST_CLOCK, TEST_HOST,
};
pub use trace_format::settings::{RecordingOptions as Settings, TestClock};

/// How the run is to be recorded, and a sentence for every value that could not be used.
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

/// The run directory, before MPI is initialised.
pub fn out() -> Option<PathBuf> {
    OUT.value(from_process).map(PathBuf::from)
}

/// What `gammachi run` tells all ranks of its runs; empty where it does not record them.
pub fn run_id() -> OsString {
    RUN_ID.value(from_process).unwrap_or_default()
}

/// Whether `gammachi run` has seen to it that every rank of every host loads the recorder.
pub fn is_every_rank() -> bool {
    EVERY_RANK.value(from_process).is_some()
}

/// A test's skew of this process's counter.
pub fn test_clock() -> Option<TestClock> {
    TEST_CLOCK.parsed(from_process, str::parse).ok().flatten()
}

/// Host name to pretend, for tests that make many hosts of one.
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
    fn a_wrong_value_is_one_sentence_with_what_is_done_instead() {
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
    fn test_hooks_are_read_beside_the_options() {
        assert_eq!(complaints(TEST_CLOCK.name, "5e6,20"), [""; 0]);
        assert_eq!(complaints(TEST_HOST.name, "n7"), [""; 0]);
    }
}
