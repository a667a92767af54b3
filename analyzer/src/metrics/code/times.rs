//! Seconds in each function, on each rank and on all.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use trace_format::header::{Module, Sampling, SamplingSource};

use crate::analysis::Analysis;
use crate::metrics::note::Note;
use crate::trace::Run;
use crate::trace::modules::{code_of, modules};
use crate::trace::samples::{RankSamples, Stack};
use crate::trace::symbols::Symbols;

use super::functions::{Function, Functions, Place, RankStacks, Resolve, StackPlaces};

/// The stretches of a rank that are selected, on its counter; `None`: it takes no part.
pub type Stretches = Option<Vec<(u64, u64)>>;

/// What the time of a row was spent in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// A function, by its number.
    Function(u32),
    /// Functions whose callers are not known, or not all of them: the stack could not be read to its end. They have
    /// rows of their own, but their time is missing in the totals of those callers.
    CutStacks,
    /// The kernel, or code that held signals off: no sample is taken there. Also inside MPI.
    Kernel,
    /// What lost samples would tell.
    Lost,
}

/// The time of a function, of one rank, of a thread or of all ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CodeRow {
    pub code: Code,
    /// Seconds in the function itself.
    pub self_s: f64,
    /// Seconds in it and in what it calls; a function that calls itself counts once.
    pub total_s: f64,
    /// Standard error of `self_s`.
    pub error_s: f64,
}

/// The functions of a rank.
#[derive(Debug, Clone, PartialEq)]
pub struct RankCode {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Most time first.
    pub rows: Vec<CodeRow>,
    /// Of each sampled thread, if there are several: its number, `None` if it never called MPI.
    pub threads: Vec<(Option<u32>, Vec<CodeRow>)>,
    /// Seconds that a sample stands for.
    pub period_s: f64,
    /// The functions on its stacks.
    pub stacks: RankStacks,
}

/// Own time of a line of a function, on all ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LineRow {
    pub function: u32,
    /// `None`: the function has no debugging information there.
    pub line: Option<u32>,
    pub self_s: f64,
    /// Standard error of that.
    pub error_s: f64,
}

/// What the sampled code of a run was doing in a selection.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeMetrics {
    /// By number.
    pub functions: Vec<Function>,
    /// The line of each function with most time, if known.
    pub lines: Vec<Option<u32>>,
    /// Lines with own time, most first.
    pub by_line: Vec<LineRow>,
    /// By position of the rank.
    pub ranks: Vec<RankCode>,
    /// Of all ranks, most time first.
    pub all: Vec<CodeRow>,
    /// Modules without names: path and reason.
    pub unusable: Vec<(String, &'static str)>,
}

/// The samples of a rank in a selection, by stack.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RankCounts {
    pub stacks: Vec<Stack>,
    pub paths: Vec<Vec<u64>>,
    pub threads: Vec<ThreadCounts>,
}

/// The samples of a thread in a selection, by stack.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ThreadCounts {
    pub thread: Option<u32>,
    /// Stack and number of samples, ascending.
    pub counts: Vec<(u32, u64)>,
    /// Of the whole run; `None` if not known or only a part is selected.
    pub kernel_s: Option<f64>,
    /// The same.
    pub lost: u64,
}

impl RankCounts {
    /// Counts the samples in stretches, ascending and disjoint.
    pub fn new(samples: &RankSamples, stretches: &[(u64, u64)], is_whole: bool) -> Self {
        let RankSamples { paths, stacks, threads } = samples;
        let mut sums = vec![0; stacks.len()];
        let threads = threads.iter().map(|thread| {
            for (begin, end) in stretches {
                let at = |ticks: u64| thread.samples.partition_point(|(of, _)| *of < ticks);
                let inside = at(*begin)..at(*end).max(at(*begin));
                thread.samples[inside].iter().for_each(|(_, stack)| sums[*stack as usize] += 1);
            }
            let counts = (0..).zip(&mut sums).map(|(stack, sum)| (stack, std::mem::take(sum)));
            ThreadCounts {
                thread: thread.thread,
                counts: counts.filter(|(_, count)| *count > 0).collect(),
                kernel_s: thread.kernel_s.filter(|_| is_whole),
                lost: if is_whole { thread.lost } else { 0 },
            }
        });
        Self { threads: threads.collect(), paths: paths.clone(), stacks: stacks.clone() }
    }
}

