//! Known traces, with 1 GHz counters and times in milliseconds since the rank's start at `B`.

use trace_format::header::{Definition, Phase, ThreadCores};
use trace_format::markers::ToolReason;

use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use crate::timeline::Ending;
use crate::trace::FileFault;

use super::*;

const MS: u64 = 1_000_000;
const B: u64 = 5_000_000 * MS;

/// One of two ranks, running from `begin` to `end` ms.
fn rank(number: u32, begin: u64, end: u64) -> SyntheticRank {
    SyntheticRank::complete(number, 2, B + begin * MS, B + end * MS)
}

fn finish(mut rank: SyntheticRank, end: u64) -> SyntheticRank {
    // The recorder finishes inside MPI_Finalize, as in real files.
    rank.finalize(B + end * MS, B + (end + 20) * MS);
    rank.tool(0, ToolReason::Finish, B + (end + 1) * MS, B + (end + 5) * MS);
    rank
}

/// Rank 0: 0 to 100 ms, 30 ms Send, 2 ms recorder, 10 ms Recv. Rank 1: 10 to 90 ms, 20 ms Recv.
fn two_ranks() -> [SyntheticRank; 2] {
    let mut first = rank(0, 0, 100);
    first.call(0, "MPI_Send", B + 10 * MS, B + 40 * MS);
    first.tool(0, ToolReason::Window, B + 50 * MS, B + 52 * MS);
    first.call(0, "MPI_Recv", B + 60 * MS, B + 70 * MS);
    let mut second = rank(1, 10, 90);
    second.call(0, "MPI_Recv", B + 30 * MS, B + 50 * MS);
    [finish(first, 100), finish(second, 90)]
}

fn metrics_of(ranks: &[SyntheticRank], selection: &Selection) -> Result<Metrics, SelectionError> {
    let directory = RunDirectory::with_ranks(ranks);
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.diagnoses, []);
    let timeline = GlobalTimeline::new(&run);
    Metrics::new(&run, &timeline, selection)
}

fn whole(ranks: &[SyntheticRank]) -> Metrics {
    metrics_of(ranks, &Selection::Whole).unwrap()
}

fn window(ranks: &[SyntheticRank], text: &str) -> Metrics {
    metrics_of(ranks, &Selection::parse_window(text).unwrap()).unwrap()
}

fn region(ranks: &[SyntheticRank], name: &str) -> Metrics {
    metrics_of(ranks, &Selection::Region(name.into())).unwrap()
}

/// Milliseconds, rounded to nanoseconds so that they can be compared exactly.
fn ms(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e6
}

fn assert_identity(metrics: &Metrics) {
    let p = metrics.participants().count() as f64;
    let sum: f64 = metrics.participants().map(|r| r.compute_s + r.lost_s).sum();
    let expected = p * metrics.elapsed_s;
    assert!((sum - expected).abs() <= 1e-9 * expected, "{sum} is not {expected}");
    for rank in metrics.participants() {
        assert!((rank.elapsed_s + rank.outside_s - metrics.elapsed_s).abs() < 1e-9);
    }
}

fn call<'a>(metrics: &'a Metrics, name: &str) -> Option<&'a CallMetrics> {
    metrics.calls.iter().find(|call| call.function == name)
}

#[test]
fn whole_run_has_known_times() {
    let metrics = whole(&two_ranks());
    assert_eq!((ms(metrics.elapsed_s), ms(metrics.run_elapsed_s)), (100.0, 100.0));
    let [first, second] = &metrics.ranks[..] else { panic!() };
    let parts =
        |r: &RankMetrics| [r.compute_s, r.mpi_s, r.recorder_s, r.other_s, r.outside_s].map(ms);
    assert_eq!(parts(first), [58.0, 40.0, 2.0, 0.0, 0.0]);
    assert_eq!(parts(second), [60.0, 20.0, 0.0, 0.0, 20.0]);
    assert_eq!((ms(first.lost_s), ms(second.lost_s)), (42.0, 40.0));
    assert_eq!(first.top_calls.iter().map(|t| ms(t.1)).collect::<Vec<_>>(), [30.0, 10.0]);
    assert_eq!(first.state, RankState::Finalized);
    let efficiency = metrics.efficiency.unwrap();
    assert!((efficiency.parallel - 0.59).abs() < 1e-9);
    assert!((efficiency.load_balance.unwrap() - 59.0 / 60.0).abs() < 1e-9);
    assert!((efficiency.communication - 0.60).abs() < 1e-9);
    let product = efficiency.load_balance.unwrap() * efficiency.communication;
    assert!((product - efficiency.parallel).abs() < 1e-12);
    assert_identity(&metrics);
}

#[test]
fn counts_calls_including_init_and_finalize() {
    let metrics = whole(&two_ranks());
    let receive = call(&metrics, "MPI_Recv").unwrap();
    assert_eq!((receive.count, ms(receive.time_s), ms(receive.max_s)), (2, 30.0, 20.0));
    assert_eq!((receive.max_rank, ms(receive.mean_s()), receive.bytes), (1, 15.0, None));
    assert_eq!(call(&metrics, "MPI_Init").map(|c| c.count), Some(2));
    let finalize = call(&metrics, "MPI_Finalize").unwrap();
    assert_eq!(
        (finalize.count, ms(finalize.time_s)),
        (2, 40.0),
        "recorder time does not shorten it"
    );
    assert_eq!(metrics.calls.iter().map(|c| c.count).sum::<u64>(), 7);
    assert_eq!(metrics.ranks.iter().map(|r| r.events).collect::<Vec<_>>(), [4, 3]);
    assert_eq!(metrics.flops, None);
}

