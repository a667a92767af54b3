//! Where the time went: derives [`Metrics`] from a [`Run`], its [`GlobalTimeline`] and a
//! [`Selection`].
//!
//! With τ_i the time that rank i spends in the selection, and τ the latest end less the earliest
//! start over the ranks:
//!
//! - computing (γ_i) depends on the mode, see [`ComputeMode`]; with several threads it is the time
//!   in which any of them does useful work;
//! - lost (χ_i) = in MPI + recorder + other code + start and end, summed from these parts, so that
//!   p·τ = Σγ_i + Σχ_i is a check; a rank with several threads is in MPI while none does useful work
//!   and any is in MPI, and in the recorder in the rest of the time that any is there;
//! - efficiency (ε_p) = Σγ_i/(p·τ) = load balance (mean γ / max γ) × communication efficiency
//!   (max γ / τ).
//!
//! Sums are kept in whole ticks of the rank's own counter and become seconds at the end. Memory
//! grows with the number of ranks (and of occurrences of a selected region), not with that of
//! events.

pub mod activity;
mod answer;
pub mod exchanges;

mod calls;
mod counters;
mod cpu_time;
mod failed;
mod late_partner;
mod marks;
mod memory;
mod messages;
mod note;
mod passes;
mod paths;
mod resolve;
mod selection;
mod selection_index;
mod sites;
mod sums;
mod system;
mod totals;
mod unfinished;

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::analysis::Analysis;
pub use crate::analysis::segments::ComputeMode;
use crate::timeline::{Ending, GlobalTimeline};
use crate::trace::{FileDiagnosis, Run};

pub use answer::{Answer, Page, Question};
pub use calls::CallMetrics;
pub use counters::{Count, CounterMetrics, NoCount, RankCount};
pub use cpu_time::{CpuTime, OwnTime};
pub use failed::FailedCalls;
pub use late_partner::{CollectiveRow, LatePartner, MessageRow, NoTables, OwnCost};
pub use memory::{Grown, Memory};
pub use messages::{CommunicatorMetrics, Matrix, MessageMetrics, OneSided, SizeClass, Traffic};
pub use note::{ImpossibleWork, MessageNote, Note};
pub use paths::{Frame, PathRow};
pub(crate) use paths::{FrameKey, keys_of_paths};
pub use resolve::{EmptyWindow, SelectionError};
use resolve::{RankSelection, Resolved};
pub use selection::{Bound, Iteration, Selection, WindowError};
pub use sites::{SiteMetrics, SiteRow};
pub(crate) use sites::{in_file, module_of, modules};
use sums::RankPass;
pub use system::{Competitor, CoreUse, Oversubscription, Pinning};
pub use totals::{Bin, TotalsMetrics, TotalsRow};
use unfinished::OpenOperations;
pub use unfinished::{
    Arguments, Awaited, CallRecord, Cause, CauseKind, Deadlock, Need, OpenCollective, Partner,
    Ranks, ThreadPosition, Unfinished, UnfinishedRank, WaitsFor,
};

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
pub struct RankMetrics {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// Whether it takes part in the selection. A rank that never enters a selected region does not.
    pub takes_part: bool,
    /// Number of threads that called MPI or an interposed function.
    pub threads: usize,
    /// Figures of each of them.
    pub by_thread: Vec<ThreadMetrics>,
    /// End of its τ_i on the global timeline, over the whole run.
    pub end_s: f64,
    /// τ_i, its time in the selection.
    pub elapsed_s: f64,
    /// Computing (γ_i).
    pub compute_s: f64,
    /// Lost (χ_i).
    pub lost_s: f64,
    /// In MPI calls while none of its threads computes.
    pub mpi_s: f64,
    /// In the recorder, outside the recorded calls, in the rest of the time.
    pub recorder_s: f64,
    /// Neither in MPI nor in the recorder nor computing.
    pub other_s: f64,
    /// Before its start and after its end, relative to the earliest start and latest end.
    pub outside_s: f64,
    /// Ready to run but waiting for a core, over the whole run only.
    pub off_cpu_s: Option<f64>,
    /// CPU time compared with computation time, over the whole run only.
    #[serde(flatten, serialize_with = "cpu_time::with_nulls")]
    pub cpu_time: Option<CpuTime>,
    /// Global seconds at the last reading of these, of a rank whose end was not read.
    pub read_until_s: Option<f64>,
    /// Memory of its process, over the whole run only.
    pub memory: Option<Memory>,
    /// Involuntary context switches, over the whole run only.
    pub involuntary_switches: Option<u64>,
    /// Core on which its first thread was last seen.
    pub core: Option<u32>,
    /// Calls that began in the selection.
    pub events: u64,
    /// Polls that found nothing, merged into runs.
    pub polls: PollMetrics,
    /// Floating-point operations of interposed compute functions; `None` without such calls.
    pub flops: Option<f64>,
    /// Calls left by longjmp or an exception, over the whole run.
    pub abandoned: u64,
    /// Calls that returned an error.
    pub failed: u64,
    /// Whether it finished.
    #[serde(flatten, serialize_with = "state_with_nulls")]
    pub state: RankState,
    /// What ends its recorded stretch.
    pub ending: Ending,
    /// The MPI functions with the most time in the selection, at most three, with their seconds.
    #[serde(skip)]
    pub top_calls: Vec<(String, f64)>,
}

