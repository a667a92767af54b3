//! Settings as a user meets them: what is wrong with a variable or option, the help, and the docs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use trace_format::settings::{Purpose, ReadBy, VARIABLES};

fn gammachi(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gammachi"));
    command.args(arguments).stdin(Stdio::null()).env_remove("LD_PRELOAD");
    for variable in VARIABLES {
        command.env_remove(variable.name);
    }
    command.envs(variables.iter().copied()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Variables that cannot be used, and the sentence for each.
const WRONG: [(&str, &str, &str); 9] = [
    ("GAMMACHI_LEVEL", "3", "not a detail level; write 0, 1 or 2"),
    (
        "GAMMACHI_COMPUTE",
        "all",
        "not a kind of computation; write outside, blas, regions or regions=NAME,NAME",
    ),
    (
        "GAMMACHI_COUNTERS",
        "bytes",
        "\"bytes\" has no built-in choice (only flops has); write NAME=TYPE:CONFIG, such as \
         faults=software:2",
    ),
    (
        "GAMMACHI_MAX_BYTES",
        "much",
        "not a number of bytes; write a whole number, optionally followed by K, M, G or T, such as \
         64M",
    ),
    (
        "GAMMACHI_SAMPLE",
        "1000",
        "not a number of samples per second; write a whole number from 1 to 499, or 0 for none",
    ),
    ("GAMMACHI_KEEP", "some", "not a choice of events; write first, last or totals"),
    ("GAMMACHI_PARAMS", "N", "\"N\" has no '='; write NAME=VALUE, such as N=20000"),
    (
        "GAMMACHI_CLOCK_ROUNDS",
        "0",
        "not a number of exchanges; write a whole number from 1 to 1000000",
    ),
    (
        "GAMMACHI_CLOCK_EVERY",
        "soon",
        "not a time between exchanges; write seconds below 1e9, such as 60, or 0 for none",
    ),
];

#[test]
fn a_wrong_variable_is_wrong_usage_and_nothing_is_started() {
    for (name, value, problem) in WRONG {
        for command in ["run", "exec"] {
            let output = gammachi(&[command, "--", "echo", "started"], &[(name, value)]);
            assert_eq!(output.status.code(), Some(2), "{name}: {}", stderr(&output));
            assert_eq!(stdout(&output), "");
            assert_eq!(stderr(&output), format!("gammachi: {name}={value:?}: {problem}\n"));
        }
    }
    let deadline = [("GAMMACHI_CLOCK_DEADLINE", "never")];
    let output = gammachi(&["run", "--", "true"], &deadline);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("not a time limit; write seconds above 0"));
}

#[test]
fn all_wrong_variables_are_named_at_once() {
    let output = gammachi(
        &["run", "--", "true"],
        &[("GAMMACHI_LEVEL", "x"), ("GAMMACHI_KEEP", "y"), ("GAMMACHI_STAGE", "")],
    );
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains("GAMMACHI_LEVEL") && text.contains("GAMMACHI_KEEP"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_variable_that_is_not_utf8_is_wrong_usage() {
    use std::os::unix::ffi::OsStrExt;
    let value = std::ffi::OsStr::from_bytes(b"\xff");
    let output = Command::new(env!("CARGO_BIN_EXE_gammachi"))
        .args(["run", "--", "true"])
        .env("GAMMACHI_LEVEL", value)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("GAMMACHI_LEVEL=\"\\xFF\": not UTF-8"), "{output:?}");
}

#[test]
fn an_option_says_the_same_as_its_variable() {
    for (name, value, problem) in WRONG {
        let variable = VARIABLES.into_iter().find(|variable| variable.name == name).unwrap();
        let option = variable.option.unwrap();
        let output = gammachi(&["run", option, value, "--", "true"], &[]);
        assert_eq!(output.status.code(), Some(2), "{option}");
        let text = stderr(&output);
        let start = format!("gammachi: invalid value '{value}' for '{option} ");
        assert!(text.starts_with(&start), "{text}");
        // Where there are few values, all are listed instead.
        let listed = option == "--keep" && text.contains("[possible values: first, last]");
        assert!(text.contains(problem) || listed, "{text}");
    }
}

/// Text in which every run of blanks is one: help is broken into lines.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_help_of_every_option_is_that_of_its_variable() {
    for command in ["run", "exec"] {
        let help = in_one_line(&stdout(&gammachi(&[command, "--help"], &[])));
        for variable in VARIABLES.iter().filter(|variable| variable.name != "GAMMACHI_PARAMS") {
            let Some(option) = variable.option else { continue };
            assert!(help.contains(option), "{option} is missing in {help}");
            let expected = match option {
                "--flops" | "--openmp" | "--io" | "--file-names" => variable.meaning.to_owned(),
                _ => variable.help(),
            };
            assert!(help.contains(&in_one_line(&expected)), "{option}: {help}");
        }
    }
}

#[test]
fn the_docs_show_the_table_that_the_command_prints() {
    let output = gammachi(&["doctor", "--variables"], &[]);
    assert_eq!(output.status.code(), Some(0));
    let table = stdout(&output);
    for variable in VARIABLES {
        let row = table.lines().find(|line| line.starts_with(&format!("| `{}` |", variable.name)));
        let row = row.unwrap_or_else(|| panic!("{} is missing in\n{table}", variable.name));
        let recorder = variable.read_by != ReadBy::Command;
        assert_eq!(row.contains("| recorder"), recorder, "{row}");
        let is_hook = variable.purpose == Purpose::TestHook;
        assert_eq!(row.contains("For tests of gammachi."), is_hook, "{row}");
    }
    let documented = fs::read_to_string(repository().join("docs/reference/settings.md")).unwrap();
    assert!(
        documented.contains(&table),
        "docs/reference/settings.md differs from `gammachi doctor --variables`:\n{table}"
    );
}

/// Rust files below a folder.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

#[test]
fn no_variable_is_named_outside_the_table() {
    for folder in
        ["trace-format/src", "pmpi-shim/src", "io-shim/src", "analyzer/src", "fuzz/targets"]
    {
        for path in rust_files(&repository().join(folder)) {
            if path.ends_with("trace-format/src/settings/variables.rs") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let named: Vec<&str> = code.filter(|line| line.contains("GAMMACHI_")).collect();
            assert!(named.is_empty(), "{}: take it from settings: {named:?}", path.display());
        }
    }
}
