//! Calls that return errors, and messages that did not fit their buffers: failed calls are excluded
//! from messages, collective operations and bytes.

use std::collections::BTreeMap;

use gammachi_analyzer::metrics::{Metrics, Selection};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::trace::Run;
use system_tests::{Job, Recorded, under_both, victim};

/// Truncated messages of rank 1: every way to receive a message into a buffer that is too short.
const TRUNCATED: u64 = 11;
/// Calls that fail on rank 0, and on rank 1.
const FAILED: [u64; 2] = [2, 13];

fn metrics(recorded: &Recorded) -> Metrics {
    let run = Run::open(&recorded.directory()).expect("the run can be read");
    assert_eq!(run.diagnoses, []);
    let timeline = GlobalTimeline::new(&run);
    Metrics::new(&run, &timeline, &Selection::Whole).expect("figures of the run")
}

/// Counts by function and error class.
fn by_kind(metrics: &Metrics) -> BTreeMap<(&str, &str), u64> {
    let kinds = metrics.failed.iter();
    kinds.map(|row| ((row.function.as_str(), row.error.as_str()), row.count)).collect()
}

fn expect_kinds(metrics: &Metrics) {
    let failed: Vec<u64> = metrics.ranks.iter().map(|rank| rank.failed).collect();
    assert_eq!(failed, FAILED);
    let kinds = by_kind(metrics);
    for (function, error, count) in [
        ("MPI_Send", "MPI_ERR_TYPE", 1),
        ("MPI_Isend", "MPI_ERR_RANK", 1),
        ("MPI_Reduce", "MPI_ERR_ROOT", 1),
        ("MPI_Recv", "MPI_ERR_TYPE", 1),
        ("MPI_Recv", "MPI_ERR_TRUNCATE", 2),
        ("MPI_Sendrecv", "MPI_ERR_TRUNCATE", 1),
        ("MPI_Wait", "MPI_ERR_TRUNCATE", 1),
        ("MPI_Waitall", "MPI_ERR_IN_STATUS", 2),
    ] {
        assert_eq!(kinds.get(&(function, error)), Some(&count), "{function} {error} of {kinds:?}");
    }
}

/// Bytes of the calls that send.
fn sent_bytes(metrics: &Metrics) -> u64 {
    let sending = ["MPI_Send", "MPI_Sendrecv"];
    let calls = metrics.calls.iter().filter(|call| sending.contains(&call.function.as_str()));
    calls.filter_map(|call| call.bytes).sum()
}

under_both! {
    fn are_excluded_from_messages(mpi) {
        let job = Job::new(mpi, &victim(mpi, "fails_calls")).ranks(2);
        let recorded = job.record();
        recorded.expect_code(0).output.expect_same(&job.bare());
        let metrics = metrics(&recorded);
        expect_kinds(&metrics);
        let messages = metrics.messages.as_ref().expect("attributes were recorded");
        let summary = &messages.summary;
        assert_eq!(messages.unmatched_count(), 0, "{:?}", messages.unmatched);
        assert_eq!(summary.truncated, TRUNCATED);
        assert_eq!(summary.size_mismatches, 0, "truncated messages are counted separately");
        assert_eq!(summary.unknown_requests, 0);
        assert_eq!((summary.mismatched_instances, summary.incomplete_instances), (0, 0));
        // Sends to MPI_PROC_NULL and failed sends transfer no bytes.
        assert_eq!(sent_bytes(&metrics), messages.total.bytes);
    }

    fn are_counted_in_totals(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "fails_calls"))
            .ranks(2)
            .environment("GAMMACHI_KEEP", "totals")
            .record();
        recorded.expect_code(0);
        let metrics = metrics(&recorded);
        expect_kinds(&metrics);
        let whole = Job::new(mpi, &victim(mpi, "fails_calls")).ranks(2).record();
        assert_eq!(sent_bytes(&metrics), sent_bytes(&self::metrics(&whole)));
    }
}
