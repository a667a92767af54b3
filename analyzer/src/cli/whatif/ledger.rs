//! `--ledger` and `--answer` of `gammachi whatif`: compares remembered predictions with later runs.

mod search;

use std::path::Path;

use clap::Args;

use crate::cli::error::{CommandError, Context, eprint_message, print_result};
use crate::ledger::{self, Answer, LEDGER_FILE, Ledger, Score};
use crate::present::ledger::{LedgerContents, differences, json, screen};
use crate::trace::run_json::Instant;

use search::Measured;

/// The options that ask a question about a run.
const QUESTION: [&str; 14] = [
    "latency",
    "bandwidth",
    "overhead",
    "eager",
    "machine",
    "map",
    "hosts",
    "rank",
    "host",
    "region",
    "speed",
    "balance",
    "remember",
    "out",
];

/// What the ledger is asked for.
#[derive(Debug, Args)]
pub struct LedgerOptions {
    /// Compare remembered predictions with the runs made since; RUN is then the folder that has them
    /// (default: this one)
    #[arg(long, conflicts_with_all = QUESTION)]
    ledger: bool,

    /// Name the run that tests a remembered prediction (its id as shown by --ledger); may be
    /// repeated
    #[arg(long, value_names = ["ID", "RUN"], num_args = 2, conflicts_with_all = QUESTION)]
    answer: Vec<String>,
}

impl LedgerOptions {
    /// Whether the ledger is asked for.
    pub fn is_given(&self) -> bool {
        self.ledger || !self.answer.is_empty()
    }
}

/// Prints the ledger.
///
/// # Errors
/// Wrong usage: no such prediction, or a run that cannot answer it. Failure: no ledger, or one that
/// cannot be read or written; a run that cannot be read.
pub fn show(options: &LedgerOptions, folder: &Path, as_json: bool) -> Result<(), CommandError> {
    let path = folder.join(LEDGER_FILE);
    let mut ledger = Ledger::read(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
            CommandError::usage(format!(
                "{}: no such ledger; --remember of whatif, scaling and model creates one beside the run: \
                 name its folder",
                path.display()
            ))
        }
        _ => CommandError::Input(format!("{}: cannot be read: {error}", path.display())),
    })?;
    let mut named = Vec::new();
    for pair in options.answer.chunks_exact(2) {
        named.extend(answer(&ledger, folder, &pair[0], Path::new(&pair[1]))?);
    }
    let written = |answers: &[Answer]| match answers {
        [] => Ok(()),
        answers => ledger::append(&path, &[], answers)
            .map_err(|error| format!("{}: cannot be written: {error}", path.display())),
    };
    written(&named).map_err(CommandError::Output)?;
    ledger.answers.extend(named);
    let mut notes: Vec<String> = ledger.faults.iter().map(ToString::to_string).collect();
    let found = search::search(folder, &ledger);
    notes.extend(found.notes);
    if let Err(why) = written(&found.runs) {
        notes.push(format!("{why}; the runs found now will be searched for again next time"));
    }
    ledger.answers.extend(found.runs);
    ledger.answers.extend(found.rows);
    let score = Score::new(&ledger);
    let shown = LedgerContents { path: &path, score: &score, notes: &notes };
    print_result(as_json, || json(&shown), |colour| screen(&shown, colour))
}

/// The answer that the user names; `None` if the ledger already has it.
fn answer(
    ledger: &Ledger,
    folder: &Path,
    id: &str,
    run: &Path,
) -> Result<Option<Answer>, CommandError> {
    let asked = format!("--answer {id} {}", run.display());
    let prediction = ledger.prediction(id).ok_or_else(|| {
        CommandError::usage(format!(
            "{asked}: no prediction has this id; `gammachi whatif --ledger` lists them"
        ))
    })?;
    let name = search::name_in(folder, run);
    if ledger.has_answer(id, &name) {
        eprint_message(&format!("{asked}: already in the ledger"));
        return Ok(None);
    }
    let Measured { subject, seconds, begun_ns } =
        search::measure(run, prediction).context(CommandError::Input, &asked)?;
    if begun_ns.is_some_and(|begun| begun <= prediction.at.unix_ns) {
        return Err(CommandError::usage(format!(
            "{asked}: the run is older than the prediction of {}: only later runs can test it",
            prediction.at.utc
        )));
    }
    if let (Some(predicted), Some(p)) = (prediction.subject.p, subject.p)
        && predicted != p
    {
        return Err(CommandError::usage(format!(
            "{asked}: the prediction is for {predicted} ranks, the run has {p}"
        )));
    }
    let differing = prediction.subject.differences(&subject);
    if !differing.is_empty() {
        eprint_message(&format!("{asked}: accepted, although {}", differences(&differing)));
    }
    let at = Instant::now();
    Ok(Some(Answer { prediction: id.to_owned(), at, run: name, seconds, named: true }))
}
