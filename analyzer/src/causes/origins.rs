//! Which of a culprit's own waits explain a wait, if not all of them do (decision 95).
//!
//! Since a line and its culprit met, both may have waited for the same delay, or the culprit for a
//! delay of the line itself. Neither made the culprit later than the line. So each wait gets the
//! delay to which most of it goes back, its *origin*, and what the line has of an origin is
//! deducted from what the culprit has of it.

use rustc_hash::FxHashMap;

use super::delay::{Divider, Explained, Reasons};
use super::order::Order;
use super::waits::Waits;

/// Line and context of a delay.
pub(super) type Origin = (u32, u32);

/// In place of an origin: it is not known.
const NO_ORIGIN: Origin = (u32::MAX, u32::MAX);

/// If more waits than this would have to be compared, the culprit's count in proportion to their
/// lengths.
const MAX_COMPARED: usize = 1_000;

/// Memory that is reused.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    divider: Divider,
    /// Ticks of waits by origin, of the culprit and of the line that waits.
    by_origin: FxHashMap<Origin, [i64; 2]>,
    shares: Vec<i64>,
}

/// Most shares that are kept, as a multiple of the number of waits.
const MAX_KEPT: usize = 4;

/// Shares of the waits of which the culprit's own waits explain only a part; those take longest to find and are
/// needed several times.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptShares {
    /// For each wait the index of its first share in `all`, or [`NOT_KEPT`].
    first: Vec<u32>,
    all: Vec<i64>,
}

/// In place of an index: the shares of that wait are found anew.
const NOT_KEPT: u32 = u32::MAX;

impl KeptShares {
    fn new(waits: usize) -> Self {
        Self { first: vec![NOT_KEPT; waits], all: Vec::new() }
    }

    fn keep(&mut self, number: u32, shares: &[i64]) {
        if self.all.len() + shares.len() <= MAX_KEPT * self.first.len() {
            self.first[number as usize] = self.all.len() as u32;
            self.all.extend(shares);
        }
    }

    fn get(&self, number: u32, count: usize) -> Option<&[i64]> {
        let first = *self.first.get(number as usize)?;
        (first != NOT_KEPT).then(|| &self.all[first as usize..first as usize + count])
    }
}

/// The origins of all waits, each found after those of the waits before it.
pub(super) fn origins(waits: &Waits, order: &Order, reasons: &mut Reasons) {
    reasons.origins = vec![NO_ORIGIN; waits.all.len()];
    let mut kept = KeptShares::new(waits.all.len());
    let mut scratch = Scratch::default();
    let mut sums: Vec<(Origin, i64)> = Vec::new();
    for &number in &order.forward {
        let Explained { delays, by_delays, culprits_waits, by_waits } =
            reasons.explained(number, waits);
        let culprit = waits.all[number as usize].culprit;
        sums.clear();
        sums.extend(reasons.delays(number).iter().map(|(context, ticks)| {
            let share = i128::from(by_delays) * i128::from(*ticks) / i128::from(delays.max(1));
            ((culprit, *context), share as i64)
        }));
        let shares = reasons.wait_shares(number, waits, &mut scratch);
        if by_waits > 0 && by_waits != culprits_waits {
            kept.keep(number, shares);
        }
        for (earlier, share) in reasons.waits(number).zip(shares) {
            let origin = reasons.origins[earlier as usize];
            match sums.iter_mut().find(|(other, _)| *other == origin) {
                Some((_, sum)) => *sum += share,
                None => sums.push((origin, *share)),
            }
        }
        let largest = sums.iter().filter(|(_, ticks)| *ticks > 0);
        let largest = largest.max_by_key(|(origin, ticks)| (*ticks, std::cmp::Reverse(*origin)));
        reasons.origins[number as usize] = largest.map_or(NO_ORIGIN, |(origin, _)| *origin);
    }
    reasons.kept_shares = kept;
}

impl Reasons {
    /// For each of the culprit's own waits the ticks of a wait that it explains; empty if none does. Their
    /// sum is [`Explained::by_waits`], or less if the culprit mostly waited for the waiting line
    /// itself.
    pub(super) fn wait_shares<'s>(
        &'s self,
        number: u32,
        waits: &Waits,
        scratch: &'s mut Scratch,
    ) -> &'s [i64] {
        let Scratch { divider, by_origin, shares } = scratch;
        let ticks = |earlier: u32| waits.all[earlier as usize].ticks;
        let of_culprit = self.waits(number);
        let Explained { culprits_waits, by_waits, .. } = self.explained(number, waits);
        if by_waits == 0 {
            return &[];
        }
        if let Some(kept) = self.kept_shares.get(number, of_culprit.len()) {
            return kept;
        }
        shares.clear();
        shares.extend(of_culprit.clone().map(ticks));
        if by_waits == culprits_waits {
            return shares;
        }
        let line = waits.all[number as usize].line;
        let own = self.waits_of_line(number, waits);
        if shares.len() + own.len() <= MAX_COMPARED {
            by_origin.clear();
            for (side, range) in [(0, of_culprit.clone()), (1, own)] {
                for earlier in range {
                    let origin = self.origins[earlier as usize];
                    by_origin.entry(origin).or_default()[side] += ticks(earlier);
                }
            }
            for (earlier, share) in of_culprit.clone().zip(shares.iter_mut()) {
                let origin = self.origins[earlier as usize];
                let [of_culprit, of_line] = by_origin[&origin];
                let left = match origin {
                    NO_ORIGIN => of_culprit,
                    (late, _) if late == line => 0,
                    _ => (of_culprit - of_line).max(0),
                };
                let part = i128::from(*share) * i128::from(left) / i128::from(of_culprit.max(1));
                *share = part as i64;
            }
        }
        // What is left is divided first, then what was deducted for waits of the same origin.
        let left: i64 = shares.iter().sum();
        let deducted = of_culprit.zip(shares.iter()).map(|(earlier, left)| {
            match self.origins[earlier as usize] {
                (late, _) if late == line => 0,
                _ => ticks(earlier) - left,
            }
        });
        let deducted: Vec<i64> = deducted.collect();
        let all_deducted: i64 = deducted.iter().sum();
        let first = by_waits.min(left);
        let of_left = divider.divide(first, shares.iter().copied(), left).to_vec();
        let rest = (by_waits - first).min(all_deducted);
        let of_rest = divider.divide(rest, deducted.iter().copied(), all_deducted);
        shares.clear();
        shares.extend(of_left.iter().zip(of_rest).map(|(left, rest)| left + rest));
        shares
    }

    /// The waits of the line itself since it met the culprit.
    fn waits_of_line(&self, number: u32, waits: &Waits) -> std::ops::Range<u32> {
        let line = waits.all[number as usize].line as usize;
        let first = waits.first[line] as u32;
        let met = self.met[number as usize];
        let since = |earlier: &u32| waits.all[*earlier as usize].begin >= met;
        let compared = (first..number).rev().take(MAX_COMPARED + 1);
        compared.take_while(since).last().unwrap_or(number)..number
    }
}
