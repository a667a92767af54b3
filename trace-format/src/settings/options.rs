//! Reads recording options from the environment and writes them to it.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use super::errors::{SettingError, ValueError};
use super::values::{self, Computation};
use super::variables::{
    CLOCK_DEADLINE, CLOCK_EVERY, CLOCK_ROUNDS, COMPUTE, COUNTERS, FILE_NAMES, FLIGHT, FLOPS, IO,
    KEEP, LAST, LEVEL, MAX_BYTES, OPENMP, OUT, PARAMS, PATHS_FROM, SAMPLE, STAGE,
};
use crate::counters::{self, CounterRequest};
use crate::header::{Keeping, KeepingPolicy};

/// How a run is to be recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordingOptions {
    /// Run directory. If there is none, the recorder chooses one.
    pub out: Option<PathBuf>,
    /// Directory on the host's own storage where rank files are kept until MPI is finalized.
    pub stage: Option<PathBuf>,
    /// Detail level, one of [`values::LEVELS`].
    pub level: u8,
    /// Minimum duration in microseconds of calls that get a call path, at level 2.
    pub paths_from_us: f64,
    /// What counts as computation.
    pub compute: Computation,
    /// Whether compute functions are recorded regardless of what counts as computation.
    pub flops: bool,
    /// Whether OpenMP parallel regions are recorded.
    pub openmp: bool,
    /// Whether calls on files are recorded.
    pub io: bool,
    /// Whether names of files are kept.
    pub file_names: bool,
    /// Performance counters of processor and kernel to read.
    pub counters: Vec<CounterRequest>,
    /// Samples per second of a thread's CPU time. `None`: the program's own code is not sampled.
    pub sample_hz: Option<u32>,
    /// Parameters of the run, names and values.
    pub parameters: Vec<(String, String)>,
    /// What is watched for while the run goes on, as text for the command. `None`: nobody watches.
    pub flight: Option<String>,
    /// Which events are kept, and the size limit.
    pub keeping: Keeping,
    /// Seconds of the newest events that are enough, if the limit allows more.
    pub last_s: Option<f64>,
    /// When clocks are compared.
    pub clock: ClockOptions,
}

/// When clocks are compared, and how long ranks wait for each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockOptions {
    /// Number of two-way exchanges of a pair of ranks.
    pub rounds: u32,
    /// Interval between exchanges during the run in seconds. `None`: at start and end only.
    pub every_s: Option<f64>,
    /// Time limit in seconds, if one is set.
    pub deadline_s: Option<f64>,
}

/// Options from an environment, and its unusable values.
#[derive(Debug, Clone, PartialEq)]
pub struct FromEnv {
    /// The options, with defaults for unusable values.
    pub options: RecordingOptions,
    /// The unusable values.
    pub errors: Vec<SettingError>,
}

impl ClockOptions {
    /// Seconds that an exchange waits for its partner.
    pub fn exchange_deadline_s(&self) -> f64 {
        self.deadline_s.unwrap_or(30.0)
    }

    /// Seconds that MPI_Finalize waits for the last rank, which it would wait for anyway.
    pub fn finalize_deadline_s(&self) -> f64 {
        self.deadline_s.unwrap_or(600.0)
    }
}

impl Default for RecordingOptions {
    fn default() -> Self {
        Self {
            out: None,
            stage: None,
            level: 1,
            paths_from_us: 20.0,
            compute: Computation::default(),
            flops: false,
            openmp: false,
            io: false,
            file_names: false,
            counters: Vec::new(),
            sample_hz: None,
            parameters: Vec::new(),
            flight: None,
            keeping: usual_keeping(false),
            last_s: None,
            clock: ClockOptions { rounds: 100, every_s: None, deadline_s: None },
        }
    }
}

