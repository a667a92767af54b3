//! Comparisons of synthetic runs with known differences.

use proptest::prelude::*;

use super::baseline::{self, Added, BaselineError};
use super::cause::{CauseKind, WhichRanks};
use super::counts::CountKind;
use super::guard::{Check, Matching, Verdict};
use super::history::Series;
use super::place::CodeLocation;
use super::record::{Kind, RecordError};
use super::statistics::{Location, compare, discoveries};
use super::synthetic_runs::{NORM, RunGenerator, SMOOTH};
use super::*;
use crate::present::comparison::history;
use crate::test_cases::cases;

fn compared<T>(
    before: &[RunRecord],
    after: &[RunRecord],
    then: impl FnOnce(&Comparison) -> T,
) -> T {
    let relation = Relation::between(before, after).unwrap();
    then(&Comparison::new(before, after, relation))
}

fn check(of: &Comparison, at_most: f64) -> Check {
    Check::all(std::slice::from_ref(of), at_most).remove(0)
}

fn verdict(before: &[RunRecord], after: &[RunRecord], at_most: f64) -> Verdict {
    compared(before, after, |of| check(of, at_most).verdict)
}

fn smooth() -> Option<CodeLocation> {
    Some(CodeLocation::Region("smooth".to_owned()))
}

#[test]
fn finds_slow_region_on_all_ranks() {
    let before = RunGenerator::default().runs(5);
    let after = RunGenerator { seed: 2, slower: 0.05, ..RunGenerator::default() }.runs(5);
    compared(&before, &after, |of| {
        let decisive = of.decisive();
        assert!(decisive.is_certain(), "{decisive:?}");
        let expected = 0.05 * SMOOTH / (SMOOTH + NORM + 4e5);
        assert!((decisive.relative() - expected).abs() < 0.01, "{decisive:?}");
        let cause = of.cause.as_ref().expect("a cause");
        assert_eq!((cause.kind, &cause.spot), (CauseKind::Computing, &smooth()));
        assert_eq!(cause.ranks, Some(WhichRanks::All));
        let (kind, computing) = &of.of_iteration[0];
        assert!(*kind == Kind::Computing && computing.is_certain(), "{computing:?}");
        assert!(
            (computing.difference() - 0.05 * SMOOTH).abs() < 0.2 * 0.05 * SMOOTH,
            "{computing:?}"
        );
        assert_eq!(of.phases.len(), 1);
        assert_eq!(of.phases[0].iterations, (128, 128));
        assert!(of.changes.is_empty() && of.drift.is_none());
        assert_eq!(check(of, 0.01).verdict, Verdict::Regressed);
    });
    compared(&after, &before, |of| {
        assert!(of.decisive().difference() < 0.0);
        assert_eq!(of.cause.as_ref().map(|cause| &cause.spot), Some(&smooth()));
        assert_eq!(check(of, 0.01).verdict, Verdict::Fine);
    });
}

#[test]
fn names_slow_rank_not_waiting_of_others() {
    let before = RunGenerator::default().runs(5);
    let after =
        RunGenerator { seed: 2, slower: 0.1, slow_rank: Some(2), ..RunGenerator::default() }
            .runs(5);
    compared(&before, &after, |of| {
        let waiting = of.differences.sum(|part| part.key.kind == Kind::Waiting);
        let computing = of.differences.sum(|part| part.key.kind == Kind::Computing);
        assert!(waiting > computing, "{waiting} {computing}");
        let cause = of.cause.as_ref().expect("a cause");
        assert_eq!((cause.kind, &cause.spot), (CauseKind::Computing, &smooth()));
        assert_eq!(cause.ranks, Some(WhichRanks::Some(vec![(2, 2)])));
    });
}

#[test]
fn attributes_uniform_change_to_machine() {
    let before = RunGenerator::default().runs(5);
    let after = RunGenerator { seed: 2, machine: 0.06, ..RunGenerator::default() }.runs(5);
    compared(&before, &after, |of| {
        assert!((of.drift.expect("all changed alike") - 1.06).abs() < 0.01);
        assert_eq!(of.cause.as_ref().map(|cause| cause.kind), Some(CauseKind::Machine));
    });
}

