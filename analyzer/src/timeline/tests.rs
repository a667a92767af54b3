use super::*;
use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use trace_format::header::{Definition, Phase};

const MS: u64 = 1_000_000;

/// Ranks last from 100 ms to 1100 ms after this reading of a 1 GHz counter.
const BASE: u64 = 7_000_000 * MS;

fn complete(rank: u32, size: u32) -> SyntheticRank {
    let mut rank = SyntheticRank::complete(rank, size, BASE + 100 * MS, BASE + 1100 * MS);
    rank.finalize(BASE + 1100 * MS, BASE + 1101 * MS);
    rank
}

fn timeline_of(ranks: &[SyntheticRank]) -> GlobalTimeline {
    let directory = RunDirectory::with_ranks(ranks);
    GlobalTimeline::new(&Run::open(directory.path()).unwrap())
}

/// `tolerance_ns` allows for exchanges being rounded to whole ticks.
fn assert_near_ns(seconds: f64, expected_s: f64, tolerance_ns: f64) {
    let difference_ns = (seconds - expected_s) * 1e9;
    assert!(
        difference_ns.abs() <= tolerance_ns,
        "{seconds} is {difference_ns} ns off {expected_s}"
    );
}

/// Gives the child, on another host, exchanges at which both counters agree; tests skew them
/// afterwards.
fn two_hosts(mut child: SyntheticRank, parent: u32) -> SyntheticRank {
    child.definitions.retain(|d| !matches!(d, Definition::ClockExchange(_)));
    for (phase, at) in [(Phase::Init, 99 * MS), (Phase::Finalize, 1102 * MS)] {
        child.exchange(phase, parent, BASE + at, BASE + at);
    }
    child
}

#[test]
fn ranks_that_share_a_counter_are_mapped_to_themselves() {
    let mut late = complete(1, 2);
    late.definitions.retain(|d| !matches!(d, Definition::RankBegin { .. }));
    late.definitions.insert(0, Definition::RankBegin { ticks: BASE + 350 * MS });
    let timeline = timeline_of(&[complete(0, 2), late]);
    assert_near_ns(timeline.ranks[0].begin_s(), 0.0, 0.0);
    assert_near_ns(timeline.ranks[1].begin_s(), 0.25, 0.001);
    assert_near_ns(timeline.ranks[1].end_s(), 1.0, 0.001);
    assert_eq!(timeline.ranks[0].clock.alignment, Alignment::Reference);
    assert_eq!(timeline.ranks[1].clock.alignment, Alignment::SharedCounter);
    assert_eq!(timeline.ranks[1].clock.bound_ns.map(f64::round), Some(10.0));
    assert!(timeline.aligned && timeline.diagnoses.is_empty() && timeline.notes.is_empty());
}

#[test]
fn skewed_counters_are_recovered_with_their_sign() {
    for (offset, rate) in [(5_000_000_000, 1.0), (-3_000_000_000, 1.0 - 80e-6), (123, 1.0 + 200e-6)]
    {
        let skewed = two_hosts(complete(1, 2), 0).skewed(offset, rate);
        let timeline = timeline_of(&[complete(0, 2), skewed.clone()]);
        let clock = &timeline.ranks[1].clock;
        assert_eq!(clock.alignment, Alignment::Measured, "{offset} {rate}");
        assert_near_ns(timeline.ranks[1].begin_s(), 0.0, 3.0);
        assert_near_ns(timeline.ranks[1].end_s(), 1.0, 3.0);
        // A moment in the middle, by the skew's own formula.
        let middle = ((BASE + 600 * MS) as f64 * rate).round() as u64;
        assert_near_ns(clock.seconds(middle.wrapping_add_signed(offset)), 0.5, 3.0);
    }
}

#[test]
fn hops_and_their_bounds_add_up_along_the_parents() {
    let middle = two_hosts(complete(1, 3), 0).skewed(9_000_000_000, 1.0 + 50e-6);
    let mut leaf = two_hosts(complete(2, 3), 1);
    // The leaf's parent readings come from rank 1's skewed counter.
    for definition in &mut leaf.definitions {
        if let Definition::ClockExchange(exchange) = definition {
            let ticks = (exchange.parent_ticks as f64 * (1.0 + 50e-6)).round() as u64;
            exchange.parent_ticks = ticks + 9_000_000_000;
        }
    }
    let leaf = leaf.skewed(-2_000_000_000, 1.0 - 30e-6);
    let timeline = timeline_of(&[complete(0, 3), middle, leaf]);
    assert_near_ns(timeline.ranks[2].begin_s(), 0.0, 6.0);
    assert_near_ns(timeline.ranks[2].end_s(), 1.0, 6.0);
    // The begin is next to the exchanges; half a second from them, each hop adds 0.1 ppm.
    let bound_ns = |rank: &RankTime| rank.clock.bound_ns_at(rank.begin_ticks).unwrap().round();
    assert_eq!(timeline.ranks.iter().map(bound_ns).collect::<Vec<_>>(), [0.0, 10.0, 20.0]);
    assert_eq!(timeline.bound_ns.map(f64::round), Some(120.0));
}