impl RecordingOptions {
    /// Reads variables by name. An unset, empty or unusable one has its default value; usable
    /// parameters are kept.
    pub fn from_env(lookup: impl Fn(&str) -> Option<OsString>) -> FromEnv {
        let mut errors = Vec::new();
        let default = Self::default();
        let flight = valid(FLIGHT.text(&lookup), &mut errors).filter(|text| values::flag(text));
        let usual = usual_keeping(flight.is_some());
        let options = Self {
            out: OUT.value(&lookup).map(PathBuf::from),
            stage: STAGE.value(&lookup).map(PathBuf::from),
            level: valid(LEVEL.parsed(&lookup, values::level), &mut errors)
                .unwrap_or(default.level),
            paths_from_us: valid(PATHS_FROM.parsed(&lookup, values::paths_from_us), &mut errors)
                .unwrap_or(default.paths_from_us),
            compute: valid(COMPUTE.parsed(&lookup, str::parse), &mut errors)
                .unwrap_or(default.compute),
            flops: valid(FLOPS.text(&lookup), &mut errors)
                .map_or(default.flops, |text| values::flag(&text)),
            openmp: valid(OPENMP.text(&lookup), &mut errors)
                .map_or(default.openmp, |text| values::flag(&text)),
            io: valid(IO.text(&lookup), &mut errors).map_or(default.io, |text| values::flag(&text)),
            file_names: valid(FILE_NAMES.text(&lookup), &mut errors)
                .map_or(default.file_names, |text| values::flag(&text)),
            counters: valid(COUNTERS.parsed(&lookup, values::counters), &mut errors)
                .unwrap_or(default.counters),
            sample_hz: valid(SAMPLE.parsed(&lookup, values::sample_hz), &mut errors)
                .filter(|rate| *rate > 0),
            parameters: parameters(&lookup, &mut errors),
            flight,
            keeping: Keeping {
                policy: valid(KEEP.parsed(&lookup, values::keeping), &mut errors)
                    .unwrap_or(usual.policy),
                max_bytes: valid(MAX_BYTES.parsed(&lookup, values::bytes), &mut errors)
                    .unwrap_or(usual.max_bytes),
            },
            last_s: valid(LAST.parsed(&lookup, values::last_s), &mut errors),
            clock: ClockOptions {
                rounds: valid(CLOCK_ROUNDS.parsed(&lookup, values::clock_rounds), &mut errors)
                    .unwrap_or(default.clock.rounds),
                every_s: valid(CLOCK_EVERY.parsed(&lookup, values::clock_every_s), &mut errors)
                    .filter(|seconds| *seconds > 0.0),
                deadline_s: valid(
                    CLOCK_DEADLINE.parsed(&lookup, values::clock_deadline_s),
                    &mut errors,
                ),
            },
        };
        FromEnv { options, errors }
    }

