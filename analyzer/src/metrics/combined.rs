//! Combines the sums of a selection, its messages and the operations that matching left open.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::Analysis;
use crate::analysis::segments::ComputeMode;
use crate::timeline::{Ending, GlobalTimeline, RankTime};
use crate::trace::{FileDiagnosis, RankTrace, Run};

use super::code::{self, CodeMetrics};
use super::compute_mode::compute_mode;
use super::counters::CounterMetrics;
use super::cpu_time::CpuTime;
use super::figures::{Efficiency, Metrics, PollMetrics, RankMetrics, RankState, ThreadMetrics};
use super::file_use::FileMetrics;
use super::files;
use super::memory::Memory;
use super::messages::MessageMetrics;
use super::note::{ImpossibleWork, Note};
use super::openmp::RankSums;
use super::resolve::{RankSelection, Resolved};
use super::selection::Selection;
use super::sites::SiteMetrics;
use super::sums::RankPass;
use super::teams::OpenMpMetrics;
use super::totals::TotalsMetrics;
use super::unfinished::{OpenOperations, Unfinished};
use super::{calls, failed, memory_growth, system};

/// What matching found in a selection.
pub(super) enum Matched {
    NotRequested,
    /// Messages and open operations; `None` if no rank recorded attributes.
    Found(Option<Box<(MessageMetrics, OpenOperations)>>),
}

pub(super) fn efficiency(ranks: &[RankMetrics], elapsed_s: f64) -> Option<Efficiency> {
    let computes: Vec<f64> = ranks.iter().filter(|r| r.takes_part).map(|r| r.compute_s).collect();
    let largest = computes.iter().copied().fold(0.0, f64::max);
    let mean = computes.iter().sum::<f64>() / computes.len() as f64;
    (elapsed_s > 0.0 && !computes.is_empty()).then(|| Efficiency {
        parallel: mean / elapsed_s,
        load_balance: (largest > 0.0).then(|| mean / largest),
        communication: largest / elapsed_s,
    })
}

pub(super) fn rank_metrics(
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
        memory: Memory::at_end(trace).filter(|_| resolved.whole),
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
        state: state(trace, time),
        ending: time.ending,
        top_calls: calls::top_of_rank(trace, time, pass),
    }
}

/// What metrics are combined from.
pub(super) struct CombinedParts<'p> {
    pub selection: &'p Selection,
    pub resolved: &'p Resolved,
    /// The sums of each rank.
    pub passes: &'p [RankPass],
    pub counters: Vec<CounterMetrics>,
    pub sites: Option<SiteMetrics>,
    pub code: Option<CodeMetrics>,
    /// The parallel regions of each rank; empty if they were not recorded.
    pub openmp: Vec<RankSums>,
    /// Calls on files of each rank; empty if they were not recorded.
    pub files: Vec<files::RankSums>,
    pub matched: Matched,
}

impl Metrics {
    /// Combines the sums of a selection, its messages, and the operations that matching left open.
    pub(super) fn combine(analysis: &Analysis, parts: CombinedParts) -> Self {
        let CombinedParts {
            selection,
            resolved,
            passes,
            counters,
            sites,
            code,
            openmp,
            files,
            matched,
        } = parts;
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
        notes.extend(code::notes(run));
        let of_sites = sites.iter().flat_map(|sites| &sites.unusable);
        let of_code = code.iter().flat_map(|code| &code.unusable);
        let unusable: BTreeSet<&(String, &str)> = of_sites.chain(of_code).collect();
        for (module, why) in unusable {
            notes.push(Note::SitesWithoutNames { module: module.clone(), why });
        }
        let totals = TotalsMetrics::new(run, timeline);
        notes.extend(totals.iter().flat_map(|totals| totals.notes(run)));
        let efficiency = efficiency(&ranks, resolved.elapsed_s);
        if compute == ComputeMode::Blas && passes.iter().all(|pass| pass.flops.is_none()) {
            notes.push(Note::NoBlasSeen);
        }
        notes.extend(memory_growth::note(&ranks));
        let flops =
            ranks.iter().filter(|r| r.takes_part).filter_map(|r| r.flops).reduce(|a, b| a + b);
        let openmp = OpenMpMetrics::new(analysis, compute, resolved.elapsed_s, &ranks, openmp);
        let files = FileMetrics::new(analysis, resolved.whole, &ranks, &files);
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
            code,
            openmp,
            files,
            totals,
            unfinished,
            compute,
            flops,
            counters,
            lost_events: lost.fold(0, u64::saturating_add),
            oversubscription: system::oversubscription(run, timeline),
            pinning: system::pinning(run, timeline),
            diagnoses,
            notes,
        }
    }
}

/// Whether the rank finished, and if not, its last call.
pub(in crate::metrics) fn state(trace: &RankTrace, time: &RankTime) -> RankState {
    if trace.facts.finalized() {
        return RankState::Finalized;
    }
    let name = |function| trace.file.function_name(function).unwrap_or("unknown").to_owned();
    let lasts = || trace.threads.iter().filter_map(|thread| thread.last_call.as_ref());
    let last_call = lasts().max_by_key(|call| call.begin_ticks).map(|call| name(call.function));
    let open = lasts().filter(|call| call.open).max_by_key(|call| call.begin_ticks);
    let inside = open.map(|call| (name(call.function), time.clock.seconds(call.begin_ticks)));
    RankState::Unfinished { last_call, inside }
}
