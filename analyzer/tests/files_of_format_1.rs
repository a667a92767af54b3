//! Runs that the first version of the format's recorder wrote, read as they were then: what is recorded
//! once must be read by every later version, with the same figures.
//!
//! `fixtures/format-1` has a folder a run, with `report.json` and `dump.txt` as they were printed; its
//! README says how they were made; most are packed, as `gammachi pack` of that time left them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1")
}

/// What the command prints of a run, which it finds under its plain name.
fn printed(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gammachi"));
    command.args(arguments).current_dir(folder()).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GAMMACHI_") {
            command.env_remove(name);
        }
    }
    let output = command.output().expect("the command starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("plain text")
}

fn document(text: &str) -> Value {
    let mut document: Value = serde_json::from_str(text).expect("a JSON document");
    // The version of the command, its sentences and what it says of causes and changes may change.
    for key in ["gammachi", "verdict", "causes", "what_if"] {
        document.as_object_mut().expect("an object").remove(key);
    }
    document
}

/// Where two documents differ first, and how.
fn difference(path: &str, expected: &Value, found: &Value) -> Option<String> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let keys = expected.keys().chain(found.keys());
            keys.map(|key| (key, expected.get(key), found.get(key))).find_map(|(key, old, new)| {
                let path = format!("{path}.{key}");
                match (old, new) {
                    (Some(old), Some(new)) => difference(&path, old, new),
                    (old, new) => Some(format!("{path}: {old:?} was expected, {new:?} is there")),
                }
            })
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let pairs = expected.iter().zip(found).enumerate();
            pairs
                .map(|(index, (old, new))| difference(&format!("{path}[{index}]"), old, new))
                .find_map(|found| found)
        }
        _ if expected == found => None,
        _ => Some(format!("{path}: {expected} was expected, {found} is there")),
    }
}

#[track_caller]
fn check(run: &str) {
    let expected = |name: &str| {
        fs::read_to_string(folder().join(run).join(name)).expect("it lies beside the run")
    };
    let (old, new) = (expected("report.json"), printed(&["report", "--json", run]));
    if let Some(difference) = difference("", &document(&old), &document(&new)) {
        panic!("the report of {run}: {difference}");
    }
    let (old, new) = (expected("dump.txt"), printed(&["dump", run]));
    for (number, (old, new)) in old.lines().zip(new.lines()).enumerate() {
        assert_eq!(new, old, "line {} of the dump of {run}", number + 1);
    }
    assert_eq!(new.lines().count(), old.lines().count(), "lines of the dump of {run}");
}

macro_rules! runs {
    ($($test:ident $run:literal)*) => {
        $(#[test]
        fn $test() {
            check($run);
        })*

        #[test]
        fn every_run_has_a_test() {
            let entries = fs::read_dir(folder()).expect("the folder of runs");
            let entries = entries.map(|entry| entry.expect("an entry").path());
            let mut found: Vec<String> = entries
                .filter(|path| path.is_dir())
                .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
                .collect();
            found.sort();
            assert_eq!(found, [$($run),*]);
        }
    };
}

runs! {
    collectives "collectives"
    communicators "communicators"
    files "files"
    messages "messages"
    one_sided "one-sided"
    polls "polls"
    regions "regions"
    sites "sites"
    threads "threads"
    totals "totals"
    unfinished "unfinished"
}
