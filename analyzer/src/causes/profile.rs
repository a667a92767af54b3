//! Sums what each line did between the moments that matter, by context.
//!
//! Those moments are the begins and ends of waits, the delaying ranks' entries into the calls that ended
//! them, and the points where lines met. Only sums are kept between two moments, so memory grows
//! with waits, not with calls.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use trace_format::markers::ToolReason;

use crate::analysis::segments::Functions;
use crate::analysis::spans::{Span, SpanKind};
use crate::analysis::{CallObserver, RankObserver, RankView, ThreadView};
use crate::trace::samples::RankSamples;

use super::callers::PathCounts;
use super::contexts::{LocalContext, LocalContexts};
use super::hinted_search;
use super::integer_timeline::IntegerTimeline;
use super::line_contexts::{LineContexts, OwnCall, SpanReader, Stretch};
use super::lines::{Lines, has_several_threads};
use super::local_site::{LocalSite, ReplacedModules};
use super::waits::Waits;

/// Positions of the two moments that the last search found.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hint(usize, usize);

/// Most different BLAS, LAPACK and FFTW calls between two moments that are summed up.
const MAX_DIFFERENT_CALLS: usize = 16;

/// The time of one line, or of a rank, by context.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Profile {
    /// Ascending, from the line's begin to its end.
    moments: Vec<i64>,
    /// Index of the first sum of each stretch between two moments; one more entry ends the last.
    offsets: Vec<u32>,
    /// Context and ticks, of each stretch and then of the whole line. Nearly all ticks fit into 32 bits; of
    /// others, the context is marked as [`LONG`], and the number is an index into `long`.
    sums: Vec<(u32, u32)>,
    long: Vec<i64>,
    /// What of that lies in BLAS, LAPACK and FFTW calls, ascending by stretch.
    in_calls: Vec<InCall>,
    /// Samples of the line's code, by time.
    samples: Vec<PlacedSample>,
}

/// Marks the context of a sum in `long`.
const LONG: u32 = 1 << 31;

/// A sample of a line's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlacedSample {
    /// Position of the stretch.
    stretch: u32,
    pub context: u32,
    /// Number of the stack on the rank.
    pub stack: u32,
}

/// Time of a stretch between two moments in a BLAS, LAPACK or FFTW call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InCall {
    /// Position of the stretch.
    stretch: u32,
    /// The context that it is a part of, and that of the call.
    pub within: u32,
    pub call: u32,
    pub ticks: i64,
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
    pub(super) fn sums_of(
        &self,
        stretches: Range<usize>,
    ) -> impl Iterator<Item = (u32, i64)> + Clone {
        let offset = |at: usize| self.offsets.get(at).map_or(0, |offset| *offset as usize);
        let from_to = match stretches == self.whole() {
            true => offset(stretches.end)..self.sums.len(),
            false => offset(stretches.start)..offset(stretches.end),
        };
        self.sums[from_to].iter().map(|(context, ticks)| match context & LONG {
            0 => (*context, i64::from(*ticks)),
            _ => (context & !LONG, self.long[*ticks as usize]),
        })
    }

    /// Contexts and ticks of the whole line.
    pub fn all(&self) -> impl Iterator<Item = (u32, i64)> + Clone {
        self.sums_of(self.whole())
    }

    /// All of its stretches.
    fn whole(&self) -> Range<usize> {
        0..self.offsets.len().saturating_sub(1)
    }

    fn add_sum(&mut self, (context, ticks): (u32, i64)) {
        self.sums.push(match u32::try_from(ticks) {
            Ok(ticks) => (context, ticks),
            Err(_) => {
                self.long.push(ticks);
                (context | LONG, self.long.len() as u32 - 1)
            }
        });
    }

    /// Time in BLAS, LAPACK and FFTW calls in some stretches.
    pub(super) fn in_calls(&self, stretches: &Range<usize>) -> &[InCall] {
        let at =
            |stretch: usize| self.in_calls.partition_point(|of| (of.stretch as usize) < stretch);
        &self.in_calls[at(stretches.start)..at(stretches.end)]
    }

    /// All samples of its code.
    pub(super) fn samples(&self) -> &[PlacedSample] {
        &self.samples
    }

    /// Which of the samples lie in some stretches.
    pub(super) fn sampled_in(&self, stretches: &Range<usize>) -> Range<usize> {
        let at =
            |stretch: usize| self.samples.partition_point(|of| (of.stretch as usize) < stretch);
        at(stretches.start)..at(stretches.end)
    }

    /// Whether there is such time.
    pub(super) fn has_calls(&self) -> bool {
        !self.in_calls.is_empty()
    }

    /// Adds a BLAS, LAPACK or FFTW call, a parallel region or calls on a file; roughly in ascending order of time.
    fn add_call(&mut self, of: &OwnCall, hint: &mut usize) {
        let first =
            hinted_search::partition_point(&self.moments, hint, |moment| *moment <= of.from);
        for stretch in first.saturating_sub(1)..self.moments.len().saturating_sub(1) {
            let (begin, end) = (self.moments[stretch], self.moments[stretch + 1]);
            if begin >= of.to {
                break;
            }
            let ticks = of.to.min(end) - of.from.max(begin);
            if ticks <= 0 {
                continue;
            }
            let stretch = stretch as u32;
            let same = |other: &&mut InCall| {
                (other.stretch, other.within, other.call) == (stretch, of.within, of.call)
            };
            // Few different calls lie between two moments. A region ends behind the calls in it.
            let next = self.in_calls.iter().rposition(|other| other.stretch <= stretch);
            let next = next.map_or(0, |last| last + 1);
            let before = &mut self.in_calls[..next];
            let before = before.iter_mut().rev().take_while(|other| other.stretch == stretch);
            match before.take(MAX_DIFFERENT_CALLS).find(same) {
                Some(other) => other.ticks += ticks,
                None => {
                    let (within, call) = (of.within, of.call);
                    self.in_calls.insert(next, InCall { stretch, within, call, ticks });
                }
            }
        }
    }

    /// Replaces the numbers of contexts.
    pub(super) fn renumber(&mut self, numbers: &[u32]) {
        for of in &mut self.in_calls {
            (of.within, of.call) = (numbers[of.within as usize], numbers[of.call as usize]);
        }
        for (context, _) in &mut self.sums {
            *context = numbers[(*context & !LONG) as usize] | *context & LONG;
        }
        self.samples.iter_mut().for_each(|of| of.context = numbers[of.context as usize]);
    }
}

