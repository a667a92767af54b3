//! Draws a model: time over each variable, residuals, and the share of each column.

use crate::models::regression::{Findings, Points, Prediction, is_rank_count};
use crate::present::figure::{Axis, Figure, Marks, Panel, Reference, Series, Width};

/// Maximum number of curves in one picture; more cannot be told apart.
const MAX_CURVES: usize = 6;
/// Maximum number of columns in the picture of shares.
const MAX_COLUMNS: usize = 10;
/// Number of points of a curve.
const CURVE_POINTS: usize = 60;

/// All pictures, as file names and SVG documents.
pub fn pictures(findings: &Findings) -> Vec<(String, String)> {
    let mut pictures = Vec::new();
    let variables = &findings.model.parts[0].points.variables;
    for (v, name) in variables.iter().enumerate() {
        if let Some(figure) = over_variable(findings, v) {
            pictures.push((format!("model-{name}.svg"), figure.svg()));
        }
    }
    pictures.push(("residuals.svg".into(), residuals(findings).svg()));
    pictures.push(("columns.svg".into(), columns(findings).svg()));
    pictures
}

/// A point of the picture over one variable: measured, predicted, or both.
struct Mark {
    /// Values of the other variables.
    others: Vec<f64>,
    x: f64,
    measured: Option<f64>,
    prediction: Option<Prediction>,
}

fn over_variable(findings: &Findings, v: usize) -> Option<Figure> {
    let model = &findings.model;
    let points = &model.parts[0].points;
    let name = &points.variables[v];
    let others = |values: &[f64]| -> Vec<f64> {
        values.iter().enumerate().filter(|(w, _)| *w != v).map(|(_, value)| *value).collect()
    };
    // Parts are fitted to times of their own, so only their sum is the modelled time.
    let single = model.parts.len() == 1;
    let mut marks: Vec<Mark> = Vec::new();
    if single {
        for (values, time) in points.values.iter().zip(&points.times) {
            let others = others(values);
            marks.push(Mark { others, x: values[v], measured: Some(*time), prediction: None });
        }
    }
    if let Some(held) = &findings.held {
        for (prediction, time) in held.predictions.iter().zip(&held.points.times) {
            marks.push(Mark {
                others: others(&prediction.values),
                x: prediction.values[v],
                measured: Some(*time),
                prediction: Some(prediction.clone()),
            });
        }
    }
    for prediction in &findings.predictions {
        marks.push(Mark {
            others: others(&prediction.values),
            x: prediction.values[v],
            measured: None,
            prediction: Some(prediction.clone()),
        });
    }
    let mut curves: Vec<Vec<f64>> = Vec::new();
    for mark in &marks {
        if !curves.contains(&mark.others) {
            curves.push(mark.others.clone());
        }
    }
    // Curves with requested predictions come first, then those with most marks.
    curves.sort_by_key(|curve| {
        let here = || marks.iter().filter(|mark| mark.others == *curve);
        let requested = here().any(|mark| mark.measured.is_none());
        (std::cmp::Reverse(requested), std::cmp::Reverse(here().count()))
    });
    let all = curves.len();
    curves.truncate(MAX_CURVES);
    curves.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let finite = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let xs: Vec<f64> = marks.iter().map(|mark| mark.x).collect();
    let (from, to) = (xs.iter().copied().fold(f64::INFINITY, f64::min), finite(&xs));
    if !(from > 0.0 && to > from) {
        return None;
    }
    let mut panel = Panel::new(
        if is_rank_count(name) {
            Axis::log2(name.as_str(), "")
        } else {
            Axis::log10(name.as_str(), "")
        },
        Axis::log10(format!("time ({})", findings.response), "s"),
    );
    for (look, curve) in curves.iter().enumerate() {
        let here = || marks.iter().filter(|mark| mark.others == *curve);
        let label = points
            .variables
            .iter()
            .enumerate()
            .filter(|(w, _)| *w != v)
            .map(|(_, name)| name.as_str())
            .zip(curve)
            .map(|(name, value)| format!("{name} = {value}"))
            .collect::<Vec<_>>()
            .join(", ");
        let label = if label.is_empty() { "model".to_owned() } else { label };
        let xs: Vec<f64> = here().map(|mark| mark.x).collect();
        // A curve spans its own points; with a single point, it spans the whole axis.
        let (from, to) = match xs.len() {
            1 => (from, to),
            _ => (xs.iter().copied().fold(f64::INFINITY, f64::min), finite(&xs)),
        };
        let grid: Vec<f64> = (0..CURVE_POINTS)
            .map(|k| from * (to / from).powf(k as f64 / (CURVE_POINTS - 1) as f64))
            .collect();
        let times = times_along(findings, points, v, curve, &grid);
        panel = panel.with(Series::line(label, times).with_look(look));
        let measured: Vec<(f64, f64)> =
            here().filter_map(|mark| mark.measured.map(|time| (mark.x, time))).collect();
        panel = panel.with(Series::points("", measured).with_look(look));
        let ranges: Vec<(f64, f64, f64)> = here()
            .filter_map(|mark| {
                let prediction = mark.prediction.as_ref()?;
                Some((mark.x, prediction.lo?, prediction.hi?))
            })
            .collect();
        if !ranges.is_empty() {
            panel = panel.with(Series::new("", Marks::Ranges(ranges)).with_look(look));
        }
    }
    let left_out = match all > MAX_CURVES {
        true => format!(" ({MAX_CURVES} of {all} curves)"),
        false => String::new(),
    };
    let title = match single {
        true => format!("Measured (points), model (lines), 90 % intervals (bars){left_out}"),
        false => format!("Model of the sum (lines), 90 % intervals (bars){left_out}"),
    };
    Some(Figure::new(title, panel).with_width(Width::Page))
}

