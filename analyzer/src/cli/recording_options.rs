//! The options that say what is recorded, shared by `run` and `exec`.
//!
//! In: the command line and the environment as inherited. Out: [`RecordingOptions`], which `run`
//! completes with defaults ([`Recording`]) and `exec` hands on as they are.

use std::env;
use std::path::PathBuf;

use clap::Args;
use trace_format::{byte_size, counters};

use super::CommandError;
use super::recorder_environment::{
    GAMMACHI_CLOCK_EVERY, GAMMACHI_CLOCK_ROUNDS, GAMMACHI_COMPUTE, GAMMACHI_COUNTERS,
    GAMMACHI_FLOPS, GAMMACHI_KEEP, GAMMACHI_LEVEL, GAMMACHI_MAX_BYTES, GAMMACHI_PARAMS,
    GAMMACHI_STAGE, Variable, join_params, merge_params, parse_param, split_params,
};

/// What may be counted as computation.
pub const COMPUTE_KINDS: [&str; 3] = ["outside", "blas", "regions"];
/// Level where none is given.
pub const DEFAULT_LEVEL: u8 = 1;

/// What to record.
#[derive(Debug, Clone, Default, Args)]
pub struct RecordingOptions {
    /// Run directory to write [default: ./NAME-DATE.gammachi]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Detail: 0 function and times, 1 also who, how much and which communicator, 2 also the call
    /// site [default: 1]
    #[arg(long, value_name = "0|1|2", value_parser = clap::value_parser!(u8).range(0..=2))]
    pub level: Option<u8>,

    /// What counts as computation: `outside` (all time outside MPI), `blas` (BLAS 3, LAPACK and FFTW
    /// calls), `regions` (what the program marks), or `regions=solve,fft` [default: outside]
    #[arg(long, value_name = "KIND", value_parser = parse_compute)]
    pub compute: Option<String>,

    /// Record BLAS, LAPACK and FFTW calls for their operations, whatever counts as computation:
    /// `gammachi roofline` wants them
    #[arg(long)]
    pub flops: bool,

    /// Read counters of processor and kernel (perf_event) at begin, end and regions of each rank:
    /// `flops` (operations, where the processor has such an event), or NAME=TYPE:CONFIG with TYPE raw,
    /// hardware, software or a number, such as faults=software:2; sums and weights as in
    /// flops=raw:0x3c7+raw:0x4c7*2; several with commas. Where one cannot be had the program runs as
    /// without it, and the report says why
    #[arg(long, value_name = "SPEC", value_parser = parse_counters)]
    pub counters: Option<String>,

    /// Most bytes of a rank's trace, such as 64M or 2G; 0 for no limit. What comes after is kept as
    /// totals, but for the last events of every thread [default: 1G]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub max_bytes: Option<u64>,

    /// Which events stay one by one where --max-bytes is too little: the first (and the very last),
    /// or the newest [default: first]
    #[arg(long, value_name = "WHICH", value_parser = ["first", "last"])]
    pub keep: Option<String>,

    /// Keep no events, only counts, times, sizes and their distributions by function, kind of peer
    /// and size: a file below 100 kB a rank, for runs of days
    #[arg(long, conflicts_with_all = ["keep", "max_bytes"])]
    pub profile_only: bool,

    /// Writes each rank's file below this directory, on storage of its own host, and moves it to the run
    /// directory when MPI is finalized; what a killed job leaves there, `gammachi collect` joins
    #[arg(long, value_name = "DIR")]
    pub stage: Option<PathBuf>,

    /// A parameter of the run, such as N=20000; it is kept with the trace and names the run in
    /// later comparisons. May be given many times.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    pub params: Vec<(String, String)>,

    /// Two-way exchanges a pair of ranks, at least, when clocks are compared at start and end; quick
    /// networks get up to ten times as many [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub clock_rounds: Option<u32>,

    /// Compares the clocks again during the run, so many seconds apart, at the next MPI_Barrier,
    /// Allreduce, Allgather, Alltoall or Reduce_scatter on MPI_COMM_WORLD; for long runs on several
    /// hosts
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub clock_every: Option<f64>,
}

/// Reads a number of seconds.
///
/// # Errors
/// It is none, or not above 0.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds < 1e9 => Ok(seconds),
        _ => Err("write a number of seconds above 0, such as 60".into()),
    }
}