/// A profile while its stretches come.
#[derive(Debug, Default)]
pub(super) struct ProfileBuilder {
    profile: Profile,
    /// Up to when time has been added.
    at: i64,
    /// The stretch between two moments that is being filled, and its sums so far.
    stretch: usize,
    sums: Vec<(u32, i64)>,
    /// Sums of the stretches before it, by context.
    before: Vec<i64>,
    /// Position of the last BLAS, LAPACK or FFTW call.
    call_hint: usize,
    /// When samples were taken and their stacks, the next one last.
    samples: Vec<(i64, u32)>,
}

impl ProfileBuilder {
    /// From `begin` to `end`, cut at those of the ascending moments that lie between them.
    pub fn new((begin, end): (i64, i64), mut moments: Vec<i64>) -> Self {
        moments.retain(|moment| (begin..=end).contains(moment));
        if moments.first() != Some(&begin) {
            moments.insert(0, begin);
        }
        if moments.last() != Some(&end) {
            moments.push(end);
        }
        let mut offsets = Vec::with_capacity(moments.len());
        offsets.push(0);
        let profile = Profile { moments, offsets, ..Profile::default() };
        Self { profile, at: begin, ..Self::default() }
    }

    /// The same with samples, given by their times and stacks, ascending.
    fn with_samples(self, samples: impl DoubleEndedIterator<Item = (i64, u32)>) -> Self {
        let begin = self.at;
        let samples = samples.rev().filter(|(at, _)| *at >= begin).collect();
        Self { samples, ..self }
    }

    /// Adds time in a context, from where the profile has got to.
    pub fn add(&mut self, context: u32, to: i64) {
        while self.at < to {
            let Some(end) = self.profile.moments.get(self.stretch + 1).copied() else { return };
            let until = end.min(to);
            let ticks = until - self.at;
            match self.sums.iter_mut().find(|(other, _)| *other == context) {
                Some((_, sum)) => *sum += ticks,
                None => self.sums.push((context, ticks)),
            }
            self.at = until;
            while let Some((_, stack)) = self.samples.pop_if(|(at, _)| *at < until) {
                let stretch = self.stretch as u32;
                self.profile.samples.push(PlacedSample { stretch, context, stack });
            }
            if until == end {
                self.close_stretch();
            }
        }
    }

    /// Adds BLAS, LAPACK and FFTW calls, and forgets them.
    pub fn add_calls(&mut self, calls: &mut Vec<OwnCall>) {
        if calls.is_empty() {
            return;
        }
        calls.drain(..).for_each(|of| self.profile.add_call(&of, &mut self.call_hint));
    }

    fn close_stretch(&mut self) {
        for (context, ticks) in self.sums.drain(..) {
            let at = context as usize;
            if at >= self.before.len() {
                self.before.resize(at + 1, 0);
            }
            self.before[at] += ticks;
            self.profile.add_sum((context, ticks));
        }
        self.profile.offsets.push(self.profile.sums.len() as u32);
        self.stretch += 1;
    }

