//! Programs in which the first rank serves the others.

use super::*;

#[test]
fn what_one_rank_gives_out_is_divided_among_the_others() {
    // Tasks that hardly differ, each asked for by a message.
    let farm = |p: f64| {
        let tasks = 2_000.0 / (p - 1.0);
        let asked = Label { ranks: p - 1.0, ..label("recv", Kind::Messages, tasks, tasks * 1e-5) };
        let seconds = tasks * 1e-3 * (1.0 + 0.002 * (3.0 * p).sin());
        let work = Label {
            ranks: p - 1.0,
            all_count: 2_000.0,
            all_seconds: 2.0,
            ..label("task", Kind::Computation, tasks, seconds)
        };
        let labels = vec![asked, work];
        let tau_s = labels.iter().map(|label| label.seconds).sum();
        RunLabels { tau_s, labels, ..stencil(p) }
    };
    let structure = Structure::new(DOUBLINGS.map(farm).to_vec(), MachineTimes::default()).unwrap();
    let found = structure.at(256).tau_s;
    assert!((found / farm(256.0).tau_s - 1.0).abs() < 0.02, "{found}");
}

/// 2,000 tasks of 1 ms, for each of which the first rank is busy so long.
fn served(p: f64, each_s: f64) -> RunLabels {
    // The path meets more or fewer tasks than a rank has.
    let (own_s, tasks) = (2_000.0 * each_s + 1e-6 * p, 2_000.0 / (p - 1.0));
    let met = tasks * (1.0 + 0.3 * (3.0 * p).sin());
    let work = Label {
        ranks: p - 1.0,
        all_count: 2_000.0,
        all_seconds: 2.0,
        ..label("task", Kind::Computation, met, met * 1e-3)
    };
    let serves = Label {
        messages: 1.0,
        bytes: 8.0,
        all_count: 4_000.0,
        all_seconds: own_s,
        ..label("serve", Kind::Messages, 1.0, 1e-6)
    };
    let first_rank =
        FirstRank { busy_s: own_s, calls: 4_000.0, mean_calls_of_others: 4_000.0 / (p - 1.0) };
    let labels = vec![work, serves];
    let tau_s = (own_s.powi(6) + (2.0 / (p - 1.0)).powi(6)).powf(1.0 / 6.0);
    let mut run = RunLabels { tau_s, labels, first_rank, ..stencil(p) };
    // All labels explain the time.
    let seconds: f64 = run.labels.iter().map(|label| label.seconds).sum();
    run.labels.iter_mut().for_each(|label| label.seconds *= tau_s / seconds);
    run
}

#[test]
fn a_rank_that_will_be_busy_all_the_time_is_known_before_it_is() {
    // With 32 ranks it is busy for a third of the time, with 256 all the time.
    let runs = DOUBLINGS.map(|p| served(p, 1e-5)).to_vec();
    let structure = Structure::new(runs, MachineTimes::default()).unwrap();
    let forecast = structure.at(256);
    let truth = served(256.0, 1e-5).tau_s;
    assert!((forecast.tau_s / truth - 1.0).abs() < 0.05, "{forecast:#?}, not {truth}");
    let (lo, hi) = forecast.interval_s;
    assert!(lo < truth && truth < hi, "{forecast:?}");
    let largest = &forecast.parts[0];
    assert!(largest.name.contains("first rank") && largest.seconds > 0.9 * truth, "{largest:?}");
    let parts: f64 = forecast.parts.iter().map(|part| part.seconds).sum();
    assert!((parts / forecast.tau_s - 1.0).abs() < 1e-9);
}

#[test]
fn a_rank_that_calls_as_often_as_the_others_does_not_serve_them() {
    let as_often = |p: f64| {
        let first_rank = FirstRank { busy_s: 2.0, calls: 100.0, mean_calls_of_others: 90.0 };
        RunLabels { first_rank, ..stencil(p) }
    };
    let times =
        |runs: Vec<RunLabels>| Structure::new(runs, MachineTimes::default()).unwrap().at(256).tau_s;
    assert_eq!(times(DOUBLINGS.map(as_often).to_vec()), times(DOUBLINGS.map(stencil).to_vec()));
}
