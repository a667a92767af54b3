//! `gammachi model`: a table of runs comes in, a model of their time and its predictions go out.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::error::{CommandError, print, say};
use crate::models::observations::{
    Observations, ObservationsError, P, TAU_S, extra_p_json_lines, extra_p_text,
};
use crate::models::regression::{
    Basis, Condition, Findings, Held, Method, Model, Options, Part, Points, Prediction,
    RegressionError, Residual, choose, compare, is_rank_count, points_from, two_step,
};
use crate::present::{model_expression, model_figures, model_json, model_terminal};

/// Models a time as a sum of basis functions, selects them, and predicts with intervals.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gammachi model table.csv --response tau_s --vars p,N \\\n      \
                  --basis \"N^3/p, N^2/p, -N, 1\" --predict large.csv\n  \
                  gammachi model hpl.csv --basis hpl --vars P,Q,N --const NB=192 --holdout \"N>60000\"\n  \
                  gammachi model table.csv --vars p,N --dictionary --compare\n  \
                  gammachi model pdd.csv --vars p,N --basis eigenexa --parts compute,mpi\n\n\
                  The table is CSV, or Extra-P's text (.txt) or JSON lines (.jsonl). Rows that agree in \
                  the\nvariables are repetitions; the smallest time counts. docs/model.md explains every \
                  figure\nand every key of --json."
)]
pub struct ModelArguments {
    /// Table of runs (CSV, Extra-P text or JSON lines), or recorded runs or a study of them
    #[arg(value_name = "TABLE|STUDY|RUN", required = true)]
    pub inputs: Vec<PathBuf>,

    /// Column to model [default: tau_s]
    #[arg(long, value_name = "COLUMN", conflicts_with = "parts")]
    pub response: Option<String>,

    /// Variables, columns of the table [default: those that the basis names, or all parameters]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub vars: Vec<String>,

    /// A constant of the expressions, such as NB=192
    #[arg(long = "const", value_name = "NAME=VALUE")]
    pub constants: Vec<String>,

    /// Basis functions: expressions separated by commas (`N^3/p, log2(p), -N, 1`; a leading minus
    /// makes a signed column), or `hpl` (P, Q, N, NB), `eigenexa`, `eigenexa-compute`,
    /// `eigenexa-mpi` (N, p). With --parts, `mpi: …` gives a part its own
    #[arg(long, value_name = "COLUMNS", conflicts_with = "dictionary")]
    pub basis: Vec<String>,

    /// Take powers and logarithms of the variables as basis
    #[arg(long)]
    pub dictionary: bool,

    /// Powers of a variable in the dictionary, such as N=0,1,1.5,2
    #[arg(long, value_name = "NAME=POWERS", requires = "dictionary")]
    pub powers: Vec<String>,

    /// How coefficients are found
    #[arg(long, value_enum, default_value_t = MethodName::Robust)]
    pub method: MethodName,

    /// What is made small [default: relative for robust, sparse and nnls, else absolute]
    #[arg(long, value_enum)]
    pub residual: Option<ResidualName>,

    /// The paper's Method 2: select in each of two variables apart, multiply the survivors, select
    /// again
    #[arg(long, value_name = "A,B", value_delimiter = ',', conflicts_with = "parts")]
    pub two_step: Vec<String>,

    /// Columns to model apart and to add, such as compute,mpi
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub parts: Vec<String>,

    /// Fit the lower and the upper envelope apart and average them: of every part, or of those named.
    /// A column `envelope` (lower, upper) says which row belongs to which, else the side of a fit to
    /// all
    #[arg(long, value_name = "PARTS", value_delimiter = ',', num_args = 0..=1, require_equals = true)]
    pub envelope: Option<Vec<String>>,

    /// CSV of points to predict, with the variables as columns
    #[arg(long, value_name = "CSV")]
    pub predict: Option<PathBuf>,

    /// Points to hold back and predict, such as "p>1024"; several: all must hold
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

    /// Write pictures (SVG) into this directory
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,

    /// Write the table for Extra-P: text, or JSON lines where the name ends in .jsonl
    #[arg(long, value_name = "FILE")]
    pub write_extra_p: Option<PathBuf>,
}

/// Methods as they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MethodName {
    /// Huber weights, candidate supports by positive lasso and neighbours, their mean by AICc
    Robust,
    /// As robust, but the best support alone
    Sparse,
    /// The paper's linear program, ties broken by least squares
    Minimax,
    /// Non-negative least squares
    Nnls,
    /// Least absolute residuals
    L1,
    /// Positive lasso with cross-validation
    Lasso,
    /// Least squares without a sign
    Lsm,
}

