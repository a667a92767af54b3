//! What messages take.

use super::*;

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

/// Exchanges that ask before they send from 32 KiB on, so that runs never show what is below.
fn asking(p: f64) -> RunLabels {
    let mut run = stencil(p);
    let bytes = 1_048_576.0 / p;
    run.labels[0].bytes = 2.0 * bytes;
    run.labels[0].seconds = 100.0 * 2.0 * message_s(bytes);
    run.tau_s = run.labels.iter().map(|label| label.seconds).sum();
    run
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

#[test]
fn bytes_that_hardly_take_time_make_it_hardly_uncertain() {
    let width = |seconds_of: fn(f64) -> f64| {
        let runs = DOUBLINGS.map(|p| halo(p, seconds_of)).to_vec();
        exchange(&Structure::new(runs, MachineTimes::default()).unwrap(), 256).sd
    };
    let (latency, bandwidth) = (width(|bytes| 2e-3 + bytes * 1e-9), width(|bytes| bytes * 1e-5));
    assert!(latency < bandwidth / 3.0, "{latency} {bandwidth}");
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

#[test]
fn a_communicator_of_each_host_is_the_same_before_there_are_two() {
    let with_gather = |p: f64| {
        let mut run = stencil(p);
        let on_host = p.min(16.0);
        let gather = Label {
            bytes: 24.0,
            all_bytes: 2_400.0 * p,
            all_count: 100.0 * p,
            ranks: p,
            group: Some(Group { ranks: on_host, per_host: on_host }),
            spread: if p > 16.0 { Spread::Neighbours } else { Spread::All },
            ..label("gather", Kind::Collective(Pattern::ToRoot), 100.0, 1e-4 * (on_host - 1.0))
        };
        run.per_host = on_host as u32;
        run.tau_s += gather.seconds;
        run.labels.push(gather);
        run
    };
    let structure =
        Structure::new(DOUBLINGS.map(with_gather).to_vec(), MachineTimes::default()).unwrap();
    let parts = structure.at(256).parts;
    let gathers: Vec<f64> =
        parts.iter().filter(|of| of.name == "gather").map(|of| of.seconds).collect();
    assert_eq!(gathers.len(), 1);
    assert!((gathers[0] / 15e-4 - 1.0).abs() < 0.05, "{gathers:?}");
}
