//! Explains why the ranks of a run waited: who waited for whom, what made the delaying ranks late, what
//! that cost, and where the critical path runs ([`Causes`]). docs/causes.md defines the terms.
//!
//! | file | content |
//! |---|---|
//! | `integer_timeline` | times as integers |
//! | `lines` | the threads of all ranks |
//! | `states` | kinds of waiting, and what cannot be explained |
//! | `semantics` | when a call has to wait, by the name of its function |
//! | `conditions` | what each call needed, from the matched messages and collective operations |
//! | `collectives`, `neighbours` | the same of collective operations |
//! | `windows`, `epochs`, `locks` | the same of one-sided communication |
//! | `progress` | late progress |
//! | `longest` | keeps long waits alone if there are too many |
//! | `waits` | wait states |
//! | `receipts` | late senders, wrong order |
//! | `numbering` | numbers of what recurs in nearly the same order |
//! | `contexts`, `local_site` | names of what a thread does, places of one rank |
//! | `callers` | where the program called the libraries that called MPI |
//! | `line_contexts`, `profile` | what each line did between the waits |
//! | `together` | what the threads of a rank did together |
//! | `line_profiles` | profiles of all lines and ranks |
//! | `rank_times` | what each rank did, over all its threads |
//! | `sync_points` | where a line and its delaying rank last met before a wait |
//! | `hinted_search` | binary search that starts at the previous result |
//! | `by_line` | what one line has with each other |
//! | `order` | causal order of the waits |
//! | `delay` | in what delaying ranks spent longer |
//! | `origins`, `reasons`, `charges` | delay costs |
//! | `sampled_code`, `compared_code` | what was sampled of delaying lines and of those that waited |
//! | `in_calls` | BLAS, LAPACK and FFTW calls, parallel regions and calls on files that make stretches longer |
//! | `groups` | waits grouped by state, call and delaying rank |
//! | `off_cpu` | how much of the waiting may have been without a core |
//! | `critical_path` | the critical path |
//! | `path_labels` | what makes it: counts, messages and bytes by place and communicator |
//! | `tree` | the efficiency tree |
//! | `iterations` | iterations and phases, detected without markers |
//! | `regions` | time and waiting in marked regions |
//! | `sampled_parts` | what was sampled in regions and iterations |
//! | `search` | the passes for conditions and loops, or those of somebody else |
//! | `part` | the part of the run whose waits are explained |
//!
//! The events are read once for matching and once for possible loops (both together with the metrics, if these are
//! wanted, too), once for iterations, and once for the profile and the regions, which have to know the waits. Several processes divide these passes;
//! the first merges what matching found, makes the waits of it, and sends each process those that it
//! needs for the next pass.
//!
//! # Memory
//! Waits, conditions and the sums between them take some 220 bytes per call that waited, and
//! nothing for a call that did not. Of a run with more than 2²¹ waits the shorter ones are
//! only counted. Of several processes, the first keeps all of them.

mod by_line;
mod callers;
mod charges;
mod collectives;
mod compared_code;
mod conditions;
pub(crate) mod contexts;
mod critical_path;
mod delay;
mod divider;
mod epochs;
mod groups;
mod hinted_search;
mod in_calls;
mod integer_timeline;
mod iterations;
mod line_contexts;
mod line_profiles;
mod lines;
pub(crate) mod local_site;
mod locks;
mod longest;
mod matched_conditions;
mod merged_contexts;
mod neighbours;
mod numbering;
mod off_cpu;
mod order;
mod origins;
mod part;
pub mod path_labels;
mod profile;
mod progress;
mod rank_times;
mod reasons;
mod receipts;
mod regions;
mod sampled_code;
mod sampled_parts;
mod search;
pub(crate) mod semantics;
mod side;
mod states;
mod sync_points;
mod together;
mod tree;
mod wait;
mod waits;
mod windows;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use trace_format::meaning::{Class, Meaning, Synchronises};

use crate::analysis::{Analysis, ReadTogether, ReadsAlong};
use crate::metrics::{self, Answer, ComputeMode, Metrics, Question, SelectionError};
use crate::trace::Run;

