//! Makes one run of a study and keeps the program's output.
//!
//! Each run is a `gammachi run` of its own, so that it is recorded exactly as by hand. A signal
//! that ends the sweep ends the run first. If the sweep dies for whatever reason, the run is ended
//! with it.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, io};

use crate::cli::child_signals::SignalGuard;
use crate::cli::error::{CommandError, Context};
use crate::trace::study_json::{StudyJson, StudyRun};

use super::plan::Plan;

/// Folder for the output of the programs, in the study.
const OUTPUT: &str = "output";
/// Lets Open MPI 4 and 5 start more ranks than there are cores, and wait without keeping one. Other
/// launchers do so anyway.
const OVERSUBSCRIBED: [(&str, &str); 3] = [
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
    ("OMPI_MCA_mpi_yield_when_idle", "1"),
];
/// Maximum number of characters of the output that are quoted as the reason of a failure.
const MAX_QUOTED: usize = 160;

/// How long to wait for a signal to this process when a run has been ended by one: a batch system
/// signals all processes of a job, one after the other.
const SAME_SIGNAL: Duration = Duration::from_millis(500);

/// How a run ended.
pub(super) enum Outcome {
    /// With exit code 0, and ranks were recorded.
    Recorded { duration_s: f64 },
    /// With another exit code, or without a recording.
    Failed { exit_code: Option<i32>, reason: String, duration_s: f64 },
    /// The sweep itself received this signal, which requests termination.
    Interrupted { signal: libc::c_int },
}

impl Outcome {
    pub fn duration_s(&self) -> f64 {
        match self {
            Self::Recorded { duration_s } | Self::Failed { duration_s, .. } => *duration_s,
            Self::Interrupted { .. } => 0.0,
        }
    }
}

pub(super) fn output_file(study: &Path, run: &StudyRun) -> PathBuf {
    let name = run.directory.strip_suffix(".gammachi").unwrap_or(&run.directory);
    study.join(OUTPUT).join(format!("{name}.txt"))
}

/// Makes a run. What an interrupted one left behind is removed first.
pub(super) fn execute(
    plan: &Plan,
    study: &StudyJson,
    at: usize,
    out: &Path,
    signals: &SignalGuard,
) -> Result<Outcome, CommandError> {
    if let Some(signal) = signals.termination_signal(Duration::ZERO) {
        return Ok(Outcome::Interrupted { signal });
    }
    let run = &study.runs[at];
    let directory = out.join(&run.directory);
    if directory.exists() {
        fs::remove_dir_all(&directory).context(CommandError::Output, directory.display())?;
    }
    let output = output_file(out, run);
    fs::create_dir_all(out.join(OUTPUT)).context(CommandError::Output, output.display())?;
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let file = options.open(&output).context(CommandError::Output, output.display())?;
    let started = Instant::now();
    let status = command(plan, study, run, &directory, file)
        .and_then(|mut command| signals.start(&mut command, rustix::process::Signal::TERM))
        .and_then(|mut child| signals.wait(&mut child))
        .context(CommandError::Program, "cannot start gammachi run")?;
    let duration_s = started.elapsed().as_secs_f64();
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    let by_signal = [libc::SIGINT, libc::SIGTERM].iter().any(|signal| code == 128 + signal);
    let patience = if by_signal { SAME_SIGNAL } else { Duration::ZERO };
    if let Some(signal) = signals.termination_signal(patience) {
        // This includes a run that ended well: it may have been cut short.
        let _ = fs::remove_dir_all(&directory);
        return Ok(Outcome::Interrupted { signal });
    }
    if code != 0 {
        let reason = match last_line(&output) {
            Some(line) => format!("exit code {code}: {line}"),
            None => format!("exit code {code}"),
        };
        return Ok(Outcome::Failed { exit_code: Some(code), reason, duration_s });
    }
    match directory.exists() {
        true => Ok(Outcome::Recorded { duration_s }),
        false => {
            let reason = "nothing was recorded".to_owned();
            Ok(Outcome::Failed { exit_code: Some(code), reason, duration_s })
        }
    }
}

fn command(
    plan: &Plan,
    study: &StudyJson,
    run: &StudyRun,
    directory: &Path,
    output: File,
) -> io::Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.arg("run").arg("--out").arg(directory);
    command.args(["--level", &study.level.to_string(), "--compute", &study.compute]);
    for (name, value) in &run.params {
        command.arg("--param").arg(format!("{name}={value}"));
    }
    command.arg("--").args(plan.command(run));
    if run.counts_only {
        command.envs(OVERSUBSCRIBED);
    }
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    Ok(command)
}

/// The last line that is neither empty nor written by gammachi.
fn last_line(output: &Path) -> Option<String> {
    let text = fs::read(output).ok()?;
    let tail = &text[text.len().saturating_sub(4096)..];
    let tail = String::from_utf8_lossy(tail);
    let lines: Vec<&str> = tail
        .lines()
        .map(str::trim)
        .filter(|line| line.chars().any(char::is_alphanumeric))
        .collect();
    let line = lines.iter().rev().find(|line| !line.starts_with("gammachi: "));
    Some(line?.chars().take(MAX_QUOTED).collect())
}
