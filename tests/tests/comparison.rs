//! `gammachi compare`, `check`, `baseline` and `history` on real programs that are changed in a known way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use system_tests::library::library;
use system_tests::place::Fresh;
use system_tests::victim::victim;
use system_tests::{Job, Mpi, command, under_both};

fn gammachi(words: &[&str]) -> Output {
    let mut command = Command::new(command());
    command.args(words).stdin(Stdio::null()).output().expect("the command starts")
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// What it prints and says, and its exit code.
fn ended(words: &[&str]) -> (String, String, i32) {
    let output = gammachi(words);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let code = output.status.code().expect("it was not killed");
    (text(output.stdout), text(output.stderr), code)
}

#[track_caller]
fn done(words: &[&str]) -> String {
    let (out, said, code) = ended(words);
    assert_eq!(code, 0, "{words:?}: {said}{out}");
    out
}

#[track_caller]
fn refused(words: &[&str], code: i32, sentence: &str) {
    let (out, said, found) = ended(words);
    assert_eq!(found, code, "{words:?}: {said}{out}");
    let words_said: Vec<&str> = said.split_whitespace().collect();
    assert!(words_said.join(" ").contains(sentence), "{words:?}: {said}");
}

/// Runs of a victim with some options, in a folder.
fn runs(mpi: Mpi, folder: &Path, name: &str, count: usize, options: &[&str]) -> Vec<PathBuf> {
    let mut job = Job::new(mpi, &victim(mpi, "works_in_regions")).ranks(4);
    for option in options {
        job = job.argument(option);
    }
    let run = |number: usize| {
        let out = folder.join(format!("{name}-{number}"));
        job.record_to(&out).expect_code(0);
        out
    };
    (0..count).map(run).collect()
}

fn compared(before: &[PathBuf], after: &[PathBuf], more: &[&str]) -> String {
    let names = |runs: &[PathBuf]| runs.iter().map(|run| text(run)).collect::<Vec<_>>();
    let (before, after) = (names(before), names(after));
    let mut words = vec!["compare"];
    words.extend(before.iter().map(String::as_str));
    words.extend(more);
    words.push("--");
    words.extend(after.iter().map(String::as_str));
    done(&words)
}

fn document(before: &[PathBuf], after: &[PathBuf]) -> Value {
    serde_json::from_str(&compared(before, after, &["--json"])).expect("JSON")
}

fn ticks(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no whole number"))
}

/// What holds of every document: parts add up.
fn assert_sums(document: &Value) {
    let sum = |level: &str| -> i64 {
        let parts = document["parts"].as_array().expect("a list").iter();
        parts
            .filter(|part| part["level"] == level)
            .map(|part| ticks(&part["difference_ticks"]))
            .sum()
    };
    let elapsed = document["elapsed"]["difference_s"].as_f64().expect("a number") * 1e9;
    assert_eq!(sum("kind"), sum("place"), "{document:#}");
    assert_eq!(ticks(&document["unexplained_ticks"]), 0, "{document:#}");
    assert!((sum("kind") as f64 - elapsed).abs() <= 1.0, "{document:#}");
}

under_both! {
    fn a_rank_that_sleeps_longer_in_a_region_is_named(mpi) {
        let fresh = Fresh::new();
        let before = runs(mpi, fresh.path(), "before", 3, &[]);
        // So much more that no load hides it.
        let after = runs(mpi, fresh.path(), "after", 3, &["smooth=2:30000"]);
        let found = document(&before, &after);
        assert_sums(&found);
        assert_eq!(found["verdict"], "slower", "{found:#}");
        let cause = &found["cause"];
        assert_eq!((&cause["kind"], &cause["region"]), (&"computing".into(), &"smooth".into()), "{found:#}");
        assert_eq!(cause["ranks"], serde_json::json!([[2, 2]]), "{found:#}");
        assert_eq!(found["counts"], serde_json::json!([]), "{found:#}");
        let screen = compared(&before, &after, &[]);
        let words: Vec<&str> = screen.split_whitespace().collect();
        let words = words.join(" ");
        assert!(words.contains("Rank 2 computes") && words.contains("in region smooth"), "{screen}");
        assert!(words.contains("partners: the same"), "{screen}");

        let all = runs(mpi, fresh.path(), "all", 3, &["norm=all:30000"]);
        let found = document(&before, &all);
        assert_sums(&found);
        let cause = &found["cause"];
        assert_eq!((&cause["region"], &cause["all_ranks"]), (&"norm".into(), &true.into()), "{found:#}");
        let html = fresh.join("page.html");
        compared(&before[..1], &all[..1], &["--html", &text(&html)]);
        let page = fs::read_to_string(&html).expect("a page");
        assert_eq!(page.matches("<figure>").count(), 2);
        assert!(page.contains("norm") && !page.contains("http-equiv=\"refresh\""));
    }

    fn what_does_not_vary_is_compared_without_statistics(mpi) {
        let fresh = Fresh::new();
        let before = runs(mpi, fresh.path(), "before", 1, &[]);
        let found = |name: &str, option: &str| {
            let after = runs(mpi, fresh.path(), name, 1, &[option]);
            let found = document(&before, &after);
            assert_sums(&found);
            (found["cause"]["kind"].as_str().expect("a kind").to_owned(), found)
        };
        let (kind, bytes) = found("bytes", "bytes=8000");
        assert_eq!((kind.as_str(), &bytes["cause"]["what"]), ("bytes", &"bytes of MPI_Sendrecv".into()));
        let (kind, sums) = found("sums", "sums=2");
        assert_eq!((kind.as_str(), &sums["cause"]["what"]), ("calls", &"calls of MPI_Allreduce".into()));
        let place = sums["cause"]["place"].as_str().expect("a place");
        assert!(place.starts_with("MPI_Allreduce"), "{place}");
        let (kind, order) = found("order", "order=0213");
        assert_eq!(kind, "partners", "{order:#}");
        let sentence = order["cause"]["sentence"].as_str().expect("a sentence");
        assert!(sentence.contains("in another order"), "{sentence}");
    }

    fn a_baseline_guards_and_its_exit_codes_are_the_policy(mpi) {
        let fresh = Fresh::new();
        let names = |runs: &[PathBuf]| runs.iter().map(|run| text(run)).collect::<Vec<_>>();
        let before = names(&runs(mpi, fresh.path(), "before", 5, &[]));
        let folder = text(&fresh.join("perf"));
        let mut add = vec!["baseline", "add", "--baseline", &folder];
        add.extend(before.iter().map(String::as_str));
        done(&add);
        let (_, said, _) = ended(&add);
        assert!(said.contains("0 added; 5 had been added before"), "{said}");
        assert!(done(&["baseline", "show", "--baseline", &folder]).contains("works_in_regions"));

        let slow = names(&runs(mpi, fresh.path(), "slow", 3, &["smooth=all:30000"]));
        // Other arguments are other work.
        let checks = |more: &[&str]| {
            let mut words = vec!["check", "--baseline", &folder];
            words.extend(more);
            ended(&words)
        };
        let [a, b, c] = [&slow[0], &slow[1], &slow[2]];
        let (_, said, code) = checks(&[a, b, c]);
        assert_eq!(code, 4, "{said}");
        assert!(said.contains("another parameters or arguments"), "{said}");
        // A thousand percent is allowed to everybody.
        let (out, said, code) = checks(&[&before[0], &before[1], &before[2], "--at-most", "1000%"]);
        assert_eq!(code, 0, "{said}{out}");
        let (out, said, code) = checks(&[&before[0], &before[1], "--at-most", "0.1%"]);
        assert!(code == 4 || code == 0, "{said}{out}");
    }

    fn slower_runs_fail_the_check_with_a_report_and_an_annotation(mpi) {
        let fresh = Fresh::new();
        let folder = text(&fresh.join("perf"));
        let named = |number: usize, name: &str, options: &[&str]| {
            let out = fresh.join(format!("{name}-{number}"));
            let mut run = Command::new(command());
            let launcher = mpi.launcher();
            run.arg("run").env("GAMMACHI_LIBRARY", library()).envs(mpi.environment().iter().copied());
            run.args(["--param", "N=1", "--param"]).arg(format!("commit={name}")).arg("--out").arg(&out);
            run.arg("--").arg(launcher.get_program()).args(launcher.get_args()).args(["-n", "4"]);
            run.arg(victim(mpi, "works_in_regions")).args(options).stdin(Stdio::null());
            let output = run.output().expect("the command starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            text(&out)
        };
        for number in 0..4 {
            let run = named(number, "old", &[]);
            done(&["baseline", "add", &run, "--baseline", &folder]);
        }
        let new: Vec<String> = (0..3).map(|number| named(number, "new", &["norm=1:40000"])).collect();
        let junit = text(&fresh.join("junit.xml"));
        let mut words = vec!["check", "--baseline", &folder, "--junit", &junit, "--github", "--json"];
        words.extend(new.iter().map(String::as_str));
        let (out, said, code) = ended(&words);
        assert_eq!(code, 3, "{said}{out}");
        let (annotation, json) = out.split_once('\n').expect("an annotation first");
        assert!(annotation.starts_with("::error title=gammachi check::"), "{annotation}");
        let found: Value = serde_json::from_str(json).expect("JSON");
        assert_eq!((&found["check"], &found["cause"]["region"]), (&"regressed".into(), &"norm".into()), "{found:#}");
        let report = fs::read_to_string(&junit).expect("a report");
        assert!(report.contains("failures=\"1\"") && report.contains("Rank 1"), "{report}");

        let mut add = vec!["baseline", "add", "--baseline", &folder];
        add.extend(new.iter().map(String::as_str));
        done(&add);
        let html = text(&fresh.join("history.html"));
        done(&["history", &folder, "--html", &html]);
        let page = fs::read_to_string(&html).expect("a page");
        assert!(page.contains("changed here") && page.contains("new"), "no change is marked");
        let (_, said, code) = ended(&["baseline", "trim", "--baseline", &folder, "--keep", "2"]);
        assert!(code == 0 && said.contains("5 removed, 2 left"), "{said}");
    }

    fn runs_that_cannot_be_compared_are_refused_with_advice(mpi) {
        let fresh = Fresh::new();
        let good = text(&runs(mpi, fresh.path(), "good", 1, &[])[0]);
        let folder = text(&fresh.join("perf"));
        let check = ["check", &good, "--baseline", &folder];
        refused(&check, 1, "no such baseline; `gammachi baseline add");
        fs::create_dir(&folder).expect("writable");
        refused(&check, 1, "no run in it yet");
        fs::write(fresh.join("perf/a.gammachi.json"), "{\"format\": \"gammachi-").expect("writable");
        refused(&check, 1, "a.gammachi.json: not a record of a run");
        let empty = text(&fresh.join("empty"));
        fs::create_dir(&empty).expect("writable");
        refused(&["compare", &good, &empty], 1, "no rank file in it");
        refused(&["compare", &good, &text(&fresh.join("nothing"))], 1, "no such run directory");
        refused(&["compare", &good], 2, "name one run before and one after");

        // A rank was killed.
        let job = Job::new(mpi, &victim(mpi, "works_in_regions")).ranks(4).argument("dies=1");
        let dead = fresh.join("dead");
        job.record_to(&dead);
        refused(&["compare", &good, &text(&dead)], 1, "did not return from MPI_Finalize");
        // Only totals.
        let job = Job::new(mpi, &victim(mpi, "works_in_regions")).ranks(4);
        let totals = fresh.join("totals");
        job.environment("GAMMACHI_KEEP", "totals").record_to(&totals);
        refused(&["compare", &good, &text(&totals)], 1, "has totals instead of single calls");
        // A rank's file is gone, then one is cut off.
        let damaged = runs(mpi, fresh.path(), "damaged", 1, &[]).remove(0);
        let file = damaged.join("ranks-000/rank-000002.gmc");
        let bytes = fs::read(&file).expect("a rank's file");
        fs::write(&file, &bytes[..bytes.len() / 2]).expect("writable");
        let (_, said, code) = ended(&["compare", &good, &text(&damaged)]);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("damaged") || said.contains("did not return"), "{said}");
        fs::remove_file(&file).expect("the test's own");
        refused(&["compare", &good, &text(&damaged)], 1, "1 of its 4 ranks have no file");
        // Another program; other ranks.
        let other = fresh.join("other");
        Job::new(mpi, &victim(mpi, "shares_sleeps")).ranks(2).argument("1").record_to(&other).expect_code(0);
        refused(&["compare", &good, &text(&other)], 2, "name runs of one program");
        let fewer = fresh.join("fewer");
        Job::new(mpi, &victim(mpi, "works_in_regions")).ranks(2).record_to(&fewer).expect_code(0);
        let screen = done(&["compare", &good, &text(&fewer)]);
        assert!(screen.contains("SHARES") && screen.contains("is compared by share"), "{screen}");
        refused(&["compare", &good, &text(&fewer), "--", &good], 2, "differ in rank count");
        done(&["compare", &good, &text(&fewer), "--only", "p=4", "--", &good]);
    }
}

/// The commands of a step of docs/ci/github.yml.
fn step(workflow: &str, name: &str) -> String {
    let begin = format!("      - name: {name}\n        run: |\n");
    let (_, rest) = workflow.split_once(&begin).unwrap_or_else(|| panic!("no step {name}"));
    let lines = rest.lines().take_while(|line| line.starts_with("          "));
    lines.map(|line| format!("{}\n", &line[10..])).collect()
}

under_both! {
    fn the_workflow_runs_the_example_from_nothing(mpi) {
        let fresh = Fresh::new();
        let docs = system_tests::place::repository().join("docs/ci");
        let workflow = fs::read_to_string(docs.join("github.yml")).expect("the workflow");
        // What actions/checkout leaves: both versions.
        for version in ["old", "new"] {
            fs::create_dir(fresh.join(version)).expect("writable");
            for name in ["jacobi.c", "measure", "run-once"] {
                fs::copy(docs.join(name), fresh.join(version).join(name)).expect("writable");
            }
        }
        let install = step(&workflow, "Install");
        assert!(install.contains("scripts/install"), "{install}");
        let bin = command().parent().expect("a folder").to_owned();
        let path = std::env::var("PATH").expect("a path");
        let include = system_tests::place::repository().join("pmpi-shim/include");
        let run = |name: &str| -> (i32, String) {
            let script = step(&workflow, name);
            let mut bash = Command::new("bash");
            bash.args(["-e", "-o", "pipefail", "-c", &script]).current_dir(fresh.path());
            bash.env("PATH", format!("{}:{path}", bin.display())).env("CPATH", &include);
            bash.env("GAMMACHI_LIBRARY", library()).envs(mpi.environment().iter().copied());
            bash.env("MPICC", format!("mpicc.{}", mpi.suffix()));
            bash.env("MPIRUN", format!("mpirun.{}", mpi.suffix()));
            bash.env("RUNS", "3").env("ITERATIONS", "60").env("AT_MOST", "1000%");
            let output = bash.stdin(Stdio::null()).output().expect("bash starts");
            let said = [output.stdout, output.stderr].concat();
            (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
        };
        for name in ["Build", "Measure", "Check"] {
            let (code, said) = run(name);
            assert_eq!(code, 0, "{name}: {said}");
        }
        let report = fs::read_to_string(fresh.join("perf.xml")).expect("a report");
        assert!(report.contains("<testsuite") && report.contains("jacobi"), "{report}");
        assert!(fresh.join("compare.html").is_file());
    }
}