pub use charges::{Charges, Cost};
pub use contexts::{CallSite, Context, Contexts, NO_CONTEXT, PARALLEL_REGION};
pub use critical_path::{CriticalPath, PathStretch};
pub use groups::{Group, LateBy};
pub use integer_timeline::IntegerTimeline;
pub use iterations::{Iteration, Period, Phase, Statistics};
use line_profiles::{ProfileRequest, Profiled, Wanted};
use lines::CommonAxis;
pub use lines::{Line, Lines};
use longest::DroppedWaits;
pub use off_cpu::OffCpu;
use order::Order;
pub use part::Part;
pub use path_labels::PathLabel;
pub use profile::{Profile, Profiles};
pub use rank_times::RankTime;
pub use reasons::Reasons;
use reasons::{Explained, Waited};
pub use regions::{Region, Regions};
pub use sampled_code::{SampledDelay, StackWeights, Weight};
pub use sampled_parts::{PhaseSamples, StackCounts};
use search::{CauseSearch, FoundCauses};
pub use states::{State, Unknown};
pub use tree::Tree;
pub use wait::{DELAYED_BY_UNKNOWN, Wait};
use waits::Waits;

/// Why the ranks of a run waited.
#[derive(Debug)]
pub struct Causes<'a> {
    /// The common time axis.
    pub clock: IntegerTimeline<'a>,
    /// The threads of all ranks.
    pub lines: Lines,
    /// Earliest begin and latest end of any rank, ticks.
    pub whole: (i64, i64),
    /// By line, and by time within a line.
    pub waits: Vec<Wait>,
    /// The part of the run whose waits are explained; `None` if that is all of it. Groups, costs
    /// and the ranks' times are those of the part.
    pub part: Option<Part>,
    /// For each wait the ticks of it inside the part; `None` if all are.
    in_part: Option<Vec<i64>>,
    /// Conditions that were fulfilled after the call had returned, so it did not wait for them.
    pub violations: u64,
    /// Ticks of waits shorter than the clock error; these are not in `waits`.
    pub uncertain: i64,
    /// Ticks of waits of ranks' threads for other threads of the same rank; these are not in
    /// `waits`.
    pub for_own_threads: i64,
    /// What the threads did.
    pub contexts: Contexts,
    /// For each wait the context of its call; [`NO_CONTEXT`] outside calls.
    pub wait_contexts: Vec<u32>,
    /// For each wait the context of the delaying rank's call that ended it; [`NO_CONTEXT`] outside calls.
    pub delayed_by_contexts: Vec<u32>,
    /// For each wait the ticks for which its rank waits: while another thread computes, a rank does
    /// not wait, and what several threads wait at once counts for one of them. `None` if no rank has several.
    rank_waits: Option<Vec<i64>>,
    /// What each line and each rank did.
    pub profiles: Profiles,
    /// What each rank did in the part, over all its threads, by its position; it adds up to the
    /// rank's time in the part.
    pub rank_times: Vec<RankTime>,
    /// Who caused how much waiting.
    pub charges: Charges,
    /// Why the delaying rank of each wait was late.
    pub reasons: Reasons,
    /// Groups of similar waits, most time first.
    pub groups: Vec<Group>,
    /// How much of the waiting may have been without a core.
    pub off_cpu: OffCpu,
    pub path: CriticalPath,
    /// Stretches in which all ranks repeat the same calls, longest first.
    pub phases: Vec<Phase>,
    /// Regions that the program marked.
    pub regions: Regions,
    /// What could not be explained.
    pub unknown: Vec<Unknown>,
    /// What counts as computing, in the metrics.
    pub compute: ComputeMode,
}

/// Which waits are explained.
#[derive(Debug, Clone, Copy)]
pub struct CausesOptions<'m> {
    /// Metrics of the part of the run to which waits are clipped; `None` for all of it.
    pub part: Option<&'m Metrics>,
    /// Of more waits, about this many of the longest are explained.
    pub max_waits: usize,
}