    /// The variables that represent the options: [`RecordingOptions::from_env`] reads the same
    /// options from them.
    ///
    /// The level and the kind of computation are always included, others only if they differ from
    /// the default.
    pub fn to_env(&self) -> Vec<(&'static str, OsString)> {
        let default = Self::default();
        let mut variables: Vec<(&'static str, OsString)> = Vec::new();
        let mut set = |name, is_set: bool, value: OsString| {
            if is_set {
                variables.push((name, value));
            }
        };
        for (variable, path) in [(&OUT, &self.out), (&STAGE, &self.stage)] {
            set(variable.name, path.is_some(), path.clone().unwrap_or_default().into());
        }
        set(LEVEL.name, true, self.level.to_string().into());
        let from = self.paths_from_us;
        set(PATHS_FROM.name, from != default.paths_from_us, format!("{from}us").into());
        set(COMPUTE.name, true, self.compute.as_str().into());
        set(FLOPS.name, self.flops, "1".into());
        set(OPENMP.name, self.openmp, "1".into());
        set(IO.name, self.io, "1".into());
        set(FILE_NAMES.name, self.file_names, "1".into());
        set(COUNTERS.name, !self.counters.is_empty(), counters::join(&self.counters).into());
        let rate = self.sample_hz.unwrap_or_default();
        set(SAMPLE.name, self.sample_hz.is_some(), rate.to_string().into());
        let parameters = values::join_parameters(&self.parameters);
        set(PARAMS.name, !parameters.is_empty(), parameters.into());
        let Keeping { policy, max_bytes } = &self.keeping;
        let usual = usual_keeping(self.flight.is_some());
        let flight = self.flight.clone();
        set(FLIGHT.name, flight.is_some(), flight.unwrap_or_default().into());
        let is_limited = *max_bytes != usual.max_bytes;
        set(MAX_BYTES.name, is_limited, max_bytes.to_string().into());
        let is_chosen = *policy != usual.policy;
        set(KEEP.name, is_chosen, values::keeping_name(*policy).into());
        let last = self.last_s.map(|seconds| format!("{seconds}s")).unwrap_or_default();
        set(LAST.name, self.last_s.is_some(), last.into());
        let ClockOptions { rounds, every_s, deadline_s } = self.clock;
        set(CLOCK_ROUNDS.name, rounds != default.clock.rounds, rounds.to_string().into());
        for (variable, seconds) in [(&CLOCK_EVERY, every_s), (&CLOCK_DEADLINE, deadline_s)] {
            let text = seconds.unwrap_or_default().to_string();
            set(variable.name, seconds.is_some(), text.into());
        }
        variables
    }
}

/// The variables that represent the options, as written in a shell if no value needed quoting.
impl fmt::Display for RecordingOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.to_env().iter().enumerate() {
            let blank = if index == 0 { "" } else { " " };
            write!(f, "{blank}{name}={}", value.to_string_lossy())?;
        }
        Ok(())
    }
}

/// What is kept if nothing is said: of a run that is watched, as much as a snapshot of it may take.
fn usual_keeping(is_watched: bool) -> Keeping {
    match is_watched {
        false => Keeping { policy: KeepingPolicy::First, max_bytes: 1 << 30 },
        true => Keeping { policy: KeepingPolicy::Last, max_bytes: 64 << 20 },
    }
}

/// The value, if it is usable. Otherwise adds the error.
fn valid<T>(read: Result<Option<T>, SettingError>, errors: &mut Vec<SettingError>) -> Option<T> {
    read.unwrap_or_else(|error| {
        errors.push(error);
        None
    })
}

