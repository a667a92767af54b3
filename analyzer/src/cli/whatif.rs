//! `gammachi whatif`: predicts how long a run would take if something were different.

pub(super) mod amount;
mod arguments;
mod ledger;
mod network;
mod placement;

use std::path::Path;

use rayon::prelude::*;

use crate::analysis::Analysis;
use crate::causes::{Causes, UnexplainedWaits};
use crate::diagnosis::{self, Diagnosis, Evidence};
use crate::ledger::{Predictor, Subject};
use crate::metrics::{self, Selection};
use crate::models::observations::TAU_S;
use crate::present::whatif::{Tolerance, WhatIfResults, json, reason, screen, sentence};
use crate::replay::{
    Answer, Assembled, Change, Graph, GraphSearch, NotReplayable, Placement, WhatIf, replayed_aside,
};
use crate::simulated_run::SimulatedRun;
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

use super::error::{CommandError, Context, eprint_message, print_result};
use super::newest_run::named_or_newest;
use super::remember::{NewPrediction, remember};
use super::unfinished_output::UnfinishedOutput;

use amount::Amount;
use arguments::Threads;
pub use arguments::WhatIfArguments;
use network::Network;

/// Slowdowns for which the tolerated latency is determined.
const SLOWDOWNS: [f64; 3] = [0.01, 0.02, 0.05];

/// Answers questions about a run and prints the answers.
///
/// # Errors
/// Wrong usage for ranks, hosts and regions that the run does not have; failure if it cannot be
/// replayed.
pub fn what_if(arguments: &WhatIfArguments) -> Result<(), CommandError> {
    if arguments.ledger.is_given() {
        let folder = arguments.run.as_deref().unwrap_or(Path::new("."));
        return ledger::show(&arguments.ledger, folder, arguments.json);
    }
    let output = match &arguments.out {
        Some(out) => Some((out, UnfinishedOutput::beside("--out", out)?)),
        None => None,
    };
    let directory = named_or_newest(arguments.run.as_deref())?;
    let run = Run::open(&directory)?;
    let timeline = GlobalTimeline::new(&run);
    let analysis = Analysis::new(&run, &timeline);
    let search = GraphSearch::new(&analysis).map_err(|why| not_replayable(&run, why))?;
    let about = metrics::Question::about(&Selection::Whole);
    // Whoever reads all findings reads why ranks waited; the screen says only what makes its answers invalid.
    let reads_waits = arguments.json || !run.all_finished();
    let (figures, waits, read) = match reads_waits {
        true => UnexplainedWaits::in_summary(&analysis, &about, &&search)?,
        false => {
            let (figures, read) = metrics::Answer::along(&analysis, &about, &&search)?;
            (figures, None, read)
        }
    };
    let graph = search.graph(read).map_err(|why| not_replayable(&run, why))?;
    let mut what_if = WhatIf::new(graph);
    let question = Question::new(arguments, &what_if)?;
    let questions = match question.changes.is_empty() {
        true => what_if.standard(),
        false => vec![question.changes],
    };
    let is_accurate = what_if.is_accurate();
    let answers: Vec<_> = match is_accurate {
        true => questions.par_iter().map(|question| what_if.ask(question)).collect(),
        false => Vec::new(),
    };
    let is_standard = questions.len() > 1 && is_accurate;
    let tolerance = |slowdown: &f64| {
        let (latency_s, replays) = what_if.tolerated_latency(*slowdown);
        Tolerance { slowdown: *slowdown, latency_s, replays }
    };
    let tolerances: Vec<Tolerance> =
        SLOWDOWNS.par_iter().filter(|_| is_standard).map(tolerance).collect();
    // To explain the waits takes as much memory as the operations, which nobody else needs then.
    if replayed_aside(&run).is_err() && output.is_none() {
        what_if.free_operations();
    }
    let causes = match waits {
        Some(waits) => waits.explain(&figures),
        None if !reads_waits && diagnosis::doubts_depend_on_waits(&figures.metrics) => {
            Causes::in_summary(&analysis, &about)?.1
        }
        None => None,
    };
    let ideal = replayed_aside(&run).and_then(|()| what_if.ideal_if_exact());
    let diagnosis = Diagnosis::new(Evidence {
        run: &run,
        timeline: &timeline,
        metrics: &figures.metrics,
        causes: causes.as_ref(),
        ideal,
        replay: replayed_aside(&run).ok().map(|()| &what_if),
    });
    let asked = WhatIfResults {
        run: &run,
        timeline: &timeline,
        what_if: &what_if,
        answers: &answers,
        tolerances: &tolerances,
        placement: question.placement.as_ref().unwrap_or(&what_if.placement),
        network: &question.network.assembled,
        notes: &question.network.notes,
        diagnosis: &diagnosis,
    };
    print_result(arguments.json, || json(&asked), |colour| screen(&asked, colour))?;
    if let (Some((out, output)), Some(answer)) = (output, answers.first()) {
        let question = sentence(&answer.changes, &what_if);
        let simulated = SimulatedRun::new(&what_if, &analysis, &answer.changes, question, out);
        write(&simulated, output, out)?;
    }
    match (is_accurate, answers.first().filter(|_| arguments.remember)) {
        (true, None) => Ok(()),
        (true, Some(answer)) => {
            let predicted = prediction(answer, &what_if)?;
            remember(Predictor::WhatIf, &directory, vec![predicted])
        }
        (false, _) => Err(too_far_off(&run)),
    }
}

