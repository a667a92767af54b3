//! `gammachi model`: fits a model to the times of a table of runs, and predicts.

mod fitting;
pub(super) mod input;
mod predictions;
mod request;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::error::{CommandError, eprint_message, print};
use super::figure_files::FigureOptions;
use super::observed::Observed;
use super::output_file;
use super::remember::remember;
use crate::formats::extra_p;
use crate::ledger::Predictor;
use crate::models::Observations;
use crate::models::regression::{Method, RegressionError};
use crate::present::model::{self, expression};
use request::Request;

/// Models times as sums of basis functions and predicts, with intervals.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gammachi model table.csv --response tau_s --vars p,N \\\n      \
                  --basis \"N^3/p, N^2/p, -N, 1\" --predict large.csv\n  \
                  gammachi model hpl.csv --basis hpl --vars P,Q,N --const NB=192 --holdout \"N>60000\"\n  \
                  gammachi model table.csv --vars p,N --dictionary --compare\n  \
                  gammachi model pdd.csv --vars p,N --basis eigenexa --parts compute,mpi\n  \
                  gammachi model STUDY --dictionary --parts compute,mpi --predict large.csv\n\n\
                  The table is CSV, or Extra-P's text (.txt) or JSON lines (.jsonl). Rows with equal \
                  variables\nare repetitions; the smallest time counts. docs/guide/predict.md explains every \
                  figure,\ndocs/reference/predictions-json.md every key of --json."
)]
pub struct ModelArguments {
    /// Table of runs (CSV, Extra-P text or JSON lines), a study, or run directories
    #[arg(value_name = "TABLE|STUDY|RUN", required = true)]
    pub inputs: Vec<PathBuf>,

    /// For runs and studies: restrict every figure to a region marked with gammachi.h [default: the
    /// study's]
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,

    /// Column to model [default: tau_s]
    #[arg(long, value_name = "COLUMN", conflicts_with = "parts")]
    pub response: Option<String>,

    /// Variables: columns of the table [default: those used in the basis, or all parameters]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub vars: Vec<String>,

    /// A constant used in the expressions, such as NB=192
    #[arg(long = "const", value_name = "NAME=VALUE")]
    pub constants: Vec<String>,

    /// Basis functions: expressions separated by commas (`N^3/p, log2(p), -N, 1`; a leading minus
    /// makes a signed column), or `hpl` (P, Q, N, NB), `eigenexa`, `eigenexa-compute`,
    /// `eigenexa-mpi` (N, p). With --parts, `mpi: …` gives a part its own
    #[arg(long, value_name = "COLUMNS", conflicts_with = "dictionary")]
    pub basis: Vec<String>,

    /// Use powers and logarithms of the variables as basis
    #[arg(long)]
    pub dictionary: bool,

    /// Powers of a variable in the dictionary, such as N=0,1,1.5,2
    #[arg(long, value_name = "NAME=POWERS", requires = "dictionary")]
    pub powers: Vec<String>,

    /// How coefficients are determined
    #[arg(long, value_enum, default_value_t = MethodName::Robust)]
    pub method: MethodName,

    /// Residuals to minimise [default: relative for robust, sparse and nnls, else absolute]
    #[arg(long, value_enum)]
    pub residual: Option<ResidualName>,

    /// Method 2 of Orii et al.: select in each of two variables separately, multiply the survivors,
    /// select again
    #[arg(long, value_name = "A,B", value_delimiter = ',', conflicts_with = "parts")]
    pub two_step: Vec<String>,

    /// Columns to model separately and to add, such as compute,mpi; for runs and studies, compute
    /// is sum_gamma_s/p and mpi is chi_s
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub parts: Vec<String>,

    /// Fit the lower and the upper envelope separately and average them: for every part, or for
    /// those named. A column `envelope` (lower, upper) assigns the rows; without it, the side of a
    /// fit to all rows decides
    #[arg(long, value_name = "PARTS", value_delimiter = ',', num_args = 0..=1, require_equals = true)]
    pub envelope: Option<Vec<String>>,

