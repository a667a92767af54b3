//! What is no wait for another rank, and what clocks or traces cannot tell.

use super::*;

#[test]
fn nobody_waits_for_a_message_to_oneself() {
    let [mut a, b] = world();
    a.call_with("MPI_Irecv", at(1), at(2), on_world(0, 5, 8).request(11));
    a.polls("MPI_Test", at(10), at(90), 5, 40);
    a.call_with("MPI_Bsend", at(95), at(96), on_world(0, 5, 8));
    a.call_with("MPI_Test", at(102), at(103), completed(11, 0, 5, 8));
    with_causes(&[a, b], |causes| {
        let found = waits(causes);
        assert!(
            found.iter().all(|(_, rank, delayed_by, ..)| Some(*rank) != *delayed_by),
            "{found:?}"
        );
        assert_eq!(causes.for_own_threads, 0);
    });
}

#[test]
fn wait_for_a_thread_of_the_same_rank_is_no_wait_state() {
    let [mut a, b] = world();
    a.threads.push(Vec::new());
    a.thread_call_with(1, "MPI_Recv", at(10), at(105), on_world(0, 5, 8));
    a.call_with("MPI_Bsend", at(100), at(101), on_world(0, 5, 8));
    with_causes(&[a, b], |causes| {
        assert_eq!(waits(causes), []);
        assert_eq!(causes.for_own_threads, 90);
    });
}

#[test]
fn thread_computes_before_its_first_call() {
    let [mut a, mut b] = world();
    a.threads.push(Vec::new());
    a.call_with("MPI_Barrier", at(0), at(10), on_world(0, 0, 0));
    b.call_with("MPI_Barrier", at(0), at(10), on_world(0, 0, 0));
    a.thread_call_with(1, "MPI_Bsend", at(500), at(505), on_world(1, 5, 8));
    b.call_with("MPI_Recv", at(20), at(510), on_world(0, 5, 8));
    with_causes(&[a, b], |causes| {
        assert_eq!(waits(causes), [(State::LateSender, 1, Some(0), 20, 480)]);
        assert_eq!(costs(causes), [(0, "-..MPI_Bsend".to_owned(), 480, 0)]);
        assert_eq!(causes.charges.unattributed, 0);
    });
}

#[test]
fn who_moves_no_data_in_a_scan_waits_for_nobody() {
    for name in ["MPI_Scan", "MPI_Exscan"] {
        let mut ranks = world::<3>();
        for (rank, enters) in ranks.iter_mut().zip([90, 10, 20]) {
            rank.call_with(name, at(enters), at(enters + 5), on_world(0, 0, 0));
        }
        with_causes(&ranks, |causes| {
            assert_eq!(waits(causes), []);
            assert_eq!((causes.violations, causes.unknown.as_slice()), (0, [].as_slice()));
        });
    }
}

#[test]
fn sparse_alltoallv_waits_for_its_partners_only() {
    // Ranks 0 and 1 exchange data with each other, rank 2 with itself.
    let mut ranks = world::<3>();
    for (rank, (enters, left)) in ranks.iter_mut().zip([(10, 45), (40, 46), (90, 95)]) {
        rank.call_with("MPI_Alltoallv", at(enters), at(left), on_world(0, 8, 8));
    }
    with_causes(&ranks, |causes| {
        assert_eq!((causes.violations, causes.unknown.as_slice()), (0, [].as_slice()));
        assert!(waits(causes).iter().all(|(_, _, delayed_by, ..)| *delayed_by != Some(2)));
    });
}

#[test]
fn skew_below_the_clocks_bound_counts_as_transfer_everywhere() {
    const SKEW: u64 = 500;
    let mut ranks = world::<2>();
    for (rank, name) in ranks.iter_mut().zip(["n0", "n1"]) {
        (rank.header.host, rank.header.boot_id) = (name.into(), name.into());
    }
    for definition in &mut ranks[1].definitions {
        match definition {
            Definition::ClockExchange(exchange) => {
                (exchange.same_host, exchange.bound_ticks) = (false, 20_000);
            }
            Definition::RankBegin { ticks } => *ticks += SKEW,
            Definition::RankEnd { ticks } => *ticks -= SKEW,
            _ => {}
        }
    }
    with_causes(&ranks, |causes| {
        assert_eq!((causes.waits.as_slice(), causes.uncertain), ([].as_slice(), 2 * SKEW as i64));
        let of_rank = causes.rank_times[1];
        assert_eq!((of_rank.waiting, of_rank.transfer), (0, 2 * SKEW as i64));
    });
}
