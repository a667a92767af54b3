//! Laws of known programs, and times made of them.

use super::labels::{Group, Kind, Label, Pattern, RunLabels, Spread};
use super::laws::{Law, Series, Tolerance};
use super::rules::by_rule;
use super::shape::Shape;
use super::smooth::{Column, up_to_two, weighed};
use super::ways::ways;
use super::work::{Messages, Work};
use super::{
    Abstains, Forecast, Library, MachineTimes, MessageTime, MessageTimes, Part, Structure,
};

const SQUARES: [f64; 5] = [4.0, 9.0, 16.0, 25.0, 36.0];
const DOUBLINGS: [f64; 5] = [2.0, 4.0, 8.0, 16.0, 32.0];

fn law(p: &[f64], of: impl Fn(f64) -> f64, tolerance: Tolerance) -> Option<Law> {
    let values: Vec<f64> = p.iter().map(|p| of(*p)).collect();
    Law::of(Series { p, values: &values, per_host: 4.0 }, tolerance)
}

/// Asserts that a count is continued right to the call.
fn continues(p: &[f64], of: impl Fn(f64) -> f64) {
    let law = law(p, &of, Tolerance::Count).unwrap();
    for asked in [64.0, 256.0, 1_024.0] {
        let found = law.at(asked).unwrap();
        assert!((found - of(asked)).abs() < 1e-3, "{found} at {asked}: {}", law.text());
    }
}

#[test]
fn counts_of_known_programs_are_continued_to_the_call() {
    // Steps of a broadcast tree, shifts of Cannon's algorithm, rounds of a ring, and a halo.
    continues(&DOUBLINGS, |p| 12.0 * p.log2());
    continues(&SQUARES, |p| 2.0 * p.sqrt() + 2.0);
    continues(&DOUBLINGS, |p| 10.0 * (p - 1.0));
    continues(&SQUARES, |_| 400.0);
    // Messages of a wavefront over a square grid.
    continues(&SQUARES, |p| 64.0 * (p - p.sqrt()));
}

#[test]
fn sizes_of_known_programs_are_continued() {
    // Sides of a halo, blocks of a transpose, and blocks that are not all of one size.
    for (p, of) in [
        (SQUARES, (|p: f64| 8.0 * 7_200.0 / p.sqrt()) as fn(f64) -> f64),
        (DOUBLINGS, |p| 1e9 / (p * p)),
        (DOUBLINGS, |p| (1e8 / p).round() + 0.5),
    ] {
        let law = law(&p, of, Tolerance::Bytes).unwrap();
        let found = law.at(256.0).unwrap();
        assert!((found / of(256.0) - 1.0).abs() < 1e-3, "{found}, not {}", of(256.0));
    }
}

#[test]
fn sizes_may_be_rounded_to_whole_elements() {
    let of_elements = |p: f64| 8.0 * (8_192.0 / p.sqrt()).floor();
    let found = law(&SQUARES, of_elements, Tolerance::Bytes).unwrap();
    assert!((found.at(256.0).unwrap() - 4_096.0).abs() < 1.0, "{}", found.text());
    // Of few elements the rounding is most of what there is.
    assert!(law(&SQUARES, |p| 8.0 * (40.0 / p.sqrt()).floor(), Tolerance::Bytes).is_none());
}

#[test]
fn what_one_run_contradicts_is_no_law() {
    let off = |p: f64| if p == 16.0 { 161.0 } else { 10.0 * p };
    assert!(law(&DOUBLINGS, off, Tolerance::Count).is_none());
    // A coefficient and its term fit any two runs, two of each any four.
    assert!(law(&DOUBLINGS[..2], |p| 3.0 * p, Tolerance::Count).is_none());
    assert!(law(&DOUBLINGS[..4], |p| 2.0 * p + 3.0 * p.sqrt(), Tolerance::Count).is_none());
}

#[test]
fn laws_that_differ_elsewhere_are_doubted() {
    // Powers of 4 do not tell the side of a square grid from the root.
    let law = law(&[4.0, 16.0, 64.0], |p| 5.0 * p.sqrt(), Tolerance::Count).unwrap();
    assert_eq!(law.text(), "5·√p");
    assert!((law.doubt(256.0) - 1.0).abs() < 1e-9);
    assert!(law.doubt(512.0) > 1.4);
}

fn label(name: &str, kind: Kind, count: f64, seconds: f64) -> Label {
    Label {
        name: name.to_owned(),
        kind,
        first_use: false,
        count,
        seconds,
        messages: 0.0,
        bytes: 0.0,
        group: None,
        spread: Spread::All,
        all_bytes: 0.0,
        all_count: count,
        all_seconds: seconds,
        max_count: count,
        ranks: 1.0,
        stretches: Vec::new(),
        size: None,
        by_size: Vec::new(),
    }
}

