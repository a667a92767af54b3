//! Runs a program under an MPI's launcher, bare or recorded.
//!
//! A [`Job`] describes the program and its environment. Running it gives an [`Output`] (what it
//! printed and how it ended) and, if recorded, a [`Recorded`] with the run directory. A job still
//! running after [`DEADLINE`] is killed with all its processes, and the test fails and shows what
//! it printed.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::directories::TempDir;
use crate::library::library_for;
use crate::mpi::Mpi;
use crate::trace::Trace;

/// A job still running after this time hangs and is killed. Ranks that share a busy core take a
/// hundred times as long as on a quiet machine. A victim's own alarm and the recorder's longest
/// deadline are later.
pub const DEADLINE: Duration = Duration::from_secs(240);
/// Variable for a person who runs tests: samples per second of every recorded program. With 499 nothing
/// that other tests check may change.
const SAMPLE_ALL: &str = "SAMPLE_SYSTEM_TESTS";
/// Variable for a person who runs tests: if it is set, every recorded program's calls on files are recorded, too.
const IO_ALL: &str = "IO_SYSTEM_TESTS";
/// Variable for a person who runs tests: if it is set, every recorded program's parallel regions are recorded, too.
const OPENMP_ALL: &str = "OPENMP_SYSTEM_TESTS";
/// Time that a launcher gets, after SIGTERM, to end its ranks.
const GRACE: Duration = Duration::from_secs(3);

/// Ranks that run the same program with the same environment.
#[derive(Debug, Clone)]
struct Part {
    ranks: u32,
    environment: Vec<(String, OsString)>,
    command: Vec<OsString>,
}

/// A program and how to start it.
#[derive(Debug, Clone)]
pub struct Job {
    mpi: Mpi,
    parts: Vec<Part>,
    environment: Vec<(String, OsString)>,
    preloaded_before: Vec<PathBuf>,
    preloaded_after: Vec<PathBuf>,
    launched: bool,
    standard_error: Option<PathBuf>,
    directory: Option<PathBuf>,
    deadline: Duration,
}

impl Job {
    /// One rank of a program.
    pub fn new(mpi: Mpi, program: &Path) -> Self {
        Self {
            mpi,
            parts: vec![Part {
                ranks: 1,
                environment: Vec::new(),
                command: vec![program.as_os_str().to_owned()],
            }],
            environment: Vec::new(),
            preloaded_before: Vec::new(),
            preloaded_after: Vec::new(),
            launched: true,
            standard_error: None,
            directory: None,
            deadline: DEADLINE,
        }
    }

    fn part(&mut self) -> &mut Part {
        self.parts.last_mut().expect("a job has a part")
    }

    /// Number of ranks of the latest part.
    pub fn ranks(mut self, ranks: u32) -> Self {
        self.part().ranks = ranks;
        self
    }

