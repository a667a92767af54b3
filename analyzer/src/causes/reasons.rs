//! Why the delaying ranks of waits were late, wait by wait.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::callers::{DelayNames, DelayPlaces};
use super::contexts::Contexts;
use super::delay::{DelaySearch, FoundDelays};
use super::in_calls::InCalls;
use super::order::Order;
use super::origins::{Origins, Part};
use super::profile::Profile;
use super::sampled_code::{SampledDelay, SampledDelays};
use super::states::State;
use super::sync_points::SyncPoint;
use super::wait::Wait;

/// Why the delaying ranks of waits were late, wait by wait.
#[derive(Debug)]
pub struct Reasons {
    /// First wait of each line; one more entry ends the last line.
    first: Vec<usize>,
    /// When the line of each wait last met its delaying rank.
    sync_points: Vec<SyncPoint>,
    /// Without [`Order::forward`].
    pub(super) order: Order,
    names: DelayNames,
    /// The calls after which delays are named, by delaying line and context.
    of_calls: FxHashMap<(u32, u32), u32>,
    /// The delays to which each wait goes back.
    pub(super) origins: Origins,
    /// What was sampled of the delays.
    sampled: SampledDelays,
}

/// The waits of a run and what their lines did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waited<'c> {
    pub waits: &'c [Wait],
    /// Contexts of the waiting calls.
    pub wait_contexts: &'c [u32],
    /// By line.
    pub profiles: &'c [Profile],
    /// Number of the contexts in these.
    pub contexts: usize,
}

impl<'c> Waited<'c> {
    fn search(
        self,
        first: &'c [usize],
        (sync_points, order): (&'c [SyncPoint], &'c Order),
    ) -> DelaySearch<'c> {
        let Self { waits, profiles, contexts, .. } = self;
        DelaySearch { waits, first, sync_points, order, profiles, contexts }
    }

    /// State of a wait, and context of its call.
    fn state(&self, number: u32) -> (State, u32) {
        (self.waits[number as usize].state, self.wait_contexts[number as usize])
    }
}

impl Reasons {
    /// Reasons of all waits. `ticks_of` gives the ticks of a wait that count.
    pub(super) fn new(
        waited: Waited,
        first: Vec<usize>,
        (sync_points, mut order): (Vec<SyncPoint>, Order),
        contexts: &mut Contexts,
        ticks_of: &(dyn Fn(u32) -> i64 + Sync),
    ) -> Self {
        let search = waited.search(&first, (&sync_points, &order));
        let mut places = DelayPlaces::new(contexts);
        let mut name_delay = |number, context| places.context(context, waited.state(number));
        let in_calls = InCalls::new(&search, ticks_of, &mut name_delay);
        let mut sampled = SampledDelays::new(&search, ticks_of, &mut name_delay);
        if places.has_callers {
            name_all(&search, &mut places, |number| waited.state(number));
        }
        let names = places.into_names();
        let mut origins =
            Origins::new(&search, &|number, context| names.of(context, waited.state(number)));
        let of_calls = in_calls.named(contexts);
        if !of_calls.is_empty() {
            let name = |line, context| of_calls.get(&(line, context)).copied().unwrap_or(context);
            origins.each_mut(|part| part.context = name(part.line, part.context));
            sampled.rename(name);
        }
        order.forward = Vec::new();
        Self { first, sync_points, order, names, of_calls, origins, sampled }
    }

    fn search<'c>(&'c self, waited: Waited<'c>) -> DelaySearch<'c> {
        waited.search(&self.first, (&self.sync_points, &self.order))
    }

    /// Contexts in which the delaying rank of a wait spent more time than the line that waited, with the excess
    /// d(c); and numbers of the delaying rank's own waits in the interval.
    pub(super) fn of_wait(&self, number: u32, waited: Waited) -> (Vec<(u32, i64)>, Range<u32>) {
        let found = self.search(waited).delays(&[number]);
        let of_wait = found.iter().flat_map(FoundDelays::all).next().unwrap_or_default();
        let line = waited.waits[number as usize].delayed_by;
        let named = of_wait.delays.iter().map(|(context, ticks)| {
            let context = self.names.of(*context, waited.state(number));
            (self.of_calls.get(&(line, context)).copied().unwrap_or(context), *ticks)
        });
        (named.collect(), of_wait.delaying_waits.0..of_wait.delaying_waits.1)
    }

    /// The line for which the delaying rank of a wait had itself waited, by the largest delay that it took
    /// over, and the ticks of all that it took over.
    pub(super) fn main_wait(&self, number: u32, waited: Waited) -> Option<(u32, i64)> {
        let wait = &waited.waits[number as usize];
        let inherited =
            || self.origins.parts_of(number).iter().filter(|part| part.line != wait.delayed_by);
        let largest = inherited().next()?;
        let of_largest = |earlier: u32| {
            let parts = self.origins.parts_of(earlier).iter();
            let same = |part: &&Part| (part.line, part.context) == (largest.line, largest.context);
            parts.filter(same).map(|part| part.ticks).sum::<i64>()
        };
        let (from, to) = self.search(waited).delaying_waits(number);
        let longest = (from..to).max_by_key(|earlier| (of_largest(*earlier), Reverse(*earlier)))?;
        let ticks = inherited().map(|part| part.ticks).sum();
        Some((waited.waits[longest as usize].delayed_by, ticks))
    }

    /// What was sampled of the delay of a line in a context; `None` if its code was not sampled.
    pub fn sampled(&self, line: u32, context: u32) -> Option<&SampledDelay> {
        self.sampled.0.get(&(line, context))
    }
}

/// Names the contexts of all delays, then those of the balanced ones, each in the order of the waits.
fn name_all(search: &DelaySearch, places: &mut DelayPlaces, waiting: impl Fn(u32) -> (State, u32)) {
    let all: Vec<u32> = (0..search.waits.len() as u32).collect();
    let (mut known, mut balanced) = (FxHashSet::default(), Vec::new());
    search.for_each(&all, |number, lateness| {
        let waiting = waiting(number);
        for (context, _) in lateness.delays {
            places.context(*context, waiting);
        }
        let of_wait = lateness.balanced.iter().map(|of| (of.context, waiting));
        balanced.extend(of_wait.filter(|pair| known.insert(*pair)));
    });
    balanced.into_iter().for_each(|(context, waiting)| {
        places.context(context, waiting);
    });
}
