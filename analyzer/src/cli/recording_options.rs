//! The options that select what is recorded, shared by `run` and `exec`.
//!
//! Command line and environment together give a [`Recording`]. `run` sets all of its variables for
//! the program, `exec` only those of given options. Values, defaults and help texts come from
//! [`trace_format::settings`].

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use trace_format::header::KeepingPolicy;
use trace_format::settings::values::{self, USUAL_SAMPLE_HZ, join_parameters};
use trace_format::settings::{
    CLOCK_EVERY, CLOCK_ROUNDS, COMPUTE, COUNTERS, Computation, FILE_NAMES, FLIGHT, FLOPS, FromEnv,
    IO, KEEP, LAST, LEVEL, MAX_BYTES, OPENMP, OUT, PARAMS, PATHS_FROM, RecordingOptions, SAMPLE,
    STAGE, ValueError,
};

use super::batch_limit::before_end;
use super::error::CommandError;
use super::recorder_environment::{Variable, merge_params};
use super::watch_metrics::MetricsPlace;
use super::watch_triggers::Triggers;

/// What to record.
#[derive(Debug, Clone, Default, Args)]
pub struct RecordingArguments {
    /// Run directory.
    #[arg(long, value_name = "DIR", help = OUT.help())]
    pub out: Option<PathBuf>,

    /// Detail.
    #[arg(long, value_name = "0|1|2", value_parser = values::level, help = LEVEL.help())]
    pub level: Option<u8>,

    /// What counts as computation.
    #[arg(long, value_name = "KIND", help = COMPUTE.help())]
    pub compute: Option<Computation>,

    /// Whether compute functions are recorded whatever counts as computation.
    #[arg(long, help = FLOPS.meaning)]
    pub flops: bool,

    /// Whether OpenMP parallel regions are recorded.
    #[arg(long, help = OPENMP.meaning)]
    pub openmp: bool,

    /// Whether calls on files are recorded.
    #[arg(long, help = IO.meaning)]
    pub io: bool,

    /// Whether names of files are kept.
    #[arg(long, requires = "io", help = FILE_NAMES.meaning)]
    pub file_names: bool,

    /// Minimum duration, in microseconds, of calls that record their call path.
    #[arg(long, value_name = "TIME", value_parser = values::paths_from_us, help = PATHS_FROM.help())]
    pub paths_from: Option<f64>,

    /// Counters to read, as written by the user.
    #[arg(long, value_name = "SPEC", value_parser = counters, help = COUNTERS.help())]
    pub counters: Option<String>,

    /// Samples per second of CPU time; without a number the usual ones.
    #[arg(long, value_name = "HZ", num_args = 0..=1, default_missing_value = USUAL_SAMPLE_HZ,
          value_parser = values::sample_hz, help = SAMPLE.help())]
    pub sample: Option<u32>,

    /// Whether the run is watched.
    #[arg(long, conflicts_with_all = ["keep", "max_bytes", "profile_only"], help = FLIGHT.meaning)]
    pub flight: bool,

    /// With --flight, how much of its newest calls each rank keeps: a time such as 60s, for which at most 64M per
    /// rank are used, or a size [default: 64M]
    #[arg(long, value_name = "TIME|BYTES", requires = "flight", value_parser = last)]
    pub last: Option<Last>,

    /// With --flight, when a snapshot is taken, as for `gammachi watch`: hang=TIME, slow=FACTOR, memory=TIME,
    /// limit=TIME, exit, signal [default: hang=30s,exit,signal]
    #[arg(long, value_name = "LIST", requires = "flight", value_parser = on)]
    pub on: Option<String>,

    /// With --flight, publish figures for Prometheus, as for `gammachi watch`: in a file, or on a port of 127.0.0.1
    #[arg(long, value_name = "FILE|PORT", requires = "flight")]
    pub metrics: Option<MetricsPlace>,

    /// Limit of a rank's file.
    #[arg(long, value_name = "BYTES", value_parser = values::bytes, help = MAX_BYTES.help())]
    pub max_bytes: Option<u64>,

    /// Which events are kept beyond the limit.
    #[arg(long, value_name = "WHICH", value_parser = kept_events(), help = KEEP.help())]
    pub keep: Option<KeepingPolicy>,

    /// Keep no events, only counts, times, sizes and their distributions by function, kind of peer
    /// and size: less than 100 kB per rank, for runs that take days
    #[arg(long, conflicts_with_all = ["keep", "max_bytes"])]
    pub profile_only: bool,

    /// Where rank files are kept until MPI is finalized.
    #[arg(long, value_name = "DIR", help = STAGE.help())]
    pub stage: Option<PathBuf>,

    /// A parameter of the run, such as N=20000; it is stored in the trace and identifies the run in
    /// later comparisons. May be given several times
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = values::parameter)]
    pub params: Vec<(String, String)>,

    /// Two-way clock exchanges per pair of ranks.
    #[arg(long, value_name = "N", value_parser = values::clock_rounds, help = CLOCK_ROUNDS.help())]
    pub clock_rounds: Option<u32>,

    /// Seconds between clock exchanges during the run.
    #[arg(long, value_name = "SECONDS", value_parser = values::clock_every_s,
          help = CLOCK_EVERY.help())]
    pub clock_every: Option<f64>,
}

