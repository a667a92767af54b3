//! WAIT STATES: waits in one state, at one call site, for one delaying rank; and the longest single waits.

use std::collections::HashMap;

use crate::causes::{Causes, Group, NO_CONTEXT, State};
use crate::diagnosis::Why;

use super::delay::Delay;
use super::table::{Cell, Table};

/// The call site of waiting calls.
fn place(causes: &Causes, context: u32) -> Cell {
    match context {
        NO_CONTEXT => Cell::Nothing,
        context => Cell::Context(causes.contexts.get(context).clone()),
    }
}

fn rank(causes: &Causes, line: u32) -> Cell {
    let line = causes.lines.all.get(line as usize);
    line.map_or(Cell::Nothing, |line| Cell::Count(line.rank.into()))
}

/// The groups of waits of and for the selected rank with their indices in [`Causes::groups`], most time first.
pub fn groups<'a>(why: &Why<'a>) -> Vec<(usize, &'a Group)> {
    let is_selected = |(_, group): &(usize, &Group)| {
        let waits = why.rank.is_none_or(|rank| group.ranks.contains(&rank));
        waits || why.concerns(group.delayed_by)
    };
    why.causes.groups.iter().enumerate().filter(is_selected).collect()
}

/// Groups of waits, a row each.
pub fn wait_states(why: &Why, groups: &[(usize, &Group)]) -> Table {
    let (causes, own_times) = (why.causes, why.own_times());
    let rows = || groups.iter().map(|(_, group)| group);
    let delay = |group: &&Group| {
        let own = own_times.on_line(causes, group.delayed_by);
        match causes.lines.all.get(group.delayed_by as usize) {
            None => Cell::Nothing,
            Some(_) => {
                Cell::or_unknown(group.late_by, |by| Cell::Delay(Delay::new(causes, by, own)))
            }
        }
    };
    let mut table = Table::default();
    table.add("state", "state", rows().map(|group| Cell::Text(group.state.name().to_owned())));
    table.add("place", "where", rows().map(|group| place(causes, group.context)));
    table.add("ranks", "waiting rank", rows().map(|group| Cell::Ranks(group.ranks.clone())));
    let delayed_by = rows().map(|group| Cell::thread(causes, group.delayed_by));
    table.add("delayed_by", "delayed by", delayed_by);
    table.detail("count", "count", rows().map(|group| Cell::Count(group.count)));
    table.add("seconds", "time", rows().map(|group| Cell::Seconds(why.seconds(group.ticks))));
    table.add("delay", "delay", rows().map(delay));
    table.mark("group", groups.iter().map(|(number, _)| Cell::Count(*number as u64)));
    table.mark("ranks", rows().map(|group| Cell::Ranks(group.ranks.clone())));
    table.mark("delayed_by", rows().map(|group| rank(causes, group.delayed_by)));
    table
}

/// The longest waits of the run. Of ranks that did not finish, `awaited` says whom they wait for.
pub fn longest_waits(why: &Why, most: usize, awaited: &HashMap<u32, String>) -> Table {
    let (causes, own_times) = (why.causes, why.own_times());
    let numbers = causes.longest(most);
    let rows = || numbers.iter().map(|number| (*number, &causes.waits[*number as usize]));
    let seconds = |number| why.seconds(causes.ticks_of(number));
    let delayed_by = rows().map(|(_, wait)| {
        let open = Some(wait.line).filter(|_| wait.state == State::OpenAtEnd);
        let open = open.and_then(|line| awaited.get(&causes.lines.all[line as usize].rank));
        match (Cell::thread(causes, wait.delayed_by), open) {
            (Cell::Nothing, Some(open)) => Cell::Text(open.clone()),
            (Cell::Nothing, None) => Cell::Unknown,
            (thread, _) => thread,
        }
    });
    let delay = |number| Cell::or_unknown(Delay::of_wait(causes, number, &own_times), Cell::Delay);
    let mut table = Table::default();
    table.add("rank", "rank", rows().map(|(_, wait)| rank(causes, wait.line)));
    table.add("delayed_by", "delayed by", delayed_by);
    table.add("begin_s", "begin", rows().map(|(_, wait)| Cell::Seconds(why.seconds(wait.begin))));
    table.add("seconds", "time", rows().map(|(number, _)| Cell::Seconds(seconds(number))));
    table.add("state", "state", rows().map(|(_, wait)| Cell::Text(wait.state.name().to_owned())));
    let places = rows().map(|(number, _)| place(causes, causes.wait_contexts[number as usize]));
    table.add("place", "where", places);
    table.add("delay", "delay", rows().map(|(number, _)| delay(number)));
    table.mark("ranks", rows().map(|(_, wait)| rank(causes, wait.line)));
    table.mark("delayed_by", rows().map(|(_, wait)| rank(causes, wait.delayed_by)));
    table.mark("from", rows().map(|(_, wait)| Cell::Seconds(why.seconds(wait.begin))));
    let ends =
        rows().map(|(number, wait)| Cell::Seconds(why.seconds(wait.begin) + seconds(number)));
    table.mark("to", ends);
    table
}
