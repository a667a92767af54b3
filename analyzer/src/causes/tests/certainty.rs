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

#[test]
fn waits_between_hosts_without_an_exchange_are_certain_beyond_the_estimated_error() {
    let [mut a, mut b, mut c] = world::<3>();
    let message = |from: &mut SyntheticRank, to: &mut SyntheticRank, sent, begin, end| {
        let (source, destination) = (from.fixed.rank as i32, to.fixed.rank as i32);
        from.call_with("MPI_Send", at(sent), at(sent + 10), on_world(destination, 1, 8));
        to.call_with("MPI_Recv", at(begin), at(end), on_world(source, 1, 8));
    };
    // They take 1,000 ticks both ways, so that the offset is known to about that.
    for begin in (0..50_000).step_by(5_000) {
        message(&mut a, &mut b, begin, begin, begin + 1_000);
        message(&mut b, &mut a, begin + 2_000, begin + 2_000, begin + 3_000);
    }
    message(&mut a, &mut b, 100_000, 60_000, 101_000);
    message(&mut a, &mut b, 120_300, 120_000, 121_300);
    message(&mut b, &mut c, 140_200, 140_000, 140_300);
    let mut ranks = [a, b.skewed(7_000_000, 1.0), c.skewed(7_000_000, 1.0)];
    for (rank, host) in ranks.iter_mut().zip(["n0", "n1", "n1"]) {
        (rank.header.host, rank.header.boot_id) = (host.into(), host.into());
        rank.definitions.retain(|d| !matches!(d, Definition::ClockExchange(_)));
    }
    let ranks = ranks.map(|mut rank| {
        let end = if rank.fixed.rank == 0 { END } else { END + 7_000_000 };
        rank.finalize(end, end + 10);
        rank
    });
    let directory = RunDirectory::with_ranks(&ranks);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let analysis = Analysis::new(&run, &timeline);
    let causes = Causes::new(&analysis);
    assert_sums(&causes);
    assert_same_in_processes(directory.path(), MAX_WAITS, &causes);
    assert!(!causes.unknown.contains(&Unknown::Unaligned), "{:?}", causes.unknown);
    let found: Vec<_> = waits(&causes).iter().map(|wait| (wait.1, wait.2, wait.4)).collect();
    let [(1, Some(0), long), (2, Some(1), short)] = found[..] else { panic!("{found:?}") };
    assert!((39_000..41_000).contains(&long), "{long}");
    assert!((199..=201).contains(&short), "of ranks of one host: {short}");
    assert!(causes.uncertain > 0, "the wait of 300 ticks between hosts");
}