    /// Adds an argument to the latest part.
    pub fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.part().command.push(argument.as_ref().to_owned());
        self
    }

    /// Sets a variable for the ranks of the latest part only.
    pub fn rank_environment(mut self, name: &str, value: &str) -> Self {
        self.part().environment.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a part: more ranks of the same program with the same arguments.
    pub fn and_ranks(mut self, ranks: u32) -> Self {
        let command = self.part().command.clone();
        self.parts.push(Part { ranks, environment: Vec::new(), command });
        self
    }

    /// Sets a variable for the launcher and all ranks.
    pub fn environment(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Is not sampled, even if all jobs are: the test checks how large the rank's file is.
    pub fn without_samples(self) -> Self {
        self.environment(trace_format::settings::SAMPLE.name, "0")
    }

    /// Preloads another library before the recorder.
    pub fn preload_before(mut self, library: &Path) -> Self {
        self.preloaded_before.push(library.to_owned());
        self
    }

    /// Preloads another library after the recorder.
    pub fn preload_after(mut self, library: &Path) -> Self {
        self.preloaded_after.push(library.to_owned());
        self
    }

    /// Starts the program without the launcher.
    pub fn without_launcher(mut self) -> Self {
        self.launched = false;
        self
    }

    /// Sends standard error to this file instead of capturing it.
    pub fn standard_error_to(mut self, path: &Path) -> Self {
        self.standard_error = Some(path.to_owned());
        self
    }

    /// Working directory of the job.
    pub fn in_directory(mut self, path: &Path) -> Self {
        self.directory = Some(path.to_owned());
        self
    }

    /// Sets another time limit than [`DEADLINE`].
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Runs it without the recorder (other preloaded libraries stay).
    pub fn bare(&self) -> Output {
        self.start(None).end()
    }

    /// Records it into a new temporary directory.
    pub fn record(&self) -> Recorded {
        self.start_recording().end()
    }

    /// Records it into a directory that the test chooses.
    pub fn record_to(&self, out: &Path) -> Output {
        self.start(Some(out)).end()
    }

    /// Starts recording into a new temporary directory, for tests that act while the job runs.
    pub fn start_recording(&self) -> Recording {
        let directory = TempDir::new();
        let running = self.start(Some(&directory.join("run")));
        Recording { running, directory, ranks: self.parts.iter().map(|part| part.ranks).sum() }
    }

    fn command(&self) -> Command {
        if !self.launched {
            let part = &self.parts[0];
            let mut words = self.mpi.emulator();
            words.extend(part.command.iter().cloned());
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            command.envs(part.environment.iter().map(|(name, value)| (name, value)));
            return command;
        }
        let mut command = self.mpi.launcher();
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                command.arg(":");
            }
            command.arg("-n").arg(part.ranks.to_string());
            if !part.environment.is_empty() {
                command.arg("env");
                for (name, value) in &part.environment {
                    let mut pair = OsString::from(format!("{name}="));
                    pair.push(value);
                    command.arg(pair);
                }
            }
            command.args(self.mpi.emulator()).args(&part.command);
        }
        command
    }

    fn start(&self, out: Option<&Path>) -> Running {
        let mut command = self.command();
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GAMMACHI_") {
                command.env_remove(name);
            }
        }
        let mut preload = self.preloaded_before.clone();
        if let Some(out) = out {
            preload.push(library_for(self.mpi));
            command.env(trace_format::settings::OUT.name, out);
            if let Some(rate) = std::env::var_os(SAMPLE_ALL) {
                command.env(trace_format::settings::SAMPLE.name, rate);
            }
            if std::env::var_os(OPENMP_ALL).is_some() {
                command.env(trace_format::settings::OPENMP.name, "1");
            }
        }
        let io =
            (out.is_some() && std::env::var_os(IO_ALL).is_some()).then(crate::library::io_library);
        preload.extend(io);
        preload.extend(self.preloaded_after.iter().cloned());
        let preload: Vec<String> = preload.iter().map(|path| path.display().to_string()).collect();
        command
            .env("LD_PRELOAD", preload.join(":"))
            .env("LC_ALL", "C")
            .envs(self.mpi.environment().iter().copied())
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .process_group(0);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        Running::new(command, self.standard_error.as_deref(), self.deadline)
    }
}

/// What a job printed and how it ended.
#[derive(Debug, Clone)]
pub struct Output {
    /// How it was started, for messages.
    pub started_as: String,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Status of the launcher (or of the program without one).
    pub status: ExitStatus,
}

impl Output {
    /// Exit code, or 128 + the signal that ended it, as in a shell.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Fails the test, and shows all output, if the job ended with another code.
    #[track_caller]
    pub fn expect_code(&self, code: i32) -> &Self {
        assert_eq!(self.code(), code, "the exit code\n{self}");
        self
    }

    /// Lines that the recorder wrote to standard error.
    pub fn recorder_lines(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.contains("gammachi:")).collect()
    }

    /// Fails the test unless standard output and exit code equal those of the bare run and the
    /// recorder wrote nothing to standard error.
    #[track_caller]
    pub fn expect_same(&self, bare: &Self) -> &Self {
        assert_eq!(self.stdout, bare.stdout, "standard output\n{self}");
        assert_eq!(self.code(), bare.code(), "the exit code\n{self}");
        assert!(self.recorder_lines().is_empty(), "the recorder printed a message\n{self}");
        self
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { started_as, stdout, stderr, status } = self;
        write!(f, "{started_as}\n{status}\n--- stdout ---\n{stdout}\n--- stderr ---\n{stderr}\n---")
    }
}

/// A running job.
#[derive(Debug)]
struct Running {
    child: Child,
    started_as: String,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    deadline: Duration,
}

/// Reads a pipe to its end in a separate thread.
fn drain(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = pipe {
            let mut piece = [0u8; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut piece) {
                text.extend_from_slice(&piece[..count]);
            }
        }
        let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
    });
    receiver
}

