//! Checks that results do not depend on units, on the order of rows and columns, or on the solver's
//! choice among equal optima.

use super::*;

/// A small EigenExa with 3 % noise.
fn noisy(seed: u64) -> (Points, Basis) {
    let basis = Basis::parse("N^3/p, N^2/p, N^2/sqrt(p), N, 1, log2(p)").expect("it is one");
    let grid = grid(&[("p", &[16.0, 64.0, 256.0, 1024.0]), ("N", &[1e4, 2e4, 3e4])], &[("s", 1.0)]);
    let mut points = timed(grid, &basis, &[1.6e-11, 3e-7, 4e-8, 2e-4, 0.1, 0.0]);
    let mut random = fastrand::Rng::with_seed(seed);
    points.times.iter_mut().for_each(|time| *time *= 1.0 + 0.03 * normal(&mut random));
    (points, basis)
}

fn assert_same(a: &[f64], b: &[f64], factor: f64, what: &str) {
    for (a, b) in a.iter().zip(b) {
        assert!((a * factor / b - 1.0).abs() < 1e-5, "{what}: {a} times {factor} is not {b}");
    }
}

#[test]
fn units_and_order_change_no_prediction() {
    let at = grid(&[("p", &[4096.0, 16384.0]), ("N", &[5e4, 1e5])], &[("s", 1.0)]);
    for seed in 0..5 {
        let (points, basis) = noisy(seed);
        // The coefficients absorb the factors.
        let scaled =
            Basis::parse("N^3/p*3e9, N^2/p, N^2/sqrt(p)/7e5, N, 1, log2(p)").expect("it is");
        let turned = Basis::parse("log2(p), 1, N, N^2/sqrt(p), N^2/p, N^3/p").expect("it is one");
        let mut milliseconds = points.clone();
        milliseconds.times.iter_mut().for_each(|time| *time *= 1000.0);
        let mut order: Vec<usize> = (0..points.len()).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        let shuffled = points.select(&order);
        for method in Method::ALL {
            let name = method.name();
            let plain = predict(&fit(&points, &basis, method), method, &at);
            let other = predict(&fit(&points, &scaled, method), method, &at);
            assert_same(&plain, &other, 1.0, &format!("{name}, columns scaled"));
            let other = predict(&fit(&milliseconds, &basis, method), method, &at);
            assert_same(&plain, &other, 1000.0, &format!("{name}, times scaled"));
            let other = predict(&fit(&points, &turned, method), method, &at);
            assert_same(&plain, &other, 1.0, &format!("{name}, columns in another order"));
            let other = predict(&fit(&shuffled, &basis, method), method, &at);
            assert_eq!(plain, other, "{name}, rows shuffled");
        }
    }
}

#[test]
fn intervals_are_reproducible_by_seed() {
    let (points, basis) = noisy(1);
    let at = grid(&[("p", &[16384.0]), ("N", &[1e5])], &[("s", 1.0)]);
    let interval = |seed| {
        let options = Options { seed, replicas: 100, ..Options::for_method(Method::Robust) };
        let part = Part::fit(&points, &basis, &options, "test").expect("it can be fitted");
        let found = Model::from_part(part, Method::Robust).predict(&at).expect("it has a value");
        (
            found[0].lo.expect("an end"),
            found[0].value.expect("a time"),
            found[0].hi.expect("an end"),
        )
    };
    let (lo, value, hi) = interval(1);
    assert_eq!((lo, value, hi), interval(1));
    assert_ne!(lo, interval(2).0);
    assert!(lo < value && value < hi && lo > 0.5 * value && hi < 2.0 * value, "{lo} {value} {hi}");
}

#[test]
fn outliers_hardly_change_the_default_method() {
    let (mut points, basis) = noisy(3);
    let at = grid(&[("p", &[4096.0]), ("N", &[1e5])], &[("s", 1.0)]);
    let before = predict(&fit(&points, &basis, Method::Robust), Method::Robust, &at)[0];
    points.times[5] *= 1.5;
    let after = predict(&fit(&points, &basis, Method::Robust), Method::Robust, &at)[0];
    let minimax = predict(&fit(&points, &basis, Method::Minimax), Method::Minimax, &at)[0];
    assert!((after / before - 1.0).abs() < 0.1, "{before} became {after}");
    assert!((minimax / before - 1.0).abs() > (after / before - 1.0).abs());
}
