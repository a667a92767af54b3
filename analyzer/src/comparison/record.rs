//! The record of a run: a document of a few kilobytes that can be kept in git.
//!
//! Times are whole nanoseconds, so that sums are exact: the parts add up to elapsed time times
//! number of ranks.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use super::partners::Partners;
use super::place::{Place, Site};
use super::sampled::{SampledCode, SampledRow};
use super::teams_and_files::{FileRecord, FilesRecord, TeamRecord};
use crate::diagnosis::Finding;
use crate::statistics::median;

/// Value of the key `format`.
pub const FORMAT: &str = "gammachi-record";
/// Version of the keys. Readers refuse later versions, naming them.
pub const FORMAT_VERSION: u32 = 1;

/// The figures of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunRecord {
    /// `gammachi-record`.
    pub format: String,
    /// 1.
    pub format_version: u32,
    /// Version of the gammachi that made it.
    pub gammachi_version: String,
    /// Name of the run directory.
    pub run: String,
    /// When the run began, nanoseconds since 1970.
    pub begun_ns: Option<u64>,
    /// File name of the program.
    pub program: String,
    /// Its build id; empty if it has none.
    pub build_id: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The user's parameters.
    pub params: BTreeMap<String, String>,
    /// Version string of the MPI library.
    pub mpi: String,
    /// Detail level.
    pub level: u8,
    /// What counts as computation.
    pub compute: String,
    /// Number of ranks.
    pub ranks: u32,
    /// The machine it ran on.
    pub machine: Machine,
    /// From the first rank's begin to the last rank's end, nanoseconds.
    pub elapsed_ns: i64,
    /// The efficiency tree.
    pub tree: Option<Factors>,
    /// Number of ranks that share a figure of [`Part::by_ranks`]; 1 if each has its own.
    pub ranks_per_group: u32,
    /// Call sites of MPI. Other fields refer to them by position.
    pub sites: Vec<Site>,
    /// Where the ranks' time went.
    pub parts: Vec<Part>,
    /// The longest loop.
    pub iterations: Option<Iterations>,
    /// All loops, the longest first.
    pub phases: Vec<Phase>,
    /// What does not vary unless the program changes.
    pub counts: Counts,
    /// Who sent to whom; unknown without attributes.
    pub partners: Option<Partners>,
    /// Share of the ranks' time in which they were ready to run but had no core; unknown without
    /// the operating system's readings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacked_cores: Option<f64>,
    /// Own time of functions, if the program's code was sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<SampledCode>,
    /// Parallel regions, if they were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_regions: Option<Vec<TeamRecord>>,
    /// Calls on files, if they were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FilesRecord>,
    /// Each file by its number, if there are not too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each_file: Vec<FileRecord>,
    /// What the run's figures mean. Kinds that this version does not know are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known_findings")]
    pub findings: Vec<Finding>,
    /// Whether its times were computed by a replay.
    #[serde(default)]
    pub simulated: bool,
}

/// Reads those findings that this version knows.
fn known_findings<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Finding>, D::Error> {
    let all = Vec::<serde_json::Value>::deserialize(from)?;
    Ok(all.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect())
}

/// The machine of a run, as far as it determines the speed.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Machine {
    /// Names of some of the hosts. They are not compared, because jobs move and CI runners have a
    /// new name each time.
    pub hosts: Vec<String>,
    /// Number of hosts.
    pub host_count: u32,
    /// Maximum number of ranks on a host.
    pub ranks_per_host: u32,
    /// Minimum and maximum number of cores that the ranks of a host may use.
    pub cores_per_host: (u32, u32),
    /// Rate of the processors' time stamp counter, MHz.
    pub counter_mhz: u32,
    /// Models of the hosts' processors, sorted; empty if they are not known.
    #[serde(default)]
    pub processors: Vec<String>,
}

/// Factors of parallel efficiency; `None` if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the names are POP's")]
pub struct Factors {
    pub parallel: f64,
    pub load_balance: Option<f64>,
    pub within_hosts: Option<f64>,
    pub between_hosts: Option<f64>,
    pub communication: f64,
    pub serialisation: Option<f64>,
    pub moving_imbalance: Option<f64>,
    pub transfer: Option<f64>,
}

/// A kind of time of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Outside MPI.
    Computing,
    /// In MPI, for another rank.
    Waiting,
    /// In MPI otherwise.
    Transfer,
    /// In MPI, with only totals kept.
    Other,
    /// In the recorder.
    Recorder,
    /// Before the rank's begin and after its end.
    StartAndEnd,
}

