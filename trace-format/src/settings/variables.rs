//! The table of all variables that recorder and command read.

use std::ffi::OsString;

use super::errors::{SettingError, ValueError};

/// An environment variable that recorder or command reads.
#[derive(Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Who sets it and why.
    pub purpose: Purpose,
    /// Who reads it.
    pub read_by: ReadBy,
    /// Whether ranks on other hosts need it. If it is set, the command has the launcher forward it.
    pub is_forwarded: bool,
    /// The option of `gammachi run` and `gammachi exec` that sets it.
    pub option: Option<&'static str>,
    /// Accepted values.
    pub values: &'static str,
    /// The effect if it is unset or empty.
    pub unset: Unset,
    /// Its meaning. Also used for the help of the option.
    pub meaning: &'static str,
}

/// Who sets a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The user, or the command for them.
    Setting,
    /// `gammachi run`, to tell all ranks the same.
    SetByRun,
    /// Tests of gammachi itself.
    TestHook,
}

/// Who reads a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadBy {
    /// The recorder; `gammachi run` and `gammachi exec` check it before they start the program.
    Both,
    /// The recorder alone.
    Recorder,
    /// The command alone.
    Command,
}

/// The effect of an unset variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unset {
    /// The same as this value.
    Value(&'static str),
    /// An effect that no value has.
    Means(&'static str),
}

impl Variable {
    /// Its value. `None` if it is unset or empty.
    pub fn value(&self, lookup: impl Fn(&str) -> Option<OsString>) -> Option<OsString> {
        lookup(self.name).filter(|value| !value.is_empty())
    }

    /// Its value as text. `None` if it is unset or empty.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub fn text(
        &'static self,
        lookup: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<String>, SettingError> {
        let Some(value) = self.value(lookup) else { return Ok(None) };
        match value.into_string() {
            Ok(text) => Ok(Some(text)),
            Err(value) => Err(SettingError { variable: self, value, problem: ValueError::NotText }),
        }
    }

    /// Its value parsed by `parse`. `None` if it is unset or empty.
    ///
    /// # Errors
    /// If it is not UTF-8, or `parse` rejects it.
    pub fn parsed<T>(
        &'static self,
        lookup: impl Fn(&str) -> Option<OsString>,
        parse: impl Fn(&str) -> Result<T, ValueError>,
    ) -> Result<Option<T>, SettingError> {
        let Some(text) = self.text(lookup)? else { return Ok(None) };
        match parse(&text) {
            Ok(value) => Ok(Some(value)),
            Err(problem) => Err(SettingError { variable: self, value: text.into(), problem }),
        }
    }

    /// Help for the option that sets it: the meaning, and the default if that is a value.
    pub fn help(&self) -> String {
        match self.unset {
            Unset::Value(default) => format!("{} [default: {default}]", self.meaning),
            Unset::Means(_) => self.meaning.to_owned(),
        }
    }
}

/// Whether launchers must forward a variable to ranks on other hosts.
pub fn is_forwarded(name: &str) -> bool {
    VARIABLES.iter().any(|variable| variable.is_forwarded && variable.name == name)
}

/// All variables.
pub static VARIABLES: [&Variable; 25] = [
    &OUT,
    &STAGE,
    &LEVEL,
    &PATHS_FROM,
    &COMPUTE,
    &FLOPS,
    &OPENMP,
    &IO,
    &FILE_NAMES,
    &COUNTERS,
    &SAMPLE,
    &FLIGHT,
    &MAX_BYTES,
    &KEEP,
    &LAST,
    &PARAMS,
    &CLOCK_ROUNDS,
    &CLOCK_EVERY,
    &CLOCK_DEADLINE,
    &LIBRARY,
    &OTF2_LIBRARY,
    &RUN_ID,
    &EVERY_RANK,
    &TEST_CLOCK,
    &TEST_HOST,
];

/// Common fields of most variables.
const SETTING: Variable = Variable {
    name: "",
    purpose: Purpose::Setting,
    read_by: ReadBy::Both,
    is_forwarded: true,
    option: None,
    values: "",
    unset: Unset::Means(""),
    meaning: "",
};

/// The run directory.
pub static OUT: Variable = Variable {
    name: "GAMMACHI_OUT",
    read_by: ReadBy::Recorder,
    option: Some("--out"),
    values: "a path",
    unset: Unset::Value("./NAME-DATE.gammachi"),
    meaning: "Run directory to write",
    ..SETTING
};

/// Where rank files are kept until MPI is finalized.
pub static STAGE: Variable = Variable {
    name: "GAMMACHI_STAGE",
    option: Some("--stage"),
    values: "a path",
    unset: Unset::Means("files are written directly to the run directory"),
    meaning: "Write each rank's file below this directory, on storage of its own host, and move it to the run \
              directory when MPI is finalized; `gammachi collect` gathers what a killed job leaves there",
    ..SETTING
};

/// Detail.
pub static LEVEL: Variable = Variable {
    name: "GAMMACHI_LEVEL",
    option: Some("--level"),
    values: "`0`, `1`, `2`",
    unset: Unset::Value("1"),
    meaning: "Detail: 0 records function and times; 1 also peer, bytes, communicator and call site; 2 also the call paths of long calls",
    ..SETTING
};

/// Minimum duration of calls with a call path.
pub static PATHS_FROM: Variable = Variable {
    name: "GAMMACHI_PATHS_FROM",
    option: Some("--paths-from"),
    values: "a time, such as `20us`, `1ms`",
    unset: Unset::Value("20us"),
    meaning: "At level 2, record the call path of calls that last at least this long",
    ..SETTING
};

/// What counts as computation.
pub static COMPUTE: Variable = Variable {
    name: "GAMMACHI_COMPUTE",
    option: Some("--compute"),
    values: "`outside`, `blas`, `regions`, `regions=NAME,NAME`",
    unset: Unset::Value("outside"),
    meaning: "What counts as computation: `outside` (all time outside MPI), `blas` (BLAS 3, LAPACK and FFTW \
              calls), `regions` (what the program marks), or `regions=solve,fft`",
    ..SETTING
};

/// Whether compute functions are recorded regardless of what counts as computation.
pub static FLOPS: Variable = Variable {
    name: "GAMMACHI_FLOPS",
    option: Some("--flops"),
    values: "`1`; `0` for no",
    unset: Unset::Value("0"),
    meaning: "Record BLAS, LAPACK and FFTW calls to count their operations, regardless of --compute; \
              `gammachi roofline` needs them",
    ..SETTING
};

/// Whether OpenMP parallel regions are recorded.
pub static OPENMP: Variable = Variable {
    name: "GAMMACHI_OPENMP",
    option: Some("--openmp"),
    values: "`1`; `0` for no",
    unset: Unset::Value("0"),
    meaning: "Record the parallel regions of OpenMP programs: how long the threads of each rank work, wait for each \
              other, or have nothing to do",
    ..SETTING
};

/// Whether calls on files are recorded.
pub static IO: Variable = Variable {
    name: "GAMMACHI_IO",
    option: Some("--io"),
    values: "`1`; `0` for no",
    unset: Unset::Value("0"),
    meaning: "Record calls on files (open, read, write …) outside and inside MPI, which another library, \
              `libgammachi_io.so` beside the recorder, sees: bytes and time by file and by rank",
    ..SETTING
};

/// Whether names of files are kept.
pub static FILE_NAMES: Variable = Variable {
    name: "GAMMACHI_FILE_NAMES",
    option: Some("--file-names"),
    values: "`1`; `0` for no",
    unset: Unset::Value("0"),
    meaning: "With --io, keep the names of the files; without it they have numbers",
    ..SETTING
};

/// Counters of processor and kernel.
pub static COUNTERS: Variable = Variable {
    name: "GAMMACHI_COUNTERS",
    option: Some("--counters"),
    values: "`flops`, `NAME=TYPE:CONFIG`; several separated by commas",
    unset: Unset::Means("no counter is read"),
    meaning: "Read counters of processor and kernel (perf_event) at the start, end and regions of each rank: `flops` \
              (operations, where the processor has such an event), or NAME=TYPE:CONFIG with TYPE raw, hardware, \
              software or a number, such as faults=software:2; sums and weights as in \
              flops=raw:0x3c7+raw:0x4c7*2; several separated by commas. If one is unavailable, \
              the program runs without it, and the report says why",
    ..SETTING
};

/// Samples of the program's own code.
pub static SAMPLE: Variable = Variable {
    name: "GAMMACHI_SAMPLE",
    option: Some("--sample"),
    values: "a whole number from 1 to 499; 0 for none",
    unset: Unset::Means("the program's own code is not sampled"),
    meaning: "Interrupt every thread so many times per second of its CPU time, 99 if the option has no number, to \
              see which functions the program's own time goes to; MPI calls are not sampled",
    ..SETTING
};

/// Size limit of a rank's file.
pub static MAX_BYTES: Variable = Variable {
    name: "GAMMACHI_MAX_BYTES",
    option: Some("--max-bytes"),
    values: "a whole number, or one with K, M, G or T (powers of 1024)",
    unset: Unset::Value("1G"),
    meaning: "Size limit of a rank's trace, such as 64M or 2G; 0 for no limit. Further events are kept as \
              totals, except for the last events of every thread",
    ..SETTING
};

/// Whether the run is watched, and for what.
pub static FLIGHT: Variable = Variable {
    name: "GAMMACHI_FLIGHT",
    option: Some("--flight"),
    values: "`1`; or what --on takes, such as `hang=2m,exit`; `0` for no",
    unset: Unset::Means("nobody watches the run"),
    meaning: "Keep the newest calls (--keep last --max-bytes 64M), and have `gammachi run` or `exec` watch the ranks \
              of this host: when something goes wrong, a snapshot stays in the run directory",
    ..SETTING
};

/// Which events are kept if the limit is reached.
pub static KEEP: Variable = Variable {
    name: "GAMMACHI_KEEP",
    option: Some("--keep"),
    values: "`first`, `last`, `totals` (`--profile-only`)",
    unset: Unset::Value("first"),
    meaning: "Which events are kept one by one if --max-bytes is too small: the first (and the very last), or \
              the newest",
    ..SETTING
};

/// How much of the newest events is enough.
pub static LAST: Variable = Variable {
    name: "GAMMACHI_LAST",
    values: "a time from 1s to 24h, such as 60s or 5m",
    unset: Unset::Means("as many as --max-bytes allows"),
    meaning: "With --keep last or --flight (--last TIME), how long the newest calls are kept one by one, if --max-bytes allows",
    ..SETTING
};

/// Parameters of the run.
pub static PARAMS: Variable = Variable {
    name: "GAMMACHI_PARAMS",
    option: Some("--param"),
    values: "`NAME=VALUE,NAME=VALUE`: names of letters, digits and `_`; no comma, semicolon or control character in values",
    unset: Unset::Means("the run has no parameters"),
    meaning: "Parameters of the run, such as N=20000; they are stored in the trace and identify the run in later \
              comparisons",
    ..SETTING
};

/// Number of two-way clock exchanges of a pair of ranks.
pub static CLOCK_ROUNDS: Variable = Variable {
    name: "GAMMACHI_CLOCK_ROUNDS",
    option: Some("--clock-rounds"),
    values: "a whole number from 1 to 1000000",
    unset: Unset::Value("100"),
    meaning: "Minimum number of two-way exchanges per pair of ranks when clocks are compared at start and end; fast \
              networks get up to ten times as many",
    ..SETTING
};

/// Interval between clock exchanges during the run.
pub static CLOCK_EVERY: Variable = Variable {
    name: "GAMMACHI_CLOCK_EVERY",
    option: Some("--clock-every"),
    values: "seconds below 1e9; 0 for none",
    unset: Unset::Means("clocks are compared at start and end only"),
    meaning: "Compare clocks during the run, too, at this interval, before the next MPI_Barrier, Allreduce, \
              Allgather, Alltoall or Reduce_scatter on MPI_COMM_WORLD; for long runs on several hosts",
    ..SETTING
};

/// Time that a clock exchange waits for its partner.
pub static CLOCK_DEADLINE: Variable = Variable {
    name: "GAMMACHI_CLOCK_DEADLINE",
    values: "seconds above 0 and below 1e6",
    unset: Unset::Means("30 s for an exchange, 600 s for the last rank in MPI_Finalize"),
    meaning: "How long a clock exchange waits for its partner, and MPI_Finalize for the last rank",
    ..SETTING
};

/// Location of the recorder.
pub static LIBRARY: Variable = Variable {
    name: "GAMMACHI_LIBRARY",
    read_by: ReadBy::Command,
    values: "the path of `libgammachi.so`",
    unset: Unset::Means("searched beside the command, then in `../lib` relative to it"),
    meaning: "The recorder to load; `gammachi exec` searches for it on other hosts",
    ..SETTING
};

/// Location of OTF2's library.
pub static OTF2_LIBRARY: Variable = Variable {
    name: "GAMMACHI_OTF2_LIBRARY",
    read_by: ReadBy::Command,
    is_forwarded: false,
    values: "the path of `libotf2.so`",
    unset: Unset::Means("searched by the dynamic linker"),
    meaning: "The library that reads and writes OTF2 archives",
    ..SETTING
};

/// The id shared by the ranks of one command.
pub static RUN_ID: Variable = Variable {
    name: "GAMMACHI_RUN_ID",
    purpose: Purpose::SetByRun,
    read_by: ReadBy::Recorder,
    values: "32 hexadecimal digits",
    unset: Unset::Means("the run belongs to no command"),
    meaning: "Distinguishes the runs of one command from others",
    ..SETTING
};

/// Whether all ranks on all hosts load the recorder.
pub static EVERY_RANK: Variable = Variable {
    name: "GAMMACHI_EVERY_RANK",
    purpose: Purpose::SetByRun,
    read_by: ReadBy::Recorder,
    values: "`1`",
    unset: Unset::Means("each host records those of its ranks that load the recorder"),
    meaning: "Guarantees that every rank on every host loads the recorder, so that ranks may wait for each other",
    ..SETTING
};

/// A skew of the counter.
pub static TEST_CLOCK: Variable = Variable {
    name: "GAMMACHI_TEST_CLOCK",
    purpose: Purpose::TestHook,
    read_by: ReadBy::Recorder,
    values: "`OFFSET_NS,PPM`",
    unset: Unset::Means("the counter is not skewed"),
    meaning: "Skews this process's counter by an offset and a rate",
    ..SETTING
};

/// A simulated host.
pub static TEST_HOST: Variable = Variable {
    name: "GAMMACHI_TEST_HOST",
    purpose: Purpose::TestHook,
    read_by: ReadBy::Recorder,
    values: "a name",
    unset: Unset::Means("the host has its own name"),
    meaning: "Host name to use instead of the real one",
    ..SETTING
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_complete_and_unique() {
        for (index, variable) in VARIABLES.iter().enumerate() {
            assert!(variable.name.starts_with("GAMMACHI_"), "{variable:?}");
            assert!(VARIABLES[..index].iter().all(|other| other.name != variable.name));
            assert!(!variable.values.is_empty() && !variable.meaning.is_empty(), "{variable:?}");
            assert!(!variable.meaning.ends_with('.'), "{variable:?}");
            let (Unset::Value(unset) | Unset::Means(unset)) = variable.unset;
            assert!(!unset.is_empty(), "{variable:?}");
        }
    }

    #[test]
    fn forwards_every_variable_read_by_recorder() {
        for variable in VARIABLES {
            assert!(variable.is_forwarded || variable.read_by == ReadBy::Command, "{variable:?}");
        }
        assert!(is_forwarded(LEVEL.name) && !is_forwarded(OTF2_LIBRARY.name));
        assert!(!is_forwarded("GAMMACHI_CACHE"));
    }

    #[test]
    fn treats_empty_value_as_unset() {
        assert_eq!(STAGE.value(|_| Some("".into())), None);
        assert_eq!(STAGE.value(|_| Some("/local".into())), Some("/local".into()));
        assert_eq!(TEST_HOST.text(|_| None), Ok(None));
    }
}
