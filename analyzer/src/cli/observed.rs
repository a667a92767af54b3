//! Builds a table of runs ([`Observations`]) from what the user names: a CSV file, a study, or run
//! directories, with notes on what was left out.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::ledger::Subject;
use crate::metrics::{Metrics, Selection};
use crate::models::Observations;
use crate::models::observations::{RunFigures, UnusableRun};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;
use crate::trace::study_json::{StudyJson, StudyRun, StudyRunState};

use super::error::CommandError;
use super::selection_arguments::selection_sentence;

/// A table, and what was left out of it.
#[derive(Debug)]
pub struct Observed {
    pub table: Observations,
    /// Runs that were left out, and why; one sentence each.
    pub notes: Vec<String>,
    /// The subject of each row, in the table's order; empty for a table that was read from a file.
    pub subjects: Vec<Subject>,
    /// The directory of each row's run; empty for such a table.
    pub directories: Vec<PathBuf>,
    /// Runs of a study that are not in the table, because only their counts are used.
    pub counted: Vec<CountedRun>,
}

/// A run of which only the counts are used.
#[derive(Debug)]
pub struct CountedRun {
    pub directory: PathBuf,
    pub params: Vec<(String, String)>,
}

#[derive(Debug)]
pub(super) struct ObservedRun {
    pub figures: RunFigures,
    pub subject: Subject,
    /// When it began, nanoseconds since 1970.
    pub begun_ns: Option<u64>,
    /// Whether it is a replay.
    pub is_simulated: bool,
}

/// A run to read.
struct Source {
    directory: PathBuf,
    name: String,
    region: Option<String>,
    /// Rank count and repetition planned by a study.
    planned: Option<(u32, u32)>,
}

/// Reads one CSV file, or gathers the figures of studies and runs. `region` restricts every figure
/// to a region; if it is not given, a study's own region is used.
pub fn observe(sources: &[PathBuf], region: Option<&str>) -> Result<Observed, CommandError> {
    if let [file] = sources
        && file.is_file()
    {
        if let Some(region) = region {
            return Err(CommandError::usage(format!(
                "--region {region}: {} is a table, which has no regions; name runs or a study",
                file.display()
            )));
        }
        let table = Observations::read(file)?;
        let (notes, subjects, directories, counted) = Default::default();
        return Ok(Observed { table, notes, subjects, directories, counted });
    }
    let mut notes = Vec::new();
    let mut runs = Vec::new();
    let mut counted = Vec::new();
    for source in sources {
        if source.is_file() {
            return Err(CommandError::usage(format!(
                "{}: is a file; name either one table, or runs and studies",
                source.display()
            )));
        }
        match StudyJson::is_in(source) {
            true => runs.extend(runs_of_study(source, region, &mut notes, &mut counted)?),
            false => runs.push(Source {
                directory: source.clone(),
                name: source.display().to_string(),
                region: region.map(str::to_owned),
                planned: None,
            }),
        }
    }
    let read: Vec<Result<ObservedRun, String>> = runs.par_iter().map(figures).collect();
    let (mut figures, mut subjects, mut directories) = (Vec::new(), Vec::new(), Vec::new());
    for (source, read) in runs.iter().zip(read) {
        match read {
            Ok(ObservedRun { figures: run, subject, .. }) => {
                if let Some((np, _)) = source.planned.filter(|(np, _)| *np != run.p) {
                    notes.push(format!(
                        "{}: {np} ranks were requested, {} took part; the table has {}",
                        source.name, run.p, run.p
                    ));
                }
                figures.push(run);
                subjects.push(subject);
                directories.push(source.directory.clone());
            }
            // For a single run, its own error is the best message.
            Err(why) if runs.len() == 1 => return Err(CommandError::Input(why)),
            Err(why) => notes.push(format!("left out: {why}")),
        }
    }
    let source = match sources {
        [one] => one.display().to_string(),
        several => format!("{} runs", several.len()),
    };
    if figures.is_empty() {
        let why = notes.first().map_or_else(|| "it has no run yet".to_owned(), String::clone);
        return Err(CommandError::Input(format!("{source}: no run can be read; {why}")));
    }
    let table = Observations::from_runs(source, &figures)?;
    Ok(Observed { table, notes, subjects, directories, counted })
}

