//! Tests that no stage uses a later one. The stages and their order are in the table at the head of `lib.rs`.

use std::fs;
use std::path::{Path, PathBuf};

/// What every stage may use.
const BELOW_ALL: [&str; 8] = [
    "did_you_mean",
    "plain_text",
    "processes",
    "shell_word",
    "spill",
    "statistics",
    "string_table",
    "whole_file",
];

/// The folders named in the first column of the table, in its order.
fn stages(head: &str) -> Vec<&str> {
    let rows = head.lines().filter_map(|line| line.strip_prefix("//! | [`"));
    rows.filter_map(|row| Some(row.split_once('`')?.0)).collect()
}

/// The folders that a line of code names behind `crate::`.
fn named(line: &str) -> impl Iterator<Item = &str> {
    let code = if line.trim_start().starts_with("//") { "" } else { line };
    code.split("crate::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c == '_'));
        &rest[..end.unwrap_or(rest.len())]
    })
}

/// What a file of a stage uses although it comes later, by the lines of its text.
fn violations(stages: &[&str], stage: &str, text: &str) -> Vec<String> {
    let place = |of: &str| stages.iter().position(|stage| *stage == of);
    let here = place(stage);
    let is_wrong = |used: &&str| match (here, place(used)) {
        (Some(here), Some(there)) => there > here,
        (None, Some(_)) => true,
        (_, None) => {
            !used.is_empty() && !BELOW_ALL.contains(used) && !used.starts_with("synthetic")
        }
    };
    // Tests may call any stage; a module of them at a file's end is not looked at.
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().flat_map(named).filter(is_wrong).map(str::to_owned).collect()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the source folder is readable") {
        let path = entry.expect("the source folder is readable").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_stage_uses_a_later_one() {
    let stages = stages(include_str!("lib.rs"));
    assert!(stages.len() > 10 && stages.contains(&"diagnosis"), "{stages:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    files(&root, &mut all);
    for path in all {
        let of = path.strip_prefix(&root).expect("it lies in the source folder");
        let stage = of.iter().next().and_then(|name| name.to_str()).unwrap_or_default();
        let is_test = of.to_string_lossy().contains("test") || stage.starts_with("synthetic");
        if is_test || ["lib.rs", "main.rs", "stages.rs"].contains(&stage) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("it can be read");
        let found = violations(&stages, stage.trim_end_matches(".rs"), &text);
        wrong.extend(found.into_iter().map(|used| format!("{} uses {used}", of.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_later_stage_and_an_unknown_one_are_refused() {
    let stages = ["trace", "metrics", "present"];
    let of = |stage, text| violations(&stages, stage, text);
    assert_eq!(of("metrics", "use crate::present::Report;"), ["present"]);
    assert_eq!(of("metrics", "use crate::other::Thing;"), ["other"]);
    assert!(of("metrics", "use crate::trace::Run; // crate::plain_text::x").is_empty());
    let with_tests = "//! [`crate::present`]\n#[cfg(test)]\nmod tests {\nuse crate::present::A;";
    assert!(of("metrics", with_tests).is_empty());
    assert_eq!(of("metrics", "#[cfg(test)]\nmod tests;\nuse crate::present::A;"), ["present"]);
    assert_eq!(of("spill", "use crate::trace::Run;"), ["trace"]);
}
