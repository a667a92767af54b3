//! Counts and sizes of known programs.

use super::*;

fn law(p: &[f64], of: impl Fn(f64) -> f64, tolerance: Tolerance) -> Option<Law> {
    let values: Vec<f64> = p.iter().map(|p| of(*p)).collect();
    Law::of(Series { p, values: &values, per_host: 4.0, terms: &TERMS }, tolerance)
}

/// Asserts that a count is continued right to the call.
fn continues(p: &[f64], of: impl Fn(f64) -> f64) {
    let law = law(p, &of, Tolerance::Count).unwrap();
    for asked in [64.0, 256.0, 1_024.0] {
        let found = law.at(asked).unwrap();
        assert!((found - of(asked)).abs() < 1e-3, "{found} at {asked}: {}", law.text());
    }
}

#[test]
fn counts_of_known_programs_are_continued_to_the_call() {
    // Steps of a broadcast tree, shifts of Cannon's algorithm, rounds of a ring, and a halo.
    continues(&DOUBLINGS, |p| 12.0 * p.log2());
    continues(&SQUARES, |p| 2.0 * p.sqrt() + 2.0);
    continues(&DOUBLINGS, |p| 10.0 * (p - 1.0));
    continues(&SQUARES, |_| 400.0);
    // Messages of a wavefront over a square grid.
    continues(&SQUARES, |p| 64.0 * (p - p.sqrt()));
}

#[test]
fn sizes_of_known_programs_are_continued() {
    // Sides of a halo, blocks of a transpose, and blocks that are not all of one size.
    for (p, of) in [
        (SQUARES, (|p: f64| 8.0 * 7_200.0 / p.sqrt()) as fn(f64) -> f64),
        (DOUBLINGS, |p| 1e9 / (p * p)),
        (DOUBLINGS, |p| (1e8 / p).round() + 0.5),
    ] {
        let law = law(&p, of, Tolerance::Bytes).unwrap();
        let found = law.at(256.0).unwrap();
        assert!((found / of(256.0) - 1.0).abs() < 1e-3, "{found}, not {}", of(256.0));
    }
}

#[test]
fn sizes_may_be_rounded_to_whole_elements() {
    let of_elements = |p: f64| 8.0 * (8_192.0 / p.sqrt()).floor();
    let found = law(&SQUARES, of_elements, Tolerance::Bytes).unwrap();
    assert!((found.at(256.0).unwrap() - 4_096.0).abs() < 1.0, "{}", found.text());
    // Of few elements the rounding is most of what there is.
    assert!(law(&SQUARES, |p| 8.0 * (40.0 / p.sqrt()).floor(), Tolerance::Bytes).is_none());
}

#[test]
fn what_one_run_contradicts_is_no_law() {
    let off = |p: f64| if p == 16.0 { 161.0 } else { 10.0 * p };
    assert!(law(&DOUBLINGS, off, Tolerance::Count).is_none());
    // A coefficient and its term fit any two runs, two of each any four.
    assert!(law(&DOUBLINGS[..2], |p| 3.0 * p, Tolerance::Count).is_none());
    assert!(law(&DOUBLINGS[..4], |p| 2.0 * p + 3.0 * p.sqrt(), Tolerance::Count).is_none());
}

#[test]
fn laws_that_differ_elsewhere_are_doubted() {
    // Powers of 4 do not tell the side of a square grid from the root.
    let law = law(&[4.0, 16.0, 64.0], |p| 5.0 * p.sqrt(), Tolerance::Count).unwrap();
    assert_eq!(law.text(), "5·√p");
    assert!((law.doubt(256.0) - 1.0).abs() < 1e-9);
    assert!(law.doubt(512.0) > 1.4);
}

/// Exchanges 10·p times; `extra` more in the run for counts.
fn counted_at(p: f64, extra: f64) -> RunLabels {
    let mut run = stencil(p);
    let exchange = &mut run.labels[0];
    exchange.count = 10.0 * p + extra;
    exchange.all_count = exchange.count * p;
    exchange.all_bytes = exchange.bytes * exchange.all_count;
    exchange.max_count = exchange.count;
    exchange.seconds = 84e-6 * exchange.count;
    run.tau_s = run.labels.iter().map(|label| label.seconds).sum();
    run
}

