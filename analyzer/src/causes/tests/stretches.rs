//! Iterations, phases and regions of synthetic runs.

use trace_format::header::COMMUNICATOR_SELF;

use super::*;

/// Ticks that a rank computes in an iteration.
const WORK: u64 = 1_000;

/// Lets two ranks make `count` iterations of an MPI_Allreduce and a barrier. `more` is what a rank
/// computes in addition to [`WORK`].
fn iterate(
    [a, b]: &mut [SyntheticRank; 2],
    from: u64,
    count: u64,
    more: impl Fn(usize, u64) -> u64,
) -> u64 {
    let mut now = from;
    for k in 0..count {
        let entered = [now + WORK + more(0, k), now + WORK + more(1, k)];
        let met = entered[0].max(entered[1]) + 20;
        for (rank, own) in [&mut *a, &mut *b].into_iter().zip(entered) {
            rank.call_with("MPI_Allreduce", now, now + 5, on_world(0, 8, 8));
            rank.call_with("MPI_Barrier", own, met, on_world(0, 0, 0));
        }
        now = met + 10;
    }
    now
}

#[test]
fn finds_iterations_with_the_slow_one_and_its_delaying_rank() {
    let mut ranks = world::<2>();
    iterate(&mut ranks, at(0), 50, |rank, k| if (rank, k) == (1, 17) { 4_000 } else { 0 });
    with_causes(&ranks, |causes| {
        let [phase] = causes.phases.as_slice() else { panic!("{:?}", causes.phases) };
        assert_eq!(phase.iterations.len(), 50);
        let found = phase.statistics();
        assert_eq!((found.median, found.mad), (WORK as i64 + 30, 0));
        assert_eq!(found.slow, [17]);
        let slow = phase.iterations[17];
        assert_eq!(slow.ticks, WORK as i64 + 4_030);
        assert_eq!((slow.slowest, slow.waiting), (1, 4_000));
        assert_eq!(slow.delayed_by.map(|line| causes.lines.all[line as usize].rank), Some(1));
        assert_eq!((found.trend, found.period), (None, None));
    });
}

#[test]
fn distinguishes_moving_from_static_imbalance() {
    for (moves, expected) in [(false, 1.0), (true, 1_500.0 / 2_000.0)] {
        let mut ranks = world::<2>();
        let slow = |rank: usize, k: u64| rank as u64 == if moves { k % 2 } else { 1 };
        iterate(&mut ranks, at(0), 40, |rank, k| if slow(rank, k) { WORK } else { 0 });
        with_causes(&ranks, |causes| {
            let moving = causes.phases[0].moving_imbalance().expect("ranks compute");
            assert!((moving - expected).abs() < 0.02, "{moving}, not {expected}");
        });
    }
}

#[test]
fn consecutive_loops_are_phases() {
    let mut ranks = world::<2>();
    let behind = iterate(&mut ranks, at(0), 60, |_, _| 0);
    let mut now = behind + 100;
    for _ in 0..20 {
        for rank in &mut ranks {
            rank.call_with("MPI_Allgather", now, now + 500, on_world(0, 8, 8));
        }
        now += 3_000;
    }
    with_causes(&ranks, |causes| {
        let counts: Vec<usize> = causes.phases.iter().map(|p| p.iterations.len()).collect();
        assert_eq!(counts, [60, 20]);
        assert!(causes.phases[0].bounds[60] <= causes.phases[1].bounds[0]);
    });
}

#[test]
fn run_without_repetition_has_no_iterations() {
    let mut ranks = world::<2>();
    let [a, b] = &mut ranks;
    for rank in [a, b] {
        rank.call_with("MPI_Barrier", at(0), at(10), on_world(0, 0, 0));
        rank.call_with("MPI_Allreduce", at(500), at(510), on_world(0, 8, 8));
    }
    with_causes(&ranks, |causes| assert!(causes.phases.is_empty()));
}