/// A rank whose samples are counted.
pub(super) struct RankParts<'m> {
    pub rank: u32,
    /// Seconds that a sample stands for.
    pub period_s: f64,
    pub modules: Vec<&'m Module>,
}

/// Seconds, with the variance of the first.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    self_s: f64,
    total_s: f64,
    variance: f64,
}

/// Sums by what they are of.
#[derive(Debug, Clone, Default)]
struct Sums(BTreeMap<Code, Sum>);

impl Sums {
    fn add(&mut self, code: Code, own: Sum) {
        let sum = self.0.entry(code).or_default();
        sum.self_s += own.self_s;
        sum.total_s += own.total_s;
        sum.variance += own.variance;
    }

    fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(code, sum)| self.add(*code, *sum));
    }

    fn add_rows(&mut self, rows: &[CodeRow]) {
        for CodeRow { code, self_s, total_s, error_s } in rows {
            let (self_s, total_s, variance) = (*self_s, *total_s, error_s * error_s);
            self.add(*code, Sum { self_s, total_s, variance });
        }
    }

    fn rows(&self) -> Vec<CodeRow> {
        let row = |(code, sum): (&Code, &Sum)| CodeRow {
            code: *code,
            self_s: sum.self_s,
            total_s: sum.total_s,
            error_s: sum.variance.sqrt(),
        };
        let mut rows: Vec<CodeRow> = self.0.iter().map(row).collect();
        rows.sort_by(|a, b| {
            (b.self_s, b.total_s)
                .partial_cmp(&(a.self_s, a.total_s))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        rows
    }
}

/// Variance of a number of samples among others. One more of either kind is assumed, so that it is never 0: what was
/// never sampled, or always, is known no better than to a sample.
fn variance(count: u64, all: u64) -> f64 {
    let share = (count + 1) as f64 / (all + 2) as f64;
    all as f64 * share * (1.0 - share)
}

/// Samples by function and line: in the line itself, and in what it calls.
type LineSums = FxHashMap<Place, (u64, u64)>;

/// Adds the lines of a rank to those of all, and their own time to its sums.
fn add_lines(
    (all, own): (&mut LineSums, &mut FxHashMap<Place, Sum>),
    of_rank: LineSums,
    period_s: f64,
) {
    let samples: u64 = of_rank.values().map(|(own, _)| own).sum();
    for (place, (count, total)) in of_rank {
        let known = all.entry(place).or_default();
        *known = (known.0 + count, known.1 + total);
        if count > 0 {
            let sum = own.entry(place).or_default();
            sum.self_s += count as f64 * period_s;
            sum.variance += variance(count, samples) * period_s * period_s;
        }
    }
}

fn line_rows(own: FxHashMap<Place, Sum>) -> Vec<LineRow> {
    let row = |((function, line), sum): (Place, Sum)| LineRow {
        function,
        line,
        self_s: sum.self_s,
        error_s: sum.variance.sqrt(),
    };
    let mut rows: Vec<LineRow> = own.into_iter().map(row).collect();
    rows.sort_by(|a, b| {
        b.self_s.total_cmp(&a.self_s).then((a.function, a.line).cmp(&(b.function, b.line)))
    });
    rows
}

/// Counts samples of one thread by function.
struct Counter<'c> {
    stacks: &'c RankStacks,
    /// By function: in it, and in it or what it calls.
    counts: FxHashMap<u32, (u64, u64)>,
    /// By path.
    of_paths: Vec<u64>,
    cut: u64,
    all: u64,
}

impl<'c> Counter<'c> {
    fn new(stacks: &'c RankStacks) -> Self {
        let of_paths = vec![0; stacks.paths.len()];
        Self { stacks, counts: FxHashMap::default(), of_paths, cut: 0, all: 0 }
    }

