use std::collections::BTreeMap;

use super::roofs::DataSheet;
use super::systems::SYSTEMS;
use super::*;
use crate::metrics::exchanges::{Locality, Moved};
use crate::models::machine::tests::machine;

#[test]
fn ridges_of_published_systems_in_both_conventions() {
    // Ridge with B one way, ridge with B both ways, and whether the printed value is right.
    let expected = [
        ("sx-9", 13.1, 6.55, false),
        ("nehalem-ex", 72.48, 36.24, true),
        ("fx1", 20.0, 10.0, true),
        ("fx10-1", 47.2, 23.6, true),
        ("fx10-10", 4.72, 2.36, true),
        ("sr16000-hub", 10.21, 5.11, true),
        ("sr16000-drawer", 40.85, 20.43, true),
        ("sr16000-between", 17.05, 8.526, false),
    ];
    for ((key, one_way, both, printed_is_right), system) in expected.into_iter().zip(&SYSTEMS) {
        assert_eq!(system.key, key);
        assert!((system.ridge_one_way() / one_way - 1.0).abs() < 1e-3, "{key}");
        assert!((system.ridge_both_ways() / both - 1.0).abs() < 1e-3, "{key}");
        let off = (system.ridge_both_ways() / system.printed - 1.0).abs();
        assert_eq!(off < 3e-3, printed_is_right, "{key}: {off}");
    }
    // The SX-9's printed value belongs to another peak.
    assert!((ridge(1638.4e9, 256e9) - 6.4).abs() < 1e-9);
}

#[test]
fn roofs_meet_at_the_ridge_and_the_curve_lies_below_them() {
    let (f, b) = (40e9, 4e9);
    assert_eq!(ridge(f, b), 10.0);
    assert_eq!(with_overlap(f, b, 10.0), f);
    assert_eq!(without_overlap(f, b, 10.0), f / 2.0);
    for i in [0.01, 0.1, 1.0, 9.99, 10.01, 100.0, 1000.0] {
        let (roof, curve) = (with_overlap(f, b, i), without_overlap(f, b, i));
        assert!(curve < roof && curve >= roof / 2.0, "{i}");
    }
    // Figure 12 of Yasuda et al.: SX-9, a quarter of the communication, intensity 4.59: 1175
    // Gflop/s.
    let after = with_overlap(1676.8e9, 256e9, 4.59);
    assert!((after - 1175e9).abs() < 1e9);
}

fn point(flops: f64, bytes: f64, elapsed_s: f64, compute_s: f64) -> Point {
    Point {
        name: "whole run".into(),
        scope: Scope::Job,
        ranks: 2,
        hosts: 1,
        elapsed_s,
        flops: Some(flops),
        flops_counted: false,
        seen_flops: Some(flops),
        between_hosts: Moved::default(),
        inside_hosts: Moved { sent: bytes / 2.0, received: bytes / 2.0 },
        locality: Locality::SameHost,
        operand_bytes: None,
        counted_bytes: None,
        compute_s,
        communication_s: 2.0 * elapsed_s - compute_s,
        sizes: BTreeMap::from([(1 << 20, 10)]),
        partners: 1,
    }
}

fn roofs() -> Roofs {
    let sizes = BTreeMap::from([(1u64 << 20, 10u64)]);
    Roofs::new(Some(&machine()), &DataSheet::default(), (2, 1), Locality::SameHost, &sizes)
}

#[test]
fn roofs_of_two_ranks_come_from_the_machine() {
    let roofs = roofs();
    // dgemm 18 Gflop/s and communication 4 GB/s per rank.
    assert_eq!(roofs.flops_per_s(), Some(36e9));
    assert_eq!(roofs.bytes_per_s(), Some(8e9));
    assert_eq!(roofs.ridge(), Some(4.5));
    assert_eq!(roofs.memory, Some(16e9));
    let names: Vec<_> = roofs.compute.iter().map(|ceiling| ceiling.name.as_str()).collect();
    assert_eq!(names, ["dgemm", "fma"]);
    let small = BTreeMap::from([(8u64, 1000u64)]);
    let small =
        Roofs::new(Some(&machine()), &DataSheet::default(), (2, 1), Locality::SameHost, &small);
    assert!(small.own_sizes.unwrap() < 0.05 * small.bytes_per_s().unwrap());
    // No pair between hosts was measured, so there is no roof.
    let between = Roofs::new(
        Some(&machine()),
        &DataSheet::default(),
        (2, 2),
        Locality::OtherHost,
        &BTreeMap::new(),
    );
    assert_eq!(between.bytes_per_s(), None);
    let sheet = DataSheet { peak_flops_per_s: Some(1e12), one_way_bytes_per_s: Some(1e10) };
    let sheet = Roofs::new(None, &sheet, (8, 2), Locality::OtherHost, &BTreeMap::new());
    assert_eq!((sheet.flops_per_s(), sheet.bytes_per_s()), (Some(2e12), Some(4e10)));
}