impl Default for CausesOptions<'_> {
    fn default() -> Self {
        Self { part: None, max_waits: MAX_WAITS }
    }
}

#[cfg(test)]
impl<'m> CausesOptions<'m> {
    /// Those of the part of a run that metrics are for.
    pub fn of_part(metrics: &'m Metrics) -> Self {
        Self { part: Some(metrics), ..Self::default() }
    }
}

/// A context on the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnPath {
    /// Its number.
    pub context: u32,
    /// Ticks of the path in this context.
    pub on_path: i64,
    /// These ticks minus the mean over the ranks of the time in this context.
    pub imbalance: i64,
}

/// A report or timeline explains waits only if the run has at most this many calls; `gammachi why`
/// always does.
pub const MAX_CALLS_FOR_SUMMARY: u64 = 20_000_000;

/// Waits that are explained; of a run with more, about this many of the longest.
const MAX_WAITS: usize = 1 << 21;

/// What calls and messages show of the waits of a run, before these are explained.
#[derive(Debug)]
pub struct UnexplainedWaits<'s, 'a> {
    search: CauseSearch<'s, 'a>,
    found: FoundCauses,
}

impl<'s, 'a> UnexplainedWaits<'s, 'a> {
    /// Reads calls and messages once, for this, for the answer to a question and for somebody who reads along.
    ///
    /// # Errors
    /// As [`Answer::new`].
    pub fn along<R: ReadsAlong<'a>>(
        analysis: &'s Analysis<'a>,
        question: &Question,
        along: &R,
    ) -> Result<(Answer, Self, ReadTogether<'a, R>), SelectionError> {
        let search = CauseSearch::new(analysis, MAX_WAITS);
        let (answer, read) = Answer::along(analysis, question, &(&search, along))?;
        let (own, ReadTogether { of_ranks, sinks }) = read.apart();
        let found = search.found_along(own);
        Ok((answer, Self { search, found }, ReadTogether { of_ranks, sinks }))
    }

    /// The same, but without waits if the run is too large for them to be explained in a summary.
    ///
    /// # Errors
    /// As [`Answer::new`].
    pub fn in_summary<R: ReadsAlong<'a>>(
        analysis: &'s Analysis<'a>,
        question: &Question,
        along: &R,
    ) -> Result<(Answer, Option<Self>, ReadTogether<'a, R>), SelectionError> {
        // Calls of the whole run: to explain a part, all of it is read.
        if analysis.run.calls() > MAX_CALLS_FOR_SUMMARY {
            return Answer::along(analysis, question, along)
                .map(|(answer, read)| (answer, None, read));
        }
        Self::along(analysis, question, along)
            .map(|(answer, waits, read)| (answer, Some(waits), read))
    }

    /// Explains the waits in the part of the run that an answer is about; `None` on all but the first of several
    /// processes.
    pub fn explain(self, answer: &Answer) -> Option<Causes<'a>> {
        Causes::explained(self.search, self.found, Some(&answer.metrics))
    }
}

impl<'a> Causes<'a> {
    /// Explains all waits of a run.
    pub fn new(analysis: &Analysis<'a>) -> Self {
        let causes = Self::with_options(analysis, CausesOptions::default());
        causes.unwrap_or_else(|| unreachable!("only the first of several processes has them"))
    }

    /// Begin and end, on the counter of each rank, of an iteration of the longest phase.
    ///
    /// # Errors
    /// The number of iterations, if it has no such one.
    pub fn iteration(analysis: &Analysis, number: usize) -> Result<metrics::Iteration, usize> {
        let clock = IntegerTimeline::new(analysis.run, analysis.timeline);
        let lines = Lines::new(analysis, &clock);
        let whole = lines.extent().unwrap_or((0, 0));
        let found =
            Phase::iteration(analysis, CommonAxis { clock: &clock, lines: &lines }, whole, number);
        // Only the first process has the phases.
        let mut of_processes = analysis.processes.share(found);
        let of_ranks = of_processes.swap_remove(0)?;
        Ok(metrics::Iteration { number, of_ranks })
    }

