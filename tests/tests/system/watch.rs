//! `gammachi watch`: snapshots of running jobs, and what makes it take them.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use gammachi_analyzer::metrics::{Metrics, Selection};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::trace::Run;
use serde_json::Value;
use system_tests::directories::{SmallFileSystem, TempDir, repository};
use system_tests::library::library;
use system_tests::victim::{Build, built};
use system_tests::{Job, Mpi, Recording, command, skip, under_mpich, victim};
use trace_format::files::rank_file_path;
use trace_format::header::{Definition, Keeping, KeepingPolicy};
use trace_format::reader::RankFile;

/// However loaded the host is.
const PATIENCE: Duration = Duration::from_secs(120);

fn gammachi(arguments: &[&str]) -> Output {
    Command::new(command()).args(arguments).output().expect("it starts")
}

/// Standard output of a command that succeeds.
fn output_of(arguments: &[&str]) -> String {
    let output = gammachi(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&output_of(arguments)).expect("JSON")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Takes a snapshot, and returns its directory.
fn snapshot_now(run: &Path) -> PathBuf {
    let output = gammachi(&["watch", text(run), "--now"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    let path = stderr.split("snapshot in ").nth(1).and_then(|rest| rest.split(';').next());
    PathBuf::from(path.unwrap_or_else(|| panic!("{stderr}")))
}

/// Ranks 0 and 1 wait in a barrier for rank 2, which computes.
fn stuck(mpi: Mpi) -> Recording {
    let mut running =
        Job::new(mpi, &victim(mpi, "never_reaches_barrier")).ranks(3).start_recording();
    running.wait_for(|trace| {
        let inside = |rank: usize| {
            trace.rank(rank).open_calls() == ["MPI_Barrier"]
                && trace.rank(rank).count("MPI_Barrier") == 6
        };
        let outside =
            trace.rank(2).count("MPI_Barrier") == 5 && trace.rank(2).open_calls().is_empty();
        (inside(0) && inside(1) && outside).then_some(())
    });
    running
}

fn process_of(running: &mut Recording, rank: usize) -> libc::pid_t {
    running.wait_for(|trace| Some(trace.rank(rank).file.fixed.pid as libc::pid_t))
}

fn signal(process: libc::pid_t, signal: libc::c_int) {
    // SAFETY: plain numbers; the process is a rank of our own job, or our own child.
    unsafe { libc::kill(process, signal) };
}

/// A watcher, and what it has printed.
struct Watcher(Child);

impl Watcher {
    fn start(run: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(command());
        command.arg("watch").arg(run).args(arguments).stderr(Stdio::piped());
        Self(command.spawn().expect("it starts"))
    }

    /// The same, with a preloaded library.
    fn start_with_library(run: &Path, arguments: &[&str], library: &Path) -> Self {
        let mut command = Command::new(command());
        command.arg("watch").arg(run).args(arguments).env("LD_PRELOAD", library);
        Self(command.stderr(Stdio::piped()).spawn().expect("it starts"))
    }

    /// The same, with a size that no file it writes may exceed.
    fn start_with_limit(run: &Path, arguments: &[&str], bytes: u64) -> Self {
        let mut limited = Command::new("prlimit");
        limited.arg(format!("--fsize={bytes}")).arg(command()).arg("watch").arg(run);
        limited.args(arguments).stderr(Stdio::piped());
        Self(limited.spawn().expect("it starts"))
    }

    /// Waits until a snapshot is there. Returns its `run.json`.
    fn wait_for(run: &Path, number: u32) -> Value {
        let path = run.join(format!("flight-{number:03}/run.json"));
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Ok(text) = std::fs::read(&path) {
                return serde_json::from_slice(&text).expect("JSON");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("no snapshot {}", path.display());
    }

    /// Waits for its end by itself. Returns what it printed.
    fn end(mut self) -> String {
        let end = Instant::now() + PATIENCE;
        while self.0.try_wait().expect("it is our child").is_none() {
            assert!(Instant::now() < end, "the watcher does not end with the job");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut printed = String::new();
        self.0.stderr.take().expect("a pipe").read_to_string(&mut printed).expect("UTF-8");
        printed
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn reason(run_json: &Value) -> (&str, Option<u64>) {
    let snapshot = &run_json["snapshot"];
    (snapshot["reason"].as_str().expect("a reason"), snapshot["rank"].as_u64())
}

under_mpich! {
    fn snapshot_is_a_run_of_its_moment(mpi) {
        let running = stuck(mpi);
        std::thread::sleep(Duration::from_millis(1200));
        let snapshot = snapshot_now(&running.directory());
        running.signal_all(libc::SIGKILL);
        let _recorded = running.end();
        let run = text(&snapshot);
        let report = json(&["report", "--json", run]);
        assert_eq!(report["diagnoses"], serde_json::json!([]), "{report}");
        let unfinished = &report["unfinished"];
        assert_eq!((&unfinished["running"], &unfinished["at_least"]), (&true.into(), &false.into()));
        let causes = serde_json::json!([{ "rank": 2, "kind": "outside MPI", "waiting": [0, 1] }]);
        assert_eq!(unfinished["causes"], causes, "{unfinished}");
        assert_ne!(unfinished["ranks"][2]["process"], "gone");
        let waited_s = unfinished["until_s"].as_f64().expect("a number")
            - unfinished["ranks"][0]["last_stamp_s"].as_f64().expect("a number");
        assert!(waited_s > 1.0, "{waited_s}");
        // Somebody sets the clock of the day.
        let described = snapshot.join("run.json");
        let mut later: Value =
            serde_json::from_slice(&std::fs::read(&described).expect("it is there")).expect("JSON");
        let at = later["snapshot"]["at"]["unix_ns"].as_u64().expect("a number");
        later["snapshot"]["at"]["unix_ns"] = (at + 3_600_000_000_000).into();
        std::fs::write(&described, later.to_string()).expect("it can be written");
        assert_eq!(json(&["report", "--json", run])["unfinished"]["until_s"], unfinished["until_s"]);
        for name in ["report", "why"] {
            let shown = output_of(&[name, run]);
            let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains("this is a snapshot of a running job, taken at 20"), "{shown}");
        }
        output_of(&["view", "--text", run]);
        let exported = snapshot.join("otf.json");
        output_of(&["export", run, "--to", "perfetto", "--out", text(&exported)]);
    }

    fn tells_deadlock_once(mpi) {
        let job = Job::new(mpi, &victim(mpi, "deadlock_recv_recv")).ranks(3);
        let mut running = job.start_recording();
        running.wait_for(|trace| (trace.ranks.len() == 3).then_some(()));
        let watcher = Watcher::start(&running.directory(), &["--on", "hang=5m"]);
        assert_eq!(reason(&Watcher::wait_for(&running.directory(), 1)), ("deadlock", Some(0)));
        std::thread::sleep(Duration::from_secs(2));
        running.signal_all(libc::SIGKILL);
        let _recorded = running.end();
        let printed = watcher.end();
        let deadlock = "deadlock: rank 0 and others have waited for each other";
        assert_eq!(printed.matches(deadlock).count(), 1, "{printed}");
        assert!(printed.contains("see: gammachi report"), "{printed}");
    }

    fn tells_rank_that_others_wait_for_and_its_stop_and_death(mpi) {
        let mut running = stuck(mpi);
        let process = process_of(&mut running, 2);
        let directory = running.directory();
        let watcher = Watcher::start(&directory, &["--on", "hang=2s,exit"]);
        assert_eq!(reason(&Watcher::wait_for(&directory, 1)), ("outside", Some(2)));
        signal(process, libc::SIGSTOP);
        let stopped = Watcher::wait_for(&directory, 2);
        assert_eq!(reason(&stopped), ("stopped", Some(2)));
        assert_eq!(stopped["snapshot"]["processes"]["2"], "stopped");
        running.signal_all(libc::SIGKILL);
        let _recorded = running.end();
        let printed = watcher.end();
        assert!(printed.contains("all others have waited for rank 2"), "{printed}");
        assert!(printed.contains("rank 2 is stopped by a signal"), "{printed}");
    }

    fn names_rank_that_is_killed(mpi) {
        let mut running = stuck(mpi);
        let process = process_of(&mut running, 2);
        let directory = running.directory();
        let watcher = Watcher::start(&directory, &["--on", "exit"]);
        // It looks before the first moment of which it tells.
        std::thread::sleep(Duration::from_millis(500));
        signal(process, libc::SIGKILL);
        assert_eq!(reason(&Watcher::wait_for(&directory, 1)), ("dead", Some(2)));
        running.signal_all(libc::SIGKILL);
        let _recorded = running.end();
        let printed = watcher.end();
        assert!(printed.contains("rank 2 died before MPI_Finalize"), "{printed}");
        assert_eq!(printed.matches("snapshot in").count(), 1, "{printed}");
    }
}

under_mpich! {
    fn snapshots_of_fast_ranks_are_whole(mpi) {
        for keep in ["first", "last"] {
            let ends = TempDir::new();
            let file = ends.join("ends");
            let mut running = Job::new(mpi, &victim(mpi, "calls_until_told"))
                .ranks(2)
                .argument(&file)
                .environment("GAMMACHI_KEEP", keep)
                .environment("GAMMACHI_MAX_BYTES", "1M")
                .start_recording();
            running.wait_for(|trace| (trace.rank(0).count("MPI_Sendrecv") > 20_000).then_some(()));
            let reports: Vec<Value> = (0..4)
                .map(|_| json(&["report", "--json", text(&snapshot_now(&running.directory()))]))
                .collect();
            let live = json(&["report", "--json", text(&running.directory())]);
            assert_eq!(live["diagnoses"], serde_json::json!([]), "{keep}: {live}");
            std::fs::write(&file, "").expect("it can be written");
            running.end().expect_code(0);
            let mut calls = 0;
            for report in reports {
                assert_eq!(report["diagnoses"], serde_json::json!([]), "{keep}: {report}");
                let functions = report["calls"].as_array().expect("calls").iter();
                let now = functions
                    .filter(|of| of["function"] == "MPI_Comm_rank")
                    .map(|of| of["count"].as_u64().expect("a number"))
                    .sum::<u64>();
                assert!(now > calls, "{keep}: {now} calls after {calls}");
                calls = now;
            }
        }
    }

    fn watcher_goes_on_without_snapshots_and_the_job_without_watcher(mpi) {
        let mut running = stuck(mpi);
        let process = process_of(&mut running, 2);
        let directory = running.directory();
        let too_long = Watcher::start(&directory, &["--on", "hang=1s", "--most-bytes", "1K"]);
        std::thread::sleep(Duration::from_secs(3));
        signal(process, libc::SIGSTOP);
        std::thread::sleep(Duration::from_secs(4));
        signal(too_long.0.id() as libc::pid_t, libc::SIGTERM);
        let printed = too_long.end();
        assert_eq!(printed.matches("no snapshot").count(), 2, "{printed}");
        assert_eq!(printed.matches("--most-bytes").count(), 1, "what prevents them is said once: {printed}");
        let on_request = Watcher::start(&directory, &["--on", "signal"]);
        std::thread::sleep(Duration::from_secs(1));
        signal(on_request.0.id() as libc::pid_t, libc::SIGUSR1);
        assert_eq!(reason(&Watcher::wait_for(&directory, 1)), ("signal", None));
        signal(on_request.0.id() as libc::pid_t, libc::SIGKILL);
        // A watcher that cannot write says so once.
        signal(process, libc::SIGCONT);
        let full = Watcher::start_with_limit(&directory, &["--on", "hang=1s"], 4096);
        std::thread::sleep(Duration::from_secs(3));
        signal(process, libc::SIGSTOP);
        std::thread::sleep(Duration::from_secs(4));
        signal(full.0.id() as libc::pid_t, libc::SIGTERM);
        let printed = full.end();
        assert_eq!(printed.matches("no snapshot").count(), 2, "{printed}");
        assert_eq!(printed.matches("cannot be written").count(), 1, "{printed}");
        signal(process, libc::SIGCONT);
        // One that is killed leaves nothing that harms the run.
        for step in 0..6 {
            let killed = Watcher::start(&directory, &["--on", "hang=1s"]);
            std::thread::sleep(Duration::from_millis(1000 + 60 * step));
            signal(killed.0.id() as libc::pid_t, libc::SIGKILL);
        }
        let report = json(&["report", "--json", text(&directory)]);
        assert_eq!(report["diagnoses"], serde_json::json!([]), "{report}");
        assert_eq!(report["unfinished"]["ranks"].as_array().map(Vec::len), Some(3));
        // The run directory goes away while it is watched.
        let gone = Watcher::start(&directory, &["--on", "hang=1s"]);
        std::thread::sleep(Duration::from_secs(1));
        std::fs::rename(&directory, directory.with_extension("elsewhere")).expect("it can be renamed");
        signal(process, libc::SIGCONT);
        std::thread::sleep(Duration::from_secs(1));
        signal(process, 0);
        running.signal_all(libc::SIGKILL);
        running.end();
        let printed = gone.end();
        assert_eq!(printed.matches("is gone").count(), 1, "{printed}");
        assert!(!printed.contains("died"), "{printed}");
    }

    fn slow_iterations_are_told_with_their_rank(mpi) {
        let job = Job::new(mpi, &victim(mpi, "is_slow_once")).ranks(3);
        let mut running = job.start_recording();
        running.wait_for(|trace| (trace.rank(0).count("MPI_Allreduce") > 0).then_some(()));
        let directory = running.directory();
        let watcher = Watcher::start(&directory, &["--on", "slow=3"]);
        let described = Watcher::wait_for(&directory, 1);
        assert_eq!(reason(&described), ("slow", Some(1)), "{described}");
        let _recorded = running.end();
        let printed = watcher.end();
        assert!(printed.contains("rank 1 took longer outside MPI"), "{printed}");
    }
}

/// It takes a minute of readings.
#[test]
#[ignore = "with scripts/test --all"]
fn memory_that_is_used_up_is_told_with_the_rank_that_grows() {
    let folder = TempDir::new();
    let ends = folder.join("ends");
    let job = Job::new(Mpi::Mpich, &victim(Mpi::Mpich, "grows")).ranks(3).argument(&ends);
    let mut running = job.start_recording();
    running.wait_for(|trace| (trace.rank(0).count("MPI_Bcast") > 0).then_some(()));
    let directory = running.directory();
    let watcher = Watcher::start(&directory, &["--on", "memory=24h"]);
    let described = Watcher::wait_for(&directory, 1);
    assert_eq!(reason(&described), ("memory", Some(1)), "{described}");
    std::fs::write(&ends, "").expect("it can be written");
    running.end().expect_code(0);
    let printed = watcher.end();
    assert!(printed.contains("most by rank 1; the "), "{printed}");
}

/// A program under `gammachi run --flight`, which stands still after a while.
fn flight(mpi: Mpi, folder: &TempDir, arguments: &[&str]) -> (Child, PathBuf) {
    flight_of(mpi, folder.path(), arguments, (3, "never_reaches_barrier"), &[])
}

/// A program with so many ranks under `gammachi run --flight`.
fn flight_of(
    mpi: Mpi,
    folder: &Path,
    arguments: &[&str],
    (ranks, program): (u32, &str),
    words: &[&str],
) -> (Child, PathBuf) {
    let (out, launcher) = (folder.join("run"), mpi.launcher());
    let mut run = Command::new(command());
    run.args(["run", "--flight"]).args(arguments).arg("--out").arg(&out).arg("--");
    run.arg(launcher.get_program()).args(launcher.get_args()).arg("-n").arg(ranks.to_string());
    run.arg(victim(mpi, program)).args(words);
    run.env("GAMMACHI_LIBRARY", library());
    run.envs(mpi.environment().iter().copied()).stdin(Stdio::null()).stderr(Stdio::piped());
    (run.spawn().expect("it starts"), out)
}

under_mpich! {
    fn run_with_flight_is_watched_until_its_end(mpi) {
        let folder = TempDir::new();
        let (mut run, out) = flight(mpi, &folder, &["--last", "8M", "--on", "hang=2s,exit"]);
        assert_eq!(reason(&Watcher::wait_for(&out, 1)), ("outside", Some(2)));
        signal(run.id() as libc::pid_t, libc::SIGTERM);
        let mut printed = String::new();
        // Nobody holds the pipe any more: the watcher has ended, too.
        run.stderr.take().expect("a pipe").read_to_string(&mut printed).expect("UTF-8");
        // Its code is the launcher's, and MPICH's gives 0 at times.
        run.wait().expect("it is our child");
        assert!(printed.contains("all others have waited for rank 2"), "{printed}");
        let file = RankFile::open(&out.join("flight-001").join(rank_file_path(0, 0)));
        let definitions = file.expect("a rank file").definitions;
        let keeping = Keeping { policy: KeepingPolicy::Last, max_bytes: 8 << 20 };
        assert!(definitions.contains(&Definition::Keeping(keeping)), "{definitions:?}");
    }

    fn calls_of_the_last_seconds_are_kept_and_others_are_totals(mpi) {
        const LAST_S: f64 = 5.0;
        let folder = TempDir::new();
        let ends = folder.join("ends");
        let program = (2, "calls_until_told");
        let arguments = ["--last", "5s", "--on", "exit"];
        let (mut run, out) = flight_of(mpi, folder.path(), &arguments, program, &[text(&ends)]);
        // Long enough for calls that are no longer kept: space is given back in pieces of some seconds.
        std::thread::sleep(Duration::from_secs(20));
        std::fs::write(&ends, "").expect("it can be written");
        assert_eq!(run.wait().expect("it is our child").code(), Some(0));
        let run = Run::open(&out).expect("the run can be read");
        assert_eq!(run.diagnoses, []);
        let timeline = GlobalTimeline::new(&run);
        let metrics = Metrics::new(&run, &timeline, &Selection::Whole).expect("figures of the run");
        let totals = metrics.totals.as_ref().expect("totals");
        let calls: u64 = metrics.calls.iter().map(|call| call.count).sum();
        assert_eq!(totals.calls + totals.kept_calls, calls);
        for rank in &run.ranks {
            let ticks = |moment: Option<u64>| moment.expect("it ran to its end") as f64;
            let (begin, end) = (ticks(rank.facts.begin_ticks), ticks(rank.facts.end_ticks));
            let first = rank.file.events_behind_totals(&rank.file.threads[0]).next();
            let first = ticks(first.map(|event| event.begin));
            let kept_s = (end - first) / (end - begin) * metrics.elapsed_s;
            assert!(kept_s >= LAST_S, "{kept_s} s");
            assert!(metrics.elapsed_s - kept_s > 1.0, "{kept_s} of {} s", metrics.elapsed_s);
        }
    }

    fn clock_that_is_stepped_changes_no_judgement(mpi) {
        let clock = built(mpi, "steps_clock", Build::Shared);
        let folder = TempDir::new();
        let ends = folder.join("ends");
        let job = Job::new(mpi, &victim(mpi, "sleeps_in_turn")).ranks(2).argument(&ends);
        let mut running = job.preload_before(&clock).start_recording();
        let process = process_of(&mut running, 1);
        let directory = running.directory();
        let watcher = Watcher::start_with_library(&directory, &["--on", "hang=2s,exit"], &clock);
        std::thread::sleep(Duration::from_secs(6));
        assert!(!directory.join("flight-001").exists(), "nothing is wrong");
        signal(process, libc::SIGSTOP);
        assert_eq!(reason(&Watcher::wait_for(&directory, 1)), ("stopped", Some(1)));
        signal(process, libc::SIGCONT);
        std::thread::sleep(Duration::from_secs(3));
        std::fs::write(&ends, "").expect("it can be written");
        let recorded = running.end();
        recorded.expect_code(0);
        let printed = watcher.end();
        assert_eq!(printed.lines().count(), 1, "{printed}");
        let report = json(&["report", "--json", text(&directory)]);
        let elapsed_s = report["elapsed_s"].as_f64().expect("a number");
        assert!(elapsed_s > 9.0 && elapsed_s < 3600.0, "{elapsed_s} s");
    }

    fn full_disk_is_told_once_and_harms_no_program(mpi) {
        let Some(small) = SmallFileSystem::mount(16 * 1024) else { return };
        let elsewhere = TempDir::new();
        let ends = elsewhere.join("ends");
        let program = (2, "calls_until_told");
        let (mut run, out) =
            flight_of(mpi, small.path(), &["--last", "8M", "--on", "hang=5s"], program, &[text(&ends)]);
        let end = Instant::now() + PATIENCE;
        let process = loop {
            if let Ok(file) = RankFile::open(&out.join(rank_file_path(0, 1))) {
                break file.fixed.pid as libc::pid_t;
            }
            assert!(Instant::now() < end, "rank 1 has no file");
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut filler = std::fs::File::create(small.path().join("filler")).expect("there is room yet");
        let full = std::io::copy(&mut std::io::repeat(0), &mut filler).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        std::thread::sleep(Duration::from_secs(1));
        for _ in 0..2 {
            signal(process, libc::SIGSTOP);
            std::thread::sleep(Duration::from_secs(4));
            signal(process, libc::SIGCONT);
            std::thread::sleep(Duration::from_secs(2));
        }
        std::fs::write(&ends, "").expect("that folder is on another disk");
        let mut printed = String::new();
        run.stderr.take().expect("a pipe").read_to_string(&mut printed).expect("UTF-8");
        assert_eq!(run.wait().expect("it is our child").code(), Some(0), "{printed}");
        assert_eq!(printed.matches("no snapshot").count(), 2, "{printed}");
        assert_eq!(printed.matches("cannot be written").count(), 1, "{printed}");
    }

    fn stuck_ranks_are_asked_for_their_stacks_unless_they_would_notice(mpi) {
        let folder = TempDir::new();
        let (mut run, out) =
            flight_of(mpi, folder.path(), &["--on", "hang=2s"], (5, "is_asked_for_stacks"), &[]);
        let described = Watcher::wait_for(&out, 1);
        assert_eq!(reason(&described).0, "outside");
        let run_directory = out.join("flight-001");
        let report = json(&["report", "--json", text(&run_directory)]);
        let ranks = report["unfinished"]["ranks"].as_array().expect("ranks");
        let functions = |rank: usize| -> Vec<&str> {
            let stack = &ranks[rank]["threads"][0]["stack"];
            let functions = stack["functions"].as_array().into_iter().flatten();
            functions.filter_map(|of| of["function"].as_str()).collect()
        };
        let inside = functions(0);
        assert!(inside.contains(&"main") && inside.len() > 2, "{inside:?}");
        assert_eq!(functions(1)[..2], ["never_ends", "main"]);
        for (rank, why) in [(2, "blocked"), (3, "taken"), (4, "sleeping")] {
            assert_eq!(ranks[rank]["unanswered"], why, "{}", ranks[rank]);
            assert_eq!(functions(rank), [""; 0]);
        }
        let shown = output_of(&["report", text(&run_directory)]);
        assert!(shown.contains("rank 1: never_ends (is_asked_for_stacks.c:"), "{shown}");
        // All of them live on.
        std::thread::sleep(Duration::from_secs(1));
        let now = json(&["top", text(&out), "--once", "--json"]);
        let alive = now["ranks"].as_array().expect("ranks").iter();
        assert!(alive.clone().all(|of| of["state"] != "dead"), "{now}");
        assert_eq!(alive.count(), 5);
        signal(run.id() as libc::pid_t, libc::SIGTERM);
        run.wait().expect("it is our child");
    }

    fn exec_with_flight_has_one_watcher_that_ends_with_the_job(mpi) {
        let folder = TempDir::new();
        let (out, launcher) = (folder.join("run"), mpi.launcher());
        let mut job = Command::new(launcher.get_program());
        job.args(launcher.get_args()).args(["-n", "3"]).arg(command()).args(["exec", "--flight"]);
        job.args(["--on", "hang=2s,exit", "--out"]).arg(&out).arg("--");
        job.arg(victim(mpi, "never_reaches_barrier")).env("GAMMACHI_LIBRARY", library());
        job.envs(mpi.environment().iter().copied()).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut job = job.spawn().expect("it starts");
        assert_eq!(reason(&Watcher::wait_for(&out, 1)), ("outside", Some(2)));
        let second = gammachi(&["watch", text(&out)]);
        let stderr = String::from_utf8_lossy(&second.stderr);
        assert!(stderr.contains("runs on this host already"), "{stderr}");
        signal(job.id() as libc::pid_t, libc::SIGTERM);
        let mut printed = String::new();
        job.stderr.take().expect("a pipe").read_to_string(&mut printed).expect("UTF-8");
        job.wait().expect("it is our child");
        assert_eq!(printed.matches("all others have waited for rank 2").count(), 1, "{printed}");
    }
}

/// A program with two ranks on each host of the rig, watched on both.
struct TwoHosts {
    job: Child,
    out: PathBuf,
}

impl TwoHosts {
    /// `None`: there can be no rig here.
    fn start(out: &Path, program: &str) -> Option<Self> {
        let rig = repository().join("tests/rigs/two-hosts");
        let possible = Command::new(&rig).arg("check").output().expect("the rig can be started");
        if !possible.status.success() {
            skip("two-hosts", String::from_utf8_lossy(&possible.stderr).trim());
            return None;
        }
        let mut job = Command::new(&rig);
        job.args(["run", "openmpi", "2", "2", "LAUNCH", "env"]);
        job.arg(format!("GAMMACHI_LIBRARY={}", library().display())).arg(command());
        job.args(["exec", "--flight", "--on", "hang=3s", "--out"]).arg(out).arg("--");
        job.arg(victim(Mpi::OpenMpi, program)).stdin(Stdio::null());
        Some(Self { job: job.spawn().expect("the rig starts"), out: out.to_owned() })
    }

    /// Signals all processes on the host of a process of this job: each host has a name space of its own.
    fn signal_beside(process: u32, number: libc::c_int) {
        let host = |process: u32| std::fs::read_link(format!("/proc/{process}/ns/uts")).ok();
        let own = host(std::process::id());
        let Some(there) = host(process).filter(|there| Some(there) != own.as_ref()) else { return };
        let all = std::fs::read_dir("/proc").expect("there is a /proc").flatten();
        let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let beside = all.filter(|process| host(*process).as_ref() == Some(&there));
        beside.for_each(|process| signal(process as libc::pid_t, number));
    }

    /// Waits until the watchers have met.
    fn wait_for_watchers(&self) {
        let end = Instant::now() + PATIENCE;
        let is_there = |host: &str| self.out.join(".watch").join(host).exists();
        while !(is_there("gca.json") && is_there("gcb.json")) {
            assert!(Instant::now() < end, "the watchers do not meet");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_secs(2));
    }

    /// A process on the second host.
    fn on_second_host(&self) -> Option<u32> {
        let rank = RankFile::open(&self.out.join(rank_file_path(0, 2)));
        rank.ok().map(|file| file.fixed.pid)
    }
}

impl Drop for TwoHosts {
    fn drop(&mut self) {
        self.on_second_host().iter().for_each(|of| Self::signal_beside(*of, libc::SIGKILL));
        Self::signal_beside(self.job.id(), libc::SIGKILL);
        let _ = self.job.wait();
    }
}

#[test]
fn watchers_of_two_hosts_keep_one_snapshot() {
    let folder = TempDir::new();
    let out = folder.join("run");
    let Some(_job) = TwoHosts::start(&out, "never_reaches_barrier") else { return };
    let described = Watcher::wait_for(&out, 1);
    assert_eq!(reason(&described), ("outside", Some(3)), "{described}");
    let report = json(&["report", "--json", text(&out.join("flight-001"))]);
    let ranks = report["unfinished"]["ranks"].as_array().expect("ranks");
    let states: Vec<&str> = ranks.iter().filter_map(|of| of["process"].as_str()).collect();
    assert!(states.len() == 4 && !states.contains(&"unknown"), "{states:?}");
    let innermost = &ranks[3]["threads"][0]["stack"]["functions"][0]["function"];
    assert_eq!(innermost, "main", "{}", ranks[3]);
    std::thread::sleep(Duration::from_secs(2));
    assert!(!out.join("flight-002").exists(), "it is one of both hosts");
}

#[test]
fn host_that_vanishes_is_named() {
    let folder = TempDir::new();
    let out = folder.join("run");
    let Some(job) = TwoHosts::start(&out, "is_slow_once") else { return };
    job.wait_for_watchers();
    TwoHosts::signal_beside(job.on_second_host().expect("it has begun"), libc::SIGSTOP);
    let described = Watcher::wait_for(&out, 1);
    assert_eq!(reason(&described), ("vanished", Some(2)), "{described}");
}

/// The launcher kills the ranks of the first host, whose watcher judges.
#[test]
fn rank_that_died_before_those_of_another_host_is_named() {
    let folder = TempDir::new();
    let out = folder.join("run");
    let Some(job) = TwoHosts::start(&out, "is_slow_once") else { return };
    job.wait_for_watchers();
    signal(job.on_second_host().expect("it has begun") as libc::pid_t, libc::SIGKILL);
    let described = Watcher::wait_for(&out, 1);
    assert_eq!(reason(&described), ("dead", Some(2)), "{described}");
    std::thread::sleep(Duration::from_secs(2));
    assert!(!out.join("flight-002").exists(), "it is one of both hosts");
}

#[test]
fn refuses_triggers_that_are_not_understood() {
    for (on, words) in [("often", "possible are"), ("hang=soon", "hang=")] {
        let output = gammachi(&["watch", "run", "--on", on]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
}
