//! Times of each thread's calls in the run, and in a replay with some changes.

use super::change::Change;
use super::graph::GraphLine;
use super::what_if::WhatIf;

/// An event of a thread; seconds since the run's begin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Time in the run.
    pub was_s: f64,
    /// Time in the replay.
    pub is_s: f64,
}

impl WhatIf<'_> {
    /// Begin and end of each call with partners, and of each thread, in order; neither time ever
    /// decreases. One list per line of [`super::Graph::lines`].
    pub fn moments(&self, changes: &[Change]) -> Vec<Vec<Moment>> {
        let (replayed, before) = self.replayed_with(changes);
        let factor = self.correction();
        let graph = &self.graph;
        let of_line = |(line, end): (&GraphLine, &f64)| {
            let mut moments: Vec<Moment> = Vec::new();
            let mut add = |was_s: f64, is_s: f64| {
                let last = moments.last().copied().unwrap_or(Moment { was_s, is_s });
                moments.push(Moment { was_s: was_s.max(last.was_s), is_s: is_s.max(last.is_s) });
            };
            add(line.begin_s, line.begin_s * factor);
            for op in line.ops.clone() {
                let is_last = op + 1 == line.ops.end;
                // Operations without links only hold a stretch of computation.
                if graph.links(op).is_empty() && !is_last {
                    continue;
                }
                let (op, recorded) = (op as usize, graph.recorded[op as usize]);
                let left = match is_last {
                    true => *end,
                    false => replayed.entered[op + 1] - before[op + 1],
                };
                add(recorded.entered_s, replayed.entered[op] * factor);
                add(recorded.left_s, left * factor);
            }
            moments
        };
        graph.lines.iter().zip(&replayed.ends).map(of_line).collect()
    }
}
