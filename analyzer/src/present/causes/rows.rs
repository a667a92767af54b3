//! Waits that are alike, in rows of a table.

use crate::causes::{Group, NOBODY};
use crate::present::context::plural;

use super::{Why, words};

/// Waits of one state, in one place, for one culprit.
#[derive(Debug)]
pub(crate) struct WaitRow {
    pub state: &'static str,
    /// The rank that waits, or how many do.
    pub waiters: String,
    /// For whom.
    pub culprit: String,
    pub count: u64,
    pub seconds: f64,
    /// The waiting call.
    pub place: String,
    /// What made the culprit late.
    pub late_by: String,
}

/// Those of most time, and how many more there are.
pub(crate) fn wait_rows(why: &Why, most: usize) -> (Vec<WaitRow>, usize) {
    let causes = why.causes;
    let of_asked = |group: &&Group| {
        let waits = why.rank.is_none_or(|rank| group.ranks.contains(&rank));
        waits || group.culprit != NOBODY && why.concerns(group.culprit)
    };
    let groups: Vec<&Group> = causes.groups.iter().filter(of_asked).collect();
    let row = |group: &&Group| WaitRow {
        state: group.state.name(),
        waiters: match group.ranks.as_slice() {
            [rank] => rank.to_string(),
            ranks => plural(ranks.len(), "rank"),
        },
        culprit: words::line(causes, group.culprit),
        count: group.count,
        seconds: causes.clock.seconds(group.ticks),
        place: words::place(causes, group.place),
        late_by: match group.culprit {
            NOBODY => "-".to_owned(),
            culprit => words::late_by(causes, culprit, group.late_by),
        },
    };
    (groups.iter().take(most).map(row).collect(), groups.len().saturating_sub(most))
}
