use trace_format::markers::ToolReason;

use crate::metrics::activity::index_file::{StoredIndex, Unusable, store};
use crate::metrics::activity::rows::Activity;
use crate::synthetic_trace::{RunDirectory, SyntheticRank};

use super::*;

const B: u64 = 5_000_000_000;
const STEPS: u64 = 3000;

/// Two ranks of some 10⁴ events, with polls, compute calls, recorder time and a second thread.
fn ranks() -> Vec<SyntheticRank> {
    let end = B + STEPS * 10_000 + 1_000_000;
    let rank = |number: u32| {
        let mut rank = SyntheticRank::complete(number, 2, B, end);
        rank.region_name(1, "solve");
        for step in 0..STEPS {
            let at = B + 500_000 + step * 10_000 + u64::from(number) * 37;
            let length = 100 + step % 90;
            rank.call(0, "MPI_Send", at, at + length);
            if step % 50 == 0 {
                rank.region_begin(0, 1, at + 300);
                rank.polls("MPI_Iprobe", at + 400, at + 1400, 5, 700);
                rank.tool(0, ToolReason::Window, at + 1500, at + 1600);
                rank.region_end(0, 1, at + 1700 + step / 50);
            }
            rank.compute("cblas_dgemm", at + 2000, at + 4000 + length, 1e3, 8);
            rank.call(0, "MPI_Recv", at + 6000, at + 7000 + 3 * length);
            rank.call(1, "MPI_Wait", at + 100, at + 5000);
        }
        rank.finalize(end, end + 9000);
        rank
    };
    vec![rank(0), rank(1)]
}

#[test]
fn any_stretch_agrees_with_one_pass_encoded_or_not() {
    let ranks = ranks();
    for directory in [RunDirectory::with_ranks(&ranks), RunDirectory::of_encoded(&ranks)] {
        let run = Run::open(directory.path()).unwrap();
        let timeline = GlobalTimeline::new(&run);
        let index = ActivityIndex::new(&run, &timeline, &AtomicU64::new(0));
        let reader = IndexReader { run: &run, timeline: &timeline, index: &index };
        assert!(index.rows.iter().all(|row| row.places.1 - row.places.0 >= 2));
        for bins in [1, 3, 40, 5000] {
            let activity = Activity::new(&run, &timeline, bins);
            assert_eq!(activity.rows.len(), index.rows.len());
            let bin_s = activity.bin_s();
            for (number, row) in activity.rows.iter().enumerate() {
                let shares = reader.shares(number, 0.0, activity.length_s, bins);
                for kind in 0..KINDS {
                    let total: f64 = shares.iter().map(|bin| f64::from(bin[kind]) * bin_s).sum();
                    let wanted = row.totals_s[kind];
                    assert!(
                        (total - wanted).abs() < 1e-7,
                        "{bins} {number} {kind}: {total} {wanted}"
                    );
                }
                for (bin, (a, b)) in row.bins.iter().zip(&shares).enumerate() {
                    for kind in 0..KINDS {
                        let (a, b) = (f64::from(a[kind]), f64::from(b[kind]) * bin_s);
                        // A tick at each edge, and sums in single precision.
                        assert!(
                            (a - b).abs() < 4e-9 + a * 1e-4,
                            "{bins} {number} {bin} {kind}: {a} {b}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn gives_single_calls_of_any_stretch_unless_too_many() {
    let directory = RunDirectory::with_ranks(&ranks());
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let index = ActivityIndex::new(&run, &timeline, &AtomicU64::new(0));
    let reader = IndexReader { run: &run, timeline: &timeline, index: &index };
    // Step 2000 of rank 0, from inside the first call to inside the last.
    let from = (500_000 + 2000 * 10_000 + 50) as f64 * 1e-9;
    let events = reader.events(0, from, from + 6500e-9, 100).unwrap();
    let lengths: Vec<u64> = events.iter().map(|e| e.event.end.unwrap() - e.event.begin).collect();
    assert_eq!(lengths[0], 100 + 2000 % 90);
    assert_eq!(events.last().unwrap().kind_in(&run, &index), Kind::Receive);
    assert!(reader.events(0, 0.0, 1.0, 100).is_none());
    assert!(reader.events(0, 2.0, 3.0, 100).unwrap().is_empty());
}

#[test]
fn a_stored_index_is_valid_until_a_file_changes() {
    let directory = RunDirectory::with_ranks(&ranks());
    assert_eq!(StoredIndex::read(directory.path()).unwrap_err(), Unusable::Absent);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let index = ActivityIndex::new(&run, &timeline, &AtomicU64::new(0));
    let bytes = store(&run, &index).unwrap();
    let stored = StoredIndex::read(directory.path()).unwrap();
    assert_eq!(stored.index, index);
    let extents = stored.extents();
    let again =
        Run::open_with_extents(directory.path(), &|name| extents.get(name).cloned()).unwrap();
    assert!(stored.matches(&again));
    let threads = |run: &Run| run.ranks.iter().map(|r| r.threads.clone()).collect::<Vec<_>>();
    assert_eq!(threads(&again), threads(&run));
    let path = directory.path().join(super::super::index_file::INDEX_FILE);
    let whole = std::fs::read(&path).unwrap();
    assert_eq!(whole.len() as u64, bytes);
    for at in [0, 30, 60, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        assert!(matches!(StoredIndex::read(directory.path()), Err(Unusable::Stale(_))), "{at}");
    }
    for length in [0, 26, 40, whole.len() / 2] {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(matches!(StoredIndex::read(directory.path()), Err(Unusable::Stale(_))), "{length}");
    }
    std::fs::write(&path, &whole).unwrap();
    directory.write(&ranks()[1]);
    let Err(Unusable::Stale(why)) = StoredIndex::read(directory.path()) else {
        panic!("not stale")
    };
    assert!(why.contains("rank-000001.gmc has changed"), "{why}");
}
