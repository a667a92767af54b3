//! Compares parallel regions and calls on files.

use std::collections::BTreeMap;

use super::quantities::RATE;
use super::record::RunRecord;
use super::statistics::{self, Estimate, Location};
use super::teams_and_files::{FileRecord, TeamRecord};

/// Minimum share of elapsed time for a time to be compared.
const MIN_PART: f64 = 0.01;

/// A place where parallel regions begin, in all builds: lines move, so regions of a function are counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TeamPlace {
    pub function: Option<String>,
    pub file: Option<String>,
    /// Position among the regions of the function.
    pub number: usize,
    /// Line, of the runs after if they have it; not compared.
    pub line: Option<u32>,
}

/// What takes time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A parallel region, on the thread that begins it.
    Region(TeamPlace),
    /// Threads without work in it.
    Idle(TeamPlace),
    /// Calls on files.
    Files,
    /// Calls on one file.
    File(FilePlace),
}

/// A file that is the same in all runs: by its name, or else by its number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum FilePlace {
    /// Its path.
    Named(String),
    /// Its number, in runs with as many files.
    Numbered(u64),
}

/// A time before and after, of the mean rank, nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct BesideDifference {
    pub what: What,
    pub estimate: Estimate,
    /// Whether it differs, considering how many are compared.
    pub is_significant: bool,
}

/// The regions of a run by place.
fn by_place(record: &RunRecord) -> Option<BTreeMap<TeamPlace, &TeamRecord>> {
    let mut all: Vec<&TeamRecord> = record.parallel_regions.as_ref()?.iter().collect();
    all.sort_by_key(|of| (&of.function, &of.file, of.line));
    let mut places: BTreeMap<TeamPlace, &TeamRecord> = BTreeMap::new();
    let mut number = 0;
    for (at, of) in all.iter().enumerate() {
        let is_same =
            |before: &&&TeamRecord| (&before.function, &before.file) == (&of.function, &of.file);
        number =
            at.checked_sub(1).and_then(|at| all.get(at)).filter(is_same).map_or(0, |_| number + 1);
        let (function, file) = (of.function.clone(), of.file.clone());
        places.insert(TeamPlace { function, file, number, line: None }, of);
    }
    Some(places)
}

/// The nanoseconds of each file, if all runs have the same files.
fn by_file<'r>(
    runs: impl Iterator<Item = &'r RunRecord> + Clone,
) -> Option<Vec<BTreeMap<FilePlace, i64>>> {
    let is_named = runs.clone().flat_map(|run| &run.each_file).all(|of| of.name.is_some());
    let place = |of: &FileRecord| match &of.name {
        Some(name) if is_named => FilePlace::Named(name.clone()),
        _ => FilePlace::Numbered(of.number),
    };
    let of_run = |run: &RunRecord| {
        let files = run.each_file.iter().map(|of| (place(of), of.ns));
        files.collect::<BTreeMap<FilePlace, i64>>()
    };
    let all: Vec<BTreeMap<FilePlace, i64>> = runs.map(of_run).collect();
    let first = all.first()?;
    let are_same = all.iter().all(|run| run.keys().eq(first.keys()));
    // Of one file alone the sum tells.
    (are_same && first.len() > 1).then_some(all)
}

/// Times entered of each region, if they were recorded.
pub(super) fn counts_of(record: &RunRecord) -> Vec<(TeamPlace, u64)> {
    let places = by_place(record).unwrap_or_default();
    places.into_iter().map(|(place, of)| (place, of.count)).collect()
}

/// Times that are known on both sides; significant ones first, then by difference.
pub fn differences(before: &[RunRecord], after: &[RunRecord]) -> Vec<BesideDifference> {
    let mut found = Vec::new();
    let sides = [before, after];
    let teams: Option<Vec<Vec<_>>> =
        sides.iter().map(|side| side.iter().map(by_place).collect()).collect();
    let mean = |record: &RunRecord, ns: i64| ns as f64 / f64::from(record.ranks);
    let compared = |of: &dyn Fn(usize, usize, &RunRecord) -> f64| {
        let [b, a] = [0, 1].map(|side| -> Vec<Vec<f64>> {
            let runs = sides[side].iter().enumerate();
            runs.map(|(run, record)| vec![of(side, run, record)]).collect()
        });
        let estimate = statistics::compare(&b, &a, Location::Mean);
        // How much these vary from run to run cannot be assumed as for elapsed time.
        if estimate.is_assumed { estimate.of_unknown_scatter() } else { estimate }
    };
    if let Some(teams) = &teams {
        let places = teams.iter().flatten().flat_map(BTreeMap::keys);
        let mut places: Vec<&TeamPlace> = places.collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            let line = teams.iter().rev().flatten().find_map(|run| run.get(place)?.line);
            let shown = TeamPlace { line, ..place.clone() };
            let of = |side: usize, run: usize| teams[side][run].get(place);
            let span = |side: usize, run: usize, record: &RunRecord| {
                mean(record, of(side, run).map_or(0, |of| of.span_ns))
            };
            let idle = |side: usize, run: usize, record: &RunRecord| {
                mean(record, of(side, run).map_or(0, |of| of.idle_ns))
            };
            found.push((What::Region(shown.clone()), compared(&span)));
            found.push((What::Idle(shown), compared(&idle)));
        }
    }
    let files = |record: &RunRecord| record.files.map(|of| of.ns);
    if before.iter().chain(after).all(|record| record.files.is_some()) {
        let of = |_: usize, _: usize, record: &RunRecord| mean(record, files(record).unwrap_or(0));
        found.push((What::Files, compared(&of)));
        if let Some(all) = by_file(before.iter().chain(after)) {
            let at = |side: usize, run: usize| &all[side * before.len() + run];
            for place in all.first().into_iter().flat_map(BTreeMap::keys) {
                let of = |side: usize, run: usize, record: &RunRecord| {
                    mean(record, at(side, run).get(place).copied().unwrap_or(0))
                };
                found.push((What::File(place.clone()), compared(&of)));
            }
        }
    }
    let elapsed = before.iter().map(|record| record.elapsed_ns as f64).fold(0.0, f64::max);
    found.retain(|(_, of)| of.before.max(of.after) >= MIN_PART * elapsed);
    let p_values: Vec<f64> = found.iter().map(|(_, estimate)| estimate.p).collect();
    let certain = statistics::discoveries(&p_values, RATE);
    let mut all: Vec<BesideDifference> = found
        .into_iter()
        .zip(certain)
        .map(|((what, estimate), is_certain)| {
            let is_known = estimate.interval.is_some();
            let is_significant =
                is_certain && is_known && estimate.degrees >= statistics::MIN_DEGREES;
            BesideDifference { what, estimate, is_significant }
        })
        .collect();
    let size = |of: &BesideDifference| of.estimate.difference().abs();
    all.sort_by(|a, b| b.is_significant.cmp(&a.is_significant).then(size(b).total_cmp(&size(a))));
    all
}

