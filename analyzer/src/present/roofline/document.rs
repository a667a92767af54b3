//! The JSON document of `gammachi roofline`; `docs/reference/predictions-json.md` explains its keys.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metrics::exchanges::{Moved, Work};
use crate::models::roofline::findings::{Assessment, RunFindings};
use crate::models::roofline::sweep::Sweep;
use crate::models::roofline::systems::System;
use crate::models::roofline::{Bandwidths, Findings, Roofs, Scope, WhatIf};

use super::remedy::remedy;

/// Version of the document's keys: a key never changes its meaning within one version.
pub const VERSION: u32 = 1;

#[derive(Debug, Serialize)]
struct Document<'a> {
    version: u32,
    gammachi: &'static str,
    machine: Option<&'a str>,
    runs: Vec<RunDocument<'a>>,
    sweeps: Vec<SweepDocument<'a>>,
    systems: Vec<SystemDocument<'a>>,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct RunDocument<'a> {
    run: &'a str,
    points: Vec<PointDocument<'a>>,
    flops_seen: &'a BTreeMap<String, Work>,
    flops_are_a_lower_bound: bool,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct PointDocument<'a> {
    name: &'a str,
    host: Option<&'a str>,
    ranks: usize,
    hosts: usize,
    elapsed_s: f64,
    flops: Option<f64>,
    flops_from: &'static str,
    flops_of_calls: Option<f64>,
    attained_flops_per_s: Option<f64>,
    bytes_between_hosts: Moved,
    bytes_inside_hosts: Moved,
    communication: &'static str,
    partners: usize,
    flops_per_byte: Option<f64>,
    operand_bytes: Option<f64>,
    counted_bytes: Option<f64>,
    flops_per_operand_byte: Option<f64>,
    share_computing: f64,
    rate_while_computing_flops_per_s: Option<f64>,
    communication_time_s: f64,
    roofs: RoofsDocument<'a>,
    bottleneck: &'static str,
    remedy: Option<&'static str>,
    of_roof: Option<f64>,
    of_no_overlap: Option<f64>,
    computing_of_ceiling: Option<f64>,
    computing_of_memory: Option<f64>,
    bytes_need_s: Option<f64>,
    bytes_bound_by: Option<&'static str>,
    what_if: Vec<WhatIfDocument>,
}

#[derive(Debug, Serialize)]
struct RoofsDocument<'a> {
    compute_flops_per_s: Vec<(&'a str, f64)>,
    communication_bytes_per_s: &'a [Bandwidths],
    own_sizes_bytes_per_s: Option<f64>,
    partners_bytes_per_s: &'a [(u32, f64)],
    memory_bytes_per_s: Option<f64>,
    ridge_flops_per_byte: Option<f64>,
    overlapped_flops_per_s: Option<f64>,
    no_overlap_flops_per_s: Option<f64>,
}

#[derive(Debug, Serialize)]
struct WhatIfDocument {
    change: String,
    flops_per_byte: f64,
    overlapped_flops_per_s: f64,
    no_overlap_flops_per_s: f64,
}

#[derive(Debug, Serialize)]
struct SweepDocument<'a> {
    mpi: &'a str,
    ranks: u32,
    points: Vec<SweepPointDocument>,
    above_roof: usize,
    below_no_overlap: usize,
    end_communication: Option<f64>,
    end_computation: Option<f64>,
    noise: &'a [String],
}

#[derive(Debug, Serialize)]
struct SweepPointDocument {
    flops_per_byte: f64,
    attained_flops_per_s: f64,
    overlapped_flops_per_s: f64,
    no_overlap_flops_per_s: f64,
}

#[derive(Debug, Serialize)]
struct SystemDocument<'a> {
    #[serde(flatten)]
    system: &'a System,
    ridge_one_way: f64,
    ridge_both_ways: f64,
    what_if: Vec<RidgeDocument>,
}

#[derive(Debug, Serialize)]
struct RidgeDocument {
    change: String,
    ridge_one_way: f64,
    ridge_both_ways: f64,
}

/// The document as indented text.
///
/// # Errors
/// If it cannot be serialised.
pub fn json(findings: &Findings) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(&document(findings))? + "\n")
}

fn document(findings: &Findings) -> Document<'_> {
    Document {
        version: VERSION,
        gammachi: env!("CARGO_PKG_VERSION"),
        machine: findings.source.as_deref(),
        runs: findings.runs.iter().map(|one| run(one, &findings.what_if)).collect(),
        sweeps: findings.sweeps.iter().map(sweep).collect(),
        systems: findings.systems.iter().map(|one| system(one, &findings.what_if)).collect(),
        notes: &findings.notes,
    }
}

