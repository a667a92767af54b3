//! The critical path: back from the latest end of the run to its earliest begin, along a line until
//! it waited and then along its delaying rank.

use std::collections::BTreeMap;

use super::lines::Lines;
use super::order::Order;
use super::profile::{Hint, Profile};
use super::waits::Waits;

/// A stretch of the path on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathStretch {
    pub line: u32,
    /// From when.
    pub from: i64,
    /// To when.
    pub to: i64,
}

#[derive(Debug, Clone, Default)]
pub struct CriticalPath {
    /// In order of time, without gaps. The first one includes the skew, so it may begin before its
    /// line does.
    pub stretches: Vec<PathStretch>,
    /// Ticks on each line.
    pub on_line: BTreeMap<u32, i64>,
    /// Ticks by context.
    pub in_context: BTreeMap<u32, i64>,
    /// Ticks before the first line's begin.
    pub skew: i64,
    /// How often it goes from one rank to another.
    pub switches: u64,
}

/// The lines' profiles, with hints for their next searches.
struct Hinted<'p> {
    profiles: &'p [Profile],
    hints: Vec<Hint>,
}

impl CriticalPath {
    /// The path of a run that lasts from `begin` to `end`.
    pub(super) fn new(
        (waits, order): (&Waits, &Order),
        (lines, profiles): (&Lines, &[Profile]),
        (begin, end): (i64, i64),
    ) -> Self {
        let mut path = Self::default();
        let mut profiles = Hinted { profiles, hints: vec![Hint::default(); profiles.len()] };
        let first_threads = (0u32..).zip(&lines.all).filter(|(_, line)| line.thread == 0);
        let Some((mut line, _)) =
            first_threads.min_by_key(|(n, line)| (std::cmp::Reverse(line.end), *n))
        else {
            return path;
        };
        let mut at = end;
        // The line's waits before this position are still to be visited.
        let mut next = waits.first[line as usize + 1];
        loop {
            let on_line = &lines.all[line as usize];
            let first = waits.first[line as usize];
            let found = (first..next).rev().find(|number| {
                let wait = &waits.all[*number];
                wait.has_delaying_rank() && !order.cut.contains(&(*number as u32))
            });
            let Some(number) = found else {
                // A thread that began later: the path continues on its rank's first thread.
                let first_line = lines.first_of(on_line.position);
                if on_line.thread != 0 && first_line != line {
                    let from = on_line.begin.min(at);
                    path.go_back(line, (from, at), &mut profiles);
                    (at, line) = (from, first_line);
                    let of_line = waits.on_line(line);
                    next = waits.first[line as usize] + of_line.partition_point(|w| w.until <= at);
                    continue;
                }
                path.skew = (on_line.begin.min(at) - begin).max(0);
                path.go_back(line, (begin, at), &mut profiles);
                break;
            };
            let wait = &waits.all[number];
            let from = wait.until.min(at);
            path.go_back(line, (from, at), &mut profiles);
            path.switches += u64::from(lines.all[wait.delayed_by as usize].rank != on_line.rank);
            (at, line) = (from, wait.delayed_by);
            next = order.delaying_before[number] as usize;
            next = next.max(waits.first[line as usize]);
        }
        path.stretches.reverse();
        path
    }

    /// Prepends a stretch.
    fn go_back(&mut self, line: u32, (from, to): (i64, i64), of: &mut Hinted) {
        if to <= from {
            return;
        }
        self.stretches.push(PathStretch { line, from, to });
        *self.on_line.entry(line).or_default() += to - from;
        let (profile, hint) = (&of.profiles[line as usize], &mut of.hints[line as usize]);
        for (context, ticks) in profile.sums_of(profile.stretches((from, to), hint)) {
            *self.in_context.entry(context).or_default() += ticks;
        }
    }

    /// Its length, which is that of the run.
    pub fn ticks(&self) -> i64 {
        self.stretches.iter().map(|stretch| stretch.to - stretch.from).sum()
    }
}
