//! Comparisons whose truth is known.

use proptest::prelude::*;

use super::baseline::{self, Added, BaselineError};
use super::cause::{CauseKind, WhichRanks};
use super::counts::What;
use super::guard::{Check, Matching, Verdict};
use super::history::Series;
use super::made::{Made, NORM, SMOOTH};
use super::place::Spot;
use super::record::{Kind, RecordError};
use super::statistics::{Location, compare, discoveries};
use super::*;

fn compared<T>(
    before: &[RunRecord],
    after: &[RunRecord],
    then: impl FnOnce(&Comparison) -> T,
) -> T {
    let relation = Relation::of(before, after).unwrap();
    then(&Comparison::new(before, after, relation))
}

fn verdict(before: &[RunRecord], after: &[RunRecord], at_most: f64) -> Verdict {
    compared(before, after, |of| Check::new(of, at_most).verdict)
}

fn smooth() -> Option<Spot> {
    Some(Spot::Region("smooth".to_owned()))
}

#[test]
fn a_slow_region_on_all_ranks_is_found_and_named() {
    let before = Made::default().runs(5);
    let after = Made { seed: 2, slower: 0.05, ..Made::default() }.runs(5);
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
        assert_eq!(Check::new(of, 0.01).verdict, Verdict::Regressed);
    });
    compared(&after, &before, |of| {
        assert!(of.decisive().difference() < 0.0);
        assert_eq!(of.cause.as_ref().map(|cause| &cause.spot), Some(&smooth()));
        assert_eq!(Check::new(of, 0.01).verdict, Verdict::Fine);
    });
}