    /// Adds the samples of a stack, but for its callers.
    fn add(&mut self, (number, count): (u32, u64), lines: &mut LineSums) {
        let StackPlaces { inner, path, is_complete } = &self.stacks.stacks[number as usize];
        self.all += count;
        self.cut += if *is_complete { 0 } else { count };
        if let Some((innermost, _)) = inner.first() {
            self.counts.entry(*innermost).or_default().0 += count;
        }
        for function in self.stacks.only_inner(number) {
            self.counts.entry(function).or_default().1 += count;
        }
        for (depth, place) in inner.iter().enumerate() {
            let sums = lines.entry(*place).or_default();
            sums.0 += if depth == 0 { count } else { 0 };
            sums.1 += count;
        }
        if let Some(path) = path {
            self.of_paths[*path as usize] += count;
        }
    }

    /// Adds the samples of all stacks to their callers: stacks are far more than paths.
    fn add_callers(&mut self, lines: &mut LineSums) {
        for (path, count) in self.stacks.paths.iter().zip(&self.of_paths) {
            if *count == 0 {
                continue;
            }
            for function in path.functions() {
                self.counts.entry(*function).or_default().1 += count;
            }
            for place in &path.callers {
                lines.entry(*place).or_default().1 += count;
            }
        }
    }

    fn sums(self, of: &ThreadCounts, period_s: f64) -> Sums {
        let mut sums = Sums::default();
        let s = |count: u64| count as f64 * period_s;
        for (function, (own, total)) in self.counts {
            let variance = variance(own, self.all) * period_s * period_s;
            sums.add(Code::Function(function), Sum { self_s: s(own), total_s: s(total), variance });
        }
        if self.cut > 0 {
            sums.add(Code::CutStacks, Sum { total_s: s(self.cut), ..Sum::default() });
        }
        let outside = [(Code::Kernel, of.kernel_s.unwrap_or(0.0)), (Code::Lost, s(of.lost))];
        for (code, seconds) in outside.into_iter().filter(|(_, seconds)| *seconds >= period_s) {
            let variance = period_s * period_s;
            sums.add(code, Sum { self_s: seconds, total_s: seconds, variance });
        }
        sums
    }
}

impl CodeMetrics {
    /// The functions of a selection, given by each rank's stretches; `None` if no code was sampled, and on all of several
    /// processes but the first.
    pub(crate) fn new(
        analysis: &Analysis,
        stretches: &[Stretches],
        is_whole: bool,
    ) -> Option<Self> {
        let mut symbols = Symbols::for_run(analysis.run);
        let mut resolve = |path: &str, id: &str, address| symbols.frames(path, id, address);
        let code = Self::with_names(analysis, (stretches, is_whole), &mut resolve)?;
        Some(Self { unusable: symbols.unusable, ..code })
    }

    /// The same with names from elsewhere.
    pub(crate) fn with_names(
        analysis: &Analysis,
        (stretches, is_whole): (&[Stretches], bool),
        resolve: &mut Resolve,
    ) -> Option<Self> {
        let run = analysis.run;
        let hz = |position: usize| run.ranks[position].file.sampling().map_or(0, |of| of.rate_hz);
        if (0..run.ranks.len()).all(|position| hz(position) == 0) {
            return None;
        }
        let own = analysis.own_ranks().into_par_iter().map(|position| {
            let stretches = stretches[position].as_deref().unwrap_or_default();
            RankCounts::new(run.ranks[position].samples(), stretches, is_whole)
        });
        let all = analysis.processes.join_at_first(own.collect());
        let is_empty = |of: &RankCounts| of.threads.iter().all(|thread| thread.counts.is_empty());
        if all.iter().all(is_empty) {
            return None;
        }
        let ranks = all.into_iter().zip(&run.ranks).enumerate();
        let ranks = ranks.map(|(position, (counts, trace))| {
            let period_s = 1.0 / f64::from(hz(position).max(1));
            let modules =
                code_of(&trace.file.definitions).chain(modules(&trace.file.definitions)).collect();
            (RankParts { rank: trace.rank, period_s, modules }, counts)
        });
        Some(Self::from_counts(ranks, resolve))
    }