/// A stencil on a ring with a sum in each of 100 steps: what it does, and what that takes on a
/// network with 2 µs a message and 1 GB/s.
fn stencil(p: f64) -> RunLabels {
    let (message_s, byte_s, bytes) = (2e-6, 1e-9, 80_000.0);
    let exchange = Label {
        messages: 2.0,
        bytes,
        all_count: 100.0 * p,
        ranks: p,
        ..label("exchange", Kind::Messages, 100.0, 100.0 * (2.0 * message_s + bytes * byte_s))
    };
    let steps = p.log2().ceil();
    let sum = Label {
        bytes: 8.0,
        all_bytes: 800.0 * p,
        group: Some(Group { ranks: p, per_host: 1.0 }),
        all_count: 100.0 * p,
        ranks: p,
        ..label(
            "sum",
            Kind::Collective(Pattern::Combine),
            100.0,
            100.0 * steps * (message_s + 8.0 * byte_s),
        )
    };
    let own_s = 4.0 / p;
    let compute = Label {
        all_count: 100.0 * p,
        all_seconds: own_s * p,
        ranks: p,
        ..label("compute", Kind::Computation, 100.0, own_s)
    };
    let labels = vec![exchange, sum, compute];
    let tau_s = labels.iter().map(|label| label.seconds).sum();
    RunLabels {
        p: p as u32,
        tau_s,
        per_host: 1,
        library: None,
        uncertain: 0.0,
        counts_only: false,
        labels,
        places: Vec::new(),
    }
}

#[test]
fn a_stencil_is_predicted_from_small_runs() {
    let structure =
        Structure::new(DOUBLINGS.map(stencil).to_vec(), MachineTimes::default()).unwrap();
    assert!(structure.held_back().error() < 1e-3);
    for p in [64, 1_024] {
        let (forecast, truth) = (structure.at(p), stencil(f64::from(p)).tau_s);
        assert!((forecast.tau_s / truth - 1.0).abs() < 0.01, "{forecast:#?}, not {truth}");
        assert!(forecast.interval_s.0 < truth && truth < forecast.interval_s.1);
        let parts: f64 = forecast.parts.iter().map(|part| part.seconds).sum();
        assert!((parts / forecast.tau_s - 1.0).abs() < 1e-9);
    }
    let largest = &structure.at(1_024).parts[0];
    assert_eq!((largest.name.as_str(), largest.count_law.as_deref()), ("exchange", Some("100")));
}

#[test]
fn a_master_is_not_continued() {
    let farm = |p: f64| {
        let asked = Label { max_count: 1_000.0, ..label("recv", Kind::Messages, 1_000.0, 1.0) };
        let each = 2_000.0 / (p - 1.0);
        let answer = Label { ranks: p - 1.0, all_count: 2_000.0, max_count: each, ..asked.clone() };
        let labels = vec![asked, Label { name: "answer".into(), seconds: 0.0, ..answer }];
        RunLabels {
            p: p as u32,
            tau_s: 1.0,
            per_host: 1,
            library: None,
            uncertain: 0.0,
            counts_only: false,
            places: Vec::new(),
            labels,
        }
    };
    assert_eq!(
        Structure::new([8.0, 16.0, 32.0, 64.0, 128.0].map(farm).to_vec(), MachineTimes::default())
            .err(),
        Some(Abstains::Centre)
    );
}

#[test]
fn few_rank_counts_unexplained_time_and_unknown_clocks_are_refused() {
    let few = Structure::new(
        DOUBLINGS[..4].iter().map(|p| stencil(*p)).collect(),
        MachineTimes::default(),
    );
    assert_eq!(few.err(), Some(Abstains::FewRankCounts(4)));
    let mut runs: Vec<RunLabels> = DOUBLINGS.map(stencil).to_vec();
    runs[2].tau_s *= 2.0;
    assert_eq!(
        Structure::new(runs, MachineTimes::default()).err(),
        Some(Abstains::Unexplained(0.5))
    );
    let mut runs: Vec<RunLabels> = DOUBLINGS.map(stencil).to_vec();
    runs[4].uncertain = 0.2;
    assert_eq!(Structure::new(runs, MachineTimes::default()).err(), Some(Abstains::Clocks(0.2)));
}

#[test]
fn a_constant_part_is_not_lost_in_a_power() {
    let of = |p: f64| 30.0 + 400.0 / p;
    let values: Vec<f64> = DOUBLINGS.iter().map(|p| of(*p)).collect();
    let terms: [fn(f64) -> f64; 3] = [|_| 1.0, |p| 1.0 / p, |p| 1.0 / p.sqrt()];
    let columns: Vec<Column> =
        terms.iter().map(|term| Column::new(&DOUBLINGS, 1_024.0, term)).collect();
    let found = weighed(&values, &up_to_two(&columns)).unwrap();
    assert!((found.value / of(1_024.0) - 1.0).abs() < 0.03, "{found:?}");
    // What no formula meets is as uncertain as it is missed.
    let two = Column { at_runs: vec![1.0, 1.0], asked: 1.0 };
    assert!(weighed(&[1.0, 3.0], &up_to_two(&[two])).unwrap().residual > 0.3);
}