#[test]
fn counts_take_precedence_over_time() {
    let before = RunGenerator::default().runs(2);
    let cause = |generator: RunGenerator| {
        let after = RunGenerator { seed: 2, ..generator }.runs(2);
        compared(&before, &after, |of| of.cause.clone().expect("a cause"))
    };
    let sizes = cause(RunGenerator { message_bytes: 8_000, ..RunGenerator::default() });
    assert_eq!(sizes.kind, CauseKind::Bytes);
    assert_eq!(
        sizes.change.map(|change| change.what),
        Some(CountKind::Bytes("MPI_Sendrecv".into()))
    );
    let calls = cause(RunGenerator { allreduces: 2, ..RunGenerator::default() });
    assert_eq!(calls.kind, CauseKind::Calls);
    assert_eq!(
        calls.change.map(|change| change.what),
        Some(CountKind::Calls("MPI_Allreduce".into()))
    );
    assert!(
        matches!(calls.spot, Some(CodeLocation::Inside(site)) if site.function == "MPI_Allreduce")
    );
    let order = cause(RunGenerator { order: [0, 2, 1, 3], ..RunGenerator::default() });
    assert_eq!(order.kind, CauseKind::Partners);
    assert_eq!(
        order.change.map(|change| change.what),
        Some(CountKind::Partners { reordered: true })
    );
}

#[test]
fn moved_call_site_is_not_a_change_of_counts() {
    let before = RunGenerator::default().runs(2);
    let mut after = RunGenerator { seed: 2, slower: 0.3, ..RunGenerator::default() }.runs(2);
    for run in &mut after {
        run.sites.iter_mut().for_each(|site| site.within = Some("inlined".to_owned()));
    }
    compared(&before, &after, |of| assert_eq!(of.changes, []));
}

#[test]
fn one_run_on_each_side_is_undecided() {
    let before = RunGenerator::default().runs(1);
    let after = RunGenerator { seed: 2, slower: 0.5, ..RunGenerator::default() }.runs(1);
    compared(&before, &after, |of| {
        assert!(of.elapsed.interval.is_none() && of.decisive().is_assumed);
        assert!(
            of.decisive().is_certain(),
            "a third longer is more than runs are taken to scatter"
        );
        let check = check(of, 0.02);
        assert_eq!(
            (check.verdict, check.because),
            (Verdict::CannotTell, Some(guard::UndecidedReason::TooFewRuns))
        );
        assert!(check.runs_wanted.is_some_and(|runs| (3..=10).contains(&runs)), "{check:?}");
    });
    // A baseline of several runs knows how they scatter: one new run can be checked.
    assert_eq!(verdict(&RunGenerator::default().runs(6), &after, 0.02), Verdict::Regressed);
}

#[test]
fn three_runs_suffice_if_one_side_scatters_and_the_slowdown_is_beyond_doubt() {
    let before = RunGenerator { run_spread: 0.0, ..RunGenerator::default() }.runs(3);
    let after = |slower| {
        RunGenerator { seed: 2, run_spread: 0.05, slower, ..RunGenerator::default() }.runs(3)
    };
    compared(&before, &after(4.0), |of| {
        assert!((2.0..2.5).contains(&of.decisive().degrees), "{}", of.decisive().degrees);
        assert_eq!(check(of, 0.02).verdict, Verdict::Regressed);
    });
    compared(&before, &after(0.1), |of| {
        let check = check(of, 0.02);
        assert_eq!(check.verdict, Verdict::CannotTell);
        assert!(check.runs_wanted.is_none_or(|runs| runs > 3), "{check:?}");
    });
}

#[test]
fn scattering_runs_are_undecided() {
    let noisy = |seed, slower| {
        RunGenerator { seed, slower, run_spread: 0.08, ..RunGenerator::default() }.runs(4)
    };
    assert_eq!(verdict(&noisy(11, 0.0), &noisy(12, 0.0), 0.01), Verdict::CannotTell);
}

