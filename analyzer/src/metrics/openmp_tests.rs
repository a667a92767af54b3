//! Parallel regions in known traces, with 1 GHz counters and times in milliseconds since the rank's start at `B`.

use trace_format::header::Definition;
use trace_format::layout::{Team, TeamWaits};

use crate::synthetic_trace::{RunDirectory, SyntheticRank};

use super::*;

const MS: u64 = 1_000_000;
const B: u64 = 5_000_000 * MS;

/// A rank that runs for 100 ms, and writes down that regions are recorded.
fn rank() -> SyntheticRank {
    let mut rank = SyntheticRank::complete(0, 1, B, B + 100 * MS);
    rank.definitions.push(Definition::OpenMp { runtimes: vec!["libgomp.so.1".into()] });
    rank
}

fn openmp_of(mut rank: SyntheticRank, selection: &str) -> OpenMpMetrics {
    rank.finalize(B + 100 * MS, B + 120 * MS);
    let directory = RunDirectory::with_ranks(&[rank]);
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.diagnoses, []);
    let timeline = GlobalTimeline::new(&run);
    let selection = match selection {
        "" => Selection::Whole,
        window => Selection::parse_window(window).unwrap(),
    };
    Metrics::new(&run, &timeline, &selection).unwrap().openmp.unwrap()
}

/// A region of four threads: 40 ms long, of which they work 20, 20, 20 and 36, wait at barriers for 30 and for locks for
/// 14.
fn region() -> (Team, TeamWaits) {
    let team = Team { span: 40 * MS, inside: 140 * MS, work: 96 * MS, longest: 36 * MS };
    (team, TeamWaits { barriers: 30 * MS, locks: 14 * MS, tasks: 0 })
}

#[track_caller]
fn assert_close(found: f64, truth_ms: f64) {
    assert!((found * 1e3 - truth_ms).abs() < 1e-6, "{} ms, not {truth_ms}", found * 1e3);
}

#[test]
fn time_of_threads_is_divided() {
    let mut rank = rank();
    rank.team((4, 3), B + 60 * MS, region());
    rank.call(0, "MPI_Barrier", B + 70 * MS, B + 80 * MS);
    let openmp = openmp_of(rank, "");
    let [of] = openmp.ranks.as_slice() else { panic!("{openmp:?}") };
    assert_eq!((of.threads, of.parallel_regions), (4, 1));
    // 90 ms outside MPI, 50 of them outside the region.
    assert_close(of.work_s, 96.0 + 50.0);
    assert_close(of.serial_s, 150.0);
    assert_close(of.idle.barriers_s, 30.0);
    assert_close(of.idle.locks_s, 14.0);
    assert_close(of.idle.ends_s, 20.0);
    assert_close(of.mpi_s, 40.0);
    let Hybrid { parallel, mpi, openmp: part, .. } = openmp.hybrid.unwrap();
    assert_close(parallel, 1e3 * 146.0 / 400.0);
    assert_close(mpi.efficiency, 1e3 * 0.9);
    assert_close(mpi.idle_threads_s, 30.0);
    assert_close(part.serial * part.regions, 1e3 * 146.0 / 360.0);
    let [region] = openmp.regions.as_slice() else { panic!("{openmp:?}") };
    assert_close(region.load_balance.unwrap(), 1e3 * 24.0 / 36.0);
    let slowest = region.slowest.unwrap();
    assert_eq!((slowest.rank, slowest.thread, slowest.count), (0, 3, 1));
    assert_close(slowest.excess_s, 12.0);
}

#[test]
fn threads_idle_while_their_first_is_in_mpi_are_charged_to_mpi() {
    let mut rank = rank();
    // The first thread is in MPI for 10 of its 36 ms; the others wait for it at a barrier.
    rank.call(0, "MPI_Barrier", B + 30 * MS, B + 40 * MS);
    rank.team((4, 0), B + 60 * MS, region());
    let openmp = openmp_of(rank, "");
    let [of] = openmp.ranks.as_slice() else { panic!("{openmp:?}") };
    assert_close(of.mpi_s, 40.0);
    assert_close(of.work_s, 60.0 + 86.0);
    // 30 of 64 ms without work are charged to MPI.
    assert_close(of.idle.seconds(), 34.0);
    assert_close(of.work_s + of.serial_s + of.idle.seconds() + of.mpi_s, 400.0);
    assert_eq!(openmp.regions[0].load_balance, None, "how long each worked is not known");
}

#[test]
fn selection_has_the_part_of_a_region_inside() {
    let mut rank = rank();
    rank.team((4, 3), B + 60 * MS, region());
    let openmp = openmp_of(rank, "0.03,0.1");
    let [of] = openmp.ranks.as_slice() else { panic!("{openmp:?}") };
    assert_close(of.idle.barriers_s, 30.0 * 0.75);
    assert_close(of.work_s, 96.0 * 0.75 + 40.0);
}

#[test]
fn threads_that_a_smaller_team_leaves_out_have_nothing_to_do() {
    let mut rank = rank();
    rank.team((4, 3), B + 60 * MS, region());
    let work = Team { span: 20 * MS, inside: 40 * MS, work: 40 * MS, longest: 20 * MS };
    rank.team((2, 1), B + 90 * MS, (work, TeamWaits::default()));
    let openmp = openmp_of(rank, "");
    assert_close(openmp.ranks[0].serial_s, 3.0 * 40.0 + 2.0 * 20.0);
    assert_eq!(openmp.regions.len(), 1, "the regions begin at one place");
    assert_eq!((openmp.regions[0].count, openmp.regions[0].threads), (2, 4));
}

#[test]
fn says_why_the_efficiency_is_not_known() {
    let openmp = openmp_of(rank(), "");
    assert_eq!((openmp.hybrid, openmp.regions.len()), (None, 0));
    assert!(openmp.unknown.is_some());
    let mut missing = rank();
    missing.team((4, 3), B + 60 * MS, region());
    missing.definitions.push(Definition::MissedTeams { regions: 7 });
    let openmp = openmp_of(missing, "");
    assert_eq!((openmp.hybrid, openmp.missed), (None, 7));
    assert_eq!(openmp.unknown, Some("regions are missing"));
    let mut several = rank();
    several.team((4, 3), B + 60 * MS, region());
    several.threads.push(Vec::new());
    several.call(1, "MPI_Barrier", B + 10 * MS, B + 20 * MS);
    let openmp = openmp_of(several, "");
    assert_eq!((openmp.hybrid, openmp.regions.len()), (None, 1));
    assert!(openmp.unknown.is_some());
}
