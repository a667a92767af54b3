//! `gammachi run`: runs a command under the recorder and returns its exit code.
//!
//! The program runs as it would without gammachi. What is recorded goes into a run directory.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{self, ExitStatus};

use clap::Args;
use trace_format::settings::{EVERY_RANK, OUT, RUN_ID, RecordingOptions};

use crate::shell_word::shell_word;
use crate::trace::host_name;
use crate::trace::run_json::{
    Exit, Instant, Params, RunJson, RunState, Termination, relevant_environment,
};

use super::calibrate::kernel_program::KernelMpi;
use super::child_signals::{Request, SignalGuard};
use super::error::{self, CommandError, Context, eprint_message};
use super::flight;
use super::library_path::preloaded;
use super::open_mpi_forwarding::{self, ENV_LIST, ENV_LIST_DELIMITER, Inherited};
use super::program_search::{
    self, CommandParts, base_name, cannot_start, find_executable, split_command,
};
use super::rank_processes::watch_ends;
use super::recordability::{likely_reasons, obstacle};
use super::recorder_environment::{LD_PRELOAD, Variable, forwarded, preload};
use super::recording_options::RecordingArguments;
use super::report::report_after_run;
use super::run_directory::{self, RecordedJob, RunDirectory};

/// Runs a program and records its MPI calls.
///
/// Standard input, output and error, the exit code and signals pass through untouched; messages
/// of gammachi go to standard error. A program killed by signal S gives 128 + S; 127
/// means that the launcher was not found, 126 that it cannot be executed. If recording cannot
/// start, the program runs all the same, and one line says why.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    gammachi run -- mpirun -n 4 ./app input.dat\n  \
    gammachi run --report -- mpirun -n 4 ./app input.dat\n  \
    gammachi run --out N20000.gammachi --param N=20000 --compute blas -- mpirun -n 4 ./xhpl\n\n\
    Ranks on other hosts: the launchers of Open MPI, MPICH and Slurm pass on what is needed. In a \
    batch\nscript, or where a launcher clears the environment, put `gammachi exec --` before the \
    program.")]
pub struct RunArguments {
    #[command(flatten)]
    options: RecordingArguments,

    /// Print the report after the program has ended
    #[arg(long)]
    report: bool,

    /// Launcher and its arguments, as typed without gammachi
    #[arg(required = true, trailing_var_arg = true, value_name = "LAUNCHER ARGS")]
    command: Vec<OsString>,
}

/// Runs the program and returns its exit code.
///
/// # Errors
/// Wrong usage; no recorder; and every exit code of the program except 0, as
/// [`CommandError::Exit`].
pub fn run(arguments: &RunArguments) -> Result<(), CommandError> {
    let words = &arguments.command;
    let mut recording = arguments.options.decide()?;
    let libraries = preloaded(recording.options.io)?;
    let library = &libraries[0];
    let preload = preload(&libraries, env::var_os(LD_PRELOAD).as_deref())?;
    find_executable(&words[0]).map_err(|error| cannot_start(&words[0], &error))?;
    let parts = split_command(words, |word| find_executable(word).is_ok());

    let named_after = parts.program.or(parts.launcher).map_or(&words[0], |at| &words[at]);
    let prepared =
        run_directory::prepare(arguments.options.out.as_deref(), base_name(named_after))?;
    let mut run_json = describe_run(words, parts, library, &recording.options);
    let recorded = prepared.and_then(|directory| match run_json.write(&directory.path) {
        Ok(()) => Ok(directory),
        Err(error) => {
            directory.discard();
            Err(format!("cannot write into {}: {error}", directory.shown.display()))
        }
    });

    match recorded {
        Ok(mut directory) => {
            recording.options.out = Some(directory.path.clone());
            let mut variables = recording.variables();
            variables.push((LD_PRELOAD, preload));
            let id = new_run_id();
            variables.push((RUN_ID.name, id.clone().into()));
            if parts.launcher.is_some() {
                variables.push((EVERY_RANK.name, "1".into()));
            }
            let recorded = (&mut directory, id.as_str());
            let metrics = arguments.options.metrics.as_ref();
            let watcher = recording.watched_for.map(|triggers| {
                flight::watcher(&recorded.0.path, &triggers, metrics, process::id())
            });
            let recorded = (recorded.0, recorded.1, watcher);
            run_recorded(words, parts, variables, recorded, &mut run_json, arguments.report)
        }
        Err(reason) => {
            let what = format!("nothing will be recorded: {reason}; the program runs without it");
            eprint_message(&what);
            let mut command = process::Command::new(&words[0]);
            command.args(&words[1..]).env_remove(OUT.name);
            pass_on(execute(&words[0], &mut command, None, |_| ())?.0.status)
        }
    }
}

