//! The roofs over a point, from what `machine.json` measured and what a data sheet says.
//!
//! The ceiling of a host or job is a rank's ceiling times the number of ranks: `calibrate` measures
//! a rank while all others run. Bandwidths count bytes sent and received; inside a host a byte
//! counts at both its ranks, in the ceiling as in the run.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metrics::exchanges::Locality;
use crate::models::machine::{Machine, PairClass};

use super::attainable::{ridge, with_overlap, without_overlap};

/// A ceiling of operations.
#[derive(Debug, Clone, PartialEq)]
pub struct Ceiling {
    /// `theoretical peak`, `dgemm` or `fma`.
    pub name: String,
    /// flop/s, or bytes/s.
    pub rate: f64,
}

/// Bandwidths of communication: bytes per second of all ranks together.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bandwidths {
    /// How they are known: `measured, …` or `theoretical`.
    pub name: String,
    /// Sending only.
    pub out: f64,
    /// Receiving only.
    pub into: f64,
    /// Sending and receiving at once, both counted.
    pub both: f64,
}

impl Bandwidths {
    /// T_comm = max(sent/B_out, received/B_in, (sent + received)/B_both), and which of the three is
    /// the largest.
    pub fn time_s(&self, sent: f64, received: f64) -> (f64, &'static str) {
        let times = [
            (sent / self.out, "sent"),
            (received / self.into, "received"),
            ((sent + received) / self.both, "both"),
        ];
        times.into_iter().fold((0.0, "both"), |most, one| if one.0 > most.0 { one } else { most })
    }
}

/// All the roofs over a point.
#[derive(Debug, Clone, PartialEq)]
pub struct Roofs {
    /// Ceilings of operations. The first decides the verdict: dgemm, else fma, else the theoretical
    /// peak.
    pub compute: Vec<Ceiling>,
    /// Whether the point's bytes moved between hosts or between the ranks of a host.
    pub locality: Locality,
    /// Bandwidths with large messages. The first decides the verdict: measured before theoretical.
    pub communication: Vec<Bandwidths>,
    /// Bandwidth with the run's own message sizes, both ways, bytes per second.
    pub own_sizes: Option<f64>,
    /// Bandwidth by number of simultaneous partners, both ways, bytes per second.
    pub partners: Vec<(u32, f64)>,
    /// Memory bandwidth, bytes per second as STREAM triad counts them.
    pub memory: Option<f64>,
}

/// Figures of a host from its data sheet.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DataSheet {
    /// Peak rate, flop/s.
    pub peak_flops_per_s: Option<f64>,
    /// Bandwidth one way, bytes per second.
    pub one_way_bytes_per_s: Option<f64>,
}

impl Roofs {
    /// The roofs of `ranks` ranks on `hosts` hosts that exchange messages of these sizes.
    pub fn new(
        machine: Option<&Machine>,
        sheet: &DataSheet,
        (ranks, hosts): (usize, usize),
        locality: Locality,
        sizes: &BTreeMap<u64, u64>,
    ) -> Self {
        let (p, h) = (ranks as f64, hosts as f64);
        let rate = |name: &str| {
            let ceiling = machine?.ceilings.named(name)?;
            Some(Ceiling { name: name.into(), rate: p * ceiling.per_rank.median })
        };
        let peak = sheet.peak_flops_per_s;
        let theoretical =
            peak.map(|peak| Ceiling { name: "theoretical peak".into(), rate: h * peak });
        let compute = [rate("dgemm"), rate("fma"), theoretical].into_iter().flatten().collect();
        let class = machine.and_then(|machine| machine.network.class(locality.class_name()));
        let measured = machine.and_then(|machine| measured_bandwidths(machine, class, locality, p));
        let theoretical = sheet.one_way_bytes_per_s.map(|one_way| Bandwidths {
            name: "theoretical".into(),
            out: h * one_way,
            into: h * one_way,
            both: 2.0 * h * one_way,
        });
        let own_sizes = class.zip(measured.as_ref()).and_then(|(class, measured)| {
            let own = of_sizes(class, sizes)?;
            let large = largest_rate(class);
            Some(measured.both * (own / large).min(1.0))
        });
        let mut partners: Vec<(u32, f64)> = class
            .iter()
            .flat_map(|class| {
                let largest = class.flows.iter().map(|flow| flow.bytes).max().unwrap_or(0);
                let hubs = class
                    .flows
                    .iter()
                    .filter(move |flow| flow.shape == "hub-both" && flow.bytes == largest);
                hubs.map(|flow| (flow.partners, p * flow.bytes_per_s.median))
            })
            .collect();
        partners.sort_by_key(|(number, _)| *number);
        Self {
            compute,
            locality,
            communication: [measured, theoretical].into_iter().flatten().collect(),
            own_sizes,
            partners,
            memory: rate("triad").map(|triad| triad.rate),
        }
    }

    /// F, the ceiling of operations that decides the verdict.
    pub fn flops_per_s(&self) -> Option<f64> {
        self.compute.first().map(|ceiling| ceiling.rate)
    }

    /// B, both ways, the bandwidth that decides the verdict.
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.communication.first().map(|bandwidths| bandwidths.both)
    }

    /// min(F, B·I).
    pub fn with_overlap(&self, intensity: f64) -> Option<f64> {
        Some(with_overlap(self.flops_per_s()?, self.bytes_per_s()?, intensity))
    }

    /// 1/(1/F + 1/(B·I)).
    pub fn without_overlap(&self, intensity: f64) -> Option<f64> {
        Some(without_overlap(self.flops_per_s()?, self.bytes_per_s()?, intensity))
    }

    /// I*.
    pub fn ridge(&self) -> Option<f64> {
        Some(ridge(self.flops_per_s()?, self.bytes_per_s()?))
    }
}

fn largest_rate(class: &PairClass) -> f64 {
    class.sizes.iter().map(|size| size.both_ways_bytes_per_s.median).fold(0.0, f64::max)
}

fn measured_bandwidths(
    machine: &Machine,
    class: Option<&PairClass>,
    locality: Locality,
    ranks: f64,
) -> Option<Bandwidths> {
    let all_at_once = machine
        .ceilings
        .named("communication")
        .filter(|_| machine.ceilings.communication_class.as_deref() == Some(locality.class_name()))
        .map(|ceiling| ceiling.per_rank.median);
    // Where all pairs at once were not measured, use one pair alone. That may be more per rank than
    // all pairs reach together.
    let both = all_at_once.or_else(|| class.map(largest_rate))?;
    let ratio = class.map_or(0.5, |class| {
        let one_way = class.sizes.iter().map(|size| size.one_way_bytes_per_s.median);
        (one_way.fold(0.0, f64::max) / largest_rate(class)).clamp(0.5, 1.0)
    });
    let name = match all_at_once {
        Some(_) => "measured, all ranks at once",
        None => "measured, one pair alone",
    };
    let one_way = ranks * both * ratio;
    Some(Bandwidths { name: name.into(), out: one_way, into: one_way, both: ranks * both })
}

/// Bytes per second of a pair, both ways, over messages of these sizes: all bytes over the sum of
/// the times that the messages would take.
fn of_sizes(class: &PairClass, sizes: &BTreeMap<u64, u64>) -> Option<f64> {
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for (size, count) in sizes.iter().filter(|(size, _)| **size > 0) {
        let all = *size as f64 * *count as f64;
        bytes += all;
        seconds += all / class.at(*size, |one| &one.both_ways_bytes_per_s);
    }
    (seconds > 0.0).then(|| bytes / seconds)
}
