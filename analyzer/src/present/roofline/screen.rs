//! Renders a roofline for the terminal.

use crate::metrics::exchanges::Locality;
use crate::models::roofline::findings::{Assessment, RunFindings};
use crate::models::roofline::sweep::{END_TOLERANCE, ROOF_TOLERANCE, Sweep};
use crate::models::roofline::systems::System;
use crate::models::roofline::{Bottleneck, Findings, Roofs, WhatIf};
use crate::present::quantity::in_unit;
use crate::present::table;

use super::super::paragraph::wrapped;
use super::super::quantity::{count, percent, seconds, significant};
use super::super::table::Table;
use super::names::label;
use super::remedy::remedy;
use crate::tables::{self, Cell};

/// The screen. With `colour`, headings are bold.
pub fn screen(findings: &Findings, colour: bool) -> String {
    let bold = |text: &str| match colour {
        true => format!("\x1b[1m{text}\x1b[0m"),
        false => text.to_owned(),
    };
    let indented = |lines: Vec<String>| lines.into_iter().map(|line| format!("  {line}"));
    let mut lines = Vec::new();
    for run in &findings.runs {
        lines.push(bold(&format!("ROOFLINE  {}", run.name)));
        let all: Vec<&Assessment> = run.assessed.iter().collect();
        lines.extend(indented(table::lines(&points(&all))));
        lines.push(String::new());
        let has_roofs = |one: &&Assessment| {
            !one.roofs.compute.is_empty() || !one.roofs.communication.is_empty()
        };
        if let Some(placed) = run.assessed.first().filter(has_roofs) {
            lines.push(bold(&format!(
                "ROOFS  {} ranks on {} hosts, {}",
                placed.point.ranks,
                placed.point.hosts,
                findings.source.as_deref().unwrap_or("without machine.json")
            )));
            lines.extend(indented(roofs(placed)));
            lines.push(String::new());
        }
        lines.push(bold("VERDICT"));
        for placed in &run.assessed {
            lines.extend(wrapped("  ", &sentence(placed)));
        }
        lines.push(String::new());
        if !findings.what_if.is_empty() {
            lines.push(bold("WHAT IF"));
            lines.extend(indented(what_if(run, &findings.what_if)));
            lines.push(String::new());
        }
        if !run.work.is_empty() {
            lines.push(bold("OPERATIONS SEEN  (a lower bound)"));
            lines.extend(indented(work(run)));
            lines.push(String::new());
        }
        lines.extend(run.notes.iter().flat_map(|note| wrapped("  ", note)));
        lines.push(String::new());
    }
    for sweep in &findings.sweeps {
        lines.push(bold(&format!(
            "SWEEP  {}, {} ranks, messages of up to {} bytes; a rank's rates",
            sweep.mpi,
            sweep.ranks,
            count(sweep.message_bytes)
        )));
        lines.extend(indented(sweep_points(sweep)));
        lines.extend(wrapped("  ", &sweep_sentence(sweep)));
        lines.extend(sweep.noise.iter().flat_map(|why| wrapped("  ", &format!("noisy: {why}"))));
        lines.push(String::new());
    }
    if !findings.systems.is_empty() {
        lines.push(bold("PUBLISHED SYSTEMS  (Yasuda et al., table 1)"));
        lines.extend(indented(systems(&findings.systems)));
        lines.push(String::new());
        if !findings.what_if.is_empty() {
            lines.push(bold(
                "WHAT IF  (flop per byte that a program needs today to reach the peak)",
            ));
            lines.extend(indented(what_if_of_systems(&findings.systems, &findings.what_if)));
            lines.push(String::new());
        }
    }
    if !findings.notes.is_empty() {
        lines.push(bold("NOTES"));
        lines.extend(findings.notes.iter().flat_map(|note| wrapped("  ", note)));
        lines.push(String::new());
    }
    lines.join("\n")
}

/// A value with three significant digits and a decimal prefix.
fn rate(value: Option<f64>, unit: &str) -> String {
    value.map_or("-".into(), |value| in_unit(value, 3, unit))
}

fn number(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| significant(value, 3))
}

