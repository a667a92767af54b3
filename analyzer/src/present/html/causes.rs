//! Why ranks waited, as the page draws it: waits with their delaying ranks, the critical path, iterations.

use std::collections::HashMap;

use minijinja::context;
use minijinja::value::Value;
use serde::Serialize;

use super::table::laid_out;
use crate::causes::DELAYED_BY_UNKNOWN;
use crate::diagnosis::Why;
use crate::present::causes::counted;
use crate::present::cell;
use crate::tables::Delay;
use crate::tables::{Cell, Table, parts};
use crate::trace::Run;

/// Longest waits, stretches of the critical path, and iterations that are embedded.
const MAX_WAITS: usize = 3_000;
const MAX_STRETCHES: usize = 5_000;
const MAX_ITERATIONS: usize = 5_000;
/// Cells of the map of ranks and iterations.
const MAX_HEAT: usize = 60_000;
const MAX_REGIONS: usize = 50;
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
        let state = number(&mut states, wait.state.name());
        let delay = Delay::of_wait(causes, found, &own_times);
        let delay = delay.map_or_else(String::new, |delay| cell::text(&Cell::Delay(delay)));
        let reason = number(&mut reasons, delay);
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

/// The tables of regions, phases and slow iterations; empty ones are left out.
pub(super) fn tables(run: &Run, why: &Why) -> Value {
    let causes = why.causes;
    let regions = &causes.regions.all;
    let regions = parts::regions(run, causes, &regions[..regions.len().min(MAX_REGIONS)]);
    let phases = parts::phases(run, causes);
    let slow = causes.phases.first().map(|phase| {
        let slow = phase.statistics().slow;
        parts::iterations(causes, phase, &slow[..slow.len().min(MAX_SLOW)])
    });
    let shown = |table: Table| (table.rows() > 0).then(|| laid_out(&table));
    let slow = slow.and_then(shown);
    context! { regions => shown(regions), phases => shown(phases), slow, counted => counted(causes) }
}
