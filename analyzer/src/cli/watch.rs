//! `gammachi watch`: notices what goes wrong in a running job, and keeps a snapshot of that moment.

use std::env;
use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use rustix::time::ClockId;
use trace_format::settings::byte_size;

use super::batch_limit::before_end;
use super::error::{CommandError, Context, eprint_message};
use super::newest_run::named_or_newest;
use super::watch_metrics::{MetricsPlace, Publisher};
use super::watch_signals::WatchSignals;
use super::watch_triggers::Triggers;
use crate::live::counter::time_by;
use crate::live::{
    Alarm, Alarms, FirstDeath, Hosts, Iterations, LiveRun, Memory, Moment, NotTaken, Others,
    Snapshots, Taken, WaitingAnalysis, first_death,
};
use crate::present::live::{Watched, alarm_text, memory_text, metrics, silent_text, slow_text};
use crate::shell_word::shell_word;
use crate::trace::TraceError;
use crate::trace::snapshot::Reason;

/// Time between two looks at least and at most: between, as long as the looks take this share of the time.
const LOOK: Duration = Duration::from_millis(100);
const RARELY: Duration = Duration::from_secs(1);
const SHARE: f64 = 0.005;
/// Over so many looks their cost is averaged: not all of them ask for the state of processes.
const LOOKS: f64 = 8.0;
/// Ranks of other hosts that began or ended a call so many seconds ago move.
const MOVES_S: f64 = 1.0;
/// Time between two snapshots of slow iterations.
const SLOW_PAUSE: Duration = Duration::from_secs(60);

/// Watches a running job, and keeps a snapshot when something goes wrong.
///
/// Notices processes that die or are stopped, deadlocks, ranks that do not move, and jobs that end before
/// MPI_Finalize; if asked, slow iterations, memory that is used up and the end of a batch job. Of each it prints a line
/// and copies what all ranks have recorded into RUN/flight-001, flight-002 …: run directories like any other. Reads the
/// files that the ranks write; nothing in the ranks takes part, and the job runs on as if nobody watched. Only ranks of
/// this host are followed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gammachi watch hpl-20260131-120000.gammachi --on hang=2m,exit\n  \
                        gammachi watch hpl-20260131-120000.gammachi --now"
)]
pub struct WatchArguments {
    /// Run directory of a job that is running (default: the newest one here)
    #[arg(value_name = "RUN")]
    pub run: Option<PathBuf>,

    /// When to take a snapshot: hang=TIME (a rank dies, is stopped, waits in a deadlock, or none begins or ends a
    /// call for TIME), slow=FACTOR (an iteration takes so many times as long as usual), memory=TIME (ranks grow so
    /// fast that memory is used up in TIME), limit=TIME (before the end of a batch job), exit (the job ends before
    /// MPI_Finalize), signal (this command receives SIGUSR1)
    #[arg(long, value_name = "LIST", default_value = Triggers::USUAL, value_parser = Triggers::parse)]
    pub on: Triggers,

    /// Take a snapshot now, and end
    #[arg(long, conflicts_with = "on")]
    pub now: bool,

    /// Wait for the ranks as long as this process lives
    #[arg(long = "while", value_name = "PID", hide = true, conflicts_with = "now")]
    pub while_process: Option<u32>,

    /// Go on in the background
    #[arg(long, hide = true, requires = "while_process")]
    pub detach: bool,

    /// Publish figures for Prometheus: in a file for node exporter's textfile collector, or on a port of 127.0.0.1;
    /// `,ranks` behind it for figures of each rank instead of sums
    #[arg(long, value_name = "FILE|PORT", conflicts_with = "now")]
    pub metrics: Option<MetricsPlace>,

    /// Snapshots to keep: the first one and the newest
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = most)]
    pub most: usize,

    /// Bytes that all snapshots may take
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = bytes)]
    pub most_bytes: u64,
}

fn most(text: &str) -> Result<usize, String> {
    let valid = |count: &usize| (2..=999).contains(count);
    text.parse().ok().filter(valid).ok_or_else(|| "not a number from 2 to 999".to_owned())
}

