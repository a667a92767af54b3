//! Counters in known traces, with known values at known moments.

use trace_format::counters::{CounterEvent, SCALED, UNREADABLE};
use trace_format::header::{Counter, CounterReading, Definition, Phase};
use trace_format::markers::CounterSlot;

use super::exchanges::Exchanges;
use super::*;
use crate::analysis::Analysis;
use crate::models::roofline::Point;
use crate::synthetic_trace::{RunDirectory, SyntheticRank};

const MS: u64 = 1_000_000;
const B: u64 = 5_000_000 * MS;

fn counter(number: u32, name: &str) -> Counter {
    Counter {
        number,
        name: name.into(),
        events: vec![CounterEvent { kind: 4, config: 0x1f03, weight: 1 }],
        built_in: true,
        threads: 1,
        missed_threads: 0,
        unavailable: String::new(),
    }
}

/// One of two ranks, running from 0 to 100 ms. Its counters 0 (`flops`) and 1 (`other`) read 50 and
/// 7 at its start, and 1,050 and 8 at its end.
fn rank(number: u32) -> SyntheticRank {
    let mut rank = SyntheticRank::complete(number, 2, B, B + 100 * MS);
    let reading =
        |phase, ticks, values| Definition::CounterReading(CounterReading { phase, ticks, values });
    rank.definitions.extend([
        Definition::Counter(counter(0, "flops")),
        Definition::Counter(counter(1, "other")),
        reading(Phase::Init, B, vec![(0, 50, 0), (1, 7, 0)]),
        reading(Phase::Finalize, B + 100 * MS, vec![(0, 1050, 0), (1, 8, 0)]),
    ]);
    rank.region_name(0, "solve").region_name(1, "inner");
    rank
}

/// Marks like the recorder: both readings come before the start of a region at `at`, or after its
/// end.
fn mark(
    rank: &mut SyntheticRank,
    thread: usize,
    (region, begins): (u32, bool),
    at: u64,
    flops: u64,
) {
    let at = B + at * MS;
    let reading = |number, value| CounterSlot { number, value, state: 0 };
    if begins {
        rank.counter_reading(thread, reading(0, flops), at - 100, at);
        rank.counter_reading(thread, reading(1, 7), at, at);
        rank.region_begin(thread, region, at);
    } else {
        rank.region_end(thread, region, at);
        rank.counter_reading(thread, reading(0, flops), at, at);
        rank.counter_reading(thread, reading(1, 7), at, at + 100);
    }
}

/// Two occurrences of solve with 200 and 30 operations. The first contains another occurrence and
/// region inner, with 5 operations.
fn marked(number: u32) -> SyntheticRank {
    let mut rank = rank(number);
    for (region, begins, at, flops) in [
        (0, true, 10, 100),
        (0, true, 20, 110),
        (1, true, 22, 115),
        (1, false, 24, 120),
        (0, false, 30, 290),
        (0, false, 40, 300),
        (0, true, 60, 500),
        (0, false, 70, 530),
    ] {
        mark(&mut rank, 0, (region, begins), at, flops);
    }
    rank.compute("cblas_dgemm", B + 80 * MS, B + 81 * MS, 12.0, 96);
    rank.finalize(B + 100 * MS, B + 120 * MS);
    rank
}

fn measured(ranks: &[SyntheticRank], selection: &Selection) -> (Metrics, Exchanges) {
    let directory = RunDirectory::with_ranks(ranks);
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.diagnoses, []);
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, selection).unwrap();
    (metrics, Exchanges::for_selection(&Analysis::new(&run, &timeline), selection).unwrap())
}

fn region(name: &str) -> Selection {
    Selection::Region(name.into())
}

fn values(metrics: &Metrics, counter: usize) -> Vec<f64> {
    let counts = metrics.counters[counter].ranks.iter();
    counts.map(|one| one.count.as_ref().unwrap().value).collect()
}

#[test]
fn sums_outermost_occurrences() {
    let ranks = [marked(0), marked(1)];
    for (selection, each) in
        [(region("solve"), 230.0), (region("inner"), 5.0), (Selection::Whole, 1000.0)]
    {
        let (metrics, _) = measured(&ranks, &selection);
        assert_eq!(values(&metrics, 0), [each, each], "{selection:?}");
        assert_eq!(metrics.counters[0].total(), Some(2.0 * each));
        assert_eq!(metrics.counters[0].events, "raw 0x1f03");
    }
    let (metrics, _) = measured(&ranks, &Selection::Whole);
    assert_eq!((values(&metrics, 1), metrics.counters[1].name.as_str()), (vec![1.0, 1.0], "other"));
    // Reading counters is time of the recorder, not of the region.
    let (metrics, _) = measured(&ranks, &region("inner"));
    assert!((metrics.elapsed_s - 2e-3).abs() < 1e-12);
    assert_eq!(metrics.ranks[0].recorder_s, 0.0);
}

