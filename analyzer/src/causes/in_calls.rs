//! Names the BLAS, LAPACK or FFTW call, the OpenMP parallel region or the calls on files in which a delaying rank spends
//! longer.
//!
//! Delays are found in whole stretches of computation, because what one call takes longer another may
//! take less. Where one call holds at least half of what makes a stretch longer, over all waits that
//! are explained, the delay is named after it (decision 132).

use rustc_hash::FxHashMap;

use super::contexts::{Context, Contexts};
use super::delay::{DelaySearch, Lateness};
use super::profile::{Hint, Profile};

/// Most stretches with calls that are compared for a wait.
const MAX_COMPARED: usize = 4_096;

/// For each delaying line and context the call that makes it longer.
#[derive(Debug, Clone, Default)]
pub(super) struct InCalls(FxHashMap<(u32, u32), u32>);

impl InCalls {
    /// Compares the calls of delaying lines with those of the lines that waited.
    pub fn new(
        finder: &DelaySearch,
        ticks_of: &dyn Fn(u32) -> i64,
        name_delay: &mut impl FnMut(u32, u32) -> u32,
    ) -> Self {
        if !finder.profiles.iter().any(Profile::has_calls) {
            return Self::default();
        }
        let mut hints = vec![Hint::default(); finder.profiles.len()];
        // By line and context: all delay, and by call what of it lies there.
        let mut delays: FxHashMap<(u32, u32), i64> = FxHashMap::default();
        let mut in_calls: FxHashMap<(u32, u32, u32), i64> = FxHashMap::default();
        let mut longer: FxHashMap<(u32, u32), i64> = FxHashMap::default();
        let numbers: Vec<u32> =
            (0..finder.waits.len() as u32).filter(|n| ticks_of(*n) > 0).collect();
        finder.for_each(&numbers, |number, Lateness { delays: of_wait, .. }| {
            if of_wait.is_empty() {
                return;
            }
            let wait = &finder.waits[number as usize];
            let point = &finder.sync_points[number as usize];
            longer.clear();
            let sides = [
                (wait.delayed_by, (point.on_delaying, wait.fulfilled), 1),
                (wait.line, (point.moment, wait.begin), -1),
            ];
            for (line, interval, sign) in sides {
                let profile = &finder.profiles[line as usize];
                let stretches = profile.stretches(interval, &mut hints[line as usize]);
                let calls = profile.in_calls(&stretches);
                for of in calls.iter().take(MAX_COMPARED) {
                    *longer.entry((of.within, of.call)).or_default() += sign * of.ticks;
                }
            }
            for (context, ticks) in of_wait {
                let named = name_delay(number, *context);
                *delays.entry((wait.delayed_by, named)).or_default() += ticks;
                for ((_, call), excess) in longer.iter().filter(|((of, _), _)| of == context) {
                    let excess = (*excess).clamp(0, *ticks);
                    *in_calls.entry((wait.delayed_by, named, *call)).or_default() += excess;
                }
            }
        });
        let mut largest: FxHashMap<(u32, u32), (i64, u32)> = FxHashMap::default();
        for ((line, context, call), ticks) in in_calls {
            let one = largest.entry((line, context)).or_insert((ticks, call));
            // Of equal ones, the first.
            if (ticks, std::cmp::Reverse(call)) > (one.0, std::cmp::Reverse(one.1)) {
                *one = (ticks, call);
            }
        }
        let most = largest.into_iter().filter(|(key, (ticks, _))| 2 * ticks >= delays[key]);
        Self(most.map(|(key, (_, call))| (key, call)).collect())
    }

    /// The contexts of the delays that are named after calls, by their lines and contexts so far.
    pub fn named(self, contexts: &mut Contexts) -> FxHashMap<(u32, u32), u32> {
        let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut name = |((line, within), call): ((u32, u32), u32)| {
            let Context::Transfer(site) = contexts.get(call) else { return None };
            let (site, outer) = (site.clone(), Box::new(contexts.get(within).clone()));
            let number = *known.entry((within, call)).or_insert_with(|| {
                contexts.all.push(Context::InCall(site, outer));
                contexts.all.len() as u32 - 1
            });
            Some(((line, within), number))
        };
        let ordered: std::collections::BTreeMap<(u32, u32), u32> = self.0.into_iter().collect();
        ordered.into_iter().filter_map(&mut name).collect()
    }
}