/// Points under the roofs, a row each.
pub(in crate::present) fn points(all: &[&Assessment]) -> tables::Table {
    let rows = || all.iter().copied();
    let of = |value: Option<f64>, unit: &'static str| {
        value.map_or(Cell::Nothing, |value| Cell::Quantity(value, unit))
    };
    let mut table = tables::Table::default();
    table.add("name", "", rows().map(|one| Cell::Text(label(&one.point))));
    table.add("ranks", "ranks", rows().map(|one| Cell::Count(one.point.ranks as u64)));
    table.add("elapsed_s", "elapsed", rows().map(|one| Cell::Seconds(one.point.elapsed_s)));
    table.add("flops", "flop", rows().map(|one| of(one.point.flops, "")));
    if rows().any(|one| one.point.flops_counted) {
        let source = |one: &Assessment| if one.point.flops_counted { "counter" } else { "calls" };
        table.add("flops_from", "by", rows().map(|one| Cell::Text(source(one).to_owned())));
        let of_calls = rows().map(|one| of(one.point.seen_flops, ""));
        table.add("flops_of_calls", "flop of calls", of_calls);
    }
    if rows().any(|one| one.point.locality == Locality::OtherHost) {
        let bytes = rows().map(|one| of(Some(one.point.between_hosts.both()), "B"));
        table.add("bytes_between_hosts", "between hosts", bytes);
    }
    let bytes = rows().map(|one| of(Some(one.point.inside_hosts.both()), "B"));
    table.add("bytes_inside_hosts", "inside hosts", bytes);
    let intensity = |one: &Assessment| one.point.intensity().map_or(Cell::Nothing, Cell::Ratio);
    table.add("flops_per_byte", "flop/B", rows().map(intensity));
    let attained = rows().map(|one| of(one.point.attained(), "flop/s"));
    table.add("attained_flops_per_s", "attained", attained);
    let of_roof = rows().map(|one| one.verdict.of_roof.map_or(Cell::Nothing, Cell::Share));
    table.add("of_roof", "of roof", of_roof);
    let computing = rows().map(|one| Cell::Share(one.point.share_computing()));
    table.add("share_computing", "computing", computing);
    let rates = rows().map(|one| of(one.point.rate_while_computing(), "flop/s"));
    table.add("rate_while_computing_flops_per_s", "rate while computing", rates);
    table
}

fn roofs(placed: &Assessment) -> Vec<String> {
    let Roofs { compute, communication, own_sizes, partners, memory, locality } = &placed.roofs;
    let mut rows: Vec<(String, String, Option<f64>)> = Vec::new();
    let f = placed.roofs.flops_per_s();
    for ceiling in compute {
        rows.push((ceiling.name.clone(), rate(Some(ceiling.rate), "flop/s"), None));
    }
    let place = match locality {
        Locality::SameHost => "inside hosts",
        Locality::OtherHost => "between hosts",
    };
    for one in communication {
        let name = format!("communication {place}, {}", one.name);
        rows.push((name, rate(Some(one.both), "B/s"), f.map(|f| f / one.both)));
    }
    if let Some(own) = own_sizes {
        let name = "communication, the run's own message sizes".to_owned();
        rows.push((name, rate(Some(*own), "B/s"), f.map(|f| f / own)));
    }
    for (number, both) in partners {
        let name = format!("communication, {number} partners at once");
        rows.push((name, rate(Some(*both), "B/s"), f.map(|f| f / both)));
    }
    if let Some(memory) = memory {
        let name = "memory (triad, 24 bytes per element counted)".to_owned();
        rows.push((name, rate(Some(*memory), "B/s"), f.map(|f| f / memory)));
    }
    let mut table = Table::default();
    table.left("roof", rows.iter().map(|(name, ..)| name.clone()));
    table.right("rate", rows.iter().map(|(_, rate, _)| rate.clone()));
    table.right("ridge, flop/B", rows.iter().map(|(.., ridge)| number(*ridge)));
    let mut lines = table.lines();
    if !communication.is_empty() {
        lines.push("bytes sent and received are counted, in the roofs as in the points".into());
    }
    lines
}