    /// Explains waits by the delays that led to them. The analysis may be divided among processes,
    /// which all call this: each reads the events of its own ranks. The first gets the causes,
    /// others `None`.
    pub fn with_options(analysis: &Analysis<'a>, options: CausesOptions) -> Option<Self> {
        let search = CauseSearch::new(analysis, options.max_waits);
        let found = search.read();
        Self::explained(search, found, options.part)
    }

    /// The answer to a question, and the causes in the part of the run that it is about: calls and messages are read
    /// once for both. The causes are `None` on all but the first of several processes.
    ///
    /// # Errors
    /// As [`Answer::new`].
    pub fn with_answer(
        analysis: &Analysis<'a>,
        question: &Question,
    ) -> Result<(Answer, Option<Self>), SelectionError> {
        let (answer, waits, _) = UnexplainedWaits::along(analysis, question, &())?;
        let causes = waits.explain(&answer);
        Ok((answer, causes))
    }

    /// The same, but without causes if the run is too large for them to be read for a summary.
    ///
    /// # Errors
    /// As [`Answer::new`].
    pub fn in_summary(
        analysis: &Analysis<'a>,
        question: &Question,
    ) -> Result<(Answer, Option<Self>), SelectionError> {
        let (answer, waits, _) = UnexplainedWaits::in_summary(analysis, question, &())?;
        let causes = waits.and_then(|waits| waits.explain(&answer));
        Ok((answer, causes))
    }

