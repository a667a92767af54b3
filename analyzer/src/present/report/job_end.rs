//! Sentences about a job that did not end well, from the launcher's exit code and the ranks' positions.

use std::path::Path;

use crate::metrics::{CauseKind, ThreadPosition, Unfinished, UnfinishedRank, WaitsFor};
use crate::plain_text::printable;
use crate::trace::ProcessState;
use crate::trace::run_json::{Exit, RunJson, Sender, Termination};

use crate::present::Report;
use crate::present::code_place::file_and_line;
use crate::present::context::{number_list, plural};
use crate::present::quantity::seconds;
use crate::present::unfinished::{self, call_text};

/// Signals: number, name, and usual cause.
const SIGNALS: [(u8, &str, &str); 11] = [
    (1, "SIGHUP", "its terminal or session ended"),
    (2, "SIGINT", "Ctrl-C"),
    (4, "SIGILL", "an illegal instruction"),
    (6, "SIGABRT", "abort(), often a failed assertion"),
    (7, "SIGBUS", "a bad memory access"),
    (8, "SIGFPE", "an arithmetic error"),
    (9, "SIGKILL", "killed from outside, or for want of memory"),
    (11, "SIGSEGV", "an invalid memory access"),
    (15, "SIGTERM", "ended from outside"),
    (24, "SIGXCPU", "its limit on CPU time"),
    (25, "SIGXFSZ", "its limit on file size"),
];

/// Signals caused by a fault of the process itself.
const CRASH_SIGNALS: [u8; 6] = [4, 6, 7, 8, 11, 5];

const SIGKILL: u8 = 9;

/// Exit code of `timeout` after it ended its command.
const TIMED_OUT: u8 = 124;

/// How the job ended, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Normally, or in an unknown way.
    Normal,
    /// A process exited with this code.
    ExitCode(u8),
    /// A process was killed by this signal.
    Signal(u8),
    /// The launcher was killed by this signal.
    LauncherKilled(i32),
    /// `timeout` ended the job.
    TimedOut,
}

/// The verdict's sentences on the job's end: those before the sentences on who waits for whom, and those after
/// them.
#[derive(Debug, Default)]
pub(super) struct JobEnd {
    pub first: Vec<String>,
    pub later: Vec<String>,
    /// Whether they say which rank the others waited for.
    pub names_culprit: bool,
}

impl JobEnd {
    pub fn new(report: &Report) -> Self {
        let mut this = Self::default();
        let unfinished = report.metrics.unfinished.as_ref();
        let description = report.run.description.as_ref();
        let exit = description.and_then(|description| description.exit);
        let end = exit.map_or(End::Normal, |exit| End::of(exit, report));
        let asked = description.and_then(|run| Some((run.termination.as_ref()?, run)));
        let asked = asked.map(|(termination, run)| request(termination, run));
        if let Some(aborts) = unfinished.and_then(|unfinished| aborts(unfinished, exit)) {
            this.first.extend(asked);
            this.first.push(aborts);
            return this;
        }
        let crashed = matches!(end, End::Signal(signal) if CRASH_SIGNALS.contains(&signal));
        let deadlock = unfinished.is_some_and(|u| u.deadlocks.iter().any(|d| d.certain));
        let ended_early = crashed || matches!(end, End::ExitCode(_));
        let ended_early = ended_early || asked.is_some() && !has_finished(report);
        let is_cause = ended_early && !deadlock;
        let known = unfinished.filter(|_| !deadlock);
        let culprit = known.filter(|_| crashed).and_then(crashed_rank);
        this.names_culprit = culprit.is_some();
        let positions = culprit.or_else(|| known.and_then(|u| positions(report, u)));
        let sentences = [asked.or_else(|| end.sentence(report)), positions];
        let sentences_of_end = if is_cause { &mut this.first } else { &mut this.later };
        sentences_of_end.extend(sentences.into_iter().flatten());
        this
    }
}

impl End {
    fn of(exit: Exit, report: &Report) -> Self {
        let description = report.run.description.as_ref();
        let timeout = description
            .and_then(|description| description.argv.first())
            .is_some_and(|word| Path::new(word).file_name().is_some_and(|name| name == "timeout"));
        match (exit.signal, exit.code) {
            (Some(signal), _) => Self::LauncherKilled(signal),
            (None, 0) => Self::Normal,
            (None, TIMED_OUT) if timeout => Self::TimedOut,
            (None, code @ 129..=192) => Self::Signal(code - 128),
            (None, code) => Self::ExitCode(code),
        }
    }

