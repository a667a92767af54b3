//! Describes problems with values and what to write instead.

use std::ffi::OsString;

use thiserror::Error;

use super::variables::{Unset, Variable};
use crate::counters::CounterError;

/// A variable with an unusable value: `GAMMACHI_LEVEL="3": not a detail level; write 0, 1 or 2`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}={value:?}: {problem}", .variable.name)]
pub struct SettingError {
    /// The variable.
    pub variable: &'static Variable,
    /// Its value.
    pub value: OsString,
    /// The problem with it.
    pub problem: ValueError,
}

impl SettingError {
    /// The sentence, followed by what the recorder does instead: `…; using 1`.
    pub fn with_fallback(&self) -> String {
        match (&self.problem, &self.variable.unset) {
            (ValueError::Parameter(_), _) => format!("{self}; this parameter is ignored"),
            (_, Unset::Value(default)) => format!("{self}; using {default}"),
            (_, Unset::Means(meaning)) => format!("{self}; {meaning}"),
        }
    }
}

/// The problem with the value of an option or variable, and what to write.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValueError {
    /// Not a detail level.
    #[error("not a detail level; write 0, 1 or 2")]
    Level,
    /// Not a minimum duration of long calls.
    #[error("not a time; write a number and ns, us, ms or s, such as 20us, below 1000 s")]
    PathsFrom,
    /// Neither a kind of computation nor names of regions.
    #[error("not a kind of computation; write outside, blas, regions or regions=NAME,NAME")]
    Computation,
    /// Not a list of counters.
    #[error(transparent)]
    Counters(#[from] CounterError),
    /// Not a number of samples per second, or too many.
    #[error(
        "not a number of samples per second; write a whole number from 1 to 499, or 0 for none"
    )]
    Sample,
    /// Not a choice of events.
    #[error("not a choice of events; write first, last or totals")]
    Keeping,
    /// Not a time for which the newest calls are kept.
    #[error("not a time; write one from 1s to 24h, such as 60s or 5m")]
    Last,
    /// Not a number of bytes, or too many.
    #[error(
        "not a number of bytes; write a whole number, optionally followed by K, M, G or T, such as 64M"
    )]
    Bytes,
    /// A pair of a list is not a parameter.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// Not a number of clock exchanges.
    #[error("not a number of exchanges; write a whole number from 1 to 1000000")]
    ClockRounds,
    /// Not an interval between clock exchanges.
    #[error("not a time between exchanges; write seconds below 1e9, such as 60, or 0 for none")]
    ClockEvery,
    /// Not a time limit for a clock exchange.
    #[error("not a time limit; write seconds above 0 and below 1e6, such as 30")]
    ClockDeadline,
    /// Not a skew of a counter.
    #[error("not a skew of the counter; write OFFSET_NS,PPM, such as 5e6,20")]
    TestClock,
    /// Not valid text.
    #[error("not UTF-8; write plain text")]
    NotText,
}

/// Why a text is not a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParameterError {
    /// There is no separator between name and value.
    #[error("{0:?} has no '='; write NAME=VALUE, such as N=20000")]
    NoValue(String),
    /// The name is not a C identifier.
    #[error(
        "the name {0:?} must consist of letters, digits and '_' and must not begin with a digit"
    )]
    Name(String),
    /// The value contains a character that separates parameters, here or in a launcher's list.
    #[error("the value of {0} must not contain a comma, a semicolon or a control character")]
    Value(String),
}
