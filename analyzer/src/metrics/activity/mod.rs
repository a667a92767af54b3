//! What each thread did when: time by kind in equal bins for every row of a timeline, the longest
//! calls, and durations by kind.
//!
//! A bin holds the time of each kind inside it, so nothing vanishes however short it is, and the
//! bins of a row sum to the thread's time. Memory is rows × bins, whatever the number of events.
//! Single calls are read again where they are needed ([`detail`]).

pub mod detail;
mod detail_event;
pub mod index;
pub mod index_file;
mod kind;
pub mod lanes;
mod rows;

use crate::analysis::segments::{Functions, Segment, Segmenter};
use crate::analysis::spans::{Activity as SegmentActivity, Span, SpanKind};
use crate::analysis::{Analysis, CallObserver, RankObserver, RankView, ThreadView};
use crate::timeline::{GlobalTimeline, RankTime};
use crate::trace::Run;

use kind::{FunctionKinds, shares_of_totals};
pub use kind::{KINDS, Kind};
pub use rows::{Activity, Durations, LongCall, Row};
use rows::{DURATION_CLASSES, LONGEST, keep_longest, kind_of};

/// Default number of cells (rows × bins); a cell takes some 40 bytes while it is filled.
pub const CELLS: usize = 1 << 17;

/// Bins per row for this many rows.
pub fn bins_for(rows: usize) -> usize {
    (CELLS / rows.max(1)).clamp(32, 4096)
}

impl Activity {
    /// Reads the events for this alone.
    pub fn new(run: &Run, timeline: &GlobalTimeline, bins: usize) -> Self {
        let analysis = Analysis::new(run, timeline);
        let observer = Bins::new(timeline, bins);
        let ranks = analysis.calls(&observer);
        Self::from_bins(&analysis, &observer, ranks)
    }

