//! Tables of an efficiency model: measured points, efficiencies, predicted times, and problem sizes.

use crate::models::scaling::series::Point;
use crate::models::scaling::{
    Believed, Comparison, Definition, Fit, LeftOut, Model, Prediction, Speaks,
};
use crate::models::structure::{Forecast, Part, Place, Quantity};

use super::table::{Cell, Table};

/// Measured points, a row each.
pub fn points(fit: &Fit) -> Table {
    let rows = || fit.series.points.iter();
    let ratio = |value: Option<f64>| Cell::or_nothing(value, Cell::Ratio);
    let modelled = |point: &Point| {
        let curve = fit.model.as_ref()?.curve;
        Some(curve.tau_s(f64::from(point.p), fit.relative_work(point)))
    };
    let off_by = |point: &Point| Some(Cell::Excess(modelled(point)? / point.tau_s - 1.0));
    let why = |point: &Point| match fit.left_out.iter().find(|(p, _)| *p == point.p) {
        None => "",
        Some((_, LeftOut::BelowP1)) => "not fitted: below p1",
        Some((_, LeftOut::Efficiency(_))) => "not fitted: ε' out of range",
        Some((_, LeftOut::NotChosen)) => "held back",
    };
    let mut table = Table::default();
    table.add("p", "p", rows().map(|point| Cell::Count(point.p.into())));
    if rows().any(|point| point.spread.number > 1) {
        let spread = || rows().map(|point| point.spread);
        table.add("runs", "runs", spread().map(|of| Cell::Count(of.number as u64)));
        table.add("tau_s", "τ min", rows().map(|point| Cell::Seconds(point.tau_s)));
        table.add("median_s", "median", spread().map(|of| Cell::Seconds(of.median)));
        table.add("spread", "spread", spread().map(|of| Cell::Share(of.relative())));
    } else {
        table.add("tau_s", "τ", rows().map(|point| Cell::Seconds(point.tau_s)));
    }
    if !fit.series.work.is_constant() {
        table.add("work", "work", rows().map(|point| Cell::Ratio(fit.relative_work(point))));
    }
    table.add("chi_s", "χ", rows().map(|point| Cell::or_nothing(point.chi_s(), Cell::Seconds)));
    let reference = rows().map(|point| Cell::Ratio(fit.reference_efficiency(point)));
    table.add("efficiency_reference", "ε'", reference);
    let parallel = rows().map(|point| ratio(point.parallel_efficiency()));
    table.add("efficiency_parallel", "= ε_p", parallel);
    let computation = rows().map(|point| ratio(fit.computation_scaling(point)));
    table.add("computation_scaling", "× comp. scaling", computation);
    if fit.model.is_some() {
        let times = rows().map(|point| Cell::or_nothing(modelled(point), Cell::Seconds));
        table.add("model_tau_s", "model τ", times);
        table.add("off_by", "off by", rows().filter_map(off_by));
    }
    if !fit.left_out.is_empty() {
        table.add("left_out", "", rows().map(|point| Cell::Text(why(point).to_owned())));
    }
    table
}

/// Times predicted from what the program does, and what is believed.
pub fn structure(forecasts: &[(Forecast, Believed)]) -> Table {
    let rows = || forecasts.iter();
    let mut table = Table::default();
    table.add("p", "p", rows().map(|(of, _)| Cell::Count(of.p.into())));
    table.add("tau_s", "τ", rows().map(|(of, _)| Cell::Seconds(of.tau_s)));
    table.add("lo_s", "90 % from", rows().map(|(of, _)| Cell::Seconds(of.interval_s.0)));
    table.add("hi_s", "to", rows().map(|(of, _)| Cell::Seconds(of.interval_s.1)));
    table.add("speaks", "believe", rows().map(|(_, of)| Cell::Text(of.speaks.name().to_owned())));
    if rows().any(|(_, of)| of.speaks != Speaks::Structure) {
        let believed = || rows().map(|(_, of)| of);
        let times = believed().map(|of| Cell::or_nothing(of.tau_s, Cell::Seconds));
        table.add("believed_tau_s", "τ", times);
        table.add(
            "believed_lo_s",
            "90 % from",
            believed().map(|of| Cell::Seconds(of.interval_s.0)),
        );
        table.add("believed_hi_s", "to", believed().map(|of| Cell::Seconds(of.interval_s.1)));
    }
    table
}

