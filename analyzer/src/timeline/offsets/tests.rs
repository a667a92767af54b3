//! Estimates compared with the truth, which the makers of these bounds and runs know.

use proptest::prelude::*;
use trace_format::counter_kind::CounterKind;
use trace_format::header::{Definition, Phase};
use trace_format::markers::ToolReason;

use super::*;
use crate::processes::in_threads;
use crate::synthetic_messages::on_world;
use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use crate::timeline::{TimeNote, shared_counters};
use envelope::Constraint;

const MS: u64 = 1_000_000;
const END: u64 = 4000 * MS;

/// Numbers that look random.
struct Random(u64);

impl Random {
    /// From 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Mostly short, sometimes long: a delay in ns.
    fn delay(&mut self) -> u64 {
        let tail = if self.next() < 0.05 { 3e6 } else { 2e4 };
        5_000 + (-(1.0 - self.next()).ln() * tail) as u64
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() * end as f64) as usize
    }
}

/// A host: what its counter and its kernel's seconds do.
#[derive(Debug, Clone, Copy)]
struct Host {
    offset: i64,
    rate: f64,
    kernel_ppm: f64,
}

impl Host {
    /// The counter at a true moment, like `SyntheticRank::skewed`.
    fn reading(self, at: u64) -> u64 {
        ((at as f64 * self.rate).round() as u64).wrapping_add_signed(self.offset)
    }
}

const TRUE: Host = Host { offset: 0, rate: 1.0, kernel_ppm: 0.0 };

/// A rank without exchanges, at a true moment.
struct Walker {
    rank: SyntheticRank,
    now: u64,
}

/// Ranks that walk through true time.
struct World(Vec<Walker>);

impl World {
    fn new(ranks: u32) -> Self {
        let walker = |number| {
            let mut rank = SyntheticRank::level_1(number, ranks, END);
            rank.definitions.retain(|d| !matches!(d, Definition::ClockExchange(_)));
            Walker { rank, now: 2 * MS }
        };
        Self((0..ranks).map(walker).collect())
    }

    fn wait(&mut self, rank: usize, ns: u64) {
        self.0[rank].now += ns;
    }

    /// A message that takes this long.
    fn message(&mut self, from: usize, to: usize, delay: u64) {
        let sent = self.0[from].now;
        let sender = &mut self.0[from];
        sender.rank.call_with("MPI_Send", sent, sent + 500, on_world(to as i32, 7, 8));
        sender.now = sent + 1000;
        let receiver = &mut self.0[to];
        let (begin, end) = (receiver.now, (receiver.now + 200).max(sent + delay));
        receiver.rank.call_with("MPI_Recv", begin, end, on_world(from as i32, 7, 8));
        receiver.now = end + 500;
    }

    fn collective(&mut self, function: &str, root: i32, bytes: u32, random: &mut Random) {
        let last = self.0.iter().map(|walker| walker.now).max().unwrap_or(0);
        for walker in &mut self.0 {
            let end = last + random.delay();
            // The same are sent and received.
            let attributes = on_world(root, bytes as i32, bytes);
            walker.rank.call_with(function, walker.now, end, attributes);
            walker.now = end + 500;
        }
    }

    /// The files, with each rank on its host.
    fn on(self, hosts: &[Host], of_rank: &[usize]) -> Vec<SyntheticRank> {
        let ranks = self.0.into_iter().zip(of_rank).map(|(mut walker, host)| {
            assert!(walker.now < END, "the run is too long");
            walker.rank.finalize(END, END + 100);
            let (name, host) = (format!("n{host}"), hosts[*host]);
            let mut rank = walker.rank.skewed(host.offset, host.rate);
            (rank.header.boot_id, rank.header.host) = (format!("boot-{name}"), name);
            for definition in &mut rank.definitions {
                if let Definition::ClockAnchor(anchor) = definition {
                    let ns = anchor.monotonic_raw_ns as f64 * (1.0 + host.kernel_ppm * 1e-6);
                    anchor.monotonic_raw_ns = ns.round() as u64;
                    // Wall clocks are kept at UTC to 5 ms.
                    anchor.realtime_ns += 5_000_000 * u64::from(host.offset > 0);
                }
            }
            rank
        });
        ranks.collect()
    }
}

