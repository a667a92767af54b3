//! What balanced threads and faster files would take off the computation of a run: its parallel regions, and its calls
//! on files outside MPI.
//!
//! A region with balanced threads takes as long as their mean work instead of the longest. What threads wait for each
//! other inside of it, so that each is the longest in turn, is not known and stays.

use rayon::prelude::*;
use trace_format::file_calls::FileCallKind;
use trace_format::header::Definition;
use trace_format::layout::TOOL;
use trace_format::markers::ToolReason;

use crate::causes::IntegerTimeline;
use crate::trace::{RankTrace, Run};

use super::beside::{Beside, Parts};
use super::graph::{Graph, GraphLine, OpNumber};

/// Finds them in the records of a run whose graph is complete.
pub(super) fn read_beside(graph: &Graph, clock: &IntegerTimeline) -> Beside {
    let is_recorded = |rank: &RankTrace| {
        let mut definitions = rank.file.definitions.iter();
        definitions.any(|of| matches!(of, Definition::OpenMp { .. } | Definition::FileRecording(_)))
    };
    let Run { ranks, .. } = graph.run;
    if !ranks.iter().any(is_recorded) {
        return Beside::default();
    }
    let lines = graph.lines.par_iter().map(|line| OfLine::new(graph, clock, line).read());
    let mut all = Beside::default();
    for of_line in lines.collect::<Vec<_>>() {
        all.threads.extend(of_line.threads);
        all.files.extend(of_line.files);
        all.with_mpi += of_line.with_mpi;
    }
    all
}

/// Reads one line.
struct OfLine<'l, 'a> {
    graph: &'l Graph<'a>,
    clock: &'l IntegerTimeline<'a>,
    line: &'l GraphLine,
    found: Beside,
}

impl<'l, 'a> OfLine<'l, 'a> {
    fn new(graph: &'l Graph<'a>, clock: &'l IntegerTimeline<'a>, line: &'l GraphLine) -> Self {
        Self { graph, clock, line, found: Beside::default() }
    }

    /// Seconds since the earliest begin of a rank.
    fn at(&self, ticks: u64) -> f64 {
        self.clock.seconds(self.clock.at(self.line.position, ticks) - self.graph.axis.1)
    }

    fn seconds(&self, ticks: u64) -> f64 {
        self.clock.seconds(self.clock.ticks_of(self.line.position, ticks))
    }

    fn read(mut self) -> Beside {
        let file = &self.graph.run.ranks[self.line.position].file;
        let Some(thread) = file.threads.iter().find(|of| of.number == self.line.thread) else {
            return self.found;
        };
        for event in file.events(thread).filter(|event| event.function == TOOL) {
            if event.peer == ToolReason::Team as i32 {
                let Some((team, _)) = file.team(&event) else { continue };
                let (begin_s, end_s) =
                    (self.at(event.begin.saturating_sub(team.span)), self.at(event.begin));
                let mean = team.work / u64::from(event.communicator.max(1));
                let saved_s = self.seconds(team.longest.saturating_sub(mean));
                let op = self.op_behind(end_s);
                match self.is_before(op, begin_s) {
                    true => self.add(|found| &mut found.threads, op, saved_s),
                    false => self.found.with_mpi += 1,
                }
            } else if event.peer == ToolReason::FileCalls as i32
                && event.communicator & FileCallKind::INSIDE_MPI == 0
            {
                let Some(calls) = file.file_calls(&event) else { continue };
                let op = self.op_behind(self.at(event.begin.saturating_add(calls.span)));
                let inside_s = self.seconds(calls.inside);
                self.add(|found| &mut found.files, op, inside_s);
            }
        }
        self.found
    }

    /// The first operation that is entered at a time or later.
    fn op_behind(&self, at_s: f64) -> usize {
        let ops = self.line.ops.start as usize..self.line.ops.end as usize;
        // Half a nanosecond: the ends are rounded.
        let entered =
            self.graph.recorded[ops.clone()].partition_point(|op| op.entered_s < at_s - 0.5e-9);
        (ops.start + entered).min(ops.end - 1)
    }

    /// Whether a time is behind all that comes before an operation.
    fn is_before(&self, op: usize, at_s: f64) -> bool {
        let entered_s = self.graph.recorded[op].entered_s;
        let before = (self.line.ops.start as usize..op).rev();
        let mut before = before.map(|op| self.graph.recorded[op]);
        let last = before.find(|of| of.entered_s < entered_s);
        last.is_none_or(|of| of.left_s <= at_s + 0.5e-9)
    }

    /// Adds a part to the computation before an operation, which those of one time divide by context.
    fn add(&mut self, parts: fn(&mut Beside) -> &mut Parts, op: usize, seconds: f64) {
        let entered_s = self.graph.recorded[op].entered_s;
        let mut left = seconds;
        for op in op..self.line.ops.end as usize {
            if left <= 0.0 || self.graph.recorded[op].entered_s > entered_s {
                return;
            }
            if !self.graph.contexts.get(self.graph.ops[op].context).is_computing() {
                continue;
            }
            let parts = parts(&mut self.found);
            let known = parts.iter_mut().rev().take_while(|(of, _)| *of >= op as OpNumber);
            let known = known.filter(|(of, _)| *of == op as OpNumber).last();
            let used = known.as_ref().map_or(0.0, |(_, seconds)| *seconds);
            let more = left.min(self.graph.own[op] - used).max(0.0);
            left -= more;
            match known {
                Some((_, seconds)) => *seconds += more,
                None if more > 0.0 => parts.push((op as OpNumber, more)),
                None => {}
            }
        }
    }
}
