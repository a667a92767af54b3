//! Parses values as users write them, in an option or a variable.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::errors::{ParameterError, ValueError};
use crate::byte_size;
use crate::counters::{self, CounterRequest};
use crate::header::KeepingPolicy;

/// Detail levels.
pub const LEVELS: RangeInclusive<u8> = 0..=2;
/// Accepted numbers of two-way clock exchanges.
const CLOCK_ROUNDS: RangeInclusive<u32> = 1..=1_000_000;

/// What counts as computation: one of [`Computation::KINDS`], or `regions=NAME,NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Computation(String);

impl Computation {
    /// All kinds except named regions; the first is the default.
    pub const KINDS: [&str; 3] = ["outside", "blas", "regions"];

    /// The text of the value.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Computation {
    fn default() -> Self {
        Self(Self::KINDS[0].to_owned())
    }
}

impl fmt::Display for Computation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Computation {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let names = text.strip_prefix("regions=");
        let is_list =
            names.is_some_and(|names| names.split(',').all(|name| !name.trim().is_empty()));
        match is_list || Self::KINDS.contains(&text) {
            true => Ok(Self(text.to_owned())),
            false => Err(ValueError::Computation),
        }
    }
}

/// A skew of a process's counter, set by a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestClock {
    /// Added to every reading, nanoseconds.
    pub offset_ns: f64,
    /// Rate error, parts per million.
    pub ppm: f64,
}

impl FromStr for TestClock {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let number = |text: &str| text.trim().parse().map_err(|_| ValueError::TestClock);
        let (offset, ppm) = text.split_once(',').ok_or(ValueError::TestClock)?;
        Ok(Self { offset_ns: number(offset)?, ppm: number(ppm)? })
    }
}

/// Parses a detail level.
///
/// # Errors
/// If it is not one of [`LEVELS`].
pub fn level(text: &str) -> Result<u8, ValueError> {
    text.parse().ok().filter(|level| LEVELS.contains(level)).ok_or(ValueError::Level)
}

/// Parses a list of counters ([`counters::parse`]).
///
/// # Errors
/// The problem with it.
pub fn counters(text: &str) -> Result<Vec<CounterRequest>, ValueError> {
    Ok(counters::parse(text)?)
}

/// Samples per second of CPU time if the user does not say how many.
pub const USUAL_SAMPLE_HZ: &str = "99";
/// Accepted numbers of samples per second: beyond, the cost would be too high.
const SAMPLE_HZ: RangeInclusive<u32> = 0..=499;

/// Parses the number of samples per second of CPU time; 0 means none.
///
/// # Errors
/// If it is not a whole number, or too large.
pub fn sample_hz(text: &str) -> Result<u32, ValueError> {
    text.parse().ok().filter(|rate| SAMPLE_HZ.contains(rate)).ok_or(ValueError::Sample)
}

/// Policies by the names that users write.
const KEEPING: [(&str, KeepingPolicy); 3] = [
    ("first", KeepingPolicy::First),
    ("last", KeepingPolicy::Last),
    ("totals", KeepingPolicy::Totals),
];

/// Parses which events are kept.
///
/// # Errors
/// If there is no such policy.
pub fn keeping(text: &str) -> Result<KeepingPolicy, ValueError> {
    let found = KEEPING.iter().find(|(name, _)| *name == text);
    found.map(|(_, policy)| *policy).ok_or(ValueError::Keeping)
}

/// Name of a policy.
pub fn keeping_name(policy: KeepingPolicy) -> &'static str {
    KEEPING.iter().find(|(_, other)| *other == policy).map_or("", |(name, _)| name)
}

/// Parses a number of bytes with an optional suffix K, M, G or T.
///
/// # Errors
/// If it is not one, or more than any file holds.
pub fn bytes(text: &str) -> Result<u64, ValueError> {
    byte_size::parse(text).ok_or(ValueError::Bytes)
}

/// Parses a time with its unit. Returns microseconds.
///
/// # Errors
/// If it is not one, negative, or at least 1,000 s.
pub fn paths_from_us(text: &str) -> Result<f64, ValueError> {
    let number = text.trim_end_matches(|c: char| !c.is_ascii_digit() && c != '.');
    let scale = match &text[number.len()..] {
        "ns" => 1e-3,
        "us" | "µs" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        _ => return Err(ValueError::PathsFrom),
    };
    let time = number.parse::<f64>().ok().map(|number| number * scale);
    time.filter(|time| (0.0..1e9).contains(time)).ok_or(ValueError::PathsFrom)
}