/// Residuals as they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ResidualName {
    /// Relative to the time
    Relative,
    /// In seconds
    Absolute,
}

/// Languages as they are written.
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
    CommandError::failed(error.to_string())
}

/// What is wrong with the command line is wrong usage; what is wrong with the data is a failure.
fn regression_error(error: RegressionError) -> CommandError {
    match error {
        RegressionError::Basis(_)
        | RegressionError::UnknownName { .. }
        | RegressionError::Asked(_) => CommandError::usage(error.to_string()),
        _ => CommandError::failed(error.to_string()),
    }
}

/// Models a table, or writes it in another form.
///
/// # Errors
/// Wrong usage for options that do not fit together or name what the table does not have; failure
/// for a table that cannot be read or does not support a model.
pub fn model(arguments: &ModelArguments) -> Result<(), CommandError> {
    let table = read_table(&arguments.inputs)?;
    let request = Request::new(arguments, &table)?;
    if let Some(path) = &arguments.write_extra_p {
        write_extra_p(path, &table, &request)?;
    }
    let findings = request.findings(&table)?;
    if let Some(directory) = &arguments.figures {
        write_pictures(directory, &findings)?;
    }
    let text = match arguments.emit {
        Some(language) => model_expression::source(
            &findings,
            match language {
                LanguageName::Python => model_expression::Language::Python,
                LanguageName::Rust => model_expression::Language::Rust,
                LanguageName::Latex => model_expression::Language::Latex,
            },
        ),
        None if arguments.json => model_json::text(&findings),
        None => model_terminal::screen(&findings),
    };
    print(&text)
}

fn read_table(inputs: &[PathBuf]) -> Result<Observations, CommandError> {
    let [path] = inputs else {
        return Err(CommandError::usage(
            "several inputs: gammachi model reads one table; make one of several runs with gammachi \
             table",
        ));
    };
    if path.is_dir() {
        return Err(CommandError::usage(format!(
            "{}: is a directory; make a table of it with gammachi table",
            path.display()
        )));
    }
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
    let name = path.display().to_string();
    let text = || {
        fs::read_to_string(path)
            .map_err(|source| ObservationsError::Read { source_name: name.clone(), source })
    };
    match extension.to_ascii_lowercase().as_str() {
        "txt" => text().and_then(|text| Observations::from_extra_p_text(&name, &text)),
        "jsonl" => text().and_then(|text| Observations::from_extra_p_json_lines(&name, &text)),
        _ => Observations::read(path),
    }
    .map_err(failed)
}

fn write_extra_p(path: &Path, table: &Observations, request: &Request) -> Result<(), CommandError> {
    let names: Vec<&str> = request.variables.iter().map(String::as_str).collect();
    let metric = &request.parts[0].response;
    let json_lines = path.extension().is_some_and(|extension| extension == "jsonl");
    let text = match json_lines {
        true => extra_p_json_lines(table, &names, metric),
        false => extra_p_text(table, &names, metric),
    };
    write(path, &text.map_err(failed)?)
}

