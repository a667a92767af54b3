//! An index that gives the time by kind of any stretch of any row at once.
//!
//! Every event is read once, and the state is recorded every [`GRANULE`] events. The time by kind
//! between two moments then follows from two checkpoints and the few events around the moments,
//! however long the trace is. The index takes some 0.12 bytes per event and can be stored as bytes
//! ([`index_file`](super::index_file)).

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use trace_format::reader::{EventKind, Position};

use crate::analysis::segments::{Functions, Segment, Segmenter};
use crate::analysis::spans::{Activity as SegmentActivity, Span, SpanKind, Spans};
use crate::analysis::{Analysis, RankView, ThreadView};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

use super::detail_event::DetailEvent;
use super::kind::{FunctionKinds, KINDS, Kind, shares_of_totals};
use super::rows::{LONGEST, LongCall, keep_longest, kind_of, stretch};

/// Events between two checkpoints.
pub const GRANULE: u64 = 1024;
/// From this many granules per bin on, time within a granule is assumed to be even.
const EVEN_FROM: f64 = 4.0;
/// How many of the longest occurrences of regions are kept per row.
const REGIONS: usize = 200;
/// Size of a stored [`Checkpoint`].
const CHECKPOINT_BYTES: usize = 8 * (3 + KINDS);

/// The state at the start of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Checkpoint {
    /// Moment up to which time has been assigned to kinds.
    at_ticks: u64,
    /// Ticks inside polls that are not assigned yet; the highest byte is their kind.
    polls: u64,
    /// Position of the event.
    position: Position,
    /// Ticks by kind from the row's start to `at_ticks`.
    ticks: [u64; KINDS],
}

const POLLS_BITS: u32 = 56;

impl Checkpoint {
    fn bytes(&self) -> [u8; CHECKPOINT_BYTES] {
        let position = u64::from(self.position.chunk) << 32 | u64::from(self.position.at);
        let words = [self.at_ticks, self.polls, position].into_iter().chain(self.ticks);
        let mut bytes = [0; CHECKPOINT_BYTES];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Self {
        let word = |index: usize| {
            let bytes = bytes.get(8 * index..8 * index + 8).and_then(|b| b.try_into().ok());
            bytes.map_or(0, u64::from_le_bytes)
        };
        let position = word(2);
        Self {
            at_ticks: word(0),
            polls: word(1),
            position: Position { chunk: (position >> 32) as u32, at: position as u32 },
            ticks: std::array::from_fn(|kind| word(3 + kind)),
        }
    }
}

/// An occurrence of a region on a rank's own counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionTicks {
    /// Id of its name in the rank's file.
    pub id: u32,
    /// Counter at the start.
    pub begin_ticks: u64,
    /// Counter at the end.
    pub end_ticks: u64,
}

/// A call on a rank's own counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTicks {
    /// Number of its function.
    pub function: u16,
    /// Counter at the start.
    pub begin_ticks: u64,
    /// Its length.
    pub ticks: u64,
}

/// Everything about a row except its checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowFacts {
    /// Position of the rank in [`Run::ranks`].
    pub position: usize,
    /// Thread number in the file.
    pub thread: u32,
    /// Counter at the start of the recorded stretch.
    pub begin_ticks: u64,
    /// Counter at the end of the recorded stretch.
    pub end_ticks: u64,
    /// Number of calls; a run of polls counts as one.
    pub calls: u64,
    /// Ticks by kind over the row.
    ticks: [u64; KINDS],
    /// The longest calls that wait for others.
    longest: Vec<CallTicks>,
    /// The longest occurrences of regions.
    pub regions: Vec<RegionTicks>,
    /// Number of occurrences of regions that are left out.
    pub regions_left_out: u64,
    /// Its checkpoints in the table: first index, and index after the last.
    places: (usize, usize),
}

/// The index of all rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActivityIndex {
    /// Ascending by rank, then thread.
    pub rows: Vec<RowFacts>,
    /// The checkpoints of all rows, as bytes.
    table: Vec<u8>,
}