/// Bytes of the newest calls that a watched rank keeps.
const LAST_BYTES: u64 = 64 << 20;

/// The policies for `--keep`. To keep no events there is `--profile-only`.
fn kept_events() -> impl TypedValueParser<Value = KeepingPolicy> {
    let names = [KeepingPolicy::First, KeepingPolicy::Last].map(values::keeping_name);
    PossibleValuesParser::new(names).try_map(|name| values::keeping(&name))
}

/// How much of its newest calls a watched rank keeps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Last {
    Bytes(u64),
    Seconds(f64),
}

fn last(text: &str) -> Result<Last, String> {
    // 5m are minutes.
    let time = values::last_s(text).map(Last::Seconds);
    let parsed = time.or_else(|_| values::bytes(text).map(Last::Bytes));
    parsed.map_err(|_| "neither a time from 1s to 24h, such as 60s, nor a size, such as 64M".into())
}

fn on(text: &str) -> Result<String, String> {
    Triggers::parse(text).map(|_| text.to_owned())
}

fn counters(text: &str) -> Result<String, ValueError> {
    values::counters(text).map(|_| text.to_owned())
}

/// The settings of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// Options, then the environment, then defaults: as the recorder will read them.
    pub options: RecordingOptions,
    /// The variables of the given options and no others; without the run directory.
    pub given: Vec<Variable>,
    /// What the run is watched for.
    pub watched_for: Option<Triggers>,
}

impl RecordingArguments {
    /// Merges options, environment and defaults, in this order of precedence.
    pub fn decide(&self) -> Result<Recording, CommandError> {
        self.decide_from(|name| env::var_os(name))
    }

    fn decide_from(
        &self,
        inherited: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Recording, CommandError> {
        let mut given = self.given();
        let FromEnv { mut options, errors } = RecordingOptions::from_env(|name| {
            let found = given.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| value.clone()).or_else(|| inherited(name))
        });
        if !errors.is_empty() {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            return Err(CommandError::usage(errors.join("\n")));
        }
        if !self.params.is_empty() {
            options.parameters = merge_params(options.parameters, self.params.iter().cloned());
            given.push((PARAMS.name, join_parameters(&options.parameters).into()));
        }
        let watched_for = options.flight.as_deref().map(|text| match text {
            "1" => Triggers::parse(Triggers::USUAL),
            list => Triggers::parse(list),
        });
        let watched_for = watched_for.transpose().map_err(|why| {
            let value = options.flight.as_deref().unwrap_or_default();
            CommandError::usage(format!("{}={value:?}: {why}", FLIGHT.name))
        })?;
        if let Some(limit_s) = watched_for.as_ref().and_then(|triggers| triggers.limit_s) {
            before_end(limit_s, inherited)?;
        }
        Ok(Recording { options, given, watched_for })
    }

    /// The variables of the given options, except for parameters, which are added to inherited
    /// ones.
    fn given(&self) -> Vec<Variable> {
        let text = |value: &dyn ToString| OsString::from(value.to_string());
        let keep = match (self.profile_only, self.flight) {
            (true, _) => Some(KeepingPolicy::Totals),
            (_, true) => Some(KeepingPolicy::Last),
            _ => self.keep,
        };
        let watched = self.flight.then(|| self.on.clone().unwrap_or_else(|| "1".into()));
        let max_bytes = match self.flight {
            true => Some(match self.last {
                Some(Last::Bytes(bytes)) => bytes,
                _ => LAST_BYTES,
            }),
            false => self.max_bytes,
        };
        let last = match self.last {
            Some(Last::Seconds(seconds)) => Some(format!("{seconds}s")),
            _ => None,
        };
        // Ranks may be started in another directory.
        let absolute =
            |stage: &PathBuf| std::path::absolute(stage).unwrap_or_else(|_| stage.clone());
        let values = [
            (&STAGE, self.stage.as_ref().map(|stage| absolute(stage).into_os_string())),
            (&LEVEL, self.level.map(|level| text(&level))),
            (&PATHS_FROM, self.paths_from.map(|time| format!("{time}us").into())),
            (&COMPUTE, self.compute.as_ref().map(|compute| text(compute))),
            (&FLOPS, self.flops.then(|| "1".into())),
            (&OPENMP, self.openmp.then(|| "1".into())),
            (&IO, self.io.then(|| "1".into())),
            (&FILE_NAMES, self.file_names.then(|| "1".into())),
            (&COUNTERS, self.counters.as_ref().map(|counters| text(counters))),
            (&SAMPLE, self.sample.map(|rate| text(&rate))),
            (&FLIGHT, watched.map(OsString::from)),
            (&MAX_BYTES, max_bytes.map(|bytes| text(&bytes))),
            (&KEEP, keep.map(|policy| values::keeping_name(policy).into())),
            (&LAST, last.map(OsString::from)),
            (&CLOCK_ROUNDS, self.clock_rounds.map(|rounds| text(&rounds))),
            (&CLOCK_EVERY, self.clock_every.map(|seconds| text(&seconds))),
        ];
        values.into_iter().filter_map(|(variable, value)| Some((variable.name, value?))).collect()
    }
}

