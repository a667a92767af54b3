//! Divides a thread's stretch into segments without gaps, each with one activity.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trace_format::functions::{FIRST_FUNCTION, is_light};
use trace_format::meaning::{Class, Meaning};

use crate::trace::RankTrace;

use super::spans::{Activity, Span, SpanKind, Spans};

/// What counts as computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ComputeMode {
    /// Time outside MPI calls and the recorder.
    Outside,
    /// Time in interposed compute functions.
    Blas,
    /// Time in the program's regions, outside MPI calls and the recorder.
    Regions,
}

impl ComputeMode {
    /// Its name in the file header and the JSON report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Blas => "blas",
            Self::Regions => "regions",
        }
    }

    /// The mode with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        // The segmenter handles the names in `regions=NAME,…`.
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
    /// For each function: whether it is an interposed compute function, and the activity of time
    /// inside it. Time in light functions counts as the program's own.
    functions: Vec<(bool, Activity)>,
    /// Regions that count as computation; `None` for all.
    regions: Option<BTreeSet<u32>>,
}

impl Functions {
    /// From a rank's function names and compute mode.
    pub fn new(trace: &RankTrace) -> Self {
        let chosen = trace.file.header.compute.strip_prefix("regions=");
        let regions = chosen.map(|chosen| {
            let chosen: Vec<&str> = chosen.split(',').collect();
            let named = trace.facts.regions.iter();
            named.filter(|(_, name)| chosen.contains(&name.as_str())).map(|(id, _)| *id).collect()
        });
        let names = trace.file.function_names().iter();
        let entry =
            |name: &String| (Meaning::by_name(name).class == Class::Compute, activity_of(name));
        Self(Arc::new(Table { functions: names.map(entry).collect(), regions }))
    }

    /// Whether a function is an interposed compute function, and the activity of time inside it.
    #[inline]
    pub fn entry(&self, function: u16) -> (bool, Activity) {
        let index = usize::from(function.saturating_sub(FIRST_FUNCTION));
        self.0.functions.get(index).copied().unwrap_or((false, Activity::Mpi))
    }

    /// Whether a region counts as computation with `--compute regions`.
    fn counts(&self, region: u32) -> bool {
        self.0.regions.as_ref().is_none_or(|regions| regions.contains(&region))
    }
}

fn activity_of(name: &str) -> Activity {
    match Meaning::by_name(name).class {
        _ if is_light(name) => Activity::Own,
        Class::Compute => Activity::Compute,
        _ => Activity::Mpi,
    }
}

/// A piece of a thread's stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Counter at its start.
    pub begin_ticks: u64,
    /// Counter at its end.
    pub end_ticks: u64,
    /// What the thread does during it.
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

/// Divides a stretch into segments, span by span.
#[derive(Debug)]
pub struct Segmenter {
    functions: Functions,
    at_ticks: u64,
    end_ticks: u64,
    open_regions: u64,
    /// Time inside polls that has not become segments yet. For a run of polls only the total time
    /// in MPI is known; it is placed at the start of the run.
    polls_ticks: u64,
}

impl Segmenter {
    /// Divides the stretch from `begin_ticks` to `end_ticks`.
    pub fn new(begin_ticks: u64, end_ticks: u64, functions: &Functions) -> Self {
        let functions = functions.clone();
        Self { functions, at_ticks: begin_ticks, end_ticks, open_regions: 0, polls_ticks: 0 }
    }

    /// The moment up to which there are segments, and the ticks inside polls still to come.
    pub fn state(&self) -> (u64, u64) {
        (self.at_ticks, self.polls_ticks)
    }

    /// Resumes from a [`Segmenter::state`]; open regions are unknown.
    pub fn resume(
        (at_ticks, polls_ticks): (u64, u64),
        end_ticks: u64,
        functions: &Functions,
    ) -> Self {
        Self { polls_ticks, ..Self::new(at_ticks, end_ticks, functions) }
    }

    /// Advances to the end of a call without emitting segments, if only the program's own code
    /// comes before the call. Returns the ticks of that code, and whether a region is open. `None`
    /// if it is not that simple.
    #[inline]
    pub fn skip_call(&mut self, begin_ticks: u64, end_ticks: u64) -> Option<(u64, bool)> {
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

    /// Emits pending time inside polls, then the program's own code, up to a moment.
    #[inline]
    fn own_until(&mut self, to_ticks: u64, emit: &mut impl FnMut(Segment)) {
        if self.polls_ticks > 0 {
            let polls = to_ticks.min(self.at_ticks.saturating_add(self.polls_ticks));
            if let Some(polls) = self.advance(polls, Activity::Mpi) {
                self.polls_ticks -= polls.end_ticks - polls.begin_ticks;
                emit(polls);
            }
        }
        if let Some(own) = self.advance(to_ticks, Activity::Own) {
            emit(own);
        }
    }

    /// Emits the segments that a span completes, at most three in order: what lies before it, and
    /// the span itself.
    #[inline]
    pub fn push(&mut self, span: &Span, mut emit: impl FnMut(Segment)) {
        self.own_until(span.begin_ticks, &mut emit);
        let activity = match span.kind {
            SpanKind::Tool => Activity::Tool,
            SpanKind::Call(function) => self.functions.entry(function).1,
            SpanKind::Polls { inside_ticks, .. } => {
                // Several runs of polls may be in progress at once.
                self.polls_ticks = self.polls_ticks.saturating_add(inside_ticks);
                return;
            }
            SpanKind::Summed { activity, in_region, open_regions, .. } => {
                self.open_regions = u64::from(in_region);
                if let Some(summed) = self.advance(span.end_ticks, activity) {
                    emit(summed);
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
            emit(itself);
        }
    }

    /// Emits the rest of the stretch after the last span, at most two segments.
    pub fn finish(&mut self, mut emit: impl FnMut(Segment)) {
        self.own_until(self.end_ticks, &mut emit);
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
    /// The segments of a thread; without spans, of a thread that has no events.
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
                    // A second call finds nothing left of the stretch.
                    return self.completed.pop_front();
                }
            }
        }
    }
}
