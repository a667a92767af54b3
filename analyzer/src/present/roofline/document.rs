//! The JSON document of `gammachi roofline`; `docs/reference/predictions-json.md` explains its keys.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metrics::exchanges::{Moved, Work};
use crate::models::roofline::findings::{Assessment, RunFindings};
use crate::models::roofline::sweep::Sweep;
use crate::models::roofline::systems::System;
use crate::models::roofline::{Findings, Roofs, Scope, WhatIf};

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
    systems: Vec<SystemDocument>,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct RunDocument<'a> {
    run: &'a str,
    points: Vec<PointDocument<'a>>,
    flops_seen: BTreeMap<&'a str, WorkDocument>,
    flops_are_a_lower_bound: bool,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct WorkDocument {
    calls: u64,
    flops: f64,
    bytes: f64,
    time_s: f64,
}

#[derive(Debug, Serialize)]
struct MovedDocument {
    sent: f64,
    received: f64,
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
    bytes_between_hosts: MovedDocument,
    bytes_inside_hosts: MovedDocument,
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
    remedy: &'static str,
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
    communication_bytes_per_s: Vec<BandwidthsDocument<'a>>,
    own_sizes_bytes_per_s: Option<f64>,
    partners_bytes_per_s: &'a [(u32, f64)],
    memory_bytes_per_s: Option<f64>,
    ridge_flops_per_byte: Option<f64>,
    overlapped_flops_per_s: Option<f64>,
    no_overlap_flops_per_s: Option<f64>,
}

#[derive(Debug, Serialize)]
struct BandwidthsDocument<'a> {
    name: &'a str,
    out: f64,
    into: f64,
    both: f64,
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
struct SystemDocument {
    key: &'static str,
    name: &'static str,
    peak_flops_per_s: f64,
    one_way_bytes_per_s: f64,
    ridge_one_way: f64,
    ridge_both_ways: f64,
    printed: f64,
    remark: &'static str,
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

/// The document as a value, for other documents that contain it.
pub(in crate::present) fn value(findings: &Findings) -> serde_json::Value {
    // These types always serialise.
    serde_json::to_value(document(findings)).unwrap_or_default()
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
    let work = |work: &Work| WorkDocument {
        calls: work.calls,
        flops: work.flops,
        bytes: work.bytes,
        time_s: work.time_s,
    };
    RunDocument {
        run: &of.name,
        points: of.assessed.iter().map(|placed| point(placed, changes)).collect(),
        flops_seen: of.work.iter().map(|(name, one)| (name.as_str(), work(one))).collect(),
        flops_are_a_lower_bound: of.assessed.iter().any(|placed| !placed.point.flops_counted),
        notes: &of.notes,
    }
}

fn point<'a>(of: &'a Assessment, changes: &[WhatIf]) -> PointDocument<'a> {
    let Assessment { point, roofs, verdict } = of;
    let moved = |moved: &Moved| MovedDocument { sent: moved.sent, received: moved.received };
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
        bytes_between_hosts: moved(&point.between_hosts),
        bytes_inside_hosts: moved(&point.inside_hosts),
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
        communication_bytes_per_s: of
            .communication
            .iter()
            .map(|one| BandwidthsDocument {
                name: &one.name,
                out: one.out,
                into: one.into,
                both: one.both,
            })
            .collect(),
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

fn system(of: &System, changes: &[WhatIf]) -> SystemDocument {
    SystemDocument {
        key: of.key,
        name: of.name,
        peak_flops_per_s: of.peak_flops_per_s,
        one_way_bytes_per_s: of.one_way_bytes_per_s,
        ridge_one_way: of.ridge_one_way(),
        ridge_both_ways: of.ridge_both_ways(),
        printed: of.printed,
        remark: of.remark,
        what_if: changes
            .iter()
            .map(|change| RidgeDocument {
                change: change.name(),
                ridge_one_way: change.ridge(of.ridge_one_way()),
                ridge_both_ways: change.ridge(of.ridge_both_ways()),
            })
            .collect(),
    }
}