fn run_recorded(
    words: &[OsString],
    parts: CommandParts,
    variables: Vec<Variable>,
    (directory, id, watcher): (&mut RunDirectory, &str, Option<process::Command>),
    run_json: &mut RunJson,
    report: bool,
) -> Result<(), CommandError> {
    let forwarded = forwarded(&variables, env::vars_os());
    let (env_list, delimiter) = (env::var_os(ENV_LIST), env::var_os(ENV_LIST_DELIMITER));
    let inherited = Inherited { env_list: env_list.as_deref(), delimiter: delimiter.as_deref() };
    let forwarding =
        open_mpi_forwarding::forward(words, parts.launcher, &forwarded, inherited, |launcher| {
            KernelMpi::of_launcher(launcher) == Some(KernelMpi::OpenMpi)
        });
    let mut command = process::Command::new(&forwarding.words[0]);
    command.args(&forwarding.words[1..]).envs(variables);
    if let Some(list) = forwarding.env_list {
        command.env(ENV_LIST, list);
    }

    let started = std::time::Instant::now();
    let path = directory.path.clone();
    let look = |over: UnixStream| {
        let none_recordable = report_obstacles(words, parts);
        (none_recordable, watch_ends(&path, &over))
    };
    let (ended, (none_recordable, ended_ranks)) = execute(&words[0], &mut command, watcher, look)
        .inspect_err(|_| {
        directory.discard();
    })?;
    let Ended { status, termination } = ended;
    let duration = started.elapsed();

    run_json.state = RunState::Finished;
    run_json.end = Some(Instant::now());
    run_json.duration_s = Some(duration.as_secs_f64());
    run_json.exit = Some(Exit { code: exit_code(status), signal: status.signal() });
    run_json.ended_ranks = ended_ranks;
    run_json.termination = termination.map(|request| Termination {
        signal: request.signal,
        after_s: request.at.saturating_duration_since(started).as_secs_f64(),
        sender: request.sender,
        forwarded: request.forwarded,
    });
    directory.follow();
    let jobs = directory.recorded_jobs(id);
    let launcher = parts.launcher.map(|at| words[at].as_os_str());
    conclude(&jobs, directory, run_json, launcher, || {
        let program = parts.program.and_then(|at| find_executable(&words[at]).ok());
        (!none_recordable).then(|| likely_reasons(words, program.as_deref()))
    });
    // The exit code remains that of the program.
    for job in jobs.iter().filter(|job| report && job.ranks > 0) {
        if let Err(error) = report_after_run(&job.shown) {
            error::report_error(&error);
        }
    }
    pass_on(status)
}

/// Reports which programs of the command cannot be recorded, and why. Returns whether this applies
/// to all of them.
fn report_obstacles(words: &[OsString], parts: CommandParts) -> bool {
    let programs = program_search::programs(words, parts, |word| find_executable(word).is_ok());
    let mut unrecordable = 0;
    for word in &programs {
        if let Some(why) = find_executable(word).ok().and_then(|path| obstacle(&path)) {
            eprint_message(&format!("{} cannot be recorded: {why}", word.to_string_lossy()));
            unrecordable += 1;
        }
    }
    unrecordable > 0 && unrecordable == programs.len()
}

/// 32 random hexadecimal digits, unique to this run.
fn new_run_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
    text.chars().filter(char::is_ascii_hexdigit).collect()
}

