//! Compares the samples of delaying lines with those of the lines that waited for them.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::delay::DelaySearch;
use super::profile::{Hint, Profile};
use super::sampled_code::{SampledDelay, SampledDelays, Weight};

/// Most samples that are looked at, counted again for each wait. Further waits are left out on both sides.
const MAX_LOOKED_AT: usize = 200_000_000;

/// The weights of samples by context of the delay, line, and index among the samples of the line.
type Weights = FxHashMap<(u32, u32, u32), f64>;

impl SampledDelays {
    /// The samples in the intervals that explain waits: on the delaying line in the context of the delay; on the line
    /// that waited in the same context or, if it does not have that one, in those that it alone has.
    pub fn new(
        search: &DelaySearch,
        ticks_of: &dyn Fn(u32) -> i64,
        name_delay: &mut impl FnMut(u32, u32) -> u32,
    ) -> Self {
        if search.profiles.iter().all(|profile| profile.samples().is_empty()) {
            return Self::default();
        }
        let counts = |number: &u32| {
            search.waits[*number as usize].has_delaying_rank() && ticks_of(*number) > 0
        };
        let mut numbers: Vec<u32> = (0..search.waits.len() as u32).filter(counts).collect();
        let delayed_by = |number: &u32| search.waits[*number as usize].delayed_by;
        numbers.sort_by_key(delayed_by);
        let mut found = BTreeMap::new();
        let mut comparison = Comparison {
            search,
            hints: vec![Hint::default(); search.profiles.len()],
            looked_at: 0,
        };
        for waits in numbers.chunk_by(|a, b| delayed_by(a) == delayed_by(b)) {
            let line = delayed_by(&waits[0]);
            let mut weights = [Weights::default(), Weights::default()];
            let mut ticks: BTreeMap<u32, i64> = BTreeMap::new();
            search.for_each(waits, |number, lateness| {
                let delays = lateness.delays.iter();
                let delays =
                    delays.map(|(context, ticks)| (*context, name_delay(number, *context), *ticks));
                let delays: Vec<(u32, u32, i64)> = delays.collect();
                if !delays.is_empty() && comparison.add(number, &delays, &mut weights) {
                    for (_, named, more) in delays {
                        *ticks.entry(named).or_default() += more;
                    }
                }
            });
            for (named, ticks) in ticks {
                found.insert((line, named), SampledDelay { ticks, ..SampledDelay::default() });
            }
            let [delaying, waiting] = weights;
            for (of, is_delaying) in [(delaying, true), (waiting, false)] {
                for ((named, on, sample), weight) in of {
                    let stack = search.profiles[on as usize].samples()[sample as usize].stack;
                    let delay = found.entry((line, named)).or_default();
                    let side = if is_delaying { &mut delay.delaying } else { &mut delay.waiting };
                    let more = Weight { sum: weight, squares: weight * weight };
                    side.entry((on, stack)).or_default().add(more);
                }
            }
        }
        Self(found)
    }
}

/// Goes through the samples of waits.
struct Comparison<'c> {
    search: &'c DelaySearch<'c>,
    /// By line the position of the last search.
    hints: Vec<Hint>,
    looked_at: usize,
}

/// Time by context, without repetitions.
fn contexts(sums: impl Iterator<Item = (u32, i64)>) -> FxHashMap<u32, i64> {
    let mut all = FxHashMap::default();
    sums.for_each(|(context, ticks)| *all.entry(context).or_default() += ticks);
    all
}

impl Comparison<'_> {
    /// Adds the samples of a wait to those of the delaying line and of the lines that waited. The delays are given by
    /// context, its name and ticks. Whether there was room for it.
    fn add(&mut self, number: u32, delays: &[(u32, u32, i64)], weights: &mut [Weights; 2]) -> bool {
        let search = self.search;
        let wait = &search.waits[number as usize];
        let point = &search.sync_points[number as usize];
        let sides = [
            (wait.delayed_by, (point.on_delaying, wait.fulfilled)),
            (wait.line, (point.moment, wait.begin)),
        ];
        let [delaying, waiting] = sides.map(|(line, interval)| {
            let profile = &search.profiles[line as usize];
            (line, profile, profile.stretches(interval, &mut self.hints[line as usize]))
        });
        let sampled =
            [&delaying, &waiting].map(|(_, profile, stretches)| profile.sampled_in(stretches));
        self.looked_at += sampled[0].len() + sampled[1].len();
        if self.looked_at > MAX_LOOKED_AT {
            return false;
        }
        if sampled.iter().all(std::ops::Range::is_empty) {
            return true;
        }
        let name =
            |context| delays.iter().find(|(of, ..)| *of == context).map(|(_, named, _)| *named);
        let [of_delaying, of_waiting] = weights;
        for_each_context((delaying.1, sampled[0].clone()), |sample, context| {
            if let Some(named) = name(context) {
                *of_delaying.entry((named, delaying.0, sample)).or_default() += 1.0;
            }
        });
        let times = [&delaying, &waiting]
            .map(|(_, profile, stretches)| contexts(profile.sums_of(stretches.clone())));
        // What only the delaying line has is compared with what only the other one has, in proportion.
        let alone = delays.iter().filter(|(context, ..)| !times[1].contains_key(context));
        let alone =
            alone.map(|(context, named, _)| (*named, times[0].get(context).copied().unwrap_or(0)));
        let alone: Vec<(u32, i64)> = alone.collect();
        let all_alone: i64 = alone.iter().map(|(_, ticks)| *ticks).sum();
        for_each_context((waiting.1, sampled[1].clone()), |sample, context| {
            if let Some(named) = name(context) {
                *of_waiting.entry((named, waiting.0, sample)).or_default() += 1.0;
            } else if !times[0].contains_key(&context) && all_alone > 0 {
                for (named, ticks) in &alone {
                    *of_waiting.entry((*named, waiting.0, sample)).or_default() +=
                        *ticks as f64 / all_alone as f64;
                }
            }
        });
        true
    }
}

fn for_each_context(
    (profile, samples): (&Profile, std::ops::Range<usize>),
    mut take: impl FnMut(u32, u32),
) {
    let of = &profile.samples()[samples.clone()];
    (samples.start as u32..).zip(of).for_each(|(sample, of)| take(sample, of.context));
}