#[test]
fn ways_of_collective_operations_move_what_algorithms_do() {
    let of = |pattern, q: f64| {
        let ways = ways(Kind::Collective(pattern), 0.0, 1_024.0, shape(q, 1.0));
        ways.into_iter().flatten().map(|way| (way.messages(), way.bytes())).collect::<Vec<_>>()
    };
    // A binomial tree; recursive doubling of 6 ranks works on 4 of them.
    assert_eq!(of(Pattern::FromRoot, 8.0)[0], (3.0, 3.0 * 1_024.0));
    assert!(of(Pattern::Combine, 6.0).contains(&(4.0, 4.0 * 1_024.0)));
    // Bruck's algorithm passes half of the bytes on in each of 3 rounds; pairs exchange 7 blocks of 8.
    assert_eq!(of(Pattern::Exchange, 8.0), [(3.0, 1.5 * 1_024.0), (7.0, 7.0 * 128.0)]);
    assert!(of(Pattern::Synchronise, 8.0).iter().all(|(_, bytes)| *bytes == 0.0));
}

#[test]
fn first_calls_are_kept_apart_only_where_they_take_longer() {
    let with_first = |p: f64, factor: f64| {
        let mut run = stencil(p);
        let mut first = Label { first_use: true, count: 1.0, ..run.labels[0].clone() };
        first.seconds *= factor / 100.0;
        (first.all_count, first.all_seconds) = (p, run.labels[0].all_seconds / 100.0 * factor);
        run.tau_s += first.seconds;
        run.labels.push(first);
        run
    };
    let parts = |factor: f64| {
        let structure = Structure::new(
            DOUBLINGS.map(|p| with_first(p, factor)).to_vec(),
            MachineTimes::default(),
        )
        .unwrap();
        structure.at(64).parts.iter().filter(|part| part.first_use).count()
    };
    assert_eq!((parts(1.0), parts(50.0)), (0, 1));
}

/// All ranks exchange blocks that shrink as 1/p², which MPICH sends one after another down to 32 KiB.
fn transpose(p: f64) -> RunLabels {
    let block = 64e6 / (p * p);
    let seconds = match block > 32_768.0 {
        true => (p - 1.0) * message_s(block),
        false => message_s(block) + (p - 1.0) * message_s(block) / 2.0,
    };
    let exchange = Label {
        bytes: p * block,
        all_bytes: 10.0 * p * p * block,
        all_count: 10.0 * p,
        ranks: p,
        group: Some(Group { ranks: p, per_host: 1.0 }),
        ..label("transpose", Kind::Collective(Pattern::Exchange), 10.0, 10.0 * seconds)
    };
    RunLabels { labels: vec![exchange], tau_s: 10.0 * seconds, ..stencil(p) }
}

fn machine(library: Option<Library>) -> MachineTimes {
    let sizes = (0..27).map(|power| 2f64.powi(power)).chain([32_767.0]);
    let other_host =
        MessageTimes::new(sizes.map(|bytes| message(bytes, message_s(bytes))).collect());
    MachineTimes { other_host, library, ..MachineTimes::default() }
}

#[test]
fn a_known_library_tells_what_it_does_at_other_sizes() {
    let runs = || DOUBLINGS.map(transpose).to_vec();
    let at_256 = |library| Structure::new(runs(), machine(library)).unwrap().at(256);
    let truth = transpose(256.0).tau_s;
    let known = at_256(Some(Library::Mpich));
    assert!((known.tau_s / truth - 1.0).abs() < 0.05, "{}, not {truth}", known.tau_s);
    let change = known.parts[0].regime.unwrap();
    // 64 MB among 45 ranks are blocks of 31.6 kB.
    assert_eq!(change.p, 45, "{change:?}");
    // No run shows what that takes, and without the library it may be anything that libraries do.
    let width = |of: &Forecast| of.interval_s.1 / of.tau_s;
    let unknown = at_256(None);
    assert!(width(&known) > 1.5 && width(&unknown) > 1.2, "{known:?} {unknown:?}");
    assert!(unknown.tau_s / truth > 1.5, "{}, not {truth}", unknown.tau_s);
}