fn parameters(
    lookup: impl Fn(&str) -> Option<OsString>,
    errors: &mut Vec<SettingError>,
) -> Vec<(String, String)> {
    let Some(text) = valid(PARAMS.text(lookup), errors) else { return Vec::new() };
    let mut pairs = Vec::new();
    for pair in values::parameters(&text) {
        match pair {
            Ok(pair) => pairs.push(pair),
            Err(why) => errors.push(SettingError {
                variable: &PARAMS,
                value: OsString::from(&text),
                problem: ValueError::Parameter(why),
            }),
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::super::variables::{Purpose, ReadBy, Unset, VARIABLES, Variable};
    use super::*;

    fn read(variables: &[(&str, OsString)]) -> FromEnv {
        RecordingOptions::from_env(|name| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| value.clone())
        })
    }

    fn read_one(variable: &Variable, value: &str) -> FromEnv {
        read(&[(variable.name, value.into())])
    }

    /// Variables that are options of a recording.
    fn settings() -> impl Iterator<Item = &'static Variable> {
        let all = VARIABLES.into_iter();
        all.filter(|one| one.purpose == Purpose::Setting && one.read_by != ReadBy::Command)
    }

    #[test]
    fn empty_environment_gives_defaults() {
        assert_eq!(read(&[]), FromEnv { options: RecordingOptions::default(), errors: vec![] });
        let empty: Vec<_> = settings().map(|one| (one.name, OsString::new())).collect();
        assert_eq!(read(&empty), read(&[]));
    }

    #[test]
    fn defaults_in_table_match_options() {
        for variable in settings().filter(|one| one.name != OUT.name) {
            if let Unset::Value(default) = variable.unset {
                assert_eq!(read_one(variable, default), read(&[]), "{}", variable.name);
            }
        }
        let clock = RecordingOptions::default().clock;
        let Unset::Means(text) = CLOCK_DEADLINE.unset else { panic!("it has two defaults") };
        assert!(text.contains(&format!("{} s for an exchange", clock.exchange_deadline_s())));
        assert!(text.contains(&format!("{} s for the last rank", clock.finalize_deadline_s())));
    }

    #[test]
    fn reads_and_writes_back_every_variable() {
        let variables: Vec<(&str, OsString)> = [
            (&OUT, "/runs/one"),
            (&STAGE, "/local"),
            (&LEVEL, "2"),
            (&PATHS_FROM, "50us"),
            (&COMPUTE, "regions=solve,setup"),
            (&FLOPS, "1"),
            (&OPENMP, "1"),
            (&IO, "1"),
            (&FILE_NAMES, "1"),
            (&COUNTERS, "flops,faults=software:2"),
            (&SAMPLE, "499"),
            (&PARAMS, "N=20000,NB=80"),
            (&FLIGHT, "hang=1m,exit"),
            (&MAX_BYTES, "32M"),
            (&KEEP, "first"),
            (&LAST, "90s"),
            (&CLOCK_ROUNDS, "1000"),
            (&CLOCK_EVERY, "2.5"),
            (&CLOCK_DEADLINE, "3"),
        ]
        .map(|(variable, value)| (variable.name, value.into()))
        .into();
        assert_eq!(variables.len(), settings().count());
        let FromEnv { options, errors } = read(&variables);
        assert_eq!(errors, []);
        assert_eq!(options.out, Some("/runs/one".into()));
        assert_eq!(options.stage, Some("/local".into()));
        assert_eq!((options.level, options.flops), (2, true));
        assert_eq!(options.paths_from_us, 50.0);
        assert_eq!(options.compute.as_str(), "regions=solve,setup");
        assert_eq!((options.counters.len(), options.sample_hz), (2, Some(499)));
        let parameters = [("N".to_owned(), "20000".to_owned()), ("NB".into(), "80".into())];
        assert_eq!(options.parameters, parameters);
        assert_eq!(options.keeping, Keeping { policy: KeepingPolicy::First, max_bytes: 32 << 20 });
        assert_eq!(options.flight.as_deref(), Some("hang=1m,exit"));
        assert_eq!(options.last_s, Some(90.0));
        let clock = options.clock;
        assert_eq!((clock.rounds, clock.every_s), (1000, Some(2.5)));
        assert_eq!((clock.exchange_deadline_s(), clock.finalize_deadline_s()), (3.0, 3.0));

        let written = options.to_env();
        assert!(written.iter().map(|one| one.0).eq(variables.iter().map(|one| one.0)));
        assert_eq!(read(&written), FromEnv { options, errors });
    }

    #[test]
    fn newest_calls_of_a_watched_run_are_kept() {
        let FromEnv { options, errors } = read_one(&FLIGHT, "1");
        assert_eq!((options.keeping, errors), (usual_keeping(true), vec![]));
        assert_eq!(read_one(&FLIGHT, "0"), read(&[]));
    }

    #[test]
    fn writes_defaults_as_level_and_computation() {
        let options = RecordingOptions::default();
        let expected = format!("{}=1 {}=outside", LEVEL.name, COMPUTE.name);
        assert_eq!(options.to_string(), expected);
        assert_eq!(read(&options.to_env()).options, options);
    }

    #[test]
    fn any_value_but_zero_sets_flag() {
        for (value, flops) in [("1", true), ("yes", true), ("0", false), ("", false)] {
            assert_eq!(read_one(&FLOPS, value).options.flops, flops, "{value}");
        }
    }

    #[test]
    fn zero_seconds_mean_no_exchange_during_run() {
        let FromEnv { options, errors } = read_one(&CLOCK_EVERY, "0");
        assert_eq!((options.clock.every_s, errors.len()), (None, 0));
    }

    #[test]
    fn explains_wrong_value_and_uses_default() {
        for (variable, value, problem, fallback) in [
            (&LEVEL, "3", "not a detail level; write 0, 1 or 2", "using 1"),
            (&LEVEL, "1.5", "not a detail level", "using 1"),
            (&LEVEL, "-1", "not a detail level", "using 1"),
            (&PATHS_FROM, "20", "not a time; write a number and ns, us, ms or s", "using 20us"),
            (&PATHS_FROM, "-1us", "not a time", "using 20us"),
            (&COMPUTE, "all", "write outside, blas, regions or", "using outside"),
            (&COMPUTE, "regions=", "not a kind of computation", "using outside"),
            (&COUNTERS, "bytes", "no built-in choice", "no counter is read"),
            (&COUNTERS, "a=cache:1", "not an event", "no counter is read"),
            (&SAMPLE, "500", "from 1 to 499", "the program's own code is not sampled"),
            (&SAMPLE, "often", "from 1 to 499", "the program's own code is not sampled"),
            (&PARAMS, "N", "has no '='; write NAME=VALUE", "this parameter is ignored"),
            (&PARAMS, "1N=2", "letters, digits and '_'", "this parameter is ignored"),
            (&KEEP, "some", "write first, last or totals", "using first"),
            (&LAST, "60", "such as 60s", "as many as --max-bytes allows"),
            (&MAX_BYTES, "much", "such as 64M", "using 1G"),
            (&MAX_BYTES, "-1", "not a number of bytes", "using 1G"),
            (&CLOCK_ROUNDS, "0", "from 1 to 1000000", "using 100"),
            (&CLOCK_ROUNDS, "1e9", "from 1 to 1000000", "using 100"),
            (&CLOCK_EVERY, "-1", "seconds below 1e9", "clocks are compared at start and end only"),
            (&CLOCK_EVERY, "NaN", "seconds below 1e9", "clocks are compared at start and end only"),
            (&CLOCK_DEADLINE, "NaN", "seconds above 0", "30 s for an exchange"),
            (&CLOCK_DEADLINE, "0", "seconds above 0", "30 s for an exchange"),
        ] {
            let FromEnv { options, errors } = read_one(variable, value);
            assert_eq!(options, RecordingOptions::default(), "{}={value}", variable.name);
            let [error] = &errors[..] else { panic!("{}={value}: {errors:?}", variable.name) };
            let text = error.to_string();
            assert!(text.starts_with(&format!("{}={value:?}: ", variable.name)), "{text}");
            assert!(text.contains(problem), "{text}");
            let whole = error.with_fallback();
            assert!(
                whole.starts_with(&text) && whole.contains(&format!("; {fallback}")),
                "{whole}"
            );
        }
    }

    #[test]
    fn rejects_values_that_are_not_utf8_except_paths() {
        let bytes = OsString::from_vec(vec![b'a', 0xff]);
        for variable in settings() {
            let FromEnv { options, errors } = read(&[(variable.name, bytes.clone())]);
            if [OUT.name, STAGE.name].contains(&variable.name) {
                assert_eq!(errors, []);
                assert_ne!(options, RecordingOptions::default());
                continue;
            }
            assert_eq!(options, RecordingOptions::default());
            let expected = format!("{}=\"a\\xFF\": not UTF-8; write plain text", variable.name);
            assert_eq!(errors.iter().map(|e| e.to_string()).collect::<Vec<_>>(), [expected]);
        }
    }

    #[test]
    fn reports_all_errors_and_keeps_valid_parameters() {
        let variables = [(LEVEL.name, "x".into()), (PARAMS.name, "N=1,oops,P=2,3=4".into())];
        let FromEnv { options, errors } = read(&variables);
        assert_eq!(errors.len(), 3);
        assert_eq!(values::join_parameters(&options.parameters), "N=1,P=2");
    }

    #[test]
    fn error_is_one_line() {
        let text = read_one(&KEEP, "a\nb\x1b[2J").errors[0].to_string();
        assert!(text.chars().all(|c| !c.is_control()), "{text:?}");
    }
}
