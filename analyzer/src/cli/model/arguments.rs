//! The arguments of gammachi model.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::error::CommandError;
use crate::cli::figure_files::FigureOptions;
use crate::models::regression::{Method, RegressionError};
use crate::present::model;

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

    /// The machine of the runs, measured by `gammachi calibrate`: how long messages take there, where
    /// p alone, or p and one parameter, is predicted from runs
    #[arg(long, value_name = "FILE", requires = "predict")]
    pub machine: Option<PathBuf>,

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
    pub(super) fn method(self) -> Method {
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

impl From<RegressionError> for CommandError {
    fn from(error: RegressionError) -> Self {
        let sentence = model::error_sentence(&error);
        match error {
            RegressionError::Basis(_)
            | RegressionError::UnknownName { .. }
            | RegressionError::RankCount { .. }
            | RegressionError::UnknownVariable { .. }
            | RegressionError::FewValues { .. }
            | RegressionError::NothingToHoldBack => Self::Usage(sentence),
            RegressionError::Observations(_)
            | RegressionError::NoValue { .. }
            | RegressionError::TooFewPoints { .. }
            | RegressionError::ConstantVariable { .. }
            | RegressionError::NotDetermined { .. }
            | RegressionError::Solver { .. } => Self::Input(sentence),
        }
    }
}
