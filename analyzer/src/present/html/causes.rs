//! Why ranks waited, as the page draws it: waits with their delaying ranks, the critical path, iterations.

use std::collections::HashMap;

use minijinja::context;
use minijinja::value::Value;
use serde::Serialize;

use super::super::causes::{state_name, why_late};
use crate::causes::{DELAYED_BY_UNKNOWN, Phase, Tree};
use crate::diagnosis::Why;
use crate::plain_text::printable;
use crate::trace::Run;

/// Longest waits, stretches of the critical path, and iterations that are embedded.
const MAX_WAITS: usize = 3_000;
const MAX_STRETCHES: usize = 5_000;
const MAX_ITERATIONS: usize = 5_000;
/// Cells of the map of ranks and iterations.
const MAX_HEAT: usize = 60_000;
/// Rows of the table of regions.
const MAX_REGIONS: usize = 50;
/// Rows of the table of slow iterations.
const MAX_SLOW: usize = 20;

/// Row, delaying rank's row or null, begin and end of the waiting, begin of the delaying rank's call, state, reason, and the group
/// of waits with the same cause.
type Wait = (usize, Option<usize>, i64, i64, i64, usize, usize, usize);

/// Times are nanoseconds; rows are the timeline's.
#[derive(Debug, Serialize)]
pub(super) struct Causes {
    states: Vec<&'static str>,
    reasons: Vec<String>,
    waits: Vec<Wait>,
    waits_left_out: usize,
    /// Row, from, to. Where there are very many, short stretches are merged into the one before.
    path: Vec<(usize, i64, i64)>,
    /// Begin, length, waiting of all ranks together, delaying rank's row or null.
    iterations: Vec<(i64, i64, i64, Option<usize>)>,
    /// The row of each rank's first thread; empty where the map would have too many cells.
    heat_rows: Vec<usize>,
    /// Rank by rank, how long it computes in each iteration, in hundredths of the longest such time.
    heat: Vec<u8>,
}

/// The number of a name among `all`; a new name is added.
fn number<T: PartialEq>(all: &mut Vec<T>, name: T) -> usize {
    all.iter().position(|known| *known == name).unwrap_or_else(|| {
        all.push(name);
        all.len() - 1
    })
}

/// The data to embed; `rows` maps a rank and thread to its row.
pub(super) fn data(why: &Why, rows: &HashMap<(u32, u32), usize>) -> Causes {
    let causes = why.causes;
    let ns = |ticks: i64| (causes.clock.seconds(ticks) * 1e9).round() as i64;
    let row = |line: u32| {
        let line = causes.lines.all.get(line as usize)?;
        rows.get(&(line.rank, line.thread)).copied()
    };
    let groups = causes.groups.iter().enumerate();
    let groups: HashMap<_, usize> =
        groups.map(|(at, group)| ((group.state, group.context, group.delayed_by), at)).collect();
    let own_times = why.own_times();
    let (mut states, mut reasons) = (Vec::new(), Vec::new());
    let mut waits = Vec::new();
    for found in causes.longest(MAX_WAITS) {
        let wait = &causes.waits[found as usize];
        let Some(own) = row(wait.line) else { continue };
        let delayed_by =
            if wait.delayed_by == DELAYED_BY_UNKNOWN { None } else { row(wait.delayed_by) };
        let state = number(&mut states, state_name(wait.state));
        let reason = number(&mut reasons, printable(&why_late(causes, found, &own_times)));
        let (begin, until, ended) = (ns(wait.begin), ns(wait.until), ns(wait.fulfilled));
        let alike = (wait.state, causes.wait_contexts[found as usize], wait.delayed_by);
        let group = groups.get(&alike).copied().unwrap_or_default();
        waits.push((own, delayed_by, begin, until, ended, state, reason, group));
    }
    let stretches = &causes.path.stretches;
    let min_ticks = match stretches.len() <= MAX_STRETCHES {
        true => 0,
        false => causes.path.ticks() / MAX_STRETCHES as i64,
    };
    let mut path: Vec<(usize, i64, i64)> = Vec::new();
    for stretch in stretches {
        match path.last_mut() {
            Some((.., to)) if stretch.to - stretch.from < min_ticks => *to = ns(stretch.to),
            _ => path.extend(row(stretch.line).map(|row| (row, ns(stretch.from), ns(stretch.to)))),
        }
    }
    let phase = causes.phases.first().filter(|phase| phase.iterations.len() <= MAX_ITERATIONS);
    let iterations = phase.into_iter().flat_map(|phase| {
        phase.iterations.iter().zip(&phase.bounds).map(|(iteration, begin)| {
            let delayed_by = iteration.delayed_by.and_then(row);
            (ns(*begin), ns(iteration.ticks), ns(iteration.waiting), delayed_by)
        })
    });
    let (heat_rows, heat) = phase_heat(why, row);
    Causes {
        states,
        reasons,
        waits_left_out: causes.waits.len().saturating_sub(MAX_WAITS),
        waits,
        path,
        iterations: iterations.collect(),
        heat_rows,
        heat,
    }
}

