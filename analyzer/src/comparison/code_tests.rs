//! Comparisons of the functions of synthetic runs.

use super::cause::WhichRanks;
use super::code::{CodeComparison, NotSampled};
use super::sampled::{Sampled, SampledKind, SampledRow};
use super::synthetic_runs::{RunGenerator, sampled};
use super::*;
use crate::present::comparison::{json, screen};

/// Seconds of each function on every rank.
type Functions = Vec<(&'static str, [f64; 4])>;

fn usual() -> Functions {
    let mut all = vec![("smooth", [6.0; 4]), ("residual_norm", [3.0; 4]), ("main", [0.1; 4])];
    all.extend(["copy", "pack", "unpack", "fill", "init"].map(|name| (name, [0.3; 4])));
    all
}

/// The run with a function that takes longer on rank 2.
fn slower_on_rank_2() -> Functions {
    let mut functions = usual();
    functions[1].1[2] = 3.8;
    functions
}

/// Runs whose iterations on rank 2 take as much longer as `slower_on_rank_2` says.
fn runs(seed: u64, count: u64, functions: &Functions, hz: f64) -> Vec<RunRecord> {
    let is_slow = functions[1].1[2] > 3.5;
    let generator = RunGenerator {
        seed,
        slower: if is_slow { 0.13 } else { 0.0 },
        slow_rank: is_slow.then_some(2),
        ..RunGenerator::default()
    };
    let mut runs = generator.runs(count);
    for (at, run) in (0..).zip(&mut runs) {
        let code = sampled(1_000 * seed + at, hz, 0.005, functions);
        run.code = Some(code);
        *run = RunRecord::parse(&run.text().unwrap()).expect("a record keeps its samples");
    }
    runs
}

fn compared(before: &[RunRecord], after: &[RunRecord]) -> Comparison {
    Comparison::new(before, after, Relation::between(before, after).unwrap())
}

/// The screen in one line.
fn text_of(of: &Comparison) -> String {
    screen(of, false).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn significant(of: &Comparison) -> Vec<(&str, Option<WhichRanks>)> {
    let found = of.code.functions.iter().filter(|of| of.is_significant);
    found
        .map(|of| (of.shown.function.as_deref().unwrap_or("-"), of.on.clone().map(|on| on.0)))
        .collect()
}

#[test]
fn function_that_became_slower_is_named_with_its_rank() {
    let rank_2 = Some(WhichRanks::Some(vec![(2, 2)]));
    for count in [1, 5] {
        let of =
            compared(&runs(1, count, &usual(), 499.0), &runs(2, count, &slower_on_rank_2(), 499.0));
        assert_eq!(significant(&of), [("residual_norm", rank_2.clone())], "{count} runs");
        let (_, ns) = of.code.functions[0].on.as_ref().expect("a rank");
        assert!((ns * 1e-9 - 0.8).abs() < 0.25, "{ns}");
        let text = text_of(&of);
        assert!(text.contains("residual_norm (made.c:11) takes"), "{text}");
        assert!(text.contains("longer per iteration on rank 2."), "{text}");
        let document: serde_json::Value = serde_json::from_str(&json(&of).unwrap()).unwrap();
        let first = &document["code"][0];
        assert_eq!(first["function"], "residual_norm");
        assert_eq!((&first["found"], &first["explains"]), (&true.into(), &true.into()));
        assert_eq!(first["ranks"], serde_json::json!([[2, 2]]));
        assert_eq!(document["code"].as_array().map(Vec::len), Some(8));
    }
    // The other way round it takes less.
    let of = compared(&runs(2, 5, &slower_on_rank_2(), 499.0), &runs(1, 5, &usual(), 499.0));
    assert_eq!(significant(&of), [("residual_norm", rank_2)]);
    assert!(text_of(&of).contains("less per iteration on rank 2."));
}

#[test]
fn chance_is_not_named() {
    let run = RunGenerator::default().run();
    for count in [1, 2, 5] {
        let falsely = (0..200u64).filter(|pair| {
            let side = |side| -> Vec<RunRecord> {
                let seeds = (0..count).map(|at| 10 * (2 * pair + side) + at);
                let code = seeds.map(|seed| Some(sampled(seed, 99.0, 0.005, &usual())));
                code.map(|code| RunRecord { code, ..run.clone() }).collect()
            };
            let of = CodeComparison::new(&side(0), &side(1), true);
            assert!(of.detectable.is_some());
            of.functions.iter().any(|of| of.is_significant)
        });
        let falsely = falsely.count();
        assert!(falsely <= 5, "{falsely} of 200 pairs of {count} runs");
    }
    let of = compared(&runs(1, 3, &usual(), 99.0), &runs(2, 3, &usual(), 99.0));
    let text = text_of(&of);
    assert!(text.contains("no significant difference; in smooth, one of less than"), "{text}");
    assert!(!text.contains("takes"), "{text}");
}

#[test]
fn slower_everywhere_is_on_all_ranks() {
    let mut slower = usual();
    slower[1].1 = [3.6; 4];
    let of = compared(&runs(1, 5, &usual(), 499.0), &runs(2, 5, &slower, 499.0));
    assert_eq!(significant(&of), [("residual_norm", Some(WhichRanks::All))]);
}

#[test]
fn work_that_moved_to_another_rank_is_found() {
    let mut moved = usual();
    moved[1].1 = [1.0, 5.0, 3.0, 3.0];
    let of = compared(&runs(1, 3, &usual(), 499.0), &runs(2, 3, &moved, 499.0));
    let found = significant(&of);
    assert!(
        matches!(&found[..], [("residual_norm", Some(WhichRanks::Some(ranks)))] if ranks.len() == 1),
        "{found:?}"
    );
}

#[test]
fn rates_builds_and_lines_may_differ() {
    let before = runs(1, 5, &usual(), 250.0);
    let mut after = runs(2, 5, &slower_on_rank_2(), 499.0);
    for run in &mut after {
        run.build_id = "cd".to_owned();
        for row in &mut run.code.as_mut().unwrap().rows {
            row.what.line = row.what.line.map(|line| line + 7);
            row.what.function = row.what.function.take().map(|name| format!("{name}.isra.0"));
        }
    }
    let of = compared(&before, &after);
    assert_eq!(of.code.functions.len(), 8);
    let found = significant(&of);
    assert_eq!(found[0].0, "residual_norm.isra.0", "{found:?}");
    assert_eq!(found.len(), 1);
}

#[test]
fn sides_without_samples_are_told() {
    let (before, mut after) = (runs(1, 3, &usual(), 99.0), runs(2, 3, &usual(), 99.0));
    after[1].code = None;
    let of = compared(&before, &after);
    assert_eq!(of.code.missing, Some(NotSampled::Runs { before: false, count: 1, of: 3 }));
    assert!(text_of(&of).contains("1 of 3 runs after have no samples (record with --sample)"));
    after[1] = before[1].clone();
    after[2].code.as_mut().unwrap().ranks = 3;
    assert!(text_of(&compared(&before, &after)).contains("3 of 4 ranks were sampled"));
    let plain = RunGenerator::default().runs(3);
    let other = RunGenerator { seed: 2, ..RunGenerator::default() }.runs(3);
    let text = text_of(&compared(&plain, &other));
    assert!(!text.contains("CODE") && !text.contains("samples"), "{text}");
}

/// A row without a function.
fn row(kind: SampledKind, by_ranks: [i64; 4]) -> SampledRow {
    SampledRow { what: Sampled { kind, ..Sampled::default() }, by_ranks: by_ranks.to_vec() }
}

#[test]
fn what_was_not_counted_is_no_difference() {
    let (before, slower) = (runs(1, 5, &usual(), 499.0), runs(2, 5, &slower_on_rank_2(), 499.0));
    let mut lost = before.clone();
    for run in &mut lost {
        run.code.as_mut().unwrap().rows.push(row(SampledKind::Lost, [0, 0, 900_000_000, 0]));
    }
    assert_eq!(significant(&compared(&lost, &slower)), [], "they may have been in it");
    // A function that is not among those with most time.
    let mut rest = before;
    for run in &mut rest {
        let rows = &mut run.code.as_mut().unwrap().rows;
        rows.retain(|row| row.what.function.as_deref() != Some("main"));
        rows.push(row(SampledKind::Rest, [100_000_000; 4]));
    }
    let found = significant(&compared(&rest, &slower)).len();
    assert_eq!(found, 1, "main is not new");
}

#[test]
fn ticks_and_a_lack_of_cores_need_several_runs() {
    let with = |count: u64, change: &dyn Fn(&mut RunRecord)| {
        let mut sides =
            [runs(1, count, &usual(), 499.0), runs(2, count, &slower_on_rank_2(), 499.0)];
        sides.iter_mut().flatten().for_each(change);
        let of = compared(&sides[0], &sides[1]);
        (significant(&of).len(), text_of(&of))
    };
    let at_ticks = |run: &mut RunRecord| run.code.as_mut().unwrap().at_ticks = true;
    let (found, text) = with(1, &at_ticks);
    assert_eq!(found, 0, "{text}");
    assert!(text.contains("cannot tell which functions changed"), "{text}");
    assert_eq!(with(5, &at_ticks).0, 1);
    let without_cores = |run: &mut RunRecord| run.lacked_cores = Some(0.3);
    assert_eq!(with(1, &without_cores).0, 0);
}