#[test]
fn one_exchange_gives_the_offset_and_the_frequencies_give_the_rate() {
    let mut child = two_hosts(complete(1, 2), 0);
    child
        .definitions
        .retain(|d| !matches!(d, Definition::ClockExchange(e) if e.phase == Phase::Finalize));
    let child = child.skewed(4_000_000_000, 1.0 + 100e-6);
    let timeline = timeline_of(&[complete(0, 2), child]);
    let rank = &timeline.ranks[1];
    assert_eq!(rank.clock.alignment, Alignment::Measured);
    assert_near_ns(rank.end_s(), 1.0, 100.0);
    let bound_ns = rank.clock.bound_ns.unwrap();
    assert!(bound_ns > 10.0, "the drift that was not measured is in the bound: {bound_ns}");
}

#[test]
fn exchange_overrides_the_assumption_of_one_counter_per_host() {
    let mut child = two_hosts(complete(1, 2), 0).skewed(777_000, 1.0);
    for definition in &mut child.definitions {
        if let Definition::ClockExchange(exchange) = definition {
            exchange.same_host = true;
        }
    }
    let timeline = timeline_of(&[complete(0, 2), child]);
    assert_eq!(timeline.ranks[1].clock.alignment, Alignment::Measured);
    assert_near_ns(timeline.ranks[1].begin_s(), 0.0, 2.0);
}

#[test]
fn unmeasured_rank_uses_host_clock() {
    let without = |rank: u32| {
        let mut rank = complete(rank, 3);
        rank.definitions.retain(|d| !matches!(d, Definition::ClockExchange(_)));
        rank
    };
    let mut stranger = without(2);
    (stranger.header.host, stranger.header.boot_id) = ("n1".into(), "boot-n1".into());
    let timeline = timeline_of(&[complete(0, 3), without(1), stranger]);
    let alignments: Vec<_> = timeline.ranks.iter().map(|r| r.clock.alignment).collect();
    use Alignment::*;
    assert_eq!(alignments, [Reference, AssumedShared, Unaligned]);
    assert!(!timeline.aligned && timeline.notes.len() == 2, "{:?}", timeline.notes);
    assert_eq!(timeline.ranks[2].clock.bound_ns, None);
    // The wall clocks of the synthetic ranks agree.
    assert_near_ns(timeline.ranks[2].begin_s(), 0.0, 1_000.0);
}

#[test]
fn unusable_exchanges_are_diagnosed_and_ignored() {
    let absurd: [fn(&mut SyntheticRank); 3] = [
        |rank| {
            rank.exchange(Phase::Init, 0, 0, 0);
        },
        |rank| {
            rank.exchange(Phase::Init, 0, BASE + 99 * MS, BASE + 500 * MS);
            rank.exchange(Phase::Finalize, 0, BASE + 1102 * MS, BASE + 400 * MS);
        },
        |rank| {
            rank.exchange(Phase::Init, 0, BASE + 99 * MS, BASE + 500 * MS);
            rank.exchange(Phase::Finalize, 0, BASE + 1102 * MS, BASE + 3000 * MS);
        },
    ];
    for set in absurd {
        let mut rank = complete(1, 2);
        rank.definitions.retain(|d| !matches!(d, Definition::ClockExchange(_)));
        set(&mut rank);
        let timeline = timeline_of(&[complete(0, 2), rank]);
        assert_eq!(timeline.ranks[1].clock.alignment, Alignment::AssumedShared);
        assert!(timeline.diagnoses[0].file.ends_with("rank-000001.gmc"));
    }
}

