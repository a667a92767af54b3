//! `gammachi why`: shows who waited for whom in a run, and why.

use std::path::PathBuf;

use clap::Args;

use super::error::{CommandError, print_result};
use super::newest_run::named_or_newest;
use super::several_processes::agreed;
use crate::analysis::Analysis;
use crate::causes::{ALL_WAITS, Causes, WaitFilter};
use crate::diagnosis::{Diagnosis, Evidence, Why};
use crate::metrics::{Metrics, Selection, SelectionError};
use crate::present::causes::{json, screen};
use crate::processes::Processes;
use crate::replay::{NoIdeal, ideal_time, is_replayed_aside};
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

    /// Only what concerns this rank of MPI_COMM_WORLD: its waits, and waits for it
    #[arg(long, value_name = "RANK")]
    pub rank: Option<u32>,

    /// Only waits in this region, and what caused them
    #[arg(long, value_name = "REGION")]
    pub region: Option<String>,

    /// Only waits in this iteration, counted from 0, and what caused them
    #[arg(long, value_name = "NUMBER")]
    pub iteration: Option<usize>,
}

/// Analyses a run and prints why its ranks waited.
///
/// # Errors
/// Wrong usage for a rank that the run does not have; failure if nothing can be determined.
pub fn why(arguments: &WhyArguments) -> Result<(), CommandError> {
    why_in(arguments, &Processes::alone())
}

/// Like [`why`], in several processes that all call this: each reads the events of its own ranks,
/// and the first prints. It alone replays the run for its ideal time, if the run is small enough for
/// that.
///
/// # Errors
/// As [`why`], on all processes.
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
    if let Some(region) = &arguments.region
        && !run.region_names().contains(region.as_str())
    {
        let known = run.region_names().into_iter().map(str::to_owned).collect();
        let unknown = SelectionError::UnknownRegion { name: region.clone(), known };
        return Err(CommandError::usage(format!("--region: {unknown}")));
    }
    let choice = WaitFilter { region: arguments.region.clone(), iteration: arguments.iteration };
    let metrics = Metrics::of_analysis(&analysis, &Selection::Whole, true);
    let causes = Causes::of_divided(&analysis, &choice);
    run.check_readable_in_all()?;
    let Some(causes) = causes else { return Ok(()) };
    let iterations = causes.phases.first().map_or(0, |phase| phase.iterations.len());
    if let Some(iteration) = arguments.iteration
        && iteration >= iterations
    {
        let run = directory.display();
        return Err(CommandError::usage(match iterations {
            0 => format!("--iteration {iteration}: no iterations were found in {run}"),
            _ => {
                format!("--iteration {iteration}: {run} has the iterations 0 to {}", iterations - 1)
            }
        }));
    }
    // The run's ideal time does not apply to a part of it.
    let is_whole = choice == ALL_WAITS;
    let ideal = match is_whole {
        true => ideal_time(&Analysis::of(&run, &timeline)),
        false => Err(NoIdeal::NotAsked),
    };
    // The replay has read events, too.
    run.check_readable()?;
    let (rank, choice) = (arguments.rank, &choice);
    let metrics = metrics?;
    let (run, timeline, metrics) = (&run, &timeline, &metrics);
    let why = Why { run, timeline, causes: &causes, ideal, rank, choice };
    // A report judges by the same.
    let ideal = ideal.ok().filter(|_| is_replayed_aside(run));
    let causes = Some(&causes);
    let diagnosis = Diagnosis::new(Evidence { run, timeline, metrics, causes, choice, ideal });
    let screen = |colour| screen(&why, &diagnosis, colour);
    print_result(arguments.json, || json(&why, &diagnosis), screen)
}
