//! Draws, as SVG, Cannon's product over N, measured and predicted (figure 7 of Touyama and Horiguchi), the
//! communication that each strategy does not hide (their figure 6), and the parameters over the message size.

use std::collections::BTreeMap;

use crate::models::logpq::cannon::Model;
use crate::models::logpq::study::{Hidden, Row, Study};
use crate::models::logpq::{Findings, Parameters};

use super::super::figure::{Axis, Figure, Panel, Series};

/// The figures that have something to show, as file names and SVG documents.
pub fn figures(findings: &Findings) -> Vec<(&'static str, String)> {
    let mut figures = Vec::new();
    if let Some(study) = &findings.cannon {
        let title = format!("Cannon's product on {} ranks", study.grid * study.grid);
        figures.push(("cannon.svg", Figure::new(title, cannon(study)).svg()));
        if let Some(panel) = strategies(study) {
            figures.push(("strategies.svg", Figure::new("What is not hidden", panel).svg()));
        }
    }
    let panels: Vec<Panel> = findings.parameters.iter().filter_map(sizes).collect();
    if !panels.is_empty() {
        let columns = panels.len().min(2);
        let title = "LogP parameters over the message size";
        figures.push(("parameters.svg", Figure::grid(title, panels, columns).svg()));
    }
    figures
}

fn cannon(study: &Study) -> Panel {
    let mut panel =
        Panel::new(Axis::log10("order of the matrices N", ""), Axis::log10("elapsed time", "s"));
    let measured: Vec<(f64, f64)> = study
        .rows
        .iter()
        .filter_map(|row| Some((row.n as f64, row.compared()?.elapsed_s)))
        .collect();
    if !measured.is_empty() {
        panel = panel.with(Series::points("measured", measured).with_look(0));
    }
    for (index, model) in Model::ALL.into_iter().enumerate() {
        let line: Vec<(f64, f64)> = study
            .rows
            .iter()
            .filter_map(|row| Some((row.n as f64, row.predicted_s[index]?)))
            .collect();
        if !line.is_empty() {
            panel = panel.with(Series::line(model.name(), line).with_look(index + 1));
        }
    }
    let computation = study.rows.iter().map(|row| (row.n as f64, row.computation_s)).collect();
    panel.with(Series::line("computation alone", computation).with_look(5))
}

fn strategies(study: &Study) -> Option<Panel> {
    let mut lines: BTreeMap<(usize, &str), Vec<(f64, f64)>> = BTreeMap::new();
    for row in &study.rows {
        for (position, one) in row.strategies.iter().enumerate() {
            let share = share(row, one);
            lines.entry((position, &one.strategy)).or_default().push((row.n as f64, share));
        }
    }
    let mut panel = Panel::new(
        Axis::log10("order of the matrices N", ""),
        Axis::linear("not hidden, of the computation", "%").from_zero(),
    );
    for ((_, name), line) in &lines {
        panel = panel.with(Series::line_and_points(*name, line.clone()));
    }
    (!lines.is_empty()).then_some(panel)
}

fn share(row: &Row, one: &Hidden) -> f64 {
    100.0 * one.not_hidden_s / row.computation_s
}

fn sizes(parameters: &Parameters) -> Option<Panel> {
    let rows = &parameters.sizes;
    let of = |value: &dyn Fn(&crate::models::logpq::SizeRow) -> f64| -> Vec<(f64, f64)> {
        let points = rows.iter().map(|row| (row.bytes as f64, value(row) * 1e6));
        points.filter(|(_, value)| *value > 0.0).collect()
    };
    let identified: Vec<(f64, f64)> = rows
        .iter()
        .filter(|row| row.logp.latency.is_identified())
        .map(|row| (row.bytes as f64, row.logp.latency.value * 1e6))
        .collect();
    let mut panel = Panel::new(Axis::log2("message size", "B"), Axis::log10("time", "µs"))
        .titled(parameters.class.clone())
        .with(Series::line_and_points("RTT/2", of(&|row| row.half_rtt.value)))
        .with(Series::line_and_points("overhead o", of(&|row| row.logp.overhead.value)))
        .with(Series::line_and_points("gap g", of(&|row| row.logp.gap.value)));
    if !identified.is_empty() {
        panel = panel.with(Series::line_and_points("latency L", identified));
    }
    (!rows.is_empty()).then_some(panel)
}
