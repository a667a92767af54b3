//! The JSON document of `gammachi roofline`; `docs/reference/predictions-json.md` explains its keys.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metrics::exchanges::{Moved, Work};
use crate::models::roofline::findings::{Assessment, RunFindings};
use crate::models::roofline::sweep::Sweep;
use crate::models::roofline::systems::System;
use crate::models::roofline::{Bandwidths, Findings, Roofs, Scope, Verdict, WhatIf};
use crate::present::document::{Head, text};

use super::remedy::remedy;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    #[serde(flatten)]
    head: Head,
    /// File of the ceilings.
    machine: Option<&'a str>,
    runs: Vec<RunDocument<'a>>,
    /// Outputs of `kernels roofline`.
    sweeps: Vec<SweepDocument<'a>>,
    /// Published systems (`--example`).
    systems: Vec<SystemDocument<'a>>,
    notes: &'a [String],
}

/// A run.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RunDocument<'a> {
    /// The run directory.
    run: &'a str,
    /// The job, hosts, regions.
    points: Vec<PointDocument<'a>>,
    /// Work by function.
    flops_seen: &'a BTreeMap<String, Work>,
    /// False: all are from a counter.
    flops_are_a_lower_bound: bool,
    notes: &'a [String],
}

/// The job, a host or a region ([definitions](../guide/calibrate.md#what-bounds-a-run-roofline)).
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PointDocument<'a> {
    name: &'a str,
    /// The host; null: the job, or a region.
    host: Option<&'a str>,
    ranks: usize,
    hosts: usize,
    /// τ.
    elapsed_s: f64,
    /// Floating-point operations; null: none are known.
    flops: Option<f64>,
    /// `counter` or `calls`.
    flops_from: &'static str,
    /// Those of calls and declared work.
    flops_of_calls: Option<f64>,
    /// `flops` / `elapsed_s`.
    attained_flops_per_s: Option<f64>,
    /// Bytes between hosts.
    bytes_between_hosts: Moved,
    /// Bytes within hosts.
    bytes_inside_hosts: Moved,
    /// Bytes that count: `other-host`, or `same-host` on one host.
    communication: &'static str,
    /// Partners of a rank, at most.
    partners: usize,
    /// I, operations for a byte of communication.
    flops_per_byte: Option<f64>,
    /// Each operand once, or as declared.
    operand_bytes: Option<f64>,
    /// By the counter `bytes`.
    counted_bytes: Option<f64>,
    /// Intensity towards memory.
    flops_per_operand_byte: Option<f64>,
    /// Share of the ranks' time.
    share_computing: f64,
    /// Operations over computing time.
    rate_while_computing_flops_per_s: Option<f64>,
    /// Of all ranks.
    communication_time_s: f64,
    /// The roofs above it.
    roofs: RoofsDocument<'a>,
    /// The verdict.
    bottleneck: &'static str,
    /// What to measure next; null: nothing.
    remedy: Option<&'static str>,
    #[serde(flatten)]
    verdict: &'a Verdict,
    /// Time that the bytes need.
    bytes_need_s: Option<f64>,
    /// `sent`, `received` or `both`.
    bytes_bound_by: Option<&'static str>,
    /// After changes.
    what_if: Vec<WhatIfDocument>,
}

/// Roofs over a point.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RoofsDocument<'a> {
    /// Name, rate.
    compute_flops_per_s: Vec<(&'a str, f64)>,
    /// Bandwidths of all ranks.
    communication_bytes_per_s: &'a [Bandwidths],
    /// With the run's message sizes.
    own_sizes_bytes_per_s: Option<f64>,
    /// Number of partners, rate.
    partners_bytes_per_s: &'a [(u32, f64)],
    /// Bandwidth of memory.
    memory_bytes_per_s: Option<f64>,
    /// Where the roofs of computing and communication meet.
    ridge_flops_per_byte: Option<f64>,
    /// Roof at this intensity with overlap.
    overlapped_flops_per_s: Option<f64>,
    /// Roof at this intensity without.
    no_overlap_flops_per_s: Option<f64>,
}

/// A point after a change.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WhatIfDocument {
    change: String,
    /// Intensity after it.
    flops_per_byte: f64,
    /// Roof with overlap after it.
    overlapped_flops_per_s: f64,
    /// Roof without.
    no_overlap_flops_per_s: f64,
}

/// An output of `kernels roofline`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SweepDocument<'a> {
    /// The MPI library.
    mpi: &'a str,
    ranks: u32,
    /// With roofs of their own.
    points: Vec<SweepPointDocument>,
    /// How many are above the roof.
    above_roof: usize,
    /// How many are below the roof without overlap.
    below_no_overlap: usize,
    /// Relative distance of the end from the ceiling of communication.
    end_communication: Option<f64>,
    /// Relative distance of the end from the ceiling of computing.
    end_computation: Option<f64>,
    noise: &'a [String],
}

/// A point of a sweep.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SweepPointDocument {
    /// Intensity.
    flops_per_byte: f64,
    attained_flops_per_s: f64,
    /// Roof with overlap.
    overlapped_flops_per_s: f64,
    /// Roof without.
    no_overlap_flops_per_s: f64,
}

/// A published system.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SystemDocument<'a> {
    #[serde(flatten)]
    system: &'a System,
    /// Ridge point with the bandwidth one way, flop/byte.
    ridge_one_way: f64,
    /// The same with both ways.
    ridge_both_ways: f64,
    /// After changes.
    what_if: Vec<RidgeDocument>,
}

/// A system after a change.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RidgeDocument {
    change: String,
    /// Ridge point after it, one way.
    ridge_one_way: f64,
    /// The same with both ways.
    ridge_both_ways: f64,
}

/// The document as indented text.
pub fn json(findings: &Findings) -> serde_json::Result<String> {
    text(&document(findings))
}

fn document(findings: &Findings) -> Document<'_> {
    Document {
        head: Head::default(),
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
        verdict,
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
