//! Delay costs (Böhme et al. 2016): charges every tick of waiting once, to whatever made the
//! delaying rank late.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::contexts::{Contexts, WAITING, WAITING_FOR_UNKNOWN};
use super::divider::Divider;
use super::order::Order;
use super::profile::{Hint, Profile};
use super::reasons::{Balanced, InCalls, Origins, Part, PieceReasons, PieceWait, Reasons};
use super::sampled_code::SampledDelays;
use super::sync_points::SyncPoint;
use super::wait::Wait;
use super::waits::Waits;

/// Ticks of waiting that something caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Waits for the rank that was late.
    pub direct: i64,
    /// Waits further down the chain, for ranks that waited themselves.
    pub indirect: i64,
}

impl Cost {
    /// Direct and indirect costs.
    pub fn total(self) -> i64 {
        self.direct + self.indirect
    }
}

/// Who caused how much waiting.
#[derive(Debug, Clone, Default)]
pub struct Charges {
    /// By line and context.
    pub causes: BTreeMap<(u32, u32), Cost>,
    /// Ticks that no delay explains.
    pub unattributed: i64,
}

/// Intervals with more stretches of the profile than this are not searched for delays.
const MAX_STRETCHES: usize = 100_000;

/// Number of pieces into which the run is cut.
const PIECES: u64 = 256;

/// The interval of a delaying rank's time that is searched to explain a wait.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Interval {
    piece: u32,
    delayed_by: u32,
    to: i64,
    from: i64,
    number: u32,
}

impl Reasons {
    /// Reasons of all waits. `contexts` is the number of contexts. `ticks_of` gives the ticks of a
    /// wait that count; `name_delay` may give another context for a wait's number and the context
    /// of its delay.
    pub(super) fn new(
        search: &DelaySearch,
        contexts: usize,
        ticks_of: &(dyn Fn(u32) -> i64 + Sync),
        mut name_delay: impl FnMut(u32, u32) -> u32,
    ) -> Self {
        let DelaySearch { waits, sync_points, order, profiles } = *search;
        // Piece by piece, so that the profiles fit into the processor's caches; within a piece by
        // delaying rank and interval, because several lines often wait for the same.
        let ends = waits.all.iter().map(|wait| wait.fulfilled);
        let (begin, end) = ends.fold((i64::MAX, i64::MIN), |(a, b), at| (a.min(at), b.max(at)));
        let piece = |at: i64| at.abs_diff(begin) / (end.abs_diff(begin) / PIECES + 1);
        let wanted =
            |number: u32, wait: &Wait| wait.has_delaying_rank() && !order.cut.contains(&number);
        let all = (0u32..).zip(waits.all.iter().zip(sync_points));
        let mut intervals: Vec<Interval> = all
            .filter(|(number, (wait, _))| wanted(*number, wait))
            .map(|(number, (wait, sync_point))| Interval {
                piece: piece(wait.fulfilled) as u32,
                delayed_by: wait.delayed_by,
                to: wait.fulfilled,
                from: sync_point.on_delaying,
                number,
            })
            .collect();
        intervals.par_sort_unstable();
        let pieces: Vec<&[Interval]> = intervals.chunk_by(|a, b| a.piece == b.piece).collect();
        let parts = pieces.into_par_iter().map_init(
            || Times {
                sums: vec![[0; 2]; contexts],
                hints: vec![Hint::default(); profiles.len()],
                ..Times::default()
            },
            |times, intervals| {
                let mut part = PieceReasons::default();
                let key = |of: &Interval| (of.delayed_by, of.to, of.from);
                for group in intervals.chunk_by(|a, b| key(a) == key(b)) {
                    search.interval(group, times, &mut part);
                }
                part
            },
        );
        let parts: Vec<PieceReasons> = parts.collect();
        drop(intervals);
        let mut reasons = Self::join(parts, waits.all.len());
        reasons.in_calls = InCalls::new(&reasons, search, ticks_of, &mut name_delay);
        reasons.sampled = SampledDelays::new(&reasons, search, ticks_of, &mut name_delay);
        reasons.delays.each_mut(|number, (context, _)| *context = name_delay(number, *context));
        reasons.balanced.each_mut(|number, of| of.context = name_delay(number, of.context));
        reasons.met = sync_points.iter().map(|point| point.moment).collect();
        reasons.ticks_before = ticks_before(waits);
        reasons.origins = Origins::new(waits, order, &reasons);
        reasons
    }

    /// Names delays after the BLAS, LAPACK and FFTW calls that hold most of them.
    pub(super) fn name_calls(&mut self, waits: &Waits, contexts: &mut Contexts) {
        let in_calls = std::mem::take(&mut self.in_calls);
        let named = in_calls.named(contexts);
        if !named.is_empty() {
            self.rename(waits, |line, context| {
                named.get(&(line, context)).copied().unwrap_or(context)
            });
        }
    }
}