fn opened(ranks: &[SyntheticRank]) -> (RunDirectory, Run) {
    let directory = RunDirectory::with_ranks(ranks);
    let run = Run::open(directory.path()).unwrap();
    (directory, run)
}

/// Asserts that every rank's clock is within its bound of the truth, at all times.
fn assert_true(run: &Run, timeline: &GlobalTimeline, hosts: &[Host], of_rank: &[usize]) {
    let counters = shared_counters(run, &timeline.ranks);
    let root_s = |at| timeline.ranks[0].clock.seconds(hosts[of_rank[0]].reading(at));
    for (position, counter) in counters.into_iter().enumerate() {
        for at in (MS..END).step_by(MS as usize * 3) {
            let reading = hosts[of_rank[position]].reading(at);
            let clock = &timeline.ranks[position].clock;
            let off_ns = (clock.seconds(reading) - root_s(at)) * 1e9;
            let bound_ns = timeline.ranks[counter].clock.bound_ns_at(reading).unwrap();
            // Readings of the truth are rounded to whole ticks.
            assert!(
                off_ns.abs() <= bound_ns + 1.5,
                "rank {position} is off by {off_ns} ns at {at}, beyond {bound_ns} ns"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::test_cases::cases(60)))]

    /// Random messages and collective operations between six ranks on three hosts.
    #[test]
    fn the_truth_lies_within_the_bound(
        seed: u64,
        offsets in prop::array::uniform2(-3_000_000_000i64..3_000_000_000),
        ppm in prop::array::uniform2(-80.0..80.0f64),
        kernel_ppm in prop::array::uniform2(-45.0..45.0f64),
        steps in 30usize..200,
    ) {
        let host = |index: usize| Host {
            offset: offsets[index] + 3_000_000_000,
            rate: 1.0 + ppm[index] * 1e-6,
            kernel_ppm: kernel_ppm[index],
        };
        let (hosts, of_rank) = ([TRUE, host(0), host(1)], [0, 0, 1, 1, 2, 2]);
        let (mut world, mut random) = (World::new(6), Random(seed));
        for _ in 0..steps {
            let (from, to) = (random.below(6), random.below(6));
            world.wait(from, (random.next() * 4e6) as u64);
            let delay = random.delay();
            match random.below(20) {
                0 => world.collective("MPI_Barrier", 0, 0, &mut random),
                1 => world.collective("MPI_Allreduce", 0, 8, &mut random),
                2 => world.collective("MPI_Bcast", 3, 8, &mut random),
                3 => world.collective("MPI_Reduce", 4, 8, &mut random),
                _ if from == to => {}
                _ => world.message(from, to, delay),
            }
        }
        // At the end all hosts have heard of each other.
        world.collective("MPI_Barrier", 0, 0, &mut random);
        let (_directory, run) = opened(&world.on(&hosts, &of_rank));
        let timeline = GlobalTimeline::new(&run);
        prop_assert!(timeline.aligned, "{:?}", timeline.estimate);
        assert_true(&run, &timeline, &hosts, &of_rank);
    }

    /// Bounds of an offset whose slope wanders.
    #[test]
    fn an_offset_that_wanders_lies_within_its_envelope(
        seed: u64,
        mean in -5e-5..5e-5f64,
        known in 1e-7..1e-4f64,
        length_s in 0.01..20_000.0f64,
        count in 2usize..400,
        periods in 0.2..5.0f64,
    ) {
        let mut random = Random(seed);
        let cycles = std::f64::consts::TAU * periods / length_s;
        // Its slope is the mean within the wander.
        let truth = |at_s: f64| 0.3 + mean * at_s - WANDER / cycles * ((cycles * at_s).cos() - 1.0);
        let mut bounds = Vec::new();
        for index in 0..count {
            let (at_s, delay_s) = (random.next() * length_s, random.delay() as f64 * 1e-9);
            bounds.push(match index % 2 {
                0 => (at_s, Constraint::AtLeast(truth(at_s) - delay_s)),
                _ => (at_s, Constraint::AtMost(truth(at_s) + delay_s)),
            });
        }
        // What is known of the slope is right, but not its middle.
        let slopes = Slopes::around(mean + (random.next() - 0.5) * known, known / 2.0 + WANDER);
        let envelope = Envelope::from_bounds(&bounds, slopes).unwrap();
        let axis = |ticks| Axis { ticks, at_s: 0.0, seconds_per_tick: 1e-9 };
        let (of_child, of_parent) = (axis(1 << 40), axis(1 << 45));
        let map = counter_map(&envelope, &of_child, &of_parent);
        let bound = bound_line(&envelope, &of_child);
        for step in -50..1050 {
            let ticks = ((1i64 << 40) + (length_s * 1e6 * f64::from(step)) as i64) as u64;
            let at_s = of_child.seconds_at(i128::from(ticks));
            let found_s = of_parent.seconds_at(map.whole_ticks_at(ticks)) - at_s;
            let (off_ns, bound_ns) = ((found_s - truth(at_s)) * 1e9, bound.at(ticks));
            prop_assert!(off_ns.abs() <= bound_ns + 1.0, "{off_ns} ns off, {bound_ns} ns at {at_s}");
        }
    }
}