#[test]
fn libraries_are_known_by_their_names() {
    let named = |name| Library::named(name);
    assert_eq!(named("Open MPI v4.1.4, package: Debian"), Some(Library::OpenMpi));
    assert_eq!(named("MPICH Version:      4.0.2"), Some(Library::Mpich));
    // These come from MPICH, or are other versions, and choose otherwise.
    for other in [
        "CRAY MPICH version 8.1",
        "Intel(R) MPI Library 2021.9",
        "MVAPICH2 Version: 2.3.7",
        "Open MPI v4.0.3, package: Debian",
        "Open MPI v5.0.6, package: Debian",
        "",
    ] {
        assert_eq!(named(other), None, "{other}");
    }
}

fn shape(members: f64, per_host: f64) -> Shape {
    Shape { members, per_host, groups: 1.0 }
}

fn near(found: f64, truth: f64) {
    assert!((found / truth - 1.0).abs() < 0.01, "{found}, not {truth}")
}

#[test]
fn messages_that_leave_a_host_at_once_follow_each_other() {
    let ranks = |per_host| {
        let ways = ways(Kind::Messages, 1.0, 1_000.0, shape(64.0, per_host));
        [0, 1].map(|of| ways[of].as_ref().unwrap().seconds(&machine(None)).unwrap())
    };
    let one = message_s(1_000.0);
    let [alone, sharing] = ranks(4.0);
    near(alone, one);
    near(sharing, one + 3.0 * one / 2.0);
    let [alone, sharing] = ranks(1.0);
    assert_eq!(alone, sharing);
}

#[test]
fn messages_that_are_posted_at_once_wait_for_each_other_in_groups() {
    let seconds = |at_once| {
        let of = Messages { count: 12.0, bytes: 1_000.0, off_host: Some(1.0), at_once };
        Work::usual(vec![of]).seconds(&machine(None)).unwrap()
    };
    let one = message_s(1_000.0);
    near(seconds(1.0), 12.0 * one);
    near(seconds(4.0), 3.0 * (one + 3.0 * one / 2.0));
    near(seconds(f64::INFINITY), one + 11.0 * one / 2.0);
}

#[test]
fn communicators_of_a_host_share_its_link() {
    // Two rounds, both between hosts: of one communicator, and of four that call at once.
    let seconds = |groups| {
        let shape = Shape { groups, ..shape(4.0, 1.0) };
        let ways = ways(Kind::Collective(Pattern::Combine), 0.0, 1_000.0, shape);
        ways[0].as_ref().unwrap().seconds(&machine(None)).unwrap()
    };
    let one = message_s(1_000.0);
    near(seconds(1.0), 2.0 * one);
    near(seconds(4.0), 2.0 * (one + 3.0 * one / 2.0));
}

#[test]
fn rules_of_libraries_go_by_members_and_bytes() {
    let algorithm = |library, pattern, members, bytes| {
        let of = by_rule(Some(library), Kind::Collective(pattern), bytes, shape(members, 1.0));
        of.into_iter().next().flatten().map_or("", |work: Work| work.algorithm)
    };
    use Library::{Mpich, OpenMpi};
    use Pattern::{Collect, Combine, CombineAtRoot, Exchange, FromRoot, Synchronise, ToRoot};
    for (library, pattern, members, bytes, name) in [
        (OpenMpi, Combine, 8.0, 8.0, "recursive doubling"),
        // Of fewer elements than members no ring is made.
        (OpenMpi, Combine, 32.0, 8.0, "recursive doubling"),
        (OpenMpi, Combine, 32.0, 1e6, "Rabenseifner"),
        (OpenMpi, Combine, 256.0, 8.0, "reduce and broadcast"),
        (OpenMpi, Exchange, 64.0, 64.0 * 1_023.0, "Bruck"),
        (OpenMpi, Exchange, 64.0, 64.0 * 1_024.0, "posted at once"),
        (OpenMpi, Exchange, 64.0, 64.0 * 262_144.0, "pairwise"),
        (OpenMpi, Collect, 256.0, 4_096.0, "neighbour exchange"),
        (OpenMpi, Collect, 25.0, 4_096.0, "doubling blocks"),
        (OpenMpi, FromRoot, 100.0, 1e6, "4-nomial tree"),
        (OpenMpi, FromRoot, 4_096.0, 1e6, "scatter and doubling"),
        (OpenMpi, CombineAtRoot, 300.0, 1e4, "binomial tree"),
        (OpenMpi, Synchronise, 100.0, 0.0, "dissemination"),
        (Mpich, FromRoot, 64.0, 12_287.0, "binomial tree"),
        (Mpich, FromRoot, 64.0, 12_288.0, "scatter and doubling"),
        (Mpich, FromRoot, 48.0, 12_288.0, "scatter and ring"),
        (Mpich, Combine, 64.0, 2_048.0, "recursive doubling"),
        (Mpich, Combine, 64.0, 2_056.0, "Rabenseifner"),
        (Mpich, CombineAtRoot, 64.0, 2_048.0, "binomial tree"),
        (Mpich, Exchange, 64.0, 64.0 * 32_768.0, "posted at once"),
        (Mpich, Exchange, 64.0, 64.0 * 32_776.0, "pairwise"),
        (Mpich, Collect, 64.0, 8_191.0, "doubling blocks"),
        (Mpich, Collect, 64.0, 8_192.0, "ring"),
        (Mpich, ToRoot, 64.0, 8.0, ""),
    ] {
        let found = algorithm(library, pattern, members, bytes);
        assert_eq!(found, name, "{library:?} {pattern:?} {members} {bytes}");
    }
}

