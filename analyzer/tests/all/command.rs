//! The command as a user meets it: exit codes, what goes to which stream, what is left behind.
//!
//! No recorder is needed here: `GAMMACHI_LIBRARY` names a library that every system has, so the
//! programs run preloaded with something harmless. What is recorded is tested elsewhere.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use gammachi_analyzer::trace::run_json::{RunJson, RunState};
use trace_format::layout::{FixedHeader, MAGIC};
use trace_format::plain::{bytes_of, read_plain};
use trace_format::run_id::{COMMAND_BYTES, RUN_ID_BYTES, of_command};

use crate::scratch::{Scratch, harmless_library, stderr};

impl Scratch {
    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("killed: {:?}", output.status))
}

/// Stands for an MPI program: writes a rank file where the recorder would.
const RECORDS_A_RANK: &str = "mkdir -p $GAMMACHI_OUT/ranks-000 && \
    : > $GAMMACHI_OUT/ranks-000/rank-000000.gmc && : > $GAMMACHI_OUT/ranks-000/rank-000001.gmc";

#[test]
fn output_and_exit_code_of_the_program_pass_through() {
    let scratch = Scratch::new();
    let output = scratch.run(&["run", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(code(&output), 7);
    assert_eq!(stdout(&output), "out\n");
    let text = stderr(&output);
    assert!(text.starts_with("err\ngammachi: nothing was recorded"), "{text}");
    assert!(text.trim_end().ends_with("removed"), "{text}");
    assert!(scratch.entries().is_empty(), "{:?}", scratch.entries());
    assert_eq!(code(&scratch.run(&["run", "true"])), 0);
}

#[test]
fn standard_input_passes_through() {
    let scratch = Scratch::new();
    fs::write(scratch.0.path().join("input"), "a line\n").unwrap();
    let input = fs::File::open(scratch.0.path().join("input")).unwrap();
    let output = scratch.command(&["run", "--", "cat"]).stdin(input).output().unwrap();
    assert_eq!(stdout(&output), "a line\n");
}

#[test]
fn a_program_killed_by_a_signal_gives_128_and_the_signal() {
    let scratch = Scratch::new();
    let output = scratch.run(&["run", "--", "sh", "-c", "kill -SEGV $$"]);
    assert_eq!(code(&output), 128 + libc::SIGSEGV);
}

#[test]
fn the_recorder_is_told_what_was_asked_for() {
    let scratch = Scratch::new();
    let output = scratch
        .command(&["run", "--out", "r", "--level", "2", "--compute", "blas", "--param", "N=7"])
        .args(["--param", "NB=80", "--", "env"])
        .env("LD_PRELOAD", harmless_library())
        .output()
        .unwrap();
    let text = stdout(&output);
    let library = harmless_library();
    for line in [
        format!("GAMMACHI_OUT={}", scratch.0.path().join("r").display()),
        "GAMMACHI_LEVEL=2".into(),
        "GAMMACHI_COMPUTE=blas".into(),
        "GAMMACHI_PARAMS=N=7,NB=80".into(),
        format!("LD_PRELOAD={}", library.display()),
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("mca_base_env_list"), "no launcher, nothing to tell it\n{text}");
}

#[test]
fn a_recorded_run_is_described_and_named() {
    let scratch = Scratch::new();
    let program = format!("{RECORDS_A_RANK}; exit 3");
    let output = scratch
        .command(&["run", "--out", "deep/run", "--param", "N=7", "--", "sh", "-c", &program])
        .env("OMP_NUM_THREADS", "4")
        .env("MY_PASSWORD", "secret")
        .output()
        .unwrap();
    assert_eq!(code(&output), 3);
    assert_eq!(
        stderr(&output),
        "gammachi: run recorded in deep/run (2 ranks); see: gammachi report deep/run\n"
    );
    let directory = scratch.0.path().join("deep/run");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    assert_eq!(mode(&directory.join("run.json")), 0o600);
    let run = RunJson::read(&directory).unwrap();
    assert_eq!(run.state, RunState::Finished);
    assert_eq!(run.argv, ["sh", "-c", program.as_str()]);
    assert_eq!(run.exit.unwrap().code, 3);
    assert_eq!(run.params.0, [("N".to_owned(), "7".to_owned())]);
    assert_eq!((run.level, run.compute.as_str()), (1, "outside"));
    assert_eq!(run.environment["OMP_NUM_THREADS"], "4");
    assert!(run.end.unwrap().unix_ns >= run.start.unix_ns && run.duration_s.unwrap() >= 0.0);
    let text = fs::read_to_string(directory.join("run.json")).unwrap();
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn the_description_is_there_while_the_program_runs() {
    let scratch = Scratch::new();
    let program = format!("{RECORDS_A_RANK}; cat $GAMMACHI_OUT/run.json");
    let output = scratch.run(&["run", "--", "sh", "-c", &program]);
    let run: RunJson = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(run.state, RunState::Running);
    assert!(run.end.is_none() && run.exit.is_none() && run.duration_s.is_none());
    assert!(run.program.unwrap().ends_with("/sh"));
    let name = &scratch.entries()[0];
    assert!(name.starts_with("sh-") && name.ends_with(".gammachi"), "{name}");
}

#[test]
fn ranks_left_in_a_staging_directory_are_named() {
    let scratch = Scratch::new();
    let program = "mkdir $GAMMACHI_OUT/ranks-000; \
                   echo n1:/local/r/rank-000000.gmc > $GAMMACHI_OUT/ranks-000/rank-000000.staged; exit 9";
    let output = scratch.run(&["run", "--out", "r", "--", "sh", "-c", program]);
    assert_eq!(code(&output), 9);
    let text = stderr(&output);
    assert!(!text.contains("nothing was recorded"), "{text}");
    let expected = "r: the ranks' files are still in the staging directories of their hosts, one in \
                    n1:/local/r/rank-000000.gmc; join them: gammachi collect r STAGE";
    assert!(text.contains(expected), "{text}");
    let run = RunJson::read(&scratch.0.path().join("r")).unwrap();
    assert_eq!((run.state, run.exit.unwrap().code), (RunState::Finished, 9));
}

#[test]
fn a_directory_renamed_during_the_run_is_found() {
    let scratch = Scratch::new();
    let program = format!("{RECORDS_A_RANK}; mv r kept");
    let output = scratch.run(&["run", "--out", "r", "--", "sh", "-c", &program]);
    let text = stderr(&output);
    assert!(text.contains("run recorded in ") && text.contains("/kept (2 ranks)"), "{text}");
    assert_eq!(scratch.entries(), ["kept"]);
    assert_eq!(RunJson::read(&scratch.0.path().join("kept")).unwrap().state, RunState::Finished);
}

#[test]
fn several_jobs_of_one_run_are_all_named_and_described() {
    let scratch = Scratch::new();
    // Whose a second job's directory is, the ids in its rank files say.
    let program = format!(
        "{RECORDS_A_RANK}; echo $GAMMACHI_RUN_ID >id
         until [ -e second ]; do sleep 0.02; done; GAMMACHI_OUT=$GAMMACHI_OUT-2; {RECORDS_A_RANK}
         for rank in $GAMMACHI_OUT/ranks-000/*; do cat second >$rank; done"
    );
    let mut running = scratch.command(&["run", "--out", "r", "--", "sh", "-c", &program]);
    let running = running.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = wait_for_line(&scratch.0.path().join("id"));
    let mut run_id = [7; RUN_ID_BYTES];
    run_id[..COMMAND_BYTES].copy_from_slice(&of_command(id.as_bytes()));
    let blank = vec![0; size_of::<FixedHeader>()];
    let header = FixedHeader { magic: MAGIC, run_id, ..read_plain(&blank).unwrap() };
    fs::write(scratch.0.path().join("second.part"), bytes_of(&header)).unwrap();
    fs::rename(scratch.0.path().join("second.part"), scratch.0.path().join("second")).unwrap();
    let output = running.wait_with_output().unwrap();
    let text = stderr(&output);
    assert!(text.contains("recorded in r (2 ranks), r-2 (2 ranks); see"), "{text}");
    assert_eq!(RunJson::read(&scratch.0.path().join("r-2")).unwrap().state, RunState::Finished);
}

#[test]
fn a_launcher_that_cannot_be_started_says_so_as_a_shell_would() {
    let scratch = Scratch::new();
    for command in ["run", "exec"] {
        let output = scratch.run(&[command, "--", "no-such-launcher", "-n", "2"]);
        assert_eq!(code(&output), 127);
        let text = stderr(&output);
        assert!(text.starts_with("gammachi: no-such-launcher: not found in PATH"), "{text}");
        let output = scratch.run(&[command, "--", "/etc/passwd"]);
        assert_eq!(code(&output), 126, "{}", stderr(&output));
    }
    assert!(scratch.entries().is_empty(), "{:?}", scratch.entries());
}

#[test]
fn where_nothing_can_be_written_the_program_runs_all_the_same() {
    let scratch = Scratch::new();
    fs::write(scratch.0.path().join("file"), "").unwrap();
    for out in ["/proc/self/no", "file/below"] {
        let program = "echo out; env | grep -c GAMMACHI_OUT; exit 5";
        let output = scratch.run(&["run", "--out", out, "--", "sh", "-c", program]);
        assert_eq!(code(&output), 5);
        assert_eq!(stdout(&output), "out\n0\n");
        let text = stderr(&output);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("nothing will be recorded") && text.contains(out), "{text}");
    }
}

#[test]
fn a_directory_with_something_in_it_is_refused() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.0.path().join("taken")).unwrap();
    fs::write(scratch.0.path().join("taken/x"), "mine").unwrap();
    for out in ["taken", "taken/x"] {
        let output = scratch.run(&["run", "--out", out, "--", "touch", "it-ran"]);
        assert_eq!(code(&output), 2);
        let text = stderr(&output);
        assert!(text.contains(out) && text.contains("name a new directory"), "{text}");
    }
    assert_eq!(scratch.entries(), ["taken"], "the program was not started");
    assert_eq!(fs::read(scratch.0.path().join("taken/x")).unwrap(), b"mine");
}

#[test]
fn wrong_usage_is_2_and_says_what_to_do() {
    let scratch = Scratch::new();
    for (arguments, says) in [
        (&["run"] as &[&str], "Usage: gammachi run"),
        (&[], "no command was given"),
        (&["frobnicate"], "frobnicate"),
        (&["run", "--level", "3", "--", "true"], "--level"),
        (&["run", "--compute", "all", "--", "true"], "outside, blas, regions"),
        (&["run", "--param", "N", "--", "true"], "NAME=VALUE"),
        (&["run", "--param", "N=1,2", "--", "true"], "comma"),
        (&["exec", "--param", "1N=2", "--", "true"], "letters, digits"),
    ] {
        let output = scratch.run(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}");
        assert_eq!(stdout(&output), "");
        let text = stderr(&output);
        assert!(text.starts_with("gammachi: ") && text.contains(says), "{arguments:?}: {text}");
    }
    assert!(scratch.entries().is_empty());
}

#[test]
fn a_recorder_that_is_nowhere_is_said_with_all_places() {
    let scratch = Scratch::new();
    let output = scratch
        .command(&["run", "--", "true"])
        .env("GAMMACHI_LIBRARY", "/nowhere/libgammachi.so")
        .output()
        .unwrap();
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("GAMMACHI_LIBRARY=/nowhere/libgammachi.so"));

    let alone = scratch.0.path().join("bin");
    fs::create_dir(&alone).unwrap();
    // By another process: children of other tests would hold a file open that this one writes, and a
    // file that is open for writing cannot be executed (ETXTBSY).
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_gammachi")).arg(&alone).status();
    assert!(copied.unwrap().success());
    let output = Command::new(alone.join("gammachi"))
        .args(["run", "--", "true"])
        .env_remove("GAMMACHI_LIBRARY")
        .current_dir(scratch.0.path())
        .output()
        .unwrap();
    assert_eq!(code(&output), 1);
    let text = stderr(&output);
    assert!(text.contains("bin/libgammachi.so") && text.contains("lib/libgammachi.so"), "{text}");
}

#[test]
fn exec_sets_the_environment_and_becomes_the_program() {
    let scratch = Scratch::new();
    let child = scratch
        .command(&["exec", "--level", "0", "--out", "r", "--", "sh", "-c", "echo $$; env; exit 9"])
        .env("GAMMACHI_COMPUTE", "regions")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 9);
    let text = stdout(&output);
    assert_eq!(text.lines().next().unwrap(), id.to_string(), "the process is the same");
    assert!(text.contains("GAMMACHI_LEVEL=0\n") && text.contains("GAMMACHI_COMPUTE=regions\n"));
    assert!(text.contains(&format!("GAMMACHI_OUT={}\n", scratch.0.path().join("r").display())));
    assert!(scratch.entries().is_empty(), "the recorder makes the directory, not exec");

    let output = scratch.run(&["exec", "--", "env"]);
    assert!(!stdout(&output).contains("GAMMACHI_OUT"), "left as inherited");
}

/// Waits until a file holds a line, and gives it.
fn wait_for_line(path: &Path) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        if text.ends_with('\n') {
            return text.trim().to_owned();
        }
        assert!(Instant::now() < deadline, "{} was not written", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn send(pid: libc::pid_t, signal: libc::c_int) {
    // SAFETY: kill touches no memory; the id is that of a child of the test, or its group.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

fn pid(child: &Child) -> libc::pid_t {
    child.id().try_into().unwrap()
}

#[test]
fn a_signal_sent_to_the_command_reaches_the_program_which_ends_first() {
    let scratch = Scratch::new();
    for (name, signal) in [
        ("TERM", libc::SIGTERM),
        ("HUP", libc::SIGHUP),
        ("INT", libc::SIGINT),
        ("USR1", libc::SIGUSR1),
    ] {
        let program = format!(
            "trap 'echo got {name} > got; exit 5' {name}; echo ready > ready; \
             while :; do sleep 0.02; done"
        );
        let mut command = scratch.command(&["run", "--", "sh", "-c", &program]);
        // SAFETY: what may be called between fork and exec. Behind nohup and in the background of a script
        // signals are ignored, and no shell may trap these.
        unsafe {
            command.pre_exec(move || {
                libc::signal(signal, libc::SIG_DFL);
                Ok(())
            })
        };
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        wait_for_line(&scratch.0.path().join("ready"));
        send(pid(&child), signal);
        assert_eq!(child.wait().unwrap().code(), Some(5), "{name}");
        assert_eq!(wait_for_line(&scratch.0.path().join("got")), format!("got {name}"));
        fs::remove_file(scratch.0.path().join("ready")).unwrap();
        fs::remove_file(scratch.0.path().join("got")).unwrap();
    }
}

#[test]
fn a_signal_that_the_program_obeys_gives_its_number() {
    let scratch = Scratch::new();
    let program = ["run", "--", "sh", "-c", "echo ready > ready; exec sleep 600"];
    let mut command = scratch.command(&program);
    let mut child = command.process_group(0).stderr(Stdio::null()).spawn().unwrap();
    wait_for_line(&scratch.0.path().join("ready"));
    send(-pid(&child), libc::SIGTERM);
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), None, "the command itself was not killed");
    assert_eq!(status.code(), Some(128 + libc::SIGTERM));
    assert_eq!(scratch.entries(), ["ready"]);
}

#[test]
fn the_description_names_who_sent_a_signal() {
    let scratch = Scratch::new();
    let program = format!(
        "{RECORDS_A_RANK}; trap 'exit 1' TERM; echo ready > ready; \
                           while :; do sleep 0.02; done"
    );
    let mut command = scratch.command(&["run", "--out", "r", "--", "sh", "-c", &program]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    wait_for_line(&scratch.0.path().join("ready"));
    send(pid(&child), libc::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let run = RunJson::read(&scratch.0.path().join("r")).unwrap();
    let termination = run.termination.unwrap();
    assert!(termination.signal == libc::SIGTERM && termination.forwarded, "{termination:?}");
    let sender = termination.sender.unwrap();
    assert_eq!(sender.pid, std::process::id().cast_signed());
    let own_name = fs::read_to_string("/proc/self/comm").unwrap();
    assert_eq!(sender.name.unwrap(), own_name.trim_end());
    assert!(termination.after_s >= 0.0 && termination.after_s <= run.duration_s.unwrap());
}

#[test]
fn a_signal_ignored_at_the_start_reaches_a_program_that_catches_it() {
    let scratch = Scratch::new();
    let script = "trap 'echo got > got; exit 5' INT; echo ready > ready; \
                  while :; do sleep 0.02; done";
    // As launchers do, the program installs a handler although it was started with SIGINT ignored.
    let program = ["run", "--", "env", "--default-signal=INT", "sh", "-c", script];
    let mut command = scratch.command(&program);
    // SAFETY: signal may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_IGN);
            Ok(())
        })
    };
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    wait_for_line(&scratch.0.path().join("ready"));
    send(pid(&child), libc::SIGINT);
    let deadline = Instant::now() + Duration::from_secs(60);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            send(pid(&child), libc::SIGTERM);
            panic!("the signal was lost");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(status.code(), Some(5));
}

#[test]
fn the_program_does_not_outlive_a_command_that_is_killed() {
    let scratch = Scratch::new();
    let program = ["run", "--", "sh", "-c", "echo $$ > ready; exec sleep 600"];
    let mut child = scratch.command(&program).stderr(Stdio::null()).spawn().unwrap();
    let program: libc::pid_t = wait_for_line(&scratch.0.path().join("ready")).parse().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while is_running(program) {
        if Instant::now() > deadline {
            send(program, libc::SIGKILL);
            panic!("the program lives on");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process exists and is no zombie.
fn is_running(process: libc::pid_t) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let scratch = Scratch::new();
    for arguments in [&["--help"] as &[&str], &["run", "--help"], &["doctor", "--json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = scratch.command(arguments).stdout(writer).output().unwrap();
        assert_eq!(code(&output), 0, "{arguments:?}");
        assert_eq!(stderr(&output), "", "{arguments:?}");
    }
}

#[test]
fn the_doctor_answers_people_and_machines() {
    let scratch = Scratch::new();
    let output = scratch.run(&["doctor"]);
    assert_eq!(code(&output), 0);
    let text = stdout(&output);
    for group in ["RECORDER", "MPI", "COUNTER", "STORAGE", "HOST"] {
        assert!(text.lines().any(|line| line == group), "{group} is missing in\n{text}");
    }
    assert!(!text.contains('\x1b'), "no colour into a pipe");
    assert!(text.lines().all(|line| line.chars().count() <= 160), "{text}");

    let output = scratch.run(&["doctor", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["format"], "gammachi-doctor");
    let findings = document["findings"].as_array().unwrap();
    assert!(findings.len() > 10);
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = "docs/reference/doctor-json.md";
    let documented = fs::read_to_string(repository.join(page)).unwrap();
    for finding in findings {
        let mark = finding["mark"].as_str().unwrap();
        assert!(["ok", "note", "limit"].contains(&mark));
        assert!(!finding["meaning"].as_str().unwrap().is_empty(), "{finding}");
        let row = format!(
            "| {}: {} |",
            finding["group"].as_str().unwrap(),
            finding["name"].as_str().unwrap()
        );
        assert!(documented.contains(&row), "{page} lacks {row}");
        for key in finding["data"].as_object().unwrap().keys() {
            assert!(documented.contains(&format!("`{key}`")), "{page} lacks `{key}`");
        }
    }
    assert!(scratch.entries().is_empty(), "its temporary files are gone");
}

#[test]
fn every_command_shows_an_example() {
    let scratch = Scratch::new();
    let help = stdout(&scratch.run(&["--help"]));
    // Groups have titles, and their commands are indented.
    let groups = help.split("\n\n").filter(|group| !group.starts_with("Options:"));
    let commands =
        groups.flat_map(|group| group.lines().skip(1)).filter(|line| line.starts_with("  "));
    let mut count = 0;
    for command in commands {
        let Some(name) = command.split_whitespace().next().filter(|name| *name != "gammachi")
        else {
            continue;
        };
        let output = scratch.run(&[name, "--help"]);
        let mut text = String::new();
        output.stdout.as_slice().read_to_string(&mut text).unwrap();
        assert!(text.contains("Example") && text.contains(&format!("gammachi {name}")), "{text}");
        count += 1;
    }
    assert!(count >= 15, "{help}");
}

#[test]
fn where_no_run_is_named_and_none_is_here_the_next_step_is() {
    let scratch = Scratch::new();
    for command in ["report", "why", "view", "whatif"] {
        let output = scratch.run(&[command]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("record one with gammachi run -- mpirun"), "{error}");
    }
}

#[test]
fn pictures_are_not_written_under_the_name_of_another_format() {
    let scratch = Scratch::new();
    let output = scratch.run(&["view", "RUN", "--kind", "tau-chi", "--svg", "a b.png"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("rsvg-convert 'a b.svg' -o 'a b.png'"), "{error}");
}

#[test]
fn an_old_name_is_answered_with_the_new_command_line() {
    let scratch = Scratch::new();
    let old = ["plot", "RUN", "--kind", "tau-chi", "--out", "a b.svg"];
    let output = scratch.run(&old);
    let new = "gammachi view RUN --kind tau-chi --svg 'a b.svg'";
    assert_eq!(stderr(&output), format!("gammachi: plot is now: {new}\n"));
    assert_eq!((code(&output), stdout(&output)), (2, String::new()));
    let help = scratch.run(&["help", "baseline"]);
    assert_eq!(stderr(&help), "gammachi: baseline is now: gammachi check\n");
}

#[test]
fn what_is_hidden_works() {
    let scratch = Scratch::new();
    assert!(!stdout(&scratch.run(&["--help"])).contains("completions"));
    let completions = stdout(&scratch.run(&["completions", "bash"]));
    assert!(completions.contains("gammachi") && completions.contains("--junit"), "{completions}");
    assert_eq!(code(&scratch.run(&["man-pages", "."])), 0);
    let pages = scratch.entries();
    for page in ["gammachi.1", "gammachi-view.1", "gammachi-calibrate-clock.1"] {
        assert!(pages.iter().any(|name| name == page), "{page} is missing in {pages:?}");
    }
}

#[test]
fn options_of_different_tasks_of_a_command_are_refused_together() {
    let scratch = Scratch::new();
    for (line, why) in [
        ("view r --text --svg f.svg", "cannot be used with"),
        ("view r --text --no-open", "cannot be used with"),
        ("view r --index-only --svg f.svg", "cannot be used with"),
        ("view r --width 80", "--text"),
        ("view r --window 1,2", "--text"),
        ("view r --region solve", "--svg"),
        ("view r --text --region solve", "cannot be used with"),
        ("view r --text --kind sizes", "cannot be used with"),
        ("view r --text --share", "cannot be used with"),
        ("view r --svg f.svg --width 80", "cannot be used with"),
        ("check r", "--baseline"),
        ("check --baseline b", "RUN|STUDY"),
        ("check r --show --baseline b", "cannot be used with"),
        ("check r --add --trim 3 --baseline b", "cannot be used with"),
        ("check r --add --at-most 3% --baseline b", "cannot be used with"),
        ("check r --add --junit f.xml --baseline b", "cannot be used with"),
        ("check r --share --baseline b", "--history"),
        ("check r --add --share --baseline b", "cannot be used with"),
        ("export r --to csv", "--out PATH is missing"),
        ("export r s --to csv --out t", "name one run"),
        ("export r --to table --ranks 0", "--ranks is for"),
        ("export r --to csv --out t --region solve", "--region is for"),
        ("whatif --ledger --rank 3 --speed 2", "cannot be used with"),
        ("whatif --answer 3fa2c1 r --out s", "cannot be used with"),
        ("calibrate", "LAUNCHER ARGS"),
        ("calibrate clock", "LAUNCHER ARGS"),
        ("calibrate --quick clock -- mpirun", "not a known launcher"),
    ] {
        let output = scratch.run(&line.split(' ').collect::<Vec<_>>());
        let error = stderr(&output);
        assert_eq!(code(&output), 2, "{line}: {error}");
        assert!(error.contains(why), "{line}: {error}");
    }
    assert!(scratch.entries().is_empty(), "{:?}", scratch.entries());
}