#[test]
fn a_window_in_seconds_clips_all_figures() {
    // 20 to 65 ms: rank 0 has 20 ms Send (begun before), 2 ms recorder, 5 ms Recv.
    let metrics = window(&two_ranks(), "0.020,0.065");
    assert_eq!(ms(metrics.elapsed_s), 45.0);
    let [first, second] = &metrics.ranks[..] else { panic!() };
    assert_eq!([first.compute_s, first.mpi_s, first.recorder_s].map(ms), [18.0, 25.0, 2.0]);
    assert_eq!([second.compute_s, second.mpi_s, second.outside_s].map(ms), [25.0, 20.0, 0.0]);
    assert!(call(&metrics, "MPI_Send").is_none(), "it began before the window");
    let receive = call(&metrics, "MPI_Recv").unwrap();
    assert_eq!((receive.count, ms(receive.time_s)), (2, 25.0));
    assert_identity(&metrics);
    // Rank 1 ended before: it takes part, but with no time.
    let metrics = window(&two_ranks(), "0.095,7");
    assert_eq!([ms(metrics.elapsed_s), ms(metrics.ranks[1].outside_s)], [5.0, 5.0]);
    assert_eq!(metrics.participants().count(), 2);
    assert_identity(&metrics);
}

#[test]
fn a_window_by_calls_lies_between_two_calls_of_each_rank() {
    let barriers = |number: u32, times: &[(u64, u64)]| {
        let mut rank = rank(number, 0, 100);
        for (begin, end) in times {
            rank.call(0, "MPI_Barrier", B + begin * MS, B + end * MS);
        }
        finish(rank, 100)
    };
    let ranks = [
        barriers(0, &[(5, 10), (20, 30), (50, 60), (80, 90)]),
        barriers(1, &[(8, 10), (25, 31), (40, 60), (70, 90)]),
    ];
    let metrics = window(&ranks, "MPI_Barrier#2,MPI_Barrier#4");
    let elapsed: Vec<_> = metrics.ranks.iter().map(|r| ms(r.elapsed_s)).collect();
    assert_eq!(elapsed, [50.0, 39.0]);
    assert_eq!(ms(metrics.elapsed_s), 50.0, "from the earliest begin to the latest end");
    assert_eq!(call(&metrics, "MPI_Barrier").unwrap().count, 2, "only the third of each rank");
    assert_eq!(metrics.ranks.iter().map(|r| ms(r.mpi_s)).collect::<Vec<_>>(), [10.0, 20.0]);
    assert_identity(&metrics);
    let mixed = window(&ranks, "MPI_Barrier#3,0.075");
    assert_eq!(mixed.ranks.iter().map(|r| ms(r.elapsed_s)).collect::<Vec<_>>(), [15.0, 15.0]);
}

#[test]
fn explains_unusable_bounds() {
    let error = |text: &str| {
        let selection = Selection::parse_window(text).unwrap();
        metrics_of(&two_ranks(), &selection).unwrap_err().to_string()
    };
    assert!(error("5,6").contains("from 0 to 0.100000 s"), "{}", error("5,6"));
    assert!(error("MPI_Nonsense#1,6").contains("no function is named \"MPI_Nonsense\""));
    assert!(error("MPI_Barrier#1,MPI_Barrier#2").contains("no rank makes these calls"));
    for text in
        ["", "1", "2,1", "1,1", "x,2", "MPI_Barrier#0,3", "#1,2", "nan,1", "MPI_Send#2,MPI_Send#2"]
    {
        assert!(Selection::parse_window(text).is_err(), "{text}");
    }
}

/// Ranks with region "solve" (id 7 on rank 0, 9 on rank 1) at the given times.
fn with_regions(times: [&[(u64, u64)]; 2]) -> Vec<SyntheticRank> {
    let of_rank = |(number, times): (u32, &[(u64, u64)])| {
        let id = 7 + 2 * number;
        let mut rank = rank(number, 0, 100);
        rank.region_name(id, "solve").region_name(1, "idle");
        for (begin, end) in times {
            rank.region_begin(0, id, B + begin * MS);
            rank.call(0, "MPI_Bcast", B + (begin + 1) * MS, B + (begin + 3) * MS);
            rank.region_end(0, id, B + end * MS);
        }
        finish(rank, 100)
    };
    (0..).zip(times).map(of_rank).collect()
}

#[test]
fn sums_occurrences_of_a_region_pairwise() {
    let ranks = with_regions([&[(10, 20), (40, 70)], &[(12, 24), (41, 66)]]);
    let metrics = region(&ranks, "solve");
    assert_eq!((ms(metrics.elapsed_s), metrics.occurrences), (14.0 + 30.0, Some(2)));
    let [first, second] = &metrics.ranks[..] else { panic!() };
    assert_eq!([first.elapsed_s, first.outside_s].map(ms), [40.0, 4.0]);
    assert_eq!([second.elapsed_s, second.outside_s].map(ms), [37.0, 7.0]);
    assert_eq!([first.mpi_s, first.compute_s].map(ms), [4.0, 36.0]);
    assert_eq!(ms(metrics.run_elapsed_s), 100.0);
    assert_identity(&metrics);
}