    /// Explains what a search found, in the part of the run that metrics are for.
    fn explained(
        search: CauseSearch<'_, 'a>,
        found: FoundCauses,
        part: Option<&Metrics>,
    ) -> Option<Self> {
        let analysis = search.analysis;
        let (run, timeline) = (analysis.run, analysis.timeline);
        let CauseSearch { clock, lines, .. } = search;
        let axis = CommonAxis { clock: &clock, lines: &lines };
        let whole = lines.extent().unwrap_or((0, 0));
        let part = part.and_then(|metrics| Part::new(metrics, axis, whole));
        // What only the first process knows is empty on the others up to `ProfileRequest`.
        let FoundCauses { conditions: mut found, loops, mut unknown } = found;
        let violations = found.violations;
        let (unexplained, _) = std::mem::take(&mut found.unexplained).finish();
        let least = conditions::min_unexplained_ticks(&clock);
        let of_progress = progress::conditions(analysis, axis, unexplained, least);
        of_progress.into_iter().for_each(|condition| found.conditions.push(condition));
        let (conditions, dropped) = std::mem::take(&mut found.conditions).finish();
        unknown.extend(short_waits(&clock, dropped));
        let open = open_calls(analysis, &clock, &lines);
        let receipts = std::mem::take(&mut found.receipts);
        let bounds = lines::end_bounds(analysis, &clock);
        let mut waits = Waits::new((conditions, found), (&lines, &bounds), &open, whole);
        if receipts.are_too_many() {
            unknown.push(Unknown::WrongOrder);
        }
        receipts.mark_wrong_order(&mut waits.all, &lines);
        let ended = waits.ended();
        let (sync_points, order) = rayon::join(
            || sync_points::before(&waits, &ended, &lines),
            || Order::new(&waits, &lines),
        );
        let mut phases = Phase::find(analysis, axis, whole, loops);
        let wanted = Wanted { sync_points: &sync_points, phases: &phases, part: part.as_ref() };
        let asked = ProfileRequest::new(analysis, &lines, (waits, ended), wanted);
        let (of_ranks, in_regions, waits) = asked.profiles(analysis, axis);
        if !analysis.processes.is_first() {
            return None;
        }
        let regions = Regions::new(run, &in_regions, waits.all.len());
        drop(in_regions);
        let Profiled { mut contexts, profiles, wait_contexts, delayed_by_contexts, rank_waits } =
            Profiled::new(analysis, &lines, of_ranks, (&waits.all, &mut phases));
        let rank_times = (0..run.ranks.len()).map(|position| {
            let first = lines.first_of(position);
            let line = (&lines.all[first as usize], waits.on_line(first));
            let profile = (profiles.of_rank(&lines, position), &contexts);
            RankTime::new(profile, line, (whole, part.as_ref()))
        });
        let rank_times = rank_times.collect();
        for phase in &mut phases {
            phase.fill_iterations(&lines, (&profiles, &contexts), &waits.all);
            phase.fill_samples(run, &clock);
        }
        let in_part: Option<Vec<i64>> = part.as_ref().map(|part| {
            let all = waits.all.iter();
            all.map(|wait| part.ticks_of(wait, &lines)).collect()
        });
        let ticks_of = |number: u32| match &in_part {
            Some(in_part) => in_part[number as usize],
            None => waits.all[number as usize].ticks,
        };
        let waited = Waited {
            waits: &waits.all,
            wait_contexts: &wait_contexts,
            profiles: &profiles.of_lines,
            contexts: contexts.all.len(),
        };
        let path =
            |order: &Order| CriticalPath::new((&waits, order), (&lines, &profiles.of_lines), whole);
        let (reasons, Explained { charges, groups, path, too_long, cut }) = Reasons::new(
            (waited, &lines),
            waits.first.clone(),
            (sync_points, order),
            &mut contexts,
            &ticks_of,
            path,
        );
        let counted = [(too_long, Unknown::TooLong(too_long)), (cut, Unknown::Cut(cut))];
        unknown.extend(counted.into_iter().filter(|(count, _)| *count > 0).map(|(_, what)| what));
        unknown.extend(unsupported_calls(&contexts));
        if !run.missing.is_empty() {
            unknown.push(Unknown::MissingRanks);
        }
        if !timeline.aligned {
            unknown.push(Unknown::Unaligned);
        }
        if run.ranks.iter().any(|rank| rank.file.threads.iter().any(|t| t.totals.is_some())) {
            unknown.push(Unknown::Totals);
        }
        let inside = (0u32..).zip(&waits.all).map(|(number, wait)| (wait, ticks_of(number)));
        let inside = inside.filter(|(_, ticks)| *ticks > 0);
        let off_cpu = OffCpu::new(run, axis, inside);
        let (uncertain, for_own_threads) = (waits.uncertain, waits.for_own_threads);
        let waits = waits.all;
        Some(Self {
            clock,
            lines,
            whole,
            waits,
            part,
            in_part,
            violations,
            uncertain,
            for_own_threads,
            contexts,
            wait_contexts,
            delayed_by_contexts,
            rank_waits,
            profiles,
            rank_times,
            charges,
            reasons,
            groups,
            off_cpu,
            path,
            phases,
            regions,
            unknown,
            compute: Metrics::compute_mode_of(run),
        })
    }

    /// Whether a context is one of those that count as computing; time in others outside MPI is that
    /// of other code.
    pub fn counts_as_computing(&self, context: &Context) -> bool {
        match (self.compute, context) {
            (ComputeMode::Blas, found) => {
                let is_other =
                    |site: &CallSite| site.function == PARALLEL_REGION || site.is_on_files();
                matches!(found, Context::InCall(site, _) if !is_other(site))
            }
            (ComputeMode::Regions, found) => {
                matches!(found.outer(), Context::Region(_))
            }
            (ComputeMode::Outside, found) => found.is_computing(),
        }
    }

    /// Ticks of a wait that lie in the part of the run that is explained.
    pub fn ticks_of(&self, number: u32) -> i64 {
        match &self.in_part {
            Some(in_part) => in_part[number as usize],
            None => self.waits[number as usize].ticks,
        }
    }

    /// Ticks for which the rank of a wait waits in it.
    pub fn rank_ticks_of(&self, number: u32) -> i64 {
        let number = number as usize;
        self.rank_waits.as_ref().map_or(self.waits[number].ticks, |of_ranks| of_ranks[number])
    }

