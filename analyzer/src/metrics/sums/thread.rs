//! Routes a thread's spans into the sums of all selections at once.
//!
//! Selections begin and end at moments of the rank's counter. A call that lies between two such
//! moments is in the same selections as any other call there. So calls between two moments are
//! summed once, and the sums are added to the selections that contain them when the next moment
//! passes. A call that crosses a moment is cut for each selection separately.

use trace_format::errors::ErrorClasses;
use trace_format::meaning::Class;

use crate::analysis::segments::{ComputeMode, Functions, Segment, Segmenter};
use crate::analysis::spans::{PlainCall, Span, SpanKind};
use crate::analysis::union::Clipper;
use crate::analysis::{CallObserver, RankObserver, RankView, ThreadView};
use crate::metrics::resolve::{RankSelection, Resolved};
use crate::timeline::mpi_constants::MpiConstants;

use super::accumulator::{Accumulator, ActivityTicks, Call};
use super::pass::{RankPass, ThreadSums};
use super::together::together;

/// Sums the calls of every rank over selections.
pub(in crate::metrics) struct Sums<'s> {
    pub selections: Vec<&'s Resolved>,
    /// What counts as computation.
    pub mode: ComputeMode,
}

impl<'a, 's> CallObserver<'a> for Sums<'s> {
    type OfRank = RankSums<'a, 's>;

    fn begin_rank(&self, rank: RankView<'a>) -> RankSums<'a, 's> {
        let header = &rank.trace.file.header;
        let functions = rank.trace.file.function_names().len();
        let of_rank = |resolved: &&'s Resolved| SelectionSums {
            selection: &resolved.ranks[rank.position],
            starts: Clipper::new(&[]),
            lengths: Clipper::new(&[]),
            segments: Clipper::new(&[]),
            around: Clipper::new(&[]),
            sums: Accumulator::new(functions),
            main: None,
            threads: Vec::new(),
        };
        RankSums {
            rank,
            mode: self.mode,
            functions: Functions::new(rank.trace),
            // i32::MIN is not a rank.
            proc_null: MpiConstants::of_family(&header.mpi_family)
                .filter(|_| rank.trace.file.fixed.level > 0)
                .map_or(i32::MIN, |constants| constants.proc_null),
            selections: self.selections.iter().map(of_rank).collect(),
            thread: None,
            segmenter: Segmenter::new(0, 0, &Functions::new(rank.trace)),
            until_ticks: 0,
            selected: Vec::new(),
            pending: Accumulator::new(functions),
        }
    }
}

/// The sums of one rank, while its spans are read.
pub(in crate::metrics) struct RankSums<'a, 's> {
    rank: RankView<'a>,
    mode: ComputeMode,
    functions: Functions,
    /// MPI_PROC_NULL: a peer that nothing is sent to.
    proc_null: i32,
    selections: Vec<SelectionSums<'s>>,
    thread: Option<ThreadView<'a>>,
    segmenter: Segmenter,
    /// The next moment at which a selection begins or ends; 0 if unknown.
    until_ticks: u64,
    /// The selections that contain everything up to that moment.
    selected: Vec<usize>,
    /// Sums that are to be added to these selections.
    pending: Accumulator,
}

/// The sums of one selection on a rank.
struct SelectionSums<'s> {
    selection: &'s RankSelection,
    // One clipper for each ascending sequence of queries: starts of calls, calls, segments,
    // moments.
    starts: Clipper<'s>,
    lengths: Clipper<'s>,
    segments: Clipper<'s>,
    around: Clipper<'s>,
    sums: Accumulator,
    main: Option<ActivityTicks>,
    threads: Vec<ThreadSums>,
}

