//! The page of a study: its table of runs and their efficiency model, as one self-contained HTML document.
//! `study.html` is the template; styles and tables are those of a run's page.

use std::path::Path;

use minijinja::context;
use minijinja::value::Value;

use crate::models::observations::Observations;
use crate::models::scaling::{self, Scaling, ScalingError};
use crate::plain_text::printable;
use crate::present::context;
use crate::present::scaling::{drawings, error_sentence, value};
use crate::tables;
use crate::trace::study_json::StudyJson;

use super::markup::{PageError, page_of_tables, safe};
use super::table::laid_out;

#[derive(Debug, Clone, Copy)]
pub struct Study<'a> {
    pub directory: &'a Path,
    /// Its settings: the command, the runs planned.
    pub json: &'a StudyJson,
    /// The region that the figures are for; `None` for whole runs.
    pub region: Option<&'a str>,
    /// The runs that could be read.
    pub table: &'a Observations,
    /// The model, or why there is none.
    pub scaling: Result<&'a Scaling, &'a ScalingError>,
    /// What a reader should know, such as runs left out of the table.
    pub notes: &'a [String],
}

/// Makes the page.
pub fn page(study: &Study) -> Result<String, PageError> {
    let name = study.directory.file_name().map_or_else(
        || study.directory.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    );
    let command = study.json.argv.join(" ");
    let parts = [
        context::shortened(&command),
        context::plural(study.table.rows().len(), "run"),
        study.region.map_or("whole runs".to_owned(), |region| format!("region {region}")),
    ];
    let fits = study.scaling.map(|scaling| fits(scaling, study.notes)).unwrap_or_default();
    let figures: Vec<Value> = study
        .scaling
        .map(|scaling| drawings(scaling).into_iter().map(figure).collect())
        .unwrap_or_default();
    let content = context! {
        fits => fits,
        no_model => study.scaling.err().map(error_sentence).unwrap_or_default(),
        figures => figures,
        runs => study.table.rows().len(),
        table => laid_out(&tables::study::runs(study.table)),
        planned => study.json.runs.len(),
        command => command,
        region => study.region,
        directory => study.directory.display().to_string(),
        notes => study.notes,
    };
    page_of_tables("study.html", [&name, &parts.join(" | ")], content)
}

/// The fits as `gammachi scaling --json` gives them, with their names.
fn fits(scaling: &Scaling, notes: &[String]) -> Vec<Value> {
    let document = value(scaling, notes);
    let documents = document["fits"].as_array().into_iter().flatten();
    let fits = scaling.fits.iter().zip(documents).map(|(fit, document)| {
        let label = scaling::label(&fit.series.params);
        let label = if label.is_empty() { "Scaling".to_owned() } else { printable(&label) };
        let points = laid_out(&tables::scaling::points(fit));
        context! { label => label, points => points, ..Value::from_serialize(document) }
    });
    fits.collect()
}

fn figure((name, figure): (&'static str, crate::present::figure::Figure)) -> Value {
    let caption = match name {
        "tau-chi.svg" => {
            "Each point is a run: elapsed time on the x axis, lost time on the y axis. Runs on a line through the \
             origin have the same efficiency."
        }
        "fit.svg" => "The model is the line fitted to (1 − ε')/ε'.",
        "time.svg" => {
            "Elapsed time over the rank count: measured and, where there is a model, modelled."
        }
        "overhead.svg" => "Lost time over the rank count: measured and modelled.",
        "prediction.svg" => "Expected range: nine in ten runs lie inside the band.",
        _ => "",
    };
    let is_wide = figure.columns > 1;
    context! { svg => safe(figure.svg_for_page()), caption => caption, is_wide => is_wide }
}