#[test]
fn unequal_occurrences_are_measured_from_first_to_last_with_a_note() {
    let metrics = region(&with_regions([&[(10, 20), (40, 70)], &[(12, 24)]]), "solve");
    assert_eq!((ms(metrics.elapsed_s), metrics.occurrences), (60.0, None));
    assert_eq!(metrics.ranks.iter().map(|r| ms(r.outside_s)).collect::<Vec<_>>(), [20.0, 48.0]);
    assert!(metrics.notes.contains(&Note::OccurrencesDiffer));
    assert_identity(&metrics);
}

#[test]
fn a_rank_that_never_enters_the_region_does_not_participate() {
    let metrics = region(&with_regions([&[(10, 20)], &[]]), "solve");
    assert_eq!(metrics.participants().map(|r| r.rank).collect::<Vec<_>>(), [0]);
    assert!((metrics.efficiency.unwrap().parallel - 0.8).abs() < 1e-9);
    let absent = Note::NotParticipating { ranks: 1, of: 2, first: 1 };
    assert_eq!(metrics.notes[0], absent);
    assert_identity(&metrics);
}

#[test]
fn recursive_regions_count_once_and_an_open_region_lasts_to_the_end() {
    let mut recursive = rank(0, 0, 100);
    recursive.region_name(1, "walk").region_name(2, "leaf");
    for (id, begins, at) in [
        (1, true, 10),
        (1, true, 20),
        (2, true, 25),
        (1, false, 30),
        (1, false, 50),
        (2, false, 60),
    ] {
        if begins {
            recursive.region_begin(0, id, B + at * MS);
        } else {
            recursive.region_end(0, id, B + at * MS);
        }
    }
    recursive.region_end(0, 1, B + 70 * MS).region_begin(0, 1, B + 90 * MS);
    let ranks = [finish(recursive, 100)];
    assert_eq!(ms(region(&ranks, "walk").elapsed_s), 40.0 + 10.0);
    assert_eq!(ms(region(&ranks, "leaf").elapsed_s), 35.0, "regions may overlap");
}

#[test]
fn an_unknown_region_is_an_error_that_lists_the_known_ones() {
    let error = |name: &str| {
        let ranks = with_regions([&[(10, 20)], &[(10, 20)]]);
        metrics_of(&ranks, &Selection::Region(name.into())).unwrap_err()
    };
    assert!(error("slove").to_string().ends_with("there are: idle, solve; did you mean solve?"));
    assert_eq!(error("idle"), SelectionError::EmptyRegion("idle".into()));
}

#[test]
fn blas_counts_compute_calls_and_their_operations() {
    let mut ranks = [rank(0, 0, 100), rank(1, 0, 100)];
    for (rank, end) in ranks.iter_mut().zip([70, 50]) {
        rank.header.compute = "blas".into();
        rank.compute("cblas_dgemm", B + 10 * MS, B + end * MS, 2e9, 3 << 33);
        rank.call(0, "MPI_Send", B + 80 * MS, B + 90 * MS);
    }
    let ranks = ranks.map(|rank| finish(rank, 100));
    let metrics = whole(&ranks);
    let first = &metrics.ranks[0];
    assert_eq!(metrics.compute, ComputeMode::Blas);
    assert_eq!([first.compute_s, first.mpi_s, first.other_s].map(ms), [60.0, 10.0, 30.0]);
    assert_eq!((first.flops, metrics.flops), (Some(2e9), Some(4e9)));
    let dgemm = call(&metrics, "cblas_dgemm").unwrap();
    assert_eq!((dgemm.count, dgemm.bytes), (2, Some(6 << 33)));
    assert_eq!(first.top_calls[0].0, "MPI_Send", "compute functions are not overhead");
    assert_identity(&metrics);
    // A call counts where it begins; its time is clipped.
    let tail = window(&ranks, "0.040,0.080");
    assert_eq!((tail.flops, ms(tail.ranks[0].compute_s)), (None, 30.0));
    assert_identity(&tail);
}

#[test]
fn diagnoses_and_ignores_impossible_operations() {
    let mut one = SyntheticRank::complete(0, 1, B, B + 100 * MS);
    one.compute("dgemm_", B + MS, B + 2 * MS, f64::NAN, 8);
    one.compute("dgemm_", B + 3 * MS, B + 4 * MS, -1.0, 8);
    one.compute("dgemm_", B + 5 * MS, B + 6 * MS, 7.0, 8);
    let metrics = whole(&[finish(one, 100)]);
    assert_eq!(metrics.flops, Some(7.0));
    assert_eq!(metrics.diagnoses[0].what.calls, 2);
}

#[test]
fn blas_mode_without_calls_has_no_balance_and_a_note() {
    let ranks = two_ranks().map(|mut rank| {
        rank.header.compute = "blas".into();
        rank
    });
    let metrics = whole(&ranks);
    let efficiency = metrics.efficiency.unwrap();
    assert_eq!((efficiency.parallel, efficiency.load_balance), (0.0, None));
    assert!(metrics.notes.contains(&Note::NoBlasSeen));
    assert_identity(&metrics);
}

