use trace_format::markers::ToolReason;
use trace_format::totals::{ANY_CLASS, HISTOGRAM_BINS, SnapshotHeader, TotalsEntry};

use crate::metrics::Selection;
use crate::metrics::figures::Metrics;
use crate::synthetic_trace::{RunDirectory, SyntheticRank};

use super::detail::{Budget, Detail, PAGE_BUDGET};
use super::*;

const US: u64 = 1_000;
const B: u64 = 5_000_000_000;

fn ranks() -> Vec<SyntheticRank> {
    let rank = |number: u32| {
        let mut rank = SyntheticRank::complete(number, 2, B, B + 1000 * US);
        rank.region_name(1, "solve");
        rank.region_begin(0, 1, B + 10 * US);
        rank.call(0, "MPI_Send", B + 100 * US, B + 130 * US);
        rank.polls("MPI_Iprobe", B + 200 * US, B + 300 * US, 7, 40 * US);
        rank.compute("cblas_dgemm", B + 310 * US, B + 400 * US, 1e6, 8);
        rank.tool(0, ToolReason::Window, B + 410 * US, B + 420 * US);
        rank.call(0, "MPI_Recv", B + 510 * US, B + 510 * US + 1);
        rank.call(0, "MPI_Barrier", B + (600 + 50 * u64::from(number)) * US, B + 800 * US);
        rank.region_end(0, 1, B + 850 * US);
        rank.call(1, "MPI_Wait", B + 250 * US, B + 700 * US);
        rank.finalize(B + 1000 * US, B + 1010 * US);
        rank
    };
    vec![rank(0), rank(1)]
}

fn with_run<T>(ranks: &[SyntheticRank], f: impl FnOnce(&Run, &GlobalTimeline) -> T) -> T {
    let directory = RunDirectory::with_ranks(ranks);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    f(&run, &timeline)
}

#[test]
fn bins_contain_all_time_and_agree_with_the_metrics() {
    with_run(&ranks(), |run, timeline| {
        let metrics = Metrics::new(run, timeline, &Selection::Whole).unwrap();
        for bins in [1, 7, 1000] {
            let activity = Activity::new(run, timeline, bins);
            assert_eq!(activity.rows.len(), 4);
            for row in &activity.rows {
                let length = row.end_s - row.begin_s;
                let totals: f64 = row.totals_s.iter().sum();
                assert!((totals - length).abs() < 1e-12, "{totals} {length}");
                for kind in 0..KINDS {
                    let sum: f64 = row.bins.iter().map(|bin| f64::from(bin[kind])).sum();
                    assert!((sum - row.totals_s[kind]).abs() < 1e-9, "{bins} {kind}");
                }
            }
            for row in activity.rows.iter().filter(|row| row.thread == 0) {
                let threads = &metrics.ranks[row.position].by_thread;
                let figures = threads.iter().find(|thread| thread.number == 0).unwrap();
                let mpi: f64 = Kind::ALL
                    .iter()
                    .filter(|k| k.is_mpi())
                    .map(|k| row.totals_s[*k as usize])
                    .sum();
                assert!((mpi - figures.mpi_s).abs() < 1e-12);
                assert!((row.totals_s[Kind::Tool as usize] - figures.recorder_s).abs() < 1e-12);
            }
        }
    });
}

#[test]
fn even_the_shortest_call_shows_in_its_bin() {
    with_run(&ranks(), |run, timeline| {
        let activity = Activity::new(run, timeline, 10);
        let received = activity.rows[0].bins[5][Kind::Receive as usize];
        assert!(received > 0.0 && received < 2e-9, "a call of 1 ns: {received}");
        assert_eq!(activity.durations.counts[1][Kind::Receive as usize], 2);
        assert_eq!(activity.longest[0].kind, Kind::Wait);
        assert_eq!((activity.longest[0].row, activity.rows[1].thread), (1, 1));
    });
}

#[test]
fn a_small_run_is_shown_in_full() {
    with_run(&ranks(), |run, timeline| {
        let activity = Activity::new(run, timeline, 10);
        let detail = Detail::new(run, timeline, &activity, &[], PAGE_BUDGET);
        assert_eq!(detail.windows.len(), 1);
        // Send, polls, compute, recorder, receive, barrier, finalize; wait. MPI_Init lies before 0.
        assert_eq!(detail.events.len(), 16);
        assert_eq!(detail.regions.len(), 2);
        assert!((detail.regions[0].seconds.end - 850e-6).abs() < 1e-9);
    });
}