#[test]
fn ranks_whose_parents_form_a_loop_have_no_clock() {
    let looped = |rank: u32, parent: u32| {
        let mut rank = two_hosts(complete(rank, 3), parent).skewed(50_000, 1.0);
        rank.header.counter_invariant = false;
        rank
    };
    let timeline = timeline_of(&[complete(0, 3), looped(1, 2), looped(2, 1)]);
    assert_eq!(timeline.ranks[1].clock.alignment, Alignment::Unaligned);
    assert_eq!(timeline.ranks[2].clock.alignment, Alignment::Unaligned);
}

#[test]
fn without_rank_0_its_counter_is_still_the_common_reference() {
    let timeline = timeline_of(&[
        two_hosts(complete(1, 3), 0).skewed(1_000_000, 1.0 + 40e-6),
        two_hosts(complete(2, 3), 0).skewed(-1_000_000, 1.0 - 40e-6),
    ]);
    assert!(timeline.aligned);
    assert_near_ns(timeline.ranks[0].begin_s(), timeline.ranks[1].begin_s(), 6.0);
    assert_near_ns(timeline.ranks[0].end_s(), timeline.ranks[1].end_s(), 6.0);
    assert_near_ns(timeline.ranks[0].end_s(), 1.0, 1_000.0);
}

#[test]
fn the_frequency_is_that_of_the_longest_baseline() {
    let mut short = complete(1, 2);
    short.killed();
    short.definitions.retain(|d| !matches!(d, Definition::ClockAnchor(_)));
    short.anchor(BASE + 100 * MS, 1e9, 3).anchor(BASE + 100 * MS + 300, 1e9, 453);
    let timeline = timeline_of(&[complete(0, 2), short]);
    assert_eq!(timeline.ranks[1].frequency.basis, FrequencyBasis::HostMate);
    assert!((timeline.ranks[1].frequency.ticks_per_s / 1e9 - 1.0).abs() < 1e-6);
    assert_eq!(timeline.ranks[0].frequency.basis, FrequencyBasis::Measured);
}

#[test]
fn single_anchor_gives_an_estimate_with_a_note() {
    let mut rank = complete(0, 1);
    rank.definitions.retain(|d| !matches!(d, Definition::ClockAnchor(_)));
    rank.anchor(3_000_000, 3e9, 1_000_000);
    let timeline = timeline_of(&[rank]);
    assert_eq!(timeline.ranks[0].frequency.basis, FrequencyBasis::SinceBoot);
    assert!((timeline.ranks[0].frequency.ticks_per_s / 3e9 - 1.0).abs() < 1e-9);
    assert!(matches!(timeline.notes[0], TimeNote::GuessedFrequency(_)));
}

#[test]
fn ending_tells_why_a_rank_ended() {
    let end_of = |rank: &SyntheticRank| {
        let timeline = timeline_of(std::slice::from_ref(rank));
        (timeline.ranks[0].end_ticks - BASE, timeline.ranks[0].ending)
    };
    assert_eq!(end_of(&complete(0, 1)), (1100 * MS, Ending::Finalize));

    let mut killed = SyntheticRank::complete(0, 1, BASE + 100 * MS, BASE + 1100 * MS);
    killed.call(0, "MPI_Send", BASE + 200 * MS, BASE + 300 * MS).killed();
    assert_eq!(end_of(&killed), (300 * MS, Ending::LastStamp));
    killed.open_call(0, "MPI_Recv", BASE + 400 * MS);
    assert_eq!(end_of(&killed), (400 * MS, Ending::LastActivity));

    let mut stopped = killed.clone();
    let reason = "no space left on device".to_owned();
    stopped.definitions.push(Definition::Stopped { ticks: BASE + 450 * MS, reason });
    assert_eq!(end_of(&stopped), (450 * MS, Ending::Stopped));

    // MPI_Finalize was entered, but the events before it are missing.
    let mut cut = SyntheticRank::complete(0, 1, BASE + 100 * MS, BASE + 1100 * MS);
    cut.call(0, "MPI_Send", BASE + 200 * MS, BASE + 300 * MS);
    assert_eq!(end_of(&cut), (300 * MS, Ending::Damaged));
}

/// Adds an exchange during the run, before the one at finalize. The child's counter is ahead by
/// `offset`.
fn during(child: &mut SyntheticRank, parent: u32, at: u64, offset: i64) {
    let exchange = child
        .definitions
        .iter()
        .position(|d| matches!(d, Definition::ClockExchange(e) if e.phase == Phase::Finalize));
    let last = child.definitions.remove(exchange.unwrap());
    child.exchange(Phase::During, parent, (BASE + at).wrapping_add_signed(offset), BASE + at);
    child.definitions.push(last);
}

