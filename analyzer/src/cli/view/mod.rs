//! `gammachi view`: serves the timeline of a run to a browser on this machine until the command is
//! ended, or draws it once.

mod arguments;
mod picture;
mod questions;
mod redirect;
pub(super) mod server;
mod still;

use std::collections::HashMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::causes::MAX_CALLS_FOR_SUMMARY;
use crate::metrics::activity::index::{ActivityIndex, IndexReader};
use crate::metrics::activity::index_file::{self, INDEX_FILE, StoredIndex, Unusable};
use crate::present::html::view::{Communication, View};
use crate::present::quantity;
use crate::processes::Processes;
use crate::shell_word::shell_word;
use crate::timeline::GlobalTimeline;
use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::matching::checkpoints::CheckpointedMatching;
use crate::timeline::matching::{self, CollectiveInstance, MatchFinding, MatchSink, Message};
use crate::trace::{Run, host_name};

use self::questions::Questions;
use self::server::{Answer, Loopback, random_token};
use super::error::{CommandError, Context, eprint_message, print};
use super::newest_run::named_or_newest;
use super::several_processes::agreed;

pub(super) use arguments::ViewArguments;

/// Maximum number of events that are read for the messages of a stretch that has not been matched
/// yet.
const MAX_EVENTS: u64 = 400_000;
/// Answers that are made at the same time.
const MAX_ANSWERS: usize = 4;
/// Maximum number of messages kept for a stretch.
const MAX_MESSAGES: usize = 20_000;

/// Tells the user what to do with the address.
fn instructions(is_opened: bool, port: u16) -> String {
    let ssh = std::env::var("SSH_CONNECTION").ok().filter(|words| !words.is_empty());
    let what = match ssh {
        // Address and port of the client, then of the server.
        Some(words) => {
            let host = words.split(' ').nth(2).map_or_else(host_name, str::to_owned);
            let user =
                std::env::var("USER").map_or_else(|_| String::new(), |user| format!("{user}@"));
            let login = shell_word(&format!("{user}{host}"));
            format!(
                "on your own machine run ssh -N -L {port}:127.0.0.1:{port} {login} and open the address there"
            )
        }
        None if is_opened => "your browser opens it".to_owned(),
        None => "open this address in a browser on this machine".to_owned(),
    };
    format!("{what}; Ctrl-C ends it")
}

pub(super) fn view(arguments: &ViewArguments) -> Result<(), CommandError> {
    match (&arguments.svg, arguments.text) {
        (Some(file), _) => still::svg(arguments, file),
        (None, true) => still::text(arguments),
        (None, false) => serve(arguments),
    }
}

fn serve(arguments: &ViewArguments) -> Result<(), CommandError> {
    let started = Instant::now();
    let directory = named_or_newest(arguments.run.as_deref())?;
    let mut opened = OpenedRun::new(&directory, true)?;
    if arguments.index_only {
        return Ok(());
    }
    if !opened.has_time() {
        return Err(CommandError::Input(format!(
            "{}: there is no time to show: no rank did anything between MPI_Init and its end",
            directory.display()
        )));
    }
    let server = Loopback::new(arguments.port)
        .context(CommandError::Output, format_args!("127.0.0.1:{}", arguments.port))?;
    let address = server.address();
    print(&format!("{address}\n"))?;
    if std::io::stderr().is_terminal() {
        let elapsed = quantity::seconds(started.elapsed().as_secs_f64());
        eprint_message(&format!("ready after {elapsed}"));
    }
    let redirect = if arguments.no_open { None } else { redirect::open_browser(&address) };
    eprint_message(&instructions(redirect.is_some(), server.port()));
    let questions = Questions::default();
    let answer = |path: &str, query: &str| {
        // Only a browser that was redirected to the page asks for more than the page.
        if let (Some(redirect), false) = (&redirect, path.is_empty()) {
            redirect.remove();
        }
        questions.ask(path, query)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| server.serve(&answer));
        if let Some(redirect) = &redirect {
            scope.spawn(|| {
                std::thread::sleep(redirect::PATIENCE);
                redirect.remove();
            });
        }
        loop {
            opened.answer(&questions);
            // If it cannot be read now, the page stays as it is.
            match OpenedRun::new(&directory, false) {
                Ok(again) if again.has_time() => opened = again,
                _ => opened.opened = Instant::now(),
            }
        }
    })
}