    fn sentence(self, report: &Report) -> Option<String> {
        let finished = has_finished(report);
        let after = match finished {
            true => ", after every rank had finalized MPI",
            false => "",
        };
        match self {
            Self::Normal => None,
            Self::ExitCode(code) => {
                let signal = bare_signal(code).filter(|_| !finished && is_mpich(report));
                let signal = signal.map_or(String::new(), |signal| {
                    format!(", which MPICH's launcher also gives for {}", signal_text(signal))
                });
                Some(format!("The program ended with exit code {code}{signal}{after}."))
            }
            Self::Signal(signal) => {
                let name = signal_text(signal);
                Some(format!(
                    "A process was killed by {name}: the exit code is {}{after}.",
                    signal + 128
                ))
            }
            Self::LauncherKilled(signal) => {
                let name = u8::try_from(signal).map_or_else(|_| signal.to_string(), signal_text);
                Some(format!("The launcher was killed by {name}."))
            }
            Self::TimedOut => Some("The run took too long: `timeout` ended it.".into()),
        }
    }
}

/// A sentence on who asked `gammachi run` to end, and how its command then ended.
fn request(termination: &Termination, run: &RunJson) -> String {
    let Termination { signal, after_s, sender, forwarded } = termination;
    let name = signal_name(*signal);
    let who = match sender {
        None => "the system".to_owned(),
        Some(Sender { pid: 0, .. }) => "a process outside this container".into(),
        Some(Sender { pid, name: Some(name) }) => format!("`{}` (process {pid})", printable(name)),
        Some(Sender { pid, name: None }) => format!("process {pid} (gone by now)"),
    };
    let to = match (sender, *signal) {
        (Some(_), _) => "gammachi run",
        (None, libc::SIGINT) => "the whole job (Ctrl-C)",
        (None, libc::SIGHUP) => "the whole job (its terminal was closed)",
        (None, _) => "the whole job",
    };
    let launcher = run.argv.first().map_or("", String::as_str);
    let launcher = Path::new(launcher).file_name().unwrap_or_default().to_string_lossy();
    let launcher = printable(&launcher);
    let passed_on = match forwarded {
        true => ", which passed it on",
        false => "",
    };
    // How much later it ended tells whether the signal was the reason.
    let later = run.duration_s.map(|duration_s| (duration_s - after_s).max(0.0));
    let later = later.map_or(String::new(), |later| format!(" {} later", seconds(later)));
    let end = match run.exit {
        None => String::new(),
        Some(Exit { signal: Some(signal), .. }) => {
            format!("; `{launcher}` was killed{later} by {}", signal_name(signal))
        }
        Some(Exit { code, signal: None }) => {
            format!("; `{launcher}` ended{later} with exit code {code}")
        }
    };
    format!("After {}, {who} sent {name} to {to}{passed_on}{end}.", seconds(*after_s))
}

fn signal_name(signal: i32) -> String {
    let known = SIGNALS.iter().find(|(number, ..)| i32::from(*number) == signal);
    known.map_or_else(|| format!("signal {signal}"), |(_, name, _)| (*name).to_owned())
}

/// Whether every rank finalized MPI.
fn has_finished(report: &Report) -> bool {
    report.metrics.unfinished.is_none() && report.run.missing.is_empty()
}

/// The signal of a crash that an exit code may stand for: MPICH's launcher gives the bare number.
fn bare_signal(code: u8) -> Option<u8> {
    (code == SIGKILL || CRASH_SIGNALS.contains(&code)).then_some(code)
}

fn is_mpich(report: &Report) -> bool {
    report.run.ranks.first().is_some_and(|rank| rank.file.header.mpi_family == "mpich")
}

fn signal_text(signal: u8) -> String {
    match SIGNALS.iter().find(|(number, ..)| *number == signal) {
        Some((_, name, meaning)) => format!("{name} (signal {signal}: {meaning})"),
        None => format!("signal {signal}"),
    }
}

/// A sentence on the ranks that called MPI_Abort.
fn aborts(unfinished: &Unfinished, exit: Option<Exit>) -> Option<String> {
    let since = |rank: &UnfinishedRank| {
        let aborting = |thread: &&ThreadPosition| thread.waits_for == Some(WaitsFor::Aborts);
        let call = rank.threads.iter().find(aborting)?.last_calls.last()?;
        Some((call.begin_s, rank.rank))
    };
    let all: Vec<(f64, u32)> = unfinished.ranks.iter().filter_map(since).collect();
    let (first_s, first) = all.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let code = exit.filter(|exit| exit.code != 0 && exit.signal.is_none());
    let code = code.map_or(String::new(), |exit| format!("; the exit code is {}", exit.code));
    let others = match all.len() {
        1 => String::new(),
        count => format!(" (the first of {count})"),
    };
    Some(format!(
        "Rank {first} called MPI_Abort at {}{others}: it ended the run{code}.",
        seconds(first_s)
    ))
}