#[test]
fn drift_is_estimated_and_the_bound_comes_near_the_shortest_messages() {
    let hosts = [TRUE, Host { offset: 7_000_000_000, rate: 1.0 + 40e-6, kernel_ppm: 30.0 }];
    let mut world = World::new(2);
    for _ in 0..300 {
        world.wait(0, 12 * MS);
        world.message(0, 1, 10_000);
        world.message(1, 0, 10_000);
    }
    let (_directory, run) = opened(&world.on(&hosts, &[0, 1]));
    let timeline = GlobalTimeline::new(&run);
    assert_true(&run, &timeline, &hosts, &[0, 1]);
    assert_eq!(timeline.ranks[1].clock.alignment, Alignment::Estimated);
    // Half the two times of 10 µs, and what the drift leaves open between messages. From both ends
    // of the run alone, a drift that is known to 100 ppm would leave 200 µs open.
    let bound_ns = timeline.bound_ns.unwrap();
    assert!((10_000.0..14_000.0).contains(&bound_ns), "{bound_ns}");
    let estimate = timeline.estimate.unwrap();
    assert_eq!((estimate.messages, estimate.collectives), (600, 0));
}

fn ping_pong(world: &mut World, a: usize, b: usize) {
    for _ in 0..20 {
        world.wait(a, 30 * MS);
        world.message(a, b, 20_000);
        world.message(b, a, 20_000);
    }
}

#[test]
fn messages_one_way_give_no_estimate() {
    let hosts = [TRUE, Host { offset: 5_000, ..TRUE }];
    let mut world = World::new(2);
    for _ in 0..20 {
        world.message(0, 1, 20_000);
    }
    let mut random = Random(1);
    world.collective("MPI_Bcast", 0, 8, &mut random);
    world.collective("MPI_Allreduce", 0, 0, &mut random);
    let (_directory, run) = opened(&world.on(&hosts, &[0, 1]));
    let timeline = GlobalTimeline::new(&run);
    assert_eq!(timeline.ranks[1].clock.alignment, Alignment::Unaligned);
    assert_eq!(timeline.estimate.clone().unwrap().unconnected, [1]);
    assert!(timeline.notes.iter().any(|note| matches!(note, TimeNote::Unconnected(_))));
}

