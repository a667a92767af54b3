use super::*;

/// Exchanges of a pair whose parent is `offset` ticks ahead; the request takes `out` ticks and the
/// answer `back`.
fn trial(offset: i64, (out, back): (u64, u64), from: u64, count: u64) -> Vec<Exchange> {
    let exchange = |index: u64| {
        let sent = from + index * 10_000;
        Exchange(sent, (sent + out).wrapping_add_signed(offset), sent + out + back)
    };
    (0..count).map(exchange).collect()
}

fn stamps(offset: i64, ways: (u64, u64), boot_ids: [&str; 2]) -> Stamps {
    let host = |boot_id: &str| RankHost {
        host: format!("host-{boot_id}"),
        boot_id: boot_id.into(),
        ns_per_tick: 0.5,
    };
    let far = 5_000_000_000u64;
    // The parent uses the same two paths in reverse, with a clock that is `offset` ahead.
    let back = (ways.1, ways.0);
    let forward = (0..4).map(|n| trial(offset, ways, far + n * 4_000_000, 100)).collect();
    let reverse = (0..4)
        .map(|n| trial(-offset, back, (far + n * 4_000_000).wrapping_add_signed(offset), 100))
        .collect();
    Stamps {
        mpi: "Open MPI v4.1.4".into(),
        counter: "tsc".into(),
        rounds: 100,
        drift_s: 0.0,
        ranks: boot_ids.iter().map(|id| host(id)).collect(),
        pairs: vec![PairStamps {
            child: 1,
            parent: 0,
            forward: vec![forward],
            reverse: vec![reverse],
        }],
    }
}

#[test]
fn reports_errors_where_the_truth_is_known() {
    // 100 µs out and 20 µs back: an error of 40 µs, within a bound of 60 µs.
    let found = Calibration::new(&stamps(0, (200_000, 40_000), ["a", "a"]));
    let pair = &found.pairs[0];
    assert!(pair.truth_known);
    let trial = pair.trials[1];
    assert_eq!(trial.error_ns, Some(40_000.0));
    assert!((60_000.0..60_010.0).contains(&trial.bound_ns), "{trial:?}");
    // The same paths in reverse give the same wrong offset, so reversing does not help.
    assert_eq!((trial.forward_ns, trial.reverse_ns), (0.0, 0.0));
    assert_eq!(found.estimators.len(), ESTIMATORS.len() - 1, "none has 1000 exchanges");
    for estimator in &found.estimators {
        assert_eq!((estimator.max_ns, estimator.count), (40_000.0, 8), "{estimator:?}");
    }
}

#[test]
fn does_not_guess_an_unknown_truth() {
    let offset = -7_000_000_123;
    let found = Calibration::new(&stamps(offset, (600, 600), ["a", "b"]));
    let pair = &found.pairs[0];
    assert!(!pair.truth_known && pair.trials.iter().all(|trial| trial.error_ns.is_none()));
    assert_eq!(pair.reference_ns, offset as f64 * 0.5);
    assert!(found.estimators.is_empty());
}

#[test]
fn drift_is_the_slope_between_two_measurements() {
    let mut stamps = stamps(0, (600, 600), ["a", "b"]);
    let pair = &mut stamps.pairs[0];
    // 2 s later (4·10⁹ ticks) the parent is 8000 ticks ahead: 2 ppm.
    pair.forward.push(vec![trial(8000, (600, 600), 9_000_000_000, 100)]);
    pair.reverse.push(vec![trial(-8000, (600, 600), 9_000_008_000, 100)]);
    let found = Calibration::new(&stamps);
    let (ppm, bound) = (found.pairs[0].drift_ppm.unwrap(), found.pairs[0].drift_bound_ppm.unwrap());
    assert!((ppm - 2.0).abs() < 0.001 && bound < 0.5, "{ppm} {bound}");
}

#[test]
fn counts_every_round_trip_once() {
    let found = Calibration::new(&stamps(0, (600, 600), ["a", "a"]));
    let trips = &found.pairs[0].round_trips;
    assert_eq!(trips.count, 800);
    assert_eq!(trips.bins.iter().map(|bin| bin.2).sum::<u64>(), 800);
    assert_eq!((trips.min_ns, trips.max_ns), (600.0, 600.0));
}

#[test]
fn finds_stamps_among_other_output_and_checks_them() {
    let line = r#"{"kernel":"clock","mpi":"m","counter":"tsc","rounds":1,"trials":1,"drift_s":0.0,
        "ranks":[{"host":"a","boot_id":"x","ns_per_tick":0.5}],"pairs":[]}"#
        .replace('\n', "");
    let parsed = Stamps::parse(&format!("a banner\n{line}\nbye\n")).unwrap();
    assert_eq!(parsed.ranks.len(), 1);
    assert!(Stamps::parse("nothing").unwrap_err().to_string().contains("no stamps"));
    assert!(
        Stamps::parse(&line.replace("0.5", "0.0")).unwrap_err().to_string().contains("frequency")
    );
    let pair = r#""pairs":[{"child":5,"parent":0,"forward":[],"reverse":[]}]"#;
    assert!(
        Stamps::parse(&line.replace(r#""pairs":[]"#, pair))
            .unwrap_err()
            .to_string()
            .contains("ranks")
    );
}
