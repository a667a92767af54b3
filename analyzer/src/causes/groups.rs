//! Groups waits of the same state, in calls from the same site, for the same line, and finds what
//! mostly made their delaying ranks late.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::lines::Lines;
use super::origins::Part;
use super::states::State;
use super::wait::Wait;

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

/// Groups while waits come.
#[derive(Debug)]
pub(super) struct GroupSums<'l> {
    lines: &'l Lines,
    numbers: FxHashMap<(State, u32, u32), usize>,
    groups: Vec<Group>,
    /// Ticks of each group's waits by what made their delaying ranks late.
    causes: FxHashMap<(usize, LateBy), i64>,
}

impl<'l> GroupSums<'l> {
    pub fn new(lines: &'l Lines) -> Self {
        let (numbers, groups, causes) = Default::default();
        Self { lines, numbers, groups, causes }
    }

    /// Adds so many ticks of a wait in a call of this context. `parts` are the delays to which it goes back,
    /// `main_wait` what its delaying rank had mostly waited for.
    pub fn add(
        &mut self,
        (wait, context): (&Wait, u32),
        counting: i64,
        parts: &[Part],
        main_wait: Option<(u32, i64)>,
    ) {
        let (state, delayed_by) = (wait.state, wait.delayed_by);
        let groups = &mut self.groups;
        let at = *self.numbers.entry((state, context, delayed_by)).or_insert_with(|| {
            let (count, ticks, ranks, late_by) = Default::default();
            groups.push(Group { state, context, delayed_by, count, ticks, ranks, late_by });
            groups.len() - 1
        });
        let group = &mut groups[at];
        group.count += 1;
        group.ticks += counting;
        let rank = self.lines.all[wait.line as usize].rank;
        if group.ranks.last() != Some(&rank) {
            group.add_rank(rank);
        }
        let counting = |ticks: i64| match counting == wait.ticks {
            true => ticks,
            false => (i128::from(ticks) * i128::from(counting) / i128::from(wait.ticks)) as i64,
        };
        for part in parts.iter().filter(|part| part.line == delayed_by) {
            let by = LateBy::Context(part.context);
            *self.causes.entry((at, by)).or_default() += counting(part.ticks);
        }
        if let Some((by, ticks)) = main_wait {
            *self.causes.entry((at, LateBy::WaitFor(by))).or_default() += counting(ticks);
        }
    }

    /// Those of all waits, most time first. `name` gives the context after which a delay of a line is named.
    pub fn finish(self, name: impl Fn(u32, u32) -> u32) -> Vec<Group> {
        let Self { mut groups, causes, .. } = self;
        let mut largest: Vec<i64> = vec![0; groups.len()];
        for ((at, by), ticks) in causes {
            let by = match by {
                LateBy::Context(context) => LateBy::Context(name(groups[at].delayed_by, context)),
                LateBy::WaitFor(_) => by,
            };
            let known = groups[at].late_by;
            if ticks > largest[at] || ticks == largest[at] && known.is_none_or(|known| by < known) {
                largest[at] = ticks;
                groups[at].late_by = Some(by);
            }
        }
        groups.iter_mut().for_each(Group::order_ranks);
        groups.sort_by_key(|group| {
            (Reverse(group.ticks), group.state, group.context, group.delayed_by)
        });
        groups
    }
}

impl Group {
    /// Adds a rank, which may be among its ranks already.
    fn add_rank(&mut self, rank: u32) {
        // Repetitions go before memory grows, so that it follows the number of ranks.
        if self.ranks.len() == self.ranks.capacity() {
            self.order_ranks();
        }
        self.ranks.push(rank);
    }

    fn order_ranks(&mut self) {
        self.ranks.sort_unstable();
        self.ranks.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_group_follows_its_ranks() {
        let (state, context, delayed_by, count, ticks) = (State::LateSender, 0, 0, 0, 0);
        let (ranks, late_by) = (Vec::new(), None);
        let mut group = Group { state, context, delayed_by, count, ticks, ranks, late_by };
        (0..10_000).for_each(|turn| group.add_rank(7 - turn % 8));
        assert!(group.ranks.capacity() <= 32, "{}", group.ranks.capacity());
        group.order_ranks();
        assert_eq!(group.ranks, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
