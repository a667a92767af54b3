//! Starts a watcher beside a program that is recorded with `--flight`, and ends it.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::error::eprint_message;
use super::recorder_environment::LD_PRELOAD;
use super::watch_metrics::MetricsPlace;
use super::watch_triggers::Triggers;

/// How long a watcher may take for its last look and snapshot.
const COMPLETES: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(20);

/// Variables that tell a process its number among those of its job on this host.
const LOCAL_RANK: [&str; 4] =
    ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID"];

/// The command that watches a run whose ranks come while a process lives.
pub fn watcher(
    run: &Path,
    triggers: &Triggers,
    metrics: Option<&MetricsPlace>,
    process: u32,
) -> Command {
    let own = env::current_exe().unwrap_or_else(|_| "gammachi".into());
    let mut command = Command::new(own);
    command.arg("watch").arg(run).arg("--on").arg(triggers.to_string());
    if let Some(place) = metrics {
        command.arg("--metrics").arg(place.to_string());
    }
    command.arg("--while").arg(process.to_string());
    command.env_remove(LD_PRELOAD).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Starts a watcher that is nobody's child, so that the program never waits for it. It ends with the ranks.
pub fn start_detached(run: Option<OsString>, triggers: &Triggers, metrics: Option<&MetricsPlace>) {
    let is_first = LOCAL_RANK.iter().find_map(env::var_os).is_none_or(|it| it == "0");
    if !is_first {
        return;
    }
    let Some(run) = run.filter(|run| !run.is_empty()) else {
        eprint_message(
            "nobody watches this run, because its directory is not known before it starts: name one with --out",
        );
        return;
    };
    let process = std::process::id();
    let started = watcher(Path::new(&run), triggers, metrics, process).arg("--detach").status();
    if let Err(error) = started {
        eprint_message(&format!("nobody watches this run: {error}"));
    }
}

/// Ends a watcher whose job is over. It looks once more before.
pub fn end(watcher: &mut Child) {
    let _ = kill_process(Pid::from_child(watcher), Signal::TERM);
    if !has_ended(watcher, COMPLETES) {
        let _ = watcher.kill();
        let _ = watcher.wait();
    }
}

fn has_ended(watcher: &mut Child, patience: Duration) -> bool {
    let end = Instant::now() + patience;
    loop {
        if !matches!(watcher.try_wait(), Ok(None)) {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(STEP);
    }
}
