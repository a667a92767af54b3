//! Implements `--remember` of `whatif`, `scaling` and `model`: writes predictions into the ledger
//! of the folder that holds their source.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::{CommandError, Context, eprint_message};
use crate::ledger::{self, LEDGER_FILE, Ledger, Prediction, Predictor, Subject};
use crate::shell_word::shell_word;
use crate::trace::run_json::Instant;

/// Probability with which the intervals of all three commands are meant to hold.
const COVERAGE: f64 = 0.9;

#[derive(Debug, Clone)]
pub(super) struct NewPrediction {
    pub question: String,
    /// The runs that it is about.
    pub subject: Subject,
    /// Columns of a table of runs whose sum is predicted.
    pub quantity: Vec<String>,
    pub seconds: f64,
    pub interval_s: Option<(f64, f64)>,
}

/// Records predictions that were made from a run, a study or a table, and prints where. Predictions
/// that the ledger already has are not recorded again.
pub(super) fn remember(
    by: Predictor,
    source: &Path,
    predictions: Vec<NewPrediction>,
) -> Result<(), CommandError> {
    let (folder, name) = folder_and_name(source)?;
    let path = folder.join(LEDGER_FILE);
    let shown = path.display();
    let mut ledger = Ledger::read_or_empty(&path)
        .context(CommandError::Input, format_args!("--remember: {shown}: cannot be read"))?;
    let mut new = Vec::new();
    for made in predictions {
        let prediction = Prediction {
            id: ledger.new_id(),
            at: Instant::now(),
            by,
            question: made.question,
            source: name.clone(),
            subject: made.subject,
            quantity: made.quantity,
            seconds: made.seconds,
            lo_s: made.interval_s.map(|(lo, _)| lo),
            hi_s: made.interval_s.map(|(_, hi)| hi),
            coverage: COVERAGE,
        };
        if let Some(known) = ledger.predictions.iter().find(|other| prediction.repeats(other)) {
            eprint_message(&format!("{} is in {shown} already", known.id));
            continue;
        }
        ledger.predictions.push(prediction.clone());
        new.push(prediction);
    }
    if new.is_empty() {
        return Ok(());
    }
    ledger::append(&path, &new, &[])
        .context(CommandError::Output, format_args!("--remember: {shown}: cannot be written"))?;
    let ids: Vec<&str> = new.iter().map(|prediction| prediction.id.as_str()).collect();
    eprint_message(&format!(
        "remembered in {} as {}; gammachi whatif --ledger {} compares it with later runs",
        path.display(),
        ids.join(", "),
        shell_word(&folder.display().to_string())
    ));
    Ok(())
}

/// The folder that contains a run, a study or a table, and its name there.
fn folder_and_name(source: &Path) -> Result<(PathBuf, String), CommandError> {
    // `.` and `..` have a name only once resolved.
    let named = match source.file_name() {
        Some(_) => Ok(source.to_owned()),
        None => fs::canonicalize(source),
    };
    let named =
        named.context(CommandError::Input, format_args!("--remember: {}", source.display()))?;
    let folder = match named.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let name = named.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((folder, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_path_into_folder_and_name() {
        let place = |text: &str| {
            let (folder, name) = folder_and_name(Path::new(text)).unwrap();
            (folder.display().to_string(), name)
        };
        assert_eq!(place("a.gammachi"), (".".to_owned(), "a.gammachi".to_owned()));
        assert_eq!(place("runs/a.gammachi/"), ("runs".to_owned(), "a.gammachi".to_owned()));
        let here = std::env::current_dir().unwrap();
        let parent = here.parent().unwrap().display().to_string();
        let own = here.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(place("."), (parent, own));
    }
}