#[test]
fn hosts_in_a_chain_are_compared_through_the_ones_between() {
    let host = |offset, ppm: f64| Host { offset, rate: 1.0 + ppm * 1e-6, kernel_ppm: ppm / 2.0 };
    let hosts = [TRUE, host(4_000_000_000, 20.0), host(1_000_000, -30.0)];
    let mut world = World::new(4);
    ping_pong(&mut world, 0, 1);
    ping_pong(&mut world, 1, 2);
    let of_rank = [0, 1, 2, 2];
    let (_directory, run) = opened(&world.on(&hosts, &of_rank));
    let timeline = GlobalTimeline::new(&run);
    use Alignment::{AssumedShared, Estimated, Reference};
    let alignments: Vec<_> = timeline.ranks.iter().map(|rank| rank.clock.alignment).collect();
    assert_eq!(alignments, [Reference, Estimated, Estimated, AssumedShared]);
    assert_true(&run, &timeline, &hosts, &of_rank);
    let bound_ns = |rank: usize| timeline.ranks[rank].clock.bound_ns.unwrap();
    assert!(bound_ns(2) > bound_ns(1));
    assert_eq!(shared_counters(&run, &timeline.ranks), [0, 1, 2, 2]);
}

#[test]
fn a_broadcast_and_a_reduction_bound_both_sides() {
    let hosts = [TRUE, Host { offset: 1_000_000, ..TRUE }];
    let (mut world, mut random) = (World::new(2), Random(3));
    world.collective("MPI_Bcast", 0, 8, &mut random);
    world.wait(0, 5 * MS);
    world.collective("MPI_Reduce", 0, 8, &mut random);
    let (_directory, run) = opened(&world.on(&hosts, &[0, 1]));
    let timeline = GlobalTimeline::new(&run);
    assert_true(&run, &timeline, &hosts, &[0, 1]);
    assert_eq!(timeline.estimate.unwrap().collectives, 2);
}

#[test]
fn measured_clocks_stay_as_they_are() {
    let hosts = [TRUE, Host { offset: 1_000_000, ..TRUE }];
    let mut world = World::new(3);
    ping_pong(&mut world, 0, 1);
    ping_pong(&mut world, 1, 2);
    let mut ranks = world.on(&hosts, &[0, 1, 1]);
    for rank in &mut ranks[1..] {
        for (phase, at) in [(Phase::Init, MS - 500), (Phase::Finalize, END + 50)] {
            rank.exchange(phase, 0, hosts[1].reading(at), at);
        }
    }
    let (_directory, run) = opened(&ranks);
    let timeline = GlobalTimeline::new(&run);
    assert_eq!(timeline.estimate, None);
    assert!(timeline.ranks[1..].iter().all(|r| r.clock.alignment == Alignment::Measured));
}

#[test]
fn a_rank_without_an_exchange_is_compared_with_measured_ones() {
    let hosts = [TRUE, Host { offset: 1_000_000, ..TRUE }, Host { offset: 90_000, ..TRUE }];
    let mut world = World::new(3);
    ping_pong(&mut world, 1, 2);
    let mut ranks = world.on(&hosts, &[0, 1, 2]);
    for (phase, at) in [(Phase::Init, MS - 500), (Phase::Finalize, END + 50)] {
        // The exchange is wrong by 9 ns, of the 10 that it allows.
        ranks[1].exchange(phase, 0, hosts[1].reading(at) + 9, at);
    }
    let (_directory, run) = opened(&ranks);
    let timeline = GlobalTimeline::new(&run);
    use Alignment::{Estimated, Measured, Reference};
    let alignments: Vec<_> = timeline.ranks.iter().map(|rank| rank.clock.alignment).collect();
    assert_eq!(alignments, [Reference, Measured, Estimated]);
    assert_true(&run, &timeline, &hosts, &[0, 1, 2]);
}