    /// Merges what an observer kept of the ranks.
    pub fn from_bins(analysis: &Analysis, observer: &Bins, ranks: Vec<RankBins>) -> Self {
        let mut activity = Self {
            rows: Vec::new(),
            bins: observer.bins,
            length_s: observer.length_s,
            longest: Vec::new(),
            durations: Durations { counts: vec![[0; KINDS]; DURATION_CLASSES] },
            calls: 0,
            summed_s: summed(analysis.run, analysis.timeline),
        };
        for rank in ranks {
            let RankBins { rows, longest, durations, calls, .. } = rank.finish();
            let first = activity.rows.len();
            activity.rows.extend(rows);
            let moved = |call: LongCall| LongCall { row: call.row + first, ..call };
            activity.longest.extend(longest.into_iter().map(moved));
            activity.calls += calls;
            for (sums, counts) in activity.durations.counts.iter_mut().zip(durations) {
                sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
        }
        keep_longest(&mut activity.longest);
        activity
    }

    /// Length of a bin, seconds.
    pub fn bin_s(&self) -> f64 {
        self.length_s / self.bins as f64
    }

    /// Seconds of each kind in a row between two times. Within a bin, time counts as even.
    pub fn seconds(&self, row: usize, from_s: f64, to_s: f64) -> [f64; KINDS] {
        let bin_s = self.bin_s();
        let mut sums = [0.0; KINDS];
        if bin_s <= 0.0 || to_s <= from_s {
            return sums;
        }
        let first = (from_s / bin_s).floor().max(0.0) as usize;
        let last = ((to_s / bin_s).ceil().max(0.0) as usize).min(self.bins);
        for (bin, kinds) in self.rows[row].bins.iter().enumerate().take(last).skip(first) {
            let at = bin as f64 * bin_s;
            let part = ((at + bin_s).min(to_s) - at.max(from_s)).max(0.0) / bin_s;
            for (sum, kind) in sums.iter_mut().zip(kinds) {
                *sum += f64::from(*kind) * part;
            }
        }
        sums
    }
}

/// From the earliest to the latest moment at which some thread's calls are kept only as totals,
/// global seconds.
pub fn summed(run: &Run, timeline: &GlobalTimeline) -> Option<(f64, f64)> {
    let each = run.ranks.iter().zip(&timeline.ranks).flat_map(|(trace, time)| {
        let totals = trace.file.threads.iter().filter_map(|thread| thread.totals.as_ref());
        totals.map(|totals| {
            let ends = (totals.header.begin_ticks, totals.header.end_ticks);
            (time.clock.seconds(ends.0), time.clock.seconds(ends.1))
        })
    });
    each.filter(|(from, to)| from < to).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// Observes what each thread does when.
#[derive(Debug, Clone, Copy)]
pub struct Bins {
    bins: usize,
    length_s: f64,
}

impl Bins {
    /// Observes with this many bins per row.
    pub fn new(timeline: &GlobalTimeline, bins: usize) -> Self {
        let length_s = timeline.ranks.iter().map(RankTime::end_s).fold(0.0, f64::max);
        Self { bins: bins.max(1), length_s }
    }

    /// Bins per second.
    fn scale(&self) -> f64 {
        if self.length_s > 0.0 { self.bins as f64 / self.length_s } else { 0.0 }
    }
}

impl<'a> CallObserver<'a> for Bins {
    type OfRank = RankBins<'a>;

    fn begin_rank(&self, rank: RankView<'a>) -> RankBins<'a> {
        let mut of_rank = RankBins {
            rank,
            bins: *self,
            functions: Functions::new(rank.trace),
            kinds: FunctionKinds::new(&rank.trace.file),
            at: None,
            rows: Vec::new(),
            longest: Vec::new(),
            durations: vec![[0; KINDS]; DURATION_CLASSES],
            calls: 0,
        };
        if !rank.trace.file.threads.iter().any(|thread| thread.number == 0) {
            // The first thread has no events: its whole stretch is the program's own code.
            of_rank.begin_row(0, (rank.time.begin_ticks, rank.time.end_ticks), [0.0; KINDS]);
            of_rank.end_row();
        }
        of_rank
    }
}

/// The rows of one rank, while its spans are read.
#[derive(Debug)]
pub struct RankBins<'a> {
    rank: RankView<'a>,
    bins: Bins,
    functions: Functions,
    kinds: FunctionKinds,
    at: Option<OpenRow>,
    rows: Vec<Row>,
    longest: Vec<LongCall>,
    durations: Vec<[u64; KINDS]>,
    calls: u64,
}

#[derive(Debug)]
struct OpenRow {
    row: Row,
    segmenter: Segmenter,
    /// Share of each kind in the MPI time of the thread's totals.
    totals_shares: [f64; KINDS],
    /// Kind of the run of polls whose time has not been entered yet.
    poll_kind: Kind,
}

impl<'a> RankObserver<'a> for RankBins<'a> {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        let number = thread.extent.number;
        let stretch = thread.stretch.filter(|(begin, end)| number == 0 || begin < end);
        if let Some(stretch) = stretch {
            let totals_shares = shares_of_totals(thread.thread, &self.rank.trace.file);
            self.begin_row(number, stretch, totals_shares);
        }
    }

    fn span(&mut self, span: &Span) {
        let Some(mut at) = self.at.take() else { return };
        let kind = match span.kind {
            SpanKind::Call(function) | SpanKind::Polls { function, .. } => {
                let kind = self.kinds.kind(function);
                self.count(span, (kind, function), at.row.thread, self.rank.time);
                kind
            }
            _ => Kind::Tool,
        };
        let (time, scale) = (self.rank.time, self.bins.scale());
        let OpenRow { row, segmenter, totals_shares, poll_kind } = &mut at;
        segmenter.push(span, |segment| {
            let before = segment.begin_ticks < span.begin_ticks;
            match span.kind {
                SpanKind::Summed { over, .. } if !before => {
                    row.spread(&segment, over, totals_shares, time, scale);
                }
                _ => row.add(&segment, if before { *poll_kind } else { kind }, time, scale),
            }
        });
        if matches!(span.kind, SpanKind::Polls { .. }) {
            *poll_kind = kind;
        }
        self.at = Some(at);
    }

    fn end_thread(&mut self) {
        self.end_row();
    }
}

