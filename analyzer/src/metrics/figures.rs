//! The figures of a selection: of the run and of each rank.

use serde::{Serialize, Serializer};

use crate::analysis::segments::ComputeMode;
use crate::timeline::Ending;
use crate::trace::FileDiagnosis;

use super::calls::CallMetrics;
use super::code::CodeMetrics;
use super::counters::CounterMetrics;
use super::cpu_time::{self, CpuTime};
use super::file_use::FileMetrics;
use super::memory::Memory;
use super::messages::MessageMetrics;
use super::note::{FailedCalls, ImpossibleWork, Note};
use super::selection::Selection;
use super::sites::SiteMetrics;
use super::system::{Oversubscription, Pinning};
use super::teams::OpenMpMetrics;
use super::totals::TotalsMetrics;
use super::unfinished::Unfinished;

/// Whether a rank finished.
#[derive(Debug, Clone, PartialEq)]
pub enum RankState {
    /// MPI_Finalize returned.
    Finalized,
    /// The recording does not show MPI_Finalize returning.
    Unfinished {
        /// The last call that began.
        last_call: Option<String>,
        /// The call that has not returned, and its start in global seconds.
        inside: Option<(String, f64)>,
    },
}

/// One thread's figures in the selection.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThreadMetrics {
    /// Thread number in the file: 0 called MPI first.
    #[serde(rename = "thread")]
    pub number: u32,
    /// Calls that began in the selection.
    pub calls: u64,
    /// Seconds in MPI calls.
    pub mpi_s: f64,
    /// Seconds in the recorder.
    pub recorder_s: f64,
    /// Useful seconds. The first thread is assumed to exist from the rank's start to its end, any
    /// other from its first to its last event. γ_i is the union over the threads, not their sum.
    pub compute_s: f64,
}

/// One rank's figures in the selection. Seconds unless said otherwise. A document has them under the
/// same names.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RankMetrics {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// Whether it takes part in the selection. A rank that never enters the region or makes the call does not, and
    /// is not among the p ranks.
    pub takes_part: bool,
    /// Number of threads that called MPI or an interposed function.
    pub threads: usize,
    /// Figures of each of them.
    pub by_thread: Vec<ThreadMetrics>,
    /// End of its τ_i on the global timeline, over the whole run; see `ending`.
    pub end_s: f64,
    /// τ_i, its time in the selection.
    pub elapsed_s: f64,
    /// Computing (γ_i): while any of its threads computes.
    pub compute_s: f64,
    /// Lost (χ_i) = `mpi_s` + `recorder_s` + `other_s` + `outside_s`.
    pub lost_s: f64,
    /// While none of its threads computes and any is in MPI.
    pub mpi_s: f64,
    /// In the recorder, outside the recorded calls, in the rest of the time.
    pub recorder_s: f64,
    /// Neither in MPI nor in the recorder nor computing.
    pub other_s: f64,
    /// Before its start and after its end, relative to the earliest start and latest end.
    pub outside_s: f64,
    /// Its first thread ready to run but waiting for a core, over the whole run only.
    pub off_cpu_s: Option<f64>,
    /// CPU time compared with computation time, over the whole run only.
    #[serde(flatten, serialize_with = "cpu_time::with_nulls")]
    #[cfg_attr(test, schemars(with = "cpu_time::CpuTimeKeys"))]
    pub cpu_time: Option<CpuTime>,
    /// Last reading of `off_cpu_s`, `on_cpu_s` and `memory`, of a rank without an end; later use is not in them.
    /// `None` if it has an end, or has no readings.
    pub read_until_s: Option<f64>,
    /// Memory of its process, over the whole run only; `None` if not known.
    pub memory: Option<Memory>,
    /// Involuntary context switches of its first thread, over the whole run only.
    pub involuntary_switches: Option<u64>,
    /// Core on which its first thread was last seen.
    pub core: Option<u32>,
    /// Calls that began in the selection; each poll counts.
    pub events: u64,
    /// Polls that found nothing, merged into runs.
    pub polls: PollMetrics,
    /// Floating-point operations of interposed compute functions; `None` without such calls.
    pub flops: Option<f64>,
    /// Calls left by longjmp or an exception, over the whole run.
    pub abandoned: u64,
    /// Calls that began in the selection and returned an error.
    pub failed: u64,
    /// Whether it finished.
    #[serde(flatten, serialize_with = "state_with_nulls")]
    #[cfg_attr(test, schemars(with = "StateKeys"))]
    pub state: RankState,
    /// What ends its recorded stretch.
    pub ending: Ending,
    /// The MPI functions with the most time in the selection, at most three, with their seconds.
    #[serde(skip)]
    pub top_calls: Vec<(String, f64)>,
}