#[test]
fn exchanges_during_the_run_follow_a_rate_that_changes() {
    // 300 µs ahead half-way and equal at both ends: a straight line would be 300 µs off in the
    // middle.
    let mut child = two_hosts(complete(1, 2), 0);
    during(&mut child, 0, 600 * MS, 300_000);
    for definition in &mut child.definitions {
        if let Definition::ClockExchange(exchange) = definition {
            exchange.same_host = false;
        }
    }
    let timeline = timeline_of(&[complete(0, 2), child]);
    let clock = &timeline.ranks[1].clock;
    assert_eq!(clock.alignment, Alignment::Measured);
    // Relative to rank 0's begin: the child's own begin is earlier, as its clock is slightly ahead
    // by then.
    let since_begin = |ticks: u64| clock.seconds(ticks) - timeline.ranks[0].begin_s();
    assert_near_ns(since_begin(BASE + 600 * MS + 300_000), 0.5, 3.0);
    assert_near_ns(since_begin(BASE + 1102 * MS), 1.002, 3.0);
    // Half-way between the exchanges at 99 ms and at 600 ms.
    assert_near_ns(since_begin(BASE + 349_500_000 + 150_000), 0.2495, 3.0);
    assert_eq!(clock.bound_ns_at(BASE + 600 * MS + 300_000).map(f64::round), Some(10.0));
}

#[test]
fn bound_widens_towards_the_middle_by_the_wander() {
    let child = two_hosts(complete(1, 2), 0).skewed(5_000_000_000, 1.0 + 20e-6);
    let timeline = timeline_of(&[complete(0, 2), child]);
    let clock = &timeline.ranks[1].clock;
    let at_s = |seconds: f64| clock.bound_ns_at(clock.ticks_at(seconds)).unwrap();
    // Exchanges 1 ms before the begin and 2 ms after the end; 0.1 ppm from the nearer one.
    let middle_ns = 10.0 + 501.5e6 * WANDER;
    assert!((at_s(0.5005) - middle_ns).abs() < 0.5, "{} {middle_ns}", at_s(0.5005));
    assert!(at_s(0.0) < 11.0 && at_s(1.0) < 11.0);
    assert!((clock.bound_ns.unwrap() - middle_ns).abs() < 0.5);
    let ends_ns = timeline.ends_bound_ns.unwrap();
    assert!(ends_ns < 11.0 && timeline.bound_ns.unwrap() > ends_ns);
}

#[test]
fn without_a_second_exchange_the_bound_widens_with_time() {
    let mut child = two_hosts(complete(1, 2), 0).skewed(4_000_000_000, 1.0);
    (child.header.host, child.header.boot_id) = ("n1".into(), "boot-n1".into());
    child
        .definitions
        .retain(|d| !matches!(d, Definition::ClockExchange(e) if e.phase == Phase::Finalize));
    let timeline = timeline_of(&[complete(0, 2), child]);
    let rank = &timeline.ranks[1];
    assert_near_ns(rank.begin_s(), 0.0, 200.0);
    // Two kernels: their seconds may differ by 100 ppm.
    let end_ns = rank.clock.bound_ns_at(rank.end_ticks).unwrap();
    assert!((100_000.0..102_000.0).contains(&end_ns), "{end_ns}");
    let begin_ns = rank.clock.bound_ns_at(rank.begin_ticks).unwrap();
    assert!(begin_ns < 200.0, "{begin_ns}");
}

#[test]
fn utc_comes_from_the_reference_ranks_system_clock() {
    use trace_format::header::SystemClock;
    let mut first = complete(0, 2);
    let clock = SystemClock { ticks: BASE, synchronised: true, most_error_ns: 250_000 };
    first.definitions.push(Definition::SystemClock(clock));
    let skewed = two_hosts(complete(1, 2), 0).skewed(-3_000_000_000, 1.0);
    let timeline = timeline_of(&[first, skewed]);
    let utc = timeline.utc.unwrap();
    // The synthetic wall clock is 1,700,000,000 s ahead of the counter.
    let expected_ns = 1_700_000_000_000_000_000 + i128::from(BASE + 100 * MS);
    assert!((utc.zero_ns - expected_ns).abs() <= 2, "{}", utc.zero_ns - expected_ns);
    assert_eq!(utc.bound_ns, Some(250_000));
    assert!(utc.spread_ns <= 4.0, "{}", utc.spread_ns);
}
