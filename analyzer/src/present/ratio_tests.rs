//! Properties of what leaves the command, over generated runs: no share exceeds 1, factors multiply to their product,
//! and `report` and `why` state the same efficiency.

use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;

use crate::analysis::Analysis;
use crate::causes::tests::{finished, generated};
use crate::causes::{Causes, CausesOptions, RankTime, Tree};
use crate::comparison::RunRecord;
use crate::comparison::record::Kind;
use crate::diagnosis::{Diagnosis, Evidence};
use crate::metrics::{Bound, Metrics, Selection, SelectionError};
use crate::replay::{Answer, Assembled, Graph, WhatIf, ideal_time_of};
use crate::synthetic_messages::on_world;
use crate::synthetic_trace::SyntheticRank;
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

use super::shown::Report;
use super::{causes, report, whatif};

/// Factors of efficiency, in any document.
const FACTORS: [&str; 8] = [
    "parallel",
    "load_balance",
    "within_hosts",
    "between_hosts",
    "communication",
    "serialisation",
    "moving_imbalance",
    "transfer",
];

/// Allowance for rounding: of the stages, some count ticks and some seconds.
const ROUNDING: f64 = 1e-3;

/// Asserts that every factor and share of a document lies between 0 and 1, and that trees multiply.
fn assert_ratios(document: &Value) {
    match document {
        Value::Array(all) => all.iter().for_each(assert_ratios),
        Value::Object(members) => {
            for (key, value) in members {
                let is_ratio = FACTORS.contains(&key.as_str()) || key.contains("share");
                if let Some(ratio) = value.as_f64().filter(|_| is_ratio) {
                    assert!((0.0..=1.0 + ROUNDING).contains(&ratio), "{key} {ratio} in {document}");
                }
                assert_ratios(value);
            }
            let of = |key: &str| members.get(key).and_then(Value::as_f64);
            let products = [
                ("parallel", "load_balance", "communication"),
                ("load_balance", "within_hosts", "between_hosts"),
                ("communication", "serialisation", "transfer"),
            ];
            for (product, one, other) in products {
                if let (Some(product), Some(one), Some(other)) = (of(product), of(one), of(other)) {
                    assert!((product - one * other).abs() < ROUNDING, "{document}");
                }
            }
        }
        _ => {}
    }
}

/// Asserts that no percentage on a screen exceeds 100.
fn assert_percentages(screen: &str) {
    let words: Vec<&str> = screen.split_whitespace().collect();
    for pair in words.windows(2).filter(|pair| pair[1].starts_with('%')) {
        let number: String = pair[0].chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
        let is_more = number.parse::<f64>().is_ok_and(|percent| percent > 100.0);
        assert!(!is_more, "{} {} in\n{screen}", pair[0], pair[1]);
    }
}

/// Parts of a run of each kind, alone and together.
fn parts_of(analysis: &Analysis, all: &Causes) -> Vec<Selection> {
    let middle_s = all.clock.seconds(all.whole.1 - all.whole.0) / 2.0;
    let window =
        |from, to| Selection::Window { from: Bound::Seconds(from), to: Bound::Seconds(to) };
    let windows = [window(0.0, middle_s), window(middle_s, 2.5 * middle_s)];
    let regions = all.regions.all.iter().filter(|region| region.ticks > 0);
    let regions = regions.map(|region| Selection::Region(region.name.clone()));
    let iteration = Causes::iteration(analysis, 3).ok().map(Selection::Iteration);
    let alone: Vec<Selection> = regions.chain(iteration).chain(windows).collect();
    let mut parts = vec![Selection::Whole];
    for (number, one) in alone.iter().enumerate() {
        let is_same =
            |other: &&Selection| std::mem::discriminant(*other) == std::mem::discriminant(one);
        let others = alone[number..].iter().filter(|other| !is_same(other));
        parts.extend(others.map(|other| Selection::All(vec![one.clone(), other.clone()])));
    }
    parts.extend(alone);
    parts
}