/// How long each rank computes in each iteration of the longest phase.
fn phase_heat(why: &Why, row: impl Fn(u32) -> Option<usize>) -> (Vec<usize>, Vec<u8>) {
    let causes = why.causes;
    let Some(phase) = causes.phases.first() else { return Default::default() };
    let cells = &phase.computing_of_each;
    if cells.len() > MAX_HEAT || phase.iterations.len() > MAX_ITERATIONS {
        return Default::default();
    }
    let ranks = cells.len() / phase.iterations.len().max(1);
    let rows = (0..ranks).filter_map(|position| row(causes.lines.first_of(position)));
    let rows: Vec<usize> = rows.collect();
    if rows.len() < ranks {
        return Default::default();
    }
    let longest = cells.iter().max().copied().unwrap_or(0).max(1);
    let percent = |ticks: &i64| (ticks * 100 / longest).clamp(0, 100) as u8;
    (rows, cells.iter().map(percent).collect())
}

fn tree(tree: Option<Tree>) -> Value {
    // Of what has no length, every factor is unknown.
    context! {
        parallel => tree.as_ref().map(|tree| tree.parallel),
        load_balance => tree.as_ref().and_then(|tree| tree.load_balance),
        communication => tree.as_ref().map(|tree| tree.communication),
        moving => tree.as_ref().and_then(|tree| tree.moving_imbalance),
    }
}

/// The tables of regions, phases and slow iterations.
pub(super) fn tables(run: &Run, why: &Why) -> Value {
    let causes = why.causes;
    let s = |ticks: i64| causes.clock.seconds(ticks);
    let regions = causes.regions.all.iter().take(MAX_REGIONS).map(|region| {
        context! {
            name => printable(&region.name),
            count => region.count,
            time_s => s(region.ticks),
            waiting_s => s(region.waiting),
            tree => tree(region.tree(run)),
        }
    });
    let phases = causes.phases.iter().map(|phase| {
        context! {
            count => phase.iterations.len(),
            begin_s => s(phase.begin()),
            end_s => s(phase.begin()) + s(phase.ticks()),
            time_s => s(phase.ticks()),
            median_s => s(phase.statistics().median),
            tree => tree(phase.tree(run)),
        }
    });
    let slow = causes.phases.first().map(|phase| slow(why, phase)).unwrap_or_default();
    context! {
        regions => regions.collect::<Vec<Value>>(),
        phases => phases.collect::<Vec<Value>>(),
        slow => slow,
    }
}

fn slow(why: &Why, phase: &Phase) -> Vec<Value> {
    let causes = why.causes;
    let s = |ticks: i64| causes.clock.seconds(ticks);
    let rank = |line: u32| causes.lines.all[line as usize].rank;
    let rows = phase.statistics().slow.into_iter().take(MAX_SLOW).map(|index| {
        let iteration = &phase.iterations[index];
        context! {
            index => index,
            end_s => s(phase.bounds[index]) + s(iteration.ticks),
            begin_s => s(phase.bounds[index]),
            time_s => s(iteration.ticks),
            waiting_s => s(iteration.waiting),
            delayed_by => iteration.delayed_by.map(rank),
            slowest => rank(causes.lines.first_of(iteration.slowest)),
        }
    });
    rows.collect()
}