/// Writes a state as keys that are always there.
fn state_with_nulls<S: Serializer>(state: &RankState, serializer: S) -> Result<S::Ok, S::Error> {
    let (last_call, inside) = match state {
        RankState::Finalized => (None, None),
        RankState::Unfinished { last_call, inside } => (last_call.as_ref(), inside.as_ref()),
    };
    let mut keys = serializer.serialize_map(None)?;
    keys.serialize_entry("finalized", &(*state == RankState::Finalized))?;
    keys.serialize_entry("last_call", &last_call)?;
    keys.serialize_entry("inside", &inside.map(|(function, _)| function))?;
    keys.serialize_entry("inside_since_s", &inside.map(|(_, since_s)| since_s))?;
    keys.end()
}

/// Tests and probes that found nothing, in runs of polls that began in the selection. A run of
/// polls is one record; the time between its polls belongs to the program.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
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

/// What matching found in a selection.
enum Matched {
    /// Messages were not requested.
    NotRequested,
    /// Messages and open operations; `None` if no rank recorded attributes.
    Found(Option<Box<(MessageMetrics, OpenOperations)>>),
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

    /// Derives the figures of a selection.
    ///
    /// # Errors
    /// The selection names something that the run does not have.
    pub fn new(
        run: &Run,
        timeline: &GlobalTimeline,
        selection: &Selection,
    ) -> Result<Self, SelectionError> {
        Self::with(run, timeline, selection, true)
    }

    /// Like [`Metrics::new`], but does not match messages unless some rank did not finish; matching
    /// then shows which rank each one waits for. Without matching, [`Metrics::messages`] is `None`.
    ///
    /// # Errors
    /// As [`Metrics::new`].
    pub fn without_messages(
        run: &Run,
        timeline: &GlobalTimeline,
        selection: &Selection,
    ) -> Result<Self, SelectionError> {
        Self::with(run, timeline, selection, false)
    }

    fn with(
        run: &Run,
        timeline: &GlobalTimeline,
        selection: &Selection,
        messages: bool,
    ) -> Result<Self, SelectionError> {
        Self::of_analysis(&Analysis::of(run, timeline), selection, messages)
    }

    /// Like [`Metrics::new`], or without `messages` like [`Metrics::without_messages`], of an
    /// analysis that may be divided among processes: see [`Answer::new`].
    ///
    /// # Errors
    /// As [`Metrics::new`].
    pub fn of_analysis(
        analysis: &Analysis,
        selection: &Selection,
        messages: bool,
    ) -> Result<Self, SelectionError> {
        let question = Question { selection, messages, exchanges: &[], page: None };
        Answer::new(analysis, &question).map(|answer| answer.metrics)
    }

