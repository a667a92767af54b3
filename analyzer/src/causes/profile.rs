//! Sums what each line did between the moments that matter, by context.
//!
//! Those moments are the begins and ends of waits, the culprits' entries into the calls that ended
//! them, and the points where lines met. Only sums are kept between two moments, so memory grows
//! with waits, not with calls.

use std::ops::Range;

use crate::analysis::segments::Functions;
use crate::analysis::spans::{Activity, Span, SpanKind};
use crate::analysis::{CallObserver, RankObserver, RankView, ThreadView};
use serde::{Deserialize, Serialize};
use trace_format::markers::ToolReason;

use super::callers::PathCounts;
use super::contexts::{
    LocalContext, LocalContexts, RECORDER, TOTALS, WAITING, WAITING_FOR_UNKNOWN,
};
use super::hinted_search;
use super::lines::Lines;
use super::local_site::{LocalSite, ReplacedModules};
use super::rank_times::RankTime;
use super::waits::{Wait, Waits};
use super::whole_ticks::WholeTicks;

/// Positions of the two moments that the last search found.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hint(usize, usize);

/// The time of one line, by context.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Profile {
    /// Ascending, from the line's begin to its end.
    moments: Vec<i64>,
    /// Index of the first sum of each stretch between two moments; one more entry ends the last.
    offsets: Vec<usize>,
    /// Context and ticks.
    sums: Vec<(u32, i64)>,
}

impl Profile {
    /// Positions of the stretches between two moments, clamped to the line. The search starts at
    /// the hint.
    pub(super) fn stretches(&self, (from, to): (i64, i64), hint: &mut Hint) -> Range<usize> {
        let last = self.moments.len().saturating_sub(1);
        let from =
            hinted_search::partition_point(&self.moments, &mut hint.0, |m| *m < from).min(last);
        hint.1 = hint.1.max(from);
        let to = hinted_search::partition_point(&self.moments, &mut hint.1, |m| *m < to);
        from..to.clamp(from, last)
    }

    /// Contexts and their ticks in some stretches; a context may occur several times.
    pub(super) fn sums_of(&self, stretches: Range<usize>) -> &[(u32, i64)] {
        let offset = |at: usize| self.offsets.get(at).copied().unwrap_or(0);
        &self.sums[offset(stretches.start)..offset(stretches.end)]
    }

    /// Contexts and ticks of the whole line.
    pub fn all(&self) -> &[(u32, i64)] {
        &self.sums
    }

    /// Replaces the numbers of contexts.
    pub(super) fn renumber(&mut self, numbers: &[u32]) {
        self.sums.iter_mut().for_each(|(context, _)| *context = numbers[*context as usize]);
    }
}

/// Builds the profiles of all lines.
#[derive(Debug)]
pub(super) struct Profiler<'c> {
    pub clock: &'c WholeTicks<'c>,
    pub lines: &'c Lines,
    pub waits: &'c Waits,
    /// Moments of each line, in any order.
    pub moments: &'c [Vec<i64>],
    /// For each line its entries into calls that ended waits, with the numbers of these waits,
    /// ascending.
    pub ended: &'c [Vec<(i64, u32)>],
}

impl<'a, 'c> CallObserver<'a> for Profiler<'c> {
    type OfRank = ProfilerOfRank<'c>;

    fn begin_rank(&self, rank: RankView<'a>) -> ProfilerOfRank<'c> {
        ProfilerOfRank {
            clock: self.clock,
            lines: self.lines,
            waits: self.waits,
            moments: self.moments,
            ended: self.ended,
            position: rank.position,
            functions: Functions::new(rank.trace),
            replaced: ReplacedModules::new(rank.trace),
            path_counts: PathCounts::new(rank.trace),
            contexts: LocalContexts::default(),
            profiles: Vec::new(),
            wait_contexts: Vec::new(),
            culprit_contexts: Vec::new(),
            line: LineState::default(),
        }
    }
}

/// Builds the profiles of one rank.
#[derive(Debug)]
pub(super) struct ProfilerOfRank<'c> {
    clock: &'c WholeTicks<'c>,
    lines: &'c Lines,
    waits: &'c Waits,
    moments: &'c [Vec<i64>],
    ended: &'c [Vec<(i64, u32)>],
    position: usize,
    functions: Functions,
    replaced: ReplacedModules,
    path_counts: PathCounts,
    contexts: LocalContexts,
    profiles: Vec<(u32, Profile)>,
    wait_contexts: Vec<(u32, u32)>,
    culprit_contexts: Vec<(u32, u32)>,
    line: LineState,
}

