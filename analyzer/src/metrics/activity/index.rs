//! Any stretch of any row at once: every event is read once, and what stood where is kept for every
//! [`GRANULE`] events; then the time by kind between two moments follows from two places of the table and
//! the few events around them, however long the trace is.
//!
//! In: a [`Run`] and its [`GlobalTimeline`]. Out: [`ActivityIndex`], some 0.12 bytes an event, which can
//! be kept as bytes and comes back from them.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use trace_format::reader::{EventKind, Position};

use crate::timeline::GlobalTimeline;
use crate::trace::Run;

use super::kind::{FunctionKinds, KINDS, Kind, shares_of_totals};
use super::{LONGEST, LongCall, SegmentActivity, kind_of, stretch};
use crate::analysis::segments::{Functions, Segment, Segmenter};
use crate::analysis::spans::{Span, SpanKind, Spans};
use crate::analysis::{Analysis, RankView, ThreadView};

/// Events between two places of the table.
pub const GRANULE: u64 = 1024;
/// Granules to a bin from which on time is even inside a granule.
const EVEN_FROM: f64 = 4.0;
/// Occurrences of regions that are kept of a row: the longest.
const REGIONS: usize = 200;
/// Bytes of a place: see [`Place`].
const PLACE_BYTES: usize = 8 * (3 + KINDS);

/// What is known where an event begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Place {
    /// Up to where time has been told by kind.
    at_ticks: u64,
    /// Ticks inside polls that are not told yet; their kind in the highest byte.
    polls: u64,
    /// The event.
    position: Position,
    /// Ticks by kind from the row's begin to `at_ticks`.
    ticks: [u64; KINDS],
}

const POLLS_BITS: u32 = 56;

impl Place {
    fn bytes(&self) -> [u8; PLACE_BYTES] {
        let position = u64::from(self.position.chunk) << 32 | u64::from(self.position.at);
        let words = [self.at_ticks, self.polls, position].into_iter().chain(self.ticks);
        let mut bytes = [0; PLACE_BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
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
    /// Counter at the begin.
    pub begin_ticks: u64,
    /// Counter at the end.
    pub end_ticks: u64,
}

/// A call on a rank's own counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTicks {
    /// Number of its function.
    pub function: u16,
    /// Counter at the begin.
    pub begin_ticks: u64,
    /// Its length.
    pub ticks: u64,
}

/// What is known of a row; the table apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowFacts {
    /// Position of the rank in [`Run::ranks`].
    pub position: usize,
    /// Thread as the file numbers it.
    pub thread: u32,
    /// Counter from which on it is known.
    pub begin_ticks: u64,
    /// Counter up to which it is known.
    pub end_ticks: u64,
    /// Calls, a run of polls as one.
    pub calls: u64,
    /// Ticks by kind over the row.
    ticks: [u64; KINDS],
    /// The longest calls that wait for others.
    longest: Vec<CallTicks>,
    /// The longest occurrences of regions.
    pub regions: Vec<RegionTicks>,
    /// Occurrences of regions that are left out.
    pub regions_left_out: u64,
    /// Places in the table: from, to.
    places: (usize, usize),
}

/// The table of all rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActivityIndex {
    /// Ascending by rank, then thread.
    pub rows: Vec<RowFacts>,
    places: Vec<u8>,
}

impl ActivityIndex {
    /// Reads every event once; ranks in parallel. `done` counts the events.
    pub fn new(run: &Run, timeline: &GlobalTimeline, done: &AtomicU64) -> Self {
        let analysis = Analysis::of(run, timeline);
        let of_rank = |position: usize| of_rank(analysis.rank(position), done);
        let ranks: Vec<_> = (0..run.ranks.len()).into_par_iter().map(of_rank).collect();
        let mut index = Self::default();
        for (mut facts, places) in ranks.into_iter().flatten() {
            let first = index.places.len() / PLACE_BYTES;
            facts.places = (first, first + places.len());
            index.places.extend(places.iter().flat_map(Place::bytes));
            index.rows.push(facts);
        }
        index
    }

