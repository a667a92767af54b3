//! Sums what happened inside the regions that the program marked: elapsed time, time in MPI and
//! waiting. Also finds the region of each wait.
//!
//! A rank is in a region while any of its threads is, and does there what its threads do together.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::analysis::segments::Functions;
use crate::analysis::spans::{Activity, Span, SpanKind};
use crate::analysis::union::{Clipper, merge_overlapping};
use crate::analysis::{CallObserver, RankObserver, RankView, ThreadView};
use crate::trace::Run;

use super::contexts::LocalContexts;
use super::integer_timeline::IntegerTimeline;
use super::lines::{Lines, has_several_threads};
use super::sampled_parts::{SampleCounter, StackCounts};
use super::together::{Axis, Does, for_each_stretch};
use super::tree::Tree;
use super::waits::Waits;

/// Most occurrences of a region per rank whose begins and ends are kept.
const MAX_OCCURRENCES: usize = 100_000;

#[derive(Debug, Clone, Default)]
pub struct Region {
    pub name: String,
    /// Number of occurrences, over all threads.
    pub count: u64,
    /// Its length: the sum over its occurrences of the time from the earliest begin to the latest
    /// end on any rank. If ranks enter it unequally often, from the first begin to the last end.
    pub ticks: i64,
    /// Ticks in it, over all ranks.
    pub inside: i64,
    /// Of these, ticks in MPI and the recorder.
    pub in_mpi: i64,
    /// Ticks of waiting inside, over all ranks.
    pub waiting: i64,
    /// Position of each rank that was in it, and its ticks outside MPI.
    pub computing: Vec<(usize, i64)>,
    /// The same with what was sampled on the rank meanwhile.
    pub samples: Vec<(usize, StackCounts)>,
}

impl Region {
    /// Its efficiency over the ranks that were in it, without T₀, which is known only for whole
    /// runs.
    pub fn tree(&self, run: &crate::trace::Run) -> Option<Tree> {
        let ranks = self
            .computing
            .iter()
            .map(|(position, ticks)| (run.ranks[*position].file.header.host.as_str(), *ticks));
        Tree::new(&ranks.collect::<Vec<_>>(), self.ticks, None)
    }
}

/// The regions of a run, and the innermost region of each wait.
#[derive(Debug, Default)]
pub struct Regions {
    /// Longest first.
    pub all: Vec<Region>,
    /// For each wait the index of its region in `all`, if it lies in one; empty if none does.
    of_waits: Vec<Option<u32>>,
}

/// What a rank did in a region.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Inside {
    count: u64,
    ticks: i64,
    in_mpi: i64,
    waiting: i64,
    /// Begin and end of each outermost occurrence, of the first so many.
    occurrences: Vec<(i64, i64)>,
    /// What was sampled in all of them.
    samples: StackCounts,
    /// Number of these, and begin of the first and end of the last.
    outermost: usize,
    over: Option<(i64, i64)>,
    /// Nesting depth, and the line's totals when it was opened.
    depth: u64,
    opened: LineTotals,
}

impl Inside {
    fn add(&mut self, (begin, end): (i64, i64)) {
        let (first, last) = self.over.unwrap_or((begin, end));
        self.over = Some((first.min(begin), last.max(end)));
        self.outermost += 1;
        if self.outermost <= MAX_OCCURRENCES {
            self.occurrences.push((begin, end));
        }
    }
}

/// What a line has done up to a moment.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct LineTotals {
    at: i64,
    in_mpi: i64,
    waiting: i64,
}

/// What was found on the rank at a position.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RegionOccurrences {
    position: usize,
    inside: BTreeMap<u32, Inside>,
    /// Waits that lie in a region.
    of_waits: Vec<(u32, u32)>,
}

/// Observes the regions of all lines.
pub(super) struct RegionObserver<'c> {
    pub clock: &'c IntegerTimeline<'c>,
    pub lines: &'c Lines,
    /// Those of the lines that are read here, at least.
    pub waits: &'c Waits,
}

pub(super) struct RegionsOfRank<'a, 'c> {
    rank: RankView<'a>,
    clock: &'c IntegerTimeline<'c>,
    lines: &'c Lines,
    waits: &'c Waits,
    /// Begin and end of the rank.
    stretch: (i64, i64),
    functions: Functions,
    samples: SampleCounter<'a>,
    inside: BTreeMap<u32, Inside>,
    /// If the rank has several threads, begin and end of each outermost occurrence on any of them.
    of_threads: Option<BTreeMap<u32, Vec<(i64, i64)>>>,
    /// Waits that lie in a region.
    of_waits: Vec<(u32, u32)>,
    line: Option<u32>,
    open: Vec<u32>,
    totals: LineTotals,
    /// Position of the next of the line's waits.
    next: usize,
}

impl<'a, 'c> CallObserver<'a> for RegionObserver<'c> {
    type OfRank = RegionsOfRank<'a, 'c>;

