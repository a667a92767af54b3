//! What is wrong with a value, and what to write instead.

use std::ffi::OsString;

use thiserror::Error;

use super::variables::{Unset, Variable};
use crate::counters::CounterError;

/// A variable whose value cannot be used: `GAMMACHI_LEVEL="3": not a detail level; write 0, 1 or 2`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}={value:?}: {problem}", .variable.name)]
pub struct SettingError {
    /// The variable.
    pub variable: &'static Variable,
    /// Its value.
    pub value: OsString,
    /// What is wrong with it.
    pub problem: ValueError,
}

impl SettingError {
    /// The same sentence with what the recorder does instead: `…; using 1`.
    pub fn with_fallback(&self) -> String {
        match (&self.problem, &self.variable.unset) {
            (ValueError::Parameter(_), _) => format!("{self}; this parameter is left out"),
            (_, Unset::Value(default)) => format!("{self}; using {default}"),
            (_, Unset::Means(meaning)) => format!("{self}; {meaning}"),
        }
    }
}

/// What is wrong with the value of an option or variable, and what to write.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValueError {
    /// No level.
    #[error("not a detail level; write 0, 1 or 2")]
    Level,
    /// No length of calls.
    #[error("not a time; write a number and ns, us, ms or s, such as 20us, below 1000 s")]
    PathsFrom,
    /// Neither a kind of computation nor names of regions.
    #[error("not a kind of computation; write outside, blas, regions or regions=NAME,NAME")]
    Computation,
    /// No list of counters.
    #[error(transparent)]
    Counters(#[from] CounterError),
    /// No choice of events.
    #[error("not a choice of events; write first, last or totals")]
    Keeping,
    /// No number of bytes, or too many.
    #[error(
        "not a number of bytes; write a whole number, with K, M, G or T behind it if you like, such as 64M"
    )]
    Bytes,
    /// One pair of several is none.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// No number of clock exchanges.
    #[error("not a number of exchanges; write a whole number from 1 to 1000000")]
    ClockRounds,
    /// No time between clock exchanges.
    #[error("not a time between exchanges; write seconds below 1e9, such as 60, or 0 for none")]
    ClockEvery,
    /// No time to wait for a clock exchange.
    #[error("not a time limit; write seconds above 0 and below 1e6, such as 30")]
    ClockDeadline,
    /// No skew of a counter.
    #[error("not a skew of the counter; write OFFSET_NS,PPM, such as 5e6,20")]
    TestClock,
    /// Bytes that are no text.
    #[error("not UTF-8; write plain text")]
    NotText,
}

/// Why a text is no parameter.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParameterError {
    /// Nothing separates name and value.
    #[error("{0:?} has no '='; write NAME=VALUE, such as N=20000")]
    NoValue(String),
    /// The name is no C identifier.
    #[error("the name {0:?} must be of letters, digits and '_' and not begin with a digit")]
    Name(String),
    /// The value holds what separates parameters here or in a launcher's list.
    #[error("the value of {0} may hold no comma, no semicolon and no control character")]
    Value(String),
}
