//! Properties of what leaves the command, over generated runs: no share exceeds 1, factors multiply to their product,
//! and `report` and `why` state the same efficiency.

use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;

use super::{Report, causes, report, whatif};
use crate::analysis::Analysis;
use crate::causes::tests::{finished, generated};
use crate::causes::{ALL_WAITS, Causes, RankTime, Tree, WaitFilter};
use crate::comparison::RunRecord;
use crate::comparison::record::Kind;
use crate::diagnosis::{Diagnosis, Evidence};
use crate::metrics::{Metrics, Selection};
use crate::replay::{Answer, Assembled, Graph, WhatIf, ideal_time};
use crate::synthetic_messages::on_world;
use crate::synthetic_trace::SyntheticRank;
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

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

/// Renders everything that `report`, `why`, `whatif` and `compare` say of a run, and checks it.
fn check(ranks: &[SyntheticRank]) {
    let directory = finished(ranks);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let analysis = Analysis::of(&run, &timeline);
    let ideal = ideal_time(&analysis);
    let all = Causes::new(&analysis);
    let regions = || all.regions.all.iter().filter(|region| region.ticks > 0);
    let mut choices =
        vec![WaitFilter::default(), WaitFilter { iteration: Some(3), ..WaitFilter::default() }];
    choices.extend(regions().flat_map(|region| {
        let region = Some(region.name.clone());
        [None, Some(3)].map(|iteration| WaitFilter { region: region.clone(), iteration })
    }));
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
    for choice in &choices {
        let found = Causes::of(&analysis, choice);
        let diagnosis = Diagnosis::new(Evidence {
            run: &run,
            timeline: &timeline,
            metrics: &metrics,
            causes: Some(&found),
            choice,
            ideal: ideal.ok(),
        });
        let why = diagnosis.of.why().unwrap();
        assert_ratios(&serde_json::from_str(&causes::json(&why, &diagnosis).unwrap()).unwrap());
        assert_percentages(&causes::screen(&why, &diagnosis, false));
    }
    check_report(&analysis, &Selection::Whole, (&all, ideal.ok()), all.tree(&run, None).unwrap());
    for region in regions() {
        let selection = Selection::Region(region.name.clone());
        check_report(&analysis, &selection, (&all, None), region.tree(&run).unwrap());
    }
    check_record(directory.path(), &all);
    check_what_if(&analysis);
}

/// Checks a report, and that it states the same efficiency as `why`.
fn check_report(
    analysis: &Analysis,
    selection: &Selection,
    (causes, ideal): (&Causes, Option<f64>),
    tree: Tree,
) {
    let (run, timeline) = (analysis.run, analysis.timeline);
    let metrics = Metrics::new(run, timeline, selection).unwrap();
    let efficiency = metrics.efficiency.unwrap();
    for (one, other) in [
        (Some(tree.parallel), Some(efficiency.parallel)),
        (tree.load_balance, efficiency.load_balance),
        (Some(tree.communication), Some(efficiency.communication)),
    ] {
        let differ = one.zip(other).is_some_and(|(one, other)| (one - other).abs() >= ROUNDING);
        assert!(!differ, "{selection:?}: why {tree:?}, report {efficiency:?}");
    }
    let (metrics, causes, choice) = (&metrics, Some(causes), &ALL_WAITS);
    let diagnosis = Diagnosis::new(Evidence { run, timeline, metrics, causes, choice, ideal });
    let report = Report::new(&diagnosis, &[]);
    assert_ratios(&serde_json::from_str(&report::json(&report).unwrap()).unwrap());
    assert_percentages(&report::screen(&report, false));
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
    #![proptest_config(ProptestConfig::with_cases(64))]
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
    let causes = Causes::new(&Analysis::of(&run, &timeline));
    let of_threads = causes.waiting() - causes.rank_times[0].waiting;
    let of_rank = causes.rank_times[1].waiting;
    assert!(of_threads > 3_500_000 && (895_000..1_000_000).contains(&of_rank), "{of_rank}");
}