    fn begin_rank(&self, rank: RankView<'a>) -> RegionsOfRank<'a, 'c> {
        RegionsOfRank {
            rank,
            clock: self.clock,
            lines: self.lines,
            waits: self.waits,
            stretch: self.lines.stretch_of(rank.position),
            functions: Functions::new(rank.trace),
            samples: SampleCounter::new(rank.trace.samples()),
            inside: BTreeMap::new(),
            of_threads: has_several_threads(rank).then(BTreeMap::new),
            of_waits: Vec::new(),
            line: None,
            open: Vec::new(),
            totals: LineTotals::default(),
            next: 0,
        }
    }
}

impl RegionsOfRank<'_, '_> {
    /// Assigns the line's waits up to a moment to the innermost region.
    fn waits_to(&mut self, moment: i64) {
        let Some(line) = self.line else { return };
        let first = self.waits.first_of(line);
        let waits = self.waits.on_line(line);
        while let Some(wait) = waits.get(self.next).filter(|wait| wait.begin < moment) {
            self.totals.waiting += wait.ticks;
            if let Some(region) = self.open.last() {
                self.of_waits.push((first + self.next as u32, *region));
            }
            self.next += 1;
        }
    }

    fn close(&mut self, region: u32) {
        let totals = self.totals;
        let Some(of) = self.inside.get_mut(&region).filter(|of| of.depth > 0) else { return };
        of.depth -= 1;
        if of.depth > 0 {
            return;
        }
        let clip = |at: i64| at.clamp(self.stretch.0, self.stretch.1);
        let occurrence = (clip(of.opened.at), clip(totals.at));
        if occurrence.1 <= occurrence.0 {
            return;
        }
        if let Some(of_threads) = &mut self.of_threads {
            of_threads.entry(region).or_default().push(occurrence);
            return;
        }
        of.ticks += occurrence.1 - occurrence.0;
        of.in_mpi += totals.in_mpi - of.opened.in_mpi;
        of.waiting += totals.waiting - of.opened.waiting;
        of.add(occurrence);
        self.samples.add((self.clock, self.rank.position), occurrence, &mut of.samples);
    }

    /// What was found, when all events are read.
    pub fn finish(mut self) -> RegionOccurrences {
        if let Some(of_threads) = self.of_threads.take() {
            self.add_of_threads(of_threads);
        }
        let Self { rank, inside, of_waits, .. } = self;
        RegionOccurrences { position: rank.position, inside, of_waits }
    }

    /// Adds what the threads of a rank did together in its regions.
    fn add_of_threads(&mut self, occurrences: BTreeMap<u32, Vec<(i64, i64)>>) {
        let merged: BTreeMap<u32, Vec<(u64, u64)>> =
            occurrences.into_iter().map(|(region, all)| (region, in_any_thread(all))).collect();
        let mut clippers: Vec<(u32, Clipper)> =
            merged.iter().map(|(region, all)| (*region, Clipper::new(all))).collect();
        for (region, all) in &merged {
            let of = self.inside.entry(*region).or_default();
            for (begin, end) in all {
                of.ticks += (end - begin) as i64;
                let occurrence = (*begin as i64, *end as i64);
                of.add(occurrence);
                self.samples.add((self.clock, self.rank.position), occurrence, &mut of.samples);
            }
            // Less what they compute, below.
            of.in_mpi = of.ticks;
        }
        let axis = Axis { clock: self.clock, lines: self.lines, waits: self.waits };
        let inside = &mut self.inside;
        let mut contexts = LocalContexts::default();
        for_each_stretch(self.rank, axis, &mut contexts, |from, stretch, does| {
            for (region, clipper) in &mut clippers {
                let ticks = clipper.common_ticks(from as u64, stretch.to as u64) as i64;
                let of = inside.entry(*region).or_default();
                match does {
                    Does::Compute => of.in_mpi -= ticks,
                    Does::Wait => of.waiting += ticks,
                    Does::Transfer | Does::Record => {}
                }
            }
        });
    }
}

/// Merges occurrences on several threads that overlap; none begins before the run.
fn in_any_thread(mut all: Vec<(i64, i64)>) -> Vec<(u64, u64)> {
    merge_overlapping(&mut all);
    all.into_iter().map(|(begin, end)| (begin.max(0) as u64, end.max(0) as u64)).collect()
}

