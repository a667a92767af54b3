//! Reads and writes `run.json`, which describes what was run, how, and how it ended.
//!
//! The file is always replaced as a whole, so that no reader sees half of it.
//! `docs/reference/run-json.md` explains every key.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use trace_format::regular_file;

use super::ended_ranks::EndedRank;
use super::snapshot::Snapshot;
pub use super::wall_clock::Instant;
use crate::whole_file::{self, PRIVATE};

/// Name of the file in a run directory.
pub const RUN_JSON: &str = "run.json";
/// Value of the key `format`.
pub const FORMAT: &str = "gammachi-run";
/// Version of the keys; readers reject any other.
pub const FORMAT_VERSION: u32 = 1;
/// Longest file that is read; a command line and an environment are far shorter.
const MAX_BYTES: u64 = 16 << 20;

/// What was run, how, and how it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunJson {
    /// `gammachi-run`.
    pub format: String,
    /// 1.
    pub format_version: u32,
    /// Version of the command that wrote the file.
    pub gammachi_version: String,
    /// Whether the program is still running.
    pub state: RunState,
    /// What followed `--`: launcher and arguments as given; invalid UTF-8 is replaced by U+FFFD. No place for passwords.
    pub argv: Vec<String>,
    /// Absolute path of the measured program, a guess: the first executable in `argv` behind wrappers, launchers and
    /// their options; `None`: none on this host. Rank files name what ran.
    pub program: Option<String>,
    /// Working directory.
    pub directory: String,
    /// Host on which `gammachi run` was started.
    pub host: String,
    /// Path of the recorder.
    pub library: String,
    /// Detail level, 0, 1 or 2.
    pub level: u8,
    /// What counts as computation: `outside`, `blas`, `regions` or `regions=NAME,…`.
    pub compute: String,
    /// `--param NAME=VALUE` in order, after those of an inherited `GAMMACHI_PARAMS`.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    pub params: Params,
    /// When the launcher was started.
    pub start: Instant,
    /// When the launcher ended; `null` while it is running.
    pub end: Option<Instant>,
    /// Seconds from start to end by the monotonic clock, longer than the elapsed time (τ); `null` while it is running.
    pub duration_s: Option<f64>,
    /// How the launcher ended; `null` while it is running.
    pub exit: Option<Exit>,
    /// The first request to end that `gammachi run` received; `null`: none.
    #[serde(default)]
    pub termination: Option<Termination>,
    /// Number of recorded jobs that the launcher's command started, each in its own directory;
    /// `null` while it is running. If there are several, `end` and `exit` do not belong to any one
    /// of them.
    #[serde(default)]
    pub jobs: Option<usize>,
    /// Ranks of `host` whose process ended before MPI_Finalize, or failed after it, the first one first; as far as the
    /// kernel let `gammachi run` see it.
    #[serde(default)]
    pub ended_ranks: Vec<EndedRank>,
    /// The moment of the job that this directory shows; `null`: all of it.
    #[serde(default)]
    pub snapshot: Option<Snapshot>,
    /// Environment that affects performance, sorted by name (below).
    pub environment: BTreeMap<String, String>,
}

/// Whether the program is still running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Started. If this remains, `gammachi run` was killed before the program ended.
    Running,
    /// The launcher has ended.
    Finished,
}

/// How the launcher ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Exit {
    /// Exit code of `gammachi run`: the launcher's, or 128 + signal.
    pub code: u8,
    /// Signal that killed the launcher.
    pub signal: Option<i32>,
}

/// A signal that asked `gammachi run` to end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Termination {
    /// Its number.
    pub signal: i32,
    /// Seconds from the start of the launcher.
    pub after_s: f64,
    /// The process that sent it; `null`: the system, as for Ctrl-C.
    pub sender: Option<Sender>,
    /// Whether it was passed on to the launcher, which had not ended soon after.
    pub forwarded: bool,
}

/// A process that sent a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sender {
    /// Its number; 0 if it cannot be seen from here (another container).
    pub pid: i32,
    /// Its name, if it was still running.
    pub name: Option<String>,
}

/// `name=value` pairs in the order in which they were given; an object in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Params(pub Vec<(String, String)>);

/// The variables that affect performance, sorted by name, without any that may be secret.
pub fn relevant_environment(
    variables: impl Iterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    variables.filter(|(name, _)| trace_format::environment::is_kept(name)).collect()
}

/// Why a `run.json` could not be read.
#[derive(Debug, Error)]
pub enum RunJsonError {
    /// It does not exist or cannot be read.
    #[error("{path}: {source}")]
    Read {
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not the JSON that `gammachi run` writes.
    #[error("{path}: not a run description: {source}")]
    Syntax {
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// It has another version or is something else.
    #[error(
        "{path}: format {format:?} version {version}, but this gammachi reads \
         {FORMAT:?} version {FORMAT_VERSION}; use the gammachi that recorded the run"
    )]
    Version {
        path: PathBuf,
        /// Its key `format`.
        format: String,
        /// Its key `format_version`.
        version: u32,
    },
}

impl RunJsonError {
    /// Whether the run directory has no `run.json`, for example because the program was started by
    /// `gammachi exec` or by hand.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl RunJson {
    /// The description of a run that has begun, as far as every run has the same.
    pub fn begun(start: Instant) -> Self {
        Self {
            format: FORMAT.into(),
            format_version: FORMAT_VERSION,
            gammachi_version: env!("CARGO_PKG_VERSION").into(),
            state: RunState::Running,
            argv: Vec::new(),
            program: None,
            directory: String::new(),
            host: String::new(),
            library: String::new(),
            level: 0,
            compute: String::new(),
            params: Params(Vec::new()),
            start,
            end: None,
            duration_s: None,
            exit: None,
            termination: None,
            jobs: None,
            ended_ranks: Vec::new(),
            snapshot: None,
            environment: BTreeMap::new(),
        }
    }