#[test]
fn of_one_slow_rank_the_rank_is_named_not_the_waiting_of_the_others() {
    let before = Made::default().runs(5);
    let after = Made { seed: 2, slower: 0.1, slow_rank: Some(2), ..Made::default() }.runs(5);
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
fn a_faster_clock_or_a_slower_machine_is_not_the_program() {
    let before = Made::default().runs(5);
    let after = Made { seed: 2, machine: 0.06, ..Made::default() }.runs(5);
    compared(&before, &after, |of| {
        assert!((of.drift.expect("all changed alike") - 1.06).abs() < 0.01);
        assert_eq!(of.cause.as_ref().map(|cause| cause.kind), Some(CauseKind::Machine));
    });
}

#[test]
fn counts_come_before_time() {
    let before = Made::default().runs(2);
    let of = |made: Made| {
        let after = Made { seed: 2, ..made }.runs(2);
        compared(&before, &after, |of| of.cause.clone().expect("a cause"))
    };
    let sizes = of(Made { message_bytes: 8_000, ..Made::default() });
    assert_eq!(sizes.kind, CauseKind::Bytes);
    assert_eq!(sizes.change.map(|change| change.what), Some(What::Bytes("MPI_Sendrecv".into())));
    let calls = of(Made { allreduces: 2, ..Made::default() });
    assert_eq!(calls.kind, CauseKind::Calls);
    assert_eq!(calls.change.map(|change| change.what), Some(What::Calls("MPI_Allreduce".into())));
    assert!(matches!(calls.spot, Some(Spot::Inside(site)) if site.function == "MPI_Allreduce"));
    let order = of(Made { order: [0, 2, 1, 3], ..Made::default() });
    assert_eq!(order.kind, CauseKind::Partners);
    assert_eq!(order.change.map(|change| change.what), Some(What::Partners { reordered: true }));
}

#[test]
fn a_site_that_moves_is_no_change_of_counts() {
    let before = Made::default().runs(2);
    let mut after = Made { seed: 2, slower: 0.3, ..Made::default() }.runs(2);
    for run in &mut after {
        run.sites.iter_mut().for_each(|site| site.within = Some("inlined".to_owned()));
    }
    compared(&before, &after, |of| assert_eq!(of.changes, []));
}

#[test]
fn one_run_of_each_cannot_be_told_and_says_so() {
    let before = Made::default().runs(1);
    let after = Made { seed: 2, slower: 0.5, ..Made::default() }.runs(1);
    compared(&before, &after, |of| {
        assert!(of.elapsed.interval.is_none() && of.decisive().is_assumed);
        assert!(
            of.decisive().is_certain(),
            "a third longer is more than runs are taken to scatter"
        );
        let check = Check::new(of, 0.02);
        assert_eq!(
            (check.verdict, check.because),
            (Verdict::CannotTell, Some(guard::Because::TooFewRuns))
        );
        assert!(check.runs_wanted.is_some_and(|runs| (3..=10).contains(&runs)), "{check:?}");
    });
    // A baseline of several runs knows how they scatter: one new run can be checked.
    assert_eq!(verdict(&Made::default().runs(6), &after, 0.02), Verdict::Regressed);
}

#[test]
fn where_runs_scatter_too_much_it_cannot_be_told() {
    let noisy = |seed, slower| Made { seed, slower, run_spread: 0.08, ..Made::default() }.runs(4);
    assert_eq!(verdict(&noisy(11, 0.0), &noisy(12, 0.0), 0.01), Verdict::CannotTell);
}

/// Of so many pairs of five runs each, how many regressed and how many cannot be told.
fn rates(pairs: u64, spread: f64, slower: f64, at_most: f64) -> (u64, u64) {
    let (mut regressed, mut unclear) = (0, 0);
    for pair in 0..pairs {
        let of = |seed, slower| Made { seed, run_spread: spread, slower, ..Made::default() };
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
    let (alarms, _) = rates(100, 0.003, 0.0, 0.01);
    assert!(alarms <= 3, "{alarms} of 100");
    // Of the region's time; of the iteration's two thirds.
    for (slower, least) in [(0.045, 22), (0.075, 24), (0.15, 25)] {
        let (found, _) = rates(25, 0.003, slower, 0.01);
        assert!(found >= least, "{slower}: {found} of 25");
    }
}

#[test]
fn the_bootstrap_knows_that_iterations_are_not_independent() {
    let mut noise = super::made::Noise::new(7);
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
    // One run of each: 1 % of assumed spread is the same in both.
    assert!(width(series(0.9), series(0.9)) > width(series(0.0), series(0.0)));
}

#[test]
fn discoveries_are_those_of_benjamini_and_hochberg() {
    // Their own example, at 5 %.
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
fn other_machines_and_works_are_told_apart() {
    let before = Made::default().runs(2);
    let mut other = Made { seed: 2, mhz: 3_000, ..Made::default() }.runs(2);
    let relation = Relation::of(&before, &other).unwrap();
    assert_eq!(relation.differences, [subject::Difference::Machine]);
    let mixed = [before[0].clone(), other[0].clone()];
    assert_eq!(Relation::of(&mixed, &before).unwrap_err().what, [subject::Difference::Machine]);
    let matching = Matching::of(mixed.to_vec(), &before);
    assert_eq!((matching.alike.len(), matching.others.len()), (1, 1));
    // The counter's rate is measured anew each time, and labels do not tell work apart.
    other[0].machine.counter_mhz = 2_452;
    other[0].params.insert("commit".into(), "1f3c".into());
    assert!(before[0].is_alike(&other[0]));
    other[0].params.insert("N".into(), "100".into());
    assert_eq!(before[0].differences(&other[0]), [subject::Difference::Parameters]);
}

#[test]
fn a_change_in_a_history_is_marked_once_where_it_is() {
    let mut runs = Made::default().runs(12);
    runs.extend(Made { seed: 2, slower: 0.06, ..Made::default() }.runs(10));
    let series = Series::all(&runs);
    assert_eq!(series.len(), 1);
    let at: Vec<usize> = series[0].changes.iter().map(|change| change.at).collect();
    assert_eq!(at, [12]);
    assert!(series[0].of_iteration);
    assert!(Series::all(&runs[..12])[0].changes.is_empty());
}

#[test]
fn a_baseline_keeps_adds_once_and_trims() {
    let folder = std::env::temp_dir().join(format!("gammachi-baseline-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    assert!(matches!(baseline::read(&folder), Err(BaselineError::Missing(_))));
    let runs = Made::default().runs(5);
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
fn records_that_contradict_themselves_or_are_of_tomorrow_are_refused() {
    let run = Made::default().run();
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
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn differences_add_up_to_the_nanosecond(
        (before, after) in (1u64..5, 1u64..5),
        seed in 1u64..1_000,
        slower in -0.2f64..0.5,
        slow_rank in proptest::option::of(0u32..4),
    ) {
        let before = Made { seed, ..Made::default() }.runs(before);
        let after = Made { seed: seed + 1_000, slower, slow_rank, ..Made::default() }.runs(after);
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

/// Where nothing is allowed, alarms come as often as the level says: about one in a hundred.
#[test]
#[ignore = "takes minutes; by hand, with --ignored"]
fn false_alarms_where_nothing_is_allowed() {
    for spread in [0.003, 0.02] {
        let (alarms, _) = rates(300, spread, 0.0, 0.001);
        assert!(alarms <= 9, "{alarms} of 300 where runs scatter by {spread}");
    }
}