impl RankBins<'_> {
    fn begin_row(&mut self, thread: u32, (begin, end): (u64, u64), totals_shares: [f64; KINDS]) {
        let RankView { position, trace, time } = self.rank;
        let row = Row {
            position,
            rank: trace.rank,
            thread,
            begin_s: time.clock.seconds(begin),
            end_s: time.clock.seconds(end),
            bins: vec![[0.0; KINDS]; self.bins.bins],
            totals_s: [0.0; KINDS],
        };
        let segmenter = Segmenter::new(begin, end, &self.functions);
        self.at = Some(OpenRow { row, segmenter, totals_shares, poll_kind: Kind::Wait });
    }

    fn end_row(&mut self) {
        let Some(OpenRow { mut row, mut segmenter, poll_kind, .. }) = self.at.take() else {
            return;
        };
        let (time, scale) = (self.rank.time, self.bins.scale());
        segmenter.finish(|segment| row.add(&segment, poll_kind, time, scale));
        self.rows.push(row);
    }

    /// Sorts the rows by thread.
    fn finish(mut self) -> Self {
        self.rows.sort_by_key(|row| row.thread);
        for call in &mut self.longest {
            // Until now, `row` held the thread's number.
            let thread = call.row as u32;
            call.row = self.rows.iter().position(|row| row.thread == thread).unwrap_or(0);
        }
        keep_longest(&mut self.longest);
        self
    }

    fn count(&mut self, span: &Span, (kind, function): (Kind, u16), thread: u32, time: &RankTime) {
        self.calls += 1;
        let (ticks, number) = match span.kind {
            SpanKind::Polls { inside_ticks, count, .. } => (inside_ticks / count.max(1), count),
            _ => (span.end_ticks - span.begin_ticks, 1),
        };
        let duration_s = time.clock.duration_s(ticks);
        let class = 64 - ((duration_s * 1e9) as u64).leading_zeros() as usize;
        let counts = &mut self.durations[class][kind as usize];
        *counts = counts.saturating_add(number);
        let waits = matches!(kind, Kind::Send | Kind::Receive | Kind::Wait | Kind::Collective);
        let long_enough = self.longest.len() < LONGEST
            || self.longest.iter().any(|call| call.duration_s < duration_s);
        if waits && number == 1 && duration_s > 0.0 && long_enough {
            let begin_s = time.clock.seconds(span.begin_ticks);
            self.longest.push(LongCall {
                row: thread as usize,
                kind,
                function,
                begin_s,
                duration_s,
            });
            if self.longest.len() > 4 * LONGEST {
                keep_longest(&mut self.longest);
            }
        }
    }
}

impl Row {
    fn add(&mut self, segment: &Segment, mpi: Kind, time: &RankTime, scale: f64) {
        let kind = kind_of(segment, mpi);
        let ticks = segment.end_ticks - segment.begin_ticks;
        self.fill(kind, time.clock.duration_s(ticks), (segment.begin_ticks, ticks), time, scale);
    }

    /// Adds time of which only the sum is known, evenly over the stretch in which it lies.
    fn spread(
        &mut self,
        segment: &Segment,
        (begin, end): (u64, u64),
        of_mpi: &[f64; KINDS],
        time: &RankTime,
        scale: f64,
    ) {
        let length_s = time.clock.duration_s(segment.end_ticks - segment.begin_ticks);
        if segment.activity != SegmentActivity::Mpi {
            let kind = kind_of(segment, Kind::OtherMpi);
            return self.fill(kind, length_s, (begin, end - begin), time, scale);
        }
        for (kind, share) in Kind::ALL.into_iter().zip(of_mpi).filter(|(_, share)| **share > 0.0) {
            self.fill(kind, length_s * share, (begin, end - begin), time, scale);
        }
    }

    /// Spreads seconds of a kind evenly over a stretch, given by its start and length in ticks.
    fn fill(&mut self, kind: Kind, sum_s: f64, over: (u64, u64), time: &RankTime, scale: f64) {
        let kind = kind as usize;
        self.totals_s[kind] += sum_s;
        if scale <= 0.0 {
            return;
        }
        let last = self.bins.len() - 1;
        let from = (time.clock.seconds(over.0) * scale).max(0.0);
        let to = from + time.clock.duration_s(over.1) * scale;
        let (first, final_bin) = ((from as usize).min(last), (to as usize).min(last));
        if first == final_bin {
            self.bins[first][kind] += sum_s as f32;
            return;
        }
        for (index, bin) in self.bins[first..=final_bin].iter_mut().enumerate() {
            let index = (first + index) as f64;
            let inside = (to.min(index + 1.0) - from.max(index)).max(0.0);
            bin[kind] += (sum_s * inside / (to - from)) as f32;
        }
    }
}

#[cfg(test)]
mod tests;
