//! One rank's sums over a selection: its events come in, ticks by activity and calls by function
//! go out.

use std::collections::BTreeMap;

use trace_format::errors::ErrorClasses;
use trace_format::layout::{FIRST_FUNCTION, Slot};
use trace_format::meaning::{Class, Meaning};
use trace_format::reader::{RankFile, Totals};

use crate::timeline::RankTime;
use crate::timeline::mpi_constants::MpiConstants;
use crate::trace::RankTrace;

use super::resolve::RankSelection;
use super::segments::{Activity, Functions, Segment, Segmenter, Segments};
use super::spans::{Span, SpanKind, Spans, TakeSpans};
use super::union::{Clipper, Union, merged};
use super::{ComputeMode, RankState};

/// A function's calls on one rank.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct CallSums {
    /// Function number.
    pub function: u16,
    /// Calls that began in the selection.
    pub count: u64,
    /// Time of these calls; see [`super::CallMetrics::time_s`].
    pub ticks: u64,
    /// Time of the function inside the selection's stretches.
    pub inside_ticks: u64,
    /// The longest of these calls.
    pub max_ticks: u64,
    /// Bytes of these calls.
    pub bytes: u64,
    /// Floating-point operations of these calls, of compute functions.
    pub flops: f64,
}

/// Polls that found nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct PollSums {
    pub calls: u64,
    /// Records that they were merged into.
    pub runs: u64,
    /// Ticks inside them.
    pub ticks: u64,
}

/// One rank's sums.
#[derive(Debug, Clone, Default)]
pub(super) struct RankPass {
    /// Length of the selection's stretches.
    pub elapsed_ticks: u64,
    /// Useful time, the union over the threads.
    pub compute_ticks: u64,
    /// The first thread's time in MPI.
    pub mpi_ticks: u64,
    /// The first thread's time in the recorder.
    pub tool_ticks: u64,
    /// The first thread's remaining time that is not useful.
    pub other_ticks: u64,
    /// Functions that were called, of all threads.
    pub calls: Vec<CallSums>,
    /// Polls in runs that began in the selection, of all threads.
    pub polls: PollSums,
    /// Operations of compute calls that began in the selection; `None` without such calls.
    pub flops: Option<f64>,
    /// Compute calls whose number of operations cannot be.
    pub absurd_flops: u64,
    /// Calls of a function that returned an error of a class.
    pub failed: BTreeMap<(u16, u32), u64>,
    /// Each thread by itself, in the order of the file.
    pub threads: Vec<ThreadSums>,
}

/// One thread's sums.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ThreadSums {
    /// Thread as the file numbers it.
    pub number: u32,
    /// Calls that began in the selection.
    pub calls: u64,
    /// Ticks in MPI.
    pub mpi_ticks: u64,
    /// Ticks in the recorder.
    pub tool_ticks: u64,
    /// Useful ticks.
    pub compute_ticks: u64,
}

/// More operations than a call can make: a day of an exaflop machine is 10²³.
const MOST_FLOPS: f64 = 1e24;

