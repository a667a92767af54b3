//! What the environment asks of the recorder.
//!
//! In: variables that `gammachi run` and `gammachi exec` set, or the user. Out: [`Settings`], and a
//! sentence for every value that could not be used.

use std::ffi::OsString;
use std::path::PathBuf;

use trace_format::byte_size;
use trace_format::counters::{self, CounterRequest};
use trace_format::header::{Keeping, KeepingPolicy};

/// How the run is to be recorded.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `GAMMACHI_OUT`: run directory.
    pub out: Option<PathBuf>,
    /// `GAMMACHI_STAGE`: node-local directory that the rank's file lies in until MPI is finalized.
    pub stage: Option<PathBuf>,
    /// `GAMMACHI_LEVEL`: 0, 1 or 2.
    pub level: u8,
    /// `GAMMACHI_COMPUTE`: `outside`, `blas`, `regions` or `regions=NAME,NAME`.
    pub compute: String,
    /// `GAMMACHI_FLOPS=1`: interposed compute functions are recorded whatever counts as computation.
    pub flops: bool,
    /// `GAMMACHI_COUNTERS`: counters of processor and kernel to read; none without it.
    pub counters: Vec<CounterRequest>,
    /// `GAMMACHI_PARAMS`: `N=20000,NB=80`.
    pub parameters: Vec<(String, String)>,
    /// `GAMMACHI_KEEP` and `GAMMACHI_MAX_BYTES`: which events are kept, in how many bytes.
    pub keeping: Keeping,
    /// `GAMMACHI_CLOCK_ROUNDS`: two-way exchanges a pair.
    pub clock_rounds: u32,
    /// `GAMMACHI_CLOCK_EVERY`: seconds between clock exchanges during the run; none without it.
    pub clock_every_s: Option<f64>,
    /// `GAMMACHI_CLOCK_DEADLINE`: seconds that an exchange waits for its partner.
    pub clock_deadline_s: f64,
    /// The same: seconds that MPI_Finalize waits for the last rank to come, which it does anyway.
    pub finalize_deadline_s: f64,
    /// What could not be used, and what was used instead.
    pub complaints: Vec<String>,
}

/// A test's skew of this process's counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestClock {
    /// Added to every reading, nanoseconds.
    pub offset_ns: f64,
    /// Rate error, parts per million.
    pub ppm: f64,
}

/// Highest detail level that this recorder has.
const HIGHEST_LEVEL: u8 = 2;
const DEFAULT_LEVEL: u8 = 1;
/// Bytes of a rank's file from which on events are given up.
const DEFAULT_MAX_BYTES: u64 = 1 << 30;
const DEFAULT_CLOCK_ROUNDS: u32 = 100;
const DEFAULT_CLOCK_DEADLINE_S: f64 = 30.0;
const DEFAULT_FINALIZE_DEADLINE_S: f64 = 600.0;

impl Settings {
    /// Reads the environment.
    pub fn read() -> Self {
        Self::from_variables(&|name| std::env::var_os(name))
    }