/// A run that was opened to be viewed.
struct OpenedRun {
    run: Run,
    timeline: GlobalTimeline,
    index: ActivityIndex,
    /// Of a run that goes on: how often it may be opened again.
    every: Option<Duration>,
    opened: Instant,
}

/// Opening a run that goes on again and again takes at most one part in so many of the time, and happens at most every
/// few seconds.
const OPENING_SHARE: u32 = 20;
const OPENED_AGAIN: Duration = Duration::from_secs(5);

impl OpenedRun {
    /// Opens a run, and says what somebody should know of it if it is for the first time.
    fn new(directory: &Path, is_first: bool) -> Result<Self, CommandError> {
        let begun = Instant::now();
        let kept = StoredIndex::read(directory);
        let extents = kept.as_ref().map(StoredIndex::extents).unwrap_or_default();
        let known = |name: &Path| extents.get(name).cloned();
        let may_last = matches!(kept, Err(Unusable::Absent | Unusable::Stale(_)));
        if may_last && is_first && std::io::stderr().is_terminal() {
            eprint_message("reading the trace");
        }
        let run = Run::open_with_extents(directory, &known)?;
        let timeline = GlobalTimeline::new(&run);
        let index = match kept {
            Ok(kept) if kept.matches(&run) => kept.index,
            other => {
                if let Err(Unusable::Stale(why)) = &other {
                    eprint_message(&format!("{INDEX_FILE} is built again: {why}"));
                }
                make_index(&run, &timeline, is_first)
            }
        };
        if is_first {
            run.diagnoses.iter().for_each(|diagnosis| eprint_message(&format!("{diagnosis}")));
        }
        // A snapshot says how its processes were.
        let is_snapshot = run.description.as_ref().is_some_and(|run| run.snapshot.is_some());
        let goes_on = !is_snapshot && run.ranks.iter().any(|rank| rank.process.runs());
        let every = goes_on.then(|| (begun.elapsed() * OPENING_SHARE).max(OPENED_AGAIN));
        Ok(Self { run, timeline, index, every, opened: Instant::now() })
    }

    /// Whether there is something to show.
    fn has_time(&self) -> bool {
        let ends = self.timeline.ranks.iter().map(|rank| rank.end_s());
        !self.index.rows.is_empty() && ends.fold(0.0, f64::max) > 0.0
    }

    /// Answers requests until the page of a run that goes on is asked for again.
    fn answer(&self, questions: &Questions) {
        let Self { run, timeline, index, .. } = self;
        let communicators = CommunicatorTable::new(run);
        let mut view = View::new(IndexReader { run, timeline, index }, &communicators);
        if let Some(every) = self.every {
            view.follow(every);
        }
        let replay = matching::is_possible(run)
            .then(|| CheckpointedMatching::new(run, timeline, &communicators));
        let stop = AtomicBool::new(false);
        let work = || {
            while let Some(question) = questions.next(&stop) {
                if question.path.is_empty() && self.is_old() {
                    questions.put_back(question);
                    stop.store(true, Ordering::Relaxed);
                    return;
                }
                question.reply(answer(&view, replay.as_ref(), &question.path, &question.query));
            }
        };
        std::thread::scope(|scope| {
            (0..MAX_ANSWERS).for_each(|_| drop(scope.spawn(work)));
            if let Some(replay) = &replay {
                replay.scan(&stop);
            }
        });
    }

    /// Whether more may have happened since.
    fn is_old(&self) -> bool {
        // The page asks a little earlier or later than it should.
        self.every.is_some_and(|every| self.opened.elapsed() >= every / 2)
    }
}