/// Parses a time such as `30s`, `10m`, `10min` or `1h`. Returns seconds.
pub fn seconds(text: &str) -> Option<f64> {
    let number = text.trim_end_matches(|c: char| !c.is_ascii_digit() && c != '.');
    let scale = match &text[number.len()..] {
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|number| number * scale)
}

/// Parses how long the newest calls are kept. Returns seconds.
///
/// # Errors
/// If it is not a time from a second to a day.
pub fn last_s(text: &str) -> Result<f64, ValueError> {
    seconds(text).filter(|seconds| (1.0..=86_400.0).contains(seconds)).ok_or(ValueError::Last)
}

/// Parses a number of two-way clock exchanges.
///
/// # Errors
/// If it is not a whole number from 1 to a million.
pub fn clock_rounds(text: &str) -> Result<u32, ValueError> {
    let rounds = text.parse().ok();
    rounds.filter(|rounds| CLOCK_ROUNDS.contains(rounds)).ok_or(ValueError::ClockRounds)
}

/// Parses the seconds between clock exchanges; 0 means none during the run.
///
/// # Errors
/// If it is not a number, or out of range.
pub fn clock_every_s(text: &str) -> Result<f64, ValueError> {
    let seconds = text.parse().ok();
    seconds.filter(|seconds| (0.0..1e9).contains(seconds)).ok_or(ValueError::ClockEvery)
}

/// Parses the seconds that a clock exchange waits for its partner.
///
/// # Errors
/// If it is not a number, or out of range.
pub fn clock_deadline_s(text: &str) -> Result<f64, ValueError> {
    let seconds = text.parse().ok();
    seconds.filter(|seconds| *seconds > 0.0 && *seconds < 1e6).ok_or(ValueError::ClockDeadline)
}

/// Whether a flag is set, by anything but `0`.
pub fn flag(text: &str) -> bool {
    text != "0"
}

/// Parses one `NAME=VALUE`.
///
/// # Errors
/// Why it is not one.
pub fn parameter(text: &str) -> Result<(String, String), ParameterError> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| ParameterError::NoValue(text.to_owned()))?;
    if !is_identifier(name) {
        return Err(ParameterError::Name(name.to_owned()));
    }
    if value.chars().any(|c| c == ',' || c == ';' || c.is_control()) {
        return Err(ParameterError::Value(name.to_owned()));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses `N=20000,NB=80`, each pair separately.
pub fn parameters(
    text: &str,
) -> impl Iterator<Item = Result<(String, String), ParameterError>> + use<'_> {
    text.split(',').filter(|pair| !pair.is_empty()).map(parameter)
}

/// The text that [`parameters`] parses.
pub fn join_parameters(parameters: &[(String, String)]) -> String {
    let pairs = parameters.iter().map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join(",")
}

/// Whether a name is a C identifier.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_kinds_of_computation_and_named_regions() {
        for right in ["outside", "blas", "regions", "regions=solve", "regions=solve,fft"] {
            assert_eq!(right.parse::<Computation>().unwrap().as_str(), right);
        }
        for wrong in ["", "region", "regions=", "regions=a,,b", "blas=dgemm"] {
            assert_eq!(wrong.parse::<Computation>(), Err(ValueError::Computation), "{wrong}");
        }
    }

    #[test]
    fn accepts_pairs_as_parameters() {
        assert_eq!(parameter("N=20000").unwrap(), ("N".into(), "20000".into()));
        assert_eq!(parameter("_a1=x=y z").unwrap(), ("_a1".into(), "x=y z".into()));
        assert_eq!(parameter("empty=").unwrap(), ("empty".into(), String::new()));
        for wrong in ["N", "=1", "1N=1", "N-B=1", "ä=1", "N=1,2", "N=1;2", "N=1\n", "N=\u{7f}"] {
            assert!(parameter(wrong).is_err(), "{wrong:?}");
        }
        let pairs: Vec<_> = parameters("N=20000,,NB=80").map(Result::unwrap).collect();
        assert_eq!(join_parameters(&pairs), "N=20000,NB=80");
    }

    #[test]
    fn parses_names_of_policies() {
        for (name, policy) in KEEPING {
            assert_eq!(keeping(keeping_name(policy)), Ok(policy));
            assert_eq!(keeping_name(policy), name);
        }
    }

    #[test]
    fn parses_skew_as_two_numbers() {
        assert_eq!("-5e9, 3".parse(), Ok(TestClock { offset_ns: -5e9, ppm: 3.0 }));
        for wrong in ["5", "a,1", "1,", ""] {
            assert_eq!(wrong.parse::<TestClock>(), Err(ValueError::TestClock), "{wrong}");
        }
    }
}
