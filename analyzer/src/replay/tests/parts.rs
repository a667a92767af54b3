//! Parts of a run on an ideal network.

use super::*;
use crate::causes::{Causes, CausesOptions};
use crate::metrics::{Bound, Metrics, Selection};

/// Ticks that each of the two ranks computes per turn, and that a message takes.
const WORK: u64 = 1_000;
const TRANSFER: u64 = 150;

/// Two ranks that compute one after the other in region "solve", with the same transfer each time,
/// between barriers.
fn in_turn() -> [SyntheticRank; 2] {
    let [mut first, mut second] = [0, 1].map(|rank| SyntheticRank::level_1(rank, 2, 4_000_000));
    for rank in [&mut first, &mut second] {
        rank.region_name(4, "solve");
    }
    let (mut done, mut now) = (1_500_000, 1_500_000);
    for _ in 0..100 {
        for (rank, entered) in [(&mut first, done), (&mut second, now)] {
            rank.call_with("MPI_Barrier", entered, now + 20, on_world(0, 0, 0));
            rank.region_begin(0, 4, now + 20);
        }
        now += 20;
        let sent = now + WORK;
        first.call_with("MPI_Send", sent, sent + 10, on_world(1, 5, 8)).region_end(0, 4, sent + 10);
        second.call_with("MPI_Recv", now, sent + TRANSFER, on_world(0, 5, 8));
        (done, now) = (sent + 10, sent + TRANSFER + WORK);
        second.region_end(0, 4, now);
    }
    [first, second]
}

/// Serialisation and transfer of a part of the run.
fn factors(selection: &Selection) -> Option<(f64, f64)> {
    let directory = RunDirectory::with_ranks(&in_turn());
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let analysis = Analysis::new(&run, &timeline);
    let metrics = Metrics::new(&run, &timeline, selection).unwrap();
    let causes = Causes::with_options(&analysis, CausesOptions::of_part(&metrics)).unwrap();
    let ideal = ideal_time_of(&analysis, causes.part.as_ref()).unwrap();
    let tree = causes.tree(&run, Some(ideal)).unwrap();
    tree.serialisation.zip(tree.transfer)
}

fn assert_near((serialisation, transfer): (f64, f64), expected: (f64, f64)) {
    let is_near = |one: f64, other: f64| (one - other).abs() < 0.03;
    let near = is_near(serialisation, expected.0) && is_near(transfer, expected.1);
    assert!(near, "serialisation {serialisation}, transfer {transfer}, not {expected:?}");
}

#[test]
fn a_region_waits_in_turn_and_for_transfers() {
    let transfer = 2.0 * WORK as f64 / (2.0 * WORK as f64 + TRANSFER as f64);
    let found = factors(&Selection::Region("solve".into())).unwrap();
    assert_near(found, (0.5, transfer));
}

/// A window in seconds, given in ticks since the first barrier.
fn window(from: u64, to: u64) -> Selection {
    let at = |ticks: u64| Bound::Seconds((500_000 + ticks) as f64 / 1e9);
    Selection::Window { from: at(from), to: at(to) }
}

#[test]
fn a_window_that_ends_in_a_wait_counts_only_what_was_done_in_it() {
    // The first rank computes all the time, and the second waits for it.
    let turn = 20 + 2 * WORK + TRANSFER;
    let found = factors(&window(10 * turn + 20, 10 * turn + 20 + WORK / 2)).unwrap();
    assert_near(found, (1.0, 1.0));
    // A barrier, both computations and the transfer.
    let found = factors(&window(10 * turn, 20 * turn)).unwrap();
    let all = turn as f64;
    assert_near(found, (0.5, 2.0 * WORK as f64 / all));
}