/// Number of pairs of five runs each that regressed, and that are undecided.
fn rates(pairs: u64, spread: f64, slower: f64, at_most: f64) -> (u64, u64) {
    let (mut regressed, mut unclear) = (0, 0);
    for pair in 0..pairs {
        let of = |seed, slower| RunGenerator {
            seed,
            run_spread: spread,
            slower,
            ..RunGenerator::default()
        };
        let before = of(2 * pair + 1_000, 0.0).runs(5);
        match verdict(&before, &of(2 * pair + 1_001, slower).runs(5), at_most) {
            Verdict::Regressed => regressed += 1,
            Verdict::CannotTell => unclear += 1,
            Verdict::Fine => {}
        }
    }
    (regressed, unclear)
}

#[test]
fn false_alarms_are_rare_and_slowdowns_are_found() {
    let pairs = u64::from(cases(60));
    let (alarms, _) = rates(pairs, 0.003, 0.0, 0.01);
    assert!(alarms <= pairs.div_ceil(30), "{alarms} of {pairs}");
    let pairs = u64::from(cases(15));
    // Slowdown of the region, which is two thirds of the iteration.
    for (slower, missed_of_15) in [(0.045, 2), (0.075, 1), (0.15, 0)] {
        let (found, _) = rates(pairs, 0.003, slower, 0.01);
        assert!(
            pairs - found <= (missed_of_15 * pairs).div_ceil(15),
            "{slower}: {found} of {pairs}"
        );
    }
}

#[test]
fn bootstrap_accounts_for_correlated_iterations() {
    let mut noise = super::synthetic_runs::Noise::new(7);
    let mut series = |coupled: f64| -> Vec<f64> {
        let mut value = 0.0;
        (0..400)
            .map(|_| {
                value = coupled * value + noise.normal();
                100.0 + value
            })
            .collect()
    };
    let width = |a: Vec<f64>, b: Vec<f64>| {
        let of = compare(&[a], &[b], Location::Mean);
        of.interval.map(|(lo, hi)| hi - lo).unwrap()
    };
    // With one run on each side, the assumed spread of 1 % is the same in both.
    assert!(width(series(0.9), series(0.9)) > width(series(0.0), series(0.0)));
}

#[test]
fn discoveries_match_benjamini_and_hochberg() {
    // The example of their paper, at 5 %.
    let chances = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
        0.5719, 0.6528, 0.7590, 1.0,
    ];
    let found = discoveries(&chances, 0.05);
    assert_eq!(found.iter().filter(|found| **found).count(), 4);
    assert!(found[..4].iter().all(|found| *found));
    assert!(discoveries(&[], 0.05).is_empty());
}

#[test]
fn distinguishes_machines_and_works() {
    let before = RunGenerator::default().runs(2);
    let mut other = RunGenerator { seed: 2, mhz: 3_000, ..RunGenerator::default() }.runs(2);
    let relation = Relation::between(&before, &other).unwrap();
    assert_eq!(relation.differences, [subject::Difference::Machine]);
    let mixed = [before[0].clone(), other[0].clone()];
    assert_eq!(
        Relation::between(&mixed, &before).unwrap_err().what,
        [subject::Difference::Machine]
    );
    let matching = Matching::new(&mixed, &before);
    assert_eq!((matching.alike.len(), matching.others.len()), (1, 1));
    let counter = Relation::between(&mixed, &before).unwrap_err().machine;
    assert_eq!(counter.as_deref(), Some("counter=2450"), "no other property differs");
    // Another model with the same counter is another machine; one of old files may be any.
    let mut model = before.clone();
    model[0].machine.processors = vec!["AMD EPYC 7713".into()];
    assert_eq!(before[0].differences(&model[0]), [subject::Difference::Machine]);
    let chosen = model[0].machine.distinction(&before[0].machine).expect("they differ");
    let (name, value) = chosen.split_once('=').expect("NAME=VALUE");
    assert!(model[0].machine.has(name, value) && !before[0].machine.has(name, value), "{chosen}");
    model[0].machine.processors.clear();
    assert!(before[0].is_alike(&model[0]));
    // The counter's rate is measured again each time, and labels do not distinguish work.
    other[0].machine.counter_mhz = 2_452;
    other[0].params.insert("commit".into(), "1f3c".into());
    assert!(before[0].is_alike(&other[0]));
    other[0].params.insert("N".into(), "100".into());
    assert_eq!(before[0].differences(&other[0]), [subject::Difference::Parameters]);
}