/// What to record, decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// Detail level.
    pub level: u8,
    /// One of [`COMPUTE_KINDS`].
    pub compute: String,
    /// Parameters of the run.
    pub params: Vec<(String, String)>,
    /// Which events are kept, in how many bytes and where meanwhile, as far as that is asked for.
    pub keeping: Vec<Variable>,
    /// Variables of the options that the recorder has its own defaults for.
    pub clock: Vec<Variable>,
}

impl RecordingOptions {
    fn clock(&self) -> Vec<Variable> {
        let rounds = self.clock_rounds;
        let rounds = rounds.map(|rounds| (GAMMACHI_CLOCK_ROUNDS, rounds.to_string().into()));
        let every = self.clock_every;
        let every = every.map(|every| (GAMMACHI_CLOCK_EVERY, every.to_string().into()));
        rounds.into_iter().chain(every).collect()
    }

    /// Options, then what the environment says, then defaults.
    ///
    /// # Errors
    /// Wrong usage: the environment says what the recorder does not understand.
    pub fn decide(&self) -> Result<Recording, CommandError> {
        self.decide_from(|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    fn decide_from(
        &self,
        inherited: impl Fn(&str) -> Option<String>,
    ) -> Result<Recording, CommandError> {
        let level = match (self.level, inherited(GAMMACHI_LEVEL)) {
            (Some(level), _) => level,
            (None, None) => DEFAULT_LEVEL,
            (None, Some(text)) => match text.parse() {
                Ok(level @ 0..=2) => level,
                _ => return Err(not_understood(GAMMACHI_LEVEL, &text, "0, 1 or 2")),
            },
        };
        let compute = match (&self.compute, inherited(GAMMACHI_COMPUTE)) {
            (Some(compute), _) => compute.clone(),
            (None, None) => COMPUTE_KINDS[0].to_owned(),
            (None, Some(text)) if parse_compute(&text).is_ok() => text,
            (None, Some(text)) => {
                let wanted = "outside, blas, regions or regions=NAME,…";
                return Err(not_understood(GAMMACHI_COMPUTE, &text, wanted));
            }
        };
        if let (None, Some(text)) = (&self.counters, inherited(GAMMACHI_COUNTERS))
            && !text.is_empty()
            && let Err(why) = counters::parse(&text)
        {
            return Err(CommandError::usage(format!(
                "the environment has {GAMMACHI_COUNTERS}={text:?}: {why}"
            )));
        }
        let inherited = inherited(GAMMACHI_PARAMS).unwrap_or_default();
        let inherited = split_params(&inherited)
            .map_err(|_| not_understood(GAMMACHI_PARAMS, &inherited, "N=20000,NB=80"))?;
        let params = merge_params(inherited, self.params.iter().cloned());
        Ok(Recording { level, compute, params, keeping: self.keeping(), clock: self.clock() })
    }

    /// The variables of the options on what is kept and where; others are inherited, and checked by the recorder.
    fn keeping(&self) -> Vec<Variable> {
        let keep = if self.profile_only { Some("totals") } else { self.keep.as_deref() };
        let mut given: Vec<Variable> = Vec::new();
        if let Some(keep) = keep {
            given.push((GAMMACHI_KEEP, keep.into()));
        }
        if self.flops {
            given.push((GAMMACHI_FLOPS, "1".into()));
        }
        if let Some(counters) = &self.counters {
            given.push((GAMMACHI_COUNTERS, counters.into()));
        }
        if let Some(bytes) = self.max_bytes {
            given.push((GAMMACHI_MAX_BYTES, bytes.to_string().into()));
        }
        if let Some(stage) = &self.stage {
            // Ranks may be started in another directory.
            let stage = std::path::absolute(stage).unwrap_or_else(|_| stage.clone());
            given.push((GAMMACHI_STAGE, stage.into_os_string()));
        }
        given
    }

    /// The variables that stand for the options given, and no others.
    ///
    /// # Errors
    /// As [`RecordingOptions::decide`].
    pub fn given(&self) -> Result<Vec<Variable>, CommandError> {
        let Recording { level, compute, params, keeping, clock } = self.decide()?;
        let mut given: Vec<Variable> = keeping;
        if self.level.is_some() {
            given.push((GAMMACHI_LEVEL, level.to_string().into()));
        }
        if self.compute.is_some() {
            given.push((GAMMACHI_COMPUTE, compute.into()));
        }
        if !self.params.is_empty() {
            given.push((GAMMACHI_PARAMS, join_params(&params).into()));
        }
        given.extend(clock);
        Ok(given)
    }
}

impl Recording {
    /// The variables that stand for it.
    pub fn variables(&self) -> Vec<Variable> {
        let mut variables: Vec<Variable> = vec![
            (GAMMACHI_LEVEL, self.level.to_string().into()),
            (GAMMACHI_COMPUTE, self.compute.clone().into()),
        ];
        variables.extend(self.keeping.iter().cloned());
        if !self.params.is_empty() {
            variables.push((GAMMACHI_PARAMS, join_params(&self.params).into()));
        }
        variables.extend(self.clock.iter().cloned());
        variables
    }
}

/// Reads what counts as computation.
///
/// # Errors
/// It is none of [`COMPUTE_KINDS`], nor names regions.
pub fn parse_compute(text: &str) -> Result<String, String> {
    let names = text.strip_prefix("regions=");
    let named = names.is_some_and(|names| names.split(',').all(|name| !name.trim().is_empty()));
    match named || COMPUTE_KINDS.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err("write outside, blas, regions, or regions=NAME,NAME".into()),
    }
}

/// Reads which counters are wanted.
///
/// # Errors
/// What is wrong with them.
fn parse_counters(text: &str) -> Result<String, String> {
    counters::parse(text).map(|_| text.to_owned())
}

/// Bytes with an optional K, M, G or T (powers of 1024).
fn parse_bytes(text: &str) -> Result<u64, String> {
    byte_size::parse(text).ok_or_else(|| {
        "is no number of bytes; write a whole number, with K, M, G or T behind it if you like"
            .into()
    })
}

fn not_understood(name: &str, text: &str, wanted: &str) -> CommandError {
    CommandError::usage(format!(
        "the environment has {name}={text:?}, which is not understood; unset it or write {wanted}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(options: &RecordingOptions, environment: &[(&str, &str)]) -> Option<Recording> {
        let inherited =
            |name: &str| environment.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        options.decide_from(inherited).ok()
    }

    #[test]
    fn options_go_before_environment_and_environment_before_defaults() {
        let none = RecordingOptions::default();
        let decided = decide(&none, &[]).unwrap();
        assert_eq!((decided.level, decided.compute.as_str()), (1, "outside"));
        let environment =
            [(GAMMACHI_LEVEL, "2"), (GAMMACHI_COMPUTE, "blas"), (GAMMACHI_PARAMS, "N=1,P=2")];
        let decided = decide(&none, &environment).unwrap();
        assert_eq!((decided.level, decided.compute.as_str()), (2, "blas"));
        let options = RecordingOptions {
            level: Some(0),
            params: vec![("N".into(), "7".into())],
            ..RecordingOptions::default()
        };
        let decided = decide(&options, &environment).unwrap();
        assert_eq!((decided.level, decided.compute.as_str()), (0, "blas"));
        assert_eq!(join_params(&decided.params), "N=7,P=2");
    }

    #[test]
    fn computation_is_a_kind_or_named_regions() {
        for right in ["outside", "blas", "regions", "regions=solve", "regions=solve,fft"] {
            assert_eq!(parse_compute(right).as_deref(), Ok(right));
        }
        for wrong in ["", "region", "regions=", "regions=a,,b", "blas=dgemm"] {
            assert!(parse_compute(wrong).is_err(), "{wrong}");
        }
        let flops = RecordingOptions { flops: true, ..RecordingOptions::default() };
        let variables = decide(&flops, &[]).unwrap().variables();
        assert!(variables.contains(&(GAMMACHI_FLOPS, "1".into())));
        let counters = Some("faults=software:2".to_owned());
        let counting = RecordingOptions { counters, ..RecordingOptions::default() };
        // The option goes before what the environment has.
        let variables = decide(&counting, &[(GAMMACHI_COUNTERS, "?")]).unwrap().variables();
        assert!(variables.contains(&(GAMMACHI_COUNTERS, "faults=software:2".into())));
    }

    #[test]
    fn an_environment_that_is_not_understood_is_wrong_usage() {
        let none = RecordingOptions::default();
        for (name, value) in [
            (GAMMACHI_LEVEL, "3"),
            (GAMMACHI_COMPUTE, "all"),
            (GAMMACHI_PARAMS, "N"),
            (GAMMACHI_COUNTERS, "bytes"),
        ] {
            assert!(decide(&none, &[(name, value)]).is_none(), "{name}={value}");
        }
    }
}
