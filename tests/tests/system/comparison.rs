//! `gammachi compare`, `check`, `baseline` and `history` on real programs with known changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use system_tests::directories::TempDir;
use system_tests::library::library;
use system_tests::victim::victim;
use system_tests::{Job, Mpi, command, under_mpich};

fn gammachi(words: &[&str]) -> Output {
    let mut command = Command::new(command());
    command.args(words).stdin(Stdio::null()).output().expect("the command starts")
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// Standard output, standard error and exit code.
fn outcome(words: &[&str]) -> (String, String, i32) {
    let output = gammachi(words);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let code = output.status.code().expect("the command was not killed");
    (text(output.stdout), text(output.stderr), code)
}

#[track_caller]
fn succeed(words: &[&str]) -> String {
    let (out, stderr, code) = outcome(words);
    assert_eq!(code, 0, "{words:?}: {stderr}{out}");
    out
}

#[track_caller]
fn expect_refusal(words: &[&str], code: i32, sentence: &str) {
    let (out, stderr, found) = outcome(words);
    assert_eq!(found, code, "{words:?}: {stderr}{out}");
    let words_shown: Vec<&str> = stderr.split_whitespace().collect();
    assert!(words_shown.join(" ").contains(sentence), "{words:?}: {stderr}");
}

/// Records runs of a victim with some options, in a folder.
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

/// Records a run of the victim with parameters, so that its options may differ in spite of them.
fn with_params(mpi: Mpi, out: &Path, ranks: u32, params: &[&str], options: &[&str]) -> String {
    let mut run = Command::new(command());
    let launcher = mpi.launcher();
    run.arg("run").env("GAMMACHI_LIBRARY", library()).envs(mpi.environment().iter().copied());
    for param in params {
        run.args(["--param", param]);
    }
    run.arg("--out").arg(out).arg("--").arg(launcher.get_program()).args(launcher.get_args());
    run.args(["-n", &ranks.to_string()]).arg(victim(mpi, "works_in_regions")).args(options);
    let output = run.stdin(Stdio::null()).output().expect("the command starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    text(out)
}

fn compared(before: &[PathBuf], after: &[PathBuf], more: &[&str]) -> String {
    let names = |runs: &[PathBuf]| runs.iter().map(|run| text(run)).collect::<Vec<_>>();
    let (before, after) = (names(before), names(after));
    let mut words = vec!["compare"];
    words.extend(before.iter().map(String::as_str));
    words.extend(more);
    words.push("--");
    words.extend(after.iter().map(String::as_str));
    succeed(&words)
}

fn document(before: &[PathBuf], after: &[PathBuf]) -> Value {
    serde_json::from_str(&compared(before, after, &["--json"])).expect("JSON")
}

fn ticks(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is not a whole number"))
}

/// Checks what holds in every document: parts add up.
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

under_mpich! {
    fn names_rank_that_sleeps_longer_in_a_region(mpi) {
        let temp = TempDir::new();
        let before = runs(mpi, temp.path(), "before", 3, &["iterations=15"]);
        // Long enough that no load hides it.
        let after = runs(mpi, temp.path(), "after", 3, &["iterations=15", "smooth=2:100000"]);
        let found = document(&before, &after);
        assert_sums(&found);
        assert_eq!(found["counts"], serde_json::json!([]), "{found:#}");
        let screen = compared(&before, &after, &[]);
        let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("partners: the same"), "{screen}");
        // Beside other load, four ranks on two cores may lack cores: then nothing is concluded from times.
        let lacked_cores = words.contains("Cannot tell whether the time changed: ranks waited for a core");
        assert_eq!(found["verdict"], if lacked_cores { "cannot_tell" } else { "slower" }, "{found:#}");
        if !lacked_cores {
            let cause = &found["cause"];
            assert_eq!((&cause["kind"], &cause["region"]), (&"computing".into(), &"smooth".into()), "{found:#}");
            assert_eq!(cause["ranks"], serde_json::json!([[2, 2]]), "{found:#}");
            assert!(words.contains("Rank 2 computes") && words.contains("in region smooth"), "{screen}");
        }

        let all = runs(mpi, temp.path(), "all", 3, &["iterations=15", "norm=all:100000"]);
        let found = document(&before, &all);
        assert_sums(&found);
        let cause = &found["cause"];
        assert_eq!((&cause["region"], &cause["all_ranks"]), (&"norm".into(), &true.into()), "{found:#}");
        let html = temp.join("page.html");
        compared(&before[..1], &all[..1], &["--html", &text(&html)]);
        let page = fs::read_to_string(&html).expect("a page");
        assert_eq!(page.matches("<figure>").count(), 2);
        assert!(page.contains("norm") && !page.contains("http-equiv=\"refresh\""));
    }

    fn compares_deterministic_counts_without_statistics(mpi) {
        let temp = TempDir::new();
        let before = runs(mpi, temp.path(), "before", 1, &[]);
        let found = |name: &str, option: &str| {
            let after = runs(mpi, temp.path(), name, 1, &[option]);
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
        assert!(sentence.contains("between other pairs of ranks"), "{sentence}");
    }

    fn check_against_baseline_follows_exit_code_policy(mpi) {
        let temp = TempDir::new();
        let names = |runs: &[PathBuf]| runs.iter().map(|run| text(run)).collect::<Vec<_>>();
        let before = names(&runs(mpi, temp.path(), "before", 5, &[]));
        let folder = text(&temp.join("perf"));
        let mut add = vec!["check", "--add", "--baseline", &folder];
        add.extend(before.iter().map(String::as_str));
        succeed(&add);
        let (_, stderr, _) = outcome(&add);
        assert!(stderr.contains("0 added; 5 had been added before"), "{stderr}");
        assert!(succeed(&["check", "--show", "--baseline", &folder]).contains("works_in_regions"));

        let slow = names(&runs(mpi, temp.path(), "slow", 3, &["smooth=all:30000"]));
        // Different arguments mean different work.
        let check = |more: &[&str]| {
            let mut words = vec!["check", "--baseline", &folder];
            words.extend(more);
            outcome(&words)
        };
        let [a, b, c] = [&slow[0], &slow[1], &slow[2]];
        let (_, stderr, code) = check(&[a, b, c]);
        assert_eq!(code, 4, "{stderr}");
        assert!(stderr.contains("that differ in parameters or arguments"), "{stderr}");
        // A limit of a thousand percent accepts every run, unless those before lacked cores.
        let same = names(&runs(mpi, temp.path(), "same", 3, &[]));
        let (out, stderr, code) = check(&[&same[0], &same[1], &same[2], "--at-most", "1000%"]);
        let said = out.split_whitespace().collect::<Vec<_>>().join(" ");
        let lacked_cores = said.contains("Cannot tell: ranks waited for a core");
        assert_eq!(code, if lacked_cores { 4 } else { 0 }, "{stderr}{out}");
        // Of runs that are in the baseline the others decide, and a run that is named twice is one.
        let (out, stderr, code) = check(&[&before[0], &before[1], &before[1], "--at-most", "0.1%"]);
        assert!(stderr.contains("named twice") && stderr.contains("2 of its runs are those to check"), "{stderr}");
        assert!(code == 4 || code == 0, "{stderr}{out}");
    }

    fn slower_runs_fail_the_check_with_report_and_annotation(mpi) {
        let temp = TempDir::new();
        let folder = text(&temp.join("perf"));
        // No rank spins where another one could run, and no lack of cores makes a run twenty times as long.
        let named = |number: usize, name: &str, options: &str| {
            let out = temp.join(format!("{name}-{number}"));
            let options = ["iterations=10", options];
            with_params(mpi, &out, 2, &["N=1", &format!("commit={name}")], &options)
        };
        for number in 0..4 {
            let run = named(number, "old", "norm=all:0");
            succeed(&["check", "--add", &run, "--baseline", &folder]);
        }
        let new: Vec<String> = (0..3).map(|number| named(number, "new", "norm=1:200000")).collect();
        let junit = text(&temp.join("junit.xml"));
        let mut words = vec!["check", "--baseline", &folder, "--junit", &junit, "--github", "--json"];
        words.extend(new.iter().map(String::as_str));
        let (out, stderr, code) = outcome(&words);
        assert_eq!(code, 3, "{stderr}{out}");
        assert!(stderr.contains("::error title=gammachi check::"), "{stderr}");
        let found: Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!((&found["check"], &found["cause"]["region"]), (&"regressed".into(), &"norm".into()), "{found:#}");
        let report = fs::read_to_string(&junit).expect("a report");
        assert!(report.contains("failures=\"1\"") && report.contains("Rank 1"), "{report}");

        let mut add = vec!["check", "--add", "--baseline", &folder];
        add.extend(new.iter().map(String::as_str));
        succeed(&add);
        let html = text(&temp.join("history.html"));
        succeed(&["check", "--history", &html, "--baseline", &folder]);
        let page = fs::read_to_string(&html).expect("a page");
        assert!(page.contains("changed here") && page.contains("new"), "no change is marked");
        let (_, stderr, code) = outcome(&["check", "--trim", "2", "--baseline", &folder]);
        assert!(code == 0 && stderr.contains("5 removed, 2 left"), "{stderr}");
    }

    fn several_configurations_are_compared_each_with_its_like(mpi) {
        let temp = TempDir::new();
        let side = |name: &str, slow: &str| -> Vec<String> {
            let run = |number: usize| {
                let (ranks, params) = if number < 3 { (1, ["N=1"]) } else { (2, ["N=20"]) };
                let options = ["iterations=15", if number < 3 { "norm=all:0" } else { slow }];
                with_params(mpi, &temp.join(format!("{name}-{number}")), ranks, &params, &options)
            };
            (0..6).map(run).collect()
        };
        let (old, new) = (side("old", "norm=all:0"), side("new", "norm=1:200000"));
        let compare = |old: &[String], new: &[String], more: &[&str]| {
            let mut words = vec!["compare"];
            words.extend(more);
            words.extend(old.iter().map(String::as_str));
            words.push("--");
            words.extend(new.iter().map(String::as_str));
            outcome(&words)
        };
        let (screen, stderr, code) = compare(&old, &new, &[]);
        assert_eq!(code, 0, "{stderr}");
        // On a busy machine, what makes its figures invalid stands between the two.
        let causes = screen.split("WHY").nth(1).expect("causes");
        let slow = causes.split("p=2 N=20: ").nth(1).expect("the slow configuration");
        assert!(screen.contains("2 configurations") && slow.contains("Rank 1 computes"), "{screen}");
        assert!(screen.contains("--only p=2 --only N=20"), "{screen}");
        let (out, ..) = compare(&old, &new, &["--json"]);
        let found: Value = serde_json::from_str(&out).expect("JSON");
        let names = found["configurations"].as_array().expect("a list").iter();
        let names: Vec<&Value> = names.map(|one| &one["configuration"]).collect();
        assert_eq!(names, ["p=1 N=1", "p=2 N=20"], "{found:#}");
        for one in found["configurations"].as_array().expect("a list") {
            assert_sums(one);
        }
        assert_eq!(found["configurations"][1]["result"], "slower", "{found:#}");
        // Of what was run on one side alone nothing is said but that.
        let (screen, ..) = compare(&old, &new[3..], &[]);
        assert!(screen.contains("Only before: p=1 N=1."), "{screen}");
        let (_, stderr, code) = compare(&old, &new, &["--html", &text(&temp.join("page.html"))]);
        assert!(code == 2 && stderr.contains("--only"), "{stderr}");

        let folder = text(&temp.join("perf"));
        let mut add = vec!["check", "--add", "--baseline", &folder];
        add.extend(old.iter().map(String::as_str));
        succeed(&add);
        let junit = text(&temp.join("junit.xml"));
        let check = |new: &[String], more: &[&str]| {
            let mut words = vec!["check", "--baseline", &folder, "--junit", &junit, "--at-most", "100%"];
            words.extend(more);
            words.extend(new.iter().map(String::as_str));
            let (out, stderr, code) = outcome(&words);
            (out, stderr, code, fs::read_to_string(&junit).expect("a report"))
        };
        let (out, stderr, code, report) = check(&new, &["--github"]);
        assert_eq!(code, 3, "{stderr}{out}");
        assert!(out.contains("1 of 2 configurations is slower") && out.contains("p=1 N=1 "), "{out}");
        let error = out.lines().find(|line| line.starts_with("::error title=gammachi check::"));
        assert!(error.is_some_and(|of| of.contains(" N=20 on 2 ranks: ") && of.contains("Slower by")), "{out}");
        assert!(report.contains("tests=\"2\" failures=\"1\" errors=\"0\""), "{report}");
        // A configuration that the baseline does not have cannot be judged.
        let mut others = new[..3].to_vec();
        others.push(with_params(mpi, &temp.join("other"), 2, &["N=3"], &[]));
        let (out, stderr, code, report) = check(&others, &["--json"]);
        assert_eq!(code, 4, "{stderr}{out}");
        assert!(report.contains("failures=\"0\" errors=\"0\"") && report.contains("has no run of"), "{report}");
        let (.., code, report) = check(&[text(&temp.join("nothing"))], &[]);
        assert_eq!(code, 1);
        assert!(report.contains("errors=\"1\"") && report.contains("no such run directory"), "{report}");
    }

    fn refuses_incomparable_runs_with_advice(mpi) {
        let temp = TempDir::new();
        let good = text(&runs(mpi, temp.path(), "good", 1, &[])[0]);
        let folder = text(&temp.join("perf"));
        let check = ["check", &good, "--baseline", &folder];
        expect_refusal(&check, 1, "no such baseline; `gammachi check --add");
        fs::create_dir(&folder).expect("writable");
        expect_refusal(&check, 1, "no run in it yet");
        fs::write(temp.join("perf/a.gammachi.json"), "{\"format\": \"gammachi-").expect("writable");
        expect_refusal(&check, 1, "a.gammachi.json: not a record of a run");
        let empty = text(&temp.join("empty"));
        fs::create_dir(&empty).expect("writable");
        expect_refusal(&["compare", &good, &empty], 1, "no rank file in it");
        expect_refusal(&["compare", &good, &text(&temp.join("nothing"))], 1, "no such run directory");
        expect_refusal(&["compare", &good], 2, "name one run before and one after");

        // A rank was killed.
        let job = Job::new(mpi, &victim(mpi, "works_in_regions")).ranks(4).argument("dies=1");
        let dead = temp.join("dead");
        job.record_to(&dead);
        expect_refusal(&["compare", &good, &text(&dead)], 1, "did not return from MPI_Finalize");
        // This run has only totals.
        let job = Job::new(mpi, &victim(mpi, "works_in_regions")).ranks(4);
        let totals = temp.join("totals");
        job.environment("GAMMACHI_KEEP", "totals").record_to(&totals);
        expect_refusal(&["compare", &good, &text(&totals)], 1, "has totals instead of single calls");
        // A rank's file is cut off, then removed.
        let damaged = runs(mpi, temp.path(), "damaged", 1, &[]).remove(0);
        let file = damaged.join("ranks-000/rank-000002.gmc");
        let bytes = fs::read(&file).expect("a rank's file");
        // Samples, if there are any, lie behind the calls.
        fs::write(&file, &bytes[..bytes.len().min(70_000) / 2]).expect("writable");
        let (_, stderr, code) = outcome(&["compare", &good, &text(&damaged)]);
        assert_eq!(code, 1, "{stderr}");
        assert!(stderr.contains("damaged") || stderr.contains("did not return"), "{stderr}");
        fs::remove_file(&file).expect("removable");
        expect_refusal(&["compare", &good, &text(&damaged)], 1, "1 of its 4 ranks have no file");
        // Another program, then another number of ranks.
        let other = temp.join("other");
        Job::new(mpi, &victim(mpi, "shares_sleeps")).ranks(2).argument("1").record_to(&other).expect_code(0);
        expect_refusal(&["compare", &good, &text(&other)], 2, "name runs of one program");
        let fewer = temp.join("fewer");
        Job::new(mpi, &victim(mpi, "works_in_regions")).ranks(2).record_to(&fewer).expect_code(0);
        let screen = succeed(&["compare", &good, &text(&fewer)]);
        assert!(screen.contains("SHARES") && screen.contains("is compared by share"), "{screen}");
        let better = text(&runs(mpi, temp.path(), "better", 1, &[])[0]);
        let screen = succeed(&["compare", &good, &text(&fewer), "--", &better]);
        assert!(screen.contains("Only before: p=2"), "{screen}");
        expect_refusal(&["compare", &good, &better, "--", &text(&other), &text(&fewer)], 2, "differ in program");
        succeed(&["compare", &good, &text(&fewer), "--only", "p=4", "--", &better]);
        expect_refusal(&["compare", &good, &good], 2, "is named on both sides");
        expect_refusal(&["compare", &good, "--", &better, "--json"], 2, "options must stand before");
        expect_refusal(&["check", "--add", &good, "--baseline", &better], 1, "is a run");
    }
}

/// The commands of a step of docs/ci/github.yml.
fn step(workflow: &str, name: &str) -> String {
    let begin = format!("      - name: {name}\n        run: |\n");
    let (_, rest) = workflow.split_once(&begin).unwrap_or_else(|| panic!("no step {name}"));
    let lines = rest.lines().take_while(|line| line.starts_with("          "));
    lines.map(|line| format!("{}\n", &line[10..])).collect()
}

/// The commands of docs/ci/gitlab.yml, without those that install.
fn gitlab_script() -> String {
    let path = system_tests::directories::repository().join("docs/ci/gitlab.yml");
    let file = fs::read_to_string(path).expect("the workflow");
    let (_, script) = file.split_once("  script:\n").expect("a script");
    let (install, commands) = script.split_once("/usr/local\n").expect("gammachi is installed");
    assert!(
        install.contains("apt-get install") && install.ends_with("scripts/install "),
        "{install}"
    );
    let lines = commands.lines().take_while(|line| line.starts_with("    "));
    let lines =
        lines.map(|line| line.strip_prefix("    - ").unwrap_or(line)).filter(|line| *line != "|");
    lines.map(|line| format!("{line}\n")).collect()
}

/// Runs commands of a workflow as a runner does: exit code, and all that was printed.
fn run_workflow(
    mpi: Mpi,
    folder: &Path,
    script: &str,
    variables: &[(&str, &str)],
) -> (i32, String) {
    let bin = command().parent().expect("a folder").to_owned();
    let path = std::env::var("PATH").expect("a path");
    let include = system_tests::directories::repository().join("pmpi-shim/include");
    let mut bash = Command::new("bash");
    bash.args(["-e", "-o", "pipefail", "-c", script]).current_dir(folder);
    bash.env("PATH", format!("{}:{path}", bin.display())).env("CPATH", &include);
    bash.env("GAMMACHI_LIBRARY", library()).envs(mpi.environment().iter().copied());
    bash.env("MPICC", format!("mpicc.{}", mpi.suffix()));
    bash.env("MPIRUN", format!("mpirun.{}", mpi.suffix()));
    bash.env("RUNS", "3").env("ITERATIONS", "60").env("AT_MOST", "1000%");
    bash.envs(variables.iter().copied());
    let output = bash.stdin(Stdio::null()).output().expect("bash starts");
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&printed).into_owned())
}