/// Sums of 8 bytes in as many rounds as Open MPI's rule says, but twice as many on 16 and 32 ranks.
fn sums(p: f64) -> RunLabels {
    let rounds = p.log2() * if (16.0..64.0).contains(&p) { 2.0 } else { 1.0 };
    let seconds = 10.0 * rounds * message_s(8.0);
    let sum = Label {
        bytes: 8.0,
        all_bytes: 80.0 * p,
        all_count: 10.0 * p,
        ranks: p,
        group: Some(Group { ranks: p, per_host: 1.0 }),
        ..label("sum", Kind::Collective(Pattern::Combine), 10.0, seconds)
    };
    let ring = Label { bytes: 1e6, all_bytes: 1e7 * p, name: "ring".to_owned(), ..sum.clone() };
    RunLabels { labels: vec![sum, ring], tau_s: 2.0 * seconds, ..stencil(p) }
}

#[test]
fn what_a_library_does_elsewhere_does_not_count_where_it_does_something_else() {
    let runs = DOUBLINGS.map(sums).to_vec();
    let at_256 = |library| {
        let structure = Structure::new(runs.clone(), machine(library)).unwrap();
        structure.at(256).parts.into_iter().find(|part| part.name == "sum").unwrap()
    };
    // A tree to the root, and one back in which each sends to three others.
    let one = message_s(8.0);
    let truth = 10.0 * (8.0 * one + 4.0 * (one + 2.0 * one / 2.0));
    near(at_256(Some(Library::OpenMpi)).seconds, truth);
    assert!((at_256(None).seconds / truth - 1.0).abs() > 0.05);
}

/// A pipeline whose path meets one place or the other, as ranks happen to be late.
fn pipeline(p: f64) -> RunLabels {
    let all = 11.0 + 2.0 * p.sqrt();
    let one = if p == 16.0 || p == 36.0 { all - 1.0 } else { 5.0 };
    let stretches = [("one", one), ("other", all - one)];
    let labels =
        stretches.map(|(name, count)| label(name, Kind::Computation, count, count * 1e-3 / p));
    RunLabels { tau_s: all * 1e-3 / p, labels: labels.to_vec(), ..stencil(p) }
}

#[test]
fn places_that_the_path_meets_in_turn_are_continued_together() {
    let runs = SQUARES.map(pipeline).to_vec();
    let forecast = Structure::new(runs, MachineTimes::default()).unwrap().at(256);
    assert_eq!(forecast.parts.len(), 1, "{forecast:?}");
    let part = &forecast.parts[0];
    assert_eq!(part.count_law.as_deref(), Some("11 + 2·√p"), "{part:?}");
    assert!(part.name == "one, other" || part.name == "other, one", "{part:?}");
    assert!((forecast.tau_s / pipeline(256.0).tau_s - 1.0).abs() < 0.01, "{forecast:?}");
}

/// Levels of a search that exchange few or many bytes: `levels(p)` of them.
fn search(p: f64, levels: usize) -> RunLabels {
    let of_level = |level: usize| {
        let bytes = 1e6 * 10f64.powi(level as i32) / p;
        let seconds = message_s(bytes) * p.log2();
        Label {
            bytes,
            all_bytes: p * bytes,
            all_count: p,
            group: Some(Group { ranks: p, per_host: 1.0 }),
            ..label("sum", Kind::Collective(Pattern::Combine), 1.0, seconds)
        }
    };
    let by_size: Vec<Label> = (0..levels).map(of_level).collect();
    let mut sum = by_size[0].clone();
    by_size[1..].iter().for_each(|of| sum.join(of));
    let tau_s = sum.seconds;
    RunLabels { labels: vec![Label { by_size, ..sum }], tau_s, ..stencil(p) }
}

#[test]
fn sizes_are_continued_each_by_itself_where_runs_have_the_same() {
    let forecast = |levels: fn(f64) -> usize| {
        let runs = DOUBLINGS.map(|p| search(p, levels(p))).to_vec();
        Structure::new(runs, MachineTimes::default()).unwrap().at(64)
    };
    let three = forecast(|_| 3);
    let laws: Vec<_> = three.parts.iter().filter_map(|part| part.bytes_law.as_deref()).collect();
    assert_eq!(laws, ["100000000·1/p", "10000000·1/p", "1000000·1/p"]);
    let more_and_more = forecast(|p| 1 + p.log2() as usize);
    assert_eq!(more_and_more.parts.len(), 1);
}