/// State of the line whose events are being read.
#[derive(Debug, Default)]
struct LineState {
    number: u32,
    /// Up to when its time has been added.
    at: i64,
    /// Numbers and waits of calls and polls, by descending begin, so that the next one is last.
    waits: Vec<(u32, Wait)>,
    /// The program's own stretches since the last call: the end of each, and what the program did.
    gap: Vec<(i64, Gap)>,
    before: Option<LocalSite>,
    /// Position of the next wait that its calls ended.
    next_ended: usize,
    regions: Vec<u32>,
    /// Ticks of polls that have not been added yet: waiting with a culprit, waiting without one,
    /// transfer.
    pending_polls: [i64; 3],
    polls_site: LocalSite,
    /// The call right before, with its numbers of waits, and of culprits' calls.
    last_call: Option<(LocalSite, [usize; 2])>,
    profile: Profile,
    /// The stretch being filled, and its sums so far.
    stretch: usize,
    sums: Vec<(u32, i64)>,
}

/// What the program did between two calls.
#[derive(Debug, Clone, Copy)]
enum Gap {
    /// Its own code, in the innermost open region if there is one.
    Code(Option<u32>),
    Context(LocalContext),
}

impl LineState {
    fn begin(
        number: u32,
        (begin, end): (i64, i64),
        moments: &[i64],
        waits: impl Iterator<Item = (u32, Wait)>,
    ) -> Self {
        let inside = |moment: &&i64| (begin..=end).contains(*moment);
        let mut moments: Vec<i64> = moments.iter().filter(inside).copied().collect();
        moments.extend([begin, end]);
        // The stable sort merges ascending runs.
        moments.sort();
        moments.dedup();
        let in_calls = |(_, wait): &(u32, Wait)| wait.begin >= begin && wait.until <= end;
        let mut waits: Vec<(u32, Wait)> = waits.filter(in_calls).collect();
        waits.sort_unstable_by_key(|(_, wait)| std::cmp::Reverse((wait.begin, wait.left)));
        let profile = Profile { moments, offsets: vec![0], sums: Vec::new() };
        Self { number, at: begin, waits, profile, ..Self::default() }
    }

    /// Adds time in a context, from where the line has got to.
    fn add(&mut self, context: u32, to: i64) {
        while self.at < to {
            let Some(end) = self.profile.moments.get(self.stretch + 1).copied() else { return };
            let until = end.min(to);
            let ticks = until - self.at;
            match self.sums.iter_mut().find(|(other, _)| *other == context) {
                Some((_, sum)) => *sum += ticks,
                None => self.sums.push((context, ticks)),
            }
            self.at = until;
            if until == end {
                self.close_stretch();
            }
        }
    }

    fn close_stretch(&mut self) {
        self.profile.sums.append(&mut self.sums);
        self.profile.offsets.push(self.profile.sums.len());
        self.stretch += 1;
    }

    /// End of the program's own stretches so far.
    fn gap_end(&self) -> i64 {
        self.gap.last().map_or(self.at, |(until, _)| *until)
    }

    /// Adds pending polls, then the program's own code, up to a moment.
    fn fill_gap_to(&mut self, to: i64) {
        const CONTEXTS: [u32; 2] = [WAITING, WAITING_FOR_UNKNOWN];
        for at in 0..self.pending_polls.len() {
            let from = self.gap_end();
            let ticks = self.pending_polls[at].min(to - from);
            if ticks > 0 {
                self.pending_polls[at] -= ticks;
                let context = match CONTEXTS.get(at) {
                    Some(fixed) => LocalContext::Fixed(*fixed),
                    None => LocalContext::Transfer(self.polls_site),
                };
                self.gap.push((from + ticks, Gap::Context(context)));
            }
        }
        if to > self.gap_end() {
            self.gap.push((to, Gap::Code(self.regions.last().copied())));
        }
    }

