//! `gammachi scaling`: fits the efficiency model to a study, runs or a table.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::error::{CommandError, print_result};
use super::figure_files::FigureOptions;
use super::observed::{Observed, observe};
use super::remember::{NewPrediction, remember};
use super::structural_runs::add_structure;
use crate::ledger::{Predictor, Subject};
use crate::models::Observations;
use crate::models::expression::Expression;
use crate::models::observations::TAU_S;
use crate::models::scaling::{Definition, Form, Options, PointChoice, Scaling, Weights, label};
use crate::present::scaling::{error_sentence, figures, json, screen};

/// Predicts how far a program scales, from small runs alone.
///
/// Fits (1-ε')/ε' = c0 + c1·p + c2·p² over the rank count p, one fit per combination of parameters,
/// to the fastest of repeated runs. Prints computation and lost-time terms, the rank count at which
/// time stops falling, rank counts for efficiency targets, and what the data do not support. Times
/// at the rank counts of --predict come from many sums of terms, weighted by how well they explain
/// the points (--form), each with an interval.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gammachi scaling STUDY --predict 64,128\n  \
                  gammachi scaling p1.gammachi p2.gammachi p4.gammachi --region solve\n  \
                  gammachi scaling table.csv --anchor-one --points 3 --figures plots\n  \
                  gammachi scaling weak.csv --work \"N^3\"\n\nA table has the columns p, tau_s, \
                  sum_gamma_s, a column for each parameter, and rep if runs\nare repeated; \
                  `gammachi export --to table` writes one. Figures: docs/guide/predict.md; JSON keys: \
                  docs/reference/predictions-json.md.")]
pub struct ScalingArguments {
    /// A study, run directories, or one CSV table
    #[arg(value_name = "STUDY|RUN|TABLE.csv", required = true)]
    sources: Vec<PathBuf>,

    /// Restrict every figure to a region that the program marked with gammachi.h
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// Reference rank count, whose Σγ is the numerator of ε' [default: the smallest]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(1..))]
    p1: Option<u32>,

    /// Assume ε'(1) = 1 as one more point: two measured rank counts are then enough
    #[arg(long)]
    anchor_one: bool,

    /// Fit only the first K points from p1 on, or only the rank counts listed (`40,50,60`); the
    /// others are held back and compared with the prediction
    #[arg(long, value_name = "K|P,P…", value_parser = parse_points)]
    points: Option<PointChoice>,