    /// CSV of points to predict, with the variables as columns
    #[arg(long, value_name = "CSV")]
    pub predict: Option<PathBuf>,

    /// Record the times of --predict in the ledger beside the data, for `gammachi whatif --ledger`
    #[arg(long, requires = "predict")]
    pub remember: bool,

    /// Points to hold back and predict, such as "p>1024"; if several conditions are given, all must
    /// hold
    #[arg(long, value_name = "CONDITION")]
    pub holdout: Vec<String>,

    /// Compare all methods at held-back points
    #[arg(long)]
    pub compare: bool,

    /// Replicas of the bootstrap; 0 for no intervals
    #[arg(long, value_name = "NUMBER", default_value_t = 200)]
    pub replicas: usize,

    /// Seed of the replicas
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// Print a JSON document
    #[arg(long, conflicts_with = "emit")]
    pub json: bool,

    /// Print the model as an expression instead
    #[arg(long, value_enum)]
    pub emit: Option<LanguageName>,

    /// Where pictures go
    #[command(flatten)]
    pub figures: FigureOptions,

    /// Write the table for Extra-P: text, or JSON lines if the name ends in .jsonl
    #[arg(long, value_name = "FILE")]
    pub write_extra_p: Option<PathBuf>,
}

/// Methods, as named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MethodName {
    /// Robust (Huber) fit, averaged over column subsets by AICc weight
    Robust,
    /// As robust, but only the best support
    Sparse,
    /// The linear program of Orii et al., ties broken by least squares
    Minimax,
    /// Non-negative least squares
    Nnls,
    /// Least absolute residuals
    L1,
    /// Positive lasso with cross-validation
    Lasso,
    /// Least squares with coefficients of either sign
    Lsm,
}

/// Residuals, as named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ResidualName {
    /// Relative to the time
    Relative,
    /// In seconds
    Absolute,
}

/// Languages, as named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LanguageName {
    /// A Python function
    Python,
    /// A Rust function
    Rust,
    /// A formula
    Latex,
}

impl MethodName {
    fn method(self) -> Method {
        match self {
            Self::Robust => Method::Robust,
            Self::Sparse => Method::Sparse,
            Self::Minimax => Method::Minimax,
            Self::Nnls => Method::Nnls,
            Self::L1 => Method::L1,
            Self::Lasso => Method::Lasso,
            Self::Lsm => Method::Lsm,
        }
    }
}

fn failed(error: impl std::fmt::Display) -> CommandError {
    CommandError::failed(error)
}

/// An error in the command line is wrong usage; an error in the data is a failure.
fn regression_error(error: RegressionError) -> CommandError {
    let sentence = model::error_sentence(&error);
    match error {
        RegressionError::Basis(_)
        | RegressionError::UnknownName { .. }
        | RegressionError::RankCount { .. }
        | RegressionError::UnknownVariable { .. }
        | RegressionError::FewValues { .. }
        | RegressionError::NothingToHoldBack => CommandError::usage(sentence),
        RegressionError::Observations(_)
        | RegressionError::NoValue { .. }
        | RegressionError::TooFewPoints { .. }
        | RegressionError::ConstantVariable { .. }
        | RegressionError::NotDetermined { .. }
        | RegressionError::Solver { .. } => CommandError::failed(sentence),
    }
}

/// Models a table, or writes it in another form.
///
/// # Errors
/// Wrong usage for options that contradict each other or name something the table does not have;
/// failure for a table that cannot be read or does not support a model.
pub fn model(arguments: &ModelArguments) -> Result<(), CommandError> {
    let Observed { table, notes, subjects } = input::read(arguments)?;
    notes.iter().for_each(|note| eprint_message(note));
    let request = Request::new(arguments, &table)?;
    if let Some(path) = &arguments.write_extra_p {
        write_extra_p(path, &table, &request)?;
    }
    let findings = request.findings(&table)?;
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
        None if arguments.json => model::json(&findings),
        None => model::screen(&findings),
    };
    print(&text)?;
    match arguments.remember {
        true => {
            let predicted = predictions::predictions(&findings, &request, &table, &subjects)?;
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
    output_file::write(path, &text.map_err(failed)?)
}
