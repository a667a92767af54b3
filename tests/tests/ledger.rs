//! `gammachi ledger`: predictions that were remembered, beside runs that were made since.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use system_tests::library::library;
use system_tests::place::Fresh;
use system_tests::victim::victim;
use system_tests::{Mpi, Recorded, command, under_both};

fn gammachi(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(command());
    command.current_dir(folder).args(words).stdin(Stdio::null());
    command.output().expect("the command starts")
}

#[track_caller]
fn done(folder: &Path, words: &[&str]) -> (String, String) {
    let output = gammachi(folder, words);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let (out, said) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{words:?}: {said}{out}");
    (out, said)
}

#[track_caller]
fn refused(folder: &Path, words: &[&str], sentence: &str) {
    let output = gammachi(folder, words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
    assert!(said.contains(sentence), "{words:?}: {said}");
}

fn document(folder: &Path) -> Value {
    serde_json::from_str(&done(folder, &["ledger", "--json"]).0).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Ranks of which rank 0 sleeps in region "late" for so long.
fn late(mpi: Mpi, ranks: u32, milliseconds: u32) -> Recorded {
    system_tests::late::late(mpi, ranks, &format!("0:7:{milliseconds}:r"))
}

fn elapsed(run: &Path) -> f64 {
    let (why, _) = done(run, &["why", ".", "--json"]);
    number(&serde_json::from_str::<Value>(&why).expect("JSON")["elapsed_s"])
}

under_both! {
    fn a_what_if_is_answered_by_the_run_that_the_user_names(mpi) {
        let before = late(mpi, 2, 1600);
        let slow = before.directory();
        let folder = slow.parent().expect("a folder").to_owned();
        let (_, said) = done(&slow, &["whatif", ".", "--region", "late", "--speed", "2", "--remember"]);
        assert!(said.contains("remembered in "), "{said}");
        let again = ["whatif", slow.to_str().expect("UTF-8"), "--region", "late", "--speed", "2", "--remember"];
        assert!(done(&slow, &again).1.contains("already"));
        let open = document(&folder);
        let promise = &open["promises"][0];
        assert_eq!(open["promises"].as_array().map(Vec::len), Some(1), "{open:#}");
        assert_eq!((&promise["recognised"], &promise["measured_s"]), (&false.into(), &Value::Null));
        let id = promise["id"].as_str().expect("an id").to_owned();
        let screen = done(&folder, &["ledger"]).0;
        assert!(screen.contains("not answered yet") && screen.contains(&format!("--answer {id}")), "{screen}");

        let after = late(mpi, 2, 800);
        let fast = after.directory();
        let fast = fast.to_str().expect("UTF-8");
        refused(&folder, &["ledger", "--answer", &id, slow.to_str().expect("UTF-8")], "before the promise");
        refused(&folder, &["ledger", "--answer", "zzz", fast], "no promise has this id");
        let larger = late(mpi, 3, 10);
        let larger = larger.directory();
        refused(&folder, &["ledger", "--answer", &id, larger.to_str().expect("UTF-8")], "the run has 3");
        let fresh = Fresh::new();
        let imagined = fresh.join("imagined");
        let imagined = imagined.to_str().expect("UTF-8");
        done(&slow, &["whatif", ".", "--region", "late", "--speed", "2", "--out", imagined]);
        let output = gammachi(&folder, &["ledger", "--answer", &id, imagined]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains("only a run that was measured"), "{said}");
        let (_, said) = done(&folder, &["ledger", "--answer", &id, fast]);
        assert!(said.contains("the arguments differ"), "{said}");

        let answered = document(&folder);
        let promise = &answered["promises"][0];
        let took = elapsed(Path::new(fast));
        assert!((number(&promise["measured_s"]) / took - 1.0).abs() < 1e-6, "{took}: {answered:#}");
        let error = number(&promise["seconds"]) / took - 1.0;
        assert!((number(&promise["error"]) - error).abs() < 1e-6, "{answered:#}");
        let held = (number(&promise["lo_s"])..=number(&promise["hi_s"])).contains(&took);
        assert_eq!(promise["held"], held, "{answered:#}");
        assert_eq!(number(&answered["summary"]["coverage"]), f64::from(u8::from(held)));
        // 800 of 1,600 ms in one sleep: on any machine, the answer is nearer than no change.
        assert!(error.abs() < 0.4, "{answered:#}");
    }

    fn a_study_that_goes_on_answers_what_was_predicted_from_it(mpi) {
        let fresh = Fresh::new();
        let folder = fresh.path();
        let sweep = |np: &str| {
            let launcher = mpi.launcher();
            let mut command = Command::new(command());
            command.current_dir(folder).env("GAMMACHI_LIBRARY", library()).stdin(Stdio::null());
            command.envs(mpi.environment().iter().copied());
            command.args("sweep --region solve --repeat 2 --out study --np".split(' '));
            command.args([np, "--"]).arg(launcher.get_program()).args(launcher.get_args());
            command.args(["-n", "{np}"]).arg(victim(mpi, "shares_sleeps")).arg("20");
            let output = command.output().expect("the command starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        sweep("1,2,4");
        refused(folder, &["scaling", "study", "--remember"], "--predict");
        let words = ["scaling", "study", "--predict", "2,3", "--json", "--remember"];
        let fits: Value = serde_json::from_str(&done(folder, &words).0).expect("JSON");
        // Two ranks were measured: nothing is promised of them.
        let open = document(folder);
        assert_eq!(open["promises"].as_array().map(Vec::len), Some(1), "{open:#}");
        let promise = &open["promises"][0];
        let predictions = fits["fits"][0]["predictions"].as_array().expect("predictions");
        let of_three = predictions.iter().find(|row| row["p"] == 3).expect("three ranks");
        assert_eq!((&promise["seconds"], &promise["p"]), (&of_three["tau_s"], &3.into()), "{fits:#}");
        assert_eq!((&promise["region"], &promise["recognised"]), (&"solve".into(), &true.into()));

        sweep("1,2,3,4");
        let table = done(folder, &["table", "study"]).0;
        let rows = table.lines().filter(|row| row.starts_with("3,"));
        let taus = rows.map(|row| row.split(',').nth(1).and_then(|tau| tau.parse().ok()).expect("a time"));
        let fastest = taus.fold(f64::INFINITY, f64::min);
        let answered = document(folder);
        let promise = &answered["promises"][0];
        assert_eq!(promise["runs"].as_array().map(Vec::len), Some(2), "{answered:#}");
        assert!((number(&promise["measured_s"]) / fastest - 1.0).abs() < 1e-6, "{fastest}: {answered:#}");
        // The score outlives the runs.
        fs::remove_dir_all(folder.join("study")).expect("the test's own");
        assert_eq!(document(folder), answered);
    }
}

#[test]
fn a_row_that_is_added_to_a_table_answers_and_lines_that_do_not_count_are_named() {
    let fresh = Fresh::new();
    let folder = fresh.path();
    refused(folder, &["ledger"], "no such ledger");
    let row = |p: u32| {
        let tau = 8.0 / f64::from(p) + 0.1 + 0.01 * f64::from(p);
        format!("{p},{tau},8\n")
    };
    let table: String = [1, 2, 3, 4, 6, 8].map(row).concat();
    fs::write(folder.join("t.csv"), format!("p,tau_s,sum_gamma_s\n{table}")).expect("writable");
    done(folder, &["scaling", "t.csv", "--predict", "12", "--remember"]);
    assert_eq!(document(folder)["summary"]["answered"], 0);
    fs::write(folder.join("t.csv"), format!("p,tau_s,sum_gamma_s\n{table}{}", row(12)))
        .expect("writable");
    let mut lines = fs::read_to_string(folder.join("gammachi-ledger.jsonl")).expect("a ledger");
    lines.push_str("{\"version\":1,\"rec");
    fs::write(folder.join("gammachi-ledger.jsonl"), lines).expect("writable");
    let answered = document(folder);
    let promise = &answered["promises"][0];
    assert!((number(&promise["measured_s"]) - (8.0 / 12.0 + 0.22)).abs() < 1e-9, "{answered:#}");
    assert!(number(&promise["error"]).abs() < 0.1, "{answered:#}");
    assert_eq!(answered["summary"]["answered"], 1);
    let note = answered["notes"][0].as_str().expect("a note");
    assert!(note.contains("line 2 is not a line of a ledger"), "{note}");
}
