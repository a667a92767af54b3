//! `gammachi model`: fits a model to the times of a table of runs, and predicts.

mod arguments;
mod fitting;
pub(super) mod input;
mod predictions;
mod request;
mod structure;

use std::path::Path;

use crate::formats::extra_p;
use crate::ledger::Predictor;
use crate::models::Observations;
use crate::present::model::{self, expression};

use super::error::{CommandError, eprint_message, print};
use super::observed::Observed;
use super::output_file;
use super::remember::remember;

use arguments::LanguageName;
pub use arguments::ModelArguments;
use request::Request;

/// Models a table, or writes it in another form.
///
/// # Errors
/// Wrong usage for options that contradict each other or name something the table does not have;
/// failure for a table that cannot be read or does not support a model.
pub fn model(arguments: &ModelArguments) -> Result<(), CommandError> {
    let observed = input::read(arguments)?;
    let Observed { table, notes, subjects, .. } = &observed;
    notes.iter().for_each(|note| eprint_message(note));
    let request = Request::new(arguments, table)?;
    if let Some(path) = &arguments.write_extra_p {
        write_extra_p(path, table, &request)?;
    }
    let findings = request.findings(table)?;
    let structure = structure::predicted(arguments, &request, &findings, &observed)?;
    arguments.figures.write(|| model::pictures(&findings))?;
    let text = match arguments.emit {
        Some(language) => expression::source(
            &findings,
            match language {
                LanguageName::Python => expression::Language::Python,
                LanguageName::Rust => expression::Language::Rust,
                LanguageName::Latex => expression::Language::Latex,
            },
        ),
        None if arguments.json => model::json(&findings, &structure)?,
        None => model::screen(&findings, &structure),
    };
    print(&text)?;
    match arguments.remember {
        true => {
            let predicted =
                predictions::predictions(&findings, &structure, &request, (table, subjects))?;
            remember(Predictor::Model, &arguments.inputs[0], predicted)
        }
        false => Ok(()),
    }
}

fn write_extra_p(path: &Path, table: &Observations, request: &Request) -> Result<(), CommandError> {
    let names: Vec<&str> = request.variables.iter().map(String::as_str).collect();
    let metric = &request.parts[0].response;
    let json_lines = path.extension().is_some_and(|extension| extension == "jsonl");
    let text = match json_lines {
        true => extra_p::write::json_lines(table, &names, metric),
        false => extra_p::write::text(table, &names, metric),
    };
    output_file::write(path, &text?)
}
