use super::*;

fn points(
    rank_counts: &[f64],
    tau: impl Fn(f64) -> f64,
    mean: impl Fn(f64) -> f64,
) -> Vec<Measured> {
    let point = |p: &f64| Measured {
        p: *p,
        work: 1.0,
        tau_s: tau(*p),
        computation: Some(Computation { mean_s: mean(*p), max_s: Some(mean(*p)) }),
        lacks_cores: false,
    };
    rank_counts.iter().map(point).collect()
}

const SMALL: [f64; 5] = [2.0, 4.0, 8.0, 16.0, 32.0];

#[test]
fn predicts_overhead_that_grows_with_the_logarithm() {
    let tau = |p: f64| 10.0 / p + 0.05 * p.log2();
    let evidence = Evidence::fit(&points(&SMALL, tau, |p| 10.0 / p), None).unwrap();
    let forecast = evidence.at(1024.0, 1.0);
    let truth = tau(1024.0);
    assert!((forecast.tau_s / truth - 1.0).abs() < 0.1, "{forecast:?}, truth {truth}");
    assert!(forecast.lo_s <= truth && truth <= forecast.hi_s, "{forecast:?}, truth {truth}");
}

#[test]
fn no_time_is_negative_and_intervals_grow_with_the_distance() {
    // Three signed terms would extrapolate this curve below 0.
    let tau = |p: f64| 10.0 / p + 0.6 - 0.01 * p;
    let evidence = Evidence::fit(&points(&SMALL, tau, |p| 9.0 / p), None).unwrap();
    let mut width = 1.0;
    for p in [64.0, 256.0, 1024.0, 65536.0] {
        assert!(evidence.times(p, 1.0).iter().all(|time| *time > 0.0), "{p}");
        let forecast = evidence.at(p, 1.0);
        assert!(forecast.hi_s / forecast.lo_s > width, "{p}: {forecast:?}");
        width = forecast.hi_s / forecast.lo_s;
    }
    assert!(evidence.typical().iter().all(|(_, c)| *c >= 0.0));
}

#[test]
fn curves_that_fit_exactly_still_leave_room_for_a_slower_regime() {
    let weak = |p: &f64| Measured {
        p: *p,
        work: p / 2.0,
        tau_s: 2.0,
        computation: Some(Computation { mean_s: 2.0, max_s: Some(2.0) }),
        lacks_cores: false,
    };
    let points: Vec<Measured> = SMALL.iter().map(weak).collect();
    let forecast = Evidence::fit(&points, None).unwrap().at(256.0, 128.0);
    assert!((forecast.tau_s / 2.0 - 1.0).abs() < 0.02, "{forecast:?}");
    // A shared link that begins to bind made halos of experiments/simulated 1.5 times slower.
    assert!(forecast.hi_s > 1.5 * forecast.tau_s, "{forecast:?}");
    assert!(!forecast.is_too_wide(), "{forecast:?}");
}

#[test]
fn predicts_weak_scaling_with_its_work() {
    let mut all = points(&SMALL, |p| 2.0 + 0.01 * p.log2(), |_| 2.0);
    for point in &mut all {
        point.work = point.p / 2.0;
    }
    let forecast = Evidence::fit(&all, None).unwrap().at(1024.0, 512.0);
    assert!((forecast.tau_s / 2.1 - 1.0).abs() < 0.1, "{forecast:?}");
    assert!(forecast.lo_s < 2.1 && 2.1 < forecast.hi_s, "{forecast:?}");
}

#[test]
fn two_rank_counts_are_not_enough() {
    assert!(Evidence::fit(&points(&[1.0, 2.0], |p| 1.0 / p, |p| 0.9 / p), None).is_none());
}

fn times_only(rank_counts: &[f64], tau: impl Fn(f64) -> f64) -> Vec<Measured> {
    let point = |p: &f64| Measured {
        p: *p,
        work: 1.0,
        tau_s: tau(*p),
        computation: None,
        lacks_cores: false,
    };
    rank_counts.iter().map(point).collect()
}

