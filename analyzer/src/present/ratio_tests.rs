//! Properties of what leaves the command, over generated runs: no share exceeds 1, factors multiply to their product,
//! and `report` and `why` state the same efficiency.

use proptest::prelude::*;
use serde_json::Value;

use super::{Report, causes, report};
use crate::analysis::Analysis;
use crate::causes::tests::{finished, generated};
use crate::causes::{Causes, WaitFilter};
use crate::metrics::{Metrics, Selection};
use crate::replay::ideal_time;
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

/// Renders everything that `report` and `why` say of a run, and checks it.
fn check(ranks: &[SyntheticRank]) {
    let directory = finished(ranks);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let analysis = Analysis::of(&run, &timeline);
    let ideal = ideal_time(&analysis);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
    let choices =
        [WaitFilter::default(), WaitFilter { iteration: Some(3), ..WaitFilter::default() }];
    for choice in &choices {
        let found = Causes::of(&analysis, choice);
        let why = causes::Why {
            run: &run,
            timeline: &timeline,
            causes: &found,
            ideal,
            rank: None,
            choice,
        };
        assert_ratios(&serde_json::from_str(&causes::json(&why).unwrap()).unwrap());
        assert_percentages(&causes::screen(&why, false));
    }
    let found = Causes::new(&analysis);
    let (tree, efficiency) = (found.tree(&run, None).unwrap(), metrics.efficiency.unwrap());
    for (one, other) in [
        (tree.parallel, efficiency.parallel),
        (tree.load_balance.unwrap(), efficiency.load_balance.unwrap()),
        (tree.communication, efficiency.communication),
    ] {
        assert!((one - other).abs() < ROUNDING, "why {tree:?}, report {efficiency:?}");
    }
    let report = Report {
        run: &run,
        timeline: &timeline,
        metrics: &metrics,
        causes: Some(&found),
        savings: &[],
        ideal: ideal.ok(),
    };
    assert_ratios(&serde_json::from_str(&report::json(&report).unwrap()).unwrap());
    assert_percentages(&report::screen(&report, false));
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
