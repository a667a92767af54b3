//! The function in which a delaying rank takes longer is named, and none where chance may explain it.

use std::collections::BTreeMap;

use super::*;
use crate::diagnosis::finding::Delay;
use crate::metrics::code::{Code, CodeMetrics, CodeRow};
use crate::synthetic_code::{FUNCTIONS, Library, sampled};
use crate::trace::symbols::SourceLocation;

const MS: u64 = 1_000_000;

/// How many ns ranks are in each function in each turn.
type Work = Vec<Vec<[u64; FUNCTIONS]>>;

/// Work of ranks in turns, in which every function takes as long as on all others but for noise.
fn even_work((ranks, turns): (usize, usize), random: &mut fastrand::Rng, noise: u64) -> Work {
    let usual = [45, 30, 20, 5].map(|ms| ms * MS);
    let mut turn = || usual.map(|ns| ns - noise / 2 + random.u64(0..=noise));
    (0..ranks).map(|_| (0..turns).map(|_| turn()).collect()).collect()
}

/// Ranks with this work, whose functions are at multiples of 4096.
fn ranks(seed: u64, work: &Work) -> Vec<SyntheticRank> {
    let functions = [1, 2, 3, 4].map(|number| number << 12);
    let library = Library { path: "code".into(), build_id: String::new(), functions };
    sampled(&library, seed, work)
}

/// Passes on what is known of a selected part of a run of these ranks.
fn with_evidence<T>(
    ranks: &[SyntheticRank],
    selection: &Selection,
    then: impl FnOnce(Evidence) -> T,
) -> T {
    let directory = RunDirectory::with_ranks(ranks);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let mut metrics = Metrics::new(&run, &timeline, selection).unwrap();
    let analysis = Analysis::new(&run, &timeline);
    let mut names = |_: &str, _: &str, address: u64| {
        let (function, file) =
            (Some(name_of((address >> 12) as usize - 1)), Some("a.c".to_owned()));
        vec![SourceLocation { function, file, line: Some(7) }]
    };
    let selected = (&metrics.stretches[..], *selection == Selection::Whole);
    metrics.code = CodeMetrics::with_names(&analysis, selected, &mut names);
    let causes = Causes::new(&analysis);
    let of = Evidence::of_metrics(&run, &timeline, &metrics);
    then(Evidence { causes: Some(&causes), ..of })
}

/// The costliest delay in ranks with this work.
fn delay_of(seed: u64, work: &Work) -> Option<Delay> {
    with_evidence(&ranks(seed, work), &Selection::Whole, |of| {
        let findings = Diagnosis::new(of).findings;
        findings.into_iter().find_map(|finding| match finding {
            Finding::Delay(delay) => Some(delay),
            _ => None,
        })
    })
}

fn name_of(function: usize) -> String {
    ["smooth", "residual_norm", "pack", "iterate"][function].to_owned()
}

#[test]
fn function_that_takes_longer_on_the_delaying_rank_is_named() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (ranks, function) = ([2, 4, 8][random.usize(0..3)], random.usize(0..3));
        let late = random.usize(0..ranks);
        let mut work = even_work((ranks, 50), &mut random, 2 * MS);
        work[late].iter_mut().for_each(|turn| turn[function] += 30 * MS);
        let delay = delay_of(seed, &work).expect("a rank is late");
        assert_eq!(delay.rank as usize, late);
        let longer = delay.function.expect("it is longer in one function alone");
        assert_eq!(longer.function, name_of(function), "seed {seed}: {longer:?}");
        let off = (longer.longer_s - 1.5) / longer.error_s;
        let is_right = off.abs() < 4.0 && (0.5..=1.0).contains(&longer.part);
        assert!(is_right && longer.line == Some(7), "seed {seed}: {longer:?}");
    }
}

#[test]
fn no_function_is_named_where_ranks_are_equal() {
    let (mut delays, mut named) = (0, 0);
    for seed in 0..100 {
        let mut random = fastrand::Rng::with_seed(1_000 + seed);
        let size = (random.usize(2..=4), random.usize(20..80));
        let work = even_work(size, &mut random, 8 * MS);
        let Some(delay) = delay_of(seed, &work) else { continue };
        delays += 1;
        named += u32::from(delay.function.is_some());
    }
    assert!(delays >= 50 && named * 100 <= delays, "{named} of {delays} delays are named");
}

#[test]
fn what_is_longer_everywhere_is_in_the_function_that_calls_all() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut work = even_work((4, 60), &mut random, 0);
    work[1].iter_mut().for_each(|turn| (0..3).for_each(|of| turn[of] += 12 * MS));
    let longer = delay_of(1, &work).expect("rank 1 is late").function;
    assert_eq!(longer.map(|of| of.function), Some(name_of(3)));
}