impl RankPass {
    /// Reads a rank's events once (those of ranks with several threads twice).
    pub fn new(
        trace: &RankTrace,
        time: &RankTime,
        selection: &RankSelection,
        mode: ComputeMode,
    ) -> Self {
        let stretches = &selection.stretches;
        let functions = Functions::new(trace);
        // No rank is that.
        let nobody = MpiConstants::of_family(&trace.file.header.mpi_family)
            .filter(|_| trace.file.fixed.level > 0)
            .map_or(i32::MIN, |constants| constants.proc_null);
        let mut pass = Self {
            elapsed_ticks: stretches.iter().map(|(begin, end)| end - begin).sum(),
            ..Self::default()
        };
        let mut calls = vec![CallSums::default(); trace.file.function_names().len()];
        let threads = &trace.file.threads;
        let each = threads.iter().zip(&trace.threads).zip(Spans::of_threads(trace, time));
        for ((thread, extent), mut spans) in each {
            let (begin, end) = time.thread_stretch(extent).unwrap_or_default();
            let mut of_thread = ThreadPass {
                functions: &functions,
                file: &trace.file,
                nobody,
                every_call: selection.every_call,
                call_clipper: Clipper::new(stretches),
                length_clipper: Clipper::new(stretches),
                segmenter: Segmenter::new(begin, end, &functions),
                sums: Sums::new(stretches),
                calls: &mut calls,
                pass: &mut pass,
                thread_calls: 0,
            };
            spans.hand_on(&mut of_thread);
            let ThreadPass { mut segmenter, mut sums, mut thread_calls, .. } = of_thread;
            if let Some(totals) = thread.totals.as_ref().filter(|_| selection.every_call) {
                pass.add_totals(totals, &trace.file, &mut calls);
                thread_calls = thread_calls.saturating_add(totals.header.calls);
            }
            segmenter.finish(|segment| sums.add(&segment));
            let ticks = sums.ticks(mode);
            if thread.number == 0 {
                pass.take_main(&ticks);
            }
            let ActivityTicks { mpi: mpi_ticks, tool: tool_ticks, useful: compute_ticks, .. } =
                ticks;
            pass.threads.push(ThreadSums {
                number: thread.number,
                calls: thread_calls,
                mpi_ticks,
                tool_ticks,
                compute_ticks,
            });
        }
        if !threads.iter().any(|thread| thread.number == 0) {
            // No event of the first thread: its whole stretch is the program's own.
            let mut main = Sums::new(stretches);
            let mut segmenter = Segmenter::new(time.begin_ticks, time.end_ticks, &functions);
            segmenter.finish(|segment| main.add(&segment));
            pass.take_main(&main.ticks(mode));
        }
        if threads.iter().any(|thread| thread.number != 0) {
            pass.compute_ticks = union_over_threads(trace, time, stretches, &functions, mode);
        }
        for (index, sums) in calls.into_iter().enumerate() {
            if sums.count > 0 || sums.inside_ticks > 0 {
                pass.calls.push(CallSums { function: FIRST_FUNCTION + index as u16, ..sums });
            }
        }
        pass
    }

    /// Counts a call's operations; gives them when they can be.
    fn add_flops(&mut self, flops: f64) -> f64 {
        if (0.0..MOST_FLOPS).contains(&flops) {
            *self.flops.get_or_insert(0.0) += flops;
            flops
        } else {
            self.absurd_flops += 1;
            0.0
        }
    }

    /// Adds calls of which only totals are kept.
    fn add_totals(&mut self, totals: &Totals, file: &RankFile, calls: &mut [CallSums]) {
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        for entry in &totals.calls {
            let Some(name) = file.function_name(entry.function) else { continue };
            let class = Meaning::of(name).class;
            let Some(sums) = calls.get_mut(usize::from(entry.function - FIRST_FUNCTION)) else {
                continue;
            };
            add(&mut sums.count, entry.count);
            add(&mut sums.ticks, entry.ticks);
            // MPI_Init and MPI_Finalize lie outside τ.
            if class != Class::Lifetime {
                add(&mut sums.inside_ticks, entry.ticks);
            }
            add(&mut sums.bytes, entry.sent);
            sums.max_ticks = sums.max_ticks.max(entry.max_ticks);
            if class == Class::Compute {
                sums.flops += self.add_flops(f64::from_bits(entry.work));
            }
        }
        for (function, error, count) in &totals.failed {
            add(self.failed.entry((*function, *error)).or_default(), *count);
        }
        let header = &totals.header;
        add(&mut self.polls.calls, header.polls);
        add(&mut self.polls.runs, header.poll_runs);
        add(&mut self.polls.ticks, header.poll_ticks);
    }

    fn take_main(&mut self, main: &ActivityTicks) {
        self.mpi_ticks = main.mpi;
        self.tool_ticks = main.tool;
        self.other_ticks = main.other;
        self.compute_ticks = main.useful;
    }
}

