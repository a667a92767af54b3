//! Renders a roofline for the terminal.

use crate::metrics::exchanges::Locality;
use crate::models::roofline::findings::{Assessment, RunFindings};
use crate::models::roofline::sweep::{END_TOLERANCE, ROOF_TOLERANCE, Sweep};
use crate::models::roofline::systems::System;
use crate::models::roofline::{Bottleneck, Findings, Roofs, WhatIf};
use crate::present::quantity::in_unit;
use crate::present::table;

use super::super::quantity::{count, percent, seconds, significant};
use super::super::sections::Sections;
use super::super::table::Table;
use super::names::label;
use super::remedy::remedy;
use crate::tables::{self, Cell};

pub fn screen(findings: &Findings, colour: bool) -> String {
    let mut screen = Sections::new(colour);
    for run in &findings.runs {
        let all: Vec<&Assessment> = run.assessed.iter().collect();
        screen.section(&format!("ROOFLINE  {}", run.name), table::lines(&points(&all)));
        let has_roofs = |one: &&Assessment| {
            !one.roofs.compute.is_empty() || !one.roofs.communication.is_empty()
        };
        if let Some(placed) = run.assessed.first().filter(has_roofs) {
            let heading = format!(
                "ROOFS  {} ranks on {} hosts, {}",
                placed.point.ranks,
                placed.point.hosts,
                findings.source.as_deref().unwrap_or("without machine.json")
            );
            screen.section(&heading, roofs(placed));
        }
        screen.heading("VERDICT");
        screen.sentences(run.assessed.iter().map(sentence));
        screen.gap();
        if !findings.what_if.is_empty() {
            screen.section("WHAT IF", what_if(run, &findings.what_if));
        }
        if !run.work.is_empty() {
            screen.section("OPERATIONS SEEN  (a lower bound)", work(run));
        }
        screen.sentences(&run.notes);
        screen.gap();
    }
    for sweep in &findings.sweeps {
        screen.heading(&format!(
            "SWEEP  {}, {} ranks, messages of up to {} bytes; a rank's rates",
            sweep.mpi,
            sweep.ranks,
            count(sweep.message_bytes)
        ));
        screen.lines(sweep_points(sweep));
        screen.sentences([sweep_sentence(sweep)]);
        screen.sentences(sweep.noise.iter().map(|why| format!("noisy: {why}")));
        screen.gap();
    }
    if !findings.systems.is_empty() {
        screen.section("PUBLISHED SYSTEMS  (Yasuda et al., table 1)", systems(&findings.systems));
        if !findings.what_if.is_empty() {
            screen.section(
                "WHAT IF  (flop per byte that a program needs today to reach the peak)",
                what_if_of_systems(&findings.systems, &findings.what_if),
            );
        }
    }
    screen.finish(&findings.notes)
}

/// A value with three significant digits and a decimal prefix.
fn rate(value: Option<f64>, unit: &str) -> String {
    value.map_or("-".into(), |value| in_unit(value, 3, unit))
}

fn number(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| significant(value, 3))
}

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
    let mut table = Table::with_rows(&rows);
    table.left("roof", |(name, ..)| name.clone());
    table.right("rate", |(_, rate, _)| rate.clone());
    table.right("ridge, flop/B", |(.., ridge)| number(*ridge));
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
    let mut table = Table::with_rows(&rows);
    table.left("", |(placed, ..)| label(&placed.point));
    table.left("change", |(_, change, ..)| change.name());
    table.right("flop/B", |(_, _, from, to, ..)| {
        format!("{} -> {}", significant(*from, 3), significant(*to, 3))
    });
    table.right("roof", |(placed, _, i, _, roof, _)| {
        format!(
            "{} -> {}",
            rate(placed.roofs.with_overlap(*i), "flop/s"),
            rate(Some(*roof), "flop/s")
        )
    });
    table.right("without overlap", |(placed, _, i, _, _, curve)| {
        let before = rate(placed.roofs.without_overlap(*i), "flop/s");
        format!("{before} -> {}", rate(Some(*curve), "flop/s"))
    });
    table.right("attained", |(placed, ..)| rate(placed.point.attained(), "flop/s"));
    table.lines()
}

fn what_if_of_systems(all: &[System], changes: &[WhatIf]) -> Vec<String> {
    let rows: Vec<(&System, &WhatIf)> =
        all.iter().flat_map(|one| changes.iter().map(move |change| (one, change))).collect();
    let mut table = Table::with_rows(&rows);
    table.left("system", |(one, _)| one.name.to_owned());
    table.left("change", |(_, change)| change.name());
    let mut ridges = |title: &str, ridge: &dyn Fn(&System) -> f64| {
        table.right(title, |(one, change)| {
            let (now, then) = (ridge(one), change.ridge(ridge(one)));
            format!("{} -> {}", significant(now, 4), significant(then, 4))
        });
    };
    ridges("ridge one way", &System::ridge_one_way);
    ridges("both ways", &System::ridge_both_ways);
    table.lines()
}

fn work(run: &RunFindings) -> Vec<String> {
    let mut rows: Vec<_> = run.work.iter().collect();
    rows.sort_by(|a, b| b.1.flops.total_cmp(&a.1.flops));
    let mut table = Table::with_rows(&rows);
    table.left("function", |(name, _)| (*name).clone());
    table.right("calls", |(_, work)| count(work.calls));
    table.right("flop", |(_, work)| rate(Some(work.flops), ""));
    table.right("time", |(_, work)| seconds(work.time_s));
    table.right("rate", |(_, work)| {
        let timed = (work.time_s > 0.0).then(|| work.flops / work.time_s);
        rate(timed, "flop/s")
    });
    table.lines()
}

fn sweep_points(sweep: &Sweep) -> Vec<String> {
    let all = &sweep.points;
    let mut table = Table::with_rows(all);
    table.right("flop/B", |point| significant(point.intensity, 3));
    table.right("attained", |point| rate(Some(point.attained.median), "flop/s"));
    table.right("±", |point| percent(point.attained.relative_uncertainty()));
    table.right("roof", |point| rate(Some(point.with_overlap()), "flop/s"));
    table.right("of it", |point| percent(point.of_roof()));
    let curve = |point: &crate::models::roofline::sweep::SweepPoint| point.without_overlap();
    table.right("no overlap", |point| rate(Some(curve(point)), "flop/s"));
    table.right("of it", |point| percent(point.of_no_overlap()));
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
    let mut table = Table::with_rows(all);
    table.left("system", |one| one.name.to_owned());
    table.right("peak", |one| rate(Some(one.peak_flops_per_s), "flop/s"));
    table.right("one way", |one| rate(Some(one.one_way_bytes_per_s), "B/s"));
    table.right("ridge one way", |one| significant(one.ridge_one_way(), 4));
    table.right("both ways", |one| significant(one.ridge_both_ways(), 4));
    table.right("printed", |one| one.printed.to_string());
    table.left("network", |one| one.topology.to_owned());
    table.left("remark", |one| one.remark.to_owned());
    table.lines()
}
