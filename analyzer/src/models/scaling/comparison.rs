//! Compares fits of several problem sizes: ratios and growth exponents of the terms of the model.

use serde::Serialize;

use super::fit::Fit;

/// The terms of all fits; the first fit is the reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The parameter in which the fits differ.
    pub param: String,
    /// One for each fit with a model, ascending in the parameter.
    pub steps: Vec<Step>,
}

/// One problem size.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Step {
    /// Value of the parameter.
    pub value: f64,
    /// a over that of the first fit.
    pub a_ratio: f64,
    /// Growth exponent of a since the previous fit: d ln a / d ln parameter; `None` for the first
    /// fit, and where a term is not above 0.
    pub a_exponent: Option<f64>,
    /// That of χ'₀.
    pub chi0_exponent: Option<f64>,
    /// That of χ'₁.
    pub chi1_exponent: Option<f64>,
    /// χ'₀ over the median χ'₀ of the other fits; `None` unless there are at least three fits and
    /// all χ'₀ are above 0.
    pub chi0_ratio: Option<f64>,
}

impl Comparison {
    /// `None` unless the fits differ in exactly one parameter, it is a positive number, and at
    /// least two fits have a model.
    pub(super) fn between_fits(fits: &[Fit]) -> Option<Self> {
        let first = fits.first()?;
        let differs = |at: &usize| {
            fits.iter().any(|fit| fit.series.params[*at].1 != first.series.params[*at].1)
        };
        let differing: Vec<usize> = (0..first.series.params.len()).filter(differs).collect();
        let [at] = differing[..] else { return None };
        let mut sizes = Vec::new();
        for fit in fits {
            let value: f64 = fit.series.params[at].1.parse().ok().filter(|value| *value > 0.0)?;
            if let Some(model) = &fit.model {
                let curve = model.curve;
                sizes.push((value, [curve.a_s(), curve.chi0_s(), curve.chi1_s()]));
            }
        }
        if sizes.len() < 2 {
            return None;
        }
        let steps = (0..sizes.len()).map(|index| {
            let (value, terms) = sizes[index];
            let before = index.checked_sub(1).map(|before| sizes[before]);
            let exponent = |term: usize| {
                let (value_before, terms_before) = before?;
                (terms[term] > 0.0 && terms_before[term] > 0.0)
                    .then(|| (terms[term] / terms_before[term]).ln() / (value / value_before).ln())
            };
            Step {
                value,
                a_ratio: terms[0] / sizes[0].1[0],
                a_exponent: exponent(0),
                chi0_exponent: exponent(1),
                chi1_exponent: exponent(2),
                chi0_ratio: chi0_ratio(&sizes, index),
            }
        });
        Some(Self { param: first.series.params[at].0.clone(), steps: steps.collect() })
    }
}

fn chi0_ratio(sizes: &[(f64, [f64; 3])], index: usize) -> Option<f64> {
    let mut others: Vec<f64> = sizes
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != index)
        .map(|(_, (_, terms))| terms[1])
        .collect();
    others.sort_by(f64::total_cmp);
    let positive = sizes.iter().all(|(_, terms)| terms[1] > 0.0);
    (positive && others.len() >= 2).then(|| sizes[index].1[1] / others[others.len() / 2])
}