    /// Adds the program's stretches before a call, now that the call is known.
    fn settle(&mut self, next: Option<LocalSite>, contexts: &mut LocalContexts) {
        let between = LocalContext::Between(self.before, next);
        let mut stretches = std::mem::take(&mut self.gap);
        for (until, gap) in stretches.drain(..) {
            let context = match gap {
                Gap::Code(Some(region)) => LocalContext::Region(region),
                Gap::Code(None) => between,
                Gap::Context(context) => context,
            };
            self.add(contexts.number(context), until);
        }
        // Its memory is used again.
        self.gap = stretches;
    }

    /// The wait of the call or run of polls with this begin and end.
    fn wait_of(&mut self, begin: i64, end: i64) -> Option<(u32, Wait)> {
        while self.waits.last().is_some_and(|(_, wait)| wait.begin < begin) {
            self.waits.pop();
        }
        let is_it = |(_, wait): &&(u32, Wait)| wait.begin == begin && wait.left == end;
        self.waits.iter().rev().take(4).find(is_it).copied()
    }
}

fn fixed_of(wait: &Wait) -> u32 {
    if wait.has_culprit() { WAITING } else { WAITING_FOR_UNKNOWN }
}

/// Most stretches between region markers that are held back until the next call.
const MAX_PENDING: usize = 1 << 16;

/// What the profiler found on one rank.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RankProfile {
    /// The rank's contexts by their numbers.
    pub contexts: Vec<LocalContext>,
    /// By line.
    pub profiles: Vec<(u32, Profile)>,
    /// Numbers of waits, and the contexts of the waiting calls.
    pub wait_contexts: Vec<(u32, u32)>,
    /// Numbers of waits, and the contexts of the culprits' calls that ended them.
    pub culprit_contexts: Vec<(u32, u32)>,
    /// Its calls with and without paths.
    pub path_counts: PathCounts,
    /// What its threads did together, if it has several; added later.
    pub of_threads: Option<RankTime>,
}

impl ProfilerOfRank<'_> {
    /// What was found, when all events are read.
    pub fn finish(mut self) -> RankProfile {
        self.add_silent_line();
        let Self { contexts, profiles, wait_contexts, culprit_contexts, path_counts, .. } = self;
        let contexts = contexts.into_all();
        RankProfile {
            contexts,
            profiles,
            wait_contexts,
            culprit_contexts,
            path_counts,
            of_threads: None,
        }
    }

    /// Adds a line that was outside MPI all the time, for a rank without events.
    fn add_silent_line(&mut self) {
        let number = self.lines.first_of(self.position);
        if self.profiles.is_empty() {
            let line = &self.lines.all[number as usize];
            let moments = &self.moments[number as usize];
            self.line =
                LineState::begin(number, (line.begin, line.end), moments, std::iter::empty());
            self.finish_line();
        }
    }

    fn finish_line(&mut self) {
        let end = self.line.profile.moments.last().copied().unwrap_or(0);
        self.line.fill_gap_to(end);
        self.line.settle(None, &mut self.contexts);
        let mut line = std::mem::take(&mut self.line);
        if line.stretch + 1 < line.profile.moments.len() {
            line.close_stretch();
        }
        self.profiles.push((line.number, line.profile));
    }

    /// Adds the program's own code up to a marker. If very many markers follow each other without a
    /// call, the stretches are added without waiting for the next call.
    fn fill_gap_to_marker(&mut self, to: i64) {
        self.line.fill_gap_to(to);
        if self.line.gap.len() > MAX_PENDING {
            self.line.settle(None, &mut self.contexts);
        }
    }

    fn call(&mut self, site: LocalSite, begin: i64, end: i64) {
        let line = &mut self.line;
        line.fill_gap_to(begin);
        line.settle(Some(site), &mut self.contexts);
        line.before = Some(site);
        line.last_call = Some((site, [self.wait_contexts.len(), self.culprit_contexts.len()]));
        self.path_counts.add(site);
        let end = end.max(begin);
        let transfer = self.contexts.number(LocalContext::Transfer(site));
        let ended = &self.ended[line.number as usize];
        while let Some((moment, wait)) = ended.get(line.next_ended).filter(|of| of.0 <= begin) {
            if *moment == begin {
                self.culprit_contexts.push((*wait, transfer));
            }
            line.next_ended += 1;
        }
        if let Some((number, wait)) = line.wait_of(begin, end) {
            self.wait_contexts.push((number, transfer));
            line.add(self.contexts.number(LocalContext::Fixed(fixed_of(&wait))), wait.until);
        }
        line.add(transfer, end);
    }

    /// Receives the path of the call right before.
    fn path_of_last_call(&mut self, path: u32) {
        let Some((site, [waits, ended])) = self.line.last_call else { return };
        self.path_counts.add_path(site, path);
        let (waits, ended) =
            (&mut self.wait_contexts[waits..], &mut self.culprit_contexts[ended..]);
        if !waits.is_empty() || !ended.is_empty() {
            let on_path = self.contexts.number(LocalContext::OnPath(site, path));
            waits.iter_mut().chain(ended).for_each(|(_, context)| *context = on_path);
        }
    }

    fn polls(&mut self, site: LocalSite, (begin, end): (i64, i64), inside: i64) {
        let line = &mut self.line;
        line.fill_gap_to(begin);
        let wait = line.wait_of(begin, end);
        let waited = wait.map_or(0, |(_, wait)| wait.ticks.min(inside));
        if let Some((number, wait)) = wait {
            self.wait_contexts.push((number, self.contexts.number(LocalContext::Transfer(site))));
            line.pending_polls[fixed_of(&wait) as usize] += waited;
        }
        line.pending_polls[2] += inside - waited;
        line.polls_site = site;
    }
}

