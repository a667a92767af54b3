//! Reads the records of runs from what the user names: run directories, studies, baselines and
//! their documents.

use std::path::{Path, PathBuf};

use super::error::{CommandError, eprint_message};
use crate::comparison::{RunRecord, baseline};
use crate::ledger::is_same_value;
use crate::trace::study_json::{StudyJson, StudyRunState};

/// Selects some of the named runs; shared by the commands that compare.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct RunFilter {
    /// Only runs with this rank count or parameter (`--only p=4 --only N=1000`), or on this machine: `host`,
    /// `hosts`, `cores` (of a host), `processor` (a part of its model), `counter` (MHz)
    #[arg(long = "only", value_name = "NAME=VALUE", value_parser = pair)]
    pub pairs: Vec<(String, String)>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("not NAME=VALUE, such as p=4".to_owned()),
    }
}

impl RunFilter {
    fn matches(&self, record: &RunRecord) -> bool {
        self.pairs.iter().all(|(name, value)| match record.params.get(name) {
            Some(found) => is_same_value(found, value),
            None if name == "p" => is_same_value(&record.ranks.to_string(), value),
            None => record.machine.has(name, value),
        })
    }

    pub fn read(&self, sources: &[PathBuf]) -> Result<Vec<RunRecord>, CommandError> {
        let mut records: Vec<RunRecord> = Vec::new();
        for source in sources {
            for record in read(source)?.into_iter().filter(|record| self.matches(record)) {
                match records.iter().any(|known| record.is_same_run(known)) {
                    true => eprint_message(&format!("{}: named twice, counted once", record.run)),
                    false => records.push(record),
                }
            }
        }
        match records.is_empty() {
            true => {
                let names: Vec<String> = sources.iter().map(|s| s.display().to_string()).collect();
                let names = names.join(", ");
                Err(CommandError::usage(match self.pairs.is_empty() {
                    true => format!("{names}: no finished run in it"),
                    false => format!("--only: no run in {names} has these values"),
                }))
            }
            false => Ok(records),
        }
    }
}

fn read(source: &Path) -> Result<Vec<RunRecord>, CommandError> {
    if source.is_file() && source.extension().is_some_and(|ending| ending == "json") {
        return Ok(vec![baseline::read_file(source)?]);
    }
    if StudyJson::is_in(source) {
        let study = StudyJson::read(source)?;
        let finished = study.runs.iter().filter(|run| run.state == StudyRunState::Finished);
        let reduced = finished.map(|run| RunRecord::of_directory(&source.join(&run.directory)));
        return Ok(reduced.collect::<Result<_, _>>()?);
    }
    if baseline::is_one(source) {
        let kept = baseline::read(source)?;
        return Ok(kept.into_iter().map(|kept| kept.record).collect());
    }
    Ok(vec![RunRecord::of_directory(source)?])
}
