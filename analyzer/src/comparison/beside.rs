//! Compares parallel regions and calls on files.

use std::collections::BTreeMap;

use super::quantities::RATE;
use super::record::RunRecord;
use super::statistics::{self, Estimate, Location};
use super::teams_and_files::TeamRecord;

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
    fn what_one_side_did_not_record_is_not_compared() {
        let (with, without) = (record(None, Some(100_000_000)), record(None, None));
        let (with, without) = ([with], [without]);
        assert_eq!(differences(&with, &without), []);
        let (changes, _) = counts::changes(&with, &without);
        assert_eq!(changes, []);
    }
}