    /// Reads the file of a run directory.
    ///
    /// # Errors
    /// If the file is absent, unreadable, not such a JSON text, or of another version.
    pub fn read(run_directory: &Path) -> Result<Self, RunJsonError> {
        #[derive(Deserialize)]
        struct Version {
            format: String,
            format_version: u32,
        }
        let path = run_directory.join(RUN_JSON);
        let text = match regular_file::read(&path, MAX_BYTES) {
            Ok(text) => text,
            Err(source) => return Err(RunJsonError::Read { path, source }),
        };
        let syntax = |source| RunJsonError::Syntax { path: path.clone(), source };
        let Version { format, format_version: version } =
            serde_json::from_slice(&text).map_err(syntax)?;
        if format != FORMAT || version != FORMAT_VERSION {
            return Err(RunJsonError::Version { path, format, version });
        }
        serde_json::from_slice(&text).map_err(syntax)
    }

    /// Writes the file into a run directory with mode 0600.
    pub fn write(&self, run_directory: &Path) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        whole_file::write(&run_directory.join(RUN_JSON), PRIVATE, |file| file.write_all(&text))
    }
}

impl Serialize for Params {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> serde::de::Visitor<'de> for InOrder {
            type Value = Params;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Params, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Params(pairs))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::super::ended_ranks::tests::ended;
    use super::super::snapshot::{CounterMoment, Reason, Unanswered};
    use super::*;

    /// The description of a run that has not ended.
    pub(crate) fn example() -> RunJson {
        RunJson {
            gammachi_version: "0.1.0".into(),
            argv: ["mpirun", "-n", "2", "./xhpl"].map(String::from).into(),
            program: Some("/home/me/xhpl".into()),
            directory: "/home/me".into(),
            host: "n0412".into(),
            library: "/opt/gammachi/lib/libgammachi.so".into(),
            level: 1,
            compute: "blas".into(),
            params: Params(vec![("N".into(), "20000".into()), ("A".into(), "\"1\"".into())]),
            environment: BTreeMap::from([("OMP_NUM_THREADS".into(), "1".into())]),
            ..RunJson::begun(Instant::from_unix_ns(1_700_000_000_123_456_789))
        }
    }

    #[test]
    fn reads_back_what_it_writes() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path();
        let mut run = example();
        run.write(directory).unwrap();
        assert_eq!(RunJson::read(directory).unwrap(), run);
        run.state = RunState::Finished;
        run.end = Some(Instant::from_unix_ns(1_700_000_001_000_000_000));
        run.duration_s = Some(0.876_543_211);
        run.exit = Some(Exit { code: 139, signal: Some(11) });
        let sender = Some(Sender { pid: 812, name: Some("slurmstepd".into()) });
        run.termination = Some(Termination { signal: 15, after_s: 0.5, sender, forwarded: true });
        run.ended_ranks = vec![ended(1, 1_700_000_000_500_000_000, 11)];
        let processes = BTreeMap::from([(0, "asleep".into()), (1, "stopped".into())]);
        let (reason, at) = (Reason::Stopped, run.start.clone());
        let unanswered = BTreeMap::from([(0, Unanswered::Silent)]);
        let counter = Some(CounterMoment { rank: 0, ticks: 1 << 60 });
        run.snapshot = Some(Snapshot { reason, at, counter, rank: Some(1), processes, unanswered });
        run.write(directory).unwrap();
        assert_eq!(RunJson::read(directory).unwrap(), run);
        let mode = fs::metadata(directory.join(RUN_JSON)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(fs::read_dir(directory).unwrap().count(), 1, "nothing else is left behind");
    }

    #[test]
    fn keeps_the_order_of_params_and_ignores_unknown_keys() {
        let text = serde_json::to_string(&example()).unwrap();
        assert!(text.contains(r#""params":{"N":"20000","A":"\"1\""}"#), "{text}");
        let longer = text.replacen('{', r#"{"some_later_key":[1,2],"#, 1);
        assert_eq!(serde_json::from_str::<RunJson>(&longer).unwrap(), example());
    }

    #[test]
    fn errors_name_what_is_wrong_with_the_file() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path();
        assert!(RunJson::read(directory).unwrap_err().is_absent());
        let path = directory.join(RUN_JSON);
        fs::write(&path, "{\"format\": \"gammachi-run\", ").unwrap();
        let error = RunJson::read(directory).unwrap_err().to_string();
        assert!(error.contains("run.json: not a run description"), "{error}");
        fs::write(&path, r#"{"format": "gammachi-run", "format_version": 7}"#).unwrap();
        let error = RunJson::read(directory).unwrap_err().to_string();
        assert!(error.contains("version 7"), "{error}");
    }

    #[test]
    fn keeps_only_relevant_environment() {
        let kept = relevant_environment(
            [
                ("PATH", "/bin"),
                ("SLURM_JOB_ID", "7"),
                ("SLURM_JWT", "secret"),
                ("OPENBLAS_NUM_THREADS", "1"),
                ("OMPI_MCA_btl", "tcp"),
                ("OMPI_UNIVERSE_SIZE", "2"),
                ("FI_PROVIDER", "efa"),
                ("AWS_SECRET_ACCESS_KEY", "x"),
            ]
            .map(|(n, v)| (n.to_owned(), v.to_owned()))
            .into_iter(),
        );
        let names: Vec<&str> = kept.keys().map(String::as_str).collect();
        assert_eq!(names, ["FI_PROVIDER", "OMPI_MCA_btl", "OPENBLAS_NUM_THREADS", "SLURM_JOB_ID"]);
    }
}
