//! What is read of a run to find the causes of its waits, in passes that may be somebody else's.

use crate::analysis::{Analysis, ReadTogether, ReadsAlong};

use super::conditions::{ConditionCollector, Objects};
use super::integer_timeline::IntegerTimeline;
use super::iterations::{Loop, Symbols, SymbolsOfRank};
use super::lines::Lines;
use super::matched_conditions::{Limits, MatchedConditions};
use super::neighbours::Neighbours;
use super::semantics::CallSemantics;
use super::states::Unknown;
use super::windows::Windows;

/// Finds what calls waited for, and loops that may be iterations.
#[derive(Debug)]
pub(super) struct CauseSearch<'s, 'a> {
    pub(super) analysis: &'s Analysis<'a>,
    pub(super) clock: IntegerTimeline<'a>,
    pub(super) lines: Lines,
    semantics: CallSemantics,
    neighbours: Neighbours,
    windows: Windows,
    limits: Limits,
}

/// What was found in the whole run: on the first process, but loops on all.
#[derive(Debug, Default)]
pub(super) struct FoundCauses {
    pub(super) conditions: MatchedConditions,
    /// Of each rank.
    pub(super) loops: Vec<Vec<Loop>>,
    pub(super) unknown: Vec<Unknown>,
}

impl<'s, 'a> CauseSearch<'s, 'a> {
    /// Looks for about this many of the longest waits.
    pub(super) fn new(analysis: &'s Analysis<'a>, max_waits: usize) -> Self {
        let run = analysis.run;
        let clock = IntegerTimeline::new(run, analysis.timeline);
        let lines = Lines::new(analysis, &clock);
        let semantics = CallSemantics::new(run);
        let neighbours = Neighbours::new(run, analysis.communicators());
        let windows = Windows::new(run, analysis.communicators());
        let limits = Limits::new(max_waits);
        Self { analysis, clock, lines, semantics, neighbours, windows, limits }
    }

    fn collector(&self) -> ConditionCollector<'_, 'a> {
        let Self { lines, semantics, neighbours, windows, .. } = self;
        let objects = Objects { lines, semantics, neighbours, windows };
        ConditionCollector::new(self.analysis, &self.clock, objects, &self.limits)
    }

    /// Makes the passes itself.
    pub(super) fn read(&self) -> FoundCauses {
        let of_ranks = self.analysis.calls_then(&self.calls(), |calls| self.of_rank(calls));
        let sinks = self.analysis.matches(|| self.collector()).map(|(_, sinks)| sinks);
        self.found(of_ranks, sinks)
    }

    /// Merges what was read along on all processes, which all call this.
    pub(super) fn found_along(&self, read: ReadTogether<'a, &Self>) -> FoundCauses {
        self.found(read.of_ranks, read.sinks)
    }

    fn found(&self, loops: Vec<Vec<Loop>>, sinks: Option<Vec<ConditionCollector>>) -> FoundCauses {
        let processes = &self.analysis.processes;
        let loops = processes.join(loops);
        let Some(sinks) = sinks else {
            return FoundCauses {
                loops,
                unknown: vec![Unknown::NoAttributes],
                ..Default::default()
            };
        };
        let own = sinks.into_iter().map(ConditionCollector::into_found);
        let own = own.reduce(MatchedConditions::merge);
        let own = own.unwrap_or_else(|| self.collector().into_found());
        let Some(found) = processes.reduce(own, MatchedConditions::merge) else {
            return FoundCauses { loops, ..Default::default() };
        };
        let conditions = self.collector().resolve(found);
        let counted = [
            (conditions.incomplete, Unknown::IncompleteCollectives(conditions.incomplete)),
            (conditions.neighbourhoods, Unknown::Neighbourhoods(conditions.neighbourhoods)),
            (conditions.violations, Unknown::Violations(conditions.violations)),
            (conditions.windows.unknown, Unknown::OneSided(conditions.windows.unknown)),
        ];
        let unknown = counted.into_iter().filter(|(count, _)| *count > 0).map(|(_, what)| what);
        FoundCauses { loops, unknown: unknown.collect(), conditions }
    }
}

impl<'f, 'a> ReadsAlong<'a> for &'f CauseSearch<'_, 'a> {
    type Calls = Symbols<'f>;
    type OfRank = Vec<Loop>;
    type Sink = ConditionCollector<'f, 'a>;

    fn calls(&self) -> Symbols<'f> {
        Symbols { lines: &self.lines }
    }

    fn of_rank(&self, calls: SymbolsOfRank<'f>) -> Vec<Loop> {
        calls.loops()
    }

    fn sink(&self) -> Option<Self::Sink> {
        Some(self.collector())
    }
}