fn times_along(
    findings: &Findings,
    points: &Points,
    v: usize,
    others: &[f64],
    grid: &[f64],
) -> Vec<(f64, f64)> {
    let at = |x: f64| {
        let mut values = others.to_vec();
        values.insert(v, x);
        values
    };
    let mut along = points.select(&[]);
    along.times.clear();
    along.values = grid.iter().map(|x| at(*x)).collect();
    along.locations = vec![String::new(); grid.len()];
    let times = findings.model.times_at(&along).unwrap_or_default();
    grid.iter().copied().zip(times).collect()
}

fn residuals(findings: &Findings) -> Figure {
    let mut panel = Panel::new(
        Axis::log10("fitted time", "s"),
        Axis::linear("(measured − fitted) / measured", "%"),
    )
    .with_reference(Reference::horizontal(0.0, ""));
    for part in &findings.model.parts {
        let pairs = part.points.times.iter().zip(&part.fitted);
        let relative = pairs.map(|(time, fitted)| (*fitted, 100.0 * (time - fitted) / time));
        panel = panel.with(Series::points(part.label.as_str(), relative.collect()));
    }
    if let Some(held) = &findings.held {
        let pairs = held.predictions.iter().zip(&held.points.times);
        let relative = pairs.filter_map(|(prediction, time)| {
            prediction.value.map(|value| (value, 100.0 * (time - value) / time))
        });
        panel = panel.with(Series::points("held back", relative.collect()));
    }
    Figure::new("Residuals", panel)
}

fn columns(findings: &Findings) -> Figure {
    let asked = findings.evaluation_point();
    let mut terms = findings.terms();
    terms.retain(|term| term.coefficient != 0.0);
    let seconds = |term: &crate::models::regression::Term| term.seconds.unwrap_or(0.0);
    terms.sort_by(|a, b| seconds(b).abs().total_cmp(&seconds(a).abs()));
    let total: f64 = terms.iter().map(seconds).sum();
    let rest: f64 = terms.iter().skip(MAX_COLUMNS).map(seconds).sum();
    let more = terms.len().saturating_sub(MAX_COLUMNS);
    terms.truncate(MAX_COLUMNS);
    let mut bars: Vec<(String, f64)> =
        terms.iter().map(|term| (term.text.clone(), seconds(term))).collect();
    if more > 0 {
        bars.push((format!("{more} more"), rest));
    }
    let name = |(index, (text, _)): (usize, &(String, f64))| {
        // Bars are labelled with letters, because expressions are wider than bars; the legend explains them.
        (index as f64, letter(index), text.clone())
    };
    let names: Vec<(f64, String, String)> = bars.iter().enumerate().map(name).collect();
    let mut panel = Panel::new(
        Axis::linear("column", "")
            .named(names.iter().map(|(at, letter, _)| (*at, letter.clone())).collect())
            .within(-0.6, bars.len() as f64 - 0.4),
        Axis::linear("share of the time", "%").from_zero(),
    );
    for (index, (text, value)) in bars.iter().enumerate() {
        let at = index as f64;
        let share = if total == 0.0 { 0.0 } else { 100.0 * value / total };
        let bar = Marks::Bars(vec![(at - 0.4, at + 0.4, share)]);
        let text = format!("{}: {text}", letter(index));
        panel = panel.with(Series::new(text, bar).with_look(0));
    }
    let place: Vec<String> = asked
        .variables
        .iter()
        .zip(&asked.values[0])
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    Figure::new(format!("Time by column at {}", place.join(", ")), panel).with_width(Width::Page)
}

fn letter(index: usize) -> String {
    char::from(b'a' + (index % 26) as u8).to_string()
}
