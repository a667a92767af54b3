//! Divides computation evenly over all ranks.

use std::collections::BTreeMap;

use crate::causes::Context;

use super::graph::OpNumber;
use super::what_if::WhatIf;

/// Most parts that ranks take over in a context. Of more, parts that end one after the other are
/// taken over together, where the last of them ends.
const MAX_PARTS: usize = 1_000_000;

impl WhatIf<'_> {
    /// Balances computation: in each selected context every rank computes the mean of all ranks. If
    /// all ranks have equally many stretches in it, each of these is balanced; otherwise their sums
    /// are, and the threads of a rank share its part as they did. What several threads of a rank
    /// compute at once counts once. A rank that never computes in it takes over its part where the
    /// others compute: its first thread, before the call that it leaves next.
    pub(super) fn balance(&self, own: &mut [f64], region: Option<&str>) {
        let is_balanced = |context: &Context| match region {
            Some(name) => matches!(context, Context::Region(other) if other == name),
            None => context.is_computing(),
        };
        let is_balanced: Vec<bool> = self.graph.contexts.all.iter().map(is_balanced).collect();
        // The first line of each rank, by position.
        let mut first_lines: BTreeMap<usize, usize> = BTreeMap::new();
        for (number, line) in self.graph.lines.iter().enumerate() {
            first_lines.entry(line.position).or_insert(number);
        }
        let positions: Vec<usize> = first_lines.keys().copied().collect();
        // The operations of each context, by rank; ranks that never compute in it have none.
        let mut contexts: BTreeMap<u32, Vec<Vec<usize>>> = BTreeMap::new();
        for line in &self.graph.lines {
            let rank = positions.partition_point(|position| *position < line.position);
            for (context, ops) in self.by_context(line, |context| is_balanced[context as usize]) {
                let ranks = contexts.entry(context);
                let ranks = ranks.or_insert_with(|| vec![Vec::new(); positions.len()]);
                ranks[rank].extend(ops);
            }
        }
        let first_lines: Vec<usize> = first_lines.into_values().collect();
        let mut lines_of_ranks = vec![0usize; positions.len()];
        for line in &self.graph.lines {
            lines_of_ranks[positions.partition_point(|position| *position < line.position)] += 1;
        }
        // Parts taken over are added at the end: they may belong to another context's stretches.
        let mut taken_over = vec![0.0; own.len()];
        for ops_of_ranks in contexts.values() {
            let at_once = |(ops, lines): (&Vec<usize>, &usize)| match lines {
                1 => 1.0,
                _ => self.part_at_once(ops, own),
            };
            let at_once: Vec<f64> = ops_of_ranks.iter().zip(&lines_of_ranks).map(at_once).collect();
            let shared = Shared { ops_of_ranks, at_once };
            self.take_over((&shared, &first_lines), own, &mut taken_over);
            shared.equalise(own);
        }
        own.iter_mut().zip(taken_over).for_each(|(own, more)| *own += more);
    }

    /// The time in which any thread of a rank computes before these operations, divided by the sum
    /// of the times of all threads.
    fn part_at_once(&self, ops: &[usize], own: &[f64]) -> f64 {
        let stretch = |op: &usize| {
            let end_s = self.graph.recorded[*op].entered_s;
            (end_s - own[*op], end_s)
        };
        let mut stretches: Vec<(f64, f64)> = ops.iter().map(stretch).collect();
        stretches.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut any_s, mut until_s) = (0.0, f64::NEG_INFINITY);
        for (begin_s, end_s) in &stretches {
            any_s += (end_s - begin_s.max(until_s)).max(0.0);
            until_s = until_s.max(*end_s);
        }
        let all_s: f64 = stretches.iter().map(|(begin_s, end_s)| end_s - begin_s).sum();
        if all_s > 0.0 { (any_s / all_s).min(1.0) } else { 1.0 }
    }

    /// Adds the parts of the ranks that never compute in a context to their first lines.
    fn take_over(
        &self,
        (shared, first_lines): (&Shared, &[usize]),
        own: &[f64],
        taken_over: &mut [f64],
    ) {
        let Shared { ops_of_ranks, at_once } = shared;
        let absent: Vec<usize> =
            (0..ops_of_ranks.len()).filter(|rank| ops_of_ranks[*rank].is_empty()).collect();
        if absent.is_empty() {
            return;
        }
        // Ends of stretches, and a rank's part of each.
        let ranks = ops_of_ranks.len() as f64;
        let part = |op: &usize, at_once: f64| {
            (self.graph.recorded[*op].entered_s, own[*op] * at_once / ranks)
        };
        let of_ranks = ops_of_ranks.iter().zip(at_once);
        let mut ends: Vec<(f64, f64)> =
            of_ranks.flat_map(|(ops, at_once)| ops.iter().map(|op| part(op, *at_once))).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let group = (ends.len() * absent.len()).div_ceil(MAX_PARTS).max(1);
        let ends: Vec<(f64, f64)> = ends
            .chunks(group)
            .map(|of| (of[of.len() - 1].0, of.iter().map(|(_, part_s)| part_s).sum()))
            .collect();
        for rank in absent {
            let line = first_lines[rank];
            self.take_over_line(self.graph.lines[line].ops.clone(), &ends, taken_over);
        }
    }

    /// Adds a line's part of stretches, given with their ends, to its own operations.
    fn take_over_line(
        &self,
        ops: std::ops::Range<OpNumber>,
        ends: &[(f64, f64)],
        taken_over: &mut [f64],
    ) {
        let recorded = &self.graph.recorded[ops.start as usize..ops.end as usize];
        if recorded.is_empty() {
            return;
        }
        let mut from = 0;
        for (end_s, part_s) in ends {
            from += recorded[from..].partition_point(|op| op.left_s <= *end_s);
            let op = from.min(recorded.len() - 1);
            taken_over[ops.start as usize + op] += part_s;
            from = op;
        }
    }
}

/// The computation of a context.
struct Shared<'a> {
    /// The operations before which each rank computes, by rank.
    ops_of_ranks: &'a [Vec<usize>],
    /// See [`WhatIf::part_at_once`]; by rank.
    at_once: Vec<f64>,
}

impl Shared<'_> {
    /// Gives each rank that computes in the context the mean of all ranks.
    fn equalise(&self, own: &mut [f64]) {
        let Self { ops_of_ranks, at_once } = self;
        let all = ops_of_ranks.len() as f64;
        let mut present = ops_of_ranks.iter().filter(|ops| !ops.is_empty());
        let Some(first) = present.clone().map(Vec::len).next() else { return };
        if present.all(|ops| ops.len() == first) && at_once.iter().all(|part| *part == 1.0) {
            for time in 0..first {
                let ops = || ops_of_ranks.iter().filter_map(|ops| ops.get(time));
                let mean = ops().map(|op| own[*op]).sum::<f64>() / all;
                ops().for_each(|op| own[*op] = mean);
            }
            return;
        }
        let sum = |(ops, at_once): (&Vec<usize>, &f64)| {
            at_once * ops.iter().map(|op| own[*op]).sum::<f64>()
        };
        let sums: Vec<f64> = ops_of_ranks.iter().zip(at_once).map(sum).collect();
        let mean = sums.iter().sum::<f64>() / all;
        for (ops, sum) in ops_of_ranks.iter().zip(&sums).filter(|(_, sum)| **sum > 0.0) {
            ops.iter().for_each(|op| own[*op] *= mean / sum);
        }
    }
}
