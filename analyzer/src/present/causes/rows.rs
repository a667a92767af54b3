//! Waits as rows of tables: groups of similar waits, and the longest single ones.

use crate::causes::{DELAYED_BY_UNKNOWN, Group};
use crate::present::context::plural;

use super::words;
use crate::diagnosis::Why;

/// Waits in one state, at one call site, for one delaying rank.
#[derive(Debug)]
pub(crate) struct WaitRow {
    pub state: &'static str,
    /// The rank that waits, or the number of such ranks.
    pub waiters: String,
    /// The rank that it waits for.
    pub delayed_by: String,
    pub count: u64,
    pub seconds: f64,
    /// The waiting call.
    pub place: String,
    /// What made the delaying rank late.
    pub late_by: String,
    /// Its index in [`crate::causes::Causes::groups`].
    pub group: usize,
    /// The ranks that wait.
    pub ranks: Vec<u32>,
    /// The rank they wait for.
    pub delayed_by_rank: Option<u32>,
}

/// A single wait.
#[derive(Debug)]
pub(crate) struct LongWait {
    pub rank: u32,
    pub state: &'static str,
    /// The waiting call.
    pub place: String,
    pub begin_s: f64,
    pub seconds: f64,
    /// The rank that it waits for.
    pub delayed_by: String,
    pub delayed_by_rank: Option<u32>,
    /// What made the delaying rank late; empty if that is not known.
    pub late_by: String,
}

/// The longest waits of the run.
pub(crate) fn longest_waits(why: &Why, most: usize) -> Vec<LongWait> {
    let causes = why.causes;
    let own_times = why.own_times();
    let wait = |number: u32| {
        let wait = &causes.waits[number as usize];
        LongWait {
            rank: causes.lines.all[wait.line as usize].rank,
            state: wait.state.name(),
            place: words::place(causes, causes.wait_contexts[number as usize]),
            begin_s: causes.clock.seconds(wait.begin),
            seconds: causes.clock.seconds(causes.ticks_of(number)),
            delayed_by: words::line(causes, wait.delayed_by),
            delayed_by_rank: rank_of(why, wait.delayed_by),
            late_by: words::why_late(causes, number, &own_times),
        }
    };
    causes.longest(most).into_iter().map(wait).collect()
}

fn rank_of(why: &Why, line: u32) -> Option<u32> {
    why.causes
        .lines
        .all
        .get(line as usize)
        .filter(|_| line != DELAYED_BY_UNKNOWN)
        .map(|line| line.rank)
}

/// The groups of waits that took most time, and the number of further ones.
pub(crate) fn wait_rows(why: &Why, most: usize) -> (Vec<WaitRow>, usize) {
    let causes = why.causes;
    let own_times = why.own_times();
    let is_selected = |group: &&Group| {
        let waits = why.rank.is_none_or(|rank| group.ranks.contains(&rank));
        waits || group.delayed_by != DELAYED_BY_UNKNOWN && why.concerns(group.delayed_by)
    };
    let numbered = causes.groups.iter().enumerate();
    let groups: Vec<(usize, &Group)> = numbered.filter(|(_, group)| is_selected(group)).collect();
    let row = |&(number, group): &(usize, &Group)| WaitRow {
        group: number,
        ranks: group.ranks.clone(),
        delayed_by_rank: rank_of(why, group.delayed_by),
        state: group.state.name(),
        waiters: match group.ranks.as_slice() {
            [rank] => format!("rank {rank}"),
            ranks => plural(ranks.len(), "rank"),
        },
        delayed_by: words::line(causes, group.delayed_by),
        count: group.count,
        seconds: causes.clock.seconds(group.ticks),
        place: words::place(causes, group.context),
        late_by: match group.delayed_by {
            DELAYED_BY_UNKNOWN => "-".to_owned(),
            delayed_by => words::late_by(causes, group.late_by, own_times.of(causes, delayed_by)),
        },
    };
    (groups.iter().take(most).map(row).collect(), groups.len().saturating_sub(most))
}