/// Completes `run.json` wherever ranks were recorded, and prints the directories.
///
/// `why` is called only if nothing was recorded; it returns `None` if the reason has already been
/// printed.
fn conclude(
    jobs: &[RecordedJob],
    directory: &RunDirectory,
    run_json: &RunJson,
    launcher: Option<&OsStr>,
    why: impl FnOnce() -> Option<String>,
) {
    if jobs.is_empty() {
        let end = if directory.discard() { "removed" } else { "kept" };
        let failed = run_json.exit.filter(|exit| exit.code != 0);
        let failed = failed.map(|exit| format!("the command ended with exit code {}", exit.code));
        let why: Vec<String> = failed.into_iter().chain(why()).collect();
        let why = if why.is_empty() { String::new() } else { format!(": {}", why.join("; ")) };
        eprint_message(&format!("nothing was recorded{why}; {} {end}", directory.shown.display()));
        return;
    }
    let mut run_json = RunJson { jobs: Some(jobs.len()), ..run_json.clone() };
    for job in jobs {
        if job.path != directory.path {
            run_json.ended_ranks.clear();
        }
        if let Err(error) = run_json.write(&job.path) {
            eprint_message(&format!("cannot write run.json in {}: {error}", job.shown.display()));
        }
    }
    let complete = jobs.iter().filter(|job| job.ranks > 0);
    let (words, places): (Vec<String>, Vec<String>) =
        complete.map(|job| (shell_word(&job.shown.to_string_lossy()), describe_job(job))).unzip();
    if let Some(first) = words.first() {
        let places = places.join(", ");
        eprint_message(&format!("run recorded in {places}; see: gammachi report {first}"));
    }
    for (job, place) in jobs.iter().filter_map(|job| Some((job, job.staged.as_ref()?))) {
        let which = if job.ranks > 0 { "others" } else { "the ranks' files" };
        let word = shell_word(&job.shown.to_string_lossy());
        eprint_message(&format!(
            "{}: {which} are still in the staging directories of their hosts, one in {place}; join \
             them: gammachi collect {word} STAGE…",
            job.shown.display()
        ));
    }
    if let [RecordedJob { world_size: Some(1), ranks: 1, .. }] = jobs
        && launcher.is_none()
    {
        let program: Vec<String> = run_json.argv.iter().map(|word| shell_word(word)).collect();
        eprint_message(&format!(
            "one rank, because the command names no launcher; for four ranks: gammachi run -- mpirun -n 4 {}",
            program.join(" ")
        ));
    }
    if let Some(launcher) = launcher
        && jobs.len() > 1
        && jobs.iter().all(|job| job.ranks == 1)
    {
        eprint_message(&format!(
            "each process was an MPI job of its own; if they should be one job, {} belongs to a different MPI from \
             the program's",
            launcher.to_string_lossy()
        ));
    }
}

fn describe_job(job: &RecordedJob) -> String {
    let ranks = if job.ranks == 1 { "1 rank".into() } else { format!("{} ranks", job.ranks) };
    format!("{} ({ranks})", job.shown.display())
}

fn describe_run(
    words: &[OsString],
    parts: CommandParts,
    library: &Path,
    recording: &RecordingOptions,
) -> RunJson {
    let text = |word: &OsStr| word.to_string_lossy().into_owned();
    let program = parts.program.and_then(|at| find_executable(&words[at]).ok());
    let program = program.and_then(|path| std::path::absolute(path).ok());
    let environment = env::vars_os().filter_map(|(name, value)| {
        Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
    });
    RunJson {
        argv: words.iter().map(|word| text(word)).collect(),
        program: program.map(|path| text(path.as_os_str())),
        directory: env::current_dir().map(|path| text(path.as_os_str())).unwrap_or_default(),
        host: host_name(),
        library: text(library.as_os_str()),
        level: recording.level,
        compute: recording.compute.to_string(),
        params: Params(recording.parameters.clone()),
        environment: relevant_environment(environment),
        ..RunJson::begun(Instant::now())
    }
}

/// How a program ended.
struct Ended {
    status: ExitStatus,
    /// Who asked for that.
    termination: Option<Request>,
}

/// Starts a program and waits for it; signals reach it as `child_signals` describes. Meanwhile a
/// thread does `beside`, so that the program need not wait for that; what it gets is closed at the other end when the
/// program is over.
fn execute<T: Send + Default>(
    word: &OsStr,
    command: &mut process::Command,
    watcher: Option<process::Command>,
    beside: impl FnOnce(UnixStream) -> T + Send,
) -> Result<(Ended, T), CommandError> {
    let guard = SignalGuard::new();
    // As if the launcher itself had been killed: MPI's launchers see that their ranks end then.
    let started = guard.start(command, rustix::process::Signal::KILL);
    let mut child = started.map_err(|error| cannot_start(word, &error))?;
    let watcher = watcher.and_then(|mut command| {
        // A signal of the terminal is for the program, whose end it has to notice.
        command.process_group(0);
        let started = guard.start(&mut command, rustix::process::Signal::TERM);
        started
            .inspect_err(|error| eprint_message(&format!("nobody watches this run: {error}")))
            .ok()
    });
    let over = UnixStream::pair();
    // The thread inherits that signals are blocked.
    std::thread::scope(|scope| {
        let (over, beside) = match over {
            Ok((over, seen)) => (Some(over), Some(scope.spawn(move || beside(seen)))),
            Err(_) => (None, None),
        };
        let waited = guard.wait(&mut child);
        drop(over);
        if let Some(mut watcher) = watcher {
            flight::end(&mut watcher);
        }
        let status = waited.context(
            CommandError::Program,
            format_args!("{}: cannot wait for it", word.to_string_lossy()),
        )?;
        let ended = Ended { status, termination: guard.termination() };
        Ok((ended, beside.and_then(|beside| beside.join().ok()).unwrap_or_default()))
    })
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

fn pass_on(status: ExitStatus) -> Result<(), CommandError> {
    match exit_code(status) {
        0 => Ok(()),
        code => Err(CommandError::Exit(code)),
    }
}