/// One thread's spans on their way into the sums of its rank.
struct ThreadPass<'a, 'p> {
    functions: &'a Functions,
    file: &'a RankFile,
    /// MPI_PROC_NULL: nothing goes there.
    nobody: i32,
    every_call: bool,
    call_clipper: Clipper<'a>,
    length_clipper: Clipper<'a>,
    segmenter: Segmenter<'a>,
    sums: Sums<'a>,
    calls: &'p mut [CallSums],
    pass: &'p mut RankPass,
    thread_calls: u64,
}

impl TakeSpans for ThreadPass<'_, '_> {
    #[inline]
    fn plain(&mut self, call: &Slot) -> bool {
        let (begin_ticks, ticks) = (call.begin, u64::from(call.duration()));
        let end_ticks = begin_ticks + ticks;
        let (compute, activity) = self.functions.entry(call.function());
        let index = usize::from(call.function() - FIRST_FUNCTION);
        // The usual: of a whole run, what lies inside the rank's stretch.
        if self.every_call
            && !compute
            && self.sums.clipper.holds(self.segmenter.state().0, end_ticks)
            && let Some(calls) = self.calls.get_mut(index)
            && let Some((own_ticks, in_region)) = self.segmenter.go_over(begin_ticks, end_ticks)
        {
            self.sums.ticks[Activity::Own as usize][usize::from(in_region)] += own_ticks;
            self.sums.ticks[activity as usize][usize::from(in_region)] += ticks;
            calls.count += 1;
            calls.ticks += ticks;
            calls.inside_ticks += ticks;
            calls.max_ticks = calls.max_ticks.max(ticks);
            let bytes = if call.peer == self.nobody { 0 } else { u64::from(call.bytes) };
            calls.bytes = calls.bytes.saturating_add(bytes);
            self.thread_calls += 1;
            return true;
        }
        self.span(Span::of_plain(call))
    }

    fn span(&mut self, span: Span) -> bool {
        let called = match span.kind {
            SpanKind::Call(function) => Some((function, 1, span.end_ticks)),
            SpanKind::Polls { function, count, inside_ticks } => {
                Some((function, count, span.begin_ticks + inside_ticks))
            }
            _ => None,
        };
        if let Some((function, count, end_ticks)) = called
            && let Some(sums) = self.calls.get_mut(usize::from(function - FIRST_FUNCTION))
        {
            let (compute, _) = self.functions.entry(function);
            let call = Call {
                count,
                counts: self.every_call || self.call_clipper.contains(span.begin_ticks),
                ticks: end_ticks - span.begin_ticks,
                inside_ticks: self.length_clipper.common_ticks(span.begin_ticks, end_ticks),
                bytes: match () {
                    () if compute => span.payload[1],
                    () if span.peer() == self.nobody || !took_place(self.file, &span) => 0,
                    () => span.bytes,
                },
            };
            sums.add(&call, self.every_call);
            if call.counts {
                self.thread_calls = self.thread_calls.saturating_add(count);
                if span.error != 0 {
                    *self.pass.failed.entry((function, span.error)).or_default() += 1;
                }
                if compute {
                    sums.flops += self.pass.add_flops(f64::from_bits(span.payload[0]));
                }
                if matches!(span.kind, SpanKind::Polls { .. }) {
                    let polls = &mut self.pass.polls;
                    polls.calls = polls.calls.saturating_add(count);
                    polls.runs += 1;
                    polls.ticks = polls.ticks.saturating_add(call.ticks);
                }
            }
        }
        self.segmenter.push(&span, |segment| self.sums.add(&segment));
        true
    }
}

/// Whether a call moved what it says: it succeeded, or what it returned says that it ran all the same.
fn took_place(file: &RankFile, span: &Span) -> bool {
    let SpanKind::Call(function) = span.kind else { return true };
    let collective = || {
        file.function_name(function)
            .is_some_and(|name| Meaning::of(name).class == Class::Collective)
    };
    let errors = || ErrorClasses::of_family(&file.header.mpi_family);
    span.error == 0 || errors().is_some_and(|errors| errors.took_place(span.error, collective()))
}