    /// The table as bytes; [`ActivityIndex::rows`] are kept beside it.
    pub fn table(&self) -> &[u8] {
        &self.places
    }

    /// From its rows and table.
    pub fn from_parts(rows: Vec<RowFacts>, table: Vec<u8>) -> Option<Self> {
        let places = table.len() / PLACE_BYTES;
        let fits = |row: &RowFacts| row.places.0 <= row.places.1 && row.places.1 <= places;
        (table.len().is_multiple_of(PLACE_BYTES) && rows.iter().all(fits))
            .then_some(Self { rows, places: table })
    }

    fn place(&self, index: usize) -> Place {
        Place::read(self.places.get(index * PLACE_BYTES..).unwrap_or_default())
    }

    fn at_ticks(&self, index: usize) -> u64 {
        let at = index * PLACE_BYTES;
        let bytes = self.places.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    }

    /// The last place of a row that is not behind a moment.
    fn place_before(&self, row: &RowFacts, ticks: u64) -> Option<usize> {
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
                kind: kinds.of(call.function),
                function: call.function,
                begin_s: clock.seconds(call.begin_ticks),
                duration_s: clock.duration_s(call.ticks),
            }));
        }
        super::keep_longest(&mut all);
        all
    }

    /// Seconds by kind over a row.
    pub fn totals_s(&self, row: usize, timeline: &GlobalTimeline) -> [f64; KINDS] {
        let row = &self.rows[row];
        let clock = &timeline.ranks[row.position].clock;
        row.ticks.map(|ticks| clock.duration_s(ticks))
    }
}