    /// Duration of the part of the run that is explained (T).
    pub fn elapsed(&self) -> i64 {
        self.part.as_ref().map_or(self.whole.1 - self.whole.0, |part| part.ticks)
    }

    /// Number of ranks in the part of the run that is explained.
    pub fn ranks(&self) -> usize {
        self.part.as_ref().map_or(self.rank_times.len(), Part::ranks)
    }

    /// Contexts in which the delaying rank of a wait spent more time than the line that waited, with the
    /// excess d(c); and numbers of the delaying rank's own waits since the two last met.
    pub fn delays(&self, wait: u32) -> (Vec<(u32, i64)>, std::ops::Range<u32>) {
        let waited = Waited {
            waits: &self.waits,
            wait_contexts: &self.wait_contexts,
            profiles: &self.profiles.of_lines,
            contexts: self.contexts.all.len(),
        };
        self.reasons.of_wait(wait, waited)
    }

    /// All waiting that is explained, ticks.
    pub fn waiting(&self) -> i64 {
        self.groups.iter().map(|group| group.ticks).sum()
    }

    /// Count and ticks of each state that occurs.
    pub fn states(&self) -> Vec<(State, u64, i64)> {
        let mut sums: BTreeMap<State, (u64, i64)> = BTreeMap::new();
        for group in &self.groups {
            let sum = sums.entry(group.state).or_default();
            *sum = (sum.0 + group.count, sum.1 + group.ticks);
        }
        sums.into_iter().map(|(state, (count, ticks))| (state, count, ticks)).collect()
    }

    /// Numbers of at most `max` of the longest waits in the part, longest first; ties in order of
    /// their numbers.
    pub fn longest(&self, max: usize) -> Vec<u32> {
        let mut found: Vec<(Reverse<i64>, u32)> = Vec::new();
        // Waits as short as this one come after enough others.
        let mut least = if max == 0 { i64::MAX } else { i64::MIN };
        for number in 0..self.waits.len() as u32 {
            let ticks = self.ticks_of(number);
            if ticks <= least || ticks == 0 {
                continue;
            }
            found.push((Reverse(ticks), number));
            if found.len() / 2 > max {
                found.select_nth_unstable(max - 1);
                found.truncate(max);
                least = found[max - 1].0.0;
            }
        }
        found.sort_unstable();
        found.truncate(max);
        found.into_iter().map(|(_, number)| number).collect()
    }

    /// What makes the critical path, by label, most time first. `analysis` is that of the run, in
    /// this process alone; its events are read once more.
    pub fn path_labels(&self, analysis: &Analysis) -> Vec<PathLabel> {
        let (clock, lines) = (&self.clock, &self.lines);
        let (waits, path) = (&self.waits, &self.path.stretches);
        path_labels::labels(analysis, path_labels::Known { clock, lines, waits, path })
    }

    /// Contexts on the critical path, longest first, compared with the mean over the ranks.
    pub fn imbalance(&self) -> Vec<OnPath> {
        let mut sums = vec![0; self.contexts.all.len()];
        let ranks = self.rank_times.len().max(1) as i64;
        for (context, ticks) in self.profiles.of_lines.iter().flat_map(Profile::all) {
            sums[context as usize] += ticks;
        }
        let rows = self.path.in_context.iter().map(|(context, on_path)| {
            let mean = sums[*context as usize] / ranks;
            OnPath { context: *context, on_path: *on_path, imbalance: on_path - mean }
        });
        let mut rows: Vec<OnPath> = rows.collect();
        rows.sort_by_key(|row| (Reverse(row.on_path), row.context));
        rows
    }

    /// The efficiency over the ranks in the part of the run that is explained; `None` if it has no
    /// length. `ideal` is its time on an ideal network over its own, if a replay computed it.
    pub fn tree(&self, run: &Run, ideal: Option<f64>) -> Option<Tree> {
        let takes_part = |position: &usize| self.part.as_ref().is_none_or(|of| of.has(*position));
        let ranks = (0..run.ranks.len()).filter(takes_part).map(|position| {
            let host = run.ranks[position].file.header.host.as_str();
            (host, self.rank_times[position].computing)
        });
        let tree = Tree::new(&ranks.collect::<Vec<_>>(), self.elapsed(), ideal)?;
        let phase = self.phases.first().filter(|_| self.part.is_none());
        Some(Tree { moving_imbalance: phase.and_then(Phase::moving_imbalance), ..tree })
    }