impl Recording {
    /// The variables that give every rank these settings: those of [`RecordingOptions::to_env`],
    /// and options that request a default where the environment requests something else.
    pub fn variables(&self) -> Vec<Variable> {
        let mut variables = self.given.clone();
        for (name, value) in self.options.to_env() {
            if !variables.iter().any(|(given, _)| *given == name) {
                variables.push((name, value));
            }
        }
        variables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(
        options: &RecordingArguments,
        environment: &[(&str, &str)],
    ) -> Result<Recording, CommandError> {
        options.decide_from(|name| {
            environment.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn options_override_environment_and_environment_defaults() {
        let none = RecordingArguments::default();
        let decided = decide(&none, &[]).unwrap();
        assert_eq!(decided.options, RecordingOptions::default());
        assert_eq!(decided.given, []);
        let environment = [(LEVEL.name, "2"), (COMPUTE.name, "blas"), (PARAMS.name, "N=1,P=2")];
        let decided = decide(&none, &environment).unwrap();
        assert_eq!((decided.options.level, decided.options.compute.as_str()), (2, "blas"));
        let arguments = RecordingArguments {
            level: Some(0),
            params: vec![("N".into(), "7".into())],
            ..RecordingArguments::default()
        };
        let decided = decide(&arguments, &environment).unwrap();
        assert_eq!((decided.options.level, decided.options.compute.as_str()), (0, "blas"));
        let given = [(LEVEL.name, "0".into()), (PARAMS.name, "N=7,P=2".into())];
        assert_eq!(decided.given, given);
        let all: Vec<&str> = decided.variables().iter().map(|(name, _)| *name).collect();
        assert_eq!(all, [LEVEL.name, PARAMS.name, COMPUTE.name]);
    }

    #[test]
    fn option_equal_to_default_overrides_environment() {
        let first = RecordingArguments {
            keep: Some(KeepingPolicy::First),
            clock_every: Some(0.0),
            ..RecordingArguments::default()
        };
        let decided = decide(&first, &[(KEEP.name, "last"), (CLOCK_EVERY.name, "9")]).unwrap();
        assert_eq!(decided.options, RecordingOptions::default());
        let variables = decided.variables();
        assert!(variables.contains(&(KEEP.name, "first".into())));
        assert!(variables.contains(&(CLOCK_EVERY.name, "0".into())));
    }

    #[test]
    fn watched_run_keeps_its_newest_calls() {
        let flight = RecordingArguments { flight: true, ..RecordingArguments::default() };
        let decided = decide(&flight, &[(KEEP.name, "first"), (MAX_BYTES.name, "1G")]).unwrap();
        let keeping = decided.options.keeping.clone();
        assert_eq!((keeping.policy, keeping.max_bytes), (KeepingPolicy::Last, LAST_BYTES));
        assert_eq!(decided.watched_for, Triggers::parse(Triggers::USUAL).ok());
        let of_time = |text: &str| {
            let flight = RecordingArguments { last: last(text).ok(), ..flight.clone() };
            let options = decide(&flight, &[]).unwrap().options;
            (options.keeping.max_bytes, options.last_s)
        };
        assert_eq!(
            (of_time("90s"), of_time("5m")),
            ((LAST_BYTES, Some(90.0)), (LAST_BYTES, Some(300.0)))
        );
        assert_eq!(of_time("8M"), (8 << 20, None));
        let by_environment =
            decide(&RecordingArguments::default(), &[(FLIGHT.name, "exit")]).unwrap();
        assert_eq!(by_environment.options.keeping, keeping);
        assert_eq!(by_environment.watched_for, Triggers::parse("exit").ok());
        let wrong = decide(&RecordingArguments::default(), &[(FLIGHT.name, "exits")]).unwrap_err();
        assert!(wrong.to_string().starts_with(FLIGHT.name), "{wrong}");
    }

    #[test]
    fn option_overrides_invalid_variable() {
        let counting = RecordingArguments {
            counters: Some("faults=software:2".into()),
            flops: true,
            ..RecordingArguments::default()
        };
        let variables = decide(&counting, &[(COUNTERS.name, "?")]).unwrap().variables();
        assert!(variables.contains(&(COUNTERS.name, "faults=software:2".into())));
        assert!(variables.contains(&(FLOPS.name, "1".into())));
    }
}