/// A state in a document.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StateKeys<'a> {
    /// MPI_Finalize returned and the file is complete.
    finalized: bool,
    /// The last call that began; null if finalized.
    last_call: Option<&'a String>,
    /// The call that has not returned.
    inside: Option<&'a String>,
    /// When it began, seconds of the common clock.
    inside_since_s: Option<f64>,
}

/// Writes a state as keys that are always there.
pub(super) fn state_with_nulls<S: Serializer>(
    state: &RankState,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let (last_call, inside) = match state {
        RankState::Finalized => (None, None),
        RankState::Unfinished { last_call, inside } => (last_call.as_ref(), inside.as_ref()),
    };
    let keys = StateKeys {
        finalized: *state == RankState::Finalized,
        last_call,
        inside: inside.map(|(function, _)| function),
        inside_since_s: inside.map(|(_, since_s)| *since_s),
    };
    keys.serialize(serializer)
}

/// Tests and probes that found nothing, in runs of polls that began in the selection. A run of
/// polls is one record; the time between its polls belongs to the program.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PollMetrics {
    /// Number of calls.
    #[serde(rename = "merged_calls")]
    pub calls: u64,
    /// Number of runs that they were merged into.
    #[serde(rename = "records")]
    pub runs: u64,
    /// Seconds inside the calls, which [`RankMetrics::mpi_s`] includes.
    pub time_s: f64,
}

/// Efficiency (ε_p) and its factors, each between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Efficiency {
    /// ε_p = Σγ/(p·τ).
    pub parallel: f64,
    /// Mean γ over largest γ; `None` if no rank computes.
    pub load_balance: Option<f64>,
    /// Largest γ over τ.
    pub communication: f64,
}

/// Where the time of a selection went.
#[derive(Debug, Clone, PartialEq)]
pub struct Metrics {
    /// The selection that the figures are for.
    pub selection: Selection,
    /// τ of the selection.
    pub elapsed_s: f64,
    /// τ of the whole run.
    pub run_elapsed_s: f64,
    /// Occurrences per rank, if all participating ranks have equally many; 1 unless a region.
    pub occurrences: Option<usize>,
    /// Begin and end of each rank's stretches in the selection on its own counter, ascending and
    /// disjoint; `None` for ranks that do not take part.
    pub stretches: Vec<Option<Vec<(u64, u64)>>>,
    /// All ranks with a file, including those that do not take part.
    pub ranks: Vec<RankMetrics>,
    /// `None` if the selection has no length.
    pub efficiency: Option<Efficiency>,
    /// Calls by function, most time first.
    pub calls: Vec<CallMetrics>,
    /// Calls that returned an error, most frequent first.
    pub failed: Vec<FailedCalls>,
    /// Messages; `None` if no rank recorded arguments of calls (level 0) or they were not
    /// requested.
    pub messages: Option<MessageMetrics>,
    /// Calls by call site; `None` if no call site was recorded.
    pub sites: Option<SiteMetrics>,
    /// Functions of the program and their time; `None` if its code was not sampled.
    pub code: Option<CodeMetrics>,
    /// Parallel regions of OpenMP; `None` if they were not recorded.
    pub openmp: Option<OpenMpMetrics>,
    /// Files that the program works on; `None` if calls on files were not recorded.
    pub files: Option<FileMetrics>,
    /// Calls kept only as totals; `None` if every call was kept.
    pub totals: Option<TotalsMetrics>,
    /// Ranks that did not return from MPI_Finalize, over the whole run; `None` if all did.
    pub unfinished: Option<Unfinished>,
    /// What counts as computation.
    pub compute: ComputeMode,
    /// Floating-point operations; `None` if no interposed compute function was called.
    pub flops: Option<f64>,
    /// Requested counters of processor and kernel; [`Metrics::flops`] never includes them.
    pub counters: Vec<CounterMetrics>,
    /// Event slots that could not be written, over the finalized ranks.
    pub lost_events: u64,
    /// Ranks that shared cores.
    pub oversubscription: Vec<Oversubscription>,
    /// Cores that the ranks may use.
    pub pinning: Pinning,
    /// Faults of the events.
    pub diagnoses: Vec<FileDiagnosis<ImpossibleWork>>,
    /// Remarks on the figures.
    pub notes: Vec<Note>,
}

impl Metrics {
    /// The p ranks that take part in the selection.
    pub fn participants(&self) -> impl Iterator<Item = &RankMetrics> {
        self.ranks.iter().filter(|rank| rank.takes_part)
    }

    /// The share of their time for which the participants waited for a core; `None` if that is not
    /// known.
    pub fn share_off_cpu(&self) -> Option<f64> {
        let waited: Option<Vec<f64>> = self.participants().map(|rank| rank.off_cpu_s).collect();
        let waited = waited.filter(|waited| !waited.is_empty())?;
        let elapsed_s = self.elapsed_s * waited.len() as f64;
        (elapsed_s > 0.0).then(|| waited.iter().sum::<f64>() / elapsed_s)
    }
}
