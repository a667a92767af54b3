//! To which delays each wait goes back, and how much of it to each (decision 103).
//!
//! A wait goes back to delays of its delaying rank and, through the delaying rank's own waits, to delays of
//! other lines. Since the two lines met, both may have waited for the same delay, or the delaying rank for
//! a delay of the line itself. Neither made the delaying rank later than the line, so these parts are
//! dropped; every other part is kept, so that each delay is charged what it adds.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::delay::{Balanced, DelaySearch, FoundDelays, Lateness, WAITS_AT_ONCE};
use super::divider::Divider;

/// A delay: line and context.
type Delay = (u32, u32);

/// In place of a delay: it is not known.
const UNKNOWN: Delay = (u32::MAX, u32::MAX);

/// Most parts of a wait, the largest; what remains of it is not attributed.
const MAX_PARTS: usize = 64;

/// The same once all waits together have more than [`MEAN_PARTS`] each.
const MAX_PARTS_IF_MANY: usize = 8;
const MEAN_PARTS: usize = 8;

/// Most of a line's own waits that are looked at.
const MAX_OWN: usize = 1_000;

/// If more parts than this would have to be compared, each wait counts as its largest part.
const MAX_COMPARED: usize = 4_096;

/// Ticks of a wait that go back to a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub line: u32,
    pub context: u32,
    pub ticks: i64,
}

/// Where the parts of a wait are: in which batch, from which position on, and how many they are.
#[derive(Debug, Default)]
struct Place(AtomicU64);

impl Place {
    fn set(&self, batch: usize, first: usize, count: usize) {
        let place = (batch as u64) << 40 | (first as u64) << 8 | count as u64;
        self.0.store(place, Ordering::Relaxed);
    }

    fn get(&self) -> (usize, usize, usize) {
        let place = self.0.load(Ordering::Relaxed);
        ((place >> 40) as usize, (place >> 8) as u32 as usize, place as u8 as usize)
    }
}

/// The parts of waits that somebody still asks for.
#[derive(Debug)]
pub(super) struct Origins {
    /// By wait.
    places: Vec<Place>,
    /// Waits are dealt with in batches, in causal order. The parts of a wait follow each other, the largest first;
    /// batches to which no later wait goes back are empty.
    batches: Vec<Vec<Part>>,
    /// How many parts all have had.
    count: usize,
}

impl Origins {
    /// Finds the parts of all waits, each after those of the waits before it, and passes them on: numbers of waits,
    /// and where their parts and those of the waits that made them wait are. `name` gives the name of the context of a
    /// delay, for the number of its wait. Returns how many waits have intervals that are too long to search.
    ///
    /// While waits of one batch are passed on, those of the next are found, and the delays of the one after.
    pub fn pass_on(
        search: &DelaySearch,
        name: &(dyn Fn(u32, u32) -> u32 + Sync),
        mut take: impl FnMut(&[u32], &Self) + Send,
    ) -> u64 {
        let all: Vec<&[u32]> = search.order.forward.chunks(WAITS_AT_ONCE).collect();
        let needed_after = Self::needed_after(search, &all);
        let mut origins = Self {
            places: std::iter::repeat_with(Place::default).take(search.waits.len()).collect(),
            batches: Vec::with_capacity(all.len()),
            count: 0,
        };
        let mut finder = OriginSearch::new(search);
        let (mut too_long, mut before): (u64, &[u32]) = (0, &[]);
        let mut found = all.first().map(|numbers| search.delays(numbers)).unwrap_or_default();
        for (batch, numbers) in all.iter().enumerate() {
            too_long += found.iter().map(|found| found.too_long).sum::<u64>();
            let next = || all.get(batch + 1).map(|numbers| search.delays(numbers));
            let known = &origins;
            let here = || {
                rayon::join(
                    || known.batch((batch, numbers), &found, &mut finder, name),
                    || take(before, known),
                )
            };
            let (next, (parts, ())) = rayon::join(next, here);
            origins.count += parts.len();
            origins.batches.push(parts);
            // What comes next still goes back to the batch before.
            for old in &mut origins.batches[..needed_after[batch].min(batch)] {
                *old = Vec::new();
            }
            (found, before) = (next.unwrap_or_default(), numbers);
        }
        take(before, &origins);
        too_long
    }

