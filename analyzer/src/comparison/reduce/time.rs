//! Splits the ranks' time into parts. Every tick of every rank from the run's begin to its end is
//! in exactly one part. Rounding errors of the conversion to nanoseconds are distributed, so that
//! the parts add up to elapsed time times number of ranks.

use std::collections::BTreeMap;

use super::super::place::{Place, SiteTable};
use super::super::record::{Kind, Part};
use crate::causes::{Causes, Context, NO_CONTEXT, State};

/// Maximum number of places of each kind in a record; the rest is "elsewhere".
const MAX_COMPUTING: usize = 24;
const MAX_WAITING: usize = 32;
const MAX_TRANSFER: usize = 24;

/// Converts a duration to nanoseconds.
pub(super) fn nanoseconds(causes: &Causes, ticks: i64) -> i64 {
    (causes.clock.seconds(ticks) * 1e9).round() as i64
}

/// Identifies a part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct PartKey {
    kind: Kind,
    state: Option<State>,
    place: Place,
    delayed_by: Option<u32>,
}

impl PartKey {
    fn at(kind: Kind, place: Place) -> Self {
        Self { kind, state: None, place, delayed_by: None }
    }
}

/// Ticks by group of ranks.
type Sums = BTreeMap<PartKey, Vec<i64>>;

/// Sums the ranks' times of a run.
struct TimeSums<'c> {
    causes: &'c Causes<'c>,
    /// The places of the contexts.
    places: Vec<Place>,
    groups: usize,
    ranks_per_group: usize,
    sums: Sums,
}

impl TimeSums<'_> {
    fn add(&mut self, key: PartKey, position: usize, ticks: i64) {
        let (groups, group) = (self.groups, position / self.ranks_per_group);
        self.sums.entry(key).or_insert_with(|| vec![0; groups])[group] += ticks;
    }

    /// Adds all of a rank's time; waiting is not divided yet.
    fn add_rank(&mut self, position: usize) {
        let causes = self.causes;
        let number = causes.lines.first_of(position);
        let line = &causes.lines.all[number as usize];
        let at_end =
            |state| PartKey { state: Some(state), ..PartKey::at(Kind::StartAndEnd, Place::None) };
        self.add(at_end(State::StartSkew), position, line.begin - causes.whole.0);
        self.add(at_end(State::WaitAtFinalize), position, causes.whole.1 - line.end);
        let mut filled = 0;
        for (context, ticks) in causes.profiles.of_rank(&causes.lines, position).all() {
            filled += ticks;
            let place = || self.places[context as usize].clone();
            let key = match causes.contexts.get(context) {
                Context::Waiting | Context::WaitingForUnknown => {
                    PartKey::at(Kind::Waiting, Place::Elsewhere)
                }
                Context::Recorder => PartKey::at(Kind::Recorder, Place::None),
                Context::Totals => PartKey::at(Kind::Other, Place::None),
                Context::Transfer(_) => PartKey::at(Kind::Transfer, place()),
                Context::Region(_) | Context::Between(..) | Context::InCall(..) => {
                    PartKey::at(Kind::Computing, place())
                }
            };
            self.add(key, position, ticks);
        }
        // A line should be filled; anything missing is shown.
        let missing = line.end - line.begin - filled;
        self.add(PartKey::at(Kind::Other, Place::Elsewhere), position, missing);
    }

    /// Divides waiting by state, place and delaying rank.
    fn divide_waiting(&mut self) {
        let causes = self.causes;
        let waits = (0u32..).zip(causes.waits.iter().zip(&causes.wait_contexts));
        for (number, (wait, place)) in waits.filter(|(_, (wait, _))| !wait.state.is_at_the_ends()) {
            let ticks = causes.rank_ticks_of(number);
            let line = &causes.lines.all[wait.line as usize];
            let place = match *place {
                NO_CONTEXT => Place::None,
                place => self.places[place as usize].clone(),
            };
            let delayed_by =
                wait.has_delaying_rank().then(|| causes.lines.all[wait.delayed_by as usize].rank);
            let key = PartKey { kind: Kind::Waiting, state: Some(wait.state), place, delayed_by };
            self.add(key, line.position, ticks);
            self.add(PartKey::at(Kind::Waiting, Place::Elsewhere), line.position, -ticks);
        }
    }
}