impl<'a> RankObserver<'a> for RegionsOfRank<'a, '_> {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        self.line = self.lines.number_of(self.rank.position, thread.thread.number);
        (self.next, self.totals) = Default::default();
    }

    fn span(&mut self, span: &Span) {
        let at = |ticks| self.clock.at(self.rank.position, ticks);
        match span.kind {
            // Time in MPI counts inside regions alone.
            SpanKind::Call(_) | SpanKind::Polls { .. } | SpanKind::Tool if self.open.is_empty() => {
            }
            SpanKind::Call(function) => match self.functions.entry(function).1 {
                Activity::Mpi | Activity::Tool => {
                    self.totals.in_mpi += at(span.end_ticks) - at(span.begin_ticks);
                }
                Activity::Compute | Activity::Own => {}
            },
            SpanKind::Polls { inside_ticks, .. } => {
                self.totals.in_mpi += self.clock.ticks_of(self.rank.position, inside_ticks);
            }
            SpanKind::Tool => self.totals.in_mpi += at(span.end_ticks) - at(span.begin_ticks),
            SpanKind::RegionBegin(region) => {
                self.totals.at = at(span.begin_ticks);
                self.waits_to(self.totals.at);
                self.open.push(region);
                let of = self.inside.entry(region).or_default();
                of.count += 1;
                of.depth += 1;
                if of.depth == 1 {
                    of.opened = self.totals;
                }
            }
            SpanKind::RegionEnd(region) => {
                self.totals.at = at(span.begin_ticks);
                self.waits_to(self.totals.at);
                if let Some(at) = self.open.iter().rposition(|open| *open == region) {
                    for left in self.open.split_off(at) {
                        self.close(left);
                    }
                }
            }
            SpanKind::Summed { .. } => {}
        }
    }

    fn end_thread(&mut self) {
        let Some(line) = self.line else { return };
        let end = self.lines.all[line as usize].end;
        self.waits_to(end);
        self.totals.at = self.totals.at.max(end);
        for open in std::mem::take(&mut self.open) {
            self.close(open);
        }
    }
}

impl Regions {
    /// The regions of a run with so many waits, from those of all ranks; none if no region is marked.
    pub(super) fn new(run: &Run, of_ranks: &[RegionOccurrences], waits: usize) -> Self {
        let name_of = |position: usize, id: u32| {
            let known = run.ranks[position].facts.regions.get(&id);
            known.cloned().unwrap_or_else(|| format!("region {id}"))
        };
        let mut by_name: BTreeMap<String, Vec<(usize, Inside)>> = BTreeMap::new();
        for of in of_ranks {
            for (id, inside) in &of.inside {
                let name = name_of(of.position, *id);
                by_name.entry(name).or_default().push((of.position, inside.clone()));
            }
        }
        let mut all: Vec<Region> =
            by_name.into_iter().map(|(name, of)| region(name, &of)).collect();
        all.sort_by_key(|region| std::cmp::Reverse(region.ticks));
        let numbers: BTreeMap<&str, u32> =
            (0..).zip(&all).map(|(number, of)| (of.name.as_str(), number)).collect();
        let lies_in_one = of_ranks.iter().any(|of| !of.of_waits.is_empty());
        let mut of_waits = vec![None; if lies_in_one { waits } else { 0 }];
        for of in of_ranks {
            let number = |id: u32| numbers.get(name_of(of.position, id).as_str()).copied();
            let of_ids: FxHashMap<u32, Option<u32>> =
                of.inside.keys().map(|id| (*id, number(*id))).collect();
            for (wait, id) in &of.of_waits {
                of_waits[*wait as usize] = of_ids[id];
            }
        }
        Self { all, of_waits }
    }

    pub fn of_wait(&self, number: u32) -> Option<&Region> {
        let region = self.of_waits.get(number as usize).copied().flatten()?;
        Some(&self.all[region as usize])
    }
}

fn region(name: String, of_ranks: &[(usize, Inside)]) -> Region {
    let entered = || of_ranks.iter().filter(|(_, of)| of.outermost > 0);
    let times = entered().next().map_or(0, |(_, of)| of.outermost);
    let equally_often = times <= MAX_OCCURRENCES && entered().all(|(_, of)| of.outermost == times);
    let over_ranks = |at: usize| {
        let all = || entered().map(|(_, of)| of.occurrences[at]);
        let begin = all().map(|(begin, _)| begin).min().unwrap_or(0);
        all().map(|(_, end)| end).max().unwrap_or(begin) - begin
    };
    let over = entered().filter_map(|(_, of)| of.over);
    let over = over.reduce(|(begin, end), of| (begin.min(of.0), end.max(of.1)));
    let from_first_to_last = over.map_or(0, |(begin, end)| end - begin);
    Region {
        name,
        count: of_ranks.iter().map(|(_, of)| of.count).sum(),
        ticks: if equally_often { (0..times).map(over_ranks).sum() } else { from_first_to_last },
        inside: entered().map(|(_, of)| of.ticks).sum(),
        in_mpi: entered().map(|(_, of)| of.in_mpi).sum(),
        waiting: entered().map(|(_, of)| of.waiting).sum(),
        computing: entered().map(|(rank, of)| (*rank, of.ticks - of.in_mpi)).collect(),
        samples: entered().map(|(rank, of)| (*rank, of.samples.clone())).collect(),
    }
}
