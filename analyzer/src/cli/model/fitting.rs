//! Computes the findings for a request and its table: splits rows, fits parts, predicts points.

use std::path::Path;

use crate::cli::error::CommandError;
use crate::models::Observations;
use crate::models::regression::{
    Basis, Findings, HeldOut, Method, Model, Options, Part, Points, Prediction, choose, compare,
    is_rank_count, points_from, two_step,
};

use super::request::{ENVELOPE, PartRequest, Request};

impl Request {
    /// Fits the parts, predicts, compares.
    ///
    /// # Errors
    /// The table does not support a model, or the points to predict cannot be read.
    pub fn findings(&self, table: &Observations) -> Result<Findings, CommandError> {
        let (fitted, held_rows) = self.split(table)?;
        let mut model = Model { method: self.options.method, parts: Vec::new() };
        let mut choice = None;
        let mut steps = None;
        let mut comparison = None;
        for part in &self.parts {
            let points = self.points(&fitted, Some(&part.response))?;
            if self.uses_evidence(part) {
                if self.compare && comparison.is_none() {
                    let held = held_rows.as_ref();
                    let held =
                        held.map(|rows| self.points(rows, Some(&part.response))).transpose()?;
                    let columns = Basis::dictionary(&self.variables, &self.powers);
                    comparison = Some(compare(&points, held.as_ref(), &columns)?);
                }
                let mut fit = Part::by_evidence(&points, &self.options, table.source())?;
                fit.label.clone_from(&part.label);
                model.parts.push(fit);
                continue;
            }
            let basis = self.basis(part, &points, table.source(), &mut steps, &mut choice)?;
            if self.compare && comparison.is_none() {
                let held = match held_rows.as_ref() {
                    Some(held) => Some(self.points(held, Some(&part.response))?),
                    None => None,
                };
                comparison = Some(compare(&points, held.as_ref(), &basis)?);
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
            minimum_over: self.minimum_over.clone(),
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
        Ok(points_from(table, response, &self.variables, &self.constants)?)
    }

    fn fit(&self, points: &Points, basis: &Basis, source: &str) -> Result<Part, CommandError> {
        Ok(Part::fit(points, basis, &self.options, source)?)
    }

    /// Whether the user names no functions, and the rank count is the only variable.
    fn uses_evidence(&self, part: &PartRequest) -> bool {
        let alone = matches!(self.variables.as_slice(), [variable] if is_rank_count(variable));
        let free = part.basis.is_none() && self.powers.is_empty() && self.two_step.is_none();
        alone && free && !part.envelope && self.options.method == Method::Robust
    }

    /// The basis of a part: given by the user, found by Method 2 of Orii et al., or chosen among
    /// models.
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
            let found = two_step(points, [a, b], given, self.options.method, source)?;
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
        // Strong scaling in the rank count: the three-term model is offered first.
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
                "--basis or --dictionary is required: they say which functions of the variables the \
                 time may be a sum of",
            )
        })
    }

    /// Splits the rows into rows to fit and rows to hold back.
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
            .map(|condition| table.numbers(&condition.variable))
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

    fn held(&self, model: &Model, rows: &Observations) -> Result<HeldOut, CommandError> {
        // The parts are added up, and so are their measured times, each the minimum of its
        // repetitions.
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
        let predictions = model.predict(&points)?;
        Ok(HeldOut { points, predictions })
    }

    fn predictions(&self, model: &Model, path: &Path) -> Result<Vec<Prediction>, CommandError> {
        let table = Observations::read(path)?;
        let points = self.points(&table, None)?;
        Ok(model.predict(&points)?)
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
        if table.has(ENVELOPE) {
            let sides = table.texts(ENVELOPE)?;
            if let Some(row) = sides.iter().position(|side| !matches!(*side, "lower" | "upper")) {
                return Err(CommandError::Input(format!(
                    "{}: envelope is {:?}; it must be lower or upper",
                    table.location(row),
                    sides[row]
                )));
            }
            let of = |side: &str| -> Vec<usize> {
                (0..sides.len()).filter(|row| sides[*row] == side).collect()
            };
            let points = |rows: Vec<usize>| match rows.is_empty() {
                true => Err(CommandError::Input(format!(
                    "{}: one envelope has no rows",
                    table.source()
                ))),
                false => self.points(&table.select(&rows), Some(&part.response)),
            };
            return Ok((points(of("lower"))?, points(of("upper"))?));
        }
        let options = Options { replicas: 0, ..self.options.clone() };
        let points = points.sorted();
        let fit = Part::fit(&points, basis, &options, whole.source())?;
        let (lower, upper): (Vec<usize>, Vec<usize>) =
            (0..points.len()).partition(|&i| points.times[i] < fit.fitted[i]);
        Ok((points.select(&lower), points.select(&upper)))
    }
}