impl Kind {
    /// All kinds, in the order of a report.
    pub const ALL: [Self; 6] = [
        Self::Computing,
        Self::Waiting,
        Self::Transfer,
        Self::Other,
        Self::Recorder,
        Self::StartAndEnd,
    ];

    /// Name in documents.
    pub fn key(self) -> &'static str {
        match self {
            Self::Computing => "computing",
            Self::Waiting => "waiting",
            Self::Transfer => "transfer",
            Self::Other => "other",
            Self::Recorder => "recorder",
            Self::StartAndEnd => "start_and_end",
        }
    }
}

/// Time of all ranks of one kind at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Part {
    /// Kind of time.
    pub kind: Kind,
    /// Place in the program.
    pub place: Place,
    /// For waiting: its state, as named in documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// For waiting: the rank that was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_by: Option<u32>,
    /// Nanoseconds, summed over the ranks.
    pub ns: i64,
    /// For computing: the same by group of ranks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_ranks: Vec<i64>,
}

/// A loop in condensed form: each figure is the mean of several consecutive iterations.
/// Nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Iterations {
    /// The call that begins an iteration.
    pub anchor: Place,
    /// Number of iterations.
    pub count: u64,
    /// Number of iterations per figure.
    pub per_figure: u64,
    /// Length of an iteration.
    pub elapsed: Vec<i64>,
    /// Median length of all iterations; unknown in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<i64>,
    /// Computing of the mean rank.
    pub computing: Vec<i64>,
    /// Waiting of the mean rank.
    pub waiting: Vec<i64>,
    /// The places where it computes most.
    pub places: Vec<Series>,
}

impl Iterations {
    /// Median length of an iteration.
    pub fn median_ns(&self) -> f64 {
        self.median.map_or_else(|| self.median_of_figures(), |median| median as f64)
    }

    fn median_of_figures(&self) -> f64 {
        let mut lengths: Vec<f64> = self.elapsed.iter().map(|ns| *ns as f64).collect();
        median(&mut lengths).unwrap_or(0.0)
    }

    /// Lengths of iterations whose median is that of all of them. A figure is the mean of several
    /// iterations, and the median of means is another one.
    pub fn lengths_ns(&self) -> Vec<f64> {
        let of_figures = self.median_of_figures();
        let factor = if of_figures > 0.0 { self.median_ns() / of_figures } else { 1.0 };
        self.elapsed.iter().map(|ns| *ns as f64 * factor).collect()
    }
}

/// Computing at one place, by iteration. Nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Series {
    /// The place.
    pub place: Place,
    /// Time of the mean rank.
    pub mean: Vec<i64>,
    /// Time of the slowest rank.
    pub most: Vec<i64>,
}

/// Summary of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Phase {
    /// The call that begins an iteration.
    pub anchor: Place,
    /// Number of iterations.
    pub iterations: u64,
    /// Duration of all iterations, nanoseconds.
    pub ns: i64,
}

/// What does not vary from run to run if the program is the same. Over all ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counts {
    /// Calls by function; tests and probes, which vary, are left out.
    pub calls: BTreeMap<String, u64>,
    /// Bytes by function, for functions that transfer data.
    pub bytes: BTreeMap<String, u64>,
    /// Calls by call site, given by position in [`RunRecord::sites`].
    pub sites: Vec<(u32, u64)>,
    /// Number of messages; unknown without attributes.
    pub messages: Option<u64>,
    /// Bytes of all messages.
    pub message_bytes: Option<u64>,
    /// Messages by size: from this power of two up to the next.
    pub sizes: BTreeMap<u64, u64>,
    /// Collective operations by function, size of the communicator and maximum bytes of a rank (a
    /// power of two): `MPI_Allreduce/4/8`.
    pub collectives: BTreeMap<String, u64>,
    /// Occurrences of regions.
    pub regions: BTreeMap<String, u64>,
}

/// Why a text is not a record.
#[derive(Debug, Error)]
pub enum RecordError {
    /// It is not JSON, or lacks a key.
    #[error("not a record of a run: {0}; remove the file, or add the run again")]
    Syntax(#[from] serde_json::Error),
    /// It has a later version, or is something else.
    #[error(
        "format {format:?} version {version}, but this gammachi reads {FORMAT:?} version {FORMAT_VERSION}; use the \
         gammachi that wrote it"
    )]
    Version {
        /// Its key `format`.
        format: String,
        /// Its key `format_version`.
        version: u32,
    },
    /// Its figures contradict each other.
    #[error("damaged: {0}; remove the file, or add the run again")]
    Contradicts(&'static str),
}

