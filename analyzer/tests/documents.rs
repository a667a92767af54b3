//! What the commands print fits the schemas of `docs/reference/schema`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

#[path = "documents/instance.rs"]
mod instance;

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
}

#[test]
fn documents_of_comparisons() {
    let folder = Folder::new("compared");
    folder.output(&["check", "--add", "run", "--baseline", "perf"]);
    let mut entries = fs::read_dir(folder.0.join("perf")).expect("a baseline");
    let record = entries.next().expect("a record").expect("a record").path();
    let text = fs::read_to_string(record).expect("a record");
    // Another run is one with another begin.
    let mut record: Value = serde_json::from_str(&text).expect("JSON");
    record["begun_ns"] = 5.into();
    fs::write(folder.0.join("other.gammachi.json"), record.to_string()).expect("writable");
    folder.check("compare", &["compare", "run", "other.gammachi.json", "--json"]);
    folder.check("check", &["check", "other.gammachi.json", "--baseline", "perf", "--json"]);
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
