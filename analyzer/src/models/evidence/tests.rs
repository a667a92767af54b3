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
    };
    rank_counts.iter().map(point).collect()
}

const SMALL: [f64; 5] = [2.0, 4.0, 8.0, 16.0, 32.0];

#[test]
fn predicts_overhead_that_grows_with_the_logarithm() {
    let tau = |p: f64| 10.0 / p + 0.05 * p.log2();
    let evidence = Evidence::of(&points(&SMALL, tau, |p| 10.0 / p), None).unwrap();
    let forecast = evidence.at(1024.0, 1.0);
    let truth = tau(1024.0);
    assert!((forecast.tau_s / truth - 1.0).abs() < 0.1, "{forecast:?}, truth {truth}");
    assert!(forecast.lo_s <= truth && truth <= forecast.hi_s, "{forecast:?}, truth {truth}");
}

#[test]
fn no_time_is_negative_and_intervals_grow_with_the_distance() {
    // Three signed terms would extrapolate this curve below 0.
    let tau = |p: f64| 10.0 / p + 0.6 - 0.01 * p;
    let evidence = Evidence::of(&points(&SMALL, tau, |p| 9.0 / p), None).unwrap();
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
    };
    let points: Vec<Measured> = SMALL.iter().map(weak).collect();
    let forecast = Evidence::of(&points, None).unwrap().at(256.0, 128.0);
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
    let forecast = Evidence::of(&all, None).unwrap().at(1024.0, 512.0);
    assert!((forecast.tau_s / 2.1 - 1.0).abs() < 0.1, "{forecast:?}");
    assert!(forecast.lo_s < 2.1 && 2.1 < forecast.hi_s, "{forecast:?}");
}

#[test]
fn two_rank_counts_are_not_enough() {
    assert!(Evidence::of(&points(&[1.0, 2.0], |p| 1.0 / p, |p| 0.9 / p), None).is_none());
}