/// Renders everything that `report`, `why`, `whatif` and `compare` say of a run, and checks it.
fn check(ranks: &[SyntheticRank]) {
    let directory = finished(ranks);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let analysis = Analysis::new(&run, &timeline);
    let all = Causes::new(&analysis);
    for selection in parts_of(&analysis, &all) {
        check_selection(&analysis, &selection);
    }
    check_window_of_all(&analysis, &all);
    check_record(directory.path(), &all);
    check_what_if(&analysis);
}

/// Checks that a window of the whole run has the efficiency of the whole run.
fn check_window_of_all(analysis: &Analysis, all: &Causes) {
    let end_s = all.clock.seconds(all.whole.1 - all.whole.0) + 1.0;
    let window = Selection::Window { from: Bound::Seconds(0.0), to: Bound::Seconds(end_s) };
    let metrics = Metrics::new(analysis.run, analysis.timeline, &window).unwrap();
    let causes = Causes::with_options(analysis, CausesOptions::of_part(&metrics)).unwrap();
    let tree = |causes: &Causes| {
        let ideal = ideal_time_of(analysis, causes.part.as_ref()).ok();
        causes.tree(analysis.run, ideal).unwrap()
    };
    let (of_window, of_all) = (tree(&causes), tree(all));
    let factors =
        |tree: Tree| [Some(tree.parallel), tree.load_balance, tree.serialisation, tree.transfer];
    for (one, other) in factors(of_window).into_iter().zip(factors(of_all)) {
        let differ = one.zip(other).is_some_and(|(one, other)| (one - other).abs() >= ROUNDING);
        assert!(!differ && one.is_some() == other.is_some(), "{of_window:?}, not {of_all:?}");
    }
}

/// Checks `report` and `why` of a selection, and that both state the same efficiency.
fn check_selection(analysis: &Analysis, selection: &Selection) {
    let (run, timeline) = (analysis.run, analysis.timeline);
    let metrics = match Metrics::new(run, timeline, selection) {
        Ok(metrics) => metrics,
        // A region may lie outside a window.
        Err(error) => {
            assert!(matches!(error, SelectionError::NothingInCommon(_)), "{selection:?}: {error}");
            return;
        }
    };
    let causes = Causes::with_options(analysis, CausesOptions::of_part(&metrics)).unwrap();
    let ideal = ideal_time_of(analysis, causes.part.as_ref());
    let (metrics, causes) = (&metrics, Some(&causes));
    let diagnosis =
        Diagnosis::new(Evidence { run, timeline, metrics, causes, ideal, replay: None });
    let why = diagnosis.of.why().unwrap();
    let labels = why.causes.path_labels(analysis);
    let on_path: i64 = labels.iter().map(|label| label.on_path.ticks).sum();
    assert_eq!(on_path + why.causes.path.skew, why.causes.path.ticks(), "labels of {selection:?}");
    let document = causes::json(&why, &diagnosis, Some(&labels)).unwrap();
    assert_ratios(&serde_json::from_str(&document).unwrap());
    assert_percentages(&causes::screen(&why, &diagnosis, false));
    let report = Report::new(&diagnosis, &[]);
    assert_ratios(&serde_json::from_str(&report::json(&report).unwrap()).unwrap());
    assert_percentages(&report::screen(&report, false));
    let (Some(tree), Some(efficiency)) = (why.tree(), metrics.efficiency) else { return };
    for (one, other) in [
        (Some(tree.parallel), Some(efficiency.parallel)),
        (tree.load_balance, efficiency.load_balance),
        (Some(tree.communication), Some(efficiency.communication)),
    ] {
        let differ = one.zip(other).is_some_and(|(one, other)| (one - other).abs() >= ROUNDING);
        assert!(!differ, "{selection:?}: why {tree:?}, report {efficiency:?}");
    }
}