#[test]
fn regions_as_computation_exclude_mpi_inside_them() {
    let mut ranks = with_regions([&[(10, 20), (40, 70)], &[(12, 24), (41, 66)]]);
    for rank in &mut ranks {
        rank.header.compute = "regions".into();
    }
    let metrics = whole(&ranks);
    let first = &metrics.ranks[0];
    assert_eq!([first.compute_s, first.mpi_s, first.other_s].map(ms), [36.0, 4.0, 60.0]);
    assert_identity(&metrics);
}

#[test]
fn several_threads_compute_for_the_union_of_their_useful_time() {
    let mut hybrid = SyntheticRank::complete(0, 1, B, B + 100 * MS);
    hybrid.call(0, "MPI_Barrier", B + 20 * MS, B + 80 * MS);
    // Useful from 10 to 30 and from 40 to 60 ms.
    hybrid.call(1, "MPI_Send", B + 10 * MS, B + 10 * MS);
    hybrid.call(1, "MPI_Send", B + 30 * MS, B + 40 * MS);
    hybrid.call(1, "MPI_Send", B + 60 * MS, B + 60 * MS);
    // Useful from 50 to 70 ms.
    hybrid.call(2, "MPI_Recv", B + 50 * MS, B + 50 * MS);
    hybrid.call(2, "MPI_Recv", B + 70 * MS, B + 75 * MS);
    let metrics = whole(&[finish(hybrid, 100)]);
    let rank = &metrics.ranks[0];
    // 0–30, 40–70 and 80–100 ms; the rest is in MPI.
    assert_eq!([rank.compute_s, rank.lost_s, rank.mpi_s].map(ms), [80.0, 20.0, 20.0]);
    assert_identity(&metrics);
    assert_eq!((rank.threads, rank.events), (3, 8));
    assert!(metrics.notes.contains(&Note::SeveralThreads));
}

#[test]
fn a_killed_rank_waits_until_the_job_ends_and_shows_its_position() {
    let [first, mut second] = two_ranks();
    second.threads[0].pop();
    second.threads[0].pop();
    second.open_call(0, "MPI_Recv", B + 62 * MS);
    second.killed();
    let metrics = whole(&[first, second]);
    let dead = &metrics.ranks[1];
    // 10 to 100 ms, when rank 0 ended: 20 ms are in the first MPI_Recv, 38 in the open one.
    assert_eq!([dead.elapsed_s, dead.compute_s, dead.mpi_s].map(ms), [90.0, 32.0, 58.0]);
    assert_eq!(ms(dead.outside_s), 10.0);
    let RankState::Unfinished { last_call, inside } = &dead.state else { panic!() };
    assert_eq!(last_call.as_deref(), Some("MPI_Recv"));
    let (function, since_s) = inside.as_ref().unwrap();
    assert_eq!((function.as_str(), ms(*since_s)), ("MPI_Recv", 62.0));
    assert_identity(&metrics);
}

#[test]
fn a_thread_stuck_in_mpi_while_others_continue_does_not_compute() {
    let mut stuck = SyntheticRank::complete(0, 1, B, B + 100 * MS);
    stuck.open_call(0, "MPI_Recv", B + 30 * MS);
    stuck.call(1, "MPI_Send", B + 50 * MS, B + 60 * MS);
    stuck.killed();
    let metrics = whole(&[stuck]);
    let rank = &metrics.ranks[0];
    assert_eq!([rank.elapsed_s, rank.compute_s, rank.mpi_s].map(ms), [60.0, 30.0, 30.0]);
}

#[test]
fn abandoned_calls_count_but_have_no_length() {
    let mut jumped = SyntheticRank::complete(0, 1, B, B + 100 * MS);
    jumped.abandoned_call(0, "MPI_Recv", B + 10 * MS);
    jumped.call(0, "MPI_Send", B + 40 * MS, B + 50 * MS);
    let metrics = whole(&[finish(jumped, 100)]);
    assert_eq!((metrics.ranks[0].abandoned, ms(metrics.ranks[0].mpi_s)), (1, 10.0));
    assert_eq!(call(&metrics, "MPI_Recv").map(|c| (c.count, ms(c.time_s))), Some((1, 0.0)));
}

#[test]
fn time_after_damage_does_not_count_as_computation() {
    let [first, mut second] = two_ranks();
    let bad = trace_format::layout::Slot { begin: 3, ..second.threads[0][1] };
    second.threads[0].insert(2, bad);
    let directory = RunDirectory::with_ranks(&[first, second]);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
    let cut = &metrics.ranks[1];
    assert_eq!(cut.ending, Ending::Damaged);
    // The event next to the damage is not trusted, so nothing of this rank is left.
    assert_eq!([cut.elapsed_s, cut.compute_s].map(ms), [0.0, 0.0]);
    assert_identity(&metrics);
}

#[test]
fn overlapping_calls_end_at_the_next_and_are_diagnosed() {
    let mut one = SyntheticRank::complete(0, 1, B, B + 100 * MS);
    one.call(0, "MPI_Send", B + 10 * MS, B + 60 * MS);
    one.call(0, "MPI_Recv", B + 20 * MS, B + 30 * MS);
    let directory = RunDirectory::with_ranks(&[finish(one, 100)]);
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.diagnoses[0].what, FileFault::Overlaps { thread: 0, calls: 1 });
    let metrics = Metrics::new(&run, &GlobalTimeline::new(&run), &Selection::Whole).unwrap();
    assert_eq!(ms(metrics.ranks[0].mpi_s), 20.0);
    assert_identity(&metrics);
}