fn runs_of_study(
    directory: &Path,
    region: Option<&str>,
    notes: &mut Vec<String>,
    counted: &mut Vec<CountedRun>,
) -> Result<Vec<Source>, CommandError> {
    let study = StudyJson::read(directory)?;
    let count = |state| study.runs.iter().filter(|run| run.state == state).count();
    let (pending, failed) = (count(StudyRunState::Pending), count(StudyRunState::Failed));
    if pending > 0 {
        notes.push(format!(
            "{}: {pending} of {} runs are still to be made; the same `gammachi sweep` continues",
            directory.display(),
            study.runs.len()
        ));
    }
    for run in study.runs.iter().filter(|run| run.state == StudyRunState::Failed).take(3) {
        let reason = run.reason.as_deref().unwrap_or("failed");
        notes.push(format!("left out: {}: {reason}", directory.join(&run.directory).display()));
    }
    if failed > 3 {
        notes.push(format!("{}: {} more runs failed", directory.display(), failed - 3));
    }
    let finished = study.runs.iter().filter(|run| run.state == StudyRunState::Finished);
    let (of_counts, finished): (Vec<&StudyRun>, Vec<&StudyRun>) =
        finished.partition(|run| run.counts_only);
    if !of_counts.is_empty() {
        let mut ranks: Vec<u32> = of_counts.iter().map(|run| run.np).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
        notes.push(format!(
            "{}: runs at p = {} are for counts only; their times are not used",
            directory.display(),
            ranks.join(", ")
        ));
    }
    counted.extend(of_counts.into_iter().map(|run| CountedRun {
        directory: directory.join(&run.directory),
        params: run.params.clone(),
    }));
    let region = region.map(str::to_owned).or(study.region);
    let sources = finished.into_iter().map(|run| Source {
        directory: directory.join(&run.directory),
        name: run.directory.clone(),
        region: region.clone(),
        planned: Some((run.np, run.rep)),
    });
    Ok(sources.collect())
}

/// The figures of one run, optionally of a region, and its subject.
pub(super) fn observe_run(directory: &Path, region: Option<&str>) -> Result<ObservedRun, String> {
    let source = Source {
        directory: directory.to_owned(),
        name: directory.display().to_string(),
        region: region.map(str::to_owned),
        planned: None,
    };
    figures(&source)
}

/// The figures of a run, or why it has none: the run, what is wrong, what to do.
fn figures(source: &Source) -> Result<ObservedRun, String> {
    let named = |what: String| format!("{}: {what}", source.directory.display());
    let run = Run::open(&source.directory).map_err(|error| error.to_string())?;
    let timeline = GlobalTimeline::new(&run);
    let selection = source.region.clone().map_or(Selection::Whole, Selection::Region);
    let metrics = Metrics::new(&run, &timeline, &selection)
        .map_err(|error| named(selection_sentence(&error)))?;
    let mut figures =
        RunFigures::new(source.name.clone(), &run, &metrics).map_err(|why| named(unusable(why)))?;
    run.check_readable().map_err(|error| error.to_string())?;
    figures.rep = source.planned.map(|(_, rep)| rep);
    let subject = Subject { region: source.region.clone(), ..Subject::from_run(&run) };
    Ok(ObservedRun { figures, subject, begun_ns: run.begun_ns(), is_simulated: run.is_simulated() })
}

fn unusable(why: UnusableRun) -> String {
    match why {
        UnusableRun::FigureName(_) => format!("{why}; give it another with --param"),
        UnusableRun::NoComputation(compute) => {
            format!("{why} (--compute {}): record with --compute outside", compute.name())
        }
        why => why.to_string(),
    }
}