/// Checks that what `compare` compares are the times that `why` shows.
fn check_record(directory: &Path, causes: &Causes) {
    let record = RunRecord::of_directory(directory).unwrap();
    let all = record.elapsed_ns * i64::from(record.ranks);
    assert_eq!(record.parts.iter().map(|part| part.ns).sum::<i64>(), all);
    // Rounding moves a nanosecond of each part of each rank.
    let allowance = record.parts.len() as f64 * f64::from(record.ranks) + 1.0;
    let least = record.parts.iter().map(|part| part.ns).min().unwrap();
    assert!(least as f64 >= -allowance, "{:?}", record.parts);
    let compared = |kind: Kind| {
        let of_kind = record.parts.iter().filter(|part| part.kind == kind);
        of_kind.map(|part| part.ns).sum::<i64>() as f64
    };
    let shown = |of: fn(&RankTime) -> i64| {
        causes.clock.seconds(causes.rank_times.iter().map(of).sum()) * 1e9
    };
    for (compared, shown) in [
        (compared(Kind::Computing), shown(|of| of.computing)),
        (
            compared(Kind::Waiting) + compared(Kind::Transfer) + compared(Kind::StartAndEnd),
            shown(|of| of.waiting + of.transfer),
        ),
    ] {
        assert!((compared - shown).abs() <= allowance, "{compared}, not {shown}");
    }
}

/// Checks the answers of `whatif`: none promises more than there is.
fn check_what_if(analysis: &Analysis) {
    let what_if = WhatIf::new(Graph::new(analysis).unwrap());
    let answers: Vec<Answer> =
        what_if.standard().iter().map(|question| what_if.ask(question)).collect();
    let (run, timeline) = (analysis.run, analysis.timeline);
    let metrics = Metrics::new(run, timeline, &Selection::Whole).unwrap();
    let diagnosis = Diagnosis::new(Evidence::of_metrics(run, timeline, &metrics));
    let asked = whatif::WhatIfResults {
        run: analysis.run,
        timeline: analysis.timeline,
        what_if: &what_if,
        answers: &answers,
        tolerances: &[],
        placement: &what_if.placement,
        network: &Assembled::of_run(what_if.calibration.network, [true; 2], [true; 2]),
        notes: &[],
        diagnosis: &diagnosis,
    };
    assert_ratios(&serde_json::from_str(&whatif::json(&asked).unwrap()).unwrap());
    assert_percentages(&whatif::screen(&asked, false));
    assert!(answers.iter().all(|answer| answer.elapsed_s >= 0.0), "{answers:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::test_cases::cases(64)))]
    #[test]
    fn no_share_exceeds_one(ranks in generated::runs_with_loops()) {
        check(&ranks);
    }
}

#[test]
fn threads_that_wait_at_once_are_one_rank_that_waits() {
    const THREADS: u32 = 4;
    const BEGIN: u64 = 1_000_000;
    let mut ranks = [0, 1].map(|rank| SyntheticRank::level_1(rank, 2, 2_000_000));
    let [sender, receiver] = &mut ranks;
    for thread in 0..THREADS {
        let (tag, sent) = (thread as i32, 1_900_000 + u64::from(thread) * 100);
        receiver.thread_call_with(
            thread as usize,
            "MPI_Recv",
            BEGIN + 1_000,
            sent + 50,
            on_world(0, tag, 8),
        );
        sender.call_with("MPI_Send", sent, sent + 10, on_world(1, tag, 8));
    }
    check(&ranks);
    let directory = finished(&ranks);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let causes = Causes::new(&Analysis::new(&run, &timeline));
    let of_threads = causes.waiting() - causes.rank_times[0].waiting;
    let of_rank = causes.rank_times[1].waiting;
    assert!(of_threads > 3_500_000 && (895_000..1_000_000).contains(&of_rank), "{of_rank}");
}
