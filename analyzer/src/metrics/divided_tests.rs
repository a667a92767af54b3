//! Metrics of an analysis that is divided among processes.

use std::path::Path;

use super::*;
use crate::processes::in_threads;
use crate::synthetic_code::{Library, sampled};
use crate::synthetic_messages::on_world;
use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use crate::trace::TraceError;

const MS: u64 = 1_000_000;

/// Asserts that several processes find the same as one.
pub(super) fn assert_same_in_processes(path: &Path, selection: &Selection, expected: &Metrics) {
    for count in 2..=3 {
        let of_processes = in_threads::run(count, |processes| {
            let run = Run::open_in(path, &processes).unwrap();
            let timeline = GlobalTimeline::new(&run);
            let analysis = Analysis::divided(&run, &timeline);
            let metrics = Metrics::for_question(&analysis, Question::about(selection)).unwrap();
            run.check_readable_in_all().unwrap();
            metrics
        });
        assert_eq!(of_processes.first(), Some(expected), "{count} processes");
    }
}

/// Ranks that pass messages on in a ring inside a region, and have call sites and failed calls.
fn ring(ranks: u32) -> Vec<SyntheticRank> {
    let rank = |number: u32| {
        let mut rank = SyntheticRank::level_1(number, ranks, 1000 * MS);
        let (next, previous) = ((number + 1) % ranks, (number + ranks - 1) % ranks);
        rank.region_name(3, "solve").region_begin(0, 3, 5 * MS);
        for step in 0..20 + u64::from(number) % 3 {
            let at = |ms: u64| (10 + 20 * step + ms) * MS;
            rank.call_with("MPI_Send", at(1), at(2), on_world(next as i32, 4, 100 << step));
            if step < 20 {
                rank.call_with("MPI_Recv", at(3), at(9), on_world(previous as i32, 4, 0));
                rank.call_with("MPI_Allreduce", at(11), at(12), on_world(0, 8, 8));
            }
        }
        rank.region_end(0, 3, 900 * MS);
        rank.finalize(1000 * MS, 1001 * MS);
        rank
    };
    (0..ranks).map(rank).collect()
}

#[test]
fn any_number_of_processes_finds_the_same_in_runs_of_any_size() {
    for ranks in [2, 3, 8] {
        let directory = RunDirectory::with_ranks(&ring(ranks));
        let run = Run::open(directory.path()).unwrap();
        let timeline = GlobalTimeline::new(&run);
        let window = Selection::Window {
            from: Bound::Occurrence { function: "MPI_Send".into(), number: 3 },
            to: Bound::Seconds(0.3),
        };
        for selection in [Selection::Whole, Selection::Region("solve".into()), window] {
            let metrics = Metrics::new(&run, &timeline, &selection).unwrap();
            assert_same_in_processes(directory.path(), &selection, &metrics);
        }
    }
}

#[test]
fn any_number_of_processes_finds_the_same_in_sampled_code() {
    let functions = [1, 2, 3, 4].map(|number| number << 12);
    let library = Library { path: "code".into(), build_id: String::new(), functions };
    let directory =
        RunDirectory::with_ranks(&sampled(&library, 1, &vec![vec![[20 * MS; 4]; 9]; 5]));
    let run = Run::open(directory.path()).unwrap();
    let metrics = Metrics::new(&run, &GlobalTimeline::new(&run), &Selection::Whole).unwrap();
    assert!(metrics.code.is_some());
    assert_same_in_processes(directory.path(), &Selection::Whole, &metrics);
}

#[test]
fn processes_fail_together() {
    let directory = RunDirectory::with_ranks(&ring(2));
    let nowhere = directory.path().join("absent");
    let errors = in_threads::run(2, |processes| {
        // One of the two cannot see the run.
        let path = if processes.is_first() { directory.path() } else { &nowhere };
        Run::open_in(path, &processes).unwrap_err()
    });
    assert!(matches!(&errors[0], TraceError::OnProcess { process: 1, .. }), "{errors:?}");
    assert!(matches!(&errors[1], TraceError::Missing(_)), "{errors:?}");

    let other = RunDirectory::with_ranks(&ring(3));
    let errors = in_threads::run(2, |processes| {
        let path = if processes.is_first() { directory.path() } else { other.path() };
        Run::open_in(path, &processes).unwrap_err().to_string()
    });
    assert!(errors.iter().all(|error| error.contains("process 1 on")), "{errors:?}");
}
