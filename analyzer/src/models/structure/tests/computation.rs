//! How long stretches of computation take.

use super::*;

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

/// Rounds that become more from run to run, among which the same work, a little uneven, is divided.
fn divided(p: f64) -> RunLabels {
    let rounds = if p < 16.0 { 7.0 } else { 11.0 };
    let work = 1.0 + 0.02 * (3.0 * p).sin();
    let compute = Label {
        all_count: rounds * p,
        all_seconds: work,
        ranks: p,
        ..label("compute", Kind::Computation, rounds, work / p)
    };
    RunLabels { tau_s: compute.seconds, labels: vec![compute], ..stencil(p) }
}

#[test]
fn work_is_divided_among_as_many_stretches_as_there_are() {
    let forecast =
        Structure::new(DOUBLINGS.map(divided).to_vec(), MachineTimes::default()).unwrap().at(64);
    let truth = divided(64.0).tau_s;
    assert!((forecast.tau_s / truth - 1.0).abs() < 0.05, "{}, not {truth}", forecast.tau_s);
}

#[test]
fn small_counts_that_a_pair_of_terms_meets_by_chance_have_no_law() {
    // 16·log₂p/p − 12/d₀, which is nothing at 64.
    let met = [2.0, 2.0, 3.0, 1.0, 1.0];
    let run = |(p, met): (f64, f64)| {
        let compute = Label {
            all_count: 2.0 * met * p,
            all_seconds: 2.0 * met * p * 1e-3 * (1.0 + 0.01 * (3.0 * p).sin()),
            ranks: p,
            ..label("compute", Kind::Computation, met, met * 1e-3)
        };
        RunLabels { tau_s: compute.seconds, labels: vec![compute], ..stencil(p) }
    };
    let runs = DOUBLINGS.into_iter().zip(met).map(run).collect();
    let forecast = Structure::new(runs, MachineTimes::default()).unwrap().at(64);
    assert_eq!(forecast.parts[0].count_law, None);
    assert!((1e-4..4e-3).contains(&forecast.tau_s), "{forecast:?}");
}