#[test]
fn a_step_in_one_run_is_no_law() {
    // Ranks on one host, but for the last run.
    let hosts = |p: f64| if p > 16.0 { 24.0 } else { 12.0 };
    assert!(law(&DOUBLINGS, hosts, Tolerance::Count).is_none());
    // Two steps are.
    assert!(law(&DOUBLINGS, |p| 12.0 * (p / 4.0).ceil(), Tolerance::Count).is_some());
}

#[test]
fn stretches_that_are_not_alike_are_continued_by_their_sum() {
    // Of 2√p − 3 stretches the first takes twice as long as each other.
    let run = |p: f64| {
        let count = 2.0 * p.sqrt() - 3.0;
        let compute = label("compute", Kind::Computation, count, (count + 1.0) * 0.05 / p);
        RunLabels { tau_s: compute.seconds, labels: vec![compute], ..stencil(p) }
    };
    let forecast =
        Structure::new(SQUARES.map(run).to_vec(), MachineTimes::default()).unwrap().at(256);
    assert!((forecast.tau_s / run(256.0).tau_s - 1.0).abs() < 1e-3, "{forecast:?}");
}

/// Exchanges that ask before they send from 32 KiB on, so that runs never show what is below.
fn asking(p: f64) -> RunLabels {
    let mut run = stencil(p);
    let bytes = 1_048_576.0 / p;
    run.labels[0].bytes = 2.0 * bytes;
    run.labels[0].seconds = 100.0 * 2.0 * message_s(bytes);
    run.tau_s = run.labels.iter().map(|label| label.seconds).sum();
    run
}

fn message_s(bytes: f64) -> f64 {
    bytes * 1e-9 + if bytes >= 32_768.0 { 2e-4 } else { 2e-6 }
}

fn exchange(structure: &Structure, p: u32) -> Part {
    structure.at(p).parts.into_iter().find(|of| of.name == "exchange").unwrap()
}

#[test]
fn messages_that_leave_the_measured_sizes_are_doubted() {
    let structure =
        Structure::new(DOUBLINGS.map(asking).to_vec(), MachineTimes::default()).unwrap();
    assert_eq!(exchange(&structure, 32).leaves_sizes, None);
    let leaves = exchange(&structure, 256).leaves_sizes.unwrap();
    assert_eq!((leaves.0.round(), leaves.1.round()), (65_536.0, 8_192.0));
    let width = |structure: &Structure| {
        let forecast = structure.at(256);
        forecast.interval_s.1 / forecast.tau_s
    };
    let known = Structure::new(DOUBLINGS.map(stencil).to_vec(), MachineTimes::default()).unwrap();
    assert!(width(&structure) > width(&known));
}

fn message(bytes: f64, seconds: f64) -> MessageTime {
    MessageTime { bytes, half_rtt_s: seconds, gap_s: seconds / 2.0 }
}

#[test]
fn a_measured_machine_tells_what_smaller_messages_take() {
    let sizes = (0..24).map(|power| 2f64.powi(power)).chain([32_767.0]);
    let other_host =
        MessageTimes::new(sizes.map(|bytes| message(bytes, message_s(bytes))).collect());
    let machine = MachineTimes { other_host, ..MachineTimes::default() };
    let structure = Structure::new(DOUBLINGS.map(asking).to_vec(), machine).unwrap();
    let part = exchange(&structure, 256);
    assert_eq!(part.leaves_sizes, None);
    assert!((part.seconds / asking(256.0).labels[0].seconds - 1.0).abs() < 0.05, "{part:?}");
}

#[test]
fn rounds_within_a_host_take_what_messages_take_there() {
    let times =
        |seconds: f64| MessageTimes::new(vec![message(1.0, seconds), message(1e6, 2.0 * seconds)]);
    let (same_host, other_host) = (times(1e-6), times(1e-5));
    let machine = MachineTimes { same_host, other_host, library: None };
    let sum = |ranks, per_host| {
        let ways = ways(Kind::Collective(Pattern::Combine), 0.0, 1.0, shape(ranks, per_host));
        (ways[1].as_ref().unwrap().seconds(&machine).unwrap() * 1e9).round()
    };
    // Three rounds: all within a host, one between hosts, all between hosts.
    assert_eq!((sum(8.0, 8.0), sum(8.0, 4.0), sum(8.0, 1.0)), (3_000.0, 12_000.0, 30_000.0));
    // What was not measured is not made up.
    let machine = MachineTimes { other_host: None, ..machine };
    let ways = ways(Kind::Collective(Pattern::Combine), 0.0, 1.0, shape(8.0, 4.0));
    assert_eq!(ways[1].as_ref().unwrap().seconds(&machine), None);
}

