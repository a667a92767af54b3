//! A thread's stretch without holes: spans come in, segments that follow each other from the
//! stretch's begin to its end go out.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use trace_format::functions::{FIRST_FUNCTION, is_light};
use trace_format::meaning::{Class, Meaning};

use crate::trace::RankTrace;

use super::spans::{Activity, Span, SpanKind, Spans};

/// What counts as computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComputeMode {
    /// Time outside MPI calls and tool time.
    Outside,
    /// Time in interposed compute functions.
    Blas,
    /// Time in the program's regions, outside MPI calls and tool time.
    Regions,
}

impl ComputeMode {
    /// The name that the file header and the JSON report use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Blas => "blas",
            Self::Regions => "regions",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        // `regions=NAME,…`: which regions is the segmenter's affair.
        let name = if name.starts_with("regions=") { "regions" } else { name };
        [Self::Outside, Self::Blas, Self::Regions].into_iter().find(|mode| mode.name() == name)
    }

    /// Whether an activity is useful work.
    #[inline]
    pub fn is_useful(self, activity: Activity, in_region: bool) -> bool {
        let work = matches!(activity, Activity::Compute | Activity::Own);
        match self {
            Self::Outside => work,
            Self::Blas => activity == Activity::Compute,
            Self::Regions => work && in_region,
        }
    }
}

/// Which of a file's functions compute, and which of its regions count.
#[derive(Debug, Clone)]
pub struct Functions(Arc<Table>);

#[derive(Debug)]
struct Table {
    /// Of each function whether it computes, and what the time inside it is: small functions' time is the
    /// program's own.
    functions: Vec<(bool, Activity)>,
    /// Regions that are computation; `None` for all.
    regions: Option<BTreeSet<u32>>,
}

impl Functions {
    /// Of a rank's table of names and what it was recorded with.
    pub fn new(trace: &RankTrace) -> Self {
        let chosen = trace.file.header.compute.strip_prefix("regions=");
        let regions = chosen.map(|chosen| {
            let chosen: Vec<&str> = chosen.split(',').collect();
            let named = trace.facts.regions.iter();
            named.filter(|(_, name)| chosen.contains(&name.as_str())).map(|(id, _)| *id).collect()
        });
        let names = trace.file.function_names().iter();
        let entry = |name: &String| (Meaning::of(name).class == Class::Compute, activity_of(name));
        Self(Arc::new(Table { functions: names.map(entry).collect(), regions }))
    }

    /// Whether a function is an interposed compute function, and what the time inside it is.
    #[inline]
    pub fn entry(&self, function: u16) -> (bool, Activity) {
        let index = usize::from(function.saturating_sub(FIRST_FUNCTION));
        self.0.functions.get(index).copied().unwrap_or((false, Activity::Mpi))
    }

    /// Whether a region is computation with `--compute regions`.
    fn counts(&self, region: u32) -> bool {
        self.0.regions.as_ref().is_none_or(|regions| regions.contains(&region))
    }
}

fn activity_of(name: &str) -> Activity {
    match Meaning::of(name).class {
        _ if is_light(name) => Activity::Own,
        Class::Compute => Activity::Compute,
        _ => Activity::Mpi,
    }
}

/// A piece of a thread's stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Counter at its begin.
    pub begin_ticks: u64,
    /// Counter at its end.
    pub end_ticks: u64,
    /// What the thread does in it.
    pub activity: Activity,
    /// Whether a region of the program is open.
    pub in_region: bool,
}

impl Segment {
    /// Whether it is useful work.
    #[inline]
    pub fn is_useful(&self, mode: ComputeMode) -> bool {
        mode.is_useful(self.activity, self.in_region)
    }
}

/// Cuts a stretch into segments, span by span.
#[derive(Debug)]
pub struct Segmenter {
    functions: Functions,
    at_ticks: u64,
    end_ticks: u64,
    open_regions: u64,
    /// Time inside polls that has not become segments yet. How long a run of polls spent in MPI is
    /// known, where is not: it is laid at the run's begin.
    polls_ticks: u64,
}

impl Segmenter {
    /// Of the stretch from `begin_ticks` to `end_ticks`.
    pub fn new(begin_ticks: u64, end_ticks: u64, functions: &Functions) -> Self {
        let functions = functions.clone();
        Self { functions, at_ticks: begin_ticks, end_ticks, open_regions: 0, polls_ticks: 0 }
    }

    /// What has not become segments yet: from when on, and the ticks inside polls.
    pub fn state(&self) -> (u64, u64) {
        (self.at_ticks, self.polls_ticks)
    }