/// Builds the index with a progress bar, and keeps it if possible.
fn make_index(run: &Run, timeline: &GlobalTimeline, is_first: bool) -> ActivityIndex {
    let started = Instant::now();
    let done = Arc::new(AtomicU64::new(0));
    let events: u64 = run.ranks.iter().flat_map(|rank| &rank.threads).map(|t| t.calls).sum();
    let bar = match std::io::stderr().is_terminal() {
        true => {
            let style = ProgressStyle::with_template("index {bar:30} {percent} %, {eta} left");
            ProgressBar::new(events)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        }
        false => ProgressBar::hidden(),
    };
    let (counted, finished) = (done.clone(), Arc::new(AtomicBool::new(false)));
    let (shown, ended) = (bar.clone(), finished.clone());
    let ticking = std::thread::spawn(move || {
        while !ended.load(Ordering::Relaxed) {
            shown.set_position(counted.load(Ordering::Relaxed));
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let index = ActivityIndex::new(run, timeline, &done);
    finished.store(true, Ordering::Relaxed);
    let _ = ticking.join();
    bar.finish_and_clear();
    let running = run.ranks.iter().filter(|rank| rank.process.runs()).count();
    if running > 0 {
        if !is_first {
            return index;
        }
        eprint_message(&format!(
            "{running} ranks are still running: only what they have done so far is shown, and the page follows them; no index is kept"
        ));
        return index;
    }
    if let Err(error) = run.check_readable() {
        eprint_message(&error.to_string());
        return index;
    }
    let read = done.load(Ordering::Relaxed);
    if let Err(error) = keep(run, &index, (read, started)) {
        eprint_message(&format!(
            "the index cannot be kept beside the trace ({error}) and will be built again next time"
        ));
    }
    index
}

/// Keeps an index beside its trace, and says so.
fn keep(run: &Run, index: &ActivityIndex, (read, started): (u64, Instant)) -> std::io::Result<()> {
    let bytes = index_file::store(run, index)?;
    eprint_message(&format!(
        "index of {} events in {}: {}B in {}",
        quantity::count(read),
        quantity::seconds(started.elapsed().as_secs_f64()),
        quantity::with_prefix(bytes as f64),
        run.directory.join(INDEX_FILE).display()
    ));
    Ok(())
}

/// Builds the index of `gammachi view`, and keeps it beside the trace.
///
/// As `gammachi view RUN --index-only`.
#[derive(Debug, Args)]
pub struct IndexArguments {
    /// Run directory printed by `gammachi run` (default: the newest one here)
    #[arg(value_name = "RUN")]
    pub run: Option<PathBuf>,
}

/// Builds and keeps the index in several processes that all call this: the events are divided among
/// them, and the first writes.
///
/// # Errors
/// Failure, on all processes, if the run cannot be read; on the first, if the index cannot be kept.
pub fn index_in(arguments: &IndexArguments, processes: &Processes) -> Result<(), CommandError> {
    let started = Instant::now();
    let directory = agreed(processes, named_or_newest(arguments.run.as_deref()))?;
    let run = Run::open_in(&directory, processes)?;
    let timeline = GlobalTimeline::new(&run);
    let done = AtomicU64::new(0);
    let index = ActivityIndex::new(&run, &timeline, &done);
    run.check_readable_in_all()?;
    let read = processes.share(done.into_inner()).into_iter().sum();
    if !processes.is_first() {
        return Ok(());
    }
    for diagnosis in &run.diagnoses {
        eprint_message(&format!("{diagnosis}"));
    }
    let path = directory.join(INDEX_FILE);
    keep(&run, &index, (read, started)).map_err(|error| {
        CommandError::Output(format!(
            "{}: {error}; the run directory must be writable",
            path.display()
        ))
    })
}

/// The values of a query: `a=1&b=2`. None of ours needs escapes.
fn values(query: &str) -> HashMap<&str, &str> {
    query.split('&').filter_map(|pair| pair.split_once('=')).collect()
}

fn rows(text: &str) -> Option<std::ops::RangeInclusive<usize>> {
    let (first, last) = text.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some(first..=last)
}

fn answer(
    view: &View,
    replay: Option<&CheckpointedMatching>,
    path: &str,
    query: &str,
) -> Option<Answer> {
    let values = values(query);
    let value = |name: &str| values.get(name).copied();
    let seconds = |name: &str| value(name)?.parse::<f64>().ok().filter(|s| s.is_finite());
    match path {
        "" => {
            let nonce = random_token().ok()?;
            let body = view.page(&nonce).ok()?.into_bytes();
            Some(Answer { media: "text/html; charset=utf-8", body, nonce: Some(nonce) })
        }
        // Asked before the page loads itself again: whether somebody would answer.
        "live" => Some(Answer { media: "text/plain", body: Vec::new(), nonce: None }),
        "shares" => {
            let (level, tile) = (value("level")?.parse().ok()?, value("tile")?.parse().ok()?);
            let body = view.shares(level, tile, rows(value("rows")?)?)?;
            Some(Answer { media: "application/octet-stream", body, nonce: None })
        }
        "calls" => {
            let stretch = (seconds("from")?, seconds("to")?);
            let calls =
                view.calls(stretch, rows(value("rows")?)?, |from_s, to_s| match replay {
                    Some(replay) => meetings(replay, from_s, to_s),
                    None => Communication::default(),
                })?;
            let body = serde_json::to_vec(&calls).ok()?;
            Some(Answer { media: "application/json", body, nonce: None })
        }
        "sums" => {
            let body = view.sums((seconds("from")?, seconds("to")?), rows(value("rows")?)?)?;
            Some(Answer { media: "application/octet-stream", body, nonce: None })
        }
        "parts" => {
            let body = serde_json::to_vec(view.parts(MAX_CALLS_FOR_SUMMARY)?).ok()?;
            Some(Answer { media: "application/json", body, nonce: None })
        }
        "lanes" => {
            let body = serde_json::to_vec(&view.lanes()).ok()?;
            Some(Answer { media: "application/json", body, nonce: None })
        }
        "causes" => {
            let body = serde_json::to_vec(&view.causes(MAX_CALLS_FOR_SUMMARY)).ok()?;
            Some(Answer { media: "application/json", body, nonce: None })
        }
        "samples" => {
            let stretch = (seconds("from")?, seconds("to")?);
            let body = serde_json::to_vec(&view.samples(stretch, MAX_CALLS_FOR_SUMMARY)?).ok()?;
            Some(Answer { media: "application/json", body, nonce: None })
        }
        _ => None,
    }
}

/// Keeps the messages and collective operations of a stretch.
struct StretchSink {
    from_s: f64,
    to_s: f64,
    met: Communication,
    left_out: bool,
}

impl MatchSink for StretchSink {
    fn take(&mut self, finding: &MatchFinding) {
        match finding {
            MatchFinding::Message(message) => self.message(message),
            MatchFinding::Collective(instance) => self.collective(instance),
            _ => {}
        }
    }
}

impl StretchSink {
    fn message(&mut self, message: &Message) {
        let inside = |at: Option<f64>| at.is_some_and(|at| self.from_s <= at && at <= self.to_s);
        let (send, receive) = (&message.send, &message.receive);
        let (sent, received) = (send.end_s.or(Some(send.begin_s)), receive.end_s);
        if !inside(sent) && !inside(received) {
            return;
        }
        match self.met.messages.len() < MAX_MESSAGES {
            true => self.met.messages.push(*message),
            false => self.left_out = true,
        }
    }

    fn collective(&mut self, instance: &CollectiveInstance) {
        let touches = |begin_s: f64, end_s: f64| begin_s <= self.to_s && self.from_s <= end_s;
        let mut members = instance.members.iter();
        if members.any(|member| touches(member.begin_s, member.end_s.unwrap_or(member.begin_s))) {
            self.met.collectives.push(instance.clone());
        }
    }
}

fn meetings(replay: &CheckpointedMatching, from_s: f64, to_s: f64) -> Communication {
    let mut stretch = StretchSink { from_s, to_s, met: Communication::default(), left_out: false };
    let whole = replay.between(from_s, to_s, MAX_EVENTS, &mut stretch);
    let mut met = stretch.met;
    if !whole {
        met.note = Some("messages up to here are still being matched; try again later".into());
    } else if stretch.left_out {
        met.note = Some("there are too many messages: some are left out".into());
    }
    met
}

#[cfg(test)]
mod tests;
