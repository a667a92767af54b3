//! `gammachi whatif --ledger`: remembered predictions and the runs made since.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use system_tests::directories::TempDir;
use system_tests::library::library;
use system_tests::victim::victim;
use system_tests::{Mpi, Recorded, command, under_mpich};

fn gammachi(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(command());
    command.current_dir(folder).args(words).stdin(Stdio::null());
    command.output().expect("the command starts")
}

#[track_caller]
fn succeed(folder: &Path, words: &[&str]) -> (String, String) {
    let output = gammachi(folder, words);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let (out, stderr) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{words:?}: {stderr}{out}");
    (out, stderr)
}

#[track_caller]
fn expect_refusal(folder: &Path, words: &[&str], sentence: &str) {
    let output = gammachi(folder, words);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
    assert!(stderr.contains(sentence), "{words:?}: {stderr}");
}

fn document(folder: &Path) -> Value {
    serde_json::from_str(&succeed(folder, &["whatif", "--ledger", "--json"]).0).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// Records ranks of which rank 0 sleeps in region "late" for this time.
fn record_delayed(mpi: Mpi, ranks: u32, milliseconds: u32) -> Recorded {
    system_tests::delays::record_delayed(mpi, ranks, &format!("0:7:{milliseconds}:r"))
}

fn elapsed(run: &Path) -> f64 {
    let (why, _) = succeed(run, &["why", ".", "--json"]);
    number(&serde_json::from_str::<Value>(&why).expect("JSON")["elapsed_s"])
}

under_mpich! {
    fn named_run_answers_a_what_if(mpi) {
        let before = record_delayed(mpi, 2, 1600);
        let slow = before.directory();
        let folder = slow.parent().expect("a folder").to_owned();
        let (_, stderr) = succeed(&slow, &["whatif", ".", "--region", "late", "--speed", "2", "--remember"]);
        assert!(stderr.contains("remembered in "), "{stderr}");
        let again = ["whatif", slow.to_str().expect("UTF-8"), "--region", "late", "--speed", "2", "--remember"];
        assert!(succeed(&slow, &again).1.contains("already"));
        let open = document(&folder);
        let prediction = &open["predictions"][0];
        assert_eq!(open["predictions"].as_array().map(Vec::len), Some(1), "{open:#}");
        assert_eq!((&prediction["recognised"], &prediction["measured_s"]), (&false.into(), &Value::Null));
        let id = prediction["id"].as_str().expect("an id").to_owned();
        let screen = succeed(&folder, &["whatif", "--ledger"]).0;
        assert!(screen.contains("not tested yet") && screen.contains(&format!("--answer {id}")), "{screen}");

        let after = record_delayed(mpi, 2, 800);
        let fast = after.directory();
        let fast = fast.to_str().expect("UTF-8");
        expect_refusal(&folder, &["whatif", "--answer", &id, slow.to_str().expect("UTF-8")], "older than the prediction");
        expect_refusal(&folder, &["whatif", "--answer", "zzz", fast], "no prediction has this id");
        let larger = record_delayed(mpi, 3, 10);
        let larger = larger.directory();
        expect_refusal(&folder, &["whatif", "--answer", &id, larger.to_str().expect("UTF-8")], "the run has 3");
        let temp = TempDir::new();
        let simulated = temp.join("simulated");
        let simulated = simulated.to_str().expect("UTF-8");
        succeed(&slow, &["whatif", ".", "--region", "late", "--speed", "2", "--out", simulated]);
        let output = gammachi(&folder, &["whatif", "--answer", &id, simulated]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && stderr.contains("only a measured run"), "{stderr}");
        let (_, stderr) = succeed(&folder, &["whatif", "--answer", &id, fast]);
        assert!(stderr.contains("the arguments differ"), "{stderr}");

        let answered = document(&folder);
        let prediction = &answered["predictions"][0];
        let took = elapsed(Path::new(fast));
        assert!((number(&prediction["measured_s"]) / took - 1.0).abs() < 1e-6, "{took}: {answered:#}");
        let error = number(&prediction["seconds"]) / took - 1.0;
        assert!((number(&prediction["error"]) - error).abs() < 1e-6, "{answered:#}");
        let held = (number(&prediction["lo_s"])..=number(&prediction["hi_s"])).contains(&took);
        assert_eq!(prediction["within_interval"], held, "{answered:#}");
        assert_eq!(number(&answered["summary"]["coverage"]), f64::from(u8::from(held)));
        // 800 of 1,600 ms in one sleep: on any machine, the prediction is closer than "no change".
        assert!(error.abs() < 0.4, "{answered:#}");
    }

    fn continued_study_answers_its_own_predictions(mpi) {
        let temp = TempDir::new();
        let folder = temp.path();
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
        expect_refusal(folder, &["scaling", "study", "--remember"], "--predict");
        let words = ["scaling", "study", "--predict", "2,3", "--json", "--remember"];
        let fits: Value = serde_json::from_str(&succeed(folder, &words).0).expect("JSON");
        // Runs with two ranks were measured: no prediction is made for them.
        let open = document(folder);
        assert_eq!(open["predictions"].as_array().map(Vec::len), Some(1), "{open:#}");
        let prediction = &open["predictions"][0];
        let predictions = fits["fits"][0]["predictions"].as_array().expect("predictions");
        let of_three = predictions.iter().find(|row| row["p"] == 3).expect("three ranks");
        assert_eq!((&prediction["seconds"], &prediction["p"]), (&of_three["tau_s"], &3.into()), "{fits:#}");
        assert_eq!((&prediction["region"], &prediction["recognised"]), (&"solve".into(), &true.into()));

        sweep("1,2,3,4");
        let table = succeed(folder, &["export", "--to", "table", "study"]).0;
        let rows = table.lines().filter(|row| row.starts_with("3,"));
        let taus = rows.map(|row| row.split(',').nth(1).and_then(|tau| tau.parse().ok()).expect("a time"));
        let fastest = taus.fold(f64::INFINITY, f64::min);
        let answered = document(folder);
        let prediction = &answered["predictions"][0];
        assert_eq!(prediction["runs"].as_array().map(Vec::len), Some(2), "{answered:#}");
        assert!((number(&prediction["measured_s"]) / fastest - 1.0).abs() < 1e-6, "{fastest}: {answered:#}");
        // The score remains when the runs are removed.
        fs::remove_dir_all(folder.join("study")).expect("removable");
        assert_eq!(document(folder), answered);
    }
}

#[test]
fn added_table_row_answers_and_invalid_lines_are_reported() {
    let temp = TempDir::new();
    let folder = temp.path();
    expect_refusal(folder, &["whatif", "--ledger"], "no such ledger");
    let row = |p: u32| {
        let tau = 8.0 / f64::from(p) + 0.1 + 0.01 * f64::from(p);
        format!("{p},{tau},8\n")
    };
    let table: String = [1, 2, 3, 4, 6, 8].map(row).concat();
    fs::write(folder.join("t.csv"), format!("p,tau_s,sum_gamma_s\n{table}")).expect("writable");
    succeed(folder, &["scaling", "t.csv", "--predict", "12", "--remember"]);
    assert_eq!(document(folder)["summary"]["answered"], 0);
    fs::write(folder.join("t.csv"), format!("p,tau_s,sum_gamma_s\n{table}{}", row(12)))
        .expect("writable");
    let mut lines = fs::read_to_string(folder.join("gammachi-ledger.jsonl")).expect("a ledger");
    lines.push_str("{\"version\":1,\"rec");
    fs::write(folder.join("gammachi-ledger.jsonl"), lines).expect("writable");
    let answered = document(folder);
    let prediction = &answered["predictions"][0];
    assert!((number(&prediction["measured_s"]) - (8.0 / 12.0 + 0.22)).abs() < 1e-9, "{answered:#}");
    assert!(number(&prediction["error"]).abs() < 0.1, "{answered:#}");
    assert_eq!(answered["summary"]["answered"], 1);
    let note = answered["notes"][0].as_str().expect("a note");
    assert!(note.contains("line 2 is not a line of a ledger"), "{note}");
}
