//! All members of a communicator identify it alike.

use gammachi_analyzer::metrics::{MessageMetrics, Metrics, Selection};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::timeline::matching::Reason;
use gammachi_analyzer::trace::Run;
use system_tests::{Job, Mpi, Recorded, under_both, victim};

fn messages(recorded: &Recorded) -> MessageMetrics {
    let run = Run::open(&recorded.directory()).expect("the run can be read");
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).expect("figures of the run");
    metrics.messages.expect("attributes were recorded")
}

under_both! {
    fn identified_when_parents_are_duplicated_in_different_orders(mpi) {
        expect_all_matched(mpi, "duplicates_in_another_order");
    }

    fn identified_when_a_duplicate_and_a_group_are_made_in_different_orders(mpi) {
        expect_all_matched(mpi, "creates_groups_in_another_order");
    }

    // What the process used is read as soon as the call that makes the communicator ends.
    fn calls_behind_a_reading_and_a_new_communicator_are_kept(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "duplicates_after_a_pause")).ranks(2).record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        for rank in [trace.rank(0), trace.rank(1)] {
            assert_eq!((rank.count("MPI_Barrier"), rank.count("MPI_Finalize")), (100, 1));
        }
    }
}

/// Records a victim whose four ranks exchange 40 messages, and asserts that all ends meet.
fn expect_all_matched(mpi: Mpi, name: &str) {
    let recorded = Job::new(mpi, &victim(mpi, name)).ranks(4).record();
    recorded.expect_code(0);
    let messages = messages(&recorded);
    let summary = &messages.summary;
    assert_eq!(messages.unmatched_count(), 0, "{:?}", messages.unmatched);
    assert_eq!((summary.matched, summary.size_mismatches), (40, 0));
    assert_eq!((summary.mismatched_instances, summary.incomplete_instances), (0, 0));
}

// Debian's MPICH cannot start processes without the process manager that it was built for.
#[test]
fn identified_when_the_first_rank_is_in_another_world() {
    let mpi = Mpi::OpenMpi;
    let recorded = Job::new(mpi, &victim(mpi, "talks_across_worlds")).ranks(2).record();
    recorded.expect_code(0);
    let messages = messages(&recorded);
    assert_eq!(messages.summary.matched, 1, "{:?}", messages.unmatched);
    let outside = messages.unmatched.get(&Reason::OutsideWorld);
    assert_eq!(outside.map(|sides| sides.sends), Some(1), "{:?}", messages.unmatched);
    assert_eq!(messages.unmatched_count(), 1, "{:?}", messages.unmatched);
}
