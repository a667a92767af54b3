//! `gammachi top`: shows what the ranks of a run do while it goes on.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use super::error::{CommandError, print, print_alone, rendered};
use super::newest_run::named_or_newest;
use crate::live::{Alarms, Iterations, LiveRun, Moment, Waiting, WaitingAnalysis};
use crate::present::live::{json, screen};

/// Time between two looks at the windows. At 3,200 calls in it, a rank's figures begin to miss calls.
const LOOK: Duration = Duration::from_millis(250);
/// With `--once`, how long the ranks are observed.
const OBSERVED: Duration = Duration::from_secs(2);
/// Finding out who waits for whom takes at most this share of a core.
const SHARE: f64 = 0.05;
/// If no rank has begun or ended a call for so many seconds, the run makes no progress.
const PATIENCE_S: f64 = 30.0;

/// Shows what the ranks of a run do while it goes on.
///
/// Reads the files that the ranks write; nothing in the ranks takes part. Only ranks of this host are followed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gammachi top\n  gammachi top hpl-20260131-120000.gammachi --every 5\n  \
                  gammachi top hpl-20260131-120000.gammachi --once --json"
)]
pub struct TopArguments {
    /// Run directory of a job that is running (default: the newest one here)
    #[arg(value_name = "RUN")]
    pub run: Option<PathBuf>,

    /// Observe the ranks for two seconds, print what they do, and end
    #[arg(long)]
    pub once: bool,

    /// Print a JSON document
    #[arg(long, requires = "once")]
    pub json: bool,

    /// Seconds between two screens
    #[arg(long, value_name = "S", default_value_t = 2.0, value_parser = seconds, conflicts_with = "once")]
    pub every: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    let valid = |seconds: &f64| (0.1..=3600.0).contains(seconds);
    text.parse().ok().filter(valid).ok_or_else(|| "not a number from 0.1 to 3600".to_owned())
}

pub(super) fn top(arguments: &TopArguments) -> Result<(), CommandError> {
    let directory = named_or_newest(arguments.run.as_deref())?;
    let mut run = LiveRun::open(&directory)?;
    run.glance();
    if run.has_ended() && !arguments.once {
        return Err(CommandError::Input(format!(
            "{}: no rank of this host is running; gammachi report shows what the run did",
            directory.display()
        )));
    }
    let every = match arguments.once {
        true => OBSERVED,
        false => Duration::from_secs_f64(arguments.every),
    };
    let mut analysis = WaitingAnalysis::new(SHARE);
    let mut alarms = Alarms::after(PATIENCE_S);
    let mut iterations = Iterations::counted();
    // From here on the ranks keep their calls for it.
    iterations.look(&mut run);
    // A rank has to be seen stopped twice, also for a single screen.
    run.look();
    alarms.look(&Moment::new(&run), None);
    loop {
        if run.has_ended() {
            run.look();
        } else {
            observe(&mut run, &mut iterations, every);
        }
        // The last screen waits for it.
        let is_last = arguments.once || run.has_ended();
        let found = if is_last { Waiting::find(&run.directory) } else { None };
        if found.is_some() {
            run.look();
            run.glance();
        }
        let mut moment = Moment::new(&run);
        let waiting = match is_last {
            true => found.as_ref(),
            false => analysis.waiting(&run.directory, moment.longest_wait_s()),
        };
        waiting.into_iter().for_each(|waiting| moment.note_waiting(waiting));
        moment.iterations = iterations.now(&run);
        let alarms = alarms.look(&moment, waiting);
        let text = rendered(
            arguments.json,
            || json(&run, &moment, &alarms),
            |colour| screen(&run, &moment, &alarms, colour),
        )?;
        if arguments.once {
            return print(&text);
        }
        print_alone(&text)?;
        if run.has_ended() {
            return Ok(());
        }
    }
}

/// Looks at the windows again and again for a time, and then at the processes.
fn observe(run: &mut LiveRun, iterations: &mut Iterations, time: Duration) {
    let end = Instant::now() + time;
    loop {
        run.look();
        iterations.look(run);
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        std::thread::sleep(left.min(LOOK));
    }
    run.glance();
}