    /// For each batch the first one to which it or any later one goes back.
    fn needed_after(search: &DelaySearch, all: &[&[u32]]) -> Vec<usize> {
        let mut batch_of = vec![0; search.waits.len()];
        for (batch, numbers) in (0u32..).zip(all) {
            numbers.iter().for_each(|number| batch_of[*number as usize] = batch);
        }
        // Each line's waits are in order.
        let first = |number: u32| {
            let (from, to) = search.delaying_waits(number);
            let of_line = waits_of_line(search, number).start;
            let of_delaying = if from < to { from } else { number };
            batch_of[of_delaying as usize].min(batch_of[of_line as usize])
        };
        let firsts = all.par_iter().map(|numbers| {
            let of_batch =
                numbers.iter().filter(|number| search.waits[**number as usize].has_delaying_rank());
            of_batch.map(|number| first(*number)).min().unwrap_or(u32::MAX)
        });
        let mut needed: Vec<usize> = firsts.map(|first| first as usize).collect();
        for batch in (1..needed.len()).rev() {
            needed[batch - 1] = needed[batch - 1].min(needed[batch]);
        }
        needed
    }

    /// The parts of the waits of a batch, whose delays have been found.
    fn batch(
        &self,
        (batch, numbers): (usize, &[u32]),
        found: &[FoundDelays],
        finder: &mut OriginSearch,
        name: &(dyn Fn(u32, u32) -> u32 + Sync),
    ) -> Vec<Part> {
        let mut own = Vec::new();
        for (number, lateness) in numbers.iter().zip(found.iter().flat_map(FoundDelays::all)) {
            let known = Known { origins: self, batch, own: &own };
            finder.find((*number, lateness), known, &|context| name(*number, context));
            let parts = &mut finder.parts;
            let many = self.count + own.len() > MEAN_PARTS * self.places.len();
            parts.sort_unstable_by_key(|part| (Reverse(part.ticks), part.line, part.context));
            parts.truncate(if many { MAX_PARTS_IF_MANY } else { MAX_PARTS });
            self.places[*number as usize].set(batch, own.len(), parts.len());
            own.append(parts);
        }
        own
    }

    /// The parts of a wait that was passed on, or to which it goes back; the largest first. Empty if its delay is not
    /// known.
    pub fn parts_of(&self, wait: u32) -> &[Part] {
        let (batch, first, count) = self.places[wait as usize].get();
        if count == 0 { &[] } else { &self.batches[batch][first..][..count] }
    }
}

/// The parts of earlier waits.
#[derive(Clone, Copy)]
struct Known<'o> {
    origins: &'o Origins,
    /// The batch that is dealt with, and its parts so far.
    batch: usize,
    own: &'o [Part],
}

impl<'o> Known<'o> {
    fn parts_of(self, wait: u32) -> &'o [Part] {
        let (batch, first, count) = self.origins.places[wait as usize].get();
        match batch == self.batch {
            true => &self.own[first..][..count],
            false => self.origins.parts_of(wait),
        }
    }
}

/// The waits of the line of a wait since it met the delaying rank.
fn waits_of_line(search: &DelaySearch, number: u32) -> Range<u32> {
    let DelaySearch { waits, first, sync_points, .. } = search;
    let first = first[waits[number as usize].line as usize] as u32;
    let met = sync_points[number as usize].moment;
    let since = |earlier: &u32| waits[*earlier as usize].begin >= met;
    let looked_at = (first..number).rev().take(MAX_OWN);
    looked_at.take_while(since).last().unwrap_or(number)..number
}

/// A delay to which waits of the delaying rank go back.
#[derive(Debug, Clone, Copy)]
struct Inherited {
    delay: Delay,
    /// Ticks of the delaying rank's waits, and of those of the line that waits.
    of_delaying: i64,
    of_line: i64,
    /// What made the delaying rank later than the line.
    left: i64,
}

/// Finds the parts of waits, reusing its memory.
#[derive(Debug)]
struct OriginSearch<'s> {
    search: &'s DelaySearch<'s>,
    divider: Divider,
    inherited: Vec<Inherited>,
    /// The wait's delays and balanced contexts, by the names of their contexts.
    delays: Vec<(u32, i64)>,
    balanced: Vec<Balanced>,
    /// Context and ticks of the delaying rank's time that delays of the line excuse.
    excused: Vec<(u32, i64)>,
    parts: Vec<Part>,
}