/// One call, or one run of polls.
struct Call {
    count: u64,
    /// Whether it counts in the selection.
    counts: bool,
    ticks: u64,
    inside_ticks: u64,
    bytes: u64,
}

impl CallSums {
    fn add(&mut self, call: &Call, every_call: bool) {
        self.inside_ticks = self.inside_ticks.saturating_add(call.inside_ticks);
        if !call.counts {
            return;
        }
        let ticks = if every_call { call.ticks } else { call.inside_ticks };
        self.count = self.count.saturating_add(call.count);
        self.ticks = self.ticks.saturating_add(ticks);
        // Of a run of polls only the mean is known.
        let mean_ticks = if call.count > 1 { ticks / call.count } else { ticks };
        self.max_ticks = self.max_ticks.max(mean_ticks);
        self.bytes = self.bytes.saturating_add(call.bytes);
    }
}

/// Sums of a thread in the making.
struct Sums<'a> {
    clipper: Clipper<'a>,
    /// By activity, outside and inside of regions.
    ticks: [[u64; 2]; Activity::COUNT],
}

/// A thread's ticks in the selection.
#[derive(Debug, Clone, Copy, Default)]
struct ActivityTicks {
    useful: u64,
    mpi: u64,
    tool: u64,
    /// What else is not useful.
    other: u64,
}

impl<'a> Sums<'a> {
    fn new(stretches: &'a [(u64, u64)]) -> Self {
        Self { clipper: Clipper::new(stretches), ticks: Default::default() }
    }

    #[inline]
    fn add(&mut self, segment: &Segment) {
        let ticks = self.clipper.common_ticks(segment.begin_ticks, segment.end_ticks);
        self.ticks[segment.activity as usize][usize::from(segment.in_region)] += ticks;
    }

    fn ticks(&self, mode: ComputeMode) -> ActivityTicks {
        let mut sums = ActivityTicks::default();
        for activity in Activity::ALL {
            for in_region in [false, true] {
                let ticks = self.ticks[activity as usize][usize::from(in_region)];
                *match activity {
                    _ if activity.is_useful(in_region, mode) => &mut sums.useful,
                    Activity::Mpi => &mut sums.mpi,
                    Activity::Tool => &mut sums.tool,
                    Activity::Compute | Activity::Own => &mut sums.other,
                } += ticks;
            }
        }
        sums
    }
}

/// Ticks in which at least one thread does useful work.
fn union_over_threads(
    trace: &RankTrace,
    time: &RankTime,
    stretches: &[(u64, u64)],
    functions: &Functions,
    mode: ComputeMode,
) -> u64 {
    let mut sequences = Vec::new();
    if !trace.file.threads.iter().any(|thread| thread.number == 0) {
        let segmenter = Segmenter::new(time.begin_ticks, time.end_ticks, functions);
        sequences.push(Segments::new(None, segmenter));
    }
    for (extent, spans) in trace.threads.iter().zip(Spans::of_threads(trace, time)) {
        let Some((begin, end)) = time.thread_stretch(extent) else { continue };
        let segmenter = Segmenter::new(begin, end, functions);
        sequences.push(Segments::new(Some(spans), segmenter));
    }
    let useful = sequences.into_iter().map(|segments| {
        let useful = segments.filter(|segment| segment.is_useful(mode));
        useful.map(|segment| (segment.begin_ticks, segment.end_ticks))
    });
    let mut union = Union::new(stretches);
    for (begin, end) in merged(useful.collect()) {
        union.add(begin, end);
    }
    union.finish()
}

/// Whether the rank came to its end, and where it stands when it did not.
pub(super) fn state(trace: &RankTrace, time: &RankTime) -> RankState {
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
