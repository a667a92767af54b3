//! Functions of parts of a run: ranks, threads, regions, phases and iterations.

use crate::causes::Phase;
use crate::diagnosis::{CodePart, Evidence, LongerInSlow, PartKind};
use crate::metrics::code::{CodeMetrics, CodeRow};

use super::code::{name, place};
use super::table::{Cell, Table};

/// Share of a part below which the overview leaves a function out.
const NOTABLE_SHARE: f64 = 0.05;
/// Samples in slow iterations below which the overview leaves these out.
const FEW_SAMPLES: f64 = 8.0;

/// A row of the table of all parts.
struct Row<'a> {
    part: &'static str,
    /// `None`: all of them.
    rank: Option<u32>,
    thread: Cell,
    region: Option<&'a str>,
    phase: Option<usize>,
    times: Option<u64>,
    row: &'a CodeRow,
    each_s: Option<f64>,
    longer: Option<LongerInSlow>,
}

fn thread(number: Option<u32>) -> Cell {
    let name = number.map_or_else(|| "without MPI".to_owned(), |number| number.to_string());
    Cell::Text(name)
}

fn all_threads() -> Cell {
    Cell::Text("all".to_owned())
}

/// Functions of each rank; of ranks with several sampled threads also of each thread.
fn of_ranks(code: &CodeMetrics) -> Vec<Row<'_>> {
    let ranks = code.ranks.iter();
    let rows = ranks.flat_map(|rank| {
        let threads = rank.threads.iter().map(|(number, rows)| ("thread", thread(*number), rows));
        let rows = std::iter::once(("rank", all_threads(), &rank.rows)).chain(threads);
        rows.flat_map(move |(part, thread, rows)| {
            let row = move |row| Row {
                part,
                rank: Some(rank.rank),
                thread: thread.clone(),
                region: None,
                phase: None,
                times: None,
                row,
                each_s: None,
                longer: None,
            };
            rows.iter().map(row)
        })
    });
    rows.collect()
}

fn of_part<'a>(part: &'a CodePart) -> impl Iterator<Item = Row<'a>> {
    let (kind, region, phase) = match part.kind {
        PartKind::Region(name) => ("region", Some(name), None),
        PartKind::Phase(number) => ("phase", None, Some(number)),
        PartKind::SlowIterations(number) => ("slow iterations", None, Some(number)),
        PartKind::OtherIterations(number) => ("other iterations", None, Some(number)),
        PartKind::Threads(_) => ("threads", None, None),
    };
    let thread = match part.kind {
        PartKind::Threads(number) => thread(number),
        _ => all_threads(),
    };
    part.rows.iter().map(move |row| Row {
        part: kind,
        rank: None,
        thread: thread.clone(),
        region,
        phase,
        times: part.times,
        row,
        each_s: part.each_s(row),
        longer: part.longer.get(&row.code).copied(),
    })
}

/// Functions of each rank, thread, region, phase and group of iterations, a row each.
pub fn all(code: &CodeMetrics, parts: &[CodePart]) -> Table {
    let mut rows = of_ranks(code);
    rows.extend(parts.iter().flat_map(of_part));
    let all = || rows.iter();
    let count = |number: Option<u64>| Cell::or_nothing(number, Cell::Count);
    let mut table = Table::default();
    table.add("rank", "rank", all().map(|of| count(of.rank.map(u64::from))));
    table.add("thread", "thread", all().map(|of| of.thread.clone()));
    table.add("function", "function", all().map(|of| name(code, of.row.code)));
    table.add("place", "where", all().map(|of| place(code, of.row.code)));
    table.add("self_s", "self", all().map(|of| Cell::Seconds(of.row.self_s)));
    table.add("error_s", "±", all().map(|of| Cell::Seconds(of.row.error_s)));
    table.add("total_s", "total", all().map(|of| Cell::Seconds(of.row.total_s)));
    table.add("part", "part", all().map(|of| Cell::Text(of.part.to_owned())));
    let region = |name: &str| Cell::Text(name.to_owned());
    table.add("region", "region", all().map(|of| Cell::or_nothing(of.region, region)));
    table.add("phase", "phase", all().map(|of| count(of.phase.map(|number| number as u64))));
    table.add("times", "times", all().map(|of| count(of.times)));
    let seconds = |seconds| Cell::or_nothing(seconds, Cell::Seconds);
    table.add("each_s", "per iteration", all().map(|of| seconds(of.each_s)));
    let longer = |of: &Row| Cell::or_nothing(of.longer, |longer| Cell::Difference(longer.seconds));
    table.add("longer_s", "longer by", all().map(longer));
    table
}

