//! Values as people write them, in an option or a variable.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::errors::{ParameterError, ValueError};
use crate::byte_size;
use crate::counters::{self, CounterRequest};
use crate::header::KeepingPolicy;

/// Detail levels.
pub const LEVELS: RangeInclusive<u8> = 0..=2;
/// Two-way clock exchanges that may be asked for.
const CLOCK_ROUNDS: RangeInclusive<u32> = 1..=1_000_000;

/// What counts as computation: one of [`Computation::KINDS`], or `regions=NAME,NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Computation(String);

impl Computation {
    /// All but named regions; the first is the default.
    pub const KINDS: [&str; 3] = ["outside", "blas", "regions"];

    /// As it is written.
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

/// A test's skew of a process's counter.
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

/// Reads a detail level.
///
/// # Errors
/// It is none of [`LEVELS`].
pub fn level(text: &str) -> Result<u8, ValueError> {
    text.parse().ok().filter(|level| LEVELS.contains(level)).ok_or(ValueError::Level)
}

/// Reads a list of counters ([`counters::parse`]).
///
/// # Errors
/// What is wrong with it.
pub fn counters(text: &str) -> Result<Vec<CounterRequest>, ValueError> {
    Ok(counters::parse(text)?)
}

/// Choices of what is kept, by the names that users write.
const KEEPING: [(&str, KeepingPolicy); 3] = [
    ("first", KeepingPolicy::First),
    ("last", KeepingPolicy::Last),
    ("totals", KeepingPolicy::Totals),
];

/// Reads which events are kept.
///
/// # Errors
/// No such choice.
pub fn keeping(text: &str) -> Result<KeepingPolicy, ValueError> {
    let found = KEEPING.iter().find(|(name, _)| *name == text);
    found.map(|(_, policy)| *policy).ok_or(ValueError::Keeping)
}

/// Name of a choice of what is kept.
pub fn keeping_name(policy: KeepingPolicy) -> &'static str {
    KEEPING.iter().find(|(_, other)| *other == policy).map_or("", |(name, _)| name)
}

/// Reads a number of bytes, with a K, M, G or T behind it or without.
///
/// # Errors
/// It is none, or beyond what any file holds.
pub fn bytes(text: &str) -> Result<u64, ValueError> {
    byte_size::parse(text).ok_or(ValueError::Bytes)
}

/// Reads a time with its unit; microseconds.
///
/// # Errors
/// It is none, negative, or 1,000 s or more.
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

/// Reads a number of two-way clock exchanges.
///
/// # Errors
/// It is no whole number from 1 to a million.
pub fn clock_rounds(text: &str) -> Result<u32, ValueError> {
    let rounds = text.parse().ok();
    rounds.filter(|rounds| CLOCK_ROUNDS.contains(rounds)).ok_or(ValueError::ClockRounds)
}

/// Reads seconds between clock exchanges; 0 is none during the run.
///
/// # Errors
/// It is no number, or out of range.
pub fn clock_every_s(text: &str) -> Result<f64, ValueError> {
    let seconds = text.parse().ok();
    seconds.filter(|seconds| (0.0..1e9).contains(seconds)).ok_or(ValueError::ClockEvery)
}

/// Reads seconds that a clock exchange waits for its partner.
///
/// # Errors
/// It is no number, or out of range.
pub fn clock_deadline_s(text: &str) -> Result<f64, ValueError> {
    let seconds = text.parse().ok();
    seconds.filter(|seconds| *seconds > 0.0 && *seconds < 1e6).ok_or(ValueError::ClockDeadline)
}

/// Whether a flag is raised: by anything but `0`.
pub fn flag(text: &str) -> bool {
    text != "0"
}

/// Reads one `NAME=VALUE`.
///
/// # Errors
/// Why it is none.
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

/// Reads `N=20000,NB=80`, each pair by itself.
pub fn parameters(
    text: &str,
) -> impl Iterator<Item = Result<(String, String), ParameterError>> + use<'_> {
    text.split(',').filter(|pair| !pair.is_empty()).map(parameter)
}

/// The text that [`parameters`] reads.
pub fn join_parameters(parameters: &[(String, String)]) -> String {
    let pairs = parameters.iter().map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join(",")
}

/// Whether a name is one that C takes.
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
    fn names_of_choices_are_read_back() {
        for (name, policy) in KEEPING {
            assert_eq!(keeping(keeping_name(policy)), Ok(policy));
            assert_eq!(keeping_name(policy), name);
        }
    }

    #[test]
    fn a_skew_is_two_numbers() {
        assert_eq!("-5e9, 3".parse(), Ok(TestClock { offset_ns: -5e9, ppm: 3.0 }));
        for wrong in ["5", "a,1", "1,", ""] {
            assert_eq!(wrong.parse::<TestClock>(), Err(ValueError::TestClock), "{wrong}");
        }
    }
}