    pub fn finish(mut self) -> Profile {
        if self.stretch + 1 < self.profile.moments.len() {
            self.close_stretch();
        }
        let all = (0..).zip(self.before).filter(|(_, ticks)| *ticks > 0);
        all.for_each(|sum| self.profile.add_sum(sum));
        self.profile.sums.shrink_to_fit();
        self.profile
    }
}

/// Builds the profiles of all lines.
#[derive(Debug)]
pub(super) struct Profiler<'c> {
    pub clock: &'c IntegerTimeline<'c>,
    pub lines: &'c Lines,
    pub waits: &'c Waits,
    /// Moments of each line, ascending, for its profile to take.
    pub moments: &'c [Mutex<Vec<i64>>],
    /// For each line its entries into calls that ended waits, with the numbers of these waits,
    /// ascending.
    pub ended: &'c [Vec<(i64, u32)>],
}

impl<'a, 'c> CallObserver<'a> for Profiler<'c> {
    type OfRank = ProfilerOfRank<'a, 'c>;

    fn begin_rank(&self, rank: RankView<'a>) -> ProfilerOfRank<'a, 'c> {
        let functions = Functions::new(rank.trace);
        ProfilerOfRank {
            lines: self.lines,
            waits: self.waits,
            moments: self.moments,
            ended: self.ended,
            reader: SpanReader {
                clock: self.clock,
                position: rank.position,
                functions,
                replaced: ReplacedModules::new(rank.trace),
            },
            path_counts: PathCounts::new(rank.trace),
            samples: rank.trace.samples(),
            contexts: LocalContexts::default(),
            keeps_moments: has_several_threads(rank),
            profiles: Vec::new(),
            wait_contexts: Vec::new(),
            delayed_by_contexts: Vec::new(),
            line: LineState::default(),
        }
    }
}

/// Builds the profiles of one rank.
#[derive(Debug)]
pub(super) struct ProfilerOfRank<'a, 'c> {
    lines: &'c Lines,
    waits: &'c Waits,
    moments: &'c [Mutex<Vec<i64>>],
    ended: &'c [Vec<(i64, u32)>],
    reader: SpanReader<'c>,
    path_counts: PathCounts,
    samples: &'a RankSamples,
    contexts: LocalContexts,
    /// Whether the moments are needed again, for what the rank's threads did together.
    keeps_moments: bool,
    profiles: Vec<(u32, Profile)>,
    wait_contexts: Vec<(u32, u32)>,
    delayed_by_contexts: Vec<(u32, u32)>,
    line: LineState,
}

/// No panic leaves moments half changed.
pub(super) fn lock(moments: &Mutex<Vec<i64>>) -> MutexGuard<'_, Vec<i64>> {
    moments.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State of the line whose events are being read.
#[derive(Debug, Default)]
struct LineState {
    number: u32,
    end: i64,
    contexts: LineContexts,
    profile: ProfileBuilder,
    /// Position of the next wait that its calls ended.
    next_ended: usize,
    /// The call right before, with its numbers of waits, and of delaying ranks' calls.
    last_call: Option<(LocalSite, [usize; 2])>,
}

/// What the profiler found on one rank.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RankProfile {
    /// The rank's contexts by their numbers.
    pub contexts: Vec<LocalContext>,
    /// By line.
    pub profiles: Vec<(u32, Profile)>,
    /// Numbers of waits, and the contexts of the waiting calls.
    pub wait_contexts: Vec<(u32, u32)>,
    /// Numbers of waits, and the contexts of the delaying ranks' calls that ended them.
    pub delayed_by_contexts: Vec<(u32, u32)>,
    /// Its calls with and without paths.
    pub path_counts: PathCounts,
    /// What its threads did together, if it has several; added later.
    pub together: Option<Together>,
}

/// What the threads of a rank did together.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Together {
    pub profile: Profile,
    /// Numbers of its waits, and the ticks of each that count as waiting of the rank.
    pub waited: Vec<(u32, i64)>,
}

impl ProfilerOfRank<'_, '_> {
    /// What was found, when all events are read.
    pub fn finish(mut self) -> RankProfile {
        self.add_silent_line();
        let Self { contexts, profiles, wait_contexts, delayed_by_contexts, path_counts, .. } = self;
        let contexts = contexts.into_all();
        RankProfile {
            contexts,
            profiles,
            wait_contexts,
            delayed_by_contexts,
            path_counts,
            together: None,
        }
    }