    /// Passes on what the lines did in the part of the run that is explained: context and ticks. A
    /// context may occur several times.
    pub fn for_each_sum(&self, mut take: impl FnMut(u32, i64)) {
        self.for_each_sum_of_lines(|_, context, ticks| take(context, ticks));
    }

    /// The same with the line.
    pub fn for_each_sum_of_lines(&self, mut take: impl FnMut(u32, u32, i64)) {
        let lines = self.lines.all.iter().zip(&self.profiles.of_lines);
        for (number, (line, profile)) in (0..).zip(lines) {
            let mut hint = profile::Hint::default();
            let mut add = |(context, ticks)| take(number, context, ticks);
            match &self.part {
                None => profile.all().for_each(add),
                Some(part) => part.stretches(line.position).iter().for_each(|stretch| {
                    profile.sums_of(profile.stretches(*stretch, &mut hint)).for_each(&mut add);
                }),
            }
        }
    }

    /// Ticks outside MPI and the recorder on a line.
    pub fn computing(&self, line: u32) -> i64 {
        let sums = self.profiles.of_lines[line as usize].all();
        let computing = sums.filter(|(context, _)| self.contexts.get(*context).is_computing());
        computing.map(|(_, ticks)| ticks).sum()
    }

    /// Ticks for which the rank at a position waited in the whole run.
    pub fn rank_waited(&self, position: usize) -> i64 {
        let of_rank = |wait: &Wait| self.lines.all[wait.line as usize].position == position;
        let all = (0u32..).zip(&self.waits).filter(|(_, wait)| of_rank(wait));
        all.map(|(number, _)| self.rank_ticks_of(number)).sum()
    }

    /// Ticks for which ranks waited in the part of the run that is explained. Unlike
    /// [`Causes::waiting`], it is part of the time of the ranks, however many threads wait at once.
    pub fn ranks_waited(&self) -> i64 {
        self.rank_times.iter().map(|time| time.waiting).sum()
    }
}

/// What the program called that this analysis does not support.
fn unsupported_calls(contexts: &Contexts) -> Vec<Unknown> {
    let called = contexts.all.iter().filter_map(|context| match context {
        Context::Transfer(site) => Some(Meaning::by_name(&site.function)),
        _ => None,
    });
    let mut unknown = BTreeSet::new();
    for meaning in called {
        if (meaning.class, meaning.synchronises) == (Class::Communicators, Synchronises::Group) {
            unknown.insert(Unknown::MadeByGroup);
        }
    }
    unknown.into_iter().collect()
}

/// Waits that are only counted.
fn short_waits(clock: &IntegerTimeline, dropped: DroppedWaits) -> Option<Unknown> {
    let ns = |ticks: i64| (clock.seconds(ticks) * 1e9) as u64;
    let DroppedWaits { count, ticks, below } = dropped;
    (count > 0).then(|| Unknown::Short { count, sum_ns: ns(ticks), below_ns: ns(below) })
}

/// Calls that had not returned: line, begin, function.
fn open_calls(analysis: &Analysis, clock: &IntegerTimeline, lines: &Lines) -> Vec<(u32, i64, u16)> {
    let mut open = Vec::new();
    for position in 0..analysis.run.ranks.len() {
        for thread in analysis.rank(position).threads() {
            let last = thread.extent.last_call.as_ref().filter(|call| call.open);
            let line = lines.number_of(position, thread.thread.number);
            if let (Some(last), Some(line)) = (last, line) {
                let begin = clock.at(position, last.begin_ticks);
                open.push((line, begin.max(lines.all[line as usize].begin), last.function));
            }
        }
    }
    open
}

#[cfg(test)]
pub(crate) mod tests;
