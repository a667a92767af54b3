use super::cannon::{BlockProduct, Model, logp_one_message, logp_one_word, logpq};
use super::*;
use crate::models::machine::tests::machine;

/// CM-5: N, t_c, then the times by LogP with one message, LogP with one word, and LogPQ.
pub const CM5: [[f64; 5]; 8] = [
    [8.0, 0.00128784, 0.00675984, 0.0017016, 0.00480896],
    [16.0, 0.00162272, 0.00709472, 0.00314592, 0.00533024],
    [32.0, 0.00430176, 0.00977376, 0.0103946, 0.00977184],
    [64.0, 0.0257341, 0.0312061, 0.0501053, 0.0382544],
    [128.0, 0.197193, 0.202665, 0.294677, 0.237914],
    [256.0, 1.56886, 1.57433, 1.9588, 1.72239],
    [512.0, 12.5422, 12.5477, 14.102, 13.1469],
    [1024.0, 100.329, 100.334, 106.568, 102.739],
];

#[test]
fn reproduces_the_published_times_on_the_cm5() {
    let parameters = Parameters::cm5();
    for [n, t_c, one_message, one_word, logpq] in CM5 {
        let t_m = BlockProduct::CM5.seconds(n / 8.0);
        assert!((8.0 * t_m / t_c - 1.0).abs() < 5e-6, "N={n}");
        let expected = [one_message, one_word, logpq];
        for (model, expected) in Model::ALL.into_iter().zip(expected) {
            let found = model.product_s(&parameters, 8, n as u64, t_m).unwrap();
            assert!((found / expected - 1.0).abs() < 5e-6, "N={n} {}: {found}", model.name());
        }
        assert_eq!(Model::AllSizes.product_s(&parameters, 8, n as u64, t_m), None);
    }
}

#[test]
fn printed_logpq_follows_from_printed_logp_at_sixteen_words() {
    let cm5 = Parameters::cm5();
    let by_2 = LogPq::from_message(&cm5.message, cm5.logpq.fixed, 16.0);
    for (found, printed) in [
        (by_2.latency, cm5.logpq.latency),
        (by_2.overhead, cm5.logpq.overhead),
        (by_2.gap, cm5.logpq.gap),
    ] {
        assert!((found.value / printed.value - 1.0).abs() < 2e-3, "{found:?} {printed:?}");
    }
}

#[test]
fn equation_1_converts_the_link_of_one_word() {
    let link = Parameters::cm5().one_word;
    let same = LogPq::from_link(&link, 1.0);
    assert_eq!(same.latency.value, 1.77e-4 + 1.19e-5);
    assert_eq!((same.overhead.value, same.gap.value, same.fixed.value), (1.19e-5, 3.44e-6, 0.0));
    // A 64-bit word over a 16-bit channel takes four gaps, three beyond the first.
    let four = LogPq::from_link(&link, 4.0);
    assert!((four.latency.value - (1.77e-4 + 1.19e-5 + 3.0 * 3.44e-6)).abs() < 1e-18);
    assert!((four.overhead.value - (1.19e-5 + 3.0 * 3.44e-6)).abs() < 1e-18);
    assert!((four.gap.value - 4.0 * 3.44e-6).abs() < 1e-18);
}

#[test]
fn formulas_are_continuous_where_latency_begins_to_be_hidden() {
    let cm5 = Parameters::cm5();
    for w in [1.0, 4.0, 16.0, 21.0] {
        let slower = 1.19e-5;
        let thresholds: [(f64, &dyn Fn(f64) -> f64); 3] = [
            (1.25e-4, &|t_m| logp_one_message(&cm5.message, t_m)),
            (1.77e-4 - (2.0 * w - 1.0) * slower, &|t_m| logp_one_word(&cm5.one_word, w, t_m)),
            (2.96e-4 + (2.0 * w - 1.0) * 3.44e-6 - 2.0 * w * 4.59e-6 - 9.75e-5, &|t_m| {
                logpq(&cm5.logpq, w, t_m)
            }),
        ];
        for (t_m, formula) in thresholds.into_iter().filter(|(t_m, _)| *t_m > 0.0) {
            let (below, at, above) =
                (formula(t_m * (1.0 - 1e-9)), formula(t_m), formula(t_m * (1.0 + 1e-9)));
            assert!((below - at).abs() < 1e-12 && (above - at).abs() < 1e-12, "w={w}");
            // Below the threshold, each second less of computation adds one of communication.
            assert!((formula(t_m * 0.5) - at - t_m * 0.5).abs() < 1e-12);
            assert_eq!(formula(t_m * 2.0), above);
        }
    }
}

#[test]
fn derives_parameters_from_a_measured_machine() {
    let machine = machine();
    let class = machine.network.class("same-host").unwrap();
    let parameters = Parameters::new(class, 2.4e9, 8, 8, 1.0);
    let at = |bytes: f64| 1e-6 + 1e-9 * bytes;
    let close = |found: Estimate, expected: f64| {
        assert!((found.value / expected - 1.0).abs() < 1e-9, "{found:?} {expected}");
        assert!(found.half_width > 0.0);
    };
    close(parameters.message.latency, 0.5 * at(64.0));
    close(parameters.message.overhead, 0.25 * at(64.0));
    close(parameters.message.gap, 0.8 * at(64.0));
    close(parameters.one_word.overhead, 0.25 * at(8.0));
    close(parameters.logpq.latency, 0.75 * at(64.0));
    close(parameters.logpq.fixed, 0.25e-6);
    close(parameters.logpq.overhead, 0.25e-9 * 8.0);
    close(parameters.logpq.gap, 0.8 * at(64.0) / 8.0);
    assert!(parameters.notes.is_empty(), "{:?}", parameters.notes);

    let mut noisy = class.clone();
    let latency = &mut noisy.sizes[0].latency_s;
    (latency.median, latency.low, latency.high) = (-1e-7, -2e-7, 1e-8);
    let parameters = Parameters::new(&noisy, 2.4e9, 1, 8, 1.0);
    assert_eq!(parameters.one_word.latency.value, 0.0);
    assert!(
        matches!(parameters.notes[0], ParameterNote::NoLatency { words: 1, .. }),
        "{:?}",
        parameters.notes
    );
}

#[test]
fn fits_both_parts_of_a_block_product() {
    let points: Vec<(f64, f64)> =
        [1.0, 4.0, 16.0, 64.0].map(|l| (l, BlockProduct::CM5.seconds(l))).into();
    let fit = BlockProduct::fit(&points).unwrap();
    assert!((fit.fixed_s / 1.55e-4 - 1.0).abs() < 1e-6, "{fit:?}");
    assert!((fit.multiply_s / 5.98e-6 - 1.0).abs() < 1e-6, "{fit:?}");
    // One point cannot separate the two parts, and neither part becomes negative.
    assert_eq!(BlockProduct::fit(&[(10.0, 1e-3)]).unwrap().fixed_s, 0.0);
    let bent = BlockProduct::fit(&[(10.0, 1e-3), (20.0, 1e-2)]).unwrap();
    assert!(bent.fixed_s >= 0.0 && bent.multiply_s > 0.0);
    assert_eq!(BlockProduct::fit(&[]), None);
}
