//! Finds in what a delaying rank spent longer than the line that waited for it. The profiles say all of
//! that, and there are several delays for each wait, so they are found when somebody asks for them, not kept.

use std::ops::Range;

use rayon::prelude::*;

use super::contexts::{WAITING, WAITING_FOR_UNKNOWN};
use super::divider::Divider;
use super::order::Order;
use super::profile::{Hint, Profile};
use super::sync_points::SyncPoint;
use super::wait::Wait;

/// Intervals with more stretches of the profile than this are not searched for delays.
const MAX_STRETCHES: usize = 100_000;

/// Waits whose delays are kept at once, while they are made use of.
pub(super) const WAITS_AT_ONCE: usize = 1 << 15;

/// Waits whose delays one thread finds together: few enough for the processor's caches.
const WAITS_TOGETHER: usize = 1 << 12;

/// The interval of a delaying rank's time that is searched to explain a wait.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Interval {
    delayed_by: u32,
    to: i64,
    from: i64,
    /// Position among the waits that are explained together.
    at: u32,
}

/// Time of a delaying rank that is no delay, because the line that waited spent as much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Balanced {
    pub context: u32,
    pub ticks: i64,
    /// Whether the line that waited has this context, too; else it spent as much in contexts that it
    /// alone has.
    pub is_common: bool,
}

/// Why the delaying rank of one wait was late.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lateness<'f> {
    /// Contexts in which the delaying rank spent more time than the line that waited, with the excess
    /// d(c).
    pub delays: &'f [(u32, i64)],
    /// Empty if the delaying rank did not wait: if it waited for the line, it was late all the same.
    pub balanced: &'f [Balanced],
    /// The delaying rank's own waits in the interval: first number, and the one after the last.
    pub delaying_waits: (u32, u32),
}

/// Which of all that were found belong to one wait, and the delaying rank's own waits.
#[derive(Debug, Default)]
struct OfWait {
    delays: Range<u32>,
    balanced: Range<u32>,
    delaying_waits: (u32, u32),
}

/// The same of several waits.
#[derive(Debug, Default)]
pub(super) struct FoundDelays {
    of_waits: Vec<OfWait>,
    delays: Vec<(u32, i64)>,
    balanced: Vec<Balanced>,
    /// Waits whose interval is too long to search.
    pub too_long: u64,
}

impl FoundDelays {
    /// In the order in which the waits were given.
    pub fn all(&self) -> impl Iterator<Item = Lateness<'_>> {
        let range = |of: &Range<u32>| of.start as usize..of.end as usize;
        self.of_waits.iter().map(move |of| Lateness {
            delays: &self.delays[range(&of.delays)],
            balanced: &self.balanced[range(&of.balanced)],
            delaying_waits: of.delaying_waits,
        })
    }
}

/// Ticks by context, of the delaying rank and of the line that waited.
#[derive(Debug, Default)]
struct Times {
    sums: Vec<[i64; 2]>,
    /// Contexts of the delaying rank.
    on_delaying: Vec<u32>,
    /// Contexts that only the line that waited has.
    of_other: Vec<u32>,
    /// By line the position of the last search.
    hints: Vec<Hint>,
    divider: Divider,
}

/// Where the delays of waits are searched.
#[derive(Debug, Clone, Copy)]
pub(super) struct DelaySearch<'c> {
    pub waits: &'c [Wait],
    /// First wait of each line.
    pub first: &'c [usize],
    pub sync_points: &'c [SyncPoint],
    pub order: &'c Order,
    /// By line.
    pub profiles: &'c [Profile],
    /// Number of the profiles' contexts.
    pub contexts: usize,
}