impl ActivityIndex {
    /// Reads every event once, ranks in parallel. `done` counts the events that this process has read.
    /// If several processes have opened the run, each reads those of its own ranks, and the first
    /// gets the index; on others it is empty.
    pub fn new(run: &Run, timeline: &GlobalTimeline, done: &AtomicU64) -> Self {
        let analysis = Analysis::divided(run, timeline);
        let of_rank = |position: usize| of_rank(analysis.rank(position), done);
        let ranks: Vec<_> = analysis.own_ranks().into_par_iter().map(of_rank).collect();
        let table = |places: Vec<Checkpoint>| places.iter().flat_map(Checkpoint::bytes).collect();
        let rows = ranks.into_iter().flatten().map(|(facts, places)| (facts, table(places)));
        let rows: Vec<(RowFacts, Vec<u8>)> = rows.collect();
        let mut index = Self::default();
        for (mut facts, table) in run.processes.join_at_first(rows) {
            let first = index.table.len() / CHECKPOINT_BYTES;
            facts.places = (first, first + table.len() / CHECKPOINT_BYTES);
            index.table.extend(table);
            index.rows.push(facts);
        }
        index
    }

    /// The table of checkpoints as bytes; it is stored beside [`ActivityIndex::rows`].
    pub fn table(&self) -> &[u8] {
        &self.table
    }

    /// Restores an index from its rows and table; `None` if they do not fit.
    pub fn from_parts(rows: Vec<RowFacts>, table: Vec<u8>) -> Option<Self> {
        let places = table.len() / CHECKPOINT_BYTES;
        let fits = |row: &RowFacts| row.places.0 <= row.places.1 && row.places.1 <= places;
        (table.len().is_multiple_of(CHECKPOINT_BYTES) && rows.iter().all(fits))
            .then_some(Self { rows, table })
    }

    fn checkpoint(&self, index: usize) -> Checkpoint {
        Checkpoint::read(self.table.get(index * CHECKPOINT_BYTES..).unwrap_or_default())
    }

    fn at_ticks(&self, index: usize) -> u64 {
        let at = index * CHECKPOINT_BYTES;
        let bytes = self.table.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    }

    /// The last checkpoint of a row that is not after a moment.
    fn checkpoint_before(&self, row: &RowFacts, ticks: u64) -> Option<usize> {
        let (mut low, mut high) = row.places;
        while low < high {
            let middle = low + (high - low) / 2;
            if self.at_ticks(middle) <= ticks { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1).filter(|index| *index >= row.places.0)
    }

    /// The longest calls of the run that wait for others, longest first.
    pub fn longest(&self, run: &Run, timeline: &GlobalTimeline) -> Vec<LongCall> {
        let mut all: Vec<LongCall> = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let kinds = FunctionKinds::new(&run.ranks[row.position].file);
            let clock = &timeline.ranks[row.position].clock;
            all.extend(row.longest.iter().map(|call| LongCall {
                row: number,
                kind: kinds.kind(call.function),
                function: call.function,
                begin_s: clock.seconds(call.begin_ticks),
                duration_s: clock.duration_s(call.ticks),
            }));
        }
        keep_longest(&mut all);
        all
    }

    /// Seconds by kind over a row.
    pub fn totals_s(&self, row: usize, timeline: &GlobalTimeline) -> [f64; KINDS] {
        let row = &self.rows[row];
        let clock = &timeline.ranks[row.position].clock;
        row.ticks.map(|ticks| clock.duration_s(ticks))
    }
}

fn of_rank(rank: RankView<'_>, done: &AtomicU64) -> Vec<(RowFacts, Vec<Checkpoint>)> {
    let RankView { position, trace, time } = rank;
    let functions = Functions::new(trace);
    let kinds = FunctionKinds::new(&trace.file);
    let mut rows = Vec::new();
    if rank.thread(0).is_none() {
        // The first thread has no events: its whole stretch is the program's own code.
        let mut facts = RowFacts::new(position, 0, (time.begin_ticks, time.end_ticks));
        facts.ticks[Kind::Own as usize] = time.end_ticks - time.begin_ticks;
        rows.push((facts, Vec::new()));
    }
    for thread in rank.threads() {
        if let Some(known) = stretch(thread.extent, time) {
            let mut facts = RowFacts::new(position, thread.thread.number, known);
            let places = facts.read(&thread, (&functions, &kinds), done);
            rows.push((facts, places));
        }
    }
    rows.sort_by_key(|(facts, _)| facts.thread);
    rows
}

