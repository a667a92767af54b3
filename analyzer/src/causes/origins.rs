//! To which delays each wait goes back, and how much of it to each (decision 103).
//!
//! A wait goes back to delays of its delaying rank and, through the delaying rank's own waits, to delays of
//! other lines. Since the two lines met, both may have waited for the same delay, or the delaying rank for
//! a delay of the line itself. Neither made the delaying rank later than the line, so these parts are
//! dropped; every other part is kept, so that each delay is charged what it adds.

use std::cmp::Reverse;

use super::divider::Divider;
use super::order::Order;
use super::reasons::{Balanced, Explained, Origins, Part, Reasons};
use super::waits::Waits;

/// A delay: line and context.
type Delay = (u32, u32);

/// In place of a delay: it is not known.
const UNKNOWN: Delay = (u32::MAX, u32::MAX);

/// Most parts of a wait, the largest; what remains of it is not attributed.
const MAX_PARTS: usize = 64;

/// The same once all waits together have more than [`MEAN_PARTS`] each.
const MAX_PARTS_IF_MANY: usize = 8;
const MEAN_PARTS: usize = 8;

/// If more parts than this would have to be compared, each wait counts as its largest part.
const MAX_COMPARED: usize = 4_096;

impl Origins {
    /// The parts of all waits, each found after those of the waits before it.
    pub fn new(waits: &Waits, order: &Order, reasons: &Reasons) -> Self {
        let of_wait = vec![(0, 0); waits.all.len()];
        let mut origins = Self { of_wait, parts: Vec::new() };
        let mut finder = OriginSearch::default();
        for &number in &order.forward {
            let parts = finder.parts(number, waits, (reasons, &origins));
            let many = origins.parts.len() > MEAN_PARTS * waits.all.len();
            parts.sort_unstable_by_key(|part| (Reverse(part.ticks), part.line, part.context));
            parts.truncate(if many { MAX_PARTS_IF_MANY } else { MAX_PARTS });
            let first = origins.parts.len() as u32;
            origins.of_wait[number as usize] = (first, parts.len() as u8);
            origins.parts.append(parts);
        }
        origins
    }

    pub fn each_mut(&mut self, change: impl FnMut(&mut Part)) {
        self.parts.iter_mut().for_each(change);
    }

    /// The parts of a wait whose delay is known, the largest first.
    pub fn parts_of(&self, wait: u32) -> &[Part] {
        let (first, count) = self.of_wait[wait as usize];
        &self.parts[first as usize..][..usize::from(count)]
    }
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
#[derive(Debug, Default)]
struct OriginSearch {
    divider: Divider,
    inherited: Vec<Inherited>,
    /// Context and ticks of the delaying rank's time that delays of the line excuse.
    excused: Vec<(u32, i64)>,
    parts: Vec<Part>,
}

impl OriginSearch {
    fn parts(
        &mut self,
        number: u32,
        waits: &Waits,
        (reasons, origins): (&Reasons, &Origins),
    ) -> &mut Vec<Part> {
        let Explained { delays, delaying_waits, by_delays, by_waits } =
            reasons.explained(number, waits);
        let wait = &waits.all[number as usize];
        let contexts = reasons.delays(number);
        self.parts.clear();
        let weights = contexts.iter().map(|(_, ticks)| *ticks);
        let shares = self.divider.divide(by_delays, weights, delays);
        let of_delaying = contexts.iter().zip(shares).filter(|(_, share)| **share > 0);
        self.parts.extend(of_delaying.map(|((context, _), share)| Part {
            line: wait.delayed_by,
            context: *context,
            ticks: *share,
        }));
        if by_waits > 0 {
            self.inherit(number, waits, (reasons, origins));
            let balanced = reasons.balanced(number);
            let mut by_balanced = 0;
            if by_waits < delaying_waits || !balanced.is_empty() {
                self.excuse(wait.line, balanced);
                let missing = self.drop_shared(wait.line, by_waits);
                by_balanced = self.add_excused(wait.delayed_by, missing);
                self.restore(missing - by_balanced);
            }
            self.add_inherited(by_waits - by_balanced);
        }
        &mut self.parts
    }

    /// Sums the waits of the delaying rank and of the line since the two met, by delay.
    fn inherit(&mut self, number: u32, waits: &Waits, (reasons, origins): (&Reasons, &Origins)) {
        let sides = [reasons.waits(number), reasons.waits_of_line(number, waits)];
        let parts_of = |wait| origins.parts_of(wait).len().max(1);
        let mut count = 0;
        let too_many = sides.iter().cloned().flatten().any(|wait| {
            count += parts_of(wait);
            count > MAX_COMPARED
        });
        self.inherited.clear();
        for (side, numbers) in sides.into_iter().enumerate() {
            for wait in numbers {
                let ticks = waits.all[wait as usize].ticks;
                let mut add = |delay, ticks| {
                    let [of_delaying, of_line] = if side == 0 { [ticks, 0] } else { [0, ticks] };
                    self.inherited.push(Inherited { delay, of_delaying, of_line, left: 0 });
                };
                match origins.parts_of(wait) {
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
    fn excuse(&mut self, line: u32, balanced: &[Balanced]) {
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

/// Most of a line's own waits that are looked at.
const MAX_OWN: usize = 1_000;

impl Reasons {
    /// The line for which the delaying rank of a wait had itself waited, by the largest delay that it took
    /// over, and the ticks of all that it took over.
    pub(super) fn main_wait(&self, number: u32, waits: &Waits) -> Option<(u32, i64)> {
        let wait = &waits.all[number as usize];
        let inherited =
            || self.origins.parts_of(number).iter().filter(|part| part.line != wait.delayed_by);
        let largest = inherited().next()?;
        let of_largest = |earlier: u32| {
            let parts = self.origins.parts_of(earlier).iter();
            let same = |part: &&Part| (part.line, part.context) == (largest.line, largest.context);
            parts.filter(same).map(|part| part.ticks).sum::<i64>()
        };
        let longest =
            self.waits(number).max_by_key(|earlier| (of_largest(*earlier), Reverse(*earlier)))?;
        let ticks = inherited().map(|part| part.ticks).sum();
        Some((waits.all[longest as usize].delayed_by, ticks))
    }

    /// The waits of the line itself since it met the delaying rank.
    fn waits_of_line(&self, number: u32, waits: &Waits) -> std::ops::Range<u32> {
        let line = waits.all[number as usize].line as usize;
        let first = waits.first[line] as u32;
        let met = self.met[number as usize];
        let since = |earlier: &u32| waits.all[*earlier as usize].begin >= met;
        let looked_at = (first..number).rev().take(MAX_OWN);
        looked_at.take_while(since).last().unwrap_or(number)..number
    }
}