#[test]
fn handles_long_calls_and_many_chunks() {
    let mut busy = SyntheticRank::complete(0, 1, B, B + 30_000 * MS);
    for index in 0..5000 {
        busy.call(0, "MPI_Send", B + index * 100, B + index * 100 + 40);
    }
    busy.call(0, "MPI_Recv", B + 10_000 * MS, B + 25_000 * MS);
    let metrics = whole(&[finish(busy, 30_000)]);
    let rank = &metrics.ranks[0];
    assert_eq!((rank.events, ms(rank.mpi_s)), (5003, 15_000.0 + 0.2));
    assert_identity(&metrics);
}

#[test]
fn reports_ranks_that_waited_for_cores() {
    let mut ranks = two_ranks();
    for rank in &mut ranks {
        rank.header.affinity = vec![3];
        rank.usage(Phase::Init, 1_000_000, 5);
    }
    ranks[0].thread_usage(0, Phase::Finalize, 30 * MS, 1_500_000, 6);
    ranks[1].thread_usage(0, Phase::Finalize, 60 * MS, 9 * MS, 25);
    let metrics = whole(&ranks);
    let waited: Vec<_> = metrics.ranks.iter().map(|r| r.off_cpu_s.map(ms)).collect();
    assert_eq!(waited, [Some(0.5), Some(8.0)]);
    assert_eq!(metrics.ranks[1].involuntary_switches, Some(20));
    let [few, one, slow] = &metrics.oversubscription[..] else {
        panic!("{:?}", metrics.oversubscription)
    };
    assert_eq!(*few, Oversubscription::FewCores { host: "n0".into(), ranks: 2, cores: 1 });
    assert!(matches!(one, Oversubscription::OneCore { core: 3, ranks, .. } if *ranks == [0, 1]));
    let Oversubscription::Waited { rank: 1, share, competitor: Competitor::Ranks } = slow else {
        panic!("{slow:?}")
    };
    assert!((share - 0.1).abs() < 1e-9, "{share}");
    assert_eq!(window(&ranks, "0,0.05").ranks[0].off_cpu_s, None, "known for the whole run only");
}

#[test]
fn distinguishes_what_occupied_the_cores() {
    let competitor =
        |ranks: &[SyntheticRank; 2]| match whole(ranks).oversubscription.into_iter().next() {
            Some(Oversubscription::Waited { competitor, .. }) => competitor,
            other => panic!("{other:?}"),
        };
    let add = |ranks: &mut [SyntheticRank; 2], thread: u32, on_cpu_ns: u64, run_queue_ns: u64| {
        for rank in ranks {
            if thread == 0 {
                rank.thread_usage(0, Phase::Init, 0, 0, 0);
            }
            rank.thread_usage(thread, Phase::Finalize, on_cpu_ns, run_queue_ns, 5);
        }
    };
    // Two ranks with cores of their own.
    let mut ranks = two_ranks();
    add(&mut ranks, 0, 40 * MS, 40 * MS);
    assert!(matches!(competitor(&ranks), Competitor::OtherPrograms(CoreUse { cores: 1, .. })));
    // Each has a second thread that calls no MPI and takes as much of the rank's core.
    add(&mut ranks, u32::MAX, 40 * MS, 40 * MS);
    let Competitor::Threads(CoreUse { used, cores: 1, threads: 2 }) = competitor(&ranks) else {
        panic!()
    };
    assert!((used - 0.8).abs() < 1e-9, "{used}");
    // The threads of both ranks hardly run: that many of them wait is not their own doing.
    let mut ranks = two_ranks();
    add(&mut ranks, 0, MS, 75 * MS);
    add(&mut ranks, u32::MAX, MS, 75 * MS);
    let Competitor::OtherPrograms(CoreUse { used, .. }) = competitor(&ranks) else { panic!() };
    assert!((used - 0.02).abs() < 1e-9, "{used}");
}