    /// As one that has come to a state; open regions are not known.
    pub fn resume(
        (at_ticks, polls_ticks): (u64, u64),
        end_ticks: u64,
        functions: &Functions,
    ) -> Self {
        Self { polls_ticks, ..Self::new(at_ticks, end_ticks, functions) }
    }

    /// Goes on to the end of a call that nothing else is told of before it begins; gives the program's own
    /// ticks before the call, and whether a region is open. `None` where that is not so simple.
    #[inline]
    pub fn go_over(&mut self, begin_ticks: u64, end_ticks: u64) -> Option<(u64, bool)> {
        let simple = self.polls_ticks == 0
            && self.at_ticks <= begin_ticks
            && begin_ticks <= end_ticks
            && end_ticks <= self.end_ticks;
        simple.then(|| {
            let own_ticks = begin_ticks - self.at_ticks;
            self.at_ticks = end_ticks;
            (own_ticks, self.open_regions > 0)
        })
    }

    #[inline]
    fn advance(&mut self, to_ticks: u64, activity: Activity) -> Option<Segment> {
        let end_ticks = to_ticks.min(self.end_ticks);
        (end_ticks > self.at_ticks).then(|| {
            let begin_ticks = std::mem::replace(&mut self.at_ticks, end_ticks);
            Segment { begin_ticks, end_ticks, activity, in_region: self.open_regions > 0 }
        })
    }

    /// Polls that are still owed, then the program's own code, up to a moment.
    #[inline]
    fn own_until(&mut self, to_ticks: u64, take: &mut impl FnMut(Segment)) {
        if self.polls_ticks > 0 {
            let polls = to_ticks.min(self.at_ticks.saturating_add(self.polls_ticks));
            if let Some(polls) = self.advance(polls, Activity::Mpi) {
                self.polls_ticks -= polls.end_ticks - polls.begin_ticks;
                take(polls);
            }
        }
        if let Some(own) = self.advance(to_ticks, Activity::Own) {
            take(own);
        }
    }

    /// Hands on the segments that a span completes, at most three in order: what lies before it, and
    /// the span itself.
    #[inline]
    pub fn push(&mut self, span: &Span, mut take: impl FnMut(Segment)) {
        self.own_until(span.begin_ticks, &mut take);
        let activity = match span.kind {
            SpanKind::Tool => Activity::Tool,
            SpanKind::Call(function) => self.functions.entry(function).1,
            SpanKind::Polls { inside_ticks, .. } => {
                // Runs may grow side by side.
                self.polls_ticks = self.polls_ticks.saturating_add(inside_ticks);
                return;
            }
            SpanKind::Summed { activity, in_region, open_regions, .. } => {
                self.open_regions = u64::from(in_region);
                if let Some(summed) = self.advance(span.end_ticks, activity) {
                    take(summed);
                }
                self.open_regions = open_regions;
                return;
            }
            SpanKind::RegionBegin(id) | SpanKind::RegionEnd(id) if !self.functions.counts(id) => {
                return;
            }
            SpanKind::RegionBegin(_) => {
                self.open_regions += 1;
                return;
            }
            SpanKind::RegionEnd(_) => {
                self.open_regions = self.open_regions.saturating_sub(1);
                return;
            }
        };
        if let Some(itself) = self.advance(span.end_ticks, activity) {
            take(itself);
        }
    }

    /// Hands on what is left of the stretch behind the last span, at most two segments.
    pub fn finish(&mut self, mut take: impl FnMut(Segment)) {
        self.own_until(self.end_ticks, &mut take);
    }
}

/// Iterates over a thread's segments.
#[derive(Debug)]
pub struct Segments<'a> {
    spans: Option<Spans<'a>>,
    segmenter: Segmenter,
    completed: VecDeque<Segment>,
}

impl<'a> Segments<'a> {
    /// Of a thread; of one without events when there are no spans.
    pub fn new(spans: Option<Spans<'a>>, segmenter: Segmenter) -> Self {
        Self { spans, segmenter, completed: VecDeque::new() }
    }
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        loop {
            if let Some(segment) = self.completed.pop_front() {
                return Some(segment);
            }
            let completed = &mut self.completed;
            match self.spans.as_mut().and_then(Iterator::next) {
                Some(span) => self.segmenter.push(&span, |segment| completed.push_back(segment)),
                None => {
                    self.spans = None;
                    self.segmenter.finish(|segment| completed.push_back(segment));
                    // Nothing is left of the stretch the second time.
                    return self.completed.pop_front();
                }
            }
        }
    }
}