#[test]
fn overlapping_occurrences_of_threads_count_once() {
    let mut first = rank(0);
    mark(&mut first, 0, (0, true), 10, 100);
    mark(&mut first, 0, (0, false), 30, 400);
    mark(&mut first, 1, (0, true), 20, 250);
    mark(&mut first, 1, (0, false), 40, 600);
    first.finalize(B + 100 * MS, B + 120 * MS);
    let (metrics, _) = measured(&[first, marked(1)], &region("solve"));
    assert_eq!(values(&metrics, 0), [500.0, 230.0]);
}

#[test]
fn a_killed_rank_counts_to_its_last_reading_and_has_no_sum() {
    let mut killed = marked(1);
    killed.killed();
    killed.definitions.retain(|definition| {
        !matches!(definition, Definition::CounterReading(one) if one.phase == Phase::Finalize)
    });
    let (metrics, _) = measured(&[marked(0), killed], &Selection::Whole);
    let count = metrics.counters[0].ranks[1].count.as_ref().unwrap();
    // 530 at 70 ms, less 50 at the start.
    assert_eq!(count.value, 480.0);
    assert!((count.until_s.unwrap() - 0.0700001).abs() < 1e-6, "{count:?}");
    assert_eq!(metrics.counters[0].total(), None);
    assert_eq!(metrics.counters[0].sum(|rank| rank == 0), Some(1000.0));
}

#[test]
fn counts_are_unknown_without_readings() {
    let ranks = [marked(0), marked(1)];
    let (metrics, _) = measured(&ranks, &Selection::parse_window("0.015,0.05").unwrap());
    let why = metrics.counters[0].ranks[0].count.as_ref().unwrap_err();
    assert_eq!(*why, NoCount::NotReadAtBegin);
    // A window from the start of the rank still lacks a reading at its end.
    let (metrics, _) = measured(&ranks, &Selection::parse_window("0,0.05").unwrap());
    let why = metrics.counters[0].ranks[0].count.as_ref().unwrap_err();
    assert_eq!(*why, NoCount::NotReadAtEnd);
    let mut unreadable = marked(1);
    for definition in &mut unreadable.definitions {
        if let Definition::CounterReading(reading) = definition {
            reading.values[0].2 = UNREADABLE;
            reading.values[1].2 = SCALED;
        }
    }
    let (metrics, _) = measured(&[marked(0), unreadable], &Selection::Whole);
    assert!(metrics.counters[0].ranks[1].count.is_err());
    assert_eq!((metrics.counters[0].is_scaled(), metrics.counters[1].is_scaled()), (false, true));
}

#[test]
fn points_use_counted_operations_only_if_all_ranks_were_read() {
    let ranks = [marked(0), marked(1)];
    let point = |ranks: &[SyntheticRank], selection: &Selection| {
        Point::from_exchanges("p", &measured(ranks, selection).1).remove(0)
    };
    let whole = point(&ranks, &Selection::Whole);
    assert_eq!((whole.flops, whole.flops_counted), (Some(2000.0), true));
    // Seen operations are kept separately, not added.
    assert_eq!((whole.seen_flops, whole.operand_bytes), (Some(24.0), Some(192.0)));
    assert_eq!(point(&ranks, &region("solve")).seen_flops, None);
    let mut unavailable = marked(1);
    for definition in &mut unavailable.definitions {
        if let Definition::Counter(counter) = definition {
            counter.unavailable = "this machine has no such event".into();
        }
    }
    unavailable.header.host = "n1".into();
    unavailable.header.boot_id = "boot-n1".into();
    let mixed = [marked(0), unavailable];
    let whole = point(&mixed, &Selection::Whole);
    assert_eq!((whole.flops, whole.flops_counted), (Some(24.0), false));
    // By itself, the host that was read has its count.
    let hosts = Point::from_exchanges("p", &measured(&mixed, &Selection::Whole).1);
    let each: Vec<_> = hosts.iter().map(|point| (point.flops, point.flops_counted)).collect();
    assert_eq!(each, [(Some(24.0), false), (Some(1000.0), true), (Some(12.0), false)]);
    let (metrics, _) = measured(&mixed, &Selection::Whole);
    let sentences = crate::present::counter_sentences(&metrics.counters[0]);
    assert_eq!(sentences, ["flops: not available on n1 (rank 1): this machine has no such event"]);
}
