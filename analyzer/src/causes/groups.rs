//! Groups waits of the same state, in calls from the same site, for the same line, and finds what
//! mostly made their delaying ranks late.

use rustc_hash::FxHashMap;

use super::lines::Lines;
use super::reasons::{Reasons, Waited};
use super::states::State;

/// Waits of the same state, call site and delaying rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Kind of wait.
    pub state: State,
    /// Context of the waiting calls; [`super::NO_CONTEXT`] outside calls.
    pub context: u32,
    /// Line that they waited for, or [`super::DELAYED_BY_UNKNOWN`].
    pub delayed_by: u32,
    /// Number of waits.
    pub count: u64,
    /// Sum of their lengths.
    pub ticks: i64,
    /// Ranks that waited.
    pub ranks: Vec<u32>,
    /// What made the delaying rank late for most of the time; `None` if unknown.
    pub late_by: Option<LateBy>,
}

/// What made a delaying rank late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LateBy {
    /// It spent more time in this context than the line that waited.
    Context(u32),
    /// It waited for this line itself.
    WaitFor(u32),
}

/// Groups waits by the ticks that count of each, most time first; those without are left out.
pub(super) fn group_waits(
    waited: Waited,
    lines: &Lines,
    reasons: &Reasons,
    ticks_of: &(dyn Fn(u32) -> i64 + Sync),
) -> Vec<Group> {
    let mut numbers: FxHashMap<(State, u32, u32), usize> = FxHashMap::default();
    let mut groups: Vec<Group> = Vec::new();
    let mut causes: FxHashMap<(usize, LateBy), f64> = FxHashMap::default();
    let all = (0u32..).zip(waited.waits.iter().zip(waited.wait_contexts));
    for (number, (wait, context)) in all {
        let counting = ticks_of(number);
        if counting == 0 {
            continue;
        }
        let share = counting as f64 / wait.ticks as f64;
        let (state, context, delayed_by) = (wait.state, *context, wait.delayed_by);
        let at = *numbers.entry((state, context, delayed_by)).or_insert_with(|| {
            let (count, ticks, ranks, late_by) = Default::default();
            groups.push(Group { state, context, delayed_by, count, ticks, ranks, late_by });
            groups.len() - 1
        });
        let group = &mut groups[at];
        group.count += 1;
        group.ticks += counting;
        // Waits are ordered by line.
        let rank = lines.all[wait.line as usize].rank;
        if group.ranks.last() != Some(&rank) {
            group.ranks.push(rank);
        }
        for part in reasons.origins.parts_of(number).iter().filter(|part| part.line == delayed_by) {
            *causes.entry((at, LateBy::Context(part.context))).or_default() +=
                part.ticks as f64 * share;
        }
        if let Some((by, ticks)) = reasons.main_wait(number, waited) {
            *causes.entry((at, LateBy::WaitFor(by))).or_default() += ticks as f64 * share;
        }
    }
    let mut largest: Vec<f64> = vec![0.0; groups.len()];
    for ((at, by), ticks) in causes {
        let known = groups[at].late_by;
        if ticks > largest[at] || ticks == largest[at] && known.is_none_or(|known| by < known) {
            largest[at] = ticks;
            groups[at].late_by = Some(by);
        }
    }
    groups.sort_by_key(|group| {
        (std::cmp::Reverse(group.ticks), group.state, group.context, group.delayed_by)
    });
    groups
}