impl DelaySearch<'_> {
    /// Finds the delays of some waits, with several threads.
    pub fn delays(&self, numbers: &[u32]) -> Vec<FoundDelays> {
        let times = || Times {
            sums: vec![[0; 2]; self.contexts],
            hints: vec![Hint::default(); self.profiles.len()],
            ..Times::default()
        };
        let found = numbers.par_chunks(WAITS_TOGETHER);
        found.map_init(times, |times, numbers| self.together(numbers, times)).collect()
    }

    /// Passes on the delays of some waits, in their order.
    pub fn for_each(&self, numbers: &[u32], mut take: impl FnMut(u32, Lateness)) {
        for numbers in numbers.chunks(WAITS_AT_ONCE) {
            let found = self.delays(numbers);
            let found = found.iter().flat_map(FoundDelays::all);
            numbers.iter().zip(found).for_each(|(number, lateness)| take(*number, lateness));
        }
    }

    /// The delays of few waits, found by delaying rank and interval, because several lines often wait for
    /// the same.
    fn together(&self, numbers: &[u32], times: &mut Times) -> FoundDelays {
        let wanted = (0..).zip(numbers).filter(|(_, number)| {
            self.waits[**number as usize].has_delaying_rank() && !self.order.cut.contains(number)
        });
        let intervals = wanted.map(|(at, number)| {
            let (wait, point) =
                (&self.waits[*number as usize], &self.sync_points[*number as usize]);
            let Wait { delayed_by, fulfilled, .. } = *wait;
            Interval { delayed_by, to: fulfilled, from: point.on_delaying, at }
        });
        let mut intervals: Vec<Interval> = intervals.collect();
        intervals.sort_unstable();
        let mut found = FoundDelays::default();
        found.of_waits.resize_with(numbers.len(), Default::default);
        let key = |of: &Interval| (of.delayed_by, of.to, of.from);
        for group in intervals.chunk_by(|a, b| key(a) == key(b)) {
            self.interval(group, numbers, times, &mut found);
        }
        found
    }

    /// Adds the delays of waits that share an interval of one delaying rank.
    fn interval(
        &self,
        group: &[Interval],
        numbers: &[u32],
        times: &mut Times,
        found: &mut FoundDelays,
    ) {
        let Interval { delayed_by: line, from, to, .. } = group[0];
        let delayed_by = &self.profiles[line as usize];
        let stretches = delayed_by.stretches((from, to), &mut times.hints[line as usize]);
        if stretches.len() > MAX_STRETCHES {
            found.too_long += group.len() as u64;
            return;
        }
        times.add_delaying(delayed_by.sums_of(stretches));
        for Interval { at, .. } in group {
            let number = numbers[*at as usize];
            let (wait, sync_point) =
                (&self.waits[number as usize], self.sync_points[number as usize]);
            let line = wait.line as usize;
            let own = &self.profiles[line];
            let stretches = own.stretches((sync_point.moment, wait.begin), &mut times.hints[line]);
            if stretches.len() > MAX_STRETCHES {
                found.too_long += 1;
                continue;
            }
            times.add_other(own.sums_of(stretches));
            let before = (found.delays.len(), found.balanced.len());
            times.delays(&mut found.delays, &mut found.balanced);
            let delaying_waits = self.delaying_waits(number);
            if delaying_waits.0 == delaying_waits.1 {
                found.balanced.truncate(before.1);
            }
            found.of_waits[*at as usize] = OfWait {
                delays: before.0 as u32..found.delays.len() as u32,
                balanced: before.1 as u32..found.balanced.len() as u32,
                delaying_waits,
            };
        }
        times.clear_delaying();
    }

    /// The delaying rank's own waits in the interval.
    pub fn delaying_waits(&self, number: u32) -> (u32, u32) {
        let wait = &self.waits[number as usize];
        let sync_point = self.sync_points[number as usize];
        let on_delaying = self.first[wait.delayed_by as usize];
        let last = (self.order.delaying_before[number as usize] as usize).max(on_delaying);
        let in_interval = |at: &usize| self.waits[*at].begin >= sync_point.on_delaying;
        let first = (on_delaying..last).rev().take_while(in_interval).last().unwrap_or(last);
        (first as u32, last as u32)
    }
}

impl Times {
    fn add_delaying(&mut self, sums: impl Iterator<Item = (u32, i64)>) {
        for (context, ticks) in sums.filter(|(context, _)| !is_waiting(*context)) {
            let sums = &mut self.sums[context as usize];
            if sums[0] == 0 {
                self.on_delaying.push(context);
            }
            sums[0] += ticks;
        }
        self.on_delaying.sort_unstable();
    }

    fn add_other(&mut self, sums: impl Iterator<Item = (u32, i64)>) {
        for (context, ticks) in sums.filter(|(context, _)| !is_waiting(*context)) {
            let sums = &mut self.sums[context as usize];
            if *sums == [0, 0] {
                self.of_other.push(context);
            }
            sums[1] += ticks;
        }
    }

