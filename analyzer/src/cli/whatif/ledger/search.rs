//! Searches for answers to predictions: runs and studies of a folder, rows of a table. Only what
//! matches in everything that is known counts.

use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::cli::model::input::with_part;
use crate::cli::observed::{ObservedRun, observe_run};
use crate::ledger::{Answer, Ledger, Prediction, Subject, is_same_value};
use crate::models::Observations;
use crate::models::observations::P;
use crate::trace::run_json::{Instant, RunJson, RunState};
use crate::trace::study_json::{StudyJson, StudyRunState};

/// The quantity of a prediction, measured in a run.
pub(super) struct Measured {
    pub subject: Subject,
    pub seconds: f64,
    /// When the run was made, if known; nanoseconds since 1970.
    pub begun_ns: Option<u64>,
}

/// The result of a search.
#[derive(Default)]
pub(super) struct Found {
    /// Answers by runs. Runs may be deleted, so the ledger keeps these answers.
    pub runs: Vec<Answer>,
    /// Answers by rows of tables. They stay in their table.
    pub rows: Vec<Answer>,
    /// What could not be read, and why.
    pub notes: Vec<String>,
}

/// Measures the quantity of a prediction in a run.
///
/// # Errors
/// Why this is impossible, as a sentence.
pub(super) fn measure(run: &Path, prediction: &Prediction) -> Result<Measured, String> {
    let ObservedRun { figures, subject, begun_ns, is_simulated } =
        observe_run(run, prediction.subject.region.as_deref())?;
    if is_simulated {
        return Err(format!(
            "{}: is simulated; only a measured run tests a prediction",
            run.display()
        ));
    }
    let p = figures.p;
    let table = Observations::from_runs(run.display().to_string(), &[figures]);
    let table = table.map_err(|error| error.to_string())?;
    let seconds = sums(table, &prediction.quantity)?[0];
    Ok(Measured { subject: Subject { p: Some(p), ..subject }, seconds, begun_ns })
}

/// The sum of some columns, per row.
fn sums(table: Observations, columns: &[String]) -> Result<Vec<f64>, String> {
    let table = columns.iter().try_fold(table, |table, name| with_part(table, name));
    let table = table.map_err(|error| error.to_string())?;
    let mut sums = vec![0.0; table.rows().len()];
    for name in columns {
        let column = table.numbers(name).map_err(|error| error.to_string())?;
        sums.iter_mut().zip(column).for_each(|(sum, value)| *sum += value);
    }
    Ok(sums)
}

/// The name of a run in the ledger of a folder: relative to it, or its absolute path.
pub(super) fn name_in(folder: &Path, run: &Path) -> String {
    let whole = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (folder, run) = (whole(folder), whole(run));
    run.strip_prefix(&folder).unwrap_or(&run).display().to_string()
}

/// Searches for answers to all predictions whose runs can be recognised.
pub(super) fn search(folder: &Path, ledger: &Ledger) -> Found {
    let mut found = Found::default();
    let recognised: Vec<&Prediction> =
        ledger.predictions.iter().filter(|prediction| prediction.is_recognised()).collect();
    let oldest = recognised.iter().map(|prediction| prediction.at.unix_ns).min();
    if let Some(oldest) = oldest {
        let runs: Vec<(PathBuf, RunJson)> = runs_in(folder, &mut found.notes)
            .into_iter()
            .filter_map(|run| RunJson::read(&run).ok().map(|described| (run, described)))
            .filter(|(_, run)| run.state == RunState::Finished && run.start.unix_ns > oldest)
            .collect();
        let answers = runs.par_iter().flat_map_iter(|(run, described)| {
            answers_of(folder, run, described, &recognised, ledger)
        });
        for answer in answers.collect::<Vec<_>>() {
            match answer {
                Ok(answer) => found.runs.push(answer),
                Err(note) => found.notes.push(note),
            }
        }
    }
    for prediction in &ledger.predictions {
        match answers_in_table(folder, prediction) {
            Ok(answers) => found.rows.extend(answers),
            Err(note) => found.notes.push(note),
        }
    }
    found.notes.sort();
    found.notes.dedup();
    found
}

/// The run directories of a folder and of its studies.
fn runs_in(folder: &Path, notes: &mut Vec<String>) -> Vec<PathBuf> {
    let mut runs = Vec::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            notes.push(format!("{}: cannot be listed: {error}", folder.display()));
            return runs;
        }
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths.into_iter().filter(|path| path.is_dir()) {
        if !StudyJson::is_in(&path) {
            runs.push(path);
            continue;
        }
        match StudyJson::read(&path) {
            Ok(study) => {
                let finished = study.runs.iter().filter(|run| run.state == StudyRunState::Finished);
                runs.extend(finished.map(|run| path.join(&run.directory)));
            }
            Err(error) => notes.push(error.to_string()),
        }
    }
    runs
}

/// The predictions that a run answers and that the ledger does not yet have it for, or why it cannot
/// be read.
fn answers_of(
    folder: &Path,
    run: &Path,
    described: &RunJson,
    predictions: &[&Prediction],
    ledger: &Ledger,
) -> Vec<Result<Answer, String>> {
    let name = name_in(folder, run);
    let params = Subject { params: described.params.0.clone(), ..Subject::default() };
    // The description is cheap to check; the run's events are read only if it matches.
    let may_answer = |prediction: &&&Prediction| {
        prediction.at.unix_ns < described.start.unix_ns
            && prediction.subject.differences(&params).is_empty()
            && !ledger.has_answer(&prediction.id, &name)
    };
    let mut answers = Vec::new();
    for prediction in predictions.iter().filter(may_answer) {
        match measure(run, prediction) {
            Ok(measured) if prediction.subject.differences(&measured.subject).is_empty() => {
                answers.push(Ok(Answer {
                    prediction: prediction.id.clone(),
                    at: Instant::now(),
                    run: name.clone(),
                    seconds: measured.seconds,
                    named: false,
                }));
            }
            Ok(_) => {}
            Err(why) => answers.push(Err(format!("left out: {why}"))),
        }
    }
    answers
}

/// The rows at the predicted point, in the table that the prediction was made from. There were none
/// when it was made.
fn answers_in_table(folder: &Path, prediction: &Prediction) -> Result<Vec<Answer>, String> {
    let path = folder.join(&prediction.source);
    let Subject { program: None, p: Some(p), params, open, .. } = &prediction.subject else {
        return Ok(Vec::new());
    };
    if !open.is_empty() || !path.is_file() || path.extension().is_none_or(|end| end != "csv") {
        return Ok(Vec::new());
    }
    let table = Observations::read(&path).map_err(|error| error.to_string())?;
    let rank_count = (P.to_owned(), p.to_string());
    let mut rows: Vec<usize> = (0..table.rows().len()).collect();
    for (name, value) in params.iter().chain([&rank_count]) {
        let texts = table.texts(name).map_err(|error| error.to_string())?;
        rows.retain(|row| is_same_value(texts[*row], value));
    }
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let found = table.select(&rows);
    let seconds = sums(found.clone(), &prediction.quantity)?;
    let answers = found.rows().iter().zip(seconds).map(|(row, seconds)| Answer {
        prediction: prediction.id.clone(),
        at: Instant::now(),
        run: format!("{}, {}", prediction.source, row.origin),
        seconds,
        named: false,
    });
    Ok(answers.collect())
}
