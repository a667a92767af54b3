//! Waits that are alike: of one kind, in calls from one place, for one line; the causes that they share.

use rustc_hash::FxHashMap;

use super::State;
use super::delay::Reasons;
use super::lines::Lines;
use super::waits::Waits;

/// Waits that are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What kind.
    pub state: State,
    /// The context of the waiting calls; [`super::NOWHERE`] outside of calls.
    pub place: u32,
    /// Whom they waited for, or [`super::NOBODY`].
    pub culprit: u32,
    /// How many.
    pub count: u64,
    /// How long together.
    pub ticks: i64,
    /// Ranks that waited.
    pub ranks: Vec<u32>,
    /// What made the culprit late, for the most part; `None` where that is not known.
    pub late_by: Option<LateBy>,
}

/// What made a culprit late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LateBy {
    /// A context of its own took longer than on the line that waited.
    Context(u32),
    /// It waited for a line itself.
    WaitFor(u32),
}

/// Gathers those that are asked for, by their number, the most time first.
pub(super) fn alike(
    waits: &Waits,
    lines: &Lines,
    (places, reasons): (&[u32], &Reasons),
    is_chosen: &(dyn Fn(u32) -> bool + Sync),
) -> Vec<Group> {
    let mut numbers: FxHashMap<(State, u32, u32), usize> = FxHashMap::default();
    let mut groups: Vec<Group> = Vec::new();
    let mut causes: FxHashMap<(usize, LateBy), f64> = FxHashMap::default();
    let all = (0u32..).zip(waits.all.iter().zip(places));
    for (number, (wait, place)) in all.filter(|(number, _)| is_chosen(*number)) {
        let (state, place, culprit) = (wait.state, *place, wait.culprit);
        let at = *numbers.entry((state, place, culprit)).or_insert_with(|| {
            let (count, ticks, ranks, late_by) = Default::default();
            groups.push(Group { state, place, culprit, count, ticks, ranks, late_by });
            groups.len() - 1
        });
        let group = &mut groups[at];
        group.count += 1;
        group.ticks += wait.ticks;
        // Waits come line by line.
        let rank = lines.all[wait.line as usize].rank;
        if group.ranks.last() != Some(&rank) {
            group.ranks.push(rank);
        }
        let length = |inner: u32| waits.all[inner as usize].ticks;
        let found = reasons.explained(number, waits);
        let share = found.by_delays as f64 / found.delays.max(1) as f64;
        for (context, delay) in reasons.delays(number) {
            *causes.entry((at, LateBy::Context(*context))).or_default() += share * *delay as f64;
        }
        let share = found.by_waits as f64 / found.inner.max(1) as f64;
        for inner in reasons.waits(number) {
            let by = LateBy::WaitFor(waits.all[inner as usize].culprit);
            *causes.entry((at, by)).or_default() += share * length(inner) as f64;
        }
    }
    let mut most: Vec<f64> = vec![0.0; groups.len()];
    for ((at, by), ticks) in causes {
        let known = groups[at].late_by;
        if ticks > most[at] || ticks == most[at] && known.is_none_or(|known| by < known) {
            most[at] = ticks;
            groups[at].late_by = Some(by);
        }
    }
    groups.sort_by_key(|group| {
        (std::cmp::Reverse(group.ticks), group.state, group.place, group.culprit)
    });
    groups
}