    fn clear_delaying(&mut self) {
        for context in self.on_delaying.drain(..) {
            self.sums[context as usize] = [0; 2];
        }
    }

    /// Adds by how much the delaying rank spent longer than the other line, by ascending context, and
    /// clears the other line's times. Contexts that only one of the two has are pooled. Adds what
    /// both spent to `balanced`.
    fn delays(&mut self, delays: &mut Vec<(u32, i64)>, balanced: &mut Vec<Balanced>) {
        let first = delays.len();
        let of_other = self.of_other.drain(..);
        let other_alone: i64 =
            of_other.map(|context| std::mem::take(&mut self.sums[context as usize])[1]).sum();
        let mut alone = 0;
        for context in &self.on_delaying {
            let [delayed_by, own] = &mut self.sums[*context as usize];
            if *own == 0 {
                alone += *delayed_by;
                delays.push((*context, -*delayed_by));
            } else {
                let ticks = (*delayed_by).min(*own);
                balanced.push(Balanced { context: *context, ticks, is_common: true });
                if *delayed_by > *own {
                    delays.push((*context, *delayed_by - *own));
                }
            }
            *own = 0;
        }
        // Negative entries are contexts that the other line does not have.
        let pooled = alone - other_alone;
        let of_delaying = |context, ticks| Balanced { context, ticks, is_common: false };
        if pooled <= 0 {
            let alone = delays[first..].iter().filter(|(_, delay)| *delay < 0);
            balanced.extend(alone.map(|(context, delay)| of_delaying(*context, -delay)));
            let common: Vec<(u32, i64)> = delays.drain(first..).filter(|(_, d)| *d > 0).collect();
            delays.extend(common);
        } else if other_alone > 0 {
            let weights = delays[first..].iter().filter(|(_, delay)| *delay < 0);
            let shares = self.divider.divide(pooled, weights.map(|(_, delay)| -delay), alone);
            let pooled = delays[first..].iter_mut().filter(|(_, delay)| *delay < 0);
            pooled.zip(shares).for_each(|((context, delay), share)| {
                balanced.push(of_delaying(*context, -*delay - share));
                *delay = *share;
            });
        } else {
            delays[first..].iter_mut().for_each(|(_, delay)| *delay = delay.abs());
        }
    }
}

fn is_waiting(context: u32) -> bool {
    matches!(context, WAITING | WAITING_FOR_UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_contexts_that_only_one_side_has() {
        let mut times = Times { sums: vec![[0; 2]; 10], ..Times::default() };
        let sums = [(8, 30), (5, 20), (5, 30), (6, 10), (WAITING, 7), (7, 60)];
        times.add_delaying(sums.into_iter());
        let (mut delays, mut balanced) = (Vec::new(), Vec::new());
        // 90 against 45 in contexts of one side only: half of each. In context 6 the delaying rank was
        // quicker.
        times.add_other([(5, 20), (6, 40), (9, 45), (WAITING, 100)].into_iter());
        times.delays(&mut delays, &mut balanced);
        assert_eq!(delays, [(5, 30), (7, 30), (8, 15)]);
        let of = |all: &[Balanced], is_common| {
            let of = all.iter().filter(|of| of.is_common == is_common);
            of.map(|of| (of.context, of.ticks)).collect::<Vec<_>>()
        };
        assert_eq!(of(&balanced, false), [(7, 30), (8, 15)]);
        assert_eq!(of(&balanced, true), [(5, 20), (6, 10)]);
        // The next line spent more in contexts of its own than the delaying rank, so none of the
        // delaying rank's is a delay.
        (delays, balanced) = Default::default();
        times.add_other([(9, 200), (5, 10)].into_iter());
        times.delays(&mut delays, &mut balanced);
        assert_eq!(delays, [(5, 40)]);
        assert_eq!(of(&balanced, false), [(6, 10), (7, 60), (8, 30)]);
        delays.clear();
        times.delays(&mut delays, &mut balanced);
        assert_eq!(delays, [(5, 50), (6, 10), (7, 60), (8, 30)]);
        times.clear_delaying();
        assert!(times.sums.iter().all(|sums| *sums == [0, 0]));
    }
}