/// A sentence on what bounds a point and what would help.
pub(in crate::present) fn sentence(placed: &Assessment) -> String {
    let Assessment { point, verdict, .. } = placed;
    let of_roof = verdict.of_roof.map_or("unknown".into(), percent);
    let what = match verdict.bottleneck {
        Bottleneck::NothingSeen => {
            "no floating-point operations were seen: no point can be placed".to_owned()
        }
        Bottleneck::NoRoofs => "no ceilings are known, so it is not known what bounds it".into(),
        Bottleneck::AboveRoof => format!(
            "{of_roof} of its roof, which is impossible: the roofs are not this machine's, or operations are \
             counted twice"
        ),
        Bottleneck::Computation => format!("at the roof of computation ({of_roof} of it)"),
        Bottleneck::Communication => format!("at the roof of communication ({of_roof} of it)"),
        Bottleneck::MessageSizes => {
            format!(
                "at the roof that its own message sizes allow ({of_roof} of the one for large messages)"
            )
        }
        Bottleneck::NoOverlap => format!(
            "communication and computation take turns: {} of the curve without overlap, {of_roof} of the \
             roof with it",
            verdict.of_no_overlap.map_or("unknown".into(), percent)
        ),
        Bottleneck::Memory => format!(
            "bound by memory: ranks compute {} of the time, at {} of what memory allows ({of_roof} of the \
             roof of operations)",
            percent(point.share_computing()),
            verdict.computing_of_memory.map_or("unknown".into(), percent)
        ),
        Bottleneck::SlowComputation => format!(
            "{of_roof} of its roof: ranks compute {} of the time, at {} of the ceiling",
            percent(point.share_computing()),
            verdict.computing_of_ceiling.map_or("unknown".into(), percent)
        ),
        Bottleneck::Waiting => format!(
            "{of_roof} of its roof: ranks compute only {} of the time",
            percent(point.share_computing())
        ),
        Bottleneck::Mixed => format!(
            "{of_roof} of its roof: ranks compute {} of the time, at {} of the ceiling",
            percent(point.share_computing()),
            verdict.computing_of_ceiling.map_or("unknown".into(), percent)
        ),
    };
    let needs = verdict.communication_needs_s.map_or(String::new(), |(needs, _)| {
        let spent = point.communication_s / point.ranks as f64;
        format!(
            " Its bytes need {}; a rank spends {} in communication.",
            seconds(needs),
            seconds(spent)
        )
    });
    let next =
        remedy(verdict.bottleneck).map_or(String::new(), |remedy| format!(" Next: {remedy}."));
    format!("{}: {what}.{needs}{next}", label(point))
}

fn what_if(run: &RunFindings, changes: &[WhatIf]) -> Vec<String> {
    let mut rows = Vec::new();
    for placed in &run.assessed {
        let Some(intensity) = placed.point.intensity() else { continue };
        for change in changes {
            if let Some((i, roof, curve)) = change.apply(intensity, &placed.roofs) {
                rows.push((placed, change, intensity, i, roof, curve));
            }
        }
    }
    if rows.is_empty() {
        return vec!["nothing to change: no point has both an intensity and roofs".into()];
    }
    let mut table = Table::default();
    table.left("", rows.iter().map(|(placed, ..)| label(&placed.point)));
    table.left("change", rows.iter().map(|(_, change, ..)| change.name()));
    table.right(
        "flop/B",
        rows.iter().map(|(_, _, from, to, ..)| {
            format!("{} -> {}", significant(*from, 3), significant(*to, 3))
        }),
    );
    table.right(
        "roof",
        rows.iter().map(|(placed, _, i, _, roof, _)| {
            format!(
                "{} -> {}",
                rate(placed.roofs.with_overlap(*i), "flop/s"),
                rate(Some(*roof), "flop/s")
            )
        }),
    );
    table.right(
        "without overlap",
        rows.iter().map(|(placed, _, i, _, _, curve)| {
            let before = rate(placed.roofs.without_overlap(*i), "flop/s");
            format!("{before} -> {}", rate(Some(*curve), "flop/s"))
        }),
    );
    table
        .right("attained", rows.iter().map(|(placed, ..)| rate(placed.point.attained(), "flop/s")));
    table.lines()
}