impl RunRecord {
    /// Parses a record.
    ///
    /// # Errors
    /// Why the text is not a record.
    pub fn parse(text: &str) -> Result<Self, RecordError> {
        #[derive(Deserialize)]
        struct Version {
            format: String,
            format_version: u32,
        }
        let Version { format, format_version: version } = serde_json::from_str(text)?;
        if format != FORMAT || version != FORMAT_VERSION {
            return Err(RecordError::Version { format, version });
        }
        let record: Self = serde_json::from_str(text)?;
        record.check().map_err(RecordError::Contradicts)?;
        Ok(record)
    }

    /// The record as text, one key per line, so that git shows differences.
    ///
    /// # Errors
    /// It cannot be converted to JSON.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        let value = serde_json::to_value(self)?;
        let mut lines = Vec::new();
        for (key, value) in value.as_object().into_iter().flatten() {
            let of_objects = |list: &Vec<serde_json::Value>| list.iter().any(|v| v.is_object());
            let text = match value.as_array().filter(|list| of_objects(list)) {
                Some(list) => {
                    let lines: Vec<String> = list.iter().map(|one| format!("    {one}")).collect();
                    format!("[\n{}\n  ]", lines.join(",\n"))
                }
                None => value.to_string(),
            };
            lines.push(format!("  {}: {text}", serde_json::Value::from(key.as_str())));
        }
        Ok(format!("{{\n{}\n}}\n", lines.join(",\n")))
    }

    /// Checks what is true of every record.
    fn check(&self) -> Result<(), &'static str> {
        if self.ranks == 0 || self.elapsed_ns <= 0 || self.ranks_per_group == 0 {
            return Err("it has no ranks, or took no time");
        }
        let whole = i128::from(self.elapsed_ns) * i128::from(self.ranks);
        if self.parts.iter().map(|part| i128::from(part.ns)).sum::<i128>() != whole {
            return Err("its parts do not add up to its time");
        }
        let groups = self.ranks.div_ceil(self.ranks_per_group) as usize;
        let bad = |part: &Part| {
            let sum = part.by_ranks.iter().map(|ns| i128::from(*ns)).sum::<i128>();
            !part.by_ranks.is_empty()
                && (part.by_ranks.len() != groups || sum != i128::from(part.ns))
        };
        if self.parts.iter().any(bad) {
            return Err("a part's ranks do not add up to it");
        }
        let rows = self.code.iter().flat_map(|code| &code.rows);
        let is_bad = |row: &SampledRow| {
            row.by_ranks.len() != groups || row.by_ranks.iter().any(|ns| *ns < 0)
        };
        if self.code.as_ref().is_some_and(|code| code.period_ns <= 0)
            || rows.into_iter().any(is_bad)
        {
            return Err("its samples do not fit its ranks");
        }
        if let Some(of) = &self.iterations {
            let length = of.elapsed.len();
            let equally = [&of.computing, &of.waiting].into_iter().all(|of| of.len() == length)
                && of.places.iter().all(|s| s.mean.len() == length && s.most.len() == length);
            if !equally || length == 0 {
                return Err("its iterations have unequally many figures");
            }
        }
        let known = |place: &Place| place.sites().all(|site| (site as usize) < self.sites.len());
        let iterations = self.iterations.iter();
        let places =
            iterations.flat_map(|of| of.places.iter().map(|s| &s.place).chain([&of.anchor]));
        let places = places.chain(self.parts.iter().map(|part| &part.place));
        let mut places = places.chain(self.phases.iter().map(|phase| &phase.anchor));
        let in_table = |(site, _): &(u32, u64)| (*site as usize) < self.sites.len();
        match places.all(known) && self.counts.sites.iter().all(in_table) {
            true => Ok(()),
            false => Err("it names call sites that it does not list"),
        }
    }

    /// Nanoseconds of the mean rank in some of the parts.
    pub fn mean_ns(&self, of: impl Fn(&Part) -> bool) -> f64 {
        let sum: i128 = self.parts.iter().filter(|part| of(part)).map(|p| i128::from(p.ns)).sum();
        sum as f64 / f64::from(self.ranks)
    }

    /// Share of the run that is spent in the longest loop.
    pub fn share_of_iterations(&self) -> f64 {
        self.phases.first().map_or(0.0, |phase| phase.ns as f64 / self.elapsed_ns as f64)
    }
}