    /// Adds the first line if it has no events: it was outside MPI all the time.
    fn add_silent_line(&mut self) {
        let first = self.lines.first_of(self.reader.position);
        if !self.profiles.iter().any(|(number, _)| *number == first) {
            self.begin_line(first);
            self.end_thread();
        }
    }

    fn begin_line(&mut self, number: u32) {
        let moments = self.moments_of(number);
        let line = &self.lines.all[number as usize];
        let stretch = (line.begin, line.end);
        let waits = (self.waits.first_of(number)..).zip(self.waits.on_line(number).iter().copied());
        let SpanReader { clock, position, .. } = self.reader;
        // Threads that follow each other may have one number.
        let sampled = self.samples.threads.iter().filter(|of| of.thread == Some(line.thread));
        let samples = sampled.flat_map(|of| &of.samples);
        let samples = samples.map(|(ticks, stack)| (clock.at(position, *ticks), *stack));
        self.line = LineState {
            number,
            end: line.end,
            contexts: LineContexts::new(stretch, waits).with_own_calls(),
            profile: ProfileBuilder::new(stretch, moments).with_samples(samples),
            next_ended: 0,
            last_call: None,
        };
    }

    /// Takes the moments of a line: of threads that follow each other, the last one's profile counts.
    fn moments_of(&mut self, number: u32) -> Vec<i64> {
        if self.keeps_moments {
            return lock(&self.moments[number as usize]).clone();
        }
        let before = self.profiles.iter().position(|(other, _)| *other == number);
        match before.map(|at| self.profiles.swap_remove(at)) {
            Some((_, profile)) => profile.moments,
            None => std::mem::take(&mut lock(&self.moments[number as usize])),
        }
    }

    /// Receives the path of the call right before.
    fn path_of_last_call(&mut self, path: u32) {
        let Some((site, [waits, ended])) = self.line.last_call else { return };
        self.path_counts.add_path(site, path);
        let (waits, ended) =
            (&mut self.wait_contexts[waits..], &mut self.delayed_by_contexts[ended..]);
        if !waits.is_empty() || !ended.is_empty() {
            let on_path = self.contexts.number(LocalContext::OnPath(site, path));
            waits.iter_mut().chain(ended).for_each(|(_, context)| *context = on_path);
        }
    }
}

impl<'a> RankObserver<'a> for ProfilerOfRank<'a, '_> {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        if let Some(number) = self.lines.number_of(self.reader.position, thread.thread.number) {
            self.begin_line(number);
        }
    }

    fn span(&mut self, span: &Span) {
        match span.kind {
            SpanKind::Tool if span.payload[0] as u32 == ToolReason::Path as u32 => {
                self.path_of_last_call((span.payload[0] >> 32) as u32);
            }
            SpanKind::Tool => {}
            _ => self.line.last_call = None,
        }
        let LineState { contexts, profile, number, next_ended, last_call, .. } = &mut self.line;
        let mut add = |stretch: Stretch| profile.add(stretch.context, stretch.to);
        let called = contexts.span(span, &self.reader, &mut self.contexts, &mut add);
        contexts.own_calls_done.iter_mut().for_each(|calls| profile.add_calls(calls));
        let Some(called) = called else { return };
        let numbers = [self.wait_contexts.len(), self.delayed_by_contexts.len()];
        self.wait_contexts.extend(called.wait.map(|wait| (wait, called.context)));
        if called.polls {
            return;
        }
        *last_call = Some((called.site, numbers));
        self.path_counts.add(called.site);
        let ended = &self.ended[*number as usize];
        while let Some((moment, wait)) = ended.get(*next_ended).filter(|of| of.0 <= called.begin) {
            if *moment == called.begin {
                self.delayed_by_contexts.push((*wait, called.context));
            }
            *next_ended += 1;
        }
    }

    fn end_thread(&mut self) {
        let LineState { number, end, mut contexts, mut profile, .. } =
            std::mem::take(&mut self.line);
        let mut add = |stretch: Stretch| profile.add(stretch.context, stretch.to);
        contexts.finish(end, &mut self.contexts, &mut add);
        contexts.own_calls_done.iter_mut().for_each(|calls| profile.add_calls(calls));
        self.profiles.push((number, profile.finish()));
    }
}

/// What every line and every rank did, by context.
#[derive(Debug, Default)]
pub struct Profiles {
    pub of_lines: Vec<Profile>,
    /// By the first line of each rank that has several, what its threads did together.
    pub(super) together: BTreeMap<u32, Profile>,
}

impl Profiles {
    /// What a rank did, over all its threads.
    pub fn of_rank(&self, lines: &Lines, position: usize) -> &Profile {
        let first = lines.first_of(position);
        self.together.get(&first).unwrap_or(&self.of_lines[first as usize])
    }
}