    /// Reads variables by their names.
    fn from_variables(variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let text = |name: &str| set(name).and_then(|value| value.into_string().ok());
        let mut complaints = Vec::new();
        let mut number = |name: &str, default: f64, valid: &dyn Fn(f64) -> bool| match text(name) {
            None => default,
            Some(value) => match value.parse::<f64>() {
                Ok(number) if valid(number) => number,
                _ => {
                    complaints.push(format!("{name}={value} is no valid value; using {default}"));
                    default
                }
            },
        };
        let level =
            number("GAMMACHI_LEVEL", f64::from(DEFAULT_LEVEL), &|v| [0.0, 1.0, 2.0].contains(&v))
                as u8;
        let clock_rounds = number("GAMMACHI_CLOCK_ROUNDS", f64::from(DEFAULT_CLOCK_ROUNDS), &|v| {
            (1.0..=1e6).contains(&v) && v.fract() == 0.0
        }) as u32;
        let clock_every_s = number("GAMMACHI_CLOCK_EVERY", 0.0, &|v| (0.0..1e9).contains(&v));
        let clock_deadline_s =
            number("GAMMACHI_CLOCK_DEADLINE", DEFAULT_CLOCK_DEADLINE_S, &|v| v > 0.0 && v < 1e6);
        let finalize_deadline_s = match text("GAMMACHI_CLOCK_DEADLINE") {
            Some(_) => clock_deadline_s,
            None => DEFAULT_FINALIZE_DEADLINE_S,
        };
        let max_bytes = match text("GAMMACHI_MAX_BYTES") {
            None => DEFAULT_MAX_BYTES,
            Some(value) => byte_size::parse(&value).unwrap_or_else(|| {
                complaints.push(format!(
                    "GAMMACHI_MAX_BYTES={value} is no number of bytes, such as 64M; using 1G"
                ));
                DEFAULT_MAX_BYTES
            }),
        };
        let policy = match text("GAMMACHI_KEEP").as_deref() {
            None | Some("first") => KeepingPolicy::First,
            Some("last") => KeepingPolicy::Last,
            Some("totals") => KeepingPolicy::Totals,
            Some(other) => {
                complaints.push(format!(
                    "GAMMACHI_KEEP={other} is none of first, last, totals; using first"
                ));
                KeepingPolicy::First
            }
        };
        let keeping = Keeping { policy, max_bytes };
        let counters = match text("GAMMACHI_COUNTERS").map(|text| counters::parse(&text)) {
            None => Vec::new(),
            Some(Ok(requests)) => requests,
            Some(Err(why)) => {
                complaints.push(format!("GAMMACHI_COUNTERS: {why}; no counter is read"));
                Vec::new()
            }
        };
        let compute = match text("GAMMACHI_COMPUTE") {
            None => "outside".to_owned(),
            Some(value) if ["outside", "blas", "regions"].contains(&value.as_str()) => value,
            Some(value)
                if value.strip_prefix("regions=").is_some_and(|names| !names.is_empty()) =>
            {
                value
            }
            Some(value) => {
                complaints.push(format!(
                    "GAMMACHI_COMPUTE={value} is none of outside, blas, regions, regions=NAME,…; using outside"
                ));
                "outside".to_owned()
            }
        };
        Self {
            out: set("GAMMACHI_OUT").map(PathBuf::from),
            stage: set("GAMMACHI_STAGE").map(PathBuf::from),
            level: level.min(HIGHEST_LEVEL),
            compute,
            flops: text("GAMMACHI_FLOPS").is_some_and(|value| value != "0"),
            counters,
            parameters: text("GAMMACHI_PARAMS").map(|all| parameters(&all)).unwrap_or_default(),
            keeping,
            clock_rounds,
            clock_every_s: (clock_every_s > 0.0).then_some(clock_every_s),
            clock_deadline_s,
            finalize_deadline_s,
            complaints,
        }
    }
}