    pub(super) fn from_counts<'m>(
        of_ranks: impl Iterator<Item = (RankParts<'m>, RankCounts)>,
        resolve: &mut Resolve,
    ) -> Self {
        let mut functions = Functions::new(resolve);
        let (mut lines, mut by_line) = (LineSums::default(), FxHashMap::default());
        let (mut ranks, mut all) = (Vec::new(), Sums::default());
        for (RankParts { rank, period_s, modules }, counts) in of_ranks {
            let stacks = functions.on_stacks(&modules, &counts.stacks, &counts.paths);
            let (mut of_rank, mut lines_of_rank) = (Sums::default(), LineSums::default());
            let mut threads = Vec::new();
            for thread in &counts.threads {
                let mut counter = Counter::new(&stacks);
                for of in &thread.counts {
                    counter.add(*of, &mut lines_of_rank);
                }
                counter.add_callers(&mut lines_of_rank);
                let sums = counter.sums(thread, period_s);
                of_rank.merge(&sums);
                threads.push((thread.thread, sums.rows()));
            }
            all.merge(&of_rank);
            add_lines((&mut lines, &mut by_line), lines_of_rank, period_s);
            if threads.len() < 2 {
                threads.clear();
            }
            ranks.push(RankCode { rank, rows: of_rank.rows(), threads, period_s, stacks });
        }
        let mut of_functions: Vec<Option<(u64, u64, u32)>> = vec![None; functions.all.len()];
        for ((function, line), (own, total)) in lines {
            let Some(line) = line else { continue };
            let most = &mut of_functions[function as usize];
            // Of equal ones, the first.
            let found = (own, total, u32::MAX - line);
            *most = (*most).max(Some(found));
        }
        let line = |most: Option<(u64, u64, u32)>| most.map(|(.., line)| u32::MAX - line);
        let lines = of_functions.into_iter().map(line).collect();
        let (by_line, unusable) = (line_rows(by_line), Vec::new());
        Self { functions: functions.all, lines, by_line, ranks, all: all.rows(), unusable }
    }

    /// The functions of a part of the run, given by what was sampled there on the rank at each position; most time first.
    pub fn in_part<'s>(
        &self,
        of_ranks: impl Iterator<Item = (usize, &'s BTreeMap<u32, u64>)>,
    ) -> Vec<CodeRow> {
        let mut all = Sums::default();
        for (position, stacks) in of_ranks {
            let RankCode { stacks: places, period_s, .. } = &self.ranks[position];
            let (mut counter, mut lines) = (Counter::new(places), LineSums::default());
            for (stack, count) in stacks {
                counter.add((*stack, *count), &mut lines);
            }
            counter.add_callers(&mut lines);
            all.merge(&counter.sums(&ThreadCounts::default(), *period_s));
        }
        all.rows()
    }

    /// The functions of the threads with the same number on all ranks; `None`: of those that never called MPI. Empty if of
    /// each rank one thread was sampled at most.
    pub fn by_thread(&self) -> BTreeMap<Option<u32>, Vec<CodeRow>> {
        let mut threads: BTreeMap<Option<u32>, Sums> = BTreeMap::new();
        if self.ranks.iter().any(|rank| !rank.threads.is_empty()) {
            for rank in &self.ranks {
                let alone = rank.threads.is_empty().then_some((Some(0), &rank.rows));
                let several = rank.threads.iter().map(|(number, rows)| (*number, rows));
                for (number, rows) in several.chain(alone) {
                    threads.entry(number).or_default().add_rows(rows);
                }
            }
        }
        threads.into_iter().map(|(number, sums)| (number, sums.rows())).collect()
    }
}

/// What limits the samples of a run.
pub(in crate::metrics) fn notes(run: &Run) -> Vec<Note> {
    let all: Vec<&Sampling> = run.ranks.iter().filter_map(|rank| rank.file.sampling()).collect();
    let unavailable = all.iter().filter(|of| !of.unavailable.is_empty());
    let not_sampled = all.iter().find(|of| !of.unavailable.is_empty()).map(|of| {
        let why = of.unavailable.trim_end_matches('.').to_owned();
        Note::CodeNotSampled { why, ranks: unavailable.count() }
    });
    let at_ticks =
        |of: &&Sampling| of.unavailable.is_empty() && of.source == SamplingSource::CpuTimer;
    let at_ticks = all.into_iter().any(|of| at_ticks(&of)).then_some(Note::CodeSampledAtTicks);
    not_sampled.into_iter().chain(at_ticks).collect()
}
