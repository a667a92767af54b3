//! Tables of a model: its columns, what it predicts, and how well models extrapolate.

use crate::models::regression::{Comparison, Method, Model, Points, Prediction, Score, Term};

use super::table::{Cell, Table};

/// Columns of a model, a row each, with their shares of a time.
pub fn columns(model: &Model, terms: &[&Term], seconds: f64) -> Table {
    let rows = || terms.iter();
    let mut table = Table::default();
    if model.parts.len() > 1 {
        let part = |term: &&Term| Cell::or_nothing(term.part.clone(), Cell::Text);
        table.add("part", "part", rows().map(part));
    }
    table.add("expr", "column", rows().map(|term| Cell::Text(term.text.clone())));
    table.add("coefficient", "coefficient", rows().map(|term| Cell::Ratio(term.coefficient)));
    let share = |of: f64| Cell::Share(of / seconds);
    table.add("share", "share", rows().map(|term| Cell::or_nothing(term.seconds, share)));
    if model.method == Method::Robust {
        table.add("support", "support", rows().map(|term| Cell::Factor(term.support)));
    }
    if rows().any(|term| term.replica_share.is_some()) {
        let shares = rows().map(|term| Cell::or_nothing(term.replica_share, Cell::Factor));
        table.add("replica_share", "in replicas", shares);
    }
    table
}

/// Models or methods, a row each, with their relative errors and the words for why one failed.
pub fn scores(of: &Comparison, chosen: Option<usize>, failure: fn(&Score) -> String) -> Table {
    let rows = || of.scores.iter();
    let error = |value| Cell::or_nothing(value, Cell::Share);
    let mut table = Table::default();
    if let Some(chosen) = chosen {
        let mark = |at| Cell::Text(if at == chosen { "*" } else { "" }.to_owned());
        table.add("chosen", "", (0..of.scores.len()).map(mark));
    }
    table.add("name", "", rows().map(|score| Cell::Text(score.name.clone())));
    table.add("median", "median", rows().map(|score| error(score.median)));
    table.add("p95", "95 %", rows().map(|score| error(score.p95)));
    table.add("max", "largest", rows().map(|score| error(score.largest)));
    table.add("failure", "", rows().map(|score| Cell::Text(failure(score))));
    table
}

/// Predictions at points whose times may be known, a row each, with the words for why to distrust one.
pub fn predictions(
    points: &Points,
    predictions: &[Prediction],
    measured: Option<&[f64]>,
    warnings: fn(&Prediction) -> String,
) -> Table {
    let rows = || predictions.iter();
    let time = |value| Cell::or_nothing(value, Cell::Seconds);
    let mut table = Table::default();
    for (at, name) in points.variables.iter().enumerate() {
        table.add("variable", name, rows().map(|of| Cell::Given(of.values[at])));
    }
    if let Some(measured) = measured {
        table.add("measured", "measured", measured.iter().copied().map(Cell::Seconds));
    }
    table.add("value", "model", rows().map(|of| time(of.value)));
    if rows().any(|of| of.hi.is_some()) {
        table.add("lo", "from", rows().map(|of| time(of.lo)));
        table.add("hi", "to", rows().map(|of| time(of.hi)));
    }
    if let Some(measured) = measured {
        let error = |(of, time): (&Prediction, &f64)| of.value.map(|value| value / time - 1.0);
        let errors = rows().zip(measured).map(error);
        table.add("error", "error", errors.map(|error| Cell::or_nothing(error, Cell::Excess)));
    }
    table.add("warning", "", rows().map(|of| Cell::Text(warnings(of))));
    table
}