#[test]
fn runs_for_counts_confirm_laws_or_refute_them() {
    let exchange = |extra: f64| {
        let mut runs = DOUBLINGS.map(|p| counted_at(p, 0.0)).to_vec();
        // Its times are those of ranks that share cores.
        let mut at_128 = RunLabels { counts_only: true, ..counted_at(128.0, extra) };
        at_128.labels.iter_mut().for_each(|label| label.seconds *= 50.0);
        at_128.tau_s *= 50.0;
        runs.push(at_128);
        let structure = Structure::new(runs, MachineTimes::default()).unwrap();
        assert_eq!(structure.held_back().p, 32);
        exchange(&structure, 1_024)
    };
    let confirmed = exchange(0.0);
    assert_eq!((confirmed.count, confirmed.count_law.as_deref()), (10_240.0, Some("10·p")));
    let each = confirmed.seconds / confirmed.count;
    assert!((each / 84e-6 - 1.0).abs() < 0.01, "{each}");
    assert_eq!(exchange(600.0).count_law, None);
}

#[test]
fn counts_that_have_settled_stay() {
    let runs = DOUBLINGS.map(|p| halo(p, message_s)).to_vec();
    let part = exchange(&Structure::new(runs, machine(None)).unwrap(), 256);
    assert_eq!(part.count, 24.0, "{part:?}");
}

/// Levels of a search that exchange few or many bytes: `levels(p)` of them.
fn search(p: f64, levels: usize) -> RunLabels {
    let of_level = |level: usize| {
        let bytes = 1e6 * 10f64.powi(level as i32) / p;
        let seconds = message_s(bytes) * p.log2();
        Label {
            bytes,
            all_bytes: p * bytes,
            all_count: p,
            group: Some(Group { ranks: p, per_host: 1.0 }),
            ..label("sum", Kind::Collective(Pattern::Combine), 1.0, seconds)
        }
    };
    let by_size: Vec<Label> = (0..levels).map(of_level).collect();
    let mut sum = by_size[0].clone();
    by_size[1..].iter().for_each(|of| sum.join(of));
    let tau_s = sum.seconds;
    RunLabels { labels: vec![Label { by_size, ..sum }], tau_s, ..stencil(p) }
}

#[test]
fn sizes_are_continued_each_by_itself_where_runs_have_the_same() {
    let forecast = |levels: fn(f64) -> usize| {
        let runs = DOUBLINGS.map(|p| search(p, levels(p))).to_vec();
        Structure::new(runs, MachineTimes::default()).unwrap().at(64)
    };
    let three = forecast(|_| 3);
    let laws: Vec<_> = three.parts.iter().filter_map(|part| part.bytes_law.as_deref()).collect();
    assert_eq!(laws, ["100000000·1/p", "10000000·1/p", "1000000·1/p"]);
    let more_and_more = forecast(|p| 1 + p.log2() as usize);
    assert_eq!(more_and_more.parts.len(), 1);
}

/// A pipeline whose path meets one place or the other, as ranks happen to be late.
fn pipeline(p: f64) -> RunLabels {
    let all = 11.0 + 2.0 * p.sqrt();
    let one = if p == 16.0 || p == 36.0 { all - 1.0 } else { 5.0 };
    let stretches = [("one", one), ("other", all - one)];
    let labels =
        stretches.map(|(name, count)| label(name, Kind::Computation, count, count * 1e-3 / p));
    RunLabels { tau_s: all * 1e-3 / p, labels: labels.to_vec(), ..stencil(p) }
}

#[test]
fn places_that_the_path_meets_in_turn_are_continued_together() {
    let runs = SQUARES.map(pipeline).to_vec();
    let forecast = Structure::new(runs, MachineTimes::default()).unwrap().at(256);
    assert_eq!(forecast.parts.len(), 1, "{forecast:?}");
    let part = &forecast.parts[0];
    assert_eq!(part.count_law.as_deref(), Some("11 + 2·√p"), "{part:?}");
    assert!(part.name == "one, other" || part.name == "other, one", "{part:?}");
    assert!((forecast.tau_s / pipeline(256.0).tau_s - 1.0).abs() < 0.01, "{forecast:?}");
}

#[test]
fn a_step_in_one_run_is_no_law() {
    // Ranks on one host, but for the last run.
    let hosts = |p: f64| if p > 16.0 { 24.0 } else { 12.0 };
    assert!(law(&DOUBLINGS, hosts, Tolerance::Count).is_none());
    // Two steps are.
    assert!(law(&DOUBLINGS, |p| 12.0 * (p / 4.0).ceil(), Tolerance::Count).is_some());
}
