//! `gammachi report`: shows where the time of a run went.

use std::path::{Path, PathBuf};

use clap::Args;

use super::calibrate::clock::known_rates;
use super::error::{CommandError, print, rendered};
use super::newest_run::named_or_newest;
use super::observed::{Observed, observe};
use super::output_rights::OutputRights;
use super::roofline::{placed_selections, under_roofs};
use super::selection_arguments::SelectionArguments;
use super::several_processes::agreed;
use super::{output_file, selection_arguments};
use crate::analysis::Analysis;
use crate::causes::Causes;
use crate::diagnosis::{Diagnosis, Evidence};
use crate::metrics::activity::bins_for;
use crate::metrics::activity::detail::PAGE_BUDGET;
use crate::metrics::{Answer, Metrics, Page, Question, Selection, SelectionError};
use crate::models::scaling::{Options, Scaling};
use crate::present::html::study::Study;
use crate::present::report::{json, screen};
use crate::present::whatif::ForReport;
use crate::present::{Report, html};
use crate::processes::Processes;
use crate::timeline::{ElapsedScope, GlobalTimeline, KnownRates};
use crate::trace::Run;
use crate::trace::study_json::StudyJson;

/// Shows where the time of a run went, why, and what to do next.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:\n  gammachi report hpl-20260131-120000.gammachi\n  \
                  gammachi report hpl-20260131-120000.gammachi --region solve\n  \
                  gammachi report hpl-20260131-120000.gammachi --html hpl.html --machine machine.json\n  \
                  gammachi report STUDY --html study.html\n  \
                  gammachi report hpl-20260131-120000.gammachi --window MPI_Barrier#3,MPI_Barrier#4 \
                  --json\n\nThe keys of --json are explained in docs/reference/report-json.md. The exit code \
                  is 0 if a report\nwas printed, even for a damaged trace; the report names the \
                  damage.")]
pub struct ReportArguments {
    /// Run directory printed by `gammachi run` (default: the newest one here); with
    /// --html also a study
    #[arg(value_name = "RUN|STUDY")]
    pub run: Option<PathBuf>,

    /// Print a JSON document
    #[arg(long)]
    pub json: bool,

    /// Leave out messages: several times as fast on large traces. Ignored if ranks did not finish
    #[arg(long)]
    pub no_messages: bool,

    /// Write one HTML page that explains the run and contains its timeline; it works offline
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub html: Option<PathBuf>,

    /// Embed the single calls of this window in the page, in seconds since the first rank left
    /// MPI_Init (`1.5,1.51`); may be repeated [default: stretches around the longest waits]
    #[arg(long, value_name = "FROM,TO", requires = "html", allow_hyphen_values = true)]
    pub detail: Vec<String>,

    /// Show the run in the page under the roofs that `gammachi calibrate` measured (machine.json)
    #[arg(long, value_name = "FILE", requires = "html")]
    pub machine: Option<PathBuf>,

    #[command(flatten)]
    pub(super) selection: SelectionArguments,

    /// Measure from process start to exit instead of MPI_Init to MPI_Finalize, as whole-trace
    /// tools do
    #[arg(long)]
    pub from_start: bool,

    /// Correct clock violations with a controlled logical clock, and report every shift
    #[arg(long)]
    pub causal: bool,

    /// Result of `gammachi calibrate clock --drift` between these hosts: it gives the rate of clocks that
    /// were compared only once (a run that died)
    #[arg(long, value_name = "FILE")]
    pub clock: Option<PathBuf>,

    /// Leave out what identifies the run: names of programs, hosts, regions, communicators and
    /// files, arguments, parameters, environment, the date
    #[arg(long)]
    pub anonymise: bool,

    #[command(flatten)]
    pub(super) rights: OutputRights,
}

pub(super) fn report(arguments: &ReportArguments) -> Result<(), CommandError> {
    report_in(arguments, &Processes::alone())
}

/// Like `report`, in several processes that all call this: the events are divided among them, and
/// the first prints. It alone replays a run that is small enough for that.
///
/// # Errors
/// As `report`, on all processes; wrong usage also for what only one process can do.
pub fn report_in(arguments: &ReportArguments, processes: &Processes) -> Result<(), CommandError> {
    arguments.rights.apply();
    let directory = agreed(processes, named_or_newest(arguments.run.as_deref()))?;
    let is_study = StudyJson::is_in(&directory);
    if !processes.is_alone() {
        check_divisible(arguments, is_study)?;
    }
    if is_study {
        return study(arguments, &directory);
    }
    let mut run = Run::open_in(&directory, processes)?;
    if arguments.anonymise {
        run.anonymise();
    }
    let known_rates = match &arguments.clock {
        Some(path) => agreed(processes, known_rates(path))?,
        None => KnownRates::default(),
    };
    let whole = if arguments.from_start { ElapsedScope::Process } else { ElapsedScope::Mpi };
    let measured = GlobalTimeline::over(&run, &known_rates, whole);
    let timeline = match arguments.causal {
        true => Analysis::new(&run, &measured).causal_timeline(),
        false => measured,
    };
    let divided = Analysis::divided(&run, &timeline);
    let selection = arguments.selection.selection(&divided)?;
    if let Some(file) = &arguments.html {
        return page(&run, &timeline, &selection, (file, arguments));
    }
    let messages = !arguments.no_messages;
    let question = Question { messages, ..Question::about(&selection) };
    let (Answer { metrics, .. }, causes) = answered(&divided, &question, arguments)?;
    run.check_readable_in_all()?;
    if !processes.is_first() {
        return Ok(());
    }
    let text = reported((&run, &timeline, &metrics), causes.as_ref(), |report| {
        rendered(arguments.json, || json(report), |colour| screen(report, colour))
    })?;
    run.check_readable()?;
    print(&text)
}