impl RowFacts {
    fn new(position: usize, thread: u32, (begin_ticks, end_ticks): (u64, u64)) -> Self {
        Self {
            position,
            thread,
            begin_ticks,
            end_ticks,
            calls: 0,
            ticks: [0; KINDS],
            longest: Vec::new(),
            regions: Vec::new(),
            regions_left_out: 0,
            places: (0, 0),
        }
    }

    fn read(
        &mut self,
        thread: &ThreadView<'_>,
        (functions, kinds): (&Functions, &FunctionKinds),
        done: &AtomicU64,
    ) -> Vec<Checkpoint> {
        let mut spans = thread.spans(None);
        let mut segmenter = Segmenter::new(self.begin_ticks, self.end_ticks, functions);
        let mut ticks = [0u64; KINDS];
        let totals_shares = shares_of_totals(thread.thread, &thread.rank.trace.file);
        let mut poll_kind = Kind::Wait;
        let mut places = Vec::new();
        let (mut events, mut placed) = (0u64, None);
        let mut open: Vec<(u32, u64)> = Vec::new();
        loop {
            let before = events;
            spans.for_each_span(&mut |span: Span| {
                let mut kind = Kind::Tool;
                match span.kind {
                    SpanKind::Call(function) | SpanKind::Polls { function, .. } => {
                        kind = kinds.kind(function);
                        self.calls += 1;
                        if matches!(span.kind, SpanKind::Call(_)) {
                            self.keep_long(kind, function, span.begin_ticks, span.end_ticks);
                        }
                    }
                    SpanKind::RegionBegin(id) => open.push((id, span.begin_ticks)),
                    SpanKind::RegionEnd(id) => {
                        if let Some(at) = open.iter().rposition(|(other, _)| *other == id) {
                            let (id, begin_ticks) = open.remove(at);
                            let end_ticks = span.begin_ticks;
                            self.keep_region(RegionTicks { id, begin_ticks, end_ticks });
                        }
                    }
                    _ => {}
                }
                segmenter.push(&span, |segment| {
                    let before = segment.begin_ticks < span.begin_ticks;
                    if !before && matches!(span.kind, SpanKind::Summed { .. }) {
                        let sums = ticks_of_sum(&segment, &totals_shares);
                        ticks.iter_mut().zip(sums).for_each(|(ticks, sum)| *ticks += sum);
                        return;
                    }
                    let of_mpi = if before { poll_kind } else { kind };
                    ticks[kind_of(&segment, of_mpi) as usize] +=
                        segment.end_ticks - segment.begin_ticks;
                });
                if matches!(span.kind, SpanKind::Polls { .. }) {
                    poll_kind = kind;
                }
                events += 1;
                !events.is_multiple_of(GRANULE)
            });
            done.fetch_add(events - before, Ordering::Relaxed);
            if events == before {
                break;
            }
            let at_granule = events.is_multiple_of(GRANULE);
            if let Some(position) = spans.position().filter(|_| at_granule) {
                let (at_ticks, polls) = segmenter.state();
                let polls = polls & ((1 << POLLS_BITS) - 1) | (poll_kind as u64) << POLLS_BITS;
                // Checkpoints before the start of the row would all be equal.
                if placed.replace(at_ticks) != Some(at_ticks) {
                    places.push(Checkpoint { at_ticks, polls, position, ticks });
                }
            }
        }
        segmenter.finish(|segment| {
            ticks[kind_of(&segment, poll_kind) as usize] += segment.end_ticks - segment.begin_ticks;
        });
        for (id, begin_ticks) in open {
            self.keep_region(RegionTicks { id, begin_ticks, end_ticks: self.end_ticks });
        }
        self.longest.sort_by_key(|call| std::cmp::Reverse(call.ticks));
        self.longest.truncate(LONGEST);
        self.trim_regions(REGIONS);
        self.ticks = ticks;
        places
    }

    fn keep_long(&mut self, kind: Kind, function: u16, begin_ticks: u64, end_ticks: u64) {
        let ticks = end_ticks - begin_ticks;
        let waits = matches!(kind, Kind::Send | Kind::Receive | Kind::Wait | Kind::Collective);
        let full = self.longest.len() >= LONGEST;
        if !waits || ticks == 0 || full && self.longest[LONGEST - 1].ticks >= ticks {
            return;
        }
        let at = self.longest.partition_point(|call| call.ticks >= ticks);
        self.longest.insert(at, CallTicks { function, begin_ticks, ticks });
        self.longest.truncate(LONGEST);
    }

