//! Tables of parts of a run: regions that the program marked, phases, and the iterations of the longest phase.

use crate::causes::{Causes, Context, NO_CONTEXT, Period, Phase, Statistics};
use crate::present::context::plural;
use crate::present::quantity::{count, percent, seconds};
use crate::present::table;
use crate::tables::parts;
use crate::trace::Run;

use super::{places, words};

const MAX_ROWS: usize = 10;
const MAX_SLOW: usize = 3;
const SPARKLINE_COLUMNS: usize = 60;
/// Heights of a column of the sparkline.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The call at which the iterations of a phase begin.
pub(super) fn begins_at(causes: &Causes, phase: &Phase) -> String {
    match causes.contexts.all.get(phase.context as usize).filter(|_| phase.context != NO_CONTEXT) {
        Some(Context::Transfer(site)) => places::call_site(site),
        _ => "not known".to_owned(),
    }
}

/// The table of a run's regions, the longest first.
pub(crate) fn region_lines(run: &Run, causes: &Causes) -> Vec<String> {
    let all = &causes.regions.all;
    let shown = &all[..all.len().min(MAX_ROWS)];
    let mut lines = counted(causes, table::lines(&parts::regions(run, causes, shown)));
    if all.len() > shown.len() {
        lines.push(format!("{} more (gammachi why --json lists all)", all.len() - shown.len()));
    }
    lines
}

/// The table of a run's phases.
pub(crate) fn phase_lines(run: &Run, causes: &Causes) -> Vec<String> {
    counted(causes, table::lines(&parts::phases(run, causes)))
}

fn counted(causes: &Causes, mut table: Vec<String>) -> Vec<String> {
    if !table.is_empty() {
        table.extend(words::counted(causes).map(|what| format!("({what})")));
    }
    table
}

/// The times of the iterations as a sparkline from 0 to the slowest; a column shows the slowest of its iterations.
fn sparkline(phase: &Phase) -> String {
    let times: Vec<i64> = phase.iterations.iter().map(|iteration| iteration.ticks).collect();
    let slowest = times.iter().max().copied().unwrap_or(0).max(1);
    let columns = times.len().min(SPARKLINE_COLUMNS);
    let column = |at: usize| {
        let (from, to) = (at * times.len() / columns, (at + 1) * times.len() / columns);
        let most = times[from..to].iter().max().copied().unwrap_or(0);
        HEIGHTS[(most * 8 / slowest).clamp(0, 7) as usize]
    };
    (0..columns).map(column).collect()
}

/// A line on the iterations of the longest phase; `None` if none were found.
pub(crate) fn iteration_summary(causes: &Causes) -> Option<String> {
    let phase = causes.phases.first()?;
    let s = |ticks: i64| seconds(causes.clock.seconds(ticks));
    let Statistics { median, mad, slow, .. } = phase.statistics();
    let mut line = format!(
        "{}, median {}, half of them within {} of it",
        count(phase.iterations.len() as u64),
        s(median),
        s(mad)
    );
    let by_time = |at: &&usize| phase.iterations[**at].ticks;
    if let Some(slowest) = slow.iter().max_by_key(by_time) {
        let iteration = &phase.iterations[*slowest];
        // A slow transfer makes nobody wait.
        let excess = (iteration.ticks - median) * causes.rank_times.len() as i64;
        let waits = |_: &u32| WAITING_SHARE * excess as f64 <= iteration.waiting as f64;
        let delayed_by = iteration.delayed_by.filter(waits).map_or(String::new(), |delayed_by| {
            format!(", waiting for {}", words::line(causes, delayed_by))
        });
        line.push_str(&format!(
            "; {} slow, #{slowest} most: {}{delayed_by}",
            slow.len(),
            s(iteration.ticks)
        ));
    }
    Some(line)
}

/// Share of what a slow iteration takes longer from which it is said for whom its ranks waited.
const WAITING_SHARE: f64 = 0.2;

/// Lines on the iterations of the longest phase and what stands out among them.
pub(super) fn iteration_lines(causes: &Causes) -> Vec<String> {
    let Some(phase) = causes.phases.first() else {
        return vec![
            "none found: no loop in which all ranks make the same number of calls".to_owned(),
        ];
    };
    let s = |ticks: i64| seconds(causes.clock.seconds(ticks));
    let Statistics { median, mad, slow, trend, period, representative } = phase.statistics();
    let part = phase.ticks() as f64 / (causes.whole.1 - causes.whole.0).max(1) as f64;
    let mut lines = vec![
        format!(
            "{}, {} of the run; {} in the median, half of them within +- {}; begin at {}",
            plural(phase.iterations.len(), "iteration"),
            percent(part),
            s(median),
            s(mad),
            begins_at(causes, phase)
        ),
        sparkline(phase),
    ];
    if let Some(Period { length, first, longer }) = period {
        lines.push(format!("every {length}th, from {first} on, takes {} longer", s(longer)));
    }
    if let Some(trend) = trend {
        let (word, by) = if trend > 0 { ("longer", trend) } else { ("shorter", -trend) };
        lines.push(format!("they become {word}: by {} from the first to the last", s(by)));
    }
    let extra: i64 = slow.iter().map(|at| phase.iterations[*at].ticks - median).sum();
    if !slow.is_empty() {
        let are = if slow.len() == 1 { "is" } else { "are" };
        lines.push(format!(
            "{} {are} slow, by {} together:",
            plural(slow.len(), "iteration"),
            s(extra)
        ));
        let shown = &slow[..slow.len().min(MAX_SLOW)];
        lines.extend(table::brief_lines(&parts::iterations(causes, phase, shown)));
    }
    lines.push(format!("iteration {representative} is typical"));
    lines
}