/// `GAMMACHI_OUT`.
pub fn out() -> Option<PathBuf> {
    std::env::var_os("GAMMACHI_OUT").filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn parameters(all: &str) -> Vec<(String, String)> {
    all.split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// `GAMMACHI_TEST_CLOCK=offset_ns,ppm`: skews this process's counter, for tests that know the truth.
pub fn test_clock() -> Option<TestClock> {
    skew(&text("GAMMACHI_TEST_CLOCK")?)
}

fn skew(value: &str) -> Option<TestClock> {
    let (offset, ppm) = value.split_once(',')?;
    Some(TestClock { offset_ns: offset.trim().parse().ok()?, ppm: ppm.trim().parse().ok()? })
}

/// `GAMMACHI_TEST_HOST`: host name to pretend, for tests that make many hosts of one.
pub fn test_host() -> Option<String> {
    text("GAMMACHI_TEST_HOST")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Settings {
        Settings::from_variables(&|name| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| value.into())
        })
    }

    #[test]
    fn without_variables_everything_is_recorded_in_the_default_way() {
        for settings in [settings(&[]), settings(&[("GAMMACHI_LEVEL", ""), ("GAMMACHI_OUT", "")])] {
            assert_eq!((settings.out, settings.stage), (None, None));
            assert_eq!((settings.level, settings.compute.as_str()), (1, "outside"));
            assert_eq!(settings.keeping.policy, KeepingPolicy::First);
            assert_eq!(settings.keeping.max_bytes, 1 << 30);
            assert_eq!((settings.clock_every_s, settings.flops), (None, false));
            assert_eq!(settings.complaints, [""; 0]);
        }
    }

    #[test]
    fn every_variable_is_obeyed() {
        let settings = settings(&[
            ("GAMMACHI_OUT", "/runs/one"),
            ("GAMMACHI_STAGE", "/local"),
            ("GAMMACHI_LEVEL", "2"),
            ("GAMMACHI_COMPUTE", "regions=solve,setup"),
            ("GAMMACHI_FLOPS", "1"),
            ("GAMMACHI_COUNTERS", "faults=software:2"),
            ("GAMMACHI_PARAMS", "N=20000,NB=80"),
            ("GAMMACHI_KEEP", "last"),
            ("GAMMACHI_MAX_BYTES", "64M"),
            ("GAMMACHI_CLOCK_ROUNDS", "1000"),
            ("GAMMACHI_CLOCK_EVERY", "2.5"),
            ("GAMMACHI_CLOCK_DEADLINE", "3"),
        ]);
        assert_eq!(settings.complaints, [""; 0]);
        assert_eq!(settings.out, Some("/runs/one".into()));
        assert_eq!(settings.stage, Some("/local".into()));
        assert_eq!((settings.level, settings.flops), (2, true));
        assert_eq!(settings.compute, "regions=solve,setup");
        assert_eq!(settings.counters.len(), 1);
        let parameters = [("N".to_owned(), "20000".to_owned()), ("NB".into(), "80".into())];
        assert_eq!(settings.parameters, parameters);
        assert_eq!(settings.keeping.policy, KeepingPolicy::Last);
        assert_eq!(settings.keeping.max_bytes, 64 << 20);
        assert_eq!((settings.clock_rounds, settings.clock_every_s), (1000, Some(2.5)));
        assert_eq!((settings.clock_deadline_s, settings.finalize_deadline_s), (3.0, 3.0));
    }

    #[test]
    fn what_cannot_be_used_is_named_and_the_default_stands() {
        for (name, value) in [
            ("GAMMACHI_LEVEL", "3"),
            ("GAMMACHI_LEVEL", "1.5"),
            ("GAMMACHI_COMPUTE", "all"),
            ("GAMMACHI_COMPUTE", "regions="),
            ("GAMMACHI_COUNTERS", "nothing"),
            ("GAMMACHI_KEEP", "some"),
            ("GAMMACHI_MAX_BYTES", "much"),
            ("GAMMACHI_CLOCK_ROUNDS", "0"),
            ("GAMMACHI_CLOCK_ROUNDS", "1e9"),
            ("GAMMACHI_CLOCK_EVERY", "-1"),
            ("GAMMACHI_CLOCK_DEADLINE", "NaN"),
        ] {
            let settings = settings(&[(name, value)]);
            assert_eq!(settings.complaints.len(), 1, "{name}={value}");
            assert!(settings.complaints[0].contains(name), "{:?}", settings.complaints);
            assert_eq!((settings.level, settings.compute.as_str()), (1, "outside"));
            assert_eq!(settings.keeping.max_bytes, 1 << 30);
            assert_eq!((settings.clock_rounds, settings.clock_every_s), (100, None));
            assert_eq!(settings.clock_deadline_s, 30.0);
        }
    }

    #[test]
    fn a_skew_is_two_numbers() {
        assert_eq!(skew("-5e9, 3"), Some(TestClock { offset_ns: -5e9, ppm: 3.0 }));
        assert_eq!((skew("5"), skew("a,1"), skew("")), (None, None, None));
    }
}