#[cfg(test)]
mod tests {
    use crate::comparison::counts;
    use crate::comparison::synthetic_runs::RunGenerator;
    use crate::comparison::teams_and_files::FilesRecord;

    use super::*;

    fn team(line: u32, span_ns: i64, idle_ns: i64) -> TeamRecord {
        TeamRecord {
            function: Some("solve".into()),
            file: Some("solve.c".into()),
            line: Some(line),
            count: 10,
            threads: 4,
            span_ns,
            idle_ns,
        }
    }

    fn record(teams: Option<Vec<TeamRecord>>, files_ns: Option<i64>) -> RunRecord {
        let mut record = RunGenerator::default().run();
        record.elapsed_ns = 1_000_000_000;
        record.ranks = 2;
        record.parallel_regions = teams;
        record.files = files_ns.map(|ns| FilesRecord { writes: 3, ns, ..FilesRecord::default() });
        record
    }

    #[test]
    fn regions_are_the_same_when_lines_move() {
        let before: Vec<RunRecord> = (0..4)
            .map(|run| {
                record(
                    Some(vec![team(10, 100_000_000 + run, 50), team(20, 400_000_000 + run, 50)]),
                    None,
                )
            })
            .collect();
        let after: Vec<RunRecord> = (0..4)
            .map(|run| {
                record(
                    Some(vec![team(13, 100_000_000 + run, 50), team(23, 600_000_000 + run, 50)]),
                    None,
                )
            })
            .collect();
        let found = differences(&before, &after);
        let [first, second] = found.as_slice() else { panic!("{found:?}") };
        let What::Region(place) = &first.what else { panic!("{first:?}") };
        assert_eq!((place.number, place.line), (1, Some(23)));
        assert!(first.is_significant && !second.is_significant, "{found:?}");
        assert!((first.estimate.difference() - 1e8).abs() < 1.0, "{first:?}");
    }

    #[test]
    fn one_run_on_each_side_tells_nothing_for_certain() {
        let found =
            differences(&[record(None, Some(100_000_000))], &[record(None, Some(300_000_000))]);
        let [files] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((files.what.clone(), files.is_significant), (What::Files, false));
        assert_eq!(files.estimate.interval, None);
    }

    #[test]
    fn files_that_are_the_same_are_compared_one_by_one() {
        let run = |names: [Option<&str>; 2], ns: [i64; 2]| {
            let mut record = record(None, Some(ns.iter().sum()));
            let files = names.iter().zip(ns).zip(1..);
            let of = |((name, ns), number): ((&Option<&str>, i64), u64)| FileRecord {
                number,
                name: name.map(str::to_owned),
                ns,
            };
            record.each_file = files.map(of).collect();
            record
        };
        let ms = 1_000_000;
        let sides = |before: [Option<&str>; 2], after: [Option<&str>; 2]| {
            let before: Vec<RunRecord> =
                (0..4).map(|at| run(before, [100 * ms + at, 200 * ms + at])).collect();
            // In another order.
            let after: Vec<RunRecord> =
                (0..4).map(|at| run(after, [400 * ms + at, 50 * ms + at])).collect();
            let found = differences(&before, &after);
            let slower = found.into_iter().filter(|of| of.is_significant);
            let slower = slower.filter(|of| of.estimate.difference() > 0.0);
            slower.map(|of| of.what).collect::<Vec<What>>()
        };
        let named = |name: &str| What::File(FilePlace::Named(name.into()));
        let (mesh, log) = (Some("/mesh"), Some("/log"));
        assert_eq!(sides([mesh, log], [log, mesh]), [named("/log"), What::Files]);
        let first = What::File(FilePlace::Numbered(1));
        assert_eq!(sides([None, None], [None, None]), [first, What::Files]);
        assert_eq!(sides([mesh, log], [mesh, Some("/log.2")]), [What::Files]);
    }

    #[test]
    fn what_one_side_did_not_record_is_not_compared() {
        let (with, without) = (record(None, Some(100_000_000)), record(None, None));
        let (with, without) = ([with], [without]);
        assert_eq!(differences(&with, &without), []);
        let (changes, _) = counts::changes(&with, &without);
        assert_eq!(changes, []);
    }
}