#[test]
fn a_form_that_meets_all_points_to_their_digits_is_the_answer() {
    let rank_counts = [8.0, 16.0, 32.0, 64.0, 128.0];
    let tau = |p: f64| 4805.0 / p + 12.2 + 0.729 * p;
    let six_digits = |p: f64| format!("{:.3}", tau(p)).parse::<f64>().unwrap();
    for points in [times_only(&rank_counts, tau), times_only(&rank_counts, six_digits)] {
        let evidence = Evidence::fit(&points, None).unwrap();
        let shapes: Vec<Shape> = evidence.exact().unwrap().iter().map(|(of, _)| *of).collect();
        assert_eq!(shapes, [Shape::Shared, Shape::Constant, Shape::Linear]);
        let forecast = evidence.at(256.0, 1.0);
        assert!((forecast.tau_s / tau(256.0) - 1.0).abs() < 1e-4, "{forecast:?}");
        assert!(forecast.lo_s < tau(256.0) && tau(256.0) < forecast.hi_s, "{forecast:?}");
        assert_eq!(evidence.typical(), evidence.exact().unwrap());
    }
    // EigenExa's columns at one matrix size.
    let eigen = |p: f64| 90.0 / p + 7.0 / p.sqrt() + 0.2 * p.log2() + 1.5;
    let more = [4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
    let evidence = Evidence::fit(&times_only(&more, eigen), None).unwrap();
    assert!((evidence.at(1024.0, 1.0).tau_s / eigen(1024.0) - 1.0).abs() < 1e-6);
    // Noise of a tenth of a percent, and a term that no form has.
    let noisy = |p: f64| tau(p) * (1.0 + 1e-3 * (p * 7.0).sin());
    assert!(Evidence::fit(&times_only(&rank_counts, noisy), None).unwrap().exact().is_none());
    let other = |p: f64| tau(p) + 2.0 * p.log2() * p;
    assert!(Evidence::fit(&times_only(&rank_counts, other), None).unwrap().exact().is_none());
    // Three points say nothing about three terms.
    assert!(Evidence::fit(&times_only(&rank_counts[..3], tau), None).unwrap().exact().is_none());
}

#[test]
fn a_measured_time_that_all_curves_miss_is_in_the_interval_beyond_it() {
    let outlier = |p: f64| if p == 4.0 { 3.98 } else { 0.25 / p };
    let evidence = Evidence::fit(&times_only(&[1.0, 2.0, 4.0], outlier), None).unwrap();
    let found = evidence.contradictions();
    assert_eq!(found.iter().map(|of| (of.p, of.measured_s)).collect::<Vec<_>>(), [(4.0, 3.98)]);
    let forecast = evidence.at(8.0, 1.0);
    assert!(forecast.hi_s >= 3.98 && forecast.is_too_wide(), "{forecast:?}");
    // A step that the others explain contradicts nothing.
    let plain = Evidence::fit(&times_only(&SMALL, |p| 10.0 / p + 0.05 * p.log2()), None).unwrap();
    assert_eq!(plain.contradictions(), []);
}

#[test]
fn only_the_time_that_is_off_contradicts_the_others() {
    let slow = |p: f64| if p == 8.0 { 3.98 } else { 0.25 / p + 0.01 };
    let all = [1.0, 2.0, 4.0, 8.0, 16.0];
    let evidence = Evidence::fit(&times_only(&all, slow), None).unwrap();
    let found = evidence.contradictions();
    assert_eq!(found.iter().map(|of| (of.p, of.measured_s)).collect::<Vec<_>>(), [(8.0, 3.98)]);
    assert!(found[0].curves_s < 0.06, "{found:?}");
    // The interval includes that it happens again.
    let forecast = evidence.at(32.0, 1.0);
    assert!(forecast.lo_s < 0.03 && forecast.hi_s >= 3.98, "{forecast:?}");
}

#[test]
fn an_interval_keeps_to_what_measured_neighbours_allow() {
    // A step from 1 to 340 ms: no sum of terms has both.
    let step = |p: f64| if p < 4.0 { 0.0025 / p } else { 0.34 };
    let evidence = Evidence::fit(&times_only(&[1.0, 2.0, 4.0, 8.0], step), None).unwrap();
    let contradicted: Vec<f64> = evidence.contradictions().iter().map(|of| of.p).collect();
    let forecast = evidence.at(8.0, 1.0);
    let floor = 0.34 / 1.25;
    assert!(contradicted.contains(&8.0) || forecast.lo_s >= floor, "{forecast:?} {contradicted:?}");
    assert!(forecast.hi_s >= floor, "{forecast:?}");
}

#[test]
fn an_interval_widens_beyond_points_that_lacked_cores() {
    let tau = |p: f64| 10.0 / p + 0.3 * p.log2() + 0.2 * (p * 3.0).sin().abs();
    let points = times_only(&SMALL, tau);
    let mut lacking = points.clone();
    lacking[4].lacks_cores = true;
    let hi = |points: &[Measured]| Evidence::fit(points, None).unwrap().at(64.0, 1.0).hi_s;
    assert!(hi(&lacking) >= 2.0 * tau(32.0) && hi(&lacking) > hi(&points));
}