    fn keep_region(&mut self, region: RegionTicks) {
        self.regions.push(region);
        if self.regions.len() >= 8 * REGIONS {
            self.trim_regions(REGIONS);
        }
    }

    fn trim_regions(&mut self, limit: usize) {
        let length = |region: &RegionTicks| region.end_ticks.saturating_sub(region.begin_ticks);
        self.regions.sort_by_key(|region| std::cmp::Reverse(length(region)));
        self.regions_left_out += self.regions.len().saturating_sub(limit) as u64;
        self.regions.truncate(limit);
    }
}

/// Ticks by kind of a segment of which only the sum is known; MPI time is divided by the shares of
/// the totals.
fn ticks_of_sum(segment: &Segment, of_mpi: &[f64; KINDS]) -> [u64; KINDS] {
    let mut ticks = [0; KINDS];
    let all = segment.end_ticks - segment.begin_ticks;
    if segment.activity != SegmentActivity::Mpi {
        ticks[kind_of(segment, Kind::OtherMpi) as usize] = all;
        return ticks;
    }
    let largest = (0..KINDS).max_by(|a, b| of_mpi[*a].total_cmp(&of_mpi[*b])).unwrap_or(0);
    for (ticks, share) in ticks.iter_mut().zip(of_mpi) {
        *ticks = (all as f64 * share) as u64;
    }
    // The rest from rounding goes to the largest kind.
    ticks[largest] += all.saturating_sub(ticks.iter().sum());
    ticks
}

/// Reads a row again from a checkpoint, and gives the time by kind up to ascending moments.
struct Walker<'a> {
    spans: Option<Spans<'a>>,
    segmenter: Segmenter,
    kinds: &'a FunctionKinds,
    poll_kind: Kind,
    /// Share of each kind in the MPI time of the thread's totals.
    totals_shares: [f64; KINDS],
    /// Segments that reach beyond the last moment, so that they are not fully counted yet.
    ahead: std::collections::VecDeque<(Segment, Kind)>,
    /// Sums that are spread evenly over the stretch in which they lie.
    sums: Vec<Sum>,
    ticks: [u64; KINDS],
    finished: bool,
}

/// Ticks by kind that lie somewhere in a stretch.
struct Sum {
    over: (u64, u64),
    ticks: [u64; KINDS],
}

impl Sum {
    /// Ticks by kind up to a moment.
    fn up_to(&self, moment: u64) -> [u64; KINDS] {
        let (begin, end) = self.over;
        let elapsed = moment.clamp(begin, end) - begin;
        self.ticks.map(|ticks| {
            (u128::from(ticks) * u128::from(elapsed) / u128::from((end - begin).max(1))) as u64
        })
    }
}

impl Walker<'_> {
    /// Ticks by kind from the row's start to a moment, which is not before the last one.
    fn up_to(&mut self, moment: u64) -> [u64; KINDS] {
        self.count_segments(moment);
        let mut ticks = self.ticks;
        for sum in &self.sums {
            ticks.iter_mut().zip(sum.up_to(moment)).for_each(|(ticks, sum)| *ticks += sum);
        }
        ticks
    }

    fn count_segments(&mut self, moment: u64) {
        loop {
            while let Some((segment, kind)) = self.ahead.front_mut() {
                let end = segment.end_ticks.min(moment);
                if end > segment.begin_ticks {
                    self.ticks[*kind as usize] += end - segment.begin_ticks;
                    segment.begin_ticks = end;
                }
                if segment.begin_ticks < segment.end_ticks {
                    return;
                }
                self.ahead.pop_front();
            }
            // All sums of a stretch must be read before any of them is used.
            let read_to = self.sums.last().map_or(0, |sum| sum.over.1);
            let wanted = if read_to > moment { read_to } else { moment };
            if self.finished || self.segmenter.state().0 >= wanted {
                return;
            }
            self.read_next();
        }
    }

    fn read_next(&mut self) {
        let (ahead, poll_kind) = (&mut self.ahead, self.poll_kind);
        let (sums, totals_shares) = (&mut self.sums, &self.totals_shares);
        match self.spans.as_mut().and_then(Iterator::next) {
            Some(span) => {
                let kind = match span.kind {
                    SpanKind::Call(function) | SpanKind::Polls { function, .. } => {
                        self.kinds.kind(function)
                    }
                    _ => Kind::Tool,
                };
                self.segmenter.push(&span, |segment| {
                    let before = segment.begin_ticks < span.begin_ticks;
                    if let SpanKind::Summed { over, .. } = span.kind
                        && !before
                    {
                        return sums
                            .push(Sum { over, ticks: ticks_of_sum(&segment, totals_shares) });
                    }
                    let of_mpi = if before { poll_kind } else { kind };
                    ahead.push_back((segment, kind_of(&segment, of_mpi)));
                });
                if matches!(span.kind, SpanKind::Polls { .. }) {
                    self.poll_kind = kind;
                }
            }
            None => {
                self.finished = true;
                self.segmenter.finish(|segment| {
                    ahead.push_back((segment, kind_of(&segment, poll_kind)));
                });
            }
        }
    }
}