#[test]
fn ranks_with_unequal_repetitions_have_no_iterations() {
    let [mut a, mut b] = world();
    for k in 0..20 {
        a.call_with("MPI_Iprobe", at(k * 100), at(k * 100 + 5), on_world(1, 5, 0));
        if k % 3 == 0 {
            b.call_with("MPI_Send", at(k * 100), at(k * 100 + 5), on_world(0, 5, 8));
        }
    }
    with_causes(&[a, b], |causes| assert!(causes.phases.is_empty(), "{:?}", causes.phases));
}

#[test]
fn regions_have_time_waits_and_efficiency() {
    let [mut a, mut b] = world();
    for (rank, works) in [(&mut a, 100), (&mut b, 300)] {
        rank.region_name(4, "solve");
        rank.region_begin(0, 4, at(0));
        rank.call_with("MPI_Barrier", at(works), at(310), on_world(0, 0, 0));
        rank.region_end(0, 4, at(400));
        rank.call_with("MPI_Barrier", at(500), at(510), on_world(0, 0, 0));
    }
    with_causes(&[a, b], |causes| {
        let [region] = causes.regions.all.as_slice() else { panic!("{:?}", causes.regions) };
        assert_eq!((region.name.as_str(), region.count), ("solve", 2));
        assert_eq!((region.ticks, region.waiting), (400, 200));
        assert_eq!(region.computing, [(0, 190), (1, 390)]);
        let of = |number: usize| causes.regions.of_wait(number as u32).map(|r| r.name.as_str());
        let barrier = |(_, wait): &(usize, &Wait)| wait.state == State::WaitAtBarrier;
        let barriers = causes.waits.iter().enumerate().filter(barrier);
        assert_eq!(barriers.map(|(number, _)| of(number)).collect::<Vec<_>>(), [Some("solve")]);
    });
}

#[test]
fn a_rank_does_not_wait_in_iterations_and_regions_while_another_thread_computes() {
    const TURNS: u64 = 60;
    let [mut a, mut b] = world();
    a.threads.push(Vec::new());
    let probe = on_world(1, 9, 0);
    a.thread_call_with(1, "MPI_Iprobe", at(0), at(5), probe);
    for rank in [&mut a, &mut b] {
        rank.region_name(4, "solve");
    }
    for turn in 0..TURNS {
        let now = 1_000 * (turn + 1);
        for (rank, enters) in [(&mut a, 100), (&mut b, 900)] {
            rank.region_begin(0, 4, at(now));
            rank.call_with("MPI_Barrier", at(now + enters), at(now + 910), on_world(0, 0, 0));
            rank.region_end(0, 4, at(now + 950));
        }
    }
    a.thread_call_with(1, "MPI_Iprobe", at(100_000), at(100_005), probe);
    with_analysis(&[a, b], |analysis| {
        let causes = Causes::new(analysis);
        assert_sums(&causes);
        assert_same_in_processes(&analysis.run.directory, MAX_WAITS, &causes);
        let turns = TURNS as i64;
        assert_eq!(waits(&causes).len(), TURNS as usize, "each thread's waits are listed");
        assert_eq!(causes.ranks_waited(), 0);
        let [phase] = causes.phases.as_slice() else { panic!("{:?}", causes.phases) };
        let iteration = phase.iterations[5];
        assert_eq!((iteration.waiting, iteration.computing, iteration.slowest), (0, 1_990, 0));
        let tree = of_iteration(analysis, 5).tree(analysis.run, None).unwrap();
        assert_eq!((tree.communication, tree.parallel), (1.0, 1_990.0 / 2_000.0));
        let [region] = causes.regions.all.as_slice() else { panic!("{:?}", causes.regions) };
        assert_eq!((region.ticks, region.waiting), (950 * turns, 0));
        assert_eq!(region.computing, [(0, 950 * turns), (1, 940 * turns)]);
    });
}

#[test]
fn a_rank_is_in_a_region_while_any_of_its_threads_is() {
    let [mut a, b] = world();
    a.region_name(4, "solve");
    // The occurrences of the two threads overlap; the last one is that of the second thread alone.
    a.region_begin(0, 4, at(100)).region_end(0, 4, at(300));
    a.region_begin(1, 4, at(200)).region_end(1, 4, at(500));
    a.region_begin(1, 4, at(700));
    a.thread_call_with(1, "MPI_Iprobe", at(710), at(720), on_world(1, 9, 0));
    a.region_end(1, 4, at(800));
    with_causes(&[a, b], |causes| {
        let [region] = causes.regions.all.as_slice() else { panic!("{:?}", causes.regions) };
        assert_eq!((region.count, region.ticks, region.inside), (3, 500, 500));
        assert_eq!(region.computing, [(0, 500)]);
    });
}

