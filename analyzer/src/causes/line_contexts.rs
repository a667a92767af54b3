//! What a line did, stretch by stretch: in which context it was, in order of time and without gaps.

use trace_format::file_calls::FileCallKind;
use trace_format::layout::TOOL;
use trace_format::markers::ToolReason;

use crate::analysis::segments::Functions;
use crate::analysis::spans::{Activity, Span, SpanKind};

use super::contexts::{
    LocalContext, LocalContexts, RECORDER, TOTALS, WAITING, WAITING_FOR_UNKNOWN,
};
use super::integer_timeline::IntegerTimeline;
use super::local_site::{LocalSite, ReplacedModules, on_files};
use super::wait::Wait;

/// A stretch of a line in one context, from where the stretch before it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Its end.
    pub to: i64,
    /// The context, as its rank numbers it.
    pub context: u32,
    /// Number of the wait that it belongs to.
    pub wait: Option<u32>,
}

/// What is needed to read the spans of a rank.
#[derive(Debug, Clone)]
pub(super) struct SpanReader<'c> {
    pub clock: &'c IntegerTimeline<'c>,
    /// Position of the rank in the run.
    pub position: usize,
    pub functions: Functions,
    pub replaced: ReplacedModules,
}

/// A call, or a run of polls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Called {
    pub site: LocalSite,
    /// Context of the time in it.
    pub context: u32,
    pub begin: i64,
    pub polls: bool,
    /// Number of its wait.
    pub wait: Option<u32>,
}

/// Follows a line's spans.
#[derive(Debug, Default)]
pub(super) struct LineContexts {
    /// Up to when its stretches are known.
    at: i64,
    /// Numbers and waits of calls and polls, by descending begin, so that the next one is last.
    waits: Vec<(u32, Wait)>,
    /// The program's own stretches since the last call: the end of each, and what the program did.
    gap: Vec<(i64, Gap)>,
    before: Option<LocalSite>,
    regions: Vec<u32>,
    /// Ticks of polls that have not been added yet: waiting with a delaying rank, waiting without one,
    /// transfer.
    pending_polls: [i64; 3],
    polls_site: LocalSite,
    polls_wait: Option<u32>,
    /// BLAS, LAPACK and FFTW calls, parallel regions and calls on files since the last MPI call, in the order of their
    /// events: begin, end, call, innermost open region.
    own_calls: Vec<(i64, i64, LocalSite, Option<u32>)>,
    /// The same once it is known in which contexts they lie, for whoever takes them from here; `None`
    /// if nobody does.
    pub own_calls_done: Option<Vec<OwnCall>>,
}

/// A BLAS, LAPACK or FFTW call, a parallel region or calls on a file, with contexts as its rank numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OwnCall {
    pub from: i64,
    pub to: i64,
    /// Where it lies: a region, or code between two MPI calls.
    pub within: u32,
    pub call: u32,
}

/// What the program did between two calls.
#[derive(Debug, Clone, Copy)]
enum Gap {
    /// Its own code, in the innermost open region if there is one.
    Code(Option<u32>),
    Context(LocalContext, Option<u32>),
}

/// Most stretches between region markers that are held back until the next call.
const MAX_PENDING: usize = 1 << 16;

fn fixed_of(wait: &Wait) -> u32 {
    if wait.has_delaying_rank() { WAITING } else { WAITING_FOR_UNKNOWN }
}

impl LineContexts {
    /// A line from `begin` to `end` with these of its waits.
    pub fn new((begin, end): (i64, i64), waits: impl Iterator<Item = (u32, Wait)>) -> Self {
        let in_calls = |(_, wait): &(u32, Wait)| wait.begin >= begin && wait.until <= end;
        let mut waits: Vec<(u32, Wait)> = waits.filter(in_calls).collect();
        waits.sort_unstable_by_key(|(_, wait)| std::cmp::Reverse((wait.begin, wait.left)));
        Self { at: begin, waits, ..Self::default() }
    }

    /// The same, which also passes on BLAS, LAPACK and FFTW calls.
    pub fn with_own_calls(self) -> Self {
        Self { own_calls_done: Some(Vec::new()), ..self }
    }