/// The replay of a run that is accurate enough for answers.
///
/// # Errors
/// Failure if there is none.
pub(super) fn accurate_replay_of<'a>(analysis: &Analysis<'a>) -> Result<WhatIf<'a>, CommandError> {
    let graph = Graph::new(analysis).map_err(|why| not_replayable(analysis.run, why))?;
    let what_if = WhatIf::new(graph);
    match what_if.is_accurate() {
        true => Ok(what_if),
        false => Err(too_far_off(analysis.run)),
    }
}

fn not_replayable(run: &Run, why: NotReplayable) -> CommandError {
    let run = run.directory.display();
    CommandError::Input(format!("{run} cannot be replayed: {}", reason(why)))
}

fn too_far_off(run: &Run) -> CommandError {
    let run = run.directory.display();
    CommandError::Input(format!("{run} cannot be replayed: the replay's time is too far off"))
}

/// The question that the options ask.
struct Question {
    /// Empty for the standard questions.
    changes: Vec<Change>,
    network: Network,
    /// The placement, if it differs from the run's.
    placement: Option<Placement>,
}

impl Question {
    fn new(arguments: &WhatIfArguments, what_if: &WhatIf) -> Result<Self, CommandError> {
        let mapping = placement::mapping(arguments, what_if)?;
        let mapped = mapping.as_ref().map(|mapping| Placement::mapped(&what_if.graph, mapping));
        let placement = mapped.as_ref().unwrap_or(&what_if.placement);
        let network = network::assemble(arguments, what_if, placement)?;
        if mapped.is_some() {
            network::check_known(&network.assembled, placement, what_if)?;
        }
        let mut changes = changes(arguments, what_if, &network.assembled)?;
        changes.extend(mapping.map(Change::Placement));
        let needs_one = [("--remember", arguments.remember), ("--out", arguments.out.is_some())];
        match needs_one.iter().find(|(_, is_given)| *is_given && changes.is_empty()) {
            Some((option, _)) => Err(CommandError::usage(format!(
                "{option}: for which change? It is not for the standard questions; ask one, such as --rank 3 \
                 --speed 1.2"
            ))),
            None => Ok(Self { changes, network, placement: mapped }),
        }
    }
}

fn write(run: &SimulatedRun, output: UnfinishedOutput, out: &Path) -> Result<(), CommandError> {
    run.write(output.path()).context(
        CommandError::Output,
        format_args!("--out {}: cannot be written", out.display()),
    )?;
    let moves = [(output.path().to_owned(), out.to_owned())];
    output.finish(&moves)?;
    eprint_message(&format!("wrote {}, a simulated run with unmeasured times", out.display()));
    Ok(())
}

