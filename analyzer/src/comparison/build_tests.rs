//! Comparisons of builds whose sources differ: another file name, an inserted call.

use super::cause::{CauseKind, WhichRanks};
use super::counts::CountKind;
use super::guard::{Check, Verdict};
use super::place::{CodeLocation, Place, Site};
use super::record::{Kind, Part};
use super::synthetic_runs::{RunGenerator, SMOOTH};
use super::*;
use crate::present::comparison::checked::{Case, Checked, annotations, junit};
use crate::present::comparison::screen;

/// Runs of a program without regions: it computes between its two calls, and behind the second one.
fn unmarked(generator: &RunGenerator, runs: u64) -> Vec<RunRecord> {
    let mut runs = generator.runs(runs);
    let unmark = |place: &mut Place| match place {
        Place::Region(name) if name == "smooth" => *place = Place::Between(Some(0), Some(1)),
        Place::Region(_) => *place = Place::Between(Some(1), Some(0)),
        _ => {}
    };
    for run in &mut runs {
        run.build_id = format!("build {}", generator.seed);
        run.counts.regions.clear();
        run.parts.iter_mut().for_each(|part| unmark(&mut part.place));
        let places = &mut run.iterations.as_mut().unwrap().places;
        places.iter_mut().for_each(|series| unmark(&mut series.place));
    }
    runs
}

fn renamed(runs: &mut [RunRecord]) {
    for site in runs.iter_mut().flat_map(|run| &mut run.sites) {
        site.file = Some("another.c".to_owned());
        site.line = site.line.map(|line| line + 7);
    }
}

fn comparison(before: &[RunRecord], after: &[RunRecord]) -> Comparison {
    Comparison::new(before, after, Relation::between(before, after).unwrap())
}

#[test]
fn renamed_source_file_changes_nothing() {
    let before = unmarked(&RunGenerator::default(), 5);
    let mut after = unmarked(&RunGenerator { seed: 2, ..RunGenerator::default() }, 5);
    renamed(&mut after);
    let of = comparison(&before, &after);
    assert!(of.iteration.is_some() && of.changes.is_empty() && of.cause.is_none());
    let places = of.differences.parts.iter().filter(|part| part.key.kind == Kind::Computing);
    assert!(places.into_iter().all(|part| part.estimate.before > 0.0 && part.estimate.after > 0.0));
}

#[test]
fn slower_program_in_renamed_file_shows_true_change() {
    let slower = RunGenerator { seed: 2, slower: 0.15, ..RunGenerator::default() };
    let (before, mut after) = (unmarked(&RunGenerator::default(), 5), unmarked(&slower, 5));
    renamed(&mut after);
    let of = comparison(&before, &after);
    let cause = of.cause.as_ref().expect("a cause");
    assert_eq!((cause.kind, &cause.ranks), (CauseKind::Computing, &Some(WhichRanks::All)));
    assert!(matches!(&cause.spot, Some(CodeLocation::Between(Some(from), Some(_)))
        if from.function == "MPI_Sendrecv" && from.file.as_deref() == Some("another.c")));
    let of_iteration = cause.ns.unwrap() / 128.0;
    assert!((of_iteration - 0.15 * SMOOTH).abs() < 0.1 * 0.15 * SMOOTH, "{of_iteration}");
    // What continuous integration shows is the same.
    let check = Check::all(std::slice::from_ref(&of), 0.02).remove(0);
    assert_eq!(check.verdict, Verdict::Regressed);
    let sentence = Checked { comparison: &of, check: &check, at_most: 0.02, others: &[] }
        .sentences()
        .join(" ");
    let cases = [Case::new(&after[0], check.verdict, sentence)];
    let place = "per iteration between MPI_Sendrecv another.c:47 and MPI_Allreduce another.c:47.";
    for text in [junit(&cases), annotations(&cases)] {
        assert!(text.contains("All ranks compute 9") && text.contains(place), "{text}");
    }
}

#[test]
fn function_renamed_too_is_matched_by_order() {
    let before = unmarked(&RunGenerator::default(), 3);
    let mut after = unmarked(&RunGenerator { seed: 2, ..RunGenerator::default() }, 3);
    renamed(&mut after);
    after.iter_mut().flat_map(|run| &mut run.sites).for_each(|s| s.within = Some("go".into()));
    assert!(comparison(&before, &after).iteration.is_some());
}

