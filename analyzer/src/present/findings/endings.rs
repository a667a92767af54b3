//! Sentences on a job that did not end well.

use crate::diagnosis::finding::{End, Request};
use crate::metrics::{ThreadPosition, Unfinished, UnfinishedRank};
use crate::plain_text::printable;
use crate::present::code_place::file_and_line;
use crate::present::context::{number_list, plural};
use crate::present::quantity::seconds;
use crate::present::unfinished::{self, call_text};
use crate::trace::run_json::{Exit, Sender, Termination};

/// Signals: number, name, and usual cause.
const SIGNALS: [(u8, &str, &str); 11] = [
    (1, "SIGHUP", "its terminal or session ended"),
    (2, "SIGINT", "Ctrl-C"),
    (4, "SIGILL", "an illegal instruction"),
    (6, "SIGABRT", "abort(), often a failed assertion"),
    (7, "SIGBUS", "a bad memory access"),
    (8, "SIGFPE", "an arithmetic error"),
    (9, "SIGKILL", "killed externally, or out of memory"),
    (11, "SIGSEGV", "an invalid memory access"),
    (15, "SIGTERM", "terminated externally"),
    (24, "SIGXCPU", "its limit on CPU time"),
    (25, "SIGXFSZ", "its limit on file size"),
];

/// How the program ended.
pub(super) fn ended(end: End, after_finalize: bool, or_signal: Option<u8>) -> String {
    let after = match after_finalize {
        true => ", after every rank had finalized MPI",
        false => "",
    };
    match end {
        End::ExitCode { code } => {
            let signal = or_signal.map_or(String::new(), |signal| {
                format!(", which MPICH's launcher also gives for {}", signal_text(signal))
            });
            format!("The program ended with exit code {code}{signal}{after}.")
        }
        End::Signal { signal } => {
            let name = signal_text(signal);
            format!("A process was killed by {name}: the exit code is {}{after}.", signal + 128)
        }
        End::LauncherKilled { signal } => {
            let name = u8::try_from(signal).map_or_else(|_| signal.to_string(), signal_text);
            format!("The launcher was killed by {name}.")
        }
        End::TimedOut => "The run exceeded its time limit: `timeout` ended it.".into(),
    }
}

/// The rank whose process ended by itself: when, whether as the first one, and with which exit code or by which signal.
pub(super) fn died(
    rank: u32,
    (at_s, first): (Option<f64>, bool),
    (code, signal): (Option<u8>, Option<u8>),
    launcher: Option<u8>,
) -> String {
    let verb = if signal.is_some() { "died" } else { "ended" };
    let first = if first { " first," } else { "" };
    let when = at_s.map_or_else(String::new, |at_s| format!("{first} at {}", seconds(at_s)));
    let how = match (code, signal) {
        (_, Some(signal)) => format!(", killed by {}", signal_text(signal)),
        (Some(code), None) => format!(", with exit code {code}"),
        (None, None) => String::new(),
    };
    let finalize = match (at_s, signal) {
        (None, _) => ", after every rank had finalized MPI",
        (Some(_), None) => ", before MPI_Finalize",
        (Some(_), Some(_)) => "",
    };
    let launcher = launcher.map_or_else(String::new, |code| match signal {
        Some(signal) if code == signal || code == signal.saturating_add(128) => {
            format!("; the exit code is {code}")
        }
        _ => format!("; the launcher's exit code is {code}"),
    });
    format!("Rank {rank} {verb}{when}{how}{finalize}{launcher}.")
}

/// Who asked the run to end, and how its command then ended.
pub(super) fn request(of: &Request) -> String {
    let Termination { signal, after_s, sender, forwarded } = &of.received;
    let name = signal_name(*signal);
    let who = match sender {
        None => "the system".to_owned(),
        Some(Sender { pid: 0, .. }) => "a process outside this container".into(),
        Some(Sender { pid, name: Some(name) }) => format!("`{}` (process {pid})", printable(name)),
        Some(Sender { pid, name: None }) => format!("process {pid} (no longer running)"),
    };
    let to = match (sender, *signal) {
        (Some(_), _) => "gammachi run",
        (None, libc::SIGINT) => "the whole job (Ctrl-C)",
        (None, libc::SIGHUP) => "the whole job (its terminal was closed)",
        (None, _) => "the whole job",
    };
    let launcher = printable(&of.launcher);
    let passed_on = match forwarded {
        true => ", which passed it on",
        false => "",
    };
    let later = of.later_s.map_or(String::new(), |later| format!(" {} later", seconds(later)));
    let end = match of.exit {
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

fn signal_text(signal: u8) -> String {
    match SIGNALS.iter().find(|(number, ..)| *number == signal) {
        Some((_, name, meaning)) => format!("{name} (signal {signal}: {meaning})"),
        None => format!("signal {signal}"),
    }
}

/// The first rank that called MPI_Abort, and when, of how many.
pub(super) fn aborted((rank, at_s): (u32, f64), ranks: usize, exit_code: Option<u8>) -> String {
    let code = exit_code.map_or(String::new(), |code| format!("; the exit code is {code}"));
    let others = match ranks {
        1 => String::new(),
        count => format!(" (the first of {count})"),
    };
    format!("Rank {rank} called MPI_Abort at {}{others}, which ended the run{code}.", seconds(at_s))
}

/// The rank that probably crashed, and those that waited for it.
pub(super) fn crashed(rank: u32, waiting: &[u32], unfinished: &Unfinished) -> Option<String> {
    let others = number_list(waiting.iter().copied());
    let ranks = if waiting.len() == 1 { "rank" } else { "ranks" };
    let position = position_text(unfinished.rank(rank)?, unfinished);
    Some(format!("It was probably rank {rank}, {position}: {ranks} {others} waited for it."))
}

/// Where the unfinished ranks are. Names ranks outside MPI first: they are the likelier cause.
pub(super) fn positions(ranks: &[u32], over: bool, unfinished: &Unfinished) -> Option<String> {
    let known: Vec<&UnfinishedRank> =
        ranks.iter().filter_map(|rank| unfinished.rank(*rank)).collect();
    let who = match &known[..] {
        [] => return None,
        [one] => format!("Rank {}", one.rank),
        ranks => {
            let list = number_list(ranks.iter().map(|rank| rank.rank));
            format!("{} ({list})", plural(ranks.len(), "rank"))
        }
    };
    let one = known.len() == 1;
    let (state, is) = match (unfinished.running, over) {
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
        (None, None) => "outside MPI, having made no call".into(),
    }
}