/// A sentence on the rank that probably crashed: the only one outside MPI, for which others waited.
fn crashed_rank(unfinished: &Unfinished) -> Option<String> {
    let mut outside = unfinished.causes.iter().filter(|cause| cause.kind == CauseKind::OutsideMpi);
    let (cause, None) = (outside.next()?, outside.next()) else { return None };
    let others = number_list(cause.waiting.0.iter().copied());
    let ranks = if cause.waiting.0.len() == 1 { "rank" } else { "ranks" };
    let position = position_text(unfinished.rank(cause.rank)?, unfinished);
    Some(format!(
        "It was probably rank {}, {position}: {ranks} {others} waited for it.",
        cause.rank
    ))
}

/// Whether the job is known to be over.
fn is_over(report: &Report, unfinished: &Unfinished) -> bool {
    let ended =
        report.run.description.as_ref().is_some_and(|description| description.end.is_some());
    let gone = unfinished.ranks.iter().all(|rank| rank.process == ProcessState::Gone);
    !unfinished.running && (ended || gone)
}

/// A sentence on the positions of the unfinished ranks. Names ranks outside MPI first: they are the likelier cause.
fn positions(report: &Report, unfinished: &Unfinished) -> Option<String> {
    let known: Vec<&UnfinishedRank> = unfinished.ranks.iter().filter(|rank| rank.known).collect();
    let who = match &known[..] {
        [] => return None,
        [one] => format!("Rank {}", one.rank),
        ranks => {
            let list = number_list(ranks.iter().map(|rank| rank.rank));
            format!("{} ({list})", plural(ranks.len(), "rank"))
        }
    };
    let one = known.len() == 1;
    let (state, is) = match (unfinished.running, is_over(report, unfinished)) {
        (true, _) if one => ("has not finished", "is"),
        (true, _) => ("have not finished", "is"),
        (false, true) => ("ended before MPI_Finalize", "was"),
        (false, false) => ("never returned from MPI_Finalize (died, or still running)", "was"),
    };
    let position_text = |rank: &UnfinishedRank| position_text(rank, unfinished);
    if let [one] = known[..] {
        return Some(format!("{who} {state}: it {is} {}.", position_text(one)));
    }
    let since = |rank: &UnfinishedRank| {
        let inside = rank.position().and_then(ThreadPosition::inside);
        inside.map_or(f64::INFINITY, |call| call.begin_s)
    };
    let (inside, outside): (Vec<_>, Vec<_>) =
        known.into_iter().partition(|rank| since(rank).is_finite());
    let first = outside.iter().min_by(|a, b| a.last_stamp_s.total_cmp(&b.last_stamp_s));
    let longest = inside.iter().min_by(|a, b| since(a).total_cmp(&since(b)));
    let part = |rank: &UnfinishedRank, others: String| {
        format!("rank {} {is} {}{others}", rank.rank, position_text(rank))
    };
    let first = first.map(|rank| {
        part(
            rank,
            match outside.len() {
                1 => String::new(),
                count => format!(", first of the {count} outside"),
            },
        )
    });
    let longest = longest.map(|rank| {
        part(
            rank,
            match inside.len() {
                1 => String::new(),
                count => format!(", longest of the {count} inside MPI"),
            },
        )
    });
    let parts: Vec<String> = first.into_iter().chain(longest).collect();
    Some(format!("{who} {state}: {}.", parts.join("; ")))
}

/// A rank's position, worded to follow "is" or "was".
fn position_text(rank: &UnfinishedRank, unfinished: &Unfinished) -> String {
    let position = rank.position();
    match (position.and_then(ThreadPosition::inside), position.and_then(|p| p.last_calls.last())) {
        (Some(call), _) => {
            let lasted = unfinished::lasted(unfinished, call.begin_s);
            format!("inside {} for {lasted}", printable(&call_text(call)))
        }
        (None, Some(last)) => {
            let line = position.and_then(|position| file_and_line(&position.place));
            let line = line.map_or(String::new(), |line| format!(" ({line})"));
            format!(
                "outside MPI, after {} at {}",
                printable(&(call_text(last) + &line)),
                seconds(last.end_s.unwrap_or(last.begin_s))
            )
        }
        (None, None) => "outside MPI, without a call".into(),
    }
}