    /// Adds a span. Passes on the stretches that are known now; returns what was called.
    pub fn span(
        &mut self,
        span: &Span,
        reader: &SpanReader,
        contexts: &mut LocalContexts,
        take: &mut impl FnMut(Stretch),
    ) -> Option<Called> {
        let at = |ticks| reader.clock.at(reader.position, ticks);
        let (begin, end) = (at(span.begin_ticks), at(span.end_ticks));
        let address = span.site.map_or(0, |(address, _)| address);
        let site = |function| reader.replaced.site(function, address, span.begin_ticks);
        match span.kind {
            SpanKind::Call(function) if reader.functions.entry(function).1 == Activity::Mpi => {
                return Some(self.call(site(function), (begin, end), contexts, take));
            }
            SpanKind::Call(function) => {
                let computes = reader.functions.entry(function).1 == Activity::Compute;
                if computes {
                    self.own_call((begin, end), site(function), contexts, take);
                }
            }
            SpanKind::Polls { function, inside_ticks, .. } => {
                let inside = reader.clock.ticks_of(reader.position, inside_ticks);
                let inside = inside.clamp(0, end - begin);
                return Some(self.polls(site(function), (begin, end), inside, contexts));
            }
            SpanKind::Tool if span.payload[0] as u32 == ToolReason::Team as u32 => {
                // Of a region with MPI calls inside, what follows the last of them.
                let from = at(span.begin_ticks.saturating_sub(span.bytes)).max(self.at);
                self.own_call((from, begin), site(TOOL), contexts, take);
            }
            SpanKind::Tool if span.payload[0] as u32 == ToolReason::FileCalls as u32 => {
                let kind = FileCallKind::from_field(span.communicator);
                let kind = kind.filter(|_| span.communicator & FileCallKind::INSIDE_MPI == 0);
                if let Some(kind) = kind {
                    let end = at(span.begin_ticks.saturating_add(span.bytes));
                    self.own_call((begin, end), site(on_files(kind)), contexts, take);
                }
            }
            SpanKind::Tool => {
                self.fill_gap_to(begin);
                if end > self.gap_end() {
                    self.push_fixed(RECORDER, end);
                }
            }
            SpanKind::RegionBegin(id) => {
                self.fill_gap_to_marker(begin, contexts, take);
                self.regions.push(id);
            }
            SpanKind::RegionEnd(id) => {
                self.fill_gap_to_marker(begin, contexts, take);
                if let Some(at) = self.regions.iter().rposition(|open| *open == id) {
                    self.regions.truncate(at);
                }
            }
            SpanKind::Summed { activity, .. } => {
                self.fill_gap_to(begin);
                match activity {
                    Activity::Mpi => self.push_fixed(TOTALS, end),
                    Activity::Tool => self.push_fixed(RECORDER, end),
                    Activity::Compute | Activity::Own => self.fill_gap_to(end),
                }
            }
        }
        None
    }

    /// Adds a BLAS, LAPACK or FFTW call, a parallel region, or calls on a file.
    fn own_call(
        &mut self,
        (begin, end): (i64, i64),
        site: LocalSite,
        contexts: &mut LocalContexts,
        take: &mut impl FnMut(Stretch),
    ) {
        if self.own_calls_done.is_none() {
            return;
        }
        if self.own_calls.len() >= MAX_PENDING {
            self.fill_gap_to(begin);
            self.settle(None, contexts, take);
        }
        let region = self.regions.last().copied();
        self.own_calls.push((begin, end, site, region));
    }

    /// Passes on the last stretches of a line that ends then.
    pub fn finish(
        &mut self,
        end: i64,
        contexts: &mut LocalContexts,
        take: &mut impl FnMut(Stretch),
    ) {
        self.fill_gap_to(end);
        self.settle(None, contexts, take);
    }

    fn add(&mut self, stretch: Stretch, take: &mut impl FnMut(Stretch)) {
        if stretch.to > self.at {
            self.at = stretch.to;
            take(stretch);
        }
    }

    fn push_fixed(&mut self, context: u32, to: i64) {
        self.gap.push((to, Gap::Context(LocalContext::Fixed(context), None)));
    }

    /// End of the program's own stretches so far.
    fn gap_end(&self) -> i64 {
        self.gap.last().map_or(self.at, |(until, _)| *until)
    }

    /// Whether nothing but the program's own code lies between the last call and now, as nearly always.
    fn only_computes(&self) -> bool {
        self.gap.is_empty() && self.own_calls.is_empty() && self.pending_polls == [0; 3]
    }

    /// Adds the program's own code before a call, if there is nothing else.
    fn compute_to(
        &mut self,
        (to, next): (i64, LocalSite),
        contexts: &mut LocalContexts,
        take: &mut impl FnMut(Stretch),
    ) {
        if to > self.at {
            let between = || LocalContext::Between(self.before, Some(next));
            let context = self.regions.last().map_or_else(between, |of| LocalContext::Region(*of));
            self.add(Stretch { to, context: contexts.number(context), wait: None }, take);
        }
    }