impl SelectionSums<'_> {
    fn begin_thread(&mut self) {
        let clipper = Clipper::new(&self.selection.stretches);
        (self.starts, self.lengths) = (clipper.clone(), clipper.clone());
        (self.segments, self.around) = (clipper.clone(), clipper);
    }

    fn add_segment(&mut self, segment: &Segment) {
        let ticks = self.segments.common_ticks(segment.begin_ticks, segment.end_ticks);
        self.sums.ticks[segment.activity as usize][usize::from(segment.in_region)] += ticks;
    }

    /// Adds a call that begins at this moment, clipped to the selection.
    fn add_call(&mut self, begin_ticks: u64, call: &Call) {
        let every_call = self.selection.every_call;
        let counts = every_call || self.starts.contains(begin_ticks);
        let inside_ticks = self.lengths.common_ticks(begin_ticks, begin_ticks + call.ticks);
        if !counts {
            return self.sums.add_inside(call.function, inside_ticks);
        }
        let ticks = if every_call { call.ticks } else { inside_ticks };
        self.sums.add_call(&Call { ticks, inside_ticks, ..*call });
    }
}

impl RankSums<'_, '_> {
    /// Adds the pending sums to the selections that they belong to.
    fn flush(&mut self) {
        for index in self.selected.drain(..) {
            self.selections[index].sums.add(&self.pending);
        }
        self.pending.clear();
        self.until_ticks = 0;
    }

    /// Finds the selections that contain the current moment, and up to when.
    fn find_selected(&mut self) {
        let (at_ticks, _) = self.segmenter.state();
        let mut until_ticks = u64::MAX;
        self.selected.clear();
        for (index, of) in self.selections.iter_mut().enumerate() {
            let (inside, until) = of.around.around(at_ticks);
            // For the whole run, a call outside the rank's stretch counts but its time does not.
            if !inside && of.selection.every_call {
                self.selected.clear();
                return;
            }
            if inside {
                self.selected.push(index);
            }
            until_ticks = until_ticks.min(until);
        }
        self.until_ticks = until_ticks;
    }

    fn call_of(&self, span: &Span) -> Option<Call> {
        let (function, count, ticks, polls) = match span.kind {
            SpanKind::Call(function) => (function, 1, span.end_ticks - span.begin_ticks, false),
            SpanKind::Polls { function, count, inside_ticks } => {
                (function, count, inside_ticks, true)
            }
            _ => return None,
        };
        let (compute, _) = self.functions.entry(function);
        let bytes = match () {
            () if compute => span.payload[1],
            () if span.peer() == self.proc_null || !self.moved_data(span) => 0,
            // Calls that fetch also receive bytes.
            () if self.is_one_sided(function) => span.bytes.saturating_add(span.received),
            () => span.bytes,
        };
        let flops = compute.then(|| f64::from_bits(span.payload[0]));
        let error = span.error;
        Some(Call { function, count, ticks, inside_ticks: ticks, bytes, flops, error, polls })
    }

    fn is_one_sided(&self, function: u16) -> bool {
        let meaning = self.rank.trace.file.meaning(function);
        meaning.is_some_and(|meaning| meaning.class == Class::OneSided)
    }

    /// Whether a call moved its data: it succeeded, or its error class shows that it still ran.
    fn moved_data(&self, span: &Span) -> bool {
        let SpanKind::Call(function) = span.kind else { return true };
        let file = &self.rank.trace.file;
        let collective =
            || file.meaning(function).is_some_and(|meaning| meaning.class == Class::Collective);
        let errors = || ErrorClasses::of_family(&file.header.mpi_family);
        span.error == 0
            || errors().is_some_and(|errors| errors.took_place(span.error, collective()))
    }
}