/// Reads a run through its index.
#[derive(Debug, Clone, Copy)]
pub struct IndexReader<'a> {
    pub run: &'a Run,
    pub timeline: &'a GlobalTimeline,
    pub index: &'a ActivityIndex,
}

impl<'a> IndexReader<'a> {
    /// The thread of a row; `None` if it has no events.
    fn thread(&self, row: &RowFacts) -> Option<ThreadView<'a>> {
        Analysis::new(self.run, self.timeline).rank(row.position).thread(row.thread)
    }

    /// The share of each kind in equal bins between two moments (global seconds), relative to a
    /// bin's length; 0 where the row was not recorded.
    ///
    /// The shares are exact to a tick, unless a bin is longer than four granules of the row. Then
    /// no events are read, and time is assumed to be even within the granules at the bin's edges.
    /// The sum over the bins is exact in any case.
    pub fn shares(&self, row: usize, from_s: f64, to_s: f64, bins: usize) -> Vec<[f32; KINDS]> {
        let facts = &self.index.rows[row];
        let clock = &self.timeline.ranks[facts.position].clock;
        let bin_s = (to_s - from_s) / bins.max(1) as f64;
        let functions = Functions::new(&self.run.ranks[facts.position]);
        let kinds = FunctionKinds::new(&self.run.ranks[facts.position].file);
        let mut walk: Option<(usize, Walker)> = None;
        let mut before: Option<(u64, [u64; KINDS])> = None;
        let mut out = Vec::with_capacity(bins);
        for edge in 0..=bins {
            let at = clock.ticks_at(from_s + bin_s * edge as f64);
            let moment = at.clamp(facts.begin_ticks, facts.end_ticks);
            let checkpoint = self.index.checkpoint_before(facts, moment);
            let ticks = match checkpoint {
                Some(checkpoint)
                    if self.is_short(facts, checkpoint, clock.duration_s(1), bin_s) =>
                {
                    self.between(checkpoint, moment)
                }
                _ => {
                    let key = checkpoint.unwrap_or(usize::MAX);
                    let (of, walker) =
                        walk.take().filter(|(of, _)| *of == key).unwrap_or_else(|| {
                            (key, self.walker(facts, checkpoint, (&functions, &kinds)))
                        });
                    let (_, walker) = walk.insert((of, walker));
                    walker.up_to(moment)
                }
            };
            if let Some((from, before)) = before.replace((at, ticks)) {
                // Bins may be only a few ticks long, so divide by whole ticks.
                let length = at.saturating_sub(from).max(1) as f64;
                out.push(std::array::from_fn(|kind| {
                    (ticks[kind].saturating_sub(before[kind]) as f64 / length) as f32
                }));
            }
        }
        out
    }

    /// Whether the granule at a checkpoint is much shorter than a bin.
    fn is_short(&self, row: &RowFacts, checkpoint: usize, tick_s: f64, bin_s: f64) -> bool {
        let next = match checkpoint + 1 < row.places.1 {
            true => self.index.at_ticks(checkpoint + 1),
            false => return false,
        };
        let ticks = next.saturating_sub(self.index.at_ticks(checkpoint));
        ticks as f64 * tick_s * EVEN_FROM < bin_s
    }

    /// Ticks by kind up to a moment between a checkpoint and the next one, interpolated.
    fn between(&self, checkpoint: usize, moment: u64) -> [u64; KINDS] {
        let (a, b) = (self.index.checkpoint(checkpoint), self.index.checkpoint(checkpoint + 1));
        let length = b.at_ticks.saturating_sub(a.at_ticks).max(1) as f64;
        let part = (moment.saturating_sub(a.at_ticks) as f64 / length).clamp(0.0, 1.0);
        std::array::from_fn(|kind| {
            let inside = b.ticks[kind].saturating_sub(a.ticks[kind]);
            a.ticks[kind] + (inside as f64 * part) as u64
        })
    }

    fn walker<'w>(
        &self,
        row: &RowFacts,
        checkpoint: Option<usize>,
        (functions, kinds): (&'w Functions, &'w FunctionKinds),
    ) -> Walker<'w>
    where
        'a: 'w,
    {
        let thread = self.thread(row);
        let checkpoint = checkpoint.map(|checkpoint| self.index.checkpoint(checkpoint));
        let totals_shares = thread
            .map_or([0.0; KINDS], |view| shares_of_totals(view.thread, &view.rank.trace.file));
        let spans = thread.map(|view| view.spans(checkpoint.map(|checkpoint| checkpoint.position)));
        let checkpoint =
            checkpoint.unwrap_or(Checkpoint { at_ticks: row.begin_ticks, ..Checkpoint::default() });
        let polls = checkpoint.polls & ((1 << POLLS_BITS) - 1);
        let poll_kind = Kind::ALL.get((checkpoint.polls >> POLLS_BITS) as usize).copied();
        Walker {
            spans,
            segmenter: Segmenter::resume((checkpoint.at_ticks, polls), row.end_ticks, functions),
            kinds,
            poll_kind: poll_kind.unwrap_or(Kind::Wait),
            totals_shares,
            sums: Vec::new(),
            ahead: std::collections::VecDeque::new(),
            ticks: checkpoint.ticks,
            finished: false,
        }
    }

    /// The single calls of a row that touch a stretch (global seconds), in order of their start;
    /// `None` if there are more than `limit`.
    pub fn events(
        &self,
        row: usize,
        from_s: f64,
        to_s: f64,
        limit: usize,
    ) -> Option<Vec<DetailEvent>> {
        let facts = &self.index.rows[row];
        let Some(thread) = self.thread(facts) else { return Some(Vec::new()) };
        let time = thread.rank.time;
        let from = time.clock.ticks_at(from_s).max(facts.begin_ticks.saturating_sub(1));
        let checkpoint = self.index.checkpoint_before(facts, from);
        // If the checkpoints show that there are far too many, do not read them to find out.
        let to = self.index.checkpoint_before(facts, time.clock.ticks_at(to_s));
        if let (Some(a), Some(b)) = (checkpoint, to)
            && (b - a) as u64 > 2 + limit as u64 / GRANULE
        {
            return None;
        }
        let events =
            thread.events(checkpoint.map(|checkpoint| self.index.checkpoint(checkpoint).position));
        let last_open = thread.extent.last_call.as_ref().filter(|call| call.open);
        let row_end_s = time.clock.seconds(facts.end_ticks);
        let mut found = Vec::new();
        for event in events {
            let begin_s = time.clock.seconds(event.begin);
            if begin_s > to_s {
                break;
            }
            let is_last = last_open.is_some_and(|call| call.begin_ticks == event.begin);
            let end_s = match event.end {
                Some(end) => time.clock.seconds(end),
                None if is_last => row_end_s.max(begin_s),
                None => begin_s,
            };
            let shown = matches!(event.kind(), EventKind::Call(_) | EventKind::Tool);
            if !shown || end_s < from_s {
                continue;
            }
            if found.len() == limit {
                return None;
            }
            let inside_s = match event.polls {
                Some((_, ticks)) => time.clock.duration_s(ticks).min(end_s - begin_s),
                None => end_s - begin_s,
            };
            found.push(DetailEvent { row, begin_s, end_s, inside_s, event });
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests;
