//! Runs recorded once, read as they were then: what is recorded must be read by every later version,
//! with the same figures. Files of another format version are refused.
//!
//! `fixtures/kept-runs` has a folder a run, with `report.json` and `dump.txt` as they were printed; its
//! README says how they were made.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kept-runs")
}

/// The command, where it finds runs under their plain names.
fn gammachi(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gammachi"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GAMMACHI_") {
            command.env_remove(name);
        }
    }
    command.output().expect("the command starts")
}

fn printed(arguments: &[&str]) -> String {
    let output = gammachi(&folder(), arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("plain text")
}

fn document(text: &str) -> Value {
    let mut document: Value = serde_json::from_str(text).expect("a JSON document");
    let keys = document.as_object_mut().expect("an object");
    // The version of the command, its sentences and what it says of causes and changes may change.
    for key in ["gammachi", "verdict", "causes", "what_if"] {
        keys.remove(key);
    }
    let findings = keys.get_mut("findings").and_then(Value::as_array_mut).into_iter().flatten();
    findings.filter_map(Value::as_object_mut).for_each(|finding| _ = finding.remove("sentence"));
    if let Some(notes) = keys.get_mut("notes") {
        *notes = notes.as_array().expect("a list").len().into();
    }
    // Decision 108 defines these for ranks with several threads; before, they were those of the first.
    let ranks = keys.get_mut("ranks").and_then(Value::as_array_mut).into_iter().flatten();
    let mut has_threads = false;
    for rank in ranks.filter(|rank| rank["threads"].as_u64().is_some_and(|threads| threads > 1)) {
        let rank = rank.as_object_mut().expect("an object");
        for key in ["lost_s", "mpi_s", "recorder_s", "other_s"] {
            rank.remove(key);
        }
        has_threads = true;
    }
    if has_threads && let Some(trust) = keys.get_mut("trust").and_then(Value::as_object_mut) {
        trust.remove("recorder_share");
    }
    document
}

/// Whether two fractions differ by no more than the order in which their parts were added up.
fn is_rounding(expected: &Value, found: &Value) -> bool {
    let fraction = |value: &Value| value.as_f64().filter(|_| value.is_f64());
    fraction(expected)
        .zip(fraction(found))
        .is_some_and(|(old, new)| (old - new).abs() <= 1e-14 * old.abs())
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
                    // A figure that was added since.
                    (None, Some(_)) => None,
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
        _ if expected == found || is_rounding(expected, found) => None,
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
    // Of long runs the report is enough.
    if ["encoded", "last"].contains(&run) {
        return;
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
            let paths = entries.map(|entry| entry.expect("an entry").path());
            let name = |path: PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
            let mut found: Vec<String> = paths.filter(|path| path.is_dir()).map(name).collect();
            found.sort();
            assert_eq!(found, [$($run),*]);
        }
    };
}

runs! {
    collectives "collectives"
    communicators "communicators"
    encoded "encoded"
    files "files"
    last "last"
    messages "messages"
    one_sided "one-sided"
    polls "polls"
    regions "regions"
    sites "sites"
    threads "threads"
    totals "totals"
    unfinished "unfinished"
}

#[test]
fn another_version_is_refused_by_name_with_advice() {
    let temp = std::env::temp_dir().join(format!("gammachi-kept-runs-{}", std::process::id()));
    let run = temp.join("newer");
    fs::create_dir_all(run.join("ranks-000")).expect("writable");
    for rank in 0..2 {
        let name = format!("ranks-000/rank-00000{rank}.gmc");
        let mut bytes = fs::read(folder().join("messages").join(&name)).expect("a rank's file");
        // After the eight bytes of the magic; nothing else of another version can be known.
        bytes[8..10].copy_from_slice(&99u16.to_le_bytes());
        fs::write(run.join(&name), bytes).expect("writable");
    }
    let output = gammachi(&temp, &["report", "newer"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    fs::remove_dir_all(&temp).expect("removable");
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let words: Vec<&str> = stderr.split_whitespace().collect();
    let words = words.join(" ");
    assert!(words.contains("rank-000000.gmc"), "{stderr}");
    assert!(words.contains("format version 99, this gammachi reads version 2"), "{stderr}");
    assert!(words.contains("read it with the gammachi that recorded it"), "{stderr}");
}