#[test]
fn threads_bound_to_fewer_cores_than_their_rank_compete() {
    const BOTH: &[u32] = &[0, 1];
    // One rank that might use two cores at its start, with threads that each ran and waited for so many ms of 100, and
    // the cores on which they may run in the end.
    let behind = |threads: &[(u64, u64, Option<&[u32]>)]| {
        let mut rank = SyntheticRank::complete(0, 1, B, B + 100 * MS);
        rank.header.affinity = BOTH.to_vec();
        rank.thread_usage(0, Phase::Init, 0, 0, 0);
        for ((ran, waited, cores), number) in threads.iter().zip(0..) {
            let thread = if number == 0 { 0 } else { u32::MAX - number };
            if let Some(cores) = cores {
                let thread_os_ids = vec![thread + 1];
                let cores = ThreadCores { cores: cores.to_vec(), thread_os_ids };
                rank.definitions.push(Definition::ThreadCores(cores));
            }
            rank.thread_usage(thread, Phase::Finalize, ran * MS, waited * MS, 5);
        }
        let metrics = whole(&[finish(rank, 100)]);
        let mut found = metrics.oversubscription.into_iter();
        let waited = found.find_map(|one| match one {
            Oversubscription::Waited { competitor, .. } => Some(competitor),
            _ => None,
        });
        let cores = |of: &CoreUse| (of.threads, of.cores);
        match waited.expect("it waited for a core") {
            Competitor::Threads(of) => ("threads", cores(&of)),
            Competitor::OtherPrograms(of) => ("others", cores(&of)),
            Competitor::Unknown(of) => ("unknown", cores(&of)),
            Competitor::Ranks => ("ranks", (0, 0)),
        }
    };
    let one: Option<&[u32]> = Some(&[0]);
    let other: Option<&[u32]> = Some(&[1]);
    let both = Some(BOTH);
    assert_eq!(behind(&[(50, 50, one), (50, 50, one)]), ("threads", (2, 1)));
    // With another program on the core, too, which cannot be told from a thread that waits.
    assert_eq!(behind(&[(33, 66, one), (33, 66, one)]), ("threads", (2, 1)));
    // They have a core each, or could have.
    assert_eq!(behind(&[(50, 50, one), (50, 50, other)]), ("others", (1, 1)));
    assert_eq!(behind(&[(50, 50, both), (50, 50, both)]), ("others", (2, 2)));
    // The second may have been on either core.
    assert_eq!(behind(&[(50, 50, one), (90, 10, both)]), ("unknown", (2, 1)));
    assert_eq!(behind(&[(66, 33, both), (66, 33, both), (66, 33, both)]), ("threads", (3, 2)));
    // Three threads, a part of the time.
    assert_eq!(behind(&[(40, 20, both), (20, 10, both), (20, 10, both)]), ("unknown", (3, 2)));
    // Readings that cannot be right.
    assert_eq!(behind(&[(98, 9, one)]), ("unknown", (1, 1)));
    // Recorded before the cores of threads were.
    assert_eq!(behind(&[(50, 50, None), (50, 50, None)]), ("unknown", (2, 2)));
    assert_eq!(behind(&[(50, 50, None), (1, 1, None)]).0, "others");
}

#[test]
fn ranks_that_share_cores_can_wait_behind_other_programs() {
    let waited_behind = |on_cpu_ns: u64| {
        let mut ranks = two_ranks();
        for rank in &mut ranks {
            rank.header.affinity = vec![3];
            rank.usage(Phase::Init, 0, 0);
            rank.thread_usage(0, Phase::Finalize, on_cpu_ns, 38 * MS, 5);
        }
        let mut found = whole(&ranks).oversubscription.into_iter();
        found.find_map(|one| match one {
            Oversubscription::Waited { competitor, .. } => Some(competitor),
            _ => None,
        })
    };
    assert_eq!(waited_behind(38 * MS), Some(Competitor::Ranks));
    assert!(matches!(waited_behind(MS), Some(Competitor::OtherPrograms(_))));
}

#[test]
fn a_first_thread_that_sleeps_while_others_wait_in_mpi_does_not_compute() {
    let mut rank = SyntheticRank::complete(0, 1, B, B + 100 * MS);
    // The first thread calls nothing between start and end. Another is in MPI_Barrier from 5 to
    // 95 ms, on a core all the time, and then ends.
    rank.call(1, "MPI_Barrier", B + 5 * MS, B + 95 * MS);
    rank.thread_usage(0, Phase::Init, 30 * MS, 0, 0).thread_usage(
        0,
        Phase::Finalize,
        32 * MS,
        MS,
        0,
    );
    rank.process_usage(Phase::Init, 31 * MS, 0).process_usage(Phase::Finalize, 123 * MS, 90 * MS);
    let rank = finish(rank, 100);
    let metrics = whole(std::slice::from_ref(&rank));
    let figures = &metrics.ranks[0];
    assert_eq!(ms(figures.compute_s), 100.0);
    let cpu_time = figures.cpu_time.unwrap();
    assert_eq!(ms(cpu_time.on_cpu_s), 92.0);
    // 2 ms of the first thread, and nothing of the other, which only made its call.
    assert_eq!([cpu_time.compute_on_cpu_s, cpu_time.asleep_s].map(ms), [2.0, 97.0]);
    assert_eq!((ms(cpu_time.slept_s), cpu_time.own_time(0.1)), (97.0, OwnTime::Asleep));
    // Threads that call nothing and have ended compute for the rank.
    let mut helped = rank.clone();
    helped.definitions.retain(|d| !matches!(d, Definition::ProcessUsage(_)));
    helped.process_usage(Phase::Init, 31 * MS, 0).process_usage(Phase::Finalize, 213 * MS, 90 * MS);
    let cpu_time = whole(&[helped]).ranks[0].cpu_time.unwrap();
    assert_eq!([cpu_time.compute_on_cpu_s, cpu_time.asleep_s].map(ms), [92.0, 7.0]);
}

#[test]
fn sleep_that_may_lie_in_mpi_is_known_as_a_whole_only() {
    // Of 100 ms, 60 in MPI. It ran for 62 ms and waited for a core for 2 ms, so it slept for 36 ms:
    // all of it outside MPI if the library polls, none of it if the library blocks.
    let mut rank = SyntheticRank::complete(0, 1, B, B + 100 * MS);
    rank.call(0, "MPI_Barrier", B + 20 * MS, B + 80 * MS);
    rank.thread_usage(0, Phase::Init, 0, 0, 0);
    rank.thread_usage(0, Phase::Finalize, 62 * MS, 2 * MS, 0);
    rank.process_usage(Phase::Init, 0, 0).process_usage(Phase::Finalize, 62 * MS, 0);
    let metrics = whole(&[finish(rank, 100)]);
    let figures = &metrics.ranks[0];
    let cpu_time = figures.cpu_time.unwrap();
    assert_eq!([figures.compute_s, cpu_time.asleep_s, cpu_time.slept_s].map(ms), [40.0, 0.0, 36.0]);
    assert_eq!(cpu_time.own_time(figures.compute_s), OwnTime::Unclear);
}