fn of_rank(rank: RankView<'_>, done: &AtomicU64) -> Vec<(RowFacts, Vec<Place>)> {
    let RankView { position, trace, time } = rank;
    let functions = Functions::new(trace);
    let kinds = FunctionKinds::new(&trace.file);
    let mut rows = Vec::new();
    if rank.thread(0).is_none() {
        // No event of the first thread: its whole stretch is the program's own.
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
    ) -> Vec<Place> {
        let mut spans = thread.spans(None);
        let mut segmenter = Segmenter::new(self.begin_ticks, self.end_ticks, functions);
        let mut ticks = [0u64; KINDS];
        let of_totals = shares_of_totals(thread.thread, &thread.rank.trace.file);
        let mut poll_kind = Kind::Wait;
        let mut places = Vec::new();
        let (mut events, mut placed) = (0u64, None);
        let mut open: Vec<(u32, u64)> = Vec::new();
        loop {
            let before = events;
            spans.hand_on(&mut |span: Span| {
                let mut kind = Kind::Tool;
                match span.kind {
                    SpanKind::Call(function) | SpanKind::Polls { function, .. } => {
                        kind = kinds.of(function);
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
                        let sums = ticks_of_sum(&segment, &of_totals);
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
                // Before the row begins there is nothing to tell apart.
                if placed.replace(at_ticks) != Some(at_ticks) {
                    places.push(Place { at_ticks, polls, position, ticks });
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
        self.shorten_regions(REGIONS);
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
            self.shorten_regions(REGIONS);
        }
    }

    fn shorten_regions(&mut self, most: usize) {
        let length = |region: &RegionTicks| region.end_ticks.saturating_sub(region.begin_ticks);
        self.regions.sort_by_key(|region| std::cmp::Reverse(length(region)));
        self.regions_left_out += self.regions.len().saturating_sub(most) as u64;
        self.regions.truncate(most);
    }
}

/// Ticks of a piece of which only the sum is known, by kind: of one in MPI by the shares of the totals.
fn ticks_of_sum(segment: &Segment, of_mpi: &[f64; KINDS]) -> [u64; KINDS] {
    let mut ticks = [0; KINDS];
    let all = segment.end_ticks - segment.begin_ticks;
    if segment.activity != SegmentActivity::Mpi {
        ticks[kind_of(segment, Kind::OtherMpi) as usize] = all;
        return ticks;
    }
    let most = (0..KINDS).max_by(|a, b| of_mpi[*a].total_cmp(&of_mpi[*b])).unwrap_or(0);
    for (ticks, share) in ticks.iter_mut().zip(of_mpi) {
        *ticks = (all as f64 * share) as u64;
    }
    // What rounding leaves goes where most is.
    ticks[most] += all.saturating_sub(ticks.iter().sum());
    ticks
}

/// Reads a row again from a place of the table on, and tells the time by kind up to moments that ascend.
struct Walker<'a> {
    spans: Option<Spans<'a>>,
    segmenter: Segmenter,
    kinds: &'a FunctionKinds,
    poll_kind: Kind,
    /// Shares of kinds in the time in MPI that totals stand for.
    of_totals: [f64; KINDS],
    /// Segments that are not told yet; they reach beyond the last moment.
    ahead: std::collections::VecDeque<(Segment, Kind)>,
    /// Sums that are told evenly over the time in which they lie.
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
        let told = moment.clamp(begin, end) - begin;
        self.ticks.map(|ticks| {
            (u128::from(ticks) * u128::from(told) / u128::from((end - begin).max(1))) as u64
        })
    }
}

impl Walker<'_> {
    /// Ticks by kind from the row's begin to a moment, which is not before the last one.
    fn up_to(&mut self, moment: u64) -> [u64; KINDS] {
        self.tell_segments(moment);
        let mut ticks = self.ticks;
        for sum in &self.sums {
            ticks.iter_mut().zip(sum.up_to(moment)).for_each(|(ticks, sum)| *ticks += sum);
        }
        ticks
    }

    fn tell_segments(&mut self, moment: u64) {
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
            // Sums of one stretch are read all at once.
            let read_to = self.sums.last().map_or(0, |sum| sum.over.1);
            let wanted = if read_to > moment { read_to } else { moment };
            if self.finished || self.segmenter.state().0 >= wanted {
                return;
            }
            self.read_on();
        }
    }

    fn read_on(&mut self) {
        let (ahead, poll_kind) = (&mut self.ahead, self.poll_kind);
        let (sums, of_totals) = (&mut self.sums, &self.of_totals);
        match self.spans.as_mut().and_then(Iterator::next) {
            Some(span) => {
                let kind = match span.kind {
                    SpanKind::Call(function) | SpanKind::Polls { function, .. } => {
                        self.kinds.of(function)
                    }
                    _ => Kind::Tool,
                };
                self.segmenter.push(&span, |segment| {
                    let before = segment.begin_ticks < span.begin_ticks;
                    if let SpanKind::Summed { over, .. } = span.kind
                        && !before
                    {
                        return sums.push(Sum { over, ticks: ticks_of_sum(&segment, of_totals) });
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

/// Looks into a run through its index.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its timeline.
    pub timeline: &'a GlobalTimeline,
    /// Its index.
    pub index: &'a ActivityIndex,
}

impl<'a> Look<'a> {
    /// The thread of a row; `None` where it has no events.
    fn thread(&self, row: &RowFacts) -> Option<ThreadView<'a>> {
        Analysis::of(self.run, self.timeline).rank(row.position).thread(row.thread)
    }

    /// Shares of each kind in equal bins between two moments (global seconds): of each bin's length, 0 where
    /// the row is not known.
    ///
    /// Exact to a tick, but where a bin is longer than four granules of the row: there the few
    /// events around its edges are taken to lie evenly over their granule, and none is read. The sum over
    /// bins is exact in any case.
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
            let place = self.index.place_before(facts, moment);
            let ticks = match place {
                Some(place) if self.is_short(facts, place, clock.duration_s(1), bin_s) => {
                    self.between(facts, place, moment)
                }
                _ => {
                    let key = place.unwrap_or(usize::MAX);
                    let (of, walker) = walk
                        .take()
                        .filter(|(of, _)| *of == key)
                        .unwrap_or_else(|| (key, self.walker(facts, place, (&functions, &kinds))));
                    let (_, walker) = walk.insert((of, walker));
                    walker.up_to(moment)
                }
            };
            if let Some((from, before)) = before.replace((at, ticks)) {
                // Bins may be a few ticks long: what counts is how many.
                let length = at.saturating_sub(from).max(1) as f64;
                out.push(std::array::from_fn(|kind| {
                    (ticks[kind].saturating_sub(before[kind]) as f64 / length) as f32
                }));
            }
        }
        out
    }

    /// Whether the granule at a place is much shorter than a bin.
    fn is_short(&self, row: &RowFacts, place: usize, tick_s: f64, bin_s: f64) -> bool {
        let next = match place + 1 < row.places.1 {
            true => self.index.at_ticks(place + 1),
            false => return false,
        };
        let ticks = next.saturating_sub(self.index.at_ticks(place));
        ticks as f64 * tick_s * EVEN_FROM < bin_s
    }

    /// Ticks by kind up to a moment between a place and the next one, by proportion.
    fn between(&self, _row: &RowFacts, place: usize, moment: u64) -> [u64; KINDS] {
        let (a, b) = (self.index.place(place), self.index.place(place + 1));
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
        place: Option<usize>,
        (functions, kinds): (&'w Functions, &'w FunctionKinds),
    ) -> Walker<'w>
    where
        'a: 'w,
    {
        let thread = self.thread(row);
        let place = place.map(|place| self.index.place(place));
        let of_totals = thread
            .map_or([0.0; KINDS], |view| shares_of_totals(view.thread, &view.rank.trace.file));
        let spans = thread.map(|view| view.spans(place.map(|place| place.position)));
        let place = place.unwrap_or(Place { at_ticks: row.begin_ticks, ..Place::default() });
        let polls = place.polls & ((1 << POLLS_BITS) - 1);
        let poll_kind = Kind::ALL.get((place.polls >> POLLS_BITS) as usize).copied();
        Walker {
            spans,
            segmenter: Segmenter::resume((place.at_ticks, polls), row.end_ticks, functions),
            kinds,
            poll_kind: poll_kind.unwrap_or(Kind::Wait),
            of_totals,
            sums: Vec::new(),
            ahead: std::collections::VecDeque::new(),
            ticks: place.ticks,
            finished: false,
        }
    }

    /// The single calls of a row that touch a stretch (global seconds), in order of their begin; `None` when
    /// there are more than `most`.
    pub fn events(
        &self,
        row: usize,
        from_s: f64,
        to_s: f64,
        most: usize,
    ) -> Option<Vec<super::detail::DetailEvent>> {
        let facts = &self.index.rows[row];
        let Some(thread) = self.thread(facts) else { return Some(Vec::new()) };
        let time = thread.rank.time;
        let from = time.clock.ticks_at(from_s).max(facts.begin_ticks.saturating_sub(1));
        let place = self.index.place_before(facts, from);
        // Far too many are not read one by one to find that out.
        let to = self.index.place_before(facts, time.clock.ticks_at(to_s));
        if let (Some(a), Some(b)) = (place, to)
            && (b - a) as u64 > 2 + most as u64 / GRANULE
        {
            return None;
        }
        let events = thread.events(place.map(|place| self.index.place(place).position));
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
            if found.len() == most {
                return None;
            }
            let inside_s = match event.polls {
                Some((_, ticks)) => time.clock.duration_s(ticks).min(end_s - begin_s),
                None => end_s - begin_s,
            };
            found.push(super::detail::DetailEvent { row, begin_s, end_s, inside_s, event });
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests;
