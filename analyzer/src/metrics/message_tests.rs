//! Messages in a selection, by pair, size and communicator.

use super::divided_tests::assert_same_in_processes;
use super::*;
use crate::synthetic_messages::{Attributes, completed, on_world};
use crate::synthetic_trace::{RunDirectory, SyntheticRank};

const MS: u64 = 1_000_000;

fn metrics_of(ranks: &[SyntheticRank], selection: &Selection) -> Metrics {
    let directory = RunDirectory::with_ranks(ranks);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, selection).unwrap();
    assert_same_in_processes(directory.path(), selection, &metrics);
    metrics
}

/// Three ranks with a duplicate of the world: 0 sends about 1 kB to each of 1 and 2, 1 answers 0
/// twice, all take part in a reduction, and 2 sends a message that is never received.
fn talkers() -> Vec<SyntheticRank> {
    let mut ranks: Vec<_> = (0..3).map(|rank| SyntheticRank::level_1(rank, 3, 100 * MS)).collect();
    for (rank, number) in ranks.iter_mut().zip(0..) {
        rank.communicator(3, 0, (50, 0), number, 3, &[(0, 1, 3)]);
        rank.communicator(3, 60 * MS, (50, 1), number, 3, &[(0, 1, 3)]);
    }
    let at = |ms: u64| ms * MS;
    ranks[0].call_with("MPI_Send", at(2), at(3), on_world(1, 1, 1000));
    ranks[0].call_with("MPI_Send", at(4), at(5), on_world(2, 1, 1024));
    ranks[0].call_with("MPI_Irecv", at(6), at(7), on_world(-1, 2, 100).request(5));
    ranks[0].call_with("MPI_Wait", at(8), at(12), completed(5, 1, 2, 0));
    ranks[0].call_with("MPI_Recv", at(71), at(72), on_world(1, 2, 4).communicator(3));
    ranks[1].call_with("MPI_Recv", at(2), at(4), on_world(0, 1, 1000));
    ranks[1].call_with("MPI_Send", at(10), at(11), on_world(0, 2, 0));
    ranks[1].polls("MPI_Iprobe", at(20), at(40), 1000, 5 * MS);
    ranks[1].call_with("MPI_Send", at(70), at(71), on_world(0, 2, 4).communicator(3));
    ranks[2].call_with("MPI_Recv", at(5), at(6), on_world(0, 1, 1024));
    for (rank, number) in ranks.iter_mut().zip(0..) {
        let sum = Attributes { tag: 8, bytes: 8, ..Attributes::default() }.communicator(3);
        rank.call_with("MPI_Allreduce", at(80 + number), at(84), sum);
        if number == 2 {
            // Never received.
            rank.call_with("MPI_Send", at(90), at(91), on_world(0, 9, 1));
        }
        rank.finalize(100 * MS, 101 * MS);
    }
    ranks
}

#[test]
fn traffic_by_pair_size_and_communicator() {
    let metrics = metrics_of(&talkers(), &Selection::Whole);
    let messages = metrics.messages.unwrap();
    assert_eq!(messages.total, Traffic { count: 4, bytes: 2028 });
    assert_eq!((messages.wildcard_receives, messages.early, messages.unmatched_count()), (1, 0, 1));
    assert_eq!(messages.summary.size_mismatches, 0);
    let pairs: Vec<_> = messages.matrix.pairs.into_iter().collect();
    let traffic = |count, bytes| Traffic { count, bytes };
    assert_eq!(
        pairs,
        [((0, 1), traffic(1, 1000)), ((0, 2), traffic(1, 1024)), ((1, 0), traffic(2, 4))]
    );
    let sizes: Vec<_> = messages.sizes.iter().map(|s| (s.from_bytes, s.traffic.count)).collect();
    assert_eq!(sizes, [(0, 1), (4, 1), (512, 1), (1024, 1)]);
    let rows: Vec<_> = messages
        .communicators
        .iter()
        .map(|row| (row.name.as_deref(), row.instances, row.messages.count, row.collectives))
        .collect();
    assert_eq!(
        rows,
        [(Some("MPI_COMM_WORLD"), 1, 3, 0), (Some("MPI_COMM_SELF"), 3, 0, 0), (None, 2, 1, 1)]
    );
    let split = &messages.communicators[2];
    assert_eq!((split.collective_calls, split.collective_bytes), (3, 24));
}

#[test]
fn a_window_counts_messages_that_begin_in_it() {
    // The timeline begins where the counters read 1 ms.
    let window = Selection::parse_window("0.0085,0.0695").unwrap();
    let metrics = metrics_of(&talkers(), &window);
    let messages = metrics.messages.unwrap();
    assert_eq!((messages.total, messages.unmatched_count()), (Traffic { count: 2, bytes: 4 }, 0));
    assert_eq!(messages.communicators[2].collectives, 0);
}

#[test]
fn calls_count_the_bytes_that_they_move() {
    let metrics = metrics_of(&talkers(), &Selection::Whole);
    let bytes = |name: &str| metrics.calls.iter().find(|c| c.function == name).unwrap().bytes;
    assert_eq!(bytes("MPI_Send"), Some(1000 + 1024 + 4 + 1));
    assert_eq!(bytes("MPI_Recv"), Some(1000 + 1024 + 4));
    assert_eq!(bytes("MPI_Irecv"), None);
    assert_eq!(bytes("MPI_Wait"), None);
    assert_eq!(bytes("MPI_Allreduce"), Some(24));
}