#[test]
fn marks_change_in_history_once() {
    let mut runs = RunGenerator::default().runs(12);
    runs.extend(RunGenerator { seed: 2, slower: 0.06, ..RunGenerator::default() }.runs(10));
    let series = Series::all(&runs);
    assert_eq!(series.len(), 1);
    let at: Vec<usize> = series[0].changes.iter().map(|change| change.at).collect();
    assert_eq!(at, [12]);
    assert!(series[0].of_iteration);
    assert!(Series::all(&runs[..12])[0].changes.is_empty());
}

#[test]
fn marks_change_that_was_undone() {
    let mut runs = RunGenerator::default().runs(8);
    runs.extend(RunGenerator { seed: 2, slower: 0.06, ..RunGenerator::default() }.runs(5));
    runs.extend(RunGenerator { seed: 3, ..RunGenerator::default() }.runs(4));
    let series = Series::all(&runs);
    let at: Vec<usize> = series[0].changes.iter().map(|change| change.at).collect();
    assert_eq!((at, &series[0].other_counts), (vec![8, 13], &vec![]));
}

#[test]
fn history_marks_no_change_where_ranks_lacked_cores() {
    let busy = RunGenerator { seed: 2, slower: 0.3, lacked_cores: 0.4, ..RunGenerator::default() };
    let mut runs = RunGenerator::default().runs(8);
    runs.extend(busy.runs(5));
    runs.extend(RunGenerator { seed: 3, ..RunGenerator::default() }.runs(4));
    let series = &Series::all(&runs)[0];
    let at =
        |changes: &[super::history::Change]| changes.iter().map(|of| of.at).collect::<Vec<_>>();
    assert_eq!((at(&series.changes), at(&series.undecided)), (vec![], vec![8, 13]));
    // As `compare` says of the same runs.
    compared(&runs[..8], &runs[8..13], |of| {
        assert!(matches!(of.basis, Basis::LackOfCores { .. }), "{:?}", of.basis);
    });
    // A change beside them is still found.
    runs.extend(RunGenerator { seed: 4, slower: 0.1, ..RunGenerator::default() }.runs(6));
    let series = &Series::all(&runs)[0];
    assert_eq!((at(&series.changes), at(&series.undecided)), (vec![17], vec![8, 13]));
    // Every point whose run's figures say little is marked.
    let page = history::page(&Series::all(&runs)).unwrap();
    assert_eq!(page.matches("Oversubscribed: 4 ranks share 2 cores of here").count(), 5);
}

#[test]
fn other_counts_are_found_in_history() {
    let mut runs = RunGenerator::default().runs(6);
    for run in &mut runs[3..] {
        *run.counts.calls.get_mut("MPI_Allreduce").unwrap() *= 2;
    }
    assert_eq!(Series::all(&runs)[0].other_counts, [3]);
}

#[test]
fn more_iterations_are_the_cause_and_elapsed_time_decides() {
    let before = RunGenerator::default().runs(5);
    let mut after = RunGenerator { seed: 2, ..RunGenerator::default() }.runs(5);
    for run in &mut after {
        run.iterations.as_mut().unwrap().count *= 2;
        run.elapsed_ns *= 2;
    }
    compared(&before, &after, |of| {
        assert!(of.decisive().is_certain() && of.decisive().relative() > 0.9);
        let change = of.cause.as_ref().unwrap().change.as_ref().unwrap();
        assert_eq!(change.what, CountKind::Iterations);
    });
}

#[test]
fn bytes_are_not_compared_with_a_run_without_them() {
    let before = RunGenerator::default().runs(1);
    let mut after = before.clone();
    after[0].level = 0;
    after[0].counts.bytes.clear();
    compared(&before, &after, |of| assert_eq!(of.changes, []));
}