impl<'a> RankObserver<'a> for RankSums<'a, '_> {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        let (begin, end) = thread.stretch.unwrap_or_default();
        self.segmenter = Segmenter::new(begin, end, &self.functions);
        self.selections.iter_mut().for_each(SelectionSums::begin_thread);
        self.thread = Some(thread);
        self.find_selected();
    }

    #[inline]
    fn plain(&mut self, call: &PlainCall) {
        let (begin_ticks, end_ticks) = (call.begin_ticks(), call.end_ticks());
        let (compute, activity) = self.functions.entry(call.function());
        if !compute
            && begin_ticks < self.until_ticks
            && end_ticks <= self.until_ticks
            && let Some(own) = self.segmenter.skip_call(begin_ticks, end_ticks)
        {
            let bytes = if call.peer() == self.proc_null { 0 } else { call.bytes() };
            self.pending.add_plain((call.function(), call.ticks(), bytes), activity, own);
            return;
        }
        self.span(&call.span());
    }

    fn span(&mut self, span: &Span) {
        let call = self.call_of(span);
        let from_ticks = span.begin_ticks;
        let is_whole = self.segmenter.state().0 <= from_ticks
            && from_ticks < self.until_ticks
            && span.end_ticks <= self.until_ticks;
        if is_whole {
            if let Some(call) = &call {
                self.pending.add_call(call);
            }
            let ticks = &mut self.pending.ticks;
            self.segmenter.push(span, |segment| {
                ticks[segment.activity as usize][usize::from(segment.in_region)] +=
                    segment.end_ticks - segment.begin_ticks;
            });
            return;
        }
        self.flush();
        if let Some(call) = &call {
            self.selections.iter_mut().for_each(|of| of.add_call(from_ticks, call));
        }
        let selections = &mut self.selections;
        self.segmenter.push(span, |segment| {
            selections.iter_mut().for_each(|of| of.add_segment(&segment));
        });
        self.find_selected();
    }

    fn end_thread(&mut self) {
        self.flush();
        let Some(ThreadView { thread, .. }) = self.thread.take() else { return };
        let selections = &mut self.selections;
        self.segmenter.finish(|segment| {
            selections.iter_mut().for_each(|of| of.add_segment(&segment));
        });
        for of in &mut self.selections {
            if let Some(totals) = thread.totals.as_ref().filter(|_| of.selection.every_call) {
                of.sums.add_totals(totals, &self.rank.trace.file);
            }
            let (calls, ticks) = of.sums.end_thread(self.mode);
            if thread.number == 0 {
                of.main = Some(ticks);
            }
            of.threads.push(ThreadSums {
                number: thread.number,
                calls,
                mpi_ticks: ticks.mpi,
                tool_ticks: ticks.tool,
                compute_ticks: ticks.useful,
            });
        }
    }
}

impl RankSums<'_, '_> {
    /// The rank's sums in each selection.
    pub fn finish(mut self) -> Vec<RankPass> {
        let RankView { trace, time, .. } = self.rank;
        let threads = &trace.file.threads;
        if !threads.iter().any(|thread| thread.number == 0) {
            // The first thread has no events: its whole stretch is the program's own code.
            self.segmenter = Segmenter::new(time.begin_ticks, time.end_ticks, &self.functions);
            let (selections, mode) = (&mut self.selections, self.mode);
            selections.iter_mut().for_each(SelectionSums::begin_thread);
            self.segmenter.finish(|segment| {
                selections.iter_mut().for_each(|of| of.add_segment(&segment));
            });
            selections.iter_mut().for_each(|of| of.main = Some(of.sums.end_thread(mode).1));
        }
        let of_several = threads.iter().any(|thread| thread.number != 0).then(|| {
            let stretches = self.selections.iter().map(|of| of.selection.stretches.as_slice());
            let stretches: Vec<_> = stretches.collect();
            together(self.rank, &stretches, &self.functions, self.mode)
        });
        let passes = self.selections.into_iter().enumerate().map(|(index, of)| {
            let SelectionSums { selection, sums, main, threads, .. } = of;
            let main = main.unwrap_or_default();
            let stretches = selection.stretches.iter();
            let elapsed_ticks: u64 = stretches.map(|(begin, end)| end - begin).sum();
            let of_one = [main.useful, main.mpi, main.tool];
            let of_rank = of_several.as_ref().map_or(of_one, |of_several| of_several[index]);
            let [compute_ticks, mpi_ticks, tool_ticks] = of_rank;
            let other_ticks = match &of_several {
                Some(_) => elapsed_ticks - of_rank.iter().sum::<u64>(),
                None => main.other,
            };
            RankPass {
                elapsed_ticks,
                compute_ticks,
                mpi_ticks,
                tool_ticks,
                other_ticks,
                polls: sums.polls,
                flops: sums.flops,
                impossible_flops: sums.impossible_flops,
                failed: sums.failed.clone(),
                calls: sums.calls(),
                threads,
            }
        });
        passes.collect()
    }
}