#[test]
fn level_0_has_no_messages() {
    let ranks: Vec<_> = (0..2)
        .map(|rank| {
            let mut rank = SyntheticRank::complete(rank, 2, MS, 100 * MS);
            rank.call(0, "MPI_Send", 2 * MS, 3 * MS).finalize(100 * MS, 101 * MS);
            rank
        })
        .collect();
    assert_eq!(metrics_of(&ranks, &Selection::Whole).messages, None);
}

#[test]
fn early_messages_on_a_channel_shared_by_threads_are_ambiguous() {
    let ranks = |second: i32| {
        let mut ranks: Vec<_> =
            (0..2).map(|rank| SyntheticRank::level_1(rank, 2, 100 * MS)).collect();
        // Matching by order pairs the first send with the first receive, whichever was meant.
        ranks[0].thread_call_with(0, "MPI_Send", 20 * MS, 21 * MS, on_world(1, 1, 8));
        ranks[0].thread_call_with(1, "MPI_Send", 50 * MS, 51 * MS, on_world(1, second, 8));
        ranks[1].thread_call_with(0, "MPI_Recv", 10 * MS, 52 * MS, on_world(0, 1, 8));
        ranks[1].thread_call_with(1, "MPI_Recv", 11 * MS, 22 * MS, on_world(0, second, 8));
        for rank in &mut ranks {
            rank.finalize(100 * MS, 100 * MS + 10);
        }
        metrics_of(&ranks, &Selection::Whole).messages.unwrap()
    };
    let shared = ranks(1);
    assert_eq!((shared.early, shared.early_ambiguous), (0, 1));
    assert!(
        shared.notes().any(|note| matches!(note, Note::Messages(MessageNote::EarlyAmbiguous, _)))
    );
    let separate = ranks(2);
    assert_eq!((separate.early, separate.early_ambiguous), (1, 0));
}

#[test]
fn messages_to_proc_null_and_failed_sends_move_nothing() {
    let mut ranks: Vec<_> = (0..2).map(|rank| SyntheticRank::level_1(rank, 2, 100 * MS)).collect();
    ranks[0].call_with("MPI_Send", 2 * MS, 3 * MS, on_world(1, 1, 1000));
    // MPI_PROC_NULL of Open MPI.
    ranks[0].call_with("MPI_Send", 4 * MS, 5 * MS, on_world(-2, 1, 500));
    ranks[0].failed_call_with("MPI_Send", (6 * MS, 7 * MS), on_world(1, 1, 300), 3);
    ranks[1].call_with("MPI_Recv", 2 * MS, 4 * MS, on_world(0, 1, 1000));
    for rank in &mut ranks {
        rank.finalize(100 * MS, 100 * MS + 10);
    }
    let metrics = metrics_of(&ranks, &Selection::Whole);
    let sends = metrics.calls.iter().find(|call| call.function == "MPI_Send").unwrap();
    assert_eq!((sends.count, sends.bytes), (3, Some(1000)));
    assert_eq!(metrics.messages.as_ref().unwrap().total.bytes, 1000);
    assert_eq!((metrics.ranks[0].failed, metrics.ranks[1].failed), (1, 0));
    let failed: Vec<_> = metrics.failed.iter().map(|f| (f.function.as_str(), f.count)).collect();
    assert_eq!((failed, metrics.failed[0].error.as_str()), (vec![("MPI_Send", 1)], "MPI_ERR_TYPE"));
    assert!(metrics.notes.iter().any(|note| matches!(note, Note::CallsFailed(_))));
}

#[test]
fn one_sided_bytes_count_from_source_to_destination() {
    let at = |ms: u64| ms * MS;
    let mut ranks: Vec<_> = (0..3).map(|rank| SyntheticRank::level_1(rank, 3, 100 * MS)).collect();
    ranks[0].call_with("MPI_Put", at(2), at(3), on_world(1, 1, 1000));
    ranks[0].call_with("MPI_Rget", at(4), at(5), on_world(2, 1, 24).request(5));
    // Neither an access to MPI_PROC_NULL nor a failed call moves anything.
    ranks[1].call_with("MPI_Accumulate", at(6), at(7), on_world(-2, 1, 7000));
    ranks[1].failed_call_with("MPI_Put", (at(8), at(9)), on_world(0, 1, 9000), 3);
    ranks.iter_mut().for_each(|rank| {
        rank.finalize(100 * MS, 101 * MS);
    });
    let messages = metrics_of(&ranks, &Selection::Whole).messages.unwrap();
    assert_eq!(messages.one_sided, OneSided { accesses: 2, put_bytes: 1000, got_bytes: 24 });
    let traffic = |bytes| Traffic { count: 1, bytes };
    let pairs = [((0, 1), traffic(1000)), ((2, 0), traffic(24))];
    assert_eq!(messages.matrix.pairs, pairs.into_iter().collect());
    assert_eq!((messages.total, messages.unmatched_count()), (Traffic::default(), 0));
    assert_eq!(messages.communicators[0].one_sided.bytes(), 1024);
}

#[test]
fn several_selections_in_one_pass_agree_with_each_alone() {
    use super::exchanges::Exchanges;
    use crate::analysis::Analysis;
    let directory = RunDirectory::with_ranks(&talkers());
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let windows = ["0.003,0.011", "0.0105,0.082", "0,0.05", "MPI_Barrier#1,MPI_Barrier#2"];
    let windows = windows.iter().map(|text| Selection::parse_window(text).unwrap());
    let all: Vec<Selection> = std::iter::once(Selection::Whole).chain(windows).collect();
    let analysis = Analysis::new(&run, &timeline);
    let together = Exchanges::of_all(&analysis, &all);
    for (selection, found) in all.iter().zip(together) {
        assert_eq!(found, Exchanges::for_selection(&analysis, selection), "{selection:?}");
    }
}