/// The parts of a run with the given duration in ticks and nanoseconds.
pub(super) fn parts(
    causes: &Causes,
    (elapsed, elapsed_ns): (i64, i64),
    ranks_per_group: u32,
    sites: &mut SiteTable,
) -> Vec<Part> {
    let ranks = causes.lines.all.iter().map(|line| line.position + 1).max().unwrap_or(1);
    let ranks_per_group = ranks_per_group as usize;
    let groups = ranks.div_ceil(ranks_per_group);
    let places = causes.contexts.all.iter().map(|context| sites.place(context)).collect();
    let mut time_sums = TimeSums { causes, places, groups, ranks_per_group, sums: Sums::new() };
    (0..ranks).for_each(|position| time_sums.add_rank(position));
    time_sums.divide_waiting();
    let sums = largest(time_sums.sums, groups);
    let shares: Vec<Vec<i64>> = (0..groups)
        .map(|group| {
            let ticks: Vec<i64> = sums.values().map(|of| of[group]).collect();
            let count = (ranks - group * ranks_per_group).min(ranks_per_group) as i128;
            in_nanoseconds(&ticks, (count * i128::from(elapsed), count * i128::from(elapsed_ns)))
        })
        .collect();
    let all = sums.into_keys().enumerate().map(|(at, key)| {
        let by_ranks: Vec<i64> = shares.iter().map(|of_group| of_group[at]).collect();
        part(key, by_ranks)
    });
    let mut parts: Vec<Part> = all.flatten().collect();
    parts.sort_by_key(|part| (part.kind, std::cmp::Reverse(part.ns)));
    parts
}

/// Makes a part if it took any time.
fn part(key: PartKey, by_ranks: Vec<i64>) -> Option<Part> {
    if by_ranks.iter().all(|ns| *ns == 0) {
        return None;
    }
    let PartKey { kind, state, place, delayed_by } = key;
    let state = state.map(|state| state.key().to_owned());
    let ns = by_ranks.iter().sum();
    let by_ranks = if kind == Kind::Computing { by_ranks } else { Vec::new() };
    Some(Part { kind, place, state, delayed_by, ns, by_ranks })
}

/// Converts ticks to nanoseconds that add up: `ticks` add up to the first of `whole`, the result to
/// the second. The rest from rounding down goes to the largest remainders.
fn in_nanoseconds(ticks: &[i64], (whole, whole_ns): (i128, i128)) -> Vec<i64> {
    let scaled = ticks.iter().map(|ticks| i128::from(*ticks) * whole_ns);
    let divided: Vec<(i128, i128)> =
        scaled.map(|of| (of.div_euclid(whole), of.rem_euclid(whole))).collect();
    let mut left = whole_ns - divided.iter().map(|(ns, _)| ns).sum::<i128>();
    let mut order: Vec<usize> = (0..divided.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(divided[*at].1), *at));
    let mut shares: Vec<i64> = divided.iter().map(|(ns, _)| *ns as i64).collect();
    for at in order {
        let one = left.signum();
        shares[at] += one as i64;
        left -= one;
    }
    shares
}

/// Keeps the largest parts of each kind; the others of a kind, or of a wait state, are combined.
fn largest(sums: Sums, groups: usize) -> Sums {
    let mut rows: Vec<(PartKey, Vec<i64>)> = sums.into_iter().collect();
    rows.sort_by_key(|(_, of)| std::cmp::Reverse(of.iter().sum::<i64>()));
    let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut kept = Sums::new();
    for (key, ticks) in rows {
        let count = counts.entry(key.kind).or_default();
        *count += 1;
        let most = match key.kind {
            Kind::Computing => MAX_COMPUTING,
            Kind::Waiting => MAX_WAITING,
            Kind::Transfer => MAX_TRANSFER,
            _ => usize::MAX,
        };
        let key = match *count > most {
            true => PartKey { place: Place::Elsewhere, delayed_by: None, ..key },
            false => key,
        };
        let sum = kept.entry(key).or_insert_with(|| vec![0; groups]);
        for (sum, ticks) in sum.iter_mut().zip(ticks) {
            *sum += ticks;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nanoseconds_add_up(ticks in proptest::collection::vec(-5i64..1_000_000_000_000, 1..40), rate in 1i128..4_000) {
            let whole: i128 = ticks.iter().map(|ticks| i128::from(*ticks)).sum();
            prop_assume!(whole > 0);
            let whole_ns = whole * 1_000 / rate;
            let shares = in_nanoseconds(&ticks, (whole, whole_ns));
            prop_assert_eq!(shares.iter().map(|ns| i128::from(*ns)).sum::<i128>(), whole_ns);
            for (ns, ticks) in shares.iter().zip(&ticks) {
                prop_assert!((*ns as f64 - *ticks as f64 * whole_ns as f64 / whole as f64).abs() <= 1.01);
            }
        }
    }
}