/// What takes a predicted time.
pub fn structural_parts(parts: &[Part], tau_s: f64) -> Table {
    let rows = || parts.iter();
    let law = |value: f64, law: &Option<String>| match law {
        Some(law) => law.clone(),
        None => format!("≈ {value:.0}"),
    };
    let name = |part: &Part| match part.first_use {
        true => format!("{}, first use", part.name),
        false => part.name.clone(),
    };
    let mut table = Table::default();
    table.add("share", "share", rows().map(|of| Cell::Share(of.seconds / tau_s)));
    table.add("part_s", "time", rows().map(|of| Cell::Seconds(of.seconds)));
    let counts = rows().map(|of| Cell::Text(law(of.count, &of.count_law)));
    table.add("count", "events", counts);
    let bytes = rows().map(|of| match of.bytes > 0.0 {
        true => Cell::Text(law(of.bytes, &of.bytes_law)),
        false => Cell::Nothing,
    });
    table.add("bytes", "bytes each", bytes);
    table.add("context", "of", rows().map(|of| Cell::Text(name(of))));
    table
}

/// Calls of all ranks at the `at`-th of the rank counts that were asked for.
pub fn counts(places: &[Place], at: usize) -> Table {
    let rows = || places.iter();
    let law = |law: &Option<String>| match law {
        Some(law) => Cell::Text(law.clone()),
        None => Cell::Text("none".to_owned()),
    };
    let bytes = |of: &Place, cell: &dyn Fn(&Quantity) -> Cell| {
        of.bytes.as_ref().map_or(Cell::Nothing, cell)
    };
    let mut table = Table::default();
    let calls =
        |of: &Place| Cell::or_unknown(of.calls.at[at], |calls| Cell::Count(calls.round() as u64));
    table.add("calls", "calls", rows().map(calls));
    let sums = |of: &Quantity| Cell::or_unknown(of.at[at], Cell::Bytes);
    table.add("bytes", "bytes", rows().map(|of| bytes(of, &sums)));
    table.add("calls_law", "law of calls", rows().map(|of| law(&of.calls.law)));
    let of_bytes = |of: &Quantity| law(&of.law);
    table.add("bytes_law", "law of bytes", rows().map(|of| bytes(of, &of_bytes)));
    table.add("context", "of", rows().map(|of| Cell::Text(of.name.clone())));
    table
}

/// Rank counts at which the efficiency falls to a target, by both definitions of efficiency.
pub fn isoefficiency(model: &Model) -> Table {
    let all = &model.isoefficiency;
    let of = |which: Definition| all.iter().filter(move |iso| iso.definition == which);
    let mut table = Table::default();
    for definition in [Definition::Reference, Definition::Asymptotic] {
        if of(definition).next().is_none() {
            continue;
        }
        if table.columns.is_empty() {
            table.add("eps", "efficiency", of(definition).map(|iso| Cell::Given(iso.eps)));
        }
        let never = || Cell::Text("never".to_owned());
        let p = of(definition).map(|iso| iso.p.map_or_else(never, Cell::Ratio));
        table.add("p", &format!("p ({})", definition.name()), p);
    }
    table
}

/// Predicted times, a row each.
pub fn predictions(all: &[Prediction], of_interval: &str) -> Table {
    let rows = || all.iter();
    let seconds = |value: Option<f64>| Cell::or_nothing(value, Cell::Seconds);
    let between = |of: &Prediction| {
        Cell::or_nothing(of.interval_s, |interval| Cell::Between(interval.lo, interval.hi))
    };
    let mut table = Table::default();
    table.add("p", "p", rows().map(|of| Cell::Count(of.p.into())));
    table.add("tau_s", "predicted τ", rows().map(|of| seconds(of.tau_s.ok())));
    if rows().any(|of| of.interval_s.is_some()) {
        table.add("interval", of_interval, rows().map(between));
    }
    if rows().any(|of| of.measured_s.is_some()) {
        table.add("measured_s", "measured", rows().map(|of| seconds(of.measured_s)));
        let off_by = |of: &Prediction| Some(of.tau_s.ok()? / of.measured_s? - 1.0);
        table.add("off_by", "off by", rows().map(|of| Cell::or_nothing(off_by(of), Cell::Excess)));
    }
    table
}

/// Problem sizes, a row each.
pub fn across(of: &Comparison) -> Table {
    let rows = || of.steps.iter();
    let exponent = |value: Option<f64>| Cell::or_nothing(value, Cell::Factor);
    let grows = |term: &str| format!("{term} grows as {}^", of.param);
    let mut table = Table::default();
    table.add("value", &of.param, rows().map(|step| Cell::Given(step.value)));
    table.add("a_ratio", "a, times", rows().map(|step| Cell::Ratio(step.a_ratio)));
    table.add("a_exponent", &grows("a"), rows().map(|step| exponent(step.a_exponent)));
    table.add("chi0_exponent", &grows("χ'0"), rows().map(|step| exponent(step.chi0_exponent)));
    table.add("chi1_exponent", &grows("χ'1"), rows().map(|step| exponent(step.chi1_exponent)));
    table
}
