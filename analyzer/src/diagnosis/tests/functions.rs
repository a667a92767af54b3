//! The function in which a delaying rank takes longer is named, and none where chance may explain it.

use super::*;
use crate::diagnosis::finding::Delay;
use crate::metrics::code::CodeMetrics;
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

/// The costliest delay in ranks with this work.
fn delay_of(seed: u64, work: &Work) -> Option<Delay> {
    let functions = [1, 2, 3, 4].map(|number| number << 12);
    let library = Library { path: "code".into(), build_id: String::new(), functions };
    let directory = RunDirectory::with_ranks(&sampled(&library, seed, work));
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let mut metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
    let analysis = Analysis::new(&run, &timeline);
    let mut names = |_: &str, _: &str, address: u64| {
        let (function, file) =
            (Some(name_of((address >> 12) as usize - 1)), Some("a.c".to_owned()));
        vec![SourceLocation { function, file, line: Some(7) }]
    };
    let whole = (&metrics.stretches[..], true);
    metrics.code = CodeMetrics::with_names(&analysis, whole, &mut names);
    let causes = Causes::new(&analysis);
    let of = Evidence::of_metrics(&run, &timeline, &metrics);
    let findings = Diagnosis::new(Evidence { causes: Some(&causes), ..of }).findings;
    findings.into_iter().find_map(|finding| match finding {
        Finding::Delay(delay) => Some(delay),
        _ => None,
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