    /// Efficiencies for which to compute rank counts
    #[arg(long, value_name = "EPS,…", value_delimiter = ',', default_value = "0.9,0.5",
          value_parser = parse_efficiency)]
    isoeff: Vec<f64>,

    /// Definition of these efficiencies: Σγ(p1)/(pτ), a/(pτ), or both
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = Definitions::Both)]
    definition: Definitions,

    /// The work as an expression of p, the parameters and flops, for weak scaling: --work "N^3";
    /// --work 1 means that it stays the same
    #[arg(long, value_name = "EXPR", value_parser = Expression::parse)]
    work: Option<Expression>,

    /// Rank counts for which to predict the time
    #[arg(long, value_name = "P,…", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..))]
    predict: Vec<u32>,

    /// The machine of the runs, measured by `gammachi calibrate`: how long messages take there. Without
    /// it, predictions from what the program does know only the runs' own times
    #[arg(long, value_name = "FILE", requires = "predict")]
    machine: Option<PathBuf>,

    /// What predicts times: many sums of terms, weighted by how well they explain the points
    /// (evidence), or a/p + c + d·p of Orii 2009 (three-terms)
    #[arg(long, value_name = "FORM", value_enum, default_value_t = FormName::Evidence)]
    form: FormName,

    /// Residuals to minimise: those of (1-ε')/ε' (plain, as Orii 2009) or relative residuals of τ
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Residuals::Plain)]
    residuals: Residuals,

    /// Record the times that are believed in the ledger beside the data, for `gammachi whatif --ledger`
    #[arg(long, requires = "predict")]
    remember: bool,

    #[command(flatten)]
    figures: FigureOptions,

    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Definitions {
    Reference,
    Asymptotic,
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormName {
    Evidence,
    ThreeTerms,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Residuals {
    Plain,
    Relative,
}

/// Why the value of an option is invalid; clap names the option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum ValueError {
    #[error("at least two points are needed")]
    OnePoint,
    #[error("give a number of points (3) or rank counts (40,50,60)")]
    Points,
    #[error("an efficiency lies between 0 and 1, such as 0.5")]
    Efficiency,
}

fn parse_points(text: &str) -> Result<PointChoice, ValueError> {
    let numbers: Result<Vec<u32>, _> = text.split(',').map(|word| word.trim().parse()).collect();
    match numbers.as_deref() {
        Ok([number]) if *number >= 2 => Ok(PointChoice::First(*number as usize)),
        Ok([_]) => Err(ValueError::OnePoint),
        Ok(list) => Ok(PointChoice::Listed(list.to_vec())),
        Err(_) => Err(ValueError::Points),
    }
}

fn parse_efficiency(text: &str) -> Result<f64, ValueError> {
    match text.parse::<f64>() {
        Ok(eps) if eps > 0.0 && eps < 1.0 => Ok(eps),
        _ => Err(ValueError::Efficiency),
    }
}

/// Prints the model.
///
/// # Errors
/// Nothing can be read, or the table does not allow a fit; a figure cannot be written.
pub fn scaling(arguments: &ScalingArguments) -> Result<(), CommandError> {
    let Observed { table, notes, subjects, directories, counted } =
        observe(&arguments.sources, arguments.region.as_deref())?;
    let options = Options {
        p1: arguments.p1,
        anchor_one: arguments.anchor_one,
        points: arguments.points.clone().unwrap_or_default(),
        weights: match arguments.residuals {
            Residuals::Plain => Weights::Plain,
            Residuals::Relative => Weights::Relative,
        },
        targets: arguments.isoeff.clone(),
        definitions: match arguments.definition {
            Definitions::Reference => vec![Definition::Reference],
            Definitions::Asymptotic => vec![Definition::Asymptotic],
            Definitions::Both => vec![Definition::Reference, Definition::Asymptotic],
        },
        work: arguments.work.clone(),
        predict: arguments.predict.clone(),
        form: match arguments.form {
            FormName::Evidence => Form::Evidence,
            FormName::ThreeTerms => Form::ThreeTerms,
        },
    };
    let mut scaling = Scaling::new(&table, &options)
        .map_err(|error| CommandError::Input(error_sentence(&error)))?;
    if arguments.form == FormName::Evidence && arguments.region.is_none() {
        let machine = arguments.machine.as_deref();
        add_structure(&mut scaling, &table, (&directories, &counted), machine)?;
    }
    arguments.figures.write(|| figures(&scaling))?;
    print_result(
        arguments.json,
        || json(&scaling, &notes),
        |colour| screen(&scaling, &notes, colour),
    )?;
    match arguments.remember {
        true => {
            let predicted = predictions(&scaling, &table, &subjects)?;
            remember(Predictor::Scaling, &arguments.sources[0], predicted)
        }
        false => Ok(()),
    }
}

/// The times that were predicted and have not been measured.
fn predictions(
    scaling: &Scaling,
    table: &Observations,
    subjects: &[Subject],
) -> Result<Vec<NewPrediction>, CommandError> {
    let mut all = Vec::new();
    for fit in &scaling.fits {
        let params = &fit.series.params;
        let open = |name: &&str| params.iter().all(|(known, _)| known != name);
        let subject = Subject {
            params: params.clone(),
            open: table.parameters().into_iter().filter(open).map(str::to_owned).collect(),
            ..Subject::shared(subjects)
        };
        for predicted in fit.predictions.iter().filter(|predicted| predicted.measured_s.is_none()) {
            let by_structure = fit.structure.as_ref().and_then(|by| by.as_ref().ok());
            let (seconds, interval_s) = match by_structure.and_then(|by| by.believed(predicted.p)) {
                Some(believed) => (believed.tau_s, Some(believed.interval_s)),
                None => {
                    let interval = predicted.interval_s.map(|interval| (interval.lo, interval.hi));
                    (predicted.tau_s.as_ref().ok().copied(), interval)
                }
            };
            // Only an interval is known.
            let Some(seconds) = seconds else { continue };
            let p = ("p".to_owned(), predicted.p.to_string());
            all.push(NewPrediction {
                question: label(&[&[p], params.as_slice()].concat()),
                subject: Subject { p: Some(predicted.p), ..subject.clone() },
                quantity: vec![TAU_S.to_owned()],
                seconds,
                interval_s,
            });
        }
    }
    match all.is_empty() {
        false => Ok(all),
        true => Err(CommandError::input(
            "--remember: all that was asked for is measured already, or only its interval is known",
        )),
    }
}