#[test]
fn times_of_another_tool_stay_where_messages_allow_them() {
    // The tool's clocks are wrong by this much; messages show what exceeds 20 µs.
    for (offset, moved) in [(0, 0.0), (5_000, 0.0), (90_000, 70e-6)] {
        let hosts = [TRUE, Host { offset, ..TRUE }];
        let mut world = World::new(2);
        ping_pong(&mut world, 0, 1);
        let mut ranks = world.on(&hosts, &[0, 1]);
        for rank in &mut ranks {
            rank.fixed.pid = 0;
            rank.fixed.counter = CounterKind::MonotonicRaw as u8;
            rank.definitions.retain(|d| !matches!(d, Definition::ClockAnchor(_)));
            rank.anchor(MS - 50, 1e9, MS - 50).anchor(2 * END, 1e9, 2 * END);
        }
        let (_directory, run) = opened(&ranks);
        let timeline = GlobalTimeline::new(&run);
        assert_true(&run, &timeline, &hosts, &[0, 1]);
        let [at_0, at_1] = [0, 1].map(|rank| timeline.ranks[rank].clock.seconds(300 * MS));
        let found = at_0 - at_1;
        assert!((found - moved).abs() < 3e-6, "moved by {found} s instead of {moved} s");
    }
}

#[test]
fn bounds_that_contradict_each_other_give_no_estimate() {
    let mut world = World::new(2);
    ping_pong(&mut world, 0, 1);
    let mut ranks = world.on(&[TRUE, TRUE], &[0, 1]);
    // A rank whose counter jumped by 10 ms in the middle.
    for slot in ranks[1].threads[0].iter_mut().filter(|slot| slot.begin > 300 * MS) {
        slot.begin += 10 * MS;
    }
    let (_directory, run) = opened(&ranks);
    let timeline = GlobalTimeline::new(&run);
    assert_eq!(timeline.ranks[1].clock.alignment, Alignment::Unaligned);
    assert_eq!(timeline.estimate.clone().unwrap().contradictory, [1]);
    assert!(timeline.notes.iter().any(|note| matches!(note, TimeNote::Contradictory(_))));
}

#[test]
fn messages_whose_order_is_not_known_are_not_used() {
    let made = || {
        let mut world = World::new(2);
        ping_pong(&mut world, 0, 1);
        world.on(&[TRUE, Host { offset: 1_000, ..TRUE }], &[0, 1])
    };
    let is_estimated = |ranks: &[SyntheticRank]| {
        let (_directory, run) = opened(ranks);
        GlobalTimeline::new(&run).aligned
    };
    assert!(is_estimated(&made()));
    let mut pauses = made();
    pauses[1].tool(0, ToolReason::Paused, END + 2000, END + 2100);
    assert!(!is_estimated(&pauses));
    let mut threads = made();
    threads[0].threads.push(Vec::new());
    threads[0].call(1, "MPI_Comm_size", 3 * MS, 3 * MS + 10);
    assert!(!is_estimated(&threads));
}

#[test]
fn any_number_of_processes_estimates_the_same() {
    let hosts = [TRUE, Host { offset: 5, ..TRUE }, Host { offset: 70_000, ..TRUE }];
    let (mut world, mut random) = (World::new(5), Random(11));
    for _ in 0..100 {
        let (from, to, delay) = (random.below(5), random.below(5), random.delay());
        if from != to {
            world.message(from, to, delay);
        }
    }
    world.collective("MPI_Barrier", 0, 0, &mut random);
    let (directory, run) = opened(&world.on(&hosts, &[0, 1, 1, 2, 0]));
    let alone = GlobalTimeline::new(&run);
    assert!(alone.aligned && alone.estimate.is_some());
    for count in 2..=3 {
        let of_processes = in_threads::run(count, |processes| {
            GlobalTimeline::new(&Run::open_in(directory.path(), &processes).unwrap())
        });
        assert!(of_processes.iter().all(|timeline| *timeline == alone), "{count} processes");
    }
}