#[test]
fn a_large_run_is_shown_around_its_longest_waits() {
    let mut rank = SyntheticRank::complete(0, 1, B, B + 10_000_000);
    for call in 0..2000 {
        rank.call(0, "MPI_Send", B + call * 4000, B + call * 4000 + 100);
    }
    rank.call(0, "MPI_Recv", B + 8_000_000, B + 8_900_000);
    rank.call(0, "MPI_Send", B + 8_900_100, B + 8_900_200);
    rank.finalize(B + 10_000_000, B + 10_000_010);
    with_run(&[rank], |run, timeline| {
        let activity = Activity::new(run, timeline, 100);
        let budget = Budget { events: 300, messages: 10, regions: 10 };
        let detail = Detail::new(run, timeline, &activity, &[], budget);
        assert!(
            !detail.windows.is_empty() && detail.events.len() <= 303,
            "{}",
            detail.events.len()
        );
        assert!(detail.windows.iter().any(|w| w.contains(&8.9e-3)), "{:?}", detail.windows);
        let requested = Detail::new(run, timeline, &activity, &[1e-3..2e-3], budget);
        assert_eq!(requested.windows, [1e-3..2e-3]);
        assert_eq!(requested.events.len(), 251);
    });
}

/// A rank of 1000 µs whose calls are kept only as totals: 300 µs in MPI_Barrier, 100 in MPI_Send,
/// 20 in the recorder, 580 in its own code.
fn rank_with_totals() -> SyntheticRank {
    let mut rank = SyntheticRank::complete(0, 1, B, B + 1000 * US);
    let header = SnapshotHeader {
        begin_ticks: B,
        end_ticks: B + 1000 * US,
        calls: 8,
        mpi_ticks: 400 * US,
        tool_ticks: 20 * US,
        own_ticks: 580 * US,
        ..SnapshotHeader::default()
    };
    let entry = |name: &str, ticks: u64| TotalsEntry {
        function: crate::synthetic_trace::number_of(name),
        peer_class: ANY_CLASS,
        size_class: ANY_CLASS,
        detail: 0,
        count: 4,
        ticks,
        min_ticks: ticks / 4,
        max_ticks: ticks / 4,
        sent: 0,
        received: 0,
        work: 0,
        histogram: [0; HISTOGRAM_BINS],
    };
    let calls = [("MPI_Barrier", 300), ("MPI_Send", 100), ("MPI_Finalize", 10)];
    rank.totals = Some((header, calls.map(|(name, us)| entry(name, us * US)).to_vec()));
    rank
}

#[test]
fn totals_are_drawn_evenly_and_by_kind() {
    with_run(&[rank_with_totals()], |run, timeline| {
        assert_eq!(run.diagnoses, []);
        let activity = Activity::new(run, timeline, 10);
        let row = &activity.rows[0];
        let us = |kind: Kind| (row.totals_s[kind as usize] * 1e6).round();
        assert_eq!(
            [Kind::Collective, Kind::Send, Kind::Tool, Kind::Own].map(us),
            [300.0, 100.0, 20.0, 580.0]
        );
        for bin in &row.bins {
            assert!((f64::from(bin[Kind::Collective as usize]) - 30e-6).abs() < 1e-9, "{bin:?}");
            assert!((f64::from(bin[Kind::Own as usize]) - 58e-6).abs() < 1e-9, "{bin:?}");
        }
        assert!(
            activity
                .summed_s
                .is_some_and(|(from, to)| from.abs() < 1e-9 && (to - 1e-3).abs() < 1e-9)
        );
        // The index gives the same for any stretch.
        let index = index::ActivityIndex::new(run, timeline, &std::sync::atomic::AtomicU64::new(0));
        let reader = index::IndexReader { run, timeline, index: &index };
        for shares in
            reader.shares(0, 0.0, 1e-3, 10).into_iter().chain(reader.shares(0, 4e-4, 5e-4, 4))
        {
            let share = |kind: Kind| f64::from(shares[kind as usize]);
            assert!((share(Kind::Collective) - 0.3).abs() < 1e-3, "{shares:?}");
            assert!((share(Kind::Send) - 0.1).abs() < 1e-3, "{shares:?}");
            assert!((share(Kind::Own) - 0.58).abs() < 1e-3, "{shares:?}");
        }
        let strip = crate::present::text_timeline::TextTimeline {
            seconds: 0.0..1e-3,
            rows: vec![0],
            columns: 40,
            colour: false,
        };
        let text = crate::present::text_timeline::text(run, &activity, &strip);
        assert!(text.contains("c collective"), "{text}");
        assert!(text.contains("kept as totals: there is no timeline"), "{text}");
        let row = text.lines().nth(1).unwrap();
        let share = |letter: char| row.chars().filter(|c| *c == letter).count() as f64 / 35.0;
        assert!((share('c') - 0.3).abs() < 0.05 && (share('s') - 0.1).abs() < 0.05, "{text}");
        assert!(share('t') < 0.05, "{text}");
    });
}
