//! What the commands print fits the schemas of `docs/reference/schema`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::instance;

/// The folder of a test, with a run and files made from it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("gammachi-documents-{name}-{}", std::process::id());
        let this = Self(std::env::temp_dir().join(name));
        let run = this.0.join("run/ranks-000");
        fs::create_dir_all(&run).expect("writable");
        let kept = kept().join("messages");
        for name in ["run.json", "ranks-000/rank-000000.gmc", "ranks-000/rank-000001.gmc"] {
            fs::copy(kept.join(name), this.0.join("run").join(name)).expect("a kept run");
        }
        this
    }

    fn output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gammachi"));
        command.args(arguments).current_dir(&self.0).output().expect("it starts")
    }

    /// Checks what a command prints, with whatever exit code.
    #[track_caller]
    fn check(&self, schema: &str, arguments: &[&str]) {
        let output = self.output(arguments);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(!printed.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        check(schema, &printed);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kept-runs")
}

fn schema(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/schema");
    let text = fs::read_to_string(folder.join(format!("{name}.schema.json"))).expect("a schema");
    serde_json::from_str(&text).expect("JSON")
}

#[track_caller]
fn check(name: &str, text: &str) {
    let document = serde_json::from_str(text).expect("JSON");
    let found = instance::violations(&schema(name), &document);
    assert!(found.is_empty(), "{name} does not fit its schema: {found:#?}");
}

#[test]
fn documents_of_a_run() {
    let folder = Folder::new("run");
    folder.check("report", &["report", "run", "--json", "--causal"]);
    folder.check("why", &["why", "run", "--json", "--rank", "1"]);
    folder.check("whatif", &["whatif", "run", "--json", "--latency", "x2"]);
    folder.check("roofline", &["roofline", "run", "--json"]);
    folder.check("top", &["top", "run", "--once", "--json"]);
}

const COUNTED: &str = "all time outside MPI and the recorder counts as computing here";

#[test]
fn regions_say_what_they_count_where_other_figures_count_less() {
    let folder = Folder::new("counted");
    // Only the program's regions count as computing.
    let regions = kept().join("regions").display().to_string();
    let says = |arguments: &[&str]| {
        let text = String::from_utf8(folder.output(arguments).stdout).expect("text");
        text.contains(COUNTED)
    };
    for (run, expected) in [(regions.as_str(), true), ("run", false)] {
        for command in ["why", "report"] {
            assert_eq!(says(&[command, run]), expected, "{command} {run}");
            assert_eq!(says(&[command, run, "--json"]), expected, "{command} {run} --json");
        }
        folder.output(&["report", run, "--html", "page.html"]);
        let page = fs::read_to_string(folder.0.join("page.html")).expect("a page");
        assert_eq!(page.contains(COUNTED), expected, "page of {run}");
    }
    folder.check("why", &["why", &regions, "--json"]);
}

#[test]
fn documents_of_comparisons() {
    let folder = Folder::new("compared");
    folder.output(&["check", "--add", "run", "--baseline", "perf"]);
    let mut entries = fs::read_dir(folder.0.join("perf")).expect("a baseline");
    let record = entries.next().expect("a record").expect("a record").path();
    let text = fs::read_to_string(record).expect("a record");
    let record: Value = serde_json::from_str(&text).expect("JSON");
    // Another run is one with another begin, another configuration one with another parameter.
    let write = |name: &str, begun_ns: u64, n: Option<&str>| {
        let mut other = record.clone();
        other["begun_ns"] = begun_ns.into();
        if let Some(n) = n {
            other["params"] = serde_json::json!({ "N": n });
        }
        fs::write(folder.0.join(name), other.to_string()).expect("writable");
    };
    write("other.gammachi.json", 5, None);
    folder.check("compare", &["compare", "run", "other.gammachi.json", "--json"]);
    folder.check("check", &["check", "other.gammachi.json", "--baseline", "perf", "--json"]);
    fs::create_dir(folder.0.join("sizes")).expect("writable");
    let before = ["sizes/small.gammachi.json", "sizes/large.gammachi.json"];
    let after = ["small.gammachi.json", "large.gammachi.json"];
    for (at, n) in [(0, "1"), (1, "2")] {
        write(before[at], 6 + at as u64, Some(n));
        write(after[at], 8 + at as u64, Some(n));
    }
    let sides = [before[0], before[1], "--", after[0], after[1]];
    folder.check("compare-several", &[&["compare", "--json"], &sides[..]].concat());
    let checked = ["check", after[0], after[1], "--baseline", "sizes", "--json"];
    folder.check("check-several", &checked);
}

#[test]
fn documents_of_models_and_of_their_predictions() {
    let folder = Folder::new("models");
    let mut table = "p,N,tau_s,sum_gamma_s\n".to_owned();
    for (n, p) in [1.0_f64, 2.0, 4.0].iter().flat_map(|n| [1, 2, 4, 8, 16].map(|p| (n, p))) {
        let (work_s, ranks) = (n.powi(3), f64::from(p));
        let tau_s = work_s / ranks + 0.02 + 0.003 * ranks * n;
        table += &format!("{p},{n},{tau_s},{work_s}\n");
    }
    fs::write(folder.0.join("table.csv"), table).expect("writable");
    let model = ["model", "table.csv", "--json", "--replicas", "5", "--vars", "p,N"];
    let with = |options: &[&'static str]| [&model[..], options].concat();
    folder.check("scaling", &["scaling", "table.csv", "--predict", "32", "--remember", "--json"]);
    folder.check("model", &with(&["--dictionary", "--holdout", "p>=16", "--compare"]));
    folder.check("model", &with(&["--basis", "N^3/p, 1, p*N, 2*p*N"]));
    folder.check("model", &with(&["--two-step", "p,N"]));
    folder.check("whatif-ledger", &["whatif", "--ledger", ".", "--json"]);
    let ledger = fs::read_to_string(folder.0.join("gammachi-ledger.jsonl")).expect("a ledger");
    ledger.lines().for_each(|line| check("ledger", line));
}

#[test]
fn lines_of_dump() {
    let folder = Folder::new("dump");
    let mut found = BTreeSet::new();
    for run in fs::read_dir(kept()).expect("kept runs").flatten() {
        let run = run.path().display().to_string();
        for options in [&["--json"][..], &["--json", "--messages"]] {
            let output = folder.output(&[&["dump", &run], options].concat());
            for line in String::from_utf8_lossy(&output.stdout).lines() {
                let name = match options {
                    [_] => "dump-event",
                    _ if line.starts_with("{\"unmatched\"") => "dump-unmatched",
                    _ => "dump-message",
                };
                check(name, line);
                found.insert(name);
            }
        }
    }
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn documents_without_a_run() {
    let folder = Folder::new("tables");
    folder.check("roofline", &["roofline", "--example", "all", "--json"]);
    folder.check("calibrate-logpq", &["calibrate", "logpq", "--example", "cm5", "--json"]);
    folder.check("doctor", &["doctor", "--json"]);
}

#[test]
fn a_key_too_many_a_missing_one_and_another_type_are_found() {
    let document = |text: &str| {
        instance::violations(&schema("study"), &serde_json::from_str(text).expect("JSON"))
    };
    let keys = r#""format":"","format_version":1,"gammachi_version":"","argv":[],"level":1,"compute":"","seed":1"#;
    let of = |rest: &str| document(&format!("{{{keys},{rest}}}"));
    assert!(of(r#""region":null,"runs":[]"#).is_empty());
    assert_eq!(of(r#""region":null,"runs":[],"more":1"#), [".more: is not described"]);
    assert_eq!(of(r#""runs":[]"#), [": region is missing"]);
    let found = of(r#""region":3,"runs":[]"#);
    assert!(found.len() == 1 && found[0].starts_with(".region: 3 against type"), "{found:?}");
}
