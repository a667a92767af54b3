//! What the structure of runs predicts, where the rank count alone is asked for.

use crate::cli::error::CommandError;
use crate::cli::observed::Observed;
use crate::cli::structural_runs::add_structure;
use crate::models::observations::{P, TAU_S};
use crate::models::regression::Findings;
use crate::models::scaling::{Options, Scaling, Structural};

use super::arguments::ModelArguments;
use super::predictions::rank_count;
use super::request::Request;

/// The same times that `gammachi scaling` predicts from what the runs do; `None` where other variables than p or
/// other quantities than τ are modelled, and of tables.
///
/// # Errors
/// A file that is named cannot be read.
pub(super) fn predicted(
    arguments: &ModelArguments,
    request: &Request,
    findings: &Findings,
    observed: &Observed,
) -> Result<Option<Structural>, CommandError> {
    let Observed { table, directories, counted, .. } = observed;
    let parts: Vec<&str> = request.parts.iter().map(|part| part.response.as_str()).collect();
    let is_time_over_p = request.variables == [P] && parts == [TAU_S];
    let predict: Vec<u32> = findings.predictions.iter().filter_map(rank_count).collect();
    if !is_time_over_p || arguments.region.is_some() || predict.is_empty() {
        return Ok(None);
    }
    let options = Options { predict, ..Options::default() };
    let Ok(mut scaling) = Scaling::new(table, &options) else { return Ok(None) };
    add_structure(&mut scaling, table, (directories, counted), arguments.machine.as_deref())?;
    match scaling.fits.as_mut_slice() {
        [fit] => Ok(fit.structure.take()),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::labelled_run::tests::run;
    use crate::cli::model::input;
    use crate::synthetic_trace::RunDirectory;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: ModelArguments,
    }

    fn asked(runs: &[RunDirectory], options: &[&str]) -> Option<Structural> {
        let points = tempfile::tempdir().unwrap();
        let file = points.path().join("points.csv");
        std::fs::write(&file, "p\n64\n256\n").unwrap();
        let mut line = vec!["model".to_owned()];
        line.extend(runs.iter().map(|run| run.path().display().to_string()));
        line.extend(["--predict".to_owned(), file.display().to_string()]);
        line.extend(options.iter().map(|option| (*option).to_owned()));
        let Line { arguments } = Line::parse_from(line);
        let observed = input::read(&arguments).unwrap();
        let request = Request::new(&arguments, &observed.table).unwrap();
        let findings = request.findings(&observed.table).unwrap();
        predicted(&arguments, &request, &findings, &observed).unwrap()
    }

    #[test]
    fn times_over_p_are_predicted_from_what_the_runs_do_too() {
        let runs = [2, 4, 8, 16, 32].map(run);
        let structure = asked(&runs, &["--vars", "p"]).unwrap();
        // Ranks of made runs share the cores of one machine, if it is known.
        let by_structure = structure.unwrap();
        assert_eq!(
            by_structure.forecasts.iter().map(|(of, _)| of.p).collect::<Vec<_>>(),
            [64, 256]
        );
        assert!((by_structure.forecasts[0].0.tau_s / 2.24e-3 - 1.0).abs() < 0.03);
        assert!(asked(&runs, &["--vars", "p", "--response", "chi_s"]).is_none());
    }
}