fn bytes(text: &str) -> Result<u64, String> {
    byte_size::parse(text)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "not a number of bytes, such as 500M or 2G".to_owned())
}

pub(super) fn watch(arguments: &WatchArguments) -> Result<(), CommandError> {
    if arguments.detach {
        return go_on_in_background();
    }
    let directory = named_or_newest(arguments.run.as_deref())?;
    let limit = arguments.on.limit_s.map(|limit_s| before_end(limit_s, |name| env::var_os(name)));
    let limit = limit.transpose()?;
    let signals = (!arguments.now).then(|| WatchSignals::install(arguments.on.signal));
    let mut run = match (&signals, arguments.while_process) {
        (Some(signals), Some(process)) => match wait_for_ranks(&directory, process, signals) {
            Some(run) => run,
            None => return Ok(()),
        },
        _ => open_soon(&directory)?,
    };
    run.look();
    run.glance();
    let snapshots = Snapshots { most: arguments.most, most_bytes: arguments.most_bytes };
    let Some(signals) = signals else {
        let taken = snapshots.take(&mut run, None, Reason::Asked, None)?;
        eprint_message(&format!("snapshot in {}", see(&taken)));
        return Ok(());
    };
    if run.has_ended() && arguments.while_process.is_none() {
        return Err(CommandError::Input(format!(
            "{}: no rank of this host is running; gammachi report shows what the run did",
            directory.display()
        )));
    }
    let Ok(_only) = only_watcher(&directory) else {
        return match arguments.while_process {
            // `gammachi run` or another rank started one.
            Some(_) => Ok(()),
            None => Err(CommandError::Input(format!(
                "{}: a watcher of this run runs on this host already; gammachi top shows what the ranks do",
                directory.display()
            ))),
        };
    };
    let publisher = arguments.metrics.as_ref().map(Publisher::begin).transpose();
    let publisher = match (publisher, arguments.while_process) {
        (Ok(publisher), _) => publisher,
        (Err(why), None) => return Err(CommandError::Output(why)),
        // The program runs, and is watched all the same.
        (Err(why), Some(_)) => {
            eprint_message(&why);
            None
        }
    };
    run.note_closings_at_once();
    Watcher::new(run, arguments, snapshots, limit, publisher).watch(&signals);
    Ok(())
}

/// Starts this command again, without a terminal and as nobody's child.
fn go_on_in_background() -> Result<(), CommandError> {
    let own = env::current_exe().unwrap_or_else(|_| "gammachi".into());
    let mut command = Command::new(own);
    command.args(env::args_os().skip(1).filter(|word| word != "--detach"));
    // SAFETY: between fork and exec, the closure makes one system call.
    unsafe {
        command.pre_exec(|| rustix::process::setsid().map(drop).map_err(Into::into));
    }
    let started = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    started.map(drop).context(CommandError::Program, "nobody watches this run")
}

/// Opens a run. A rank may be writing the header of its file at this moment.
fn open_soon(directory: &Path) -> Result<LiveRun, CommandError> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let end = Instant::now() + PATIENCE;
    loop {
        match LiveRun::open(directory) {
            Err(TraceError::NoneReadable { first, .. })
                if !first.is_empty() && Instant::now() < end =>
            {
                std::thread::sleep(LOOK);
            }
            opened => return Ok(opened?),
        }
    }
}

/// Waits for the files of the first ranks as long as a process lives.
fn wait_for_ranks(directory: &Path, process: u32, signals: &WatchSignals) -> Option<LiveRun> {
    loop {
        // It has to be gone before nothing is found.
        let lives = is_running(process);
        match LiveRun::open(directory) {
            Ok(run) => return Some(run),
            Err(_) if !lives || signals.asked_to_end() => return None,
            Err(_) => signals.sleep(LOOK),
        }
    }
}

