//! Times at problem sizes that were not measured.

use super::*;
use crate::models::structure::SizedRun;

const SIZES: [f64; 4] = [500.0, 1_000.0, 2_000.0, 4_000.0];

/// A stencil on a grid of N² points: its borders, of whole numbers of 8 bytes, and its points.
fn grid(p: f64, n: f64) -> RunLabels {
    let mut run = stencil(p);
    let bytes = 8.0 * (n / p.sqrt()).floor();
    let exchange = &mut run.labels[0];
    (exchange.bytes, exchange.all_bytes) = (bytes, bytes * exchange.all_count);
    exchange.seconds = 100.0 * (2.0 * 2e-6 + bytes * 1e-9);
    exchange.all_seconds = exchange.seconds * p;
    let compute = &mut run.labels[2];
    compute.seconds = n * n * 1e-7 / p;
    compute.all_seconds = compute.seconds * p;
    run.tau_s = run.labels.iter().map(|label| label.seconds).sum();
    run
}

fn runs(rank_counts: &[f64], sizes: &[f64]) -> Vec<SizedRun> {
    let at = |p: &f64| sizes.iter().map(|n| SizedRun { size: *n, run: grid(*p, *n) }).collect();
    let of: Vec<Vec<SizedRun>> = rank_counts.iter().map(at).collect();
    of.concat()
}

fn at(runs: Vec<SizedRun>, size: f64) -> Result<Structure, Abstains> {
    Structure::at_problem_size(runs, size, MachineTimes::default())
}

#[test]
fn a_larger_problem_on_more_ranks_is_predicted() {
    let structure = at(runs(&DOUBLINGS, &SIZES), 16_000.0).unwrap();
    let held_back = structure.held_back_size().unwrap();
    assert_eq!((held_back.p, held_back.measured_s), (32, grid(32.0, 4_000.0).tau_s));
    assert!(held_back.error() < 0.01, "{held_back:?}");
    for p in [16, 64, 1_024] {
        let (forecast, truth) = (structure.at(p), grid(f64::from(p), 16_000.0).tau_s);
        assert!((forecast.tau_s / truth - 1.0).abs() < 0.01, "{forecast:#?}, not {truth}");
        assert!(forecast.interval_s.0 < truth && truth < forecast.interval_s.1);
    }
    let part = exchange(&structure, 1_024);
    let laws = (part.count_law.as_deref(), part.bytes_law.as_deref());
    assert_eq!((part.bytes.round(), laws), (4_000.0, (Some("100"), Some("8·N/√p"))));
}

#[test]
fn intervals_are_wider_the_farther_the_problem_is_from_measured_ones() {
    let width = |size| {
        let (lo, hi) = at(runs(&DOUBLINGS, &SIZES), size).unwrap().at(64).interval_s;
        hi / lo
    };
    assert!(width(64_000.0) > width(16_000.0) && width(16_000.0) > width(3_000.0));
    assert!(width(50.0) > width(600.0));
}

#[test]
fn measured_runs_of_the_size_are_taken_as_they_are() {
    // 5,000 was measured at four of five rank counts, at which it takes twice as long.
    let mut all = runs(&DOUBLINGS, &SIZES);
    for p in [2.0, 4.0, 8.0, 16.0] {
        let mut run = grid(p, 5_000.0);
        run.labels.iter_mut().for_each(|label| label.seconds *= 2.0);
        run.tau_s *= 2.0;
        all.push(SizedRun { size: 5_000.0, run });
    }
    let structure = at(all, 5_000.0).unwrap();
    // So the fifth, which is continued from smaller problems, is half of what these say.
    assert!((structure.held_back().error() - 1.0).abs() < 0.05, "{:?}", structure.held_back());
}

#[test]
fn too_few_problem_sizes_or_rank_counts_are_refused() {
    let few = at(runs(&DOUBLINGS, &SIZES[..3]), 8_000.0);
    assert_eq!(few.err(), Some(Abstains::FewProblemSizes(3)));
    let few = at(runs(&DOUBLINGS[..4], &SIZES), 8_000.0);
    assert_eq!(few.err(), Some(Abstains::FewRankCounts(4)));
    assert_eq!(at(Vec::new(), 8_000.0).err(), Some(Abstains::FewProblemSizes(0)));
}
