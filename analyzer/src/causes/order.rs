//! Orders waits causally, never by the clock: every wait comes after those that it depends on.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::by_line::ByLine;
use super::hinted_search;
use super::lines::Lines;
use super::waits::Waits;

/// The causal order of waits.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Numbers of all waits, each after those that happened before it.
    pub forward: Vec<u32>,
    /// For each wait the first of its delaying rank's waits that was not over when the delaying rank entered
    /// the call that ended it; all earlier ones were over.
    pub delaying_before: Vec<u32>,
    /// Waits that would depend on themselves, because clocks are wrong.
    pub cut: BTreeSet<u32>,
}

impl Order {
    pub fn new(waits: &Waits, lines: &Lines) -> Self {
        // Apart from the rest of the waits, more ends fit into the processor's caches.
        let ends: Vec<i64> = waits.all.par_iter().map(|wait| wait.until).collect();
        let ends = &ends;
        // Where the line's last search on each delaying line ended.
        let hints = || ByLine::new(lines.all.len());
        let of_line = |hints: &mut ByLine<usize>, line: u32| {
            hints.begin(line);
            let before = waits.on_line(line).iter().map(|wait| {
                if !wait.has_delaying_rank() {
                    return 0;
                }
                let delayed_by = wait.delayed_by as usize;
                let hint = hints.get_mut(wait.delayed_by);
                let of_delaying = &ends[waits.first[delayed_by]..waits.first[delayed_by + 1]];
                let is_over = |end: &i64| *end <= wait.fulfilled;
                let over = hinted_search::partition_point(of_delaying, hint, is_over);
                (waits.first[delayed_by] + over) as u32
            });
            before.collect::<Vec<_>>()
        };
        let numbers = (0..lines.all.len() as u32).into_par_iter();
        let before = numbers.map_init(hints, of_line).flatten_iter();
        let mut order = Self { delaying_before: before.collect(), ..Self::default() };
        order.sort(waits, lines);
        order
    }

    /// Advances along all lines, each up to a wait whose delaying rank has not come far enough.
    fn sort(&mut self, waits: &Waits, lines: &Lines) {
        let mut next: Vec<usize> = waits.first[..lines.all.len()].to_vec();
        // For each line the lines that it blocks: up to which wait it has to advance, and which
        // line waits for that.
        let mut blocked: Vec<Vec<(u32, u32)>> = vec![Vec::new(); lines.all.len()];
        let mut ready: Vec<u32> = (0..lines.all.len() as u32).rev().collect();
        loop {
            while let Some(line) = ready.pop() {
                let at = line as usize;
                while next[at] < waits.first[at + 1] {
                    let (number, wait) = (next[at] as u32, &waits.all[next[at]]);
                    let needs = self.delaying_before[next[at]];
                    if wait.has_delaying_rank() && (next[wait.delayed_by as usize] as u32) < needs {
                        blocked[wait.delayed_by as usize].push((needs, line));
                        break;
                    }
                    self.forward.push(number);
                    next[at] += 1;
                }
                let reached = next[at] as u32;
                blocked[at].retain(|(needs, other)| {
                    let goes_on = *needs <= reached;
                    if goes_on {
                        ready.push(*other);
                    }
                    !goes_on
                });
            }
            if !self.cut_one(waits, &mut next, &mut blocked, &mut ready) {
                return;
            }
        }
    }

    /// If lines block each other in a cycle, lets the earliest wait proceed without its delaying rank.
    fn cut_one(
        &mut self,
        waits: &Waits,
        next: &mut [usize],
        blocked: &mut [Vec<(u32, u32)>],
        ready: &mut Vec<u32>,
    ) -> bool {
        let stuck = (0..next.len()).filter(|line| next[*line] < waits.first[line + 1]);
        let Some(line) = stuck.min_by_key(|line| waits.all[next[*line]].until) else {
            return false;
        };
        let number = next[line];
        let wait = &waits.all[number];
        self.cut.insert(number as u32);
        self.delaying_before[number] = 0;
        blocked[wait.delayed_by as usize].retain(|(_, other)| *other as usize != line);
        ready.push(line as u32);
        true
    }
}