    /// Combines the sums of a selection, its messages, and the operations that matching left open.
    fn of(
        analysis: &Analysis,
        (selection, resolved): (&Selection, &Resolved),
        passes: &[RankPass],
        (counters, sites, matched): (Vec<CounterMetrics>, Option<SiteMetrics>, Matched),
    ) -> Self {
        let Analysis { run, timeline, .. } = *analysis;
        let mut notes = Vec::new();
        let compute = compute_mode(run, &mut notes);
        notes.extend(resolved.notes.iter().cloned());
        let (messages, open_operations) = match matched {
            Matched::NotRequested => {
                notes.push(Note::MessagesNotRequested);
                (None, OpenOperations::default())
            }
            Matched::Found(found) => match found.map(|found| *found) {
                Some((messages, open_operations)) => (Some(messages), open_operations),
                None => (None, OpenOperations::default()),
            },
        };
        let calls = calls::merge(run, timeline, passes);
        let mut diagnoses = Vec::new();
        let mut ranks = Vec::with_capacity(passes.len());
        for (index, pass) in passes.iter().enumerate() {
            if pass.impossible_flops > 0 {
                diagnoses.push(FileDiagnosis {
                    file: run.ranks[index].name.clone(),
                    what: ImpossibleWork { calls: pass.impossible_flops },
                });
            }
            ranks.push(rank_metrics(run, timeline, resolved, index, pass));
        }
        if ranks.iter().any(|rank| rank.takes_part && rank.threads > 1) {
            notes.push(Note::SeveralThreads);
        }
        let failed = failed::merge(run, passes);
        if !failed.is_empty() {
            notes.push(Note::CallsFailed(failed.clone()));
        }
        let unfinished = Unfinished::new(analysis, open_operations);
        notes.extend(messages.iter().flat_map(MessageMetrics::notes));
        for (module, why) in sites.iter().flat_map(|sites| &sites.unusable) {
            notes.push(Note::SitesWithoutNames { module: module.clone(), why });
        }
        let totals = TotalsMetrics::new(run, timeline);
        notes.extend(totals.iter().flat_map(|totals| totals.notes(run)));
        let efficiency = efficiency(&ranks, resolved.elapsed_s);
        if compute == ComputeMode::Blas && passes.iter().all(|pass| pass.flops.is_none()) {
            notes.push(Note::NoBlasSeen);
        }
        notes.extend(memory::note(&ranks));
        let flops =
            ranks.iter().filter(|r| r.takes_part).filter_map(|r| r.flops).reduce(|a, b| a + b);
        let lost = run.ranks.iter().filter_map(|rank| rank.facts.lost_events);
        Self {
            selection: selection.clone(),
            elapsed_s: resolved.elapsed_s,
            run_elapsed_s: resolved.run_elapsed_s,
            occurrences: resolved.occurrences,
            stretches: resolved.stretches(),
            ranks,
            efficiency,
            calls,
            failed,
            messages,
            sites,
            totals,
            unfinished,
            compute,
            flops,
            counters,
            lost_events: lost.fold(0, u64::saturating_add),
            oversubscription: system::oversubscription(run, timeline),
            pinning: system::pinning(run),
            diagnoses,
            notes,
        }
    }
}

fn compute_mode(run: &Run, notes: &mut Vec<Note>) -> ComputeMode {
    let mut names = run.ranks.iter().map(|rank| rank.file.header.compute.as_str());
    let first = names.next().unwrap_or_default();
    if let Some(other) = names.find(|name| *name != first) {
        let (used, other) = (first.to_owned(), other.to_owned());
        notes.push(Note::ComputeModesDiffer { used, other });
    }
    ComputeMode::from_name(first).unwrap_or_else(|| {
        notes.push(Note::ComputeModeUnknown(first.to_owned()));
        ComputeMode::Outside
    })
}