impl<'s> OriginSearch<'s> {
    fn new(search: &'s DelaySearch<'s>) -> Self {
        let (divider, inherited, delays, balanced, excused, parts) = Default::default();
        Self { search, divider, inherited, delays, balanced, excused, parts }
    }

    /// Finds the parts of a wait.
    ///
    /// The sum of the delaying rank's delays and own waits (S) exceeds the wait by what the waiting line itself spent
    /// longer and waited since the two last met. That time made the delaying rank wait, or both lines waited for it,
    /// so it is first deducted from the delaying rank's waits.
    fn find(
        &mut self,
        (number, lateness): (u32, Lateness),
        known: Known,
        name: &dyn Fn(u32) -> u32,
    ) {
        let wait = &self.search.waits[number as usize];
        self.parts.clear();
        self.delays.clear();
        self.delays.extend(lateness.delays.iter().map(|(context, ticks)| (name(*context), *ticks)));
        let delays: i64 = self.delays.iter().map(|(_, ticks)| *ticks).sum();
        let (from, to) = lateness.delaying_waits;
        let delaying_waits = &self.search.waits[from as usize..to as usize];
        let delaying_waits: i64 = delaying_waits.iter().map(|wait| wait.ticks).sum();
        let by_delays = delays.min(wait.ticks);
        let by_waits = delaying_waits.min(wait.ticks - by_delays);
        let weights = self.delays.iter().map(|(_, ticks)| *ticks);
        let shares = self.divider.divide(by_delays, weights, delays);
        let of_delaying = self.delays.iter().zip(shares).filter(|(_, share)| **share > 0);
        self.parts.extend(of_delaying.map(|((context, _), share)| Part {
            line: wait.delayed_by,
            context: *context,
            ticks: *share,
        }));
        if by_waits > 0 {
            self.inherit(number, from..to, known);
            let mut by_balanced = 0;
            if by_waits < delaying_waits || !lateness.balanced.is_empty() {
                self.balanced.clear();
                let named = lateness.balanced.iter();
                self.balanced.extend(named.map(|of| Balanced { context: name(of.context), ..*of }));
                self.excuse(wait.line);
                let missing = self.drop_shared(wait.line, by_waits);
                by_balanced = self.add_excused(wait.delayed_by, missing);
                self.restore(missing - by_balanced);
            }
            self.add_inherited(by_waits - by_balanced);
        }
    }

    /// Sums the waits of the delaying rank and of the line since the two met, by delay.
    fn inherit(&mut self, number: u32, of_delaying: Range<u32>, known: Known) {
        let sides = [of_delaying, waits_of_line(self.search, number)];
        let parts_of = |wait| known.parts_of(wait).len().max(1);
        let mut count = 0;
        let too_many = sides.iter().cloned().flatten().any(|wait| {
            count += parts_of(wait);
            count > MAX_COMPARED
        });
        self.inherited.clear();
        for (side, numbers) in sides.into_iter().enumerate() {
            for wait in numbers {
                let ticks = self.search.waits[wait as usize].ticks;
                let mut add = |delay, ticks| {
                    let [of_delaying, of_line] = if side == 0 { [ticks, 0] } else { [0, ticks] };
                    self.inherited.push(Inherited { delay, of_delaying, of_line, left: 0 });
                };
                match known.parts_of(wait) {
                    [largest, ..] if too_many => add((largest.line, largest.context), ticks),
                    parts => {
                        parts.iter().for_each(|part| add((part.line, part.context), part.ticks));
                        add(UNKNOWN, ticks - parts.iter().map(|part| part.ticks).sum::<i64>());
                    }
                }
            }
        }
        self.inherited.sort_unstable_by_key(|inherited| inherited.delay);
        self.inherited.dedup_by(|next, sum| {
            let is_same = next.delay == sum.delay;
            if is_same {
                sum.of_delaying += next.of_delaying;
                sum.of_line += next.of_line;
            }
            is_same
        });
        self.inherited.retain(|inherited| inherited.of_delaying > 0);
        self.inherited.iter_mut().for_each(|inherited| inherited.left = inherited.of_delaying);
    }