#[test]
fn waiting_for_cores_relates_to_the_time_between_readings() {
    let [mut first, second] = two_ranks();
    first.thread_usage(0, Phase::Init, 0, 0, 0).thread_usage(0, Phase::Finalize, 0, 50 * MS, 5);
    // Recording stopped after 5 ms; the readings are of begin and end.
    let reason = "no space left on device".to_owned();
    first.definitions.push(Definition::Stopped { ticks: B + 5 * MS, reason });
    first.threads[0].truncate(1);
    let directory = RunDirectory::with_ranks(&[first, second]);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
    let Oversubscription::Waited { rank: 0, share, .. } = metrics.oversubscription[0] else {
        panic!("{:?}", metrics.oversubscription)
    };
    assert!((share - 0.5).abs() < 1e-9, "{share}");
    assert_eq!(metrics.ranks[0].off_cpu_s, None, "read for more than the rank's stretch");
}

#[test]
fn a_rank_that_died_knows_its_lack_of_cores_up_to_its_last_reading() {
    let dead = || {
        let mut dead = rank(1, 0, 100);
        dead.call(0, "MPI_Send", B + 10 * MS, B + 20 * MS);
        dead.call(0, "MPI_Send", B + 95 * MS, B + 100 * MS);
        dead.usage(Phase::Init, 2 * MS, 0).process_usage(Phase::Init, 5 * MS, 0).killed();
        // A thread that called no MPI has ended.
        dead.thread_usage(u32::MAX, Phase::Finalize, 3 * MS, 0, 0);
        dead
    };
    let mut read = dead();
    read.usage_reading((Phase::Init, B), (5 * MS, 2 * MS), (100, 100));
    // The places of the last two take turns, so the latest may come first.
    read.usage_reading((Phase::During, B + 80 * MS), (25 * MS, 32 * MS), (300, 400));
    read.usage_reading((Phase::During, B + 40 * MS), (20 * MS, 7 * MS), (200, 200));
    let [other, _] = two_ranks();
    let metrics = whole(&[other.clone(), read]);
    let figures = &metrics.ranks[1];
    assert_eq!(figures.off_cpu_s.map(ms), Some(30.0));
    assert_eq!(figures.read_until_s.map(|at| ms(at - metrics.ranks[0].end_s)), Some(-20.0));
    // Of 85 ms outside MPI at most 20 read and 20 unread ones were on a core, 30 waited for one.
    let cpu_time = figures.cpu_time.unwrap();
    assert_eq!(
        [figures.compute_s, cpu_time.on_cpu_s, cpu_time.compute_on_cpu_s, cpu_time.asleep_s]
            .map(ms),
        [85.0, 20.0, 40.0, 15.0]
    );
    assert_eq!(figures.memory, Some(Memory { first_bytes: 100, last_bytes: 300, peak_bytes: 400 }));
    let Oversubscription::Waited { rank: 1, share, .. } = metrics.oversubscription[0] else {
        panic!("{:?}", metrics.oversubscription)
    };
    assert!((share - 30.0 / 80.0).abs() < 1e-9, "{share}");
    // Without readings, as in older traces, nothing is claimed.
    let metrics = whole(&[other, dead()]);
    let figures = &metrics.ranks[1];
    assert_eq!((figures.off_cpu_s, figures.cpu_time, figures.memory), (None, None, None));
}

#[test]
fn names_the_rank_whose_memory_grew_far_more_than_the_others() {
    let with = |growth_mib: [u64; 2]| {
        let mut ranks = two_ranks();
        for (rank, growth) in ranks.iter_mut().zip(growth_mib) {
            let last_bytes = (100 + growth) << 20;
            rank.usage_reading((Phase::Init, B), (0, 0), (100 << 20, 100 << 20));
            let at_end = (Phase::Finalize, B + 100 * MS);
            rank.usage_reading(at_end, (0, 0), (last_bytes, last_bytes + 1));
        }
        whole(&ranks).notes.into_iter().find_map(|note| match note {
            Note::MemoryGrew(of) => Some(of),
            _ => None,
        })
    };
    let grown = with([30, 900]).unwrap();
    assert_eq!((grown.rank, grown.others_bytes), (1, 30 << 20));
    assert_eq!(grown.memory.last_bytes, 1000 << 20);
    assert_eq!(with([800, 900]), None, "both grew");
    assert_eq!(with([0, 30]), None, "little");
}