/// The stencil on hosts with four cores, where messages take a tenth within a host.
fn on_hosts_of_four(p: f64) -> RunLabels {
    let mut run = stencil(p);
    (run.per_host, run.tau_s) = (p.min(4.0) as u32, 0.0);
    for label in &mut run.labels {
        if let Some(group) = &mut label.group {
            group.per_host = p.min(4.0);
        }
        if label.kind != Kind::Computation && p <= 4.0 {
            label.seconds /= 10.0;
        }
        run.tau_s += label.seconds;
    }
    run
}

#[test]
fn runs_on_one_host_do_not_tell_what_messages_between_hosts_take() {
    let runs = DOUBLINGS.map(on_hosts_of_four).to_vec();
    let structure = Structure::new(runs, MachineTimes::default()).unwrap();
    let (forecast, truth) = (exchange(&structure, 256), on_hosts_of_four(256.0).labels[0].seconds);
    assert!((forecast.seconds / truth - 1.0).abs() < 0.01, "{forecast:?}, not {truth}");
}

/// Exchanges 10·p times; `extra` more in the run for counts.
fn counted_at(p: f64, extra: f64) -> RunLabels {
    let mut run = stencil(p);
    let exchange = &mut run.labels[0];
    exchange.count = 10.0 * p + extra;
    exchange.all_count = exchange.count * p;
    exchange.all_bytes = exchange.bytes * exchange.all_count;
    exchange.max_count = exchange.count;
    exchange.seconds = 84e-6 * exchange.count;
    run.tau_s = run.labels.iter().map(|label| label.seconds).sum();
    run
}

#[test]
fn runs_for_counts_confirm_laws_or_refute_them() {
    let exchange = |extra: f64| {
        let mut runs = DOUBLINGS.map(|p| counted_at(p, 0.0)).to_vec();
        // Its times are those of ranks that share cores.
        let mut at_128 = RunLabels { counts_only: true, ..counted_at(128.0, extra) };
        at_128.labels.iter_mut().for_each(|label| label.seconds *= 50.0);
        at_128.tau_s *= 50.0;
        runs.push(at_128);
        let structure = Structure::new(runs, MachineTimes::default()).unwrap();
        assert_eq!(structure.held_back().p, 32);
        exchange(&structure, 1_024)
    };
    let confirmed = exchange(0.0);
    assert_eq!((confirmed.count, confirmed.count_law.as_deref()), (10_240.0, Some("10·p")));
    let each = confirmed.seconds / confirmed.count;
    assert!((each / 84e-6 - 1.0).abs() < 0.01, "{each}");
    assert_eq!(exchange(600.0).count_law, None);
}

/// An exchange with neighbours in three dimensions, which two ranks have in one, and of bytes that follow no law.
fn halo(p: f64, seconds_of: impl Fn(f64) -> f64) -> RunLabels {
    let mut run = stencil(p);
    let exchange = &mut run.labels[0];
    exchange.count = 24.0 * (p.log2() / 3.0).min(1.0);
    exchange.max_count = 24.0;
    exchange.bytes = if p as u32 % 3 == 1 { 400.0 } else { 100.0 };
    exchange.messages = 1.0;
    exchange.seconds = exchange.count * seconds_of(exchange.bytes);
    run.tau_s = run.labels.iter().map(|label| label.seconds).sum();
    run
}

#[test]
fn counts_that_have_settled_stay() {
    let runs = DOUBLINGS.map(|p| halo(p, message_s)).to_vec();
    let part = exchange(&Structure::new(runs, machine(None)).unwrap(), 256);
    assert_eq!(part.count, 24.0, "{part:?}");
}

#[test]
fn bytes_that_hardly_take_time_make_it_hardly_uncertain() {
    let width = |seconds_of: fn(f64) -> f64| {
        let runs = DOUBLINGS.map(|p| halo(p, seconds_of)).to_vec();
        exchange(&Structure::new(runs, MachineTimes::default()).unwrap(), 256).sd
    };
    let (latency, bandwidth) = (width(|bytes| 2e-3 + bytes * 1e-9), width(|bytes| bytes * 1e-5));
    assert!(latency < bandwidth / 3.0, "{latency} {bandwidth}");
}

/// Computation on hosts of sixteen cores, of which four take all that memory gives.
fn memory_bound(p: f64) -> RunLabels {
    let occupied = p.min(16.0);
    let mut run = stencil(p);
    let compute = &mut run.labels[2];
    compute.seconds *= (occupied / 4.0).max(1.0);
    compute.all_seconds *= (occupied / 4.0).max(1.0);
    run.per_host = occupied as u32;
    run.tau_s = run.labels.iter().map(|label| label.seconds).sum();
    run
}

