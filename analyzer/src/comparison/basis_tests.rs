//! Comparisons of runs on a busy machine, and of runs with other counts.

use super::counts::CountKind;
use super::guard::{Check, UndecidedReason, Verdict};
use super::synthetic_runs::RunGenerator;
use super::*;
use crate::present::comparison::{json, screen};
use crate::synthetic_trace::RunDirectory;

fn comparison(before: &[RunRecord], after: &[RunRecord]) -> Comparison {
    Comparison::new(before, after, Relation::between(before, after).unwrap())
}

fn check(of: &Comparison) -> Check {
    Check::all(std::slice::from_ref(of), 0.02).remove(0)
}

/// A generator of runs whose ranks lack cores, which take longer by a fraction.
fn busy(seed: u64, lacked_cores: f64, machine: f64) -> RunGenerator {
    RunGenerator { seed, lacked_cores, machine, ..RunGenerator::default() }
}

#[test]
fn one_run_each_on_a_busy_machine_tells_nothing() {
    for [before, after] in [[0.2, 0.3], [0.0, 0.3], [0.3, 0.0]] {
        let before = busy(1, before, 0.0).runs(1);
        let after = busy(2, after, 0.83).runs(1);
        let of = comparison(&before, &after);
        assert!(!of.is_certain() && of.cause.is_none());
        assert!(of.tested.iter().all(|tested| !tested.is_significant));
        let check = check(&of);
        let because = Some(UndecidedReason::LackOfCores);
        assert_eq!((check.verdict, check.because), (Verdict::CannotTell, because));
        let screen = screen(&of, false);
        let screen: Vec<&str> = screen.split_whitespace().collect();
        let screen = screen.join(" ");
        assert!(screen.contains("Cannot tell whether the time changed: ranks waited"), "{screen}");
        // No interval that would say the opposite.
        assert!(!screen.contains("slower ("), "{screen}");
        assert!(json(&of).unwrap().contains(r#""verdict": "cannot_tell""#));
    }
}

#[test]
fn sides_that_lack_cores_alike_are_compared_by_their_scatter() {
    let quiet = RunGenerator::default().runs(5);
    let alike = [busy(1, 0.3, 0.0).runs(5), busy(2, 0.3, 0.3).runs(5)];
    let of = comparison(&alike[0], &alike[1]);
    assert!(of.is_certain() && check(&of).verdict == Verdict::Regressed);
    // Only the runs after lacked cores: that alone may have made them slower, but not faster.
    let of = comparison(&quiet, &alike[1]);
    assert_eq!(check(&of).verdict, Verdict::CannotTell);
    let of = comparison(&quiet, &busy(2, 0.3, -0.3).runs(5));
    assert!(of.is_certain() && check(&of).verdict == Verdict::Fine);
    // Only those before did: what seems not slower may be so.
    let of = comparison(&alike[0], &quiet);
    assert_eq!(check(&of).verdict, Verdict::CannotTell);
}

#[test]
fn manifold_counts_decide_on_a_busy_machine() {
    let many = RunGenerator { allreduces: 5_000, ..busy(1, 0.3, 7.0) }.runs(1);
    let few = busy(2, 0.3, 0.0).runs(1);
    let faster = comparison(&many, &few);
    assert!(faster.is_certain() && faster.decisive().difference() < 0.0);
    let change = faster.cause.as_ref().and_then(|cause| cause.change.as_ref()).expect("a count");
    assert_eq!(change.what, CountKind::Calls("MPI_Allreduce".into()));
    assert_eq!(check(&faster).verdict, Verdict::Fine);
    let slower = comparison(&few, &many);
    assert_eq!(check(&slower).verdict, Verdict::Regressed);
    // One more call in ten does not explain a time that a lack of cores may explain.
    let more = RunGenerator { allreduces: 2, ..busy(2, 0.3, 0.4) }.runs(1);
    assert_eq!(check(&comparison(&few, &more)).verdict, Verdict::CannotTell);
}

#[test]
fn median_is_that_of_all_iterations() {
    let mut runs = RunGenerator::default().runs(2);
    for run in &mut runs {
        run.iterations.as_mut().unwrap().median = Some(8_000_000);
    }
    let of = comparison(&runs[..1], &runs[1..]);
    assert!(of.iteration.is_some_and(|of| (of.before - 8e6).abs() < 1.0));
}

#[test]
fn what_makes_figures_invalid_is_said_first_of_each_side_and_withholds_causes() {
    let quiet = RunGenerator::default().runs(1);
    let busy_runs = busy(2, 0.3, 0.0).runs(3);
    let words =
        |of: &Comparison| screen(of, false).split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(&comparison(&quiet, &busy_runs));
    let said = "After: Oversubscribed: 4 ranks share 2 cores of here";
    let (doubt, claim) = (text.find(said), text.find("Cannot tell"));
    assert!(doubt.zip(claim).is_some_and(|(doubt, claim)| doubt < claim), "{text}");
    assert!(text.contains("(unreliable: ranks lacked cores)"), "{text}");
    // One run of three.
    let mixed =
        [&busy_runs[..1], &RunGenerator { seed: 3, ..RunGenerator::default() }.runs(2)].concat();
    assert!(words(&comparison(&mixed, &quiet)).contains("Before: (1 of 3 runs) Oversubscribed"));
    // All alike: how much slower is certain, but no wait is its cause.
    let alike = [busy(1, 0.3, 0.0).runs(5), busy(2, 0.3, 0.3).runs(5)];
    let of = comparison(&alike[0], &alike[1]);
    assert!(words(&of).contains("Before and after: Oversubscribed") && of.is_certain());
    assert!(of.cause.as_ref().is_some_and(|found| found.kind != cause::CauseKind::Waiting));
    let document: serde_json::Value = serde_json::from_str(&json(&of).unwrap()).unwrap();
    for side in ["before", "after"] {
        let findings = document[side]["findings"].as_array().unwrap();
        assert!(findings.len() == 5 && findings[4][0]["kind"] == "lack_of_cores", "{findings:?}");
    }
}

#[test]
fn findings_of_later_versions_are_left_out_of_records() {
    let record = busy(1, 0.3, 0.0).run();
    let mut text: serde_json::Value = serde_json::from_str(&record.text().unwrap()).unwrap();
    let findings = text["findings"].as_array_mut().unwrap();
    findings.insert(0, serde_json::json!({ "kind": "of_a_later_version", "share": 0.5 }));
    assert_eq!(RunRecord::parse(&text.to_string()).unwrap().findings, record.findings);
}

#[test]
fn baselines_keep_only_findings_that_make_figures_invalid() {
    let mut record = busy(1, 0.3, 0.0).run();
    let lack = record.findings.clone();
    record.findings.push(Finding::NoMainDelay { share: 0.1 });
    let folder = RunDirectory::new();
    baseline::add(folder.path(), &record).unwrap();
    assert_eq!(baseline::read(folder.path()).unwrap()[0].record.findings, lack);
}
