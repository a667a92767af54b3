//! Why the delaying ranks of waits were late, wait by wait.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::callers::{DelayNames, DelayPlaces};
use super::charges::{ChargeSums, Charges};
use super::contexts::Contexts;
use super::critical_path::CriticalPath;
use super::delay::{DelaySearch, FoundDelays};
use super::groups::{Group, GroupSums};
use super::in_calls::InCalls;
use super::lines::Lines;
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
    order: Order,
    named: Named,
}

/// How delays are named, and what was sampled of them.
#[derive(Debug)]
struct Named {
    names: DelayNames,
    /// The calls after which delays are named, by delaying line and context.
    of_calls: FxHashMap<(u32, u32), u32>,
    sampled: SampledDelays,
}

impl Named {
    /// The context after which a delay of a line in a context is named.
    fn of_line(&self, line: u32, context: u32) -> u32 {
        self.of_calls.get(&(line, context)).copied().unwrap_or(context)
    }
}

/// What waiting goes back to.
#[derive(Debug)]
pub(super) struct Explained {
    pub charges: Charges,
    pub groups: Vec<Group>,
    pub path: CriticalPath,
    /// Waits whose interval is too long to search.
    pub too_long: u64,
    /// Waits that would depend on themselves.
    pub cut: u64,
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
    /// Reasons of all waits, and what these go back to. `ticks_of` gives the ticks of a wait that count; `path` finds
    /// the critical path meanwhile.
    pub(super) fn new(
        (waited, lines): (Waited, &Lines),
        first: Vec<usize>,
        (sync_points, mut order): (Vec<SyncPoint>, Order),
        contexts: &mut Contexts,
        ticks_of: &(dyn Fn(u32) -> i64 + Sync),
        path: impl FnOnce(&Order) -> CriticalPath + Send,
    ) -> (Self, Explained) {
        let search = waited.search(&first, (&sync_points, &order));
        let explain = || {
            let named = Named::new(&search, waited, contexts, ticks_of);
            let (mut charges, mut groups) = (ChargeSums::default(), GroupSums::new(lines));
            let take = |numbers: &[u32], origins: &Origins| {
                for number in numbers {
                    let counting = ticks_of(*number);
                    if counting == 0 {
                        continue;
                    }
                    let (wait, parts) =
                        (&waited.waits[*number as usize], origins.parts_of(*number));
                    charges.add(wait, counting, parts);
                    let of = (wait, waited.wait_contexts[*number as usize]);
                    groups.add(of, counting, parts, main_wait(&search, origins, *number));
                }
            };
            let name = |number, context| named.names.of(context, waited.state(number));
            let too_long = Origins::pass_on(&search, &name, take);
            let of_line = |line, context| named.of_line(line, context);
            let (charges, groups) = (charges.finish(of_line), groups.finish(of_line));
            (charges, groups, named, too_long)
        };
        let ((charges, groups, named, too_long), path) = rayon::join(explain, || path(&order));
        let cut = order.cut.len() as u64;
        order.forward = Vec::new();
        let explained = Explained { charges, groups, path, too_long, cut };
        (Self { first, sync_points, order, named }, explained)
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
            let context = self.named.names.of(*context, waited.state(number));
            (self.named.of_line(line, context), *ticks)
        });
        (named.collect(), of_wait.delaying_waits.0..of_wait.delaying_waits.1)
    }

    /// What was sampled of the delay of a line in a context; `None` if its code was not sampled.
    pub fn sampled(&self, line: u32, context: u32) -> Option<&SampledDelay> {
        self.named.sampled.0.get(&(line, context))
    }
}

impl Named {
    fn new(
        search: &DelaySearch,
        waited: Waited,
        contexts: &mut Contexts,
        ticks_of: &(dyn Fn(u32) -> i64 + Sync),
    ) -> Self {
        let mut places = DelayPlaces::new(contexts);
        let mut name_delay = |number, context| places.context(context, waited.state(number));
        let in_calls = InCalls::new(search, ticks_of, &mut name_delay);
        let mut sampled = SampledDelays::new(search, ticks_of, &mut name_delay);
        if places.has_callers {
            name_all(search, &mut places, |number| waited.state(number));
        }
        let (names, of_calls) = (places.into_names(), in_calls.named(contexts));
        if !of_calls.is_empty() {
            sampled
                .rename(|line, context| of_calls.get(&(line, context)).copied().unwrap_or(context));
        }
        Self { names, of_calls, sampled }
    }
}

/// The line for which the delaying rank of a wait had itself waited, by the largest delay that it took
/// over, and the ticks of all that it took over.
fn main_wait(search: &DelaySearch, origins: &Origins, number: u32) -> Option<(u32, i64)> {
    let wait = &search.waits[number as usize];
    let inherited = || origins.parts_of(number).iter().filter(|part| part.line != wait.delayed_by);
    let largest = inherited().next()?;
    let of_largest = |earlier: u32| {
        let parts = origins.parts_of(earlier).iter();
        let same = |part: &&Part| (part.line, part.context) == (largest.line, largest.context);
        parts.filter(same).map(|part| part.ticks).sum::<i64>()
    };
    let (from, to) = search.delaying_waits(number);
    let longest = (from..to).max_by_key(|earlier| (of_largest(*earlier), Reverse(*earlier)))?;
    let ticks = inherited().map(|part| part.ticks).sum();
    Some((search.waits[longest as usize].delayed_by, ticks))
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