/// Puts MPI_Testall into the loop, between the two calls: it divides the computing there.
fn with_inserted_test(runs: &mut [RunRecord]) {
    for run in runs {
        let site = run.sites[1].clone();
        run.sites.push(Site { function: "MPI_Testall".into(), line: Some(41), ..site });
        let is_divided = |place: &Place| *place == Place::Between(Some(0), Some(1));
        let at = run.parts.iter().position(|part| is_divided(&part.place)).unwrap();
        let whole = run.parts.remove(at);
        let mut rest = whole.by_ranks.clone();
        for (place, share) in [((0, 2), 3), ((2, 2), 2)] {
            let by_ranks: Vec<i64> = whole.by_ranks.iter().map(|ns| ns * share / 10).collect();
            rest.iter_mut().zip(&by_ranks).for_each(|(rest, ns)| *rest -= ns);
            let place = Place::Between(Some(place.0), Some(place.1));
            run.parts.push(Part { place, ns: by_ranks.iter().sum(), by_ranks, ..whole.clone() });
        }
        let place = Place::Between(Some(2), Some(1));
        run.parts.push(Part { place, ns: rest.iter().sum(), by_ranks: rest, ..whole });
        run.iterations.as_mut().unwrap().places.retain(|series| !is_divided(&series.place));
    }
}

#[test]
fn what_an_inserted_call_divides_is_compared_as_a_whole() {
    let slower = RunGenerator { seed: 2, slower: 0.05, ..RunGenerator::default() };
    let (before, plain) = (unmarked(&RunGenerator::default(), 5), unmarked(&slower, 5));
    let mut after = plain.clone();
    with_inserted_test(&mut after);
    let (without, with) = (comparison(&before, &plain), comparison(&before, &after));
    // Only the places' order may differ.
    let places = |of: &Comparison| -> Vec<(Kind, i64)> {
        of.differences.parts.iter().map(|part| (part.key.kind, part.ns)).collect()
    };
    assert_eq!(places(&with), places(&without));
    let change = with.cause.as_ref().and_then(|cause| cause.change.clone()).expect("a count");
    assert_eq!(change.what, CountKind::PollLines("MPI_Testall".into()));
    assert_eq!((change.before, change.after), (0, 1));
    assert!(!screen(&with, false).contains("the same"));
    // The other way round a call is gone.
    let back = comparison(&after, &before);
    assert!(
        back.differences.parts.iter().all(|part| !matches!(part.key.spot, CodeLocation::Around(_)))
    );
}

#[test]
fn other_calls_in_one_place_are_compared_as_a_whole() {
    let before = unmarked(&RunGenerator::default(), 2);
    let mut after = unmarked(&RunGenerator { seed: 2, ..RunGenerator::default() }, 2);
    // All calls are others: only the whole can be compared.
    for run in &mut after {
        run.sites.iter_mut().for_each(|site| site.function.insert(4, 'I'));
    }
    let of = comparison(&before, &after);
    let computing: Vec<_> =
        of.differences.parts.iter().filter(|part| part.key.kind == Kind::Computing).collect();
    assert_eq!(computing.len(), 1, "{computing:?}");
    assert_eq!(of.differences.unexplained_ns, 0);
}

/// A record has the largest places alone: a new one may end among those that are not listed.
#[test]
fn place_divided_by_a_call_with_an_unlisted_end_is_joined() {
    let before = unmarked(&RunGenerator::default(), 2);
    let mut after = unmarked(&RunGenerator { seed: 2, ..RunGenerator::default() }, 2);
    with_inserted_test(&mut after);
    for run in &mut after {
        let is_end = |part: &&mut Part| part.place == Place::Between(Some(2), Some(1));
        run.parts.iter_mut().find(is_end).unwrap().place = Place::Elsewhere;
    }
    let of = comparison(&before, &after);
    let gone = of.differences.parts.iter().find(|part| part.estimate.after == 0.0);
    assert_eq!(gone, None);
}