fn efficiency(ranks: &[RankMetrics], elapsed_s: f64) -> Option<Efficiency> {
    let computes: Vec<f64> = ranks.iter().filter(|r| r.takes_part).map(|r| r.compute_s).collect();
    let largest = computes.iter().copied().fold(0.0, f64::max);
    let mean = computes.iter().sum::<f64>() / computes.len() as f64;
    (elapsed_s > 0.0 && !computes.is_empty()).then(|| Efficiency {
        parallel: mean / elapsed_s,
        load_balance: (largest > 0.0).then(|| mean / largest),
        communication: largest / elapsed_s,
    })
}

fn rank_metrics(
    run: &Run,
    timeline: &GlobalTimeline,
    resolved: &Resolved,
    index: usize,
    pass: &RankPass,
) -> RankMetrics {
    let (trace, time) = (&run.ranks[index], &timeline.ranks[index]);
    let seconds = |ticks| time.clock.duration_s(ticks);
    let RankSelection { takes_part, outside_s, .. } = &resolved.ranks[index];
    let threads = trace.threads.len().max(1);
    let compute_s = seconds(pass.compute_ticks);
    let (mpi_s, recorder_s, other_s) =
        (seconds(pass.mpi_ticks), seconds(pass.tool_ticks), seconds(pass.other_ticks));
    let lost_s = if *takes_part { mpi_s + recorder_s + other_s + outside_s } else { 0.0 };
    let system = system::SystemFacts::new(trace);
    let useful_s = pass.threads.iter().map(|thread| (thread.number, seconds(thread.compute_ticks)));
    let mut useful_s: BTreeMap<u32, f64> = useful_s.collect();
    // A first thread without events is always outside MPI.
    useful_s.entry(0).or_insert_with(|| seconds(pass.compute_ticks));
    // The system's readings are taken at the start and end of the process's time in MPI. If
    // recording stopped earlier, they cover more than the rank's stretch.
    let cut = matches!(time.ending, Ending::Damaged | Ending::Stopped);
    let readings_apply = resolved.whole && !cut;
    let before_death = trace.facts.last_before_death();
    let cpu_time = CpuTime::of_rank((trace, time), compute_s, &useful_s);
    RankMetrics {
        rank: trace.rank,
        host: trace.file.header.host.clone(),
        takes_part: *takes_part,
        threads,
        by_thread: pass
            .threads
            .iter()
            .map(|thread| ThreadMetrics {
                number: thread.number,
                calls: thread.calls,
                mpi_s: seconds(thread.mpi_ticks),
                recorder_s: seconds(thread.tool_ticks),
                compute_s: seconds(thread.compute_ticks),
            })
            .collect(),
        end_s: time.end_s(),
        elapsed_s: seconds(pass.elapsed_ticks),
        compute_s,
        lost_s,
        mpi_s,
        recorder_s,
        other_s,
        outside_s: *outside_s,
        off_cpu_s: system.off_cpu_s.filter(|_| readings_apply),
        cpu_time: readings_apply.then_some(cpu_time).flatten(),
        read_until_s: before_death
            .filter(|_| readings_apply)
            .map(|last| time.clock.seconds(last.ticks)),
        memory: Memory::of(trace).filter(|_| resolved.whole),
        involuntary_switches: system.involuntary_switches.filter(|_| readings_apply),
        core: system.core,
        events: pass.calls.iter().map(|call| call.count).fold(0, u64::saturating_add),
        polls: PollMetrics {
            calls: pass.polls.calls,
            runs: pass.polls.runs,
            time_s: seconds(pass.polls.ticks),
        },
        flops: pass.flops,
        abandoned: trace.threads.iter().map(|thread| thread.abandoned).sum(),
        failed: pass.failed.values().copied().fold(0, u64::saturating_add),
        state: sums::state(trace, time),
        ending: time.ending,
        top_calls: calls::top_of_rank(trace, time, pass),
    }
}

#[cfg(test)]
mod counter_tests;
#[cfg(test)]
mod divided_tests;
#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod tests;