impl<'a> RankObserver<'a> for ProfilerOfRank<'_> {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        let Some(number) = self.lines.of(self.position, thread.thread.number) else { return };
        let line = &self.lines.all[number as usize];
        let (moments, waits) = (&self.moments[number as usize], self.waits.of(number));
        let waits = (self.waits.first_of(number)..).zip(waits.iter().copied());
        self.line = LineState::begin(number, (line.begin, line.end), moments, waits);
    }

    fn span(&mut self, span: &Span) {
        let at = |ticks| self.clock.at(self.position, ticks);
        let (begin, end) = (at(span.begin_ticks), at(span.end_ticks));
        let address = span.site.map_or(0, |(address, _)| address);
        let site = |function| self.replaced.site(function, address, span.begin_ticks);
        if !matches!(span.kind, SpanKind::Tool) {
            self.line.last_call = None;
        }
        match span.kind {
            SpanKind::Call(function) => match self.functions.entry(function).1 {
                Activity::Mpi => self.call(site(function), begin, end),
                Activity::Tool | Activity::Compute | Activity::Own => {}
            },
            SpanKind::Polls { function, inside_ticks, .. } => {
                let inside = self.clock.ticks_of(self.position, inside_ticks);
                self.polls(site(function), (begin, end), inside.clamp(0, end - begin));
            }
            SpanKind::Tool => {
                if span.payload[0] as u32 == ToolReason::Path as u32 {
                    self.path_of_last_call((span.payload[0] >> 32) as u32);
                }
                self.line.fill_gap_to(begin);
                if end > self.line.gap_end() {
                    self.line.gap.push((end, Gap::Context(LocalContext::Fixed(RECORDER))));
                }
            }
            SpanKind::RegionBegin(id) => {
                self.fill_gap_to_marker(begin);
                self.line.regions.push(id);
            }
            SpanKind::RegionEnd(id) => {
                self.fill_gap_to_marker(begin);
                if let Some(at) = self.line.regions.iter().rposition(|open| *open == id) {
                    self.line.regions.truncate(at);
                }
            }
            SpanKind::Summed { activity, .. } => {
                self.line.fill_gap_to(begin);
                match activity {
                    Activity::Mpi => {
                        self.line.gap.push((end, Gap::Context(LocalContext::Fixed(TOTALS))));
                    }
                    Activity::Tool => {
                        self.line.gap.push((end, Gap::Context(LocalContext::Fixed(RECORDER))));
                    }
                    Activity::Compute | Activity::Own => self.line.fill_gap_to(end),
                }
            }
        }
    }

    fn end_thread(&mut self) {
        self.finish_line();
    }
}
