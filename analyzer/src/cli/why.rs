//! `gammachi why`: shows who waited for whom in a run, and why.

use std::path::PathBuf;

use clap::Args;

use super::error::{CommandError, print_result};
use super::newest_run::named_or_newest;
use super::selection_arguments::SelectionArguments;
use super::several_processes::agreed;
use crate::analysis::Analysis;
use crate::causes::{Causes, MAX_CALLS_FOR_SUMMARY};
use crate::diagnosis::{Diagnosis, Evidence, Why};
use crate::metrics::{Answer, Question, SelectionError};
use crate::present::causes::{json, screen};
use crate::processes::Processes;
use crate::replay::{ideal_and_replay, replayed_aside};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// Shows who waited for whom, what made them late and what it cost.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gammachi why hpl-20260131-120000.gammachi\n  \
                  gammachi why hpl-20260131-120000.gammachi --rank 3 --json\n\nThe terms are explained \
                  in docs/causes.md, the keys of --json in docs/reference/why-json.md.")]
pub struct WhyArguments {
    /// Run directory printed by `gammachi run` (default: the newest one here)
    #[arg(value_name = "RUN")]
    pub run: Option<PathBuf>,

    /// Print a JSON document
    #[arg(long)]
    pub json: bool,

    /// Only waits of this rank of MPI_COMM_WORLD, and waits for it
    #[arg(long, value_name = "RANK")]
    pub rank: Option<u32>,

    #[command(flatten)]
    pub(super) selection: SelectionArguments,
}

pub(super) fn why(arguments: &WhyArguments) -> Result<(), CommandError> {
    why_in(arguments, &Processes::alone())
}

/// Like `why`, in several processes that all call this: each reads the events of its own ranks,
/// and the first prints. It alone replays the run for its ideal time, if the run is small enough for
/// that.
///
/// # Errors
/// As `why`, on all processes.
pub fn why_in(arguments: &WhyArguments, processes: &Processes) -> Result<(), CommandError> {
    let directory = agreed(processes, named_or_newest(arguments.run.as_deref()))?;
    let run = Run::open_in(&directory, processes)?;
    if let Some(rank) = arguments.rank
        && run.position_of(rank).is_none()
    {
        return Err(CommandError::usage(format!(
            "--rank {rank}: {} has no file of that rank; its world has {} ranks",
            directory.display(),
            run.world_size
        )));
    }
    let timeline = GlobalTimeline::new(&run);
    let analysis = Analysis::divided(&run, &timeline);
    let selection = arguments.selection.selection(&analysis)?;
    let answer = Causes::with_answer(&analysis, &Question::about(&selection));
    let (Answer { metrics, .. }, causes) = answer.map_err(|error| match &error {
        SelectionError::UnknownRegion { .. } => CommandError::usage(format!("--region: {error}")),
        _ => error.into(),
    })?;
    run.check_readable_in_all()?;
    let Some(causes) = causes else { return Ok(()) };
    let whole = Analysis::new(&run, &timeline);
    let (ideal, replay) = ideal_and_replay(&whole, causes.part.as_ref());
    let labels = (arguments.json && run.calls() <= MAX_CALLS_FOR_SUMMARY)
        .then(|| causes.path_labels(&whole));
    // These have read events, too.
    run.check_readable()?;
    let (run, timeline, metrics, rank) = (&run, &timeline, &metrics, arguments.rank);
    let why = Why { run, timeline, causes: &causes, ideal, rank };
    // A report judges by the same.
    let ideal = ideal.and_then(|ideal| replayed_aside(run).map(|()| ideal));
    let (causes, replay) = (Some(&causes), replay.as_ref());
    let diagnosis = Diagnosis::new(Evidence { run, timeline, metrics, causes, ideal, replay });
    let screen = |colour| screen(&why, &diagnosis, colour);
    print_result(arguments.json, || json(&why, &diagnosis, labels.as_deref()), screen)
}