    /// Finds which of the delaying rank's own time the delays of the line excuse, although the delaying rank has
    /// waited for these delays already: as much as they are, in the same context, or in contexts that
    /// only one of the two has.
    fn excuse(&mut self, line: u32) {
        let balanced = &self.balanced;
        self.excused.clear();
        let mut alone = 0;
        for of in self.inherited.iter().filter(|of| of.delay.0 == line) {
            match balanced.iter().find(|balanced| balanced.context == of.delay.1) {
                Some(same) => self.excused.push((same.context, of.of_delaying.min(same.ticks))),
                None => alone += of.of_delaying,
            }
        }
        let pooled = balanced.iter().filter(|of| !of.is_common);
        let all: i64 = pooled.clone().map(|of| of.ticks).sum();
        let weights = pooled.clone().map(|of| of.ticks);
        let shares = self.divider.divide(alone.min(all), weights, all);
        self.excused.extend(pooled.zip(shares).map(|(of, share)| (of.context, *share)));
    }

    /// Adds so much of the delaying rank's excused time, or all of it; returns how much.
    fn add_excused(&mut self, delayed_by: u32, missing: i64) -> i64 {
        let all: i64 = self.excused.iter().map(|(_, ticks)| *ticks).sum();
        let ticks = missing.min(all);
        let weights = self.excused.iter().map(|(_, ticks)| *ticks);
        let shares = self.divider.divide(ticks, weights, all);
        let parts = self.excused.iter().zip(shares).filter(|(_, share)| **share > 0);
        self.parts.extend(parts.map(|((context, _), share)| Part {
            line: delayed_by,
            context: *context,
            ticks: *share,
        }));
        ticks
    }

    /// Drops what did not make the delaying rank later than the line: delays of the line itself, and those
    /// for which it had waited, too. Returns how much of the wait is then left to be explained.
    fn drop_shared(&mut self, line: u32, by_waits: i64) -> i64 {
        let is_own = |inherited: &Inherited| inherited.delay.0 == line;
        let has_waited = |of: &Inherited| of.delay != UNKNOWN && of.of_line > 0;
        self.inherited.retain(|inherited| !is_own(inherited));
        for inherited in &mut self.inherited {
            if has_waited(inherited) {
                inherited.left = (inherited.of_delaying - inherited.of_line).max(0);
            }
        }
        let left: i64 = self.inherited.iter().map(|inherited| inherited.left).sum();
        if left < by_waits {
            return by_waits - left;
        }
        // A line that computed longer before it waited for the same delay waited less for it, and
        // was made late by all of it.
        let shared = self.inherited.iter().filter(|of| has_waited(of)).map(|of| of.left);
        let shared_ticks: i64 = shared.clone().sum();
        let more = (left - by_waits).min(shared_ticks);
        let shares = self.divider.divide(more, shared, shared_ticks);
        let of_shared = self.inherited.iter_mut().filter(|of| has_waited(of));
        of_shared.zip(shares).for_each(|(of, share)| of.left -= share);
        0
    }

    /// If more was dropped than explains nothing, takes some of it back.
    fn restore(&mut self, missing: i64) {
        let dropped = self.inherited.iter().map(|of| of.of_delaying - of.left);
        let all_dropped: i64 = dropped.clone().sum();
        let shares = self.divider.divide(missing.min(all_dropped), dropped, all_dropped);
        self.inherited.iter_mut().zip(shares).for_each(|(of, share)| of.left += share);
    }

    /// Divides what the delaying rank's waits explain in proportion to what is left of them.
    fn add_inherited(&mut self, by_waits: i64) {
        let left = self.inherited.iter().map(|inherited| inherited.left);
        let all_left: i64 = left.clone().sum();
        let shares = self.divider.divide(by_waits.min(all_left), left, all_left);
        let known = self.inherited.iter().zip(shares);
        let known = known.filter(|(of, share)| of.delay != UNKNOWN && **share > 0);
        self.parts.extend(known.map(|(Inherited { delay: (line, context), .. }, share)| Part {
            line: *line,
            context: *context,
            ticks: *share,
        }));
    }
}