/// Copies the example of docs/ci.
fn copy_example(folder: &Path) {
    let docs = system_tests::directories::repository().join("docs/ci");
    // By another process: a script that this one has open for writing cannot be executed, and children
    // of other tests would keep it open.
    let mut copy = Command::new("cp");
    copy.args(["jacobi.c", "measure", "run-once"].map(|name| docs.join(name))).arg(folder);
    assert!(copy.status().expect("cp starts").success());
}

under_mpich! {
    fn workflow_runs_the_example_from_a_clean_checkout(mpi) {
        let temp = TempDir::new();
        let docs = system_tests::directories::repository().join("docs/ci");
        let workflow = fs::read_to_string(docs.join("github.yml")).expect("the workflow");
        // As actions/checkout does: both versions.
        for version in ["old", "new"] {
            fs::create_dir(temp.join(version)).expect("writable");
            copy_example(&temp.join(version));
        }
        let install = step(&workflow, "Install");
        assert!(install.contains("scripts/install"), "{install}");
        for name in ["Build", "Measure", "Check"] {
            let (code, printed) = run_workflow(mpi, temp.path(), &step(&workflow, name), &[]);
            assert_eq!(code, 0, "{name}: {printed}");
        }
        let report = fs::read_to_string(temp.join("perf.xml")).expect("a report");
        assert!(report.contains("<testsuite") && report.contains("jacobi"), "{report}");
        assert!(temp.join("compare.html").is_file());
    }

    fn gitlab_keeps_a_baseline_of_main_and_checks_other_branches(mpi) {
        let temp = TempDir::new();
        copy_example(temp.path());
        let on_branch = |branch| {
            let variables = [
                ("CI_COMMIT_BRANCH", branch),
                ("CI_DEFAULT_BRANCH", "main"),
                ("CI_COMMIT_SHORT_SHA", "0123abcd"),
            ];
            let (code, printed) = run_workflow(mpi, temp.path(), &gitlab_script(), &variables);
            // 4: runs scatter too much to tell, which the workflow allows.
            assert!(code == 0 || code == 4 && branch != "main", "{branch}: {code}: {printed}");
            // The next job begins with the cache alone.
            for number in 1..=3 {
                fs::remove_dir_all(temp.join(format!("new-{number}.gammachi"))).expect("recorded");
            }
        };
        on_branch("main");
        assert!(temp.join("history.html").is_file() && !temp.join("perf.xml").exists());
        on_branch("feature");
        let report = fs::read_to_string(temp.join("perf.xml")).expect("a report");
        assert!(report.contains("<testsuite"), "{report}");
    }
}