/// The prediction to record for an answer.
///
/// # Errors
/// Failure if the run tells only an interval.
fn prediction(answer: &Answer, what_if: &WhatIf) -> Result<NewPrediction, CommandError> {
    let question = sentence(&answer.changes, what_if);
    let seconds = answer.time_s().ok_or_else(|| {
        CommandError::Input(format!(
            "--remember: the run gives only an interval for '{question}'; nothing was recorded in the ledger"
        ))
    })?;
    Ok(NewPrediction {
        question,
        subject: Subject::from_run(what_if.graph.run),
        quantity: vec![TAU_S.to_owned()],
        seconds,
        interval_s: Some(answer.interval_s),
    })
}

/// The changes of all options except those of the placement.
fn changes(
    arguments: &WhatIfArguments,
    what_if: &WhatIf,
    network: &Assembled,
) -> Result<Vec<Change>, CommandError> {
    let run = what_if.graph.run;
    let path = run.directory.display();
    let mut changes = Vec::new();
    if network.is_changed() {
        changes.push(Change::Network(Box::new(network.clone())));
    }
    if let Some(Amount::Times(factor)) = arguments.latency {
        changes.push(Change::Latency(factor));
    }
    if let Some(Amount::Times(factor)) = arguments.bandwidth {
        changes.push(Change::Bandwidth(factor));
    }
    if let Some(Amount::Times(factor)) = arguments.overhead {
        changes.push(Change::Overhead(factor));
    }
    let speed = arguments.speed.unwrap_or(1.0);
    for rank in &arguments.rank {
        let position = run.position_of(*rank).ok_or_else(|| {
            CommandError::usage(format!("--rank {rank}: {path} has no file of that rank"))
        })?;
        changes.push(Change::RankSpeed(position, speed));
    }
    for host in &arguments.host {
        let of_host = |position: &usize| run.ranks[*position].file.header.host == *host;
        let before = changes.len();
        let ranks = (0..run.ranks.len()).filter(of_host);
        changes.extend(ranks.map(|position| Change::RankSpeed(position, speed)));
        if changes.len() == before {
            return Err(CommandError::usage(format!("--host {host}: {path} has no rank there")));
        }
    }
    let regions = what_if.regions();
    let known = |option: &str, name: &String| match regions.contains(&name.as_str()) {
        true => Ok(name.clone()),
        false if regions.is_empty() => Err(CommandError::usage(format!(
            "{option} {name}: {path} has no regions (gammachi.h marks them)"
        ))),
        false => Err(CommandError::usage(format!(
            "{option} {name}: {path} has no such region, but {}",
            regions.join(", ")
        ))),
    };
    for name in &arguments.region {
        changes.push(Change::RegionSpeed(known("--region", name)?, speed));
    }
    for name in &arguments.balance {
        let region = match name.as_str() {
            "all" => None,
            _ => Some(known("--balance", name)?),
        };
        changes.push(Change::Balance(region));
    }
    let beside = &what_if.graph.beside;
    if let Some(Threads::Balanced) = arguments.threads {
        if !beside.has_threads() {
            return Err(CommandError::usage(format!(
                "--threads balanced: {path} has no parallel region outside MPI with threads that work unequally \
                 long (gammachi run --openmp records regions)"
            )));
        }
        changes.push(Change::BalancedThreads);
    }
    if let Some(speed) = arguments.io {
        if !beside.has_files() {
            return Err(CommandError::usage(format!(
                "--io x{speed}: {path} has no calls on files outside MPI (gammachi run --io records them)"
            )));
        }
        changes.push(Change::FileSpeed(speed));
    }
    if arguments.speed.is_some()
        && arguments.rank.is_empty()
        && arguments.host.is_empty()
        && arguments.region.is_empty()
    {
        return Err(CommandError::usage(
            "--speed: name a --rank, a --host or a --region".to_owned(),
        ));
    }
    Ok(changes)
}