#[test]
fn an_open_call_lasts_to_the_last_sign_of_life_of_the_job() {
    let [mut first, mut second] = two_ranks();
    for rank in [&mut first, &mut second] {
        rank.threads[0].truncate(2);
        rank.killed();
    }
    // Rank 0 returned from MPI_Send at 40 ms and then computes or is dead; rank 1 waits from 62 ms
    // on.
    second.open_call(0, "MPI_Recv", B + 62 * MS);
    let directory = RunDirectory::with_ranks(&[first, second]);
    let figures = || {
        let run = Run::open(directory.path()).unwrap();
        let timeline = GlobalTimeline::new(&run);
        let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
        assert_identity(&metrics);
        metrics
    };
    // The launcher's end is unknown: up to the last stamp of any rank.
    assert_eq!(ms(figures().elapsed_s), 62.0);
    let mut description = crate::trace::run_json::tests::example();
    let end_ns = 1_700_000_000_000_000_000 + B + 5000 * MS;
    description.end = Some(crate::trace::run_json::Instant::from_unix_ns(end_ns));
    description.write(directory.path()).unwrap();
    let metrics = figures();
    assert_eq!(ms(metrics.elapsed_s), 5000.0);
    let waits = &metrics.ranks[1];
    assert_eq!([waits.compute_s, waits.mpi_s].map(ms), [32.0, 20.0 + 4938.0]);
    assert_eq!(waits.ending, Ending::LastActivity);
    assert_eq!(call(&metrics, "MPI_Recv").map(|c| ms(c.max_s)), Some(4938.0));
    let dead = &metrics.ranks[0];
    assert_eq!((ms(dead.elapsed_s), dead.ending), (40.0, Ending::LastStamp));
    // The launcher's command started two jobs, so its end is not the end of this one.
    description.jobs = Some(2);
    description.write(directory.path()).unwrap();
    assert_eq!(ms(figures().elapsed_s), 62.0);
}

#[test]
fn an_open_call_of_a_second_thread_lasts_to_the_end() {
    let mut rank = SyntheticRank::complete(0, 1, B, B + 100 * MS);
    rank.call(0, "MPI_Send", B + 10 * MS, B + 20 * MS);
    rank.open_call(1, "MPI_Recv", B + 30 * MS);
    rank.call(2, "MPI_Send", B + 80 * MS, B + 90 * MS);
    rank.killed();
    let metrics = whole(&[rank]);
    assert_eq!(ms(metrics.ranks[0].by_thread[1].mpi_s), 60.0);
    assert_eq!(call(&metrics, "MPI_Recv").map(|c| ms(c.time_s)), Some(60.0));
}

#[test]
fn skewed_ranks_give_the_same_figures() {
    let [first, second] = two_ranks();
    let mut remote = second.clone();
    remote.header.host = "n1".into();
    let straight = whole(&[first.clone(), second]);
    let skewed = whole(&[first, remote.skewed(-40_000_000_000, 1.0 + 150e-6)]);
    for (a, b) in straight.ranks.iter().zip(&skewed.ranks) {
        for (a, b) in [(a.compute_s, b.compute_s), (a.mpi_s, b.mpi_s), (a.outside_s, b.outside_s)] {
            assert!((a - b).abs() < 10e-9, "{a} {b}");
        }
    }
    assert_identity(&skewed);
}

#[test]
fn tolerates_a_rank_without_begin_or_events() {
    let bare = SyntheticRank::new(1, 2);
    let [first, _] = two_ranks();
    let directory = RunDirectory::with_ranks(&[first, bare]);
    let run = Run::open(directory.path()).unwrap();
    let metrics = Metrics::new(&run, &GlobalTimeline::new(&run), &Selection::Whole).unwrap();
    assert_eq!(metrics.ranks.iter().map(|rank| rank.rank).collect::<Vec<_>>(), [0]);
    let nothing = whole(&[SyntheticRank::new(0, 1)]);
    assert!(nothing.efficiency.is_none());
}

#[test]
fn sums_lost_events() {
    let [mut first, second] = two_ranks();
    first.definitions.retain(|d| !matches!(d, Definition::Finalized { .. }));
    first.definitions.push(Definition::Finalized { lost_events: 41 });
    assert_eq!(whole(&[first, second]).lost_events, 41);
}

#[test]
fn every_poll_counts_and_only_time_inside_them_is_mpi() {
    let mut poller = SyntheticRank::complete(0, 1, B, B + 100 * MS);
    poller.header.compute = "blas".into();
    poller.polls("MPI_Iprobe", B + 10 * MS, B + 80 * MS, 1_750_000, 30 * MS);
    poller.compute("dgemm_", B + 20 * MS, B + 50 * MS, 1.0, 8);
    let metrics = whole(&[finish(poller, 100)]);
    let rank = &metrics.ranks[0];
    assert_eq!([rank.compute_s, rank.mpi_s, rank.other_s].map(ms), [30.0, 30.0, 40.0]);
    let probe = call(&metrics, "MPI_Iprobe").unwrap();
    assert_eq!((probe.count, ms(probe.time_s)), (1_750_000, 30.0));
    assert_identity(&metrics);
}

#[test]
fn alternating_polls_take_the_time_inside_all_of_them() {
    let mut poller = SyntheticRank::complete(0, 1, B, B + 100 * MS);
    poller.polls("MPI_Iprobe", B + 10 * MS, B + 79 * MS, 5000, 30 * MS);
    poller.polls("MPI_Testall", B + 11 * MS, B + 80 * MS, 5000, 20 * MS);
    let metrics = whole(&[finish(poller, 100)]);
    let rank = &metrics.ranks[0];
    assert_eq!([rank.compute_s, rank.mpi_s].map(ms), [50.0, 50.0]);
    let counts = ["MPI_Iprobe", "MPI_Testall"].map(|name| call(&metrics, name).unwrap().count);
    assert_eq!((counts, rank.polls.calls, rank.polls.runs), ([5000, 5000], 10_000, 2));
    assert_identity(&metrics);
}