#[test]
fn verdicts_by_where_a_point_lies() {
    let roofs = roofs();
    let verdict = |point: &Point| Verdict::new(point, &roofs).bottleneck;
    // The roofs are 36 Gflop/s and 8 GB/s: 36e9 operations or 8e9 bytes take one second.
    assert_eq!(verdict(&point(36e9, 0.8e9, 1.1, 2.0)), Bottleneck::Computation);
    assert_eq!(verdict(&point(3.6e9, 8e9, 1.1, 0.2)), Bottleneck::Communication);
    assert_eq!(verdict(&point(36e9, 8e9, 2.1, 2.0)), Bottleneck::NoOverlap);
    assert_eq!(verdict(&point(36e9, 0.8e9, 4.0, 7.5)), Bottleneck::SlowComputation);
    assert_eq!(verdict(&point(36e9, 0.8e9, 4.0, 2.1)), Bottleneck::Waiting);
    assert_eq!(verdict(&point(36e9, 0.8e9, 0.5, 1.0)), Bottleneck::AboveRoof);
    // 16 GB/s of triad: one flop per byte allows 16 Gflop/s, and this point reaches 60 % of that.
    let streaming = Point { operand_bytes: Some(36e9), ..point(36e9, 0.8e9, 4.0, 7.5) };
    assert_eq!(verdict(&streaming), Bottleneck::Memory);
    // Counted bytes take precedence over bytes of operands.
    let cached = Point { counted_bytes: Some(0.36e9), ..streaming };
    assert_eq!(verdict(&cached), Bottleneck::SlowComputation);
    let none = Point { flops: None, ..point(1.0, 1.0, 1.0, 1.0) };
    assert_eq!(verdict(&none), Bottleneck::NothingSeen);
    let no_roofs =
        Roofs::new(None, &DataSheet::default(), (2, 1), Locality::SameHost, &BTreeMap::new());
    assert_eq!(
        Verdict::new(&point(36e9, 1.0, 1.0, 1.0), &no_roofs).bottleneck,
        Bottleneck::NoRoofs
    );
}

#[test]
fn the_slowest_direction_determines_the_communication_time() {
    let roofs = roofs();
    let bandwidths = &roofs.communication[0];
    assert_eq!(bandwidths.time_s(4e9, 4e9), (1.0, "both"));
    // Everything one way: the one-way bandwidth limits.
    let (seconds, which) = bandwidths.time_s(8e9, 0.0);
    assert!(seconds > 1.0 && which == "sent", "{seconds} {which}");
}

#[test]
fn what_if_moves_the_point_or_the_roof() {
    let roofs = roofs();
    assert_eq!(WhatIf::parse("comm/4"), Ok(WhatIf::Communication(4.0)));
    assert_eq!(WhatIf::parse("peak*2"), Ok(WhatIf::Peak(2.0)));
    for bad in ["", "comm", "comm/0", "comm/x", "speed*2", "comm/-1"] {
        assert!(WhatIf::parse(bad).is_err(), "{bad}");
    }
    let (i, roof, curve) = WhatIf::Communication(4.0).apply(1.0, &roofs).unwrap();
    assert_eq!((i, roof), (4.0, 32e9));
    assert!(curve < roof);
    let (_, roof, _) = WhatIf::Bandwidth(2.0).apply(1.0, &roofs).unwrap();
    assert_eq!(roof, 16e9);
}

#[test]
fn what_if_moves_the_ridge_of_a_published_system() {
    let nehalem = SYSTEMS.iter().find(|one| one.key == "nehalem-ex").unwrap();
    let findings = Findings {
        systems: vec![*nehalem],
        what_if: vec![WhatIf::Communication(4.0), WhatIf::Peak(2.0)],
        ..Findings::default()
    };
    let screen = crate::present::roofline::screen(&findings, false);
    assert!(screen.contains("72.48 -> 18.12") && screen.contains("36.24 -> 9.06"), "{screen}");
    assert!(screen.contains("72.48 -> 145"), "{screen}");
    let json = crate::present::roofline::json(&findings).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let ridge = json["systems"][0]["what_if"][0]["ridge_both_ways"].as_f64().unwrap();
    assert!((ridge - 9.06).abs() < 1e-9, "{ridge}");
}