fn ticks_before(waits: &Waits) -> Vec<i64> {
    let mut sum = 0;
    let mut before = Vec::with_capacity(waits.all.len() + 1);
    before.push(sum);
    before.extend(waits.all.iter().map(|wait| {
        sum += wait.ticks;
        sum
    }));
    before
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
#[derive(Clone, Copy)]
pub(super) struct DelaySearch<'c> {
    pub waits: &'c Waits,
    pub sync_points: &'c [SyncPoint],
    pub order: &'c Order,
    /// By line.
    pub profiles: &'c [Profile],
}

impl DelaySearch<'_> {
    /// Adds the delays of waits that share an interval of one delaying rank.
    fn interval(&self, group: &[Interval], times: &mut Times, part: &mut PieceReasons) {
        let Interval { delayed_by: line, from, to, .. } = group[0];
        let delayed_by = &self.profiles[line as usize];
        let stretches = delayed_by.stretches((from, to), &mut times.hints[line as usize]);
        if stretches.len() > MAX_STRETCHES {
            part.too_long += group.len() as u64;
            return;
        }
        times.add_delaying(delayed_by.sums_of(stretches));
        for Interval { number, .. } in group {
            let (wait, sync_point) =
                (&self.waits.all[*number as usize], self.sync_points[*number as usize]);
            let line = wait.line as usize;
            let own = &self.profiles[line];
            let stretches = own.stretches((sync_point.moment, wait.begin), &mut times.hints[line]);
            if stretches.len() > MAX_STRETCHES {
                part.too_long += 1;
                continue;
            }
            times.add_other(own.sums_of(stretches));
            let before = (part.delays.len(), part.balanced.len());
            times.delays(&mut part.delays, &mut part.balanced);
            let delaying_waits = self.delaying_waits(*number);
            if delaying_waits.0 == delaying_waits.1 {
                part.balanced.truncate(before.1);
            }
            part.waits.push(PieceWait {
                number: *number,
                delays: (part.delays.len() - before.0) as u32,
                balanced: (part.balanced.len() - before.1) as u32,
                delaying_waits,
            });
        }
        times.clear_delaying();
    }

    /// The delaying rank's own waits in the interval.
    fn delaying_waits(&self, number: u32) -> (u32, u32) {
        let wait = &self.waits.all[number as usize];
        let sync_point = self.sync_points[number as usize];
        let on_delaying = self.waits.first[wait.delayed_by as usize];
        let last = (self.order.delaying_before[number as usize] as usize).max(on_delaying);
        let in_interval = |at: &usize| self.waits.all[*at].begin >= sync_point.on_delaying;
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

impl Charges {
    /// Charges waits to the delays to which they go back, by the ticks that count of each.
    pub(super) fn new(
        waits: &Waits,
        reasons: &Reasons,
        ticks_of: &(dyn Fn(u32) -> i64 + Sync),
    ) -> Self {
        let mut causes: FxHashMap<(u32, u32), Cost> = FxHashMap::default();
        let mut unattributed = 0;
        let mut divider = Divider::default();
        for (number, wait) in (0u32..).zip(&waits.all) {
            let counting = ticks_of(number);
            if counting == 0 {
                continue;
            }
            unattributed += counting;
            let parts = reasons.origins.parts_of(number);
            let nobodys = wait.ticks - parts.iter().map(|part| part.ticks).sum::<i64>();
            let weights = parts.iter().map(|part| part.ticks).chain([nobodys]);
            let shares = divider.divide(counting, weights, wait.ticks);
            for (Part { line, context, .. }, ticks) in parts.iter().zip(shares) {
                let cost = causes.entry((*line, *context)).or_default();
                let is_direct = *line == wait.delayed_by;
                *(if is_direct { &mut cost.direct } else { &mut cost.indirect }) += ticks;
                unattributed -= ticks;
            }
        }
        Self { causes: causes.into_iter().collect(), unattributed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_ties_go_to_the_first() {
        let of = |ticks, weights: &[i64]| {
            let mut divider = Divider::default();
            divider.divide(ticks, weights.iter().copied(), weights.iter().sum()).to_vec()
        };
        assert_eq!(of(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(of(5, &[3, 1, 0]), [4, 1, 0]);
        assert_eq!(of(0, &[3, 1]), [0, 0]);
        let shares = of(i64::MAX / 2, &[i64::MAX / 4, i64::MAX / 8, i64::MAX / 2]);
        assert_eq!(shares.iter().sum::<i64>(), i64::MAX / 2);
    }

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
