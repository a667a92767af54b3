//! Everything that `gammachi model` found, for [`crate::present`].

use serde::Serialize;

use crate::models::evidence::{Contradiction, Evidence};
use crate::models::observations::LackOfCores;

use super::choice::Comparison;
use super::fit_quality::FitQuality;
use super::model::{Model, Part, Prediction, SELECTED};
use super::points::Points;
use super::two_step::TwoStep;

/// A model, and what it was used for.
#[derive(Debug, Clone)]
pub struct Findings {
    /// Name of the table.
    pub source: String,
    /// Number of rows that were fitted, repetitions included.
    pub rows: usize,
    /// Parameters that rows of one point do not agree in.
    pub minimum_over: Vec<String>,
    /// Columns of the table that were modelled, such as `compute + mpi`.
    pub response: String,
    pub model: Model,
    /// The predictions asked for.
    pub predictions: Vec<Prediction>,
    /// Points held back, with their predictions.
    pub held: Option<HeldOut>,
    /// Comparison of the methods.
    pub comparison: Option<Comparison>,
    /// Models that competed: index of the chosen one, and the scores of all.
    pub choice: Option<(usize, Comparison)>,
    /// Result of the first step of Method 2.
    pub two_step: Option<TwoStep>,
}

/// Points that were not fitted, and the model's predictions for them.
#[derive(Debug, Clone)]
pub struct HeldOut {
    /// The points, with measured times.
    pub points: Points,
    /// One per point.
    pub predictions: Vec<Prediction>,
}

/// One column of a model, with its contribution at a point.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Term {
    /// The column.
    #[serde(rename = "expr")]
    pub text: String,
    /// Label of its part; `None`: the model has one.
    pub part: Option<String>,
    /// Its coefficient in the model, including the factor of its part: ½ of an envelope.
    pub coefficient: f64,
    /// Whether both the model and most of the candidates have it.
    pub selected: bool,
    /// Share of the candidates' weight that has it.
    pub support: f64,
    /// Share of the replicas that selected it; `None` without replicas.
    pub replica_share: Option<f64>,
    /// Seconds at the last prediction, else at the largest point; `None` where the column has no value there.
    pub seconds: Option<f64>,
}

impl Findings {
    /// Quality of the fit, over the points of all parts.
    pub fn quality(&self) -> FitQuality {
        FitQuality::measure(&self.model)
    }

    /// Measured times that contradict the curves through the points of a part: the part's label, the
    /// time, and how its ranks lacked cores, if that is known.
    pub fn contradictions(&self) -> Vec<(&str, Contradiction, Option<LackOfCores>)> {
        let of_part = |part: &'_ Part| {
            let found = part.evidence.as_ref().map(Evidence::contradictions).unwrap_or_default();
            let lack_at = |p: f64| {
                let at = part.points.values.iter().position(|values| values[0] == p)?;
                *part.points.lacks.get(at)?
            };
            found.into_iter().map(|of| (of, lack_at(of.p))).collect::<Vec<_>>()
        };
        let parts = self.model.parts.iter();
        let all = parts.flat_map(|part| {
            of_part(part).into_iter().map(|(of, lack)| (part.label.as_str(), of, lack))
        });
        all.collect()
    }

    /// The point at which columns are compared: that of the last prediction, else the last fitted
    /// one.
    pub fn evaluation_point(&self) -> Points {
        let part = &self.model.parts[0];
        let mut point = part.points.select(&[part.points.len() - 1]);
        if let Some(last) = self.predictions.last() {
            point.values = vec![last.values.clone()];
        }
        point.times.clear();
        point
    }

    /// The columns of all parts, evaluated at [`Self::evaluation_point`].
    pub fn terms(&self) -> Vec<Term> {
        let evaluation_point = self.evaluation_point();
        let mut terms = Vec::new();
        for part in &self.model.parts {
            let at = evaluation_point.matrix(&part.basis).ok();
            for (j, column) in part.basis.columns.iter().enumerate() {
                let coefficient = part.coefficients[j] * part.factor;
                let support = part.support.get(j).copied().unwrap_or(0.0);
                terms.push(Term {
                    text: column.text().to_owned(),
                    part: Some(part.label.clone()).filter(|label| !label.is_empty()),
                    coefficient,
                    selected: coefficient != 0.0 && support >= SELECTED,
                    support,
                    replica_share: part.replica_share.as_ref().map(|shares| shares[j]),
                    seconds: at.as_ref().map(|matrix| matrix[(0, j)] * coefficient),
                });
            }
        }
        terms
    }

    /// Groups of columns that the points cannot distinguish, as text.
    pub fn indistinguishable(&self) -> Vec<Vec<String>> {
        let mut groups: Vec<Vec<String>> = Vec::new();
        for part in &self.model.parts {
            for group in &part.identifiability.groups {
                let texts: Vec<String> =
                    group.iter().map(|&j| part.basis.columns[j].text().to_owned()).collect();
                if !groups.contains(&texts) {
                    groups.push(texts);
                }
            }
        }
        groups
    }
}