fn write_pictures(directory: &Path, findings: &Findings) -> Result<(), CommandError> {
    fs::create_dir_all(directory)
        .map_err(|error| failed(format!("{}: cannot be made: {error}", directory.display())))?;
    for (name, svg) in model_figures::pictures(findings) {
        let path = directory.join(name);
        write(&path, &svg)?;
        say(&format!("wrote {}", path.display()));
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    fs::write(path, text)
        .map_err(|error| failed(format!("{}: cannot be written: {error}", path.display())))
}

/// A column to model, and with what.
struct PartRequest {
    label: String,
    response: String,
    basis: Option<Basis>,
    envelope: bool,
}

/// The command line, read against the table.
struct Request {
    variables: Vec<String>,
    constants: Vec<(String, f64)>,
    parts: Vec<PartRequest>,
    /// No basis was given: the dictionary and, for one rank count, the three terms.
    powers: Vec<(String, Vec<f64>)>,
    two_step: Option<[String; 2]>,
    options: Options,
    holdout: Vec<Condition>,
    predict: Option<PathBuf>,
    compare: bool,
    own_dictionary: bool,
}

impl Request {
    fn new(arguments: &ModelArguments, table: &Observations) -> Result<Self, CommandError> {
        let usage = |what: String| CommandError::usage(what);
        let constants =
            arguments.constants.iter().map(|text| constant(text)).collect::<Result<Vec<_>, _>>()?;
        let powers =
            arguments.powers.iter().map(|text| powers(text)).collect::<Result<Vec<_>, _>>()?;
        let holdout = arguments
            .holdout
            .iter()
            .flat_map(|text| text.split(','))
            .map(|text| Condition::parse(text).map_err(|what| usage(format!("--holdout: {what}"))))
            .collect::<Result<Vec<_>, _>>()?;
        let two_step = match arguments.two_step.as_slice() {
            [] => None,
            [a, b] if a != b => Some([a.clone(), b.clone()]),
            _ => return Err(usage("--two-step: two variables are wanted, such as p,N".into())),
        };
        let parts = parts(arguments, table)?;
        let variables = match arguments.vars.is_empty() {
            false => arguments.vars.iter().map(|name| name.trim().to_owned()).collect(),
            true => variables(table, &parts, &constants)?,
        };
        for (name, _) in &constants {
            if variables.contains(name) {
                return Err(usage(format!("--const: {name} is a variable, too; give it once")));
            }
        }
        let method = arguments.method.method();
        let residual = match arguments.residual {
            Some(ResidualName::Relative) => Residual::Relative,
            Some(ResidualName::Absolute) => Residual::Absolute,
            None => method.residual(),
        };
        let (replicas, seed) = (arguments.replicas, arguments.seed);
        Ok(Self {
            variables,
            constants,
            parts,
            powers,
            two_step,
            options: Options { method, residual, replicas, seed },
            holdout,
            predict: arguments.predict.clone(),
            compare: arguments.compare,
            own_dictionary: arguments.dictionary,
        })
    }

    fn findings(&self, table: &Observations) -> Result<Findings, CommandError> {
        let (fitted, held_rows) = self.split(table)?;
        let mut model = Model { method: self.options.method, parts: Vec::new() };
        let mut choice = None;
        let mut steps = None;
        let mut comparison = None;
        for part in &self.parts {
            let points = self.points(&fitted, Some(&part.response))?;
            let basis = self.basis(part, &points, table.source(), &mut steps, &mut choice)?;
            if self.compare && comparison.is_none() {
                let held = match held_rows.as_ref() {
                    Some(held) => Some(self.points(held, Some(&part.response))?),
                    None => None,
                };
                comparison =
                    Some(compare(&points, held.as_ref(), &basis).map_err(regression_error)?);
            }
            match part.envelope {
                false => {
                    let mut fit = self.fit(&points, &basis, table.source())?;
                    fit.label.clone_from(&part.label);
                    model.parts.push(fit);
                }
                true => {
                    let (lower, upper) = self.envelopes(&fitted, part, &points, &basis, table)?;
                    for (points, side) in [(lower, "lower"), (upper, "upper")] {
                        let mut fit = self.fit(&points, &basis, table.source())?;
                        fit.label = format!("{} {side}", part.label).trim().to_owned();
                        fit.factor = 0.5;
                        model.parts.push(fit);
                    }
                }
            }
        }
        let predictions = match &self.predict {
            Some(path) => self.predictions(&model, path)?,
            None => Vec::new(),
        };
        let held = held_rows.map(|rows| self.held(&model, &rows)).transpose()?;
        let responses: Vec<&str> = self.parts.iter().map(|part| part.response.as_str()).collect();
        Ok(Findings {
            source: table.source().to_owned(),
            rows: fitted.rows().len(),
            response: responses.join(" + "),
            model,
            predictions,
            held,
            comparison,
            choice,
            two_step: steps,
        })
    }

    fn points(&self, table: &Observations, response: Option<&str>) -> Result<Points, CommandError> {
        points_from(table, response, &self.variables, &self.constants).map_err(regression_error)
    }

    fn fit(&self, points: &Points, basis: &Basis, source: &str) -> Result<Part, CommandError> {
        Part::fit(points, basis, &self.options, source).map_err(regression_error)
    }

    /// The columns of a part: given, found by Method 2, or chosen among models.
    fn basis(
        &self,
        part: &PartRequest,
        points: &Points,
        source: &str,
        steps: &mut Option<crate::models::regression::TwoStep>,
        choice: &mut Option<(usize, crate::models::regression::Comparison)>,
    ) -> Result<Basis, CommandError> {
        if let Some([a, b]) = &self.two_step {
            let given = part.basis.as_ref();
            let found = two_step(points, [a, b], given, self.options.method, source)
                .map_err(regression_error)?;
            let basis = found.basis.clone();
            *steps = Some(found);
            return Ok(basis);
        }
        let dictionary = || Basis::dictionary(&self.variables, &self.powers);
        let own = match &part.basis {
            Some(basis) => Some(basis.clone()),
            None if self.own_dictionary => Some(dictionary()),
            None => None,
        };
        // Strong scaling in one rank count: section A's model is offered first.
        if let [variable] = self.variables.as_slice()
            && is_rank_count(variable)
            && self.options.method == Method::Robust
        {
            let bases = [Basis::three_terms(variable), own.clone().unwrap_or_else(dictionary)];
            if let Some((chosen, scores)) = choose(points, &bases, self.options.method) {
                *choice = Some((chosen, scores));
                return Ok(bases[chosen].clone());
            }
            return Ok(own.unwrap_or_else(|| Basis::three_terms(variable)));
        }
        own.ok_or_else(|| {
            CommandError::usage(
                "--basis or --dictionary is wanted: which functions of the variables the time may be \
                 a sum of",
            )
        })
    }

    /// Rows to fit, and rows to hold back.
    fn split(
        &self,
        table: &Observations,
    ) -> Result<(Observations, Option<Observations>), CommandError> {
        if self.holdout.is_empty() {
            return Ok((table.clone(), None));
        }
        let columns: Vec<Vec<f64>> = self
            .holdout
            .iter()
            .map(|condition| table.numbers(&condition.variable).map_err(failed))
            .collect::<Result<_, _>>()?;
        let out = |row: &usize| {
            self.holdout
                .iter()
                .zip(&columns)
                .all(|(condition, column)| condition.holds(column[*row]))
        };
        let (held, kept): (Vec<usize>, Vec<usize>) = (0..table.rows().len()).partition(out);
        if held.is_empty() || kept.is_empty() {
            let what = if held.is_empty() { "no row" } else { "every row" };
            return Err(CommandError::usage(format!(
                "--holdout: {what} of {} meets the condition",
                table.source()
            )));
        }
        Ok((table.select(&kept), Some(table.select(&held))))
    }

    fn held(&self, model: &Model, rows: &Observations) -> Result<Held, CommandError> {
        // Parts are added: so are their measured times, each the minimum of its repetitions.
        let mut points: Option<Points> = None;
        for part in &self.parts {
            let one = self.points(rows, Some(&part.response))?;
            match &mut points {
                None => points = Some(one),
                Some(sum) => {
                    for (time, more) in sum.times.iter_mut().zip(&one.times) {
                        *time += more;
                    }
                }
            }
        }
        let points = points.unwrap_or_default();
        let predictions = model.predict(&points).map_err(regression_error)?;
        Ok(Held { points, predictions })
    }

    fn predictions(&self, model: &Model, path: &Path) -> Result<Vec<Prediction>, CommandError> {
        let table = Observations::read(path).map_err(failed)?;
        let points = self.points(&table, None)?;
        model.predict(&points).map_err(regression_error)
    }

    /// Points of the lower and of the upper envelope.
    fn envelopes(
        &self,
        table: &Observations,
        part: &PartRequest,
        points: &Points,
        basis: &Basis,
        whole: &Observations,
    ) -> Result<(Points, Points), CommandError> {
        if table.has("envelope") {
            let sides = table.texts("envelope").map_err(failed)?;
            if let Some(row) = sides.iter().position(|side| !matches!(*side, "lower" | "upper")) {
                return Err(failed(format!(
                    "{}: envelope is {:?}; lower or upper is wanted",
                    table.place(row),
                    sides[row]
                )));
            }
            let of = |side: &str| -> Vec<usize> {
                (0..sides.len()).filter(|row| sides[*row] == side).collect()
            };
            let points = |rows: Vec<usize>| match rows.is_empty() {
                true => Err(failed(format!("{}: one envelope has no rows", table.source()))),
                false => self.points(&table.select(&rows), Some(&part.response)),
            };
            return Ok((points(of("lower"))?, points(of("upper"))?));
        }
        let options = Options { replicas: 0, ..self.options.clone() };
        let points = points.sorted();
        let fit = Part::fit(&points, basis, &options, whole.source()).map_err(regression_error)?;
        let (lower, upper): (Vec<usize>, Vec<usize>) =
            (0..points.len()).partition(|&i| points.times[i] < fit.fitted[i]);
        Ok((points.select(&lower), points.select(&upper)))
    }
}

fn constant(text: &str) -> Result<(String, f64), CommandError> {
    let wrong =
        || CommandError::usage(format!("--const: {text:?} is not NAME=VALUE, such as NB=192"));
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let value: f64 = value.trim().parse().map_err(|_| wrong())?;
    let name = name.trim().to_owned();
    if name.is_empty() || !value.is_finite() { Err(wrong()) } else { Ok((name, value)) }
}

fn powers(text: &str) -> Result<(String, Vec<f64>), CommandError> {
    let wrong =
        || CommandError::usage(format!("--powers: {text:?} is not NAME=POWERS, such as N=0,1,2,3"));
    let (name, list) = text.split_once('=').ok_or_else(wrong)?;
    let powers: Vec<f64> = list
        .split(',')
        .map(|power| power.trim().parse::<f64>().ok().filter(|power| power.is_finite()))
        .collect::<Option<_>>()
        .ok_or_else(wrong)?;
    Ok((name.trim().to_owned(), powers))
}

fn parts(
    arguments: &ModelArguments,
    table: &Observations,
) -> Result<Vec<PartRequest>, CommandError> {
    let usage = |what: String| CommandError::usage(what);
    let basis = |text: &str| {
        Basis::parse(text).map_err(|error| usage(RegressionError::Basis(error).to_string()))
    };
    let responses = match arguments.parts.as_slice() {
        [] => vec![arguments.response.clone().unwrap_or_else(|| default_response(table))],
        parts => parts.to_vec(),
    };
    let alone = responses.len() == 1;
    let mut requests = Vec::new();
    for response in responses {
        let label = if alone { String::new() } else { response.clone() };
        let mut own = None;
        for text in &arguments.basis {
            match text.split_once(':') {
                Some((part, columns)) if part.trim() == response => own = Some(basis(columns)?),
                Some((part, _)) if !arguments.parts.iter().any(|name| name == part.trim()) => {
                    return Err(usage(format!(
                        "--basis: {:?} is none of --parts {}",
                        part.trim(),
                        arguments.parts.join(",")
                    )));
                }
                Some(_) => {}
                // The paper has other columns for each part.
                None if text.trim() == "eigenexa" && response.starts_with("compute") => {
                    own = own.or(Some(basis("eigenexa-compute")?));
                }
                None if text.trim() == "eigenexa" && response.starts_with("mpi") => {
                    own = own.or(Some(basis("eigenexa-mpi")?));
                }
                None => own = own.or(Some(basis(text)?)),
            }
        }
        let envelope = match &arguments.envelope {
            None => false,
            Some(names) => names.is_empty() || names.contains(&response),
        };
        requests.push(PartRequest { label, response, basis: own, envelope });
    }
    Ok(requests)
}

/// `tau_s`, or what an Extra-P file calls its only metric.
fn default_response(table: &Observations) -> String {
    match table.names().last() {
        Some(last) if !table.has(TAU_S) && table.source().ends_with("txt") => last.clone(),
        Some(last) if !table.has(TAU_S) && table.source().ends_with("jsonl") => last.clone(),
        _ => TAU_S.to_owned(),
    }
}

/// Names in the columns that the table has; without columns, parameters and rank count.
fn variables(
    table: &Observations,
    parts: &[PartRequest],
    constants: &[(String, f64)],
) -> Result<Vec<String>, CommandError> {
    let constant = |name: &str| constants.iter().any(|(other, _)| other == name);
    let mut found: Vec<String> = Vec::new();
    let bases: Vec<&Basis> = parts.iter().filter_map(|part| part.basis.as_ref()).collect();
    for name in bases.iter().flat_map(|basis| &basis.columns).flat_map(|column| column.names()) {
        if table.has(name) && !constant(name) && !found.iter().any(|other| other == name) {
            found.push(name.to_owned());
        }
    }
    if bases.is_empty() {
        let responses: Vec<&str> = parts.iter().map(|part| part.response.as_str()).collect();
        let parameters = table.parameters().into_iter();
        let all = parameters.chain(table.has(P).then_some(P));
        found = all
            .filter(|name| !responses.contains(name) && *name != "envelope" && !constant(name))
            .filter(|name| {
                table.numbers(name).is_ok_and(|values| values.iter().any(|v| *v != values[0]))
            })
            .map(str::to_owned)
            .collect();
    }
    if found.is_empty() {
        return Err(CommandError::usage(format!(
            "--vars: which of the columns {} are variables?",
            table.names().join(", ")
        )));
    }
    Ok(found)
}