#[test]
fn regions_that_ranks_enter_unequally_often_reach_from_the_first_begin_to_the_last_end() {
    let [mut a, mut b] = world();
    for (rank, times) in [(&mut a, 3), (&mut b, 2)] {
        rank.region_name(4, "task");
        for k in 0..times {
            rank.region_begin(0, 4, at(1_000 * k)).region_end(0, 4, at(1_000 * k + 300));
        }
    }
    with_causes(&[a, b], |causes| {
        let [region] = causes.regions.all.as_slice() else { panic!("{:?}", causes.regions) };
        assert_eq!((region.ticks, region.inside), (2_300, 1_500));
    });
}

#[test]
fn shares_of_a_phase_hold_all_that_its_ranks_do() {
    let [mut a, mut b] = world();
    let alone = on_world(0, 0, 0).communicator(COMMUNICATOR_SELF);
    // Rank 1 has begun long before rank 0 does, and needs much longer.
    for k in 0..40 {
        a.call_with("MPI_Barrier", at(50_000 + 10 * k), at(50_005 + 10 * k), alone);
        b.call_with("MPI_Barrier", at(3_000 * k), at(3_000 * k + 5), alone);
    }
    with_analysis(&[a, b], |analysis| {
        let causes = Causes::new(analysis);
        let [phase] = causes.phases.as_slice() else { panic!("{:?}", causes.phases) };
        assert_eq!(phase.ticks(), 39 * 3_000 + 5);
        let mut trees = vec![phase.tree(analysis.run).unwrap()];
        let tree_of = |number| of_iteration(analysis, number).tree(analysis.run, None);
        trees.extend((0..40).filter_map(tree_of));
        assert!(trees.iter().all(|tree| tree.communication <= 1.0), "{trees:?}");
        let in_turn_20 = tree_of(20).unwrap();
        assert!(in_turn_20.communication > 0.99, "{in_turn_20:?}");
    });
}

#[test]
fn equal_runs_have_equally_many_iterations_whatever_little_their_times_differ() {
    // Of a call in each turn, three more come before the loop and take a little of the run.
    for before in [1_000, 1_500, 3_000] {
        let mut ranks = world::<2>();
        let mut now = at(0);
        for turn in 0..63u64 {
            let in_loop = turn >= 3;
            for rank in &mut ranks {
                rank.call_with("MPI_Allreduce", now, now + 5, on_world(0, 8, 8));
                if in_loop {
                    rank.call_with("MPI_Barrier", now + 500, now + 510, on_world(0, 0, 0));
                }
            }
            now += if in_loop { 1_100 } else { before };
        }
        with_causes(&ranks, |causes| {
            let counts: Vec<usize> = causes.phases.iter().map(|p| p.iterations.len()).collect();
            assert_eq!(counts, [60], "{before} ticks before the loop");
        });
    }
}

#[test]
fn turns_that_take_no_time_are_no_iterations() {
    let mut ranks = world::<2>();
    for turn in 0..1_000 {
        for rank in &mut ranks {
            let begin = at(turn * 50 + if turn % 6 == 0 { 20 } else { 0 });
            rank.call_with("MPI_Bcast", begin, begin + 15, on_world(0, 8, 8));
        }
    }
    with_causes(&ranks, |causes| assert!(causes.phases.is_empty()));
}

#[test]
fn iterations_are_not_slow_if_many_are() {
    let mut ranks = world::<2>();
    iterate(&mut ranks, at(0), 60, |_, k| if k * k % 7 == 2 { 4_000 } else { 0 });
    with_causes(&ranks, |causes| {
        let [phase] = causes.phases.as_slice() else { panic!("{:?}", causes.phases) };
        assert!(phase.statistics().slow.is_empty());
    });
}