#[test]
fn ranks_that_share_memory_count_where_they_fill_their_hosts() {
    let runs = DOUBLINGS.map(memory_bound).to_vec();
    let structure = Structure::new(runs, MachineTimes::default()).unwrap();
    let compute = |forecast: Forecast| {
        forecast.parts.into_iter().find(|part| part.name == "compute").unwrap().seconds
    };
    let (found, truth) = (compute(structure.at(256)), memory_bound(256.0).labels[2].seconds);
    assert!((found / truth - 1.0).abs() < 0.05, "{found}, not {truth}");
}

/// Steps of a millisecond, one in fifty of which something delays by another one: all ranks wait for the longest.
fn disturbed(p: f64) -> RunLabels {
    let (steps, delayed) = (100.0, 0.02);
    let longest = 1e-3 * (2.0 - (1.0f64 - delayed).powf(p));
    let compute = Label {
        all_count: steps * p,
        all_seconds: steps * p * 1e-3 * (1.0 + delayed),
        ranks: p,
        stretches: vec![(1e-3, steps * p * (1.0 - delayed)), (2e-3, steps * p * delayed)],
        ..label("compute", Kind::Computation, steps, steps * longest)
    };
    RunLabels { tau_s: compute.seconds, labels: vec![compute], ..stencil(p) }
}

#[test]
fn all_ranks_wait_for_the_longest_of_their_stretches() {
    let runs = |stretches: bool| {
        let mut runs = DOUBLINGS.map(disturbed).to_vec();
        let labels = runs.iter_mut().flat_map(|run| &mut run.labels);
        labels.filter(|_| !stretches).for_each(|label| label.stretches.clear());
        runs
    };
    let at_256 =
        |stretches| Structure::new(runs(stretches), MachineTimes::default()).unwrap().at(256).tau_s;
    let truth = disturbed(256.0).tau_s;
    let (found, by_terms) = (at_256(true), at_256(false));
    assert!((found / truth - 1.0).abs() < 0.03, "{found}, not {truth}");
    assert!((by_terms / truth - 1.0).abs() > 0.05, "{by_terms}");
}

/// Non-blocking messages both ways, of which the receives say no bytes, and which ask before they send.
fn both_ways(p: f64) -> RunLabels {
    let mut run = stencil(p);
    let exchange = &mut run.labels[0];
    (exchange.messages, exchange.bytes) = (2.0, 2_097_152.0 / p);
    exchange.seconds = 100.0 * message_s(exchange.bytes);
    run.tau_s = run.labels.iter().map(|label| label.seconds).sum();
    run
}

#[test]
fn what_is_received_while_something_is_sent_takes_no_time_of_its_own() {
    let runs = DOUBLINGS.map(both_ways).to_vec();
    let part = exchange(&Structure::new(runs, machine(None)).unwrap(), 256);
    let truth = both_ways(256.0).labels[0].seconds;
    assert!((part.seconds / truth - 1.0).abs() < 0.05, "{part:?}, not {truth}");
}

/// Ranks in groups of four, one of which does something else; two ranks are one group.
fn in_groups(p: f64) -> RunLabels {
    let mut run = stencil(p);
    let compute = &mut run.labels[2];
    let factor = if p < 4.0 { 1.5 } else { 1.0 };
    (compute.seconds, compute.all_seconds) = (factor / p, factor);
    run.tau_s = run.labels.iter().map(|label| label.seconds).sum();
    run
}

#[test]
fn a_law_that_all_but_the_smallest_run_meet_goes_before_one_of_two_terms() {
    let forecast =
        Structure::new(DOUBLINGS.map(in_groups).to_vec(), MachineTimes::default()).unwrap().at(256);
    let compute = forecast.parts.iter().find(|part| part.name == "compute").unwrap();
    near(compute.seconds, in_groups(256.0).labels[2].seconds);
}

#[test]
fn a_rule_is_not_followed_where_another_way_explains_all_runs() {
    // Broadcasts of 256 KiB down a binomial tree, for which MPICH's rule is another from eight members on.
    let broadcast = |p: f64| {
        let seconds = 10.0 * p.log2() * message_s(262_144.0);
        let label = Label {
            bytes: 262_144.0,
            all_bytes: 10.0 * 262_144.0,
            all_count: 10.0 * p,
            ranks: p,
            group: Some(Group { ranks: p, per_host: 1.0 }),
            ..label("broadcast", Kind::Collective(Pattern::FromRoot), 10.0, seconds)
        };
        RunLabels { labels: vec![label], tau_s: seconds, ..stencil(p) }
    };
    let runs = DOUBLINGS.map(broadcast).to_vec();
    let found = Structure::new(runs, machine(Some(Library::Mpich))).unwrap().at(256).tau_s;
    near(found, broadcast(256.0).tau_s);
}
