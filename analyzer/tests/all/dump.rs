//! `gammachi dump` as a user meets it: help, wrong usage, nothing to read.

use std::process::{Command, Output};

fn dump(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gammachi"));
    command.arg("dump").args(arguments).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn help_has_an_example() {
    let output = dump(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("Examples:") && text.contains("--messages --json"), "{text}");
}

#[test]
fn a_run_that_is_not_there_is_a_failure() {
    let output = dump(&["no-such.gammachi"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no-such.gammachi: no such run directory"));
    assert!(output.stdout.is_empty());
}

#[test]
fn messages_have_no_function() {
    let output = dump(&["no-such.gammachi", "--messages", "--function", "MPI_Send"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--function"), "{}", stderr(&output));
}
