//! Times made of the labels of known programs.

mod centre;
mod computation;
mod laws;
mod messages;
mod problem_size;
mod rules;

use super::basis::TERMS;
use super::labels::{FirstRank, Group, Kind, Label, Pattern, RunLabels, Spread};
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
        first_rank: FirstRank::default(),
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

fn machine(library: Option<Library>) -> MachineTimes {
    let sizes = (0..27).map(|power| 2f64.powi(power)).chain([32_767.0]);
    let other_host =
        MessageTimes::new(sizes.map(|bytes| message(bytes, message_s(bytes))).collect());
    MachineTimes { other_host, library, ..MachineTimes::default() }
}

fn near(found: f64, truth: f64) {
    assert!((found / truth - 1.0).abs() < 0.01, "{found}, not {truth}")
}

fn message_s(bytes: f64) -> f64 {
    bytes * 1e-9 + if bytes >= 32_768.0 { 2e-4 } else { 2e-6 }
}

fn exchange(structure: &Structure, p: u32) -> Part {
    structure.at(p).parts.into_iter().find(|of| of.name == "exchange").unwrap()
}

fn message(bytes: f64, seconds: f64) -> MessageTime {
    MessageTime { bytes, half_rtt_s: seconds, gap_s: seconds / 2.0 }
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

fn shape(members: f64, per_host: f64) -> Shape {
    Shape { members, per_host, groups: 1.0 }
}