fn what_if_of_systems(all: &[System], changes: &[WhatIf]) -> Vec<String> {
    let rows: Vec<(&System, &WhatIf)> =
        all.iter().flat_map(|one| changes.iter().map(move |change| (one, change))).collect();
    let mut table = Table::default();
    table.left("system", rows.iter().map(|(one, _)| one.name.to_owned()));
    table.left("change", rows.iter().map(|(_, change)| change.name()));
    let mut ridges = |title: &str, ridge: &dyn Fn(&System) -> f64| {
        table.right(
            title,
            rows.iter().map(|(one, change)| {
                let (now, then) = (ridge(one), change.ridge(ridge(one)));
                format!("{} -> {}", significant(now, 4), significant(then, 4))
            }),
        );
    };
    ridges("ridge one way", &System::ridge_one_way);
    ridges("both ways", &System::ridge_both_ways);
    table.lines()
}

fn work(run: &RunFindings) -> Vec<String> {
    let mut rows: Vec<_> = run.work.iter().collect();
    rows.sort_by(|a, b| b.1.flops.total_cmp(&a.1.flops));
    let mut table = Table::default();
    table.left("function", rows.iter().map(|(name, _)| (*name).clone()));
    table.right("calls", rows.iter().map(|(_, work)| count(work.calls)));
    table.right("flop", rows.iter().map(|(_, work)| rate(Some(work.flops), "")));
    table.right("time", rows.iter().map(|(_, work)| seconds(work.time_s)));
    table.right(
        "rate",
        rows.iter().map(|(_, work)| {
            let timed = (work.time_s > 0.0).then(|| work.flops / work.time_s);
            rate(timed, "flop/s")
        }),
    );
    table.lines()
}

fn sweep_points(sweep: &Sweep) -> Vec<String> {
    let all = &sweep.points;
    let mut table = Table::default();
    table.right("flop/B", all.iter().map(|point| significant(point.intensity, 3)));
    table.right("attained", all.iter().map(|point| rate(Some(point.attained.median), "flop/s")));
    table.right("±", all.iter().map(|point| percent(point.attained.relative_uncertainty())));
    table.right("roof", all.iter().map(|point| rate(Some(point.with_overlap()), "flop/s")));
    table.right("of it", all.iter().map(|point| percent(point.of_roof())));
    let curve = |point: &crate::models::roofline::sweep::SweepPoint| point.without_overlap();
    table.right("no overlap", all.iter().map(|point| rate(Some(curve(point)), "flop/s")));
    table.right("of it", all.iter().map(|point| percent(point.of_no_overlap())));
    table.lines()
}

fn sweep_sentence(sweep: &Sweep) -> String {
    let list = |points: Vec<f64>| {
        let texts: Vec<String> = points.iter().map(|i| significant(*i, 3)).collect();
        texts.join(", ")
    };
    let above: Vec<f64> = sweep.above().map(|point| point.intensity).collect();
    let below: Vec<f64> = sweep.below().map(|point| point.intensity).collect();
    let mut text = match above.is_empty() {
        true => format!("No point lies above its roof by more than {}.", percent(ROOF_TOLERANCE)),
        false => {
            format!("Above their roof by more than {}: {}.", percent(ROOF_TOLERANCE), list(above))
        }
    };
    text += &match below.is_empty() {
        true => " None lies below the curve without overlap.".to_owned(),
        false => format!(" Below the curve without overlap: {}.", list(below)),
    };
    if let Some((left, right)) = sweep.ends() {
        let fine = left.abs().max(right.abs()) <= END_TOLERANCE;
        text += &format!(
            " The ends are off their ceilings by {} (communication) and {} (computation): {} {}.",
            percent(left),
            percent(right),
            if fine { "within" } else { "NOT within" },
            percent(END_TOLERANCE)
        );
    }
    text
}

fn systems(all: &[System]) -> Vec<String> {
    let mut table = Table::default();
    table.left("system", all.iter().map(|one| one.name.to_owned()));
    table.right("peak", all.iter().map(|one| rate(Some(one.peak_flops_per_s), "flop/s")));
    table.right("one way", all.iter().map(|one| rate(Some(one.one_way_bytes_per_s), "B/s")));
    table.right("ridge one way", all.iter().map(|one| significant(one.ridge_one_way(), 4)));
    table.right("both ways", all.iter().map(|one| significant(one.ridge_both_ways(), 4)));
    table.right("printed", all.iter().map(|one| one.printed.to_string()));
    table.left("network", all.iter().map(|one| one.topology.to_owned()));
    table.left("remark", all.iter().map(|one| one.remark.to_owned()));
    table.lines()
}
