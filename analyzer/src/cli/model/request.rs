//! Interprets the command line for a given table: what is modelled, in which variables, with which
//! columns.

use std::path::PathBuf;

use crate::cli::error::CommandError;
use crate::models::Observations;
use crate::models::observations::{P, TAU_S};
use crate::models::regression::{Basis, Condition, Options, RegressionError, Residual};

use super::arguments::{ModelArguments, ResidualName};

/// Column that assigns rows to an envelope.
pub(super) const ENVELOPE: &str = "envelope";

/// A column to model, and its basis.
pub(super) struct PartRequest {
    pub label: String,
    pub response: String,
    pub basis: Option<Basis>,
    pub envelope: bool,
}

/// The options, interpreted for a given table.
pub(super) struct Request {
    pub variables: Vec<String>,
    pub constants: Vec<(String, f64)>,
    /// Parameters that are no variables and vary among rows that are one point.
    pub minimum_over: Vec<String>,
    pub parts: Vec<PartRequest>,
    /// Powers of the dictionary's variables.
    pub powers: Vec<(String, Vec<f64>)>,
    pub two_step: Option<[String; 2]>,
    pub options: Options,
    pub holdout: Vec<Condition>,
    pub predict: Option<PathBuf>,
    pub compare: bool,
    pub own_dictionary: bool,
}

impl Request {
    /// Interprets the command line for a table.
    ///
    /// # Errors
    /// Wrong usage: an option that cannot be parsed, or that names something the table does not
    /// have.
    pub fn new(arguments: &ModelArguments, table: &Observations) -> Result<Self, CommandError> {
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
            _ => return Err(usage("--two-step: name two variables, such as p,N".into())),
        };
        let parts = parts(arguments, table)?;
        let variables = match arguments.vars.is_empty() {
            false => arguments.vars.iter().map(|name| name.trim().to_owned()).collect(),
            true => variables(table, &parts, &constants)?,
        };
        for (name, value) in &constants {
            if variables.contains(name) {
                return Err(usage(format!("--const: {name} is a variable, too; give it once")));
            }
            let column = if table.has(name) { table.numbers(name) } else { Ok(Vec::new()) };
            let other = column?.iter().position(|given| given != value);
            if let Some(row) = other {
                return Err(usage(format!(
                    "--const {name}={value}: {} of {} has another {name}; make it a variable, or leave such rows out",
                    table.rows()[row].origin,
                    table.source()
                )));
            }
        }
        let minimum_over = minimum_over(table, &variables, &constants, &parts)?;
        if let ([name, ..], true) = (minimum_over.as_slice(), arguments.vars.is_empty()) {
            return Err(usage(format!(
                "--vars: {name} is not a variable, but varies among the rows of {} that have the same {}. Use {name} in \
                 the basis, or give --vars {} to model the smallest time over all values of {name}",
                table.source(),
                variables.join(" and "),
                variables.join(",")
            )));
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
            minimum_over,
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
}

/// The parameters that rows of one point do not agree in.
fn minimum_over(
    table: &Observations,
    variables: &[String],
    constants: &[(String, f64)],
    parts: &[PartRequest],
) -> Result<Vec<String>, CommandError> {
    if variables.iter().any(|name| !table.has(name)) {
        return Ok(Vec::new());
    }
    let keys: Vec<&str> = variables.iter().map(String::as_str).collect();
    let groups = table.groups(&keys)?;
    let modelled = parts.iter().map(|part| part.response.as_str());
    let known: Vec<&str> =
        constants.iter().map(|(name, _)| name.as_str()).chain(modelled).collect();
    let varying = table.varying_within(&groups, &keys)?;
    let unknown = varying.into_iter().filter(|name| !known.contains(name) && *name != ENVELOPE);
    Ok(unknown.map(str::to_owned).collect())
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
    let basis = |text: &str| Basis::parse(text).map_err(RegressionError::Basis);
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
                // Orii et al. use other columns for each part.
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

/// `tau_s`, or the name of the only metric of an Extra-P file.
fn default_response(table: &Observations) -> String {
    match table.names().last() {
        Some(last) if !table.has(TAU_S) && table.source().ends_with("txt") => last.clone(),
        Some(last) if !table.has(TAU_S) && table.source().ends_with("jsonl") => last.clone(),
        _ => TAU_S.to_owned(),
    }
}

/// The names that occur in the basis and in the table; without a basis, parameters and rank count.
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
            .filter(|name| !responses.contains(name) && *name != ENVELOPE && !constant(name))
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
