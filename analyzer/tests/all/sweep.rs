//! `gammachi sweep` and `gammachi scaling` as a user meets them. No recorder is needed: the programs
//! leave files where a recorder would, or fail.

use std::fs;
use std::path::Path;

use gammachi_analyzer::trace::study_json::{StudyJson, StudyRunState};

use crate::scratch::{Scratch, stderr};

impl Scratch {
    fn study(&self) -> StudyJson {
        StudyJson::read(&self.0.path().join("study")).unwrap()
    }
}

fn finished(study: &StudyJson) -> usize {
    study.runs.iter().filter(|run| run.state == StudyRunState::Finished).count()
}

/// Leaves a rank file, and a line in `log`; fails for two ranks as long as `broken` is there.
const PROGRAM: &str = "echo {np} {N} >> log; if [ {np} = 2 ] && [ -e broken ]; then echo no luck; \
                       exit 3; fi; mkdir -p $GAMMACHI_OUT/ranks-000; \
                       : > $GAMMACHI_OUT/ranks-000/rank-000000.gmc";

fn sweep<'a>(np: &'a str, repeat: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words =
        vec!["sweep", "--np", np, "--param", "N=7,9", "--repeat", repeat, "--out", "study"];
    words.extend(more);
    words.extend(["--", "sh", "-c", PROGRAM]);
    words
}

#[test]
fn failed_runs_are_marked_and_the_same_command_goes_on() {
    let scratch = Scratch::new();
    fs::write(scratch.0.path().join("broken"), "").unwrap();
    let output = scratch.run(&sweep("1,2", "2", &[]));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let study = scratch.study();
    assert_eq!((study.runs.len(), finished(&study)), (8, 4));
    let failed = study.runs.iter().find(|run| run.np == 2).unwrap();
    assert_eq!(failed.state, StudyRunState::Failed);
    assert_eq!(
        (failed.exit_code, failed.reason.as_deref()),
        (Some(3), Some("exit code 3: no luck"))
    );
    let log = || fs::read_to_string(scratch.0.path().join("log")).unwrap().lines().count();
    assert_eq!(log(), 8);

    // As after an interruption: one run is not made, its directory half written.
    let mut interrupted = scratch.study();
    let at = interrupted.runs.iter().position(|r| r.state == StudyRunState::Finished).unwrap();
    interrupted.runs[at].state = StudyRunState::Pending;
    interrupted.write(&scratch.0.path().join("study")).unwrap();
    let half = scratch.0.path().join("study").join(&interrupted.runs[at].directory).join("half");
    fs::write(&half, "").unwrap();
    scratch.run(&sweep("1,2", "2", &[]));
    assert_eq!((log(), finished(&scratch.study()), half.exists()), (9, 4, false));

    fs::remove_file(scratch.0.path().join("broken")).unwrap();
    scratch.run(&sweep("1,2", "2", &["--retry"]));
    assert_eq!((log(), finished(&scratch.study())), (13, 8));
    scratch.run(&sweep("1,2,4", "2", &[]));
    let study = scratch.study();
    assert_eq!((log(), study.runs.len(), finished(&study)), (17, 12, 12));
    let output = fs::read_to_string(scratch.0.path().join("log")).unwrap();
    assert!(output.lines().filter(|line| *line == "4 9").count() == 2, "{output}");
}

#[test]
fn another_study_in_the_directory_is_refused() {
    let scratch = Scratch::new();
    scratch.run(&sweep("1", "1", &[]));
    for more in [&["--compute", "blas"][..], &["--region", "solve"], &["--level", "0"]] {
        let output = scratch.run(&sweep("1", "1", more));
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("holds a study with another"), "{}", stderr(&output));
    }
    fs::create_dir(scratch.0.path().join("full")).unwrap();
    fs::write(scratch.0.path().join("full/x"), "").unwrap();
    let words = ["sweep", "--np", "1", "--out", "full", "--", "sh", "-c", "{np}"];
    assert_eq!(scratch.run(&words).status.code(), Some(2));
    let words = ["sweep", "--np", "1,2", "--out", "new", "--", "true"];
    assert!(stderr(&scratch.run(&words)).contains("does not contain {np}"));
    assert!(!Path::exists(&scratch.0.path().join("new")));
}

#[test]
fn a_table_is_fitted_and_drawn() {
    let scratch = Scratch::new();
    let mut text = String::from("p,tau_s,sum_gamma_s\n");
    for p in [1.0, 2.0, 4.0, 8.0, 16.0] {
        text += &format!("{p},{},97\n", 100.0 / p + 1.0 + 0.2 * p);
    }
    fs::write(scratch.0.path().join("t.csv"), text).unwrap();
    let words = [
        "scaling",
        "t.csv",
        "--json",
        "--predict",
        "32",
        "--form",
        "three-terms",
        "--figures",
        "figures",
    ];
    let output = scratch.run(&words);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let fit = &document["fits"][0];
    let close = |value: &serde_json::Value, truth: f64| {
        assert!((value.as_f64().unwrap() / truth - 1.0).abs() < 1e-6, "{value} {truth}");
    };
    close(&fit["a_s"], 100.0);
    close(&fit["p_c"], 500f64.sqrt());
    close(&fit["predictions"][0]["tau_s"], 100.0 / 32.0 + 1.0 + 6.4);
    for name in ["tau-chi", "fit", "time", "overhead", "prediction"] {
        let svg = fs::read_to_string(scratch.0.path().join(format!("figures/{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name}");
    }
    let output = scratch.run(&["scaling", "t.csv", "--p1", "3"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--p1 3: no run has p = 3"), "{}", stderr(&output));
    assert_eq!(scratch.run(&["scaling", "t.csv", "--isoeff", "1.5"]).status.code(), Some(2));
    assert_eq!(scratch.run(&["scaling", "t.csv", "--work", "N^"]).status.code(), Some(2));
    assert_eq!(scratch.run(&["scaling", "absent.csv"]).status.code(), Some(1));
}

#[test]
fn a_page_of_a_study_takes_what_has_a_meaning_for_it() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.0.path().join("study")).unwrap();
    let study = "{\"format\": \"gammachi-study\", \"format_version\": 1, \"gammachi_version\": \"0\", \
                 \"argv\": [\"app\"], \"level\": 1, \"compute\": \"outside\", \"region\": null, \
                 \"seed\": 1, \"runs\": []}";
    fs::write(scratch.0.path().join("study/study.json"), study).unwrap();
    for (arguments, code, words) in [
        (&[][..], 2, "--html FILE"),
        (&["--json"][..], 2, "--html FILE"),
        (&["--html", "p.html", "--window", "1,2"][..], 2, "--window is for one run"),
        (&["--html", "p.html"][..], 1, "no run"),
    ] {
        let output = scratch.run(&[&["report", "study"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    assert!(!scratch.0.path().join("p.html").exists());
}