/// What is made of a run's report.
fn reported<T>(
    (run, timeline, metrics): (&Run, &GlobalTimeline, &Metrics),
    causes: Option<&Causes>,
    render: impl FnOnce(&Report) -> T,
) -> T {
    let replayed = ForReport::new(&Analysis::new(run, timeline), causes);
    let (ideal, replay) = (replayed.ideal, replayed.replay.as_ref());
    let diagnosis = Diagnosis::new(Evidence { run, timeline, metrics, causes, ideal, replay });
    render(&Report::new(&diagnosis, &replayed.savings))
}

/// Refuses what is not divided among processes.
fn check_divisible(arguments: &ReportArguments, is_study: bool) -> Result<(), CommandError> {
    let alone = [
        ("--html", arguments.html.is_some()),
        ("--causal", arguments.causal),
        ("a study", is_study),
    ];
    match alone.iter().find(|(_, given)| *given) {
        Some((what, _)) => Err(CommandError::usage(format!(
            "{what} is not divided among processes: use gammachi report, or one process"
        ))),
        None => Ok(()),
    }
}

/// Prints the report of a run that has just ended.
pub fn report_after_run(directory: &Path) -> Result<(), CommandError> {
    report(&ReportArguments { run: Some(directory.to_owned()), ..ReportArguments::default() })
}

/// The figures, and why ranks waited in the selected part, if the run is not too large for that. Of several
/// processes, which all call this, only the first knows why.
fn answered<'a>(
    analysis: &Analysis<'a>,
    question: &Question,
    arguments: &ReportArguments,
) -> Result<(Answer, Option<Causes<'a>>), SelectionError> {
    match !arguments.from_start && !arguments.no_messages {
        true => Causes::in_summary(analysis, question),
        false => Answer::new(analysis, question).map(|answer| (answer, None)),
    }
}

/// Writes the page and prints its size.
fn page(
    run: &Run,
    timeline: &GlobalTimeline,
    selection: &Selection,
    (file, arguments): (&Path, &ReportArguments),
) -> Result<(), CommandError> {
    let asked = arguments.detail.iter().map(|text| selection_arguments::seconds("--detail", text));
    let asked = asked.collect::<Result<Vec<_>, _>>()?;
    let rows = run.ranks.iter().map(|rank| rank.threads.len().max(1)).sum();
    let placed = arguments.machine.as_ref().map(|_| placed_selections(run, selection));
    let exchanges: Vec<Selection> =
        placed.iter().flatten().map(|(_, selection)| selection.clone()).collect();
    let question = Question {
        selection,
        messages: !arguments.no_messages,
        exchanges: &exchanges,
        page: Some(Page { bins: bins_for(rows), windows: &asked, budget: PAGE_BUDGET }),
    };
    let analysis = Analysis::new(run, timeline);
    let (answer, causes) = answered(&analysis, &question, arguments)?;
    let Answer { metrics, exchanges, page: Some((activity, detail)) } = answer else {
        unreachable!("a page was requested");
    };
    let roofs = match (&arguments.machine, &placed) {
        (Some(path), Some(placed)) => Some(under_roofs(run, placed, exchanges, path)?),
        _ => None,
    };
    let text = reported((run, timeline, &metrics), causes.as_ref(), |report| {
        html::page(report, &activity, &detail, roofs.as_ref())
    })?;
    run.check_readable()?;
    write_page(file, &text)
}

fn write_page(file: &Path, text: &str) -> Result<(), CommandError> {
    output_file::write(file, text)?;
    let size = text.len() as f64 / 1e6;
    print(&format!("{}: {size:.2} MB; open it in a browser\n", file.display()))
}

/// Writes the page of a study. Options that make no sense for a study are refused.
fn study(arguments: &ReportArguments, directory: &Path) -> Result<(), CommandError> {
    let usage = |what: &str| CommandError::usage(format!("{}: {what}", directory.display()));
    let Some(file) = &arguments.html else {
        return Err(usage(
            "is a study: --html FILE writes its page, gammachi scaling prints its model",
        ));
    };
    let for_a_run = [
        ("--window", arguments.selection.window.is_some()),
        ("--iteration", arguments.selection.iteration.is_some()),
        ("--detail", !arguments.detail.is_empty()),
        ("--machine", arguments.machine.is_some()),
        ("--clock", arguments.clock.is_some()),
        ("--causal", arguments.causal),
        ("--from-start", arguments.from_start),
        ("--no-messages", arguments.no_messages),
        ("--anonymise", arguments.anonymise),
    ];
    if let Some((option, _)) = for_a_run.iter().find(|(_, given)| *given) {
        return Err(usage(&format!("is a study: {option} is for one run")));
    }
    let json = StudyJson::read(directory)?;
    let region = arguments.selection.region.as_deref();
    let Observed { table, notes, .. } = observe(&[directory.to_owned()], region)?;
    let scaling = Scaling::new(&table, &Options::default());
    let study = Study {
        directory,
        json: &json,
        region: region.or(json.region.as_deref()),
        table: &table,
        scaling: scaling.as_ref(),
        notes: &notes,
    };
    let text = html::study::page(&study)?;
    write_page(file, &text)
}