#[test]
fn what_was_sampled_too_seldom_has_no_name() {
    // Once, for six periods of the timer.
    let mut work = even_work((4, 4), &mut fastrand::Rng::with_seed(7), 0);
    work[1][2][0] += 60 * MS;
    assert_eq!(delay_of(2, &work).expect("rank 1 is late").function, None);
}

#[test]
fn what_is_longer_in_turn_has_no_name() {
    let mut delays = 0;
    for seed in 0..30 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut turn = || {
            let times = 0.5 + random.f64();
            [45, 30, 20, 5].map(|ms| (times * (ms * MS) as f64) as u64)
        };
        let work: Work = (0..2).map(|_| (0..400).map(|_| turn()).collect()).collect();
        let Some(delay) = delay_of(seed, &work) else { continue };
        delays += 1;
        assert_eq!(delay.function, None, "seed {seed}");
    }
    assert!(delays >= 20, "{delays}");
}

#[test]
fn what_is_much_longer_once_is_named() {
    let mut random = fastrand::Rng::with_seed(3);
    let mut work = even_work((4, 300), &mut random, MS);
    work[2][100][1] += 3_000 * MS;
    let delay = delay_of(3, &work).expect("rank 2 is late");
    assert_eq!(delay.function.map(|of| of.function), Some(name_of(1)));
}

/// Functions by name with their own seconds.
fn seconds_of(code: &CodeMetrics, rows: &[CodeRow]) -> BTreeMap<String, f64> {
    let function = |row: &CodeRow| match row.code {
        Code::Function(of) => code.functions[of as usize].name.clone().zip(Some(row.self_s)),
        _ => None,
    };
    rows.iter().filter_map(function).collect()
}

#[test]
fn function_that_makes_iterations_slow_is_named_and_no_other() {
    let (mut named, mut others) = (0, 0);
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut work = even_work((4, 60), &mut random, 2 * MS);
        for turn in [20, 33, 47] {
            work.iter_mut().for_each(|of_rank| of_rank[turn][2] += 80 * MS);
        }
        with_evidence(&ranks(seed, &work), &Selection::Whole, |of| {
            let code = of.metrics.code.as_ref().unwrap();
            let parts = CodePart::all(&of);
            let part = |kind| parts.iter().find(|part| part.kind == kind).expect("it was sampled");
            let [all, slow, rest] =
                [PartKind::Phase(0), PartKind::SlowIterations(0), PartKind::OtherIterations(0)]
                    .map(part);
            assert_eq!(slow.times, Some(3));
            assert!((all.sampled_s() - slow.sampled_s() - rest.sampled_s()).abs() < 1e-9);
            for row in &slow.rows {
                let Some(longer) = slow.longer.get(&row.code) else { continue };
                let name = seconds_of(code, std::slice::from_ref(row)).into_keys().next().unwrap();
                if name == name_of(2) {
                    named += 1;
                    let off = (longer.seconds - 0.32) / longer.error_s;
                    assert!(off.abs() < 4.0, "seed {seed}: {longer:?}");
                } else {
                    // `iterate` calls all others, but may have too much time itself to be left out.
                    others += u32::from(name != name_of(3));
                }
            }
        });
    }
    assert!(named == 20 && others <= 1, "{named} named, and {others} others");
}

#[test]
fn region_has_the_functions_that_its_selection_has() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut made = ranks(5, &even_work((3, 40), &mut random, 2 * MS));
    for (number, rank) in (0..).zip(&mut made) {
        rank.region_name(3, "inner").region_name(4, "outer");
        for turn in 0..20 {
            let at = |ms: u64| 1_000_000 + (turn * 200 + ms + number) * MS;
            rank.region_begin(0, 4, at(0)).region_begin(0, 3, at(30)).region_end(0, 3, at(61));
            rank.region_end(0, 4, at(90));
        }
        rank.threads[0].sort_by_key(|slot| slot.begin);
    }
    let parts = with_evidence(&made, &Selection::Whole, |of| {
        let code = of.metrics.code.as_ref().unwrap();
        let parts = CodePart::all(&of);
        let regions = parts.iter().filter_map(|part| match part.kind {
            PartKind::Region(name) => Some((name.to_owned(), seconds_of(code, &part.rows))),
            _ => None,
        });
        regions.collect::<BTreeMap<_, _>>()
    });
    assert_eq!(parts.len(), 2);
    for (region, functions) in parts {
        let selected = with_evidence(&made, &Selection::Region(region.clone()), |of| {
            let code = of.metrics.code.as_ref().unwrap();
            seconds_of(code, &code.all)
        });
        assert!(selected.values().sum::<f64>() > 1.0);
        assert_eq!(functions, selected, "{region}");
    }
}