#[test]
fn baseline_keeps_no_confidential_argument() {
    let folder = std::env::temp_dir().join(format!("gammachi-private-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let mut run = RunGenerator::default().runs(1).remove(0);
    run.arguments = ["-n", "100", "--token=hunter2", "/home/me/in.lj"].map(String::from).into();
    let Added::New(file) = baseline::add(&folder, &run).unwrap() else { panic!("it was there") };
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains(r#""-n","100","--token=…"#), "{text}");
    assert!(!text.contains("hunter2") && !text.contains("/home/me"), "{text}");
    let kept = &baseline::read(&folder).unwrap()[0].record;
    assert_eq!(run.differences(kept), [], "it still is the same work");
    run.arguments[3] = "/home/me/in.eam".into();
    assert_eq!(run.differences(kept), [subject::Difference::Parameters]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn baseline_adds_each_run_once_and_trims() {
    let folder = std::env::temp_dir().join(format!("gammachi-baseline-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    assert!(matches!(baseline::read(&folder), Err(BaselineError::Missing(_))));
    let runs = RunGenerator::default().runs(5);
    for run in &runs {
        assert!(matches!(baseline::add(&folder, run).unwrap(), Added::New(_)));
        assert!(matches!(baseline::add(&folder, run).unwrap(), Added::Already(_)));
    }
    let all = baseline::read(&folder).unwrap();
    assert_eq!(all.iter().map(|kept| kept.record.clone()).collect::<Vec<_>>(), runs);
    let size = std::fs::metadata(&all[0].path).unwrap().len();
    assert!(size < 10_000, "{size} bytes");
    let surplus = baseline::surplus(&all, 2);
    baseline::remove(&surplus).unwrap();
    let left = baseline::read(&folder).unwrap();
    assert_eq!(
        left.iter().map(|kept| &kept.record).collect::<Vec<_>>(),
        runs[3..].iter().collect::<Vec<_>>()
    );
    std::fs::write(&left[0].path, "{\"format\": ").unwrap();
    let broken = baseline::read(&folder).unwrap_err().to_string();
    assert!(broken.contains(&left[0].path.display().to_string()), "{broken}");
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    assert!(matches!(baseline::read(&folder), Err(BaselineError::Empty(_))));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn refuses_contradictory_and_later_records() {
    let run = RunGenerator::default().run();
    let text = run.text().unwrap();
    assert_eq!(RunRecord::parse(&text).unwrap(), run);
    let longer = RunRecord { elapsed_ns: run.elapsed_ns + 1, ..run.clone() };
    let wrong = RunRecord::parse(&longer.text().unwrap());
    assert!(matches!(wrong, Err(RecordError::Contradicts(_))), "{wrong:?}");
    let later = RunRecord { format_version: 9, ..run.clone() };
    let wrong = RunRecord::parse(&later.text().unwrap());
    assert!(matches!(wrong, Err(RecordError::Version { version: 9, .. })), "{wrong:?}");
    let mut lost = run;
    lost.sites.clear();
    let wrong = RunRecord::parse(&lost.text().unwrap());
    assert!(matches!(wrong, Err(RecordError::Contradicts(_))), "{wrong:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::test_cases::cases(40)))]
    #[test]
    fn differences_add_up_to_the_nanosecond(
        (before, after) in (1u64..5, 1u64..5),
        seed in 1u64..1_000,
        slower in -0.2f64..0.5,
        slow_rank in proptest::option::of(0u32..4),
    ) {
        let before = RunGenerator { seed, ..RunGenerator::default() }.runs(before);
        let after = RunGenerator { seed: seed + 1_000, slower, slow_rank, ..RunGenerator::default() }.runs(after);
        let of = Differences::new(&before, &after);
        prop_assert_eq!(of.sum(|_| true) + of.unexplained_ns, of.elapsed_ns);
        prop_assert_eq!(of.unexplained_ns, 0);
        let mean = |side: &[RunRecord]| {
            side.iter().map(|run| run.elapsed_ns as f64).sum::<f64>() / side.len() as f64
        };
        prop_assert!((mean(&after) - mean(&before) - of.elapsed_ns as f64).abs() <= 1.0);
        // Every level is a sum of the same parts.
        let groups = of.groups([&before[..], &after[..]], |key| Some(key.kind));
        prop_assert_eq!(groups.iter().map(|group| group.ns).sum::<i64>(), of.elapsed_ns);
        for part in &of.parts {
            prop_assert!((part.estimate.difference() - part.ns as f64).abs() <= 1.01);
        }
    }
}

/// If no slowdown is allowed, alarms occur as often as the level says: about once in a hundred.
#[test]
#[ignore = "takes minutes; by hand, with --ignored"]
fn false_alarms_without_tolerance() {
    for spread in [0.003, 0.02] {
        let (alarms, _) = rates(300, spread, 0.0, 0.001);
        assert!(alarms <= 9, "{alarms} of 300 where runs vary by {spread}");
    }
}

/// Runs of another configuration.
fn sized(generator: &RunGenerator, n: &str, runs: u64) -> Vec<RunRecord> {
    let mut runs = generator.runs(runs);
    runs.iter_mut().for_each(|run| {
        run.params.insert("N".into(), n.into());
    });
    runs
}

#[test]
fn pairs_configurations_of_both_sides() {
    let all = |names: &[&str], seed: u64| {
        let generator = RunGenerator { seed, ..RunGenerator::default() };
        names.iter().flat_map(|n| sized(&generator, n, 2)).collect::<Vec<_>>()
    };
    let [before, after] = [all(&["20", "3", "100"], 1), all(&["100", "5", "20"], 2)]
        .map(|runs| configurations::split(runs).unwrap());
    let pairs = configurations::pair(before, after);
    let found = pairs.iter().map(|pair| {
        let n = &pair.first().unwrap().params["N"];
        (n.as_str(), pair.before.len(), pair.after.len())
    });
    let found: Vec<(&str, usize, usize)> = found.collect();
    assert_eq!(found, [("3", 2, 0), ("5", 0, 2), ("20", 2, 2), ("100", 2, 2)]);
    // Two machines are not two configurations.
    let mut mixed = all(&["20", "3"], 1);
    mixed.extend(sized(&RunGenerator { mhz: 3_000, ..RunGenerator::default() }, "3", 1));
    assert_eq!(configurations::split(mixed).unwrap_err().what, [subject::Difference::Machine]);
}

#[test]
fn one_slow_configuration_of_many_fails_and_chance_does_not() {
    let configuration = |seed: u64, slower: f64| {
        let before = RunGenerator { seed: 2 * seed + 1, ..RunGenerator::default() }.runs(5);
        let after = RunGenerator { seed: 2 * seed + 2, slower, ..RunGenerator::default() }.runs(5);
        Comparison::new(&before, &after, Relation::between(&before, &after).unwrap())
    };
    let verdicts = |comparisons: &[Comparison]| -> Vec<Verdict> {
        Check::all(comparisons, 0.001).iter().map(|check| check.verdict).collect()
    };
    let mut comparisons: Vec<Comparison> = (0..20).map(|seed| configuration(seed, 0.0)).collect();
    assert!(!verdicts(&comparisons).contains(&Verdict::Regressed));
    comparisons[7] = configuration(7, 0.05);
    let found = verdicts(&comparisons);
    let slow: Vec<usize> = (0..20).filter(|at| found[*at] == Verdict::Regressed).collect();
    assert_eq!(slow, [7]);
}

#[test]
fn takes_iterations_that_were_not_found_for_unknown() {
    let before = RunGenerator::default().runs(2);
    let mut after = RunGenerator { seed: 2, ..RunGenerator::default() }.runs(2);
    after[1].iterations = None;
    let (changes, varying) = counts::changes(&before, &after);
    assert!(changes.is_empty() && varying.is_empty(), "{changes:?} {varying:?}");
    after[0].iterations = None;
    assert!(counts::changes(&before, &after).0.is_empty());
}