    /// Adds pending polls, then the program's own code, up to a moment.
    fn fill_gap_to(&mut self, to: i64) {
        const CONTEXTS: [u32; 2] = [WAITING, WAITING_FOR_UNKNOWN];
        for at in 0..self.pending_polls.len() {
            let from = self.gap_end();
            let ticks = self.pending_polls[at].min(to - from);
            if ticks > 0 {
                self.pending_polls[at] -= ticks;
                let gap = match CONTEXTS.get(at) {
                    Some(fixed) => Gap::Context(LocalContext::Fixed(*fixed), self.polls_wait),
                    None => Gap::Context(LocalContext::Transfer(self.polls_site), None),
                };
                self.gap.push((from + ticks, gap));
            }
        }
        if to > self.gap_end() {
            self.gap.push((to, Gap::Code(self.regions.last().copied())));
        }
    }

    /// Adds the program's own code up to a marker. If very many markers follow each other without a
    /// call, the stretches are added without waiting for the next call.
    fn fill_gap_to_marker(
        &mut self,
        to: i64,
        contexts: &mut LocalContexts,
        take: &mut impl FnMut(Stretch),
    ) {
        self.fill_gap_to(to);
        if self.gap.len() > MAX_PENDING {
            self.settle(None, contexts, take);
        }
    }

    /// Adds the program's stretches before a call, now that the call is known.
    fn settle(
        &mut self,
        next: Option<LocalSite>,
        contexts: &mut LocalContexts,
        take: &mut impl FnMut(Stretch),
    ) {
        let between = LocalContext::Between(self.before, next);
        if let Some(done) = &mut self.own_calls_done {
            for (from, to, site, region) in self.own_calls.drain(..) {
                let within = contexts.number(region.map_or(between, LocalContext::Region));
                let call = contexts.number(LocalContext::Transfer(site));
                done.push(OwnCall { from, to, within, call });
            }
        }
        let mut stretches = std::mem::take(&mut self.gap);
        for (to, gap) in stretches.drain(..) {
            let (context, wait) = match gap {
                Gap::Code(Some(region)) => (LocalContext::Region(region), None),
                Gap::Code(None) => (between, None),
                Gap::Context(context, wait) => (context, wait),
            };
            self.add(Stretch { to, context: contexts.number(context), wait }, take);
        }
        // Its memory is used again.
        self.gap = stretches;
    }

    /// The wait of the call or run of polls with this begin and end.
    fn wait_of(&mut self, begin: i64, end: i64) -> Option<(u32, Wait)> {
        while self.waits.last().is_some_and(|(_, wait)| wait.begin < begin) {
            self.waits.pop();
        }
        self.waits.last().filter(|(_, next)| next.begin == begin)?;
        let is_it = |(_, wait): &&(u32, Wait)| wait.begin == begin && wait.left == end;
        self.waits.iter().rev().take(4).find(is_it).copied()
    }

    fn call(
        &mut self,
        site: LocalSite,
        (begin, end): (i64, i64),
        contexts: &mut LocalContexts,
        take: &mut impl FnMut(Stretch),
    ) -> Called {
        if self.only_computes() {
            self.compute_to((begin, site), contexts, take);
        } else {
            self.fill_gap_to(begin);
            self.settle(Some(site), contexts, take);
        }
        self.before = Some(site);
        let end = end.max(begin);
        let transfer = contexts.number(LocalContext::Transfer(site));
        let wait = self.wait_of(begin, end);
        if let Some((number, wait)) = wait {
            let context = contexts.number(LocalContext::Fixed(fixed_of(&wait)));
            self.add(Stretch { to: wait.until, context, wait: Some(number) }, take);
        }
        self.add(Stretch { to: end, context: transfer, wait: None }, take);
        Called {
            site,
            context: transfer,
            begin,
            polls: false,
            wait: wait.map(|(number, _)| number),
        }
    }

    fn polls(
        &mut self,
        site: LocalSite,
        (begin, end): (i64, i64),
        inside: i64,
        contexts: &mut LocalContexts,
    ) -> Called {
        self.fill_gap_to(begin);
        let wait = self.wait_of(begin, end);
        let waited = wait.map_or(0, |(_, wait)| wait.ticks.min(inside));
        if let Some((number, wait)) = wait {
            self.pending_polls[fixed_of(&wait) as usize] += waited;
            self.polls_wait = Some(number);
        }
        self.pending_polls[2] += inside - waited;
        self.polls_site = site;
        let context = contexts.number(LocalContext::Transfer(site));
        Called { site, context, begin, polls: true, wait: wait.map(|(number, _)| number) }
    }
}