/// The main functions of each region, phase, group of iterations and thread, beside each other: of each part at most
/// so many, of so many parts of a kind.
pub fn overview(of: &Evidence, parts: &[CodePart], functions: usize, most: usize) -> Table {
    let Some(code) = &of.metrics.code else { return Table::default() };
    let phases = of.causes.map_or(&[][..], |causes| &causes.phases[..]);
    let mut rows: Vec<(String, &CodePart, &CodeRow)> = Vec::new();
    let mut shown = [0; 3];
    let period_s = code.ranks.iter().map(|rank| rank.period_s).fold(0.0, f64::max);
    let is_told = |number: usize| {
        let slow = parts.iter().find(|part| part.kind == PartKind::SlowIterations(number));
        number < most && slow.is_some_and(|slow| slow.sampled_s() > FEW_SAMPLES * period_s)
    };
    for part in parts {
        let kind = match part.kind {
            PartKind::Region(_) => 0,
            // A single phase is most of the run.
            PartKind::Phase(_) if phases.len() < 2 => continue,
            PartKind::Phase(_) => 1,
            PartKind::SlowIterations(number) | PartKind::OtherIterations(number)
                if !is_told(number) =>
            {
                continue;
            }
            PartKind::SlowIterations(_) | PartKind::OtherIterations(_) => usize::MAX,
            PartKind::Threads(_) => 2,
        };
        if let Some(shown) = shown.get_mut(kind) {
            *shown += 1;
            if *shown > most {
                continue;
            }
        }
        let title = title(part, phases);
        let main = part.main(NOTABLE_SHARE).into_iter().take(functions);
        rows.extend(main.map(|row| (title.clone(), part, row)));
    }
    let all = || rows.iter();
    let mut table = Table::default();
    table.add("part", "part", all().map(|(title, ..)| Cell::Text(title.clone())));
    table.add("function", "function", all().map(|(.., row)| name(code, row.code)));
    table.add("place", "where", all().map(|(.., row)| place(code, row.code)));
    table.add("self_s", "self", all().map(|(.., row)| Cell::Seconds(row.self_s)));
    let share =
        |(_, part, row): &(String, &CodePart, &CodeRow)| Cell::share(row.self_s, part.sampled_s());
    table.add("share", "of part", all().map(share));
    table.add("total_s", "total", all().map(|(.., row)| Cell::Seconds(row.total_s)));
    let each = |(_, part, row): &(String, &CodePart, &CodeRow)| {
        Cell::or_nothing(part.each_s(row), Cell::Seconds)
    };
    if all().any(|(_, part, row)| part.each_s(row).is_some()) {
        table.add("each_s", "per iteration", all().map(each));
    }
    let longer = |(_, part, row): &(String, &CodePart, &CodeRow)| {
        Cell::or_nothing(part.longer.get(&row.code), |longer| Cell::Difference(longer.seconds))
    };
    if all().any(|(_, part, row)| part.longer.contains_key(&row.code)) {
        table.add("longer_s", "longer by", all().map(longer));
    }
    table.detail("error_s", "±", all().map(|(.., row)| Cell::Seconds(row.error_s)));
    let region = |part: &CodePart| match part.kind {
        PartKind::Region(name) => Cell::Text(name.to_owned()),
        _ => Cell::Nothing,
    };
    table.mark("region", all().map(|(_, part, _)| region(part)));
    table
}

/// The name of a part. Phases have their numbers in order of time, in which they are listed elsewhere, too.
fn title(part: &CodePart, phases: &[Phase]) -> String {
    let in_phase = |number: usize| match phases.len() {
        0 | 1 => String::new(),
        _ => {
            let begin = phases[number].begin();
            let before = phases.iter().filter(|phase| phase.begin() < begin).count();
            format!(" of phase {}", before + 1)
        }
    };
    let times = part.times.unwrap_or(0);
    let iterations = if times == 1 { "iteration" } else { "iterations" };
    match part.kind {
        PartKind::Region(name) => format!("region {name}"),
        PartKind::Phase(number) => in_phase(number).replacen(" of ", "", 1),
        PartKind::SlowIterations(number) => {
            format!("{times} slow {iterations}{}", in_phase(number))
        }
        PartKind::OtherIterations(number) => {
            format!("{times} other {iterations}{}", in_phase(number))
        }
        PartKind::Threads(Some(number)) => format!("thread {number}"),
        PartKind::Threads(None) => "threads without MPI".to_owned(),
    }
}