fn run<'a>(of: &'a RunFindings, changes: &[WhatIf]) -> RunDocument<'a> {
    RunDocument {
        run: &of.name,
        points: of.assessed.iter().map(|placed| point(placed, changes)).collect(),
        flops_seen: &of.work,
        flops_are_a_lower_bound: of.assessed.iter().any(|placed| !placed.point.flops_counted),
        notes: &of.notes,
    }
}

fn point<'a>(of: &'a Assessment, changes: &[WhatIf]) -> PointDocument<'a> {
    let Assessment { point, roofs, verdict } = of;
    let intensity = point.intensity();
    let what_if = changes.iter().filter_map(|change| {
        let (i, roof, curve) = change.apply(intensity?, roofs)?;
        Some(WhatIfDocument {
            change: change.name(),
            flops_per_byte: i,
            overlapped_flops_per_s: roof,
            no_overlap_flops_per_s: curve,
        })
    });
    PointDocument {
        name: &point.name,
        host: match &point.scope {
            Scope::Job => None,
            Scope::Host(host) => Some(host),
        },
        ranks: point.ranks,
        hosts: point.hosts,
        elapsed_s: point.elapsed_s,
        flops: point.flops,
        flops_from: if point.flops_counted { "counter" } else { "calls" },
        flops_of_calls: point.seen_flops,
        attained_flops_per_s: point.attained(),
        bytes_between_hosts: point.between_hosts,
        bytes_inside_hosts: point.inside_hosts,
        communication: point.locality.class_name(),
        partners: point.partners,
        flops_per_byte: intensity,
        operand_bytes: point.operand_bytes,
        counted_bytes: point.counted_bytes,
        flops_per_operand_byte: point
            .flops
            .zip(point.operand_bytes)
            .map(|(flops, bytes)| flops / bytes),
        share_computing: point.share_computing(),
        rate_while_computing_flops_per_s: point.rate_while_computing(),
        communication_time_s: point.communication_s,
        roofs: roofs_document(roofs, intensity),
        bottleneck: verdict.bottleneck.key(),
        remedy: remedy(verdict.bottleneck),
        of_roof: verdict.of_roof,
        of_no_overlap: verdict.of_no_overlap,
        computing_of_ceiling: verdict.computing_of_ceiling,
        computing_of_memory: verdict.computing_of_memory,
        bytes_need_s: verdict.communication_needs_s.map(|(needs, _)| needs),
        bytes_bound_by: verdict.communication_needs_s.map(|(_, which)| which),
        what_if: what_if.collect(),
    }
}

fn roofs_document(of: &Roofs, intensity: Option<f64>) -> RoofsDocument<'_> {
    RoofsDocument {
        compute_flops_per_s: of.compute.iter().map(|one| (one.name.as_str(), one.rate)).collect(),
        communication_bytes_per_s: &of.communication,
        own_sizes_bytes_per_s: of.own_sizes,
        partners_bytes_per_s: &of.partners,
        memory_bytes_per_s: of.memory,
        ridge_flops_per_byte: of.ridge(),
        overlapped_flops_per_s: intensity.and_then(|i| of.with_overlap(i)),
        no_overlap_flops_per_s: intensity.and_then(|i| of.without_overlap(i)),
    }
}

fn sweep(of: &Sweep) -> SweepDocument<'_> {
    let point = |point: &crate::models::roofline::sweep::SweepPoint| SweepPointDocument {
        flops_per_byte: point.intensity,
        attained_flops_per_s: point.attained.median,
        overlapped_flops_per_s: point.with_overlap(),
        no_overlap_flops_per_s: point.without_overlap(),
    };
    SweepDocument {
        mpi: &of.mpi,
        ranks: of.ranks,
        points: of.points.iter().map(point).collect(),
        above_roof: of.above().count(),
        below_no_overlap: of.below().count(),
        end_communication: of.ends().map(|(left, _)| left),
        end_computation: of.ends().map(|(_, right)| right),
        noise: &of.noise,
    }
}

fn system<'a>(system: &'a System, changes: &[WhatIf]) -> SystemDocument<'a> {
    SystemDocument {
        system,
        ridge_one_way: system.ridge_one_way(),
        ridge_both_ways: system.ridge_both_ways(),
        what_if: changes
            .iter()
            .map(|change| RidgeDocument {
                change: change.name(),
                ridge_one_way: change.ridge(system.ridge_one_way()),
                ridge_both_ways: change.ridge(system.ridge_both_ways()),
            })
            .collect(),
    }
}