fn is_running(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

/// What the only watcher of a run on this host holds: a name that the kernel frees when it ends.
///
/// # Errors
/// There is another one.
fn only_watcher(directory: &Path) -> io::Result<UnixDatagram> {
    let of = fs::metadata(directory)?;
    let name = format!("gammachi-watch-{:x}-{:x}", of.dev(), of.ino());
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Watches a job until it ends.
struct Watcher {
    run: LiveRun,
    /// CPU time of a look, on average.
    look_costs_s: f64,
    /// A process during which ranks may come.
    while_process: Option<u32>,
    alarms: Alarms,
    /// The watchers of other hosts, if there are ranks on others.
    hosts: Option<Hosts>,
    /// A host that was told to be silent.
    silent: Option<String>,
    /// If slow ones are watched for, or their rate is published.
    iterations: Option<Iterations>,
    /// When there was a snapshot of a slow one.
    slow: Option<Instant>,
    /// Whether it was told that one waited for a core.
    told_of_cores: bool,
    /// If memory is watched, until that was told.
    memory: Option<Memory>,
    /// When the batch job is about to end.
    limit: Option<Instant>,
    triggers: Triggers,
    snapshots: Snapshots,
    analysis: WaitingAnalysis,
    /// Causes that were told.
    told: Vec<Cause>,
    /// When a rank had last moved, by the counter.
    moved: u64,
    /// What prevents snapshots, as it was told.
    prevented: Option<String>,
    watched: Watched,
    publisher: Option<Publisher>,
}

impl Watcher {
    fn new(
        run: LiveRun,
        arguments: &WatchArguments,
        snapshots: Snapshots,
        limit: Option<Instant>,
        publisher: Option<Publisher>,
    ) -> Self {
        let triggers = &arguments.on;
        Self {
            run,
            look_costs_s: 0.0,
            while_process: arguments.while_process,
            alarms: Alarms::after(triggers.hang_s.unwrap_or(f64::INFINITY)),
            hosts: None,
            silent: None,
            iterations: match (triggers.slow, &publisher) {
                (Some(factor), _) => Some(Iterations::slow_at(factor)),
                (None, Some(_)) => Some(Iterations::counted()),
                (None, None) => None,
            },
            slow: None,
            told_of_cores: false,
            memory: triggers.memory_s.map(Memory::used_up_within),
            limit,
            triggers: triggers.clone(),
            snapshots,
            analysis: WaitingAnalysis::new(SHARE),
            told: Vec::new(),
            moved: 0,
            prevented: None,
            watched: Watched::default(),
            publisher,
        }
    }

    /// Watches until no rank runs. If a signal asks this process to end, it looks once more: the job may have ended.
    pub fn watch(&mut self, signals: &WatchSignals) {
        loop {
            let is_last = signals.asked_to_end();
            let begin = time_by(ClockId::ThreadCPUTime);
            self.run.look();
            self.run.glance();
            let cost = time_by(ClockId::ThreadCPUTime).saturating_sub(begin);
            self.look_costs_s += (cost.as_secs_f64() - self.look_costs_s) / LOOKS;
            let pause = Duration::from_secs_f64(self.look_costs_s / SHARE).clamp(LOOK, RARELY);
            let mut moment = Moment::new(&self.run);
            if matches!(self.run.directory.try_exists(), Ok(false)) {
                let gone = self.run.directory.display();
                return eprint_message(&format!(
                    "{gone} is gone: nobody watches this run any more"
                ));
            }
            let others = self.meet_others(&moment);
            // Files of ranks of other hosts may come before those of this one.
            let some_here = self.run.ranks().next().is_some();
            let ended = self.run.has_ended() && (some_here || !self.is_expected());
            let waiting = match ended || self.triggers.hang_s.is_none() {
                true => None,
                false => self.analysis.waiting(&self.run.directory, moment.longest_wait_s()),
            };
            waiting.into_iter().for_each(|waiting| moment.note_waiting(waiting));
            let mut alarms = self.alarms.look_with(&moment, waiting, &others);
            let moves = self.alarms.moved() > self.moved
                || others.still_s.is_some_and(|still_s| still_s < MOVES_S);
            self.moved = self.alarms.moved();
            let is_stopped = |cause: &Cause| alarms.iter().any(|alarm| Cause::of(alarm) == *cause);
            self.told.retain(|cause| match cause.kind {
                Reason::NoProgress => !moves,
                Reason::Stopped => is_stopped(cause),
                _ => true,
            });
            alarms.retain(|alarm| self.triggers.include(alarm.kind));
            self.settle_deaths(&mut alarms);
            alarms.iter().for_each(|alarm| self.tell(alarm, moment.at_s));
            self.look_at_iterations();
            moment.iterations = self.iterations.as_ref().and_then(|of| of.now(&self.run));
            self.look_at_memory();
            if self.limit.take_if(|limit| *limit <= Instant::now()).is_some() {
                self.snapshot(Reason::Limit, None, "the batch job is about to end");
            }
            if ended {
                let died = self.told.iter().any(|cause| cause.kind == Reason::Dead);
                if !self.run.has_finished() && self.triggers.exit && !died {
                    self.tell(&Alarm::new(Reason::Exit, None), moment.at_s);
                }
            }
            self.add_to_snapshot_of_others();
            if ended || is_last {
                self.hosts.iter_mut().for_each(Hosts::end);
                return;
            }
            self.publish(&moment);
            if signals.take_request() {
                self.snapshot(Reason::Signal, None, "SIGUSR1 was received");
            }
            signals.sleep(pause);
        }
    }

    /// Meets the watchers of other hosts, if the run has ranks there. Tells once if one is not heard of any more.
    fn meet_others(&mut self, moment: &Moment) -> Others {
        if self.hosts.is_none() && self.run.elsewhere().next().is_some() {
            self.hosts = Some(Hosts::of(&self.run.directory));
        }
        let Some(hosts) = &mut self.hosts else { return Others::default() };
        let others = hosts.meet(moment);
        let silent = others.silent.as_ref().map(|silent| silent.host.clone());
        if let Some(silent) = others.silent.as_ref().filter(|_| silent != self.silent) {
            let text = silent_text(silent);
            eprint_message(&format!("{text}: it, or its watcher, may have ended"));
        }
        self.silent = silent;
        others
    }

    /// Where ranks of several hosts may have died, finds out with the other watchers which one was the first.
    fn settle_deaths(&mut self, alarms: &mut Vec<Alarm>) {
        let death = Cause { kind: Reason::Dead, rank: None };
        if !self.triggers.include(Reason::Dead) || self.told.contains(&death) {
            return;
        }
        let Some(hosts) = &mut self.hosts else { return };
        let own = alarms.iter().find(|alarm| alarm.kind == Reason::Dead).cloned();
        if own.is_none() && !hosts.have_died() {
            return;
        }
        alarms.retain(|alarm| alarm.kind != Reason::Dead);
        let own_rank = own.as_ref().and_then(|own| own.rank);
        let alarm = match first_death(&mut self.run, hosts, own_rank) {
            FirstDeath::Rank(rank) => match own.filter(|own| own.rank == Some(rank)) {
                Some(own) => own,
                None => Alarm::new(Reason::Dead, Some(rank)),
            },
            FirstDeath::Unsure(unsure) => {
                Alarm { unsure: Some(unsure), ..Alarm::new(Reason::Dead, None) }
            }
            FirstDeath::Told => return self.told.push(death),
            FirstDeath::None => return,
        };
        alarms.insert(0, alarm);
    }

    /// Gives the watcher of another host that keeps a snapshot what the ranks of this host have recorded.
    fn add_to_snapshot_of_others(&mut self) {
        while let Some((request, to)) = self.hosts.as_mut().and_then(Hosts::asked) {
            // What is told there need not be told here.
            let cause = Cause::of(&Alarm::new(request.reason, request.rank));
            if !self.told.contains(&cause) {
                self.told.push(cause);
            }
            // Whoever asked has the rest without it.
            let _ = self.snapshots.take_part(&mut self.run, request.reason, &to);
        }
    }

    /// Tells slow iterations. Those of ranks that waited for a core are no alarm: the host is busy.
    fn look_at_iterations(&mut self) {
        let Some(iterations) = &mut self.iterations else { return };
        let slow = iterations.look(&mut self.run);
        if iterations.is_given_up() {
            if self.triggers.slow.is_some() {
                eprint_message(
                    "slow iterations are not told: the ranks make more calls than can be read",
                );
            }
            self.iterations = None;
        }
        for slow in slow {
            let text = slow_text(&slow);
            let is_alarm = !slow.waited_for_core;
            *self.watched.alarms.entry(Reason::Slow).or_default() += u64::from(is_alarm);
            if slow.waited_for_core {
                if !std::mem::replace(&mut self.told_of_cores, true) {
                    eprint_message(&format!("{text}; such iterations are not told again"));
                }
            } else if self.slow.is_some_and(|at| at.elapsed() < SLOW_PAUSE) {
                eprint_message(&text);
            } else {
                self.snapshot(Reason::Slow, slow.rank, &text);
                self.slow = Some(Instant::now());
            }
        }
    }

    /// Tells once that memory will be used up.
    fn look_at_memory(&mut self) {
        let growth = self.memory.as_mut().and_then(|memory| memory.look(&self.run));
        if let Some(growth) = growth {
            self.memory = None;
            *self.watched.alarms.entry(Reason::Memory).or_default() += 1;
            self.snapshot(Reason::Memory, growth.rank, &memory_text(&growth));
        }
    }

    /// Publishes the figures of a moment, if somebody asked for them.
    fn publish(&mut self, moment: &Moment) {
        let Self { run, watched, publisher: Some(publisher), .. } = self else { return };
        let iterations = moment.iterations.map_or(0, |iterations| iterations.count);
        watched.iterations = watched.iterations.max(iterations);
        publisher.publish(|by_rank| metrics(run, moment, watched, by_rank));
    }

    /// Whether ranks of this host may still come.
    fn is_expected(&self) -> bool {
        self.while_process.is_some_and(is_running)
    }

    /// Tells an alarm and keeps a snapshot, once for each cause.
    fn tell(&mut self, alarm: &Alarm, at_s: f64) {
        let cause = Cause::of(alarm);
        if self.told.contains(&cause) {
            return;
        }
        self.told.push(cause);
        *self.watched.alarms.entry(alarm.kind).or_default() += 1;
        let text = alarm_text(alarm, at_s);
        self.snapshot(alarm.kind, alarm.rank, &text);
    }

    fn snapshot(&mut self, reason: Reason, rank: Option<u32>, text: &str) {
        match self.snapshots.take(&mut self.run, self.hosts.as_mut(), reason, rank) {
            Ok(taken) => {
                self.watched.snapshots += 1;
                let other = (taken.reason, taken.rank) != (reason, rank);
                let found = Alarm::new(taken.reason, taken.rank);
                let found = match other {
                    true => format!(" ({})", alarm_text(&found, 0.0)),
                    false => String::new(),
                };
                eprint_message(&format!("{text}{found}; snapshot in {}", see(&taken)));
            }
            Err(error) => {
                let why = error.to_string();
                // A full disk stays full.
                let known = self.prevented.as_ref() == Some(&why);
                let why = if known { String::new() } else { format!(": {why}") };
                eprint_message(&format!("{text}; no snapshot{why}"));
                self.prevented = Some(error.to_string());
            }
        }
    }
}

/// What alarms have in common that tell the same.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cause {
    kind: Reason,
    rank: Option<u32>,
}

impl Cause {
    fn of(alarm: &Alarm) -> Self {
        let Alarm { kind, rank, .. } = *alarm;
        match kind {
            // One death causes others.
            Reason::Dead => Self { kind, rank: None },
            // Ranks stand still for one reason until one moves; more may be found out about it meanwhile.
            Reason::Deadlock | Reason::Outside | Reason::NoProgress | Reason::Vanished => {
                Self { kind: Reason::NoProgress, rank: None }
            }
            _ => Self { kind, rank },
        }
    }
}

/// A snapshot, and the command that shows it.
fn see(taken: &Taken) -> String {
    let path = taken.path.display().to_string();
    format!("{path}; see: gammachi report {}", shell_word(&path))
}

impl From<NotTaken> for CommandError {
    fn from(error: NotTaken) -> Self {
        match error {
            NotTaken::Write { .. } | NotTaken::TooLong { .. } => Self::Output(error.to_string()),
            NotTaken::Read { .. } | NotTaken::Description(_) => Self::Input(error.to_string()),
        }
    }
}