impl Running {
    fn new(mut command: Command, standard_error: Option<&Path>, deadline: Duration) -> Self {
        command.stdout(Stdio::piped());
        match standard_error {
            None => command.stderr(Stdio::piped()),
            Some(path) => {
                let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
                command.stderr(file.expect("the test's file for standard error can be opened"))
            }
        };
        let started_as = format!("{command:?}");
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("{started_as} does not start: {error}"));
        let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
        Self { child, started_as, stdout, stderr, deadline }
    }

    /// Waits for the process; `None` if it is still running after this time.
    fn wait(&mut self, time: Duration) -> Option<ExitStatus> {
        let step = Duration::from_millis(2);
        for _ in 0..time.as_millis() / step.as_millis() {
            if let Some(status) = self.child.try_wait().expect("our own child can be waited for") {
                return Some(status);
            }
            std::thread::sleep(step);
        }
        None
    }

    fn signal_group(&self, signal: libc::c_int) {
        // SAFETY: plain numbers; the group is that of our own child, which was not yet reaped.
        unsafe { libc::kill(-(self.child.id() as libc::pid_t), signal) };
    }

    fn end(mut self) -> Output {
        let ended = self.wait(self.deadline);
        let in_time = ended.is_some();
        let status = ended.unwrap_or_else(|| {
            self.signal_group(libc::SIGTERM);
            self.wait(GRACE).unwrap_or_else(|| {
                self.signal_group(libc::SIGKILL);
                self.child.wait().expect("our own child can be waited for")
            })
        });
        // A process that outlives the launcher may hold the pipe open: do not wait for it forever.
        let text = |pipe: &Receiver<String>| pipe.recv_timeout(GRACE).unwrap_or_default();
        let (stdout, stderr) = (text(&self.stdout), text(&self.stderr));
        let output = Output { started_as: self.started_as, stdout, stderr, status };
        assert!(in_time, "the job did not end in {} s\n{output}", self.deadline.as_secs());
        output
    }
}

/// A job that is being recorded.
#[derive(Debug)]
pub struct Recording {
    running: Running,
    directory: TempDir,
    ranks: u32,
}

impl Recording {
    /// Reads the trace repeatedly while the job runs, until `found` returns a value.
    ///
    /// # Panics
    /// If that does not happen before [`DEADLINE`].
    pub fn wait_for<T>(&mut self, mut found: impl FnMut(&Trace) -> Option<T>) -> T {
        let step = Duration::from_millis(10);
        for _ in 0..DEADLINE.as_millis() / step.as_millis() {
            let trace = Trace::open_unfinished(&self.directory.join("run"), self.ranks);
            if let Some(value) = trace.as_ref().and_then(&mut found) {
                return value;
            }
            std::thread::sleep(step);
        }
        self.running.signal_group(libc::SIGKILL);
        panic!("the event that the test waits for does not happen\n{}", self.running.started_as);
    }

    /// The run directory.
    pub fn directory(&self) -> PathBuf {
        self.directory.join("run")
    }

    /// A path beside the run directory, for files that the program writes itself.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Sends the launcher a signal.
    pub fn signal_launcher(&self, signal: libc::c_int) {
        // SAFETY: plain numbers; the process is our own child, which was not yet reaped.
        unsafe { libc::kill(self.running.child.id() as libc::pid_t, signal) };
    }

    /// Sends launcher and ranks a signal, as a batch system does at a job's time limit.
    pub fn signal_all(&self, signal: libc::c_int) {
        self.running.signal_group(signal);
    }

    /// Waits for the end.
    pub fn end(self) -> Recorded {
        let Self { running, directory, ranks } = self;
        Recorded { output: running.end(), directory, ranks }
    }
}

/// A recorded job that has ended.
#[derive(Debug)]
pub struct Recorded {
    /// What it printed and how it ended.
    pub output: Output,
    directory: TempDir,
    ranks: u32,
}

impl Recorded {
    /// The run directory, as set in `GAMMACHI_OUT`.
    pub fn directory(&self) -> PathBuf {
        self.directory.join("run")
    }

    /// The trace of all ranks.
    ///
    /// # Panics
    /// If it is missing or unsound: see [`Trace::open`].
    #[track_caller]
    pub fn trace(&self) -> Trace {
        Trace::open(&self.directory(), self.ranks)
            .unwrap_or_else(|error| panic!("{error}\n{}", self.output))
    }

    /// As [`Output::expect_code`].
    #[track_caller]
    pub fn expect_code(&self, code: i32) -> &Self {
        self.output.expect_code(code);
        self
    }
}
