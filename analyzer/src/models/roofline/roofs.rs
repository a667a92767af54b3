//! The roofs over a point: what `machine.json` measured (and a data sheet says), the ranks that work
//! and the messages that they exchange come in; [`Roofs`] goes out.
//!
//! A rank's ceiling times the number of ranks is the ceiling of a host or job: `calibrate` measures a
//! rank while all others run. Bandwidths count bytes sent and received; inside one host a byte
//! counts on both its ranks, in the ceiling as in the run.

use std::collections::BTreeMap;

use crate::metrics::exchanges::Place;
use crate::models::machine::{Machine, PairClass};

use super::{one_after_the_other, overlapped, ridge};

/// A ceiling of operations.
#[derive(Debug, Clone, PartialEq)]
pub struct Ceiling {
    /// `theoretical peak`, `dgemm`, `fma`.
    pub name: String,
    /// flop/s, or bytes/s.
    pub rate: f64,
}

/// Bandwidths of communication; bytes a second of all ranks together.
#[derive(Debug, Clone, PartialEq)]
pub struct Bandwidths {
    /// `measured`, `theoretical`.
    pub name: String,
    /// Sent alone.
    pub out: f64,
    /// Received alone.
    pub into: f64,
    /// Sent and received at once, both counted.
    pub both: f64,
}

impl Bandwidths {
    /// T_comm = max(sent/B_out, received/B_in, (sent + received)/B_both), and which of them it is.
    pub fn time_s(&self, sent: f64, received: f64) -> (f64, &'static str) {
        let times = [
            (sent / self.out, "sent"),
            (received / self.into, "received"),
            ((sent + received) / self.both, "both"),
        ];
        times.into_iter().fold((0.0, "both"), |most, one| if one.0 > most.0 { one } else { most })
    }
}

/// Everything that is drawn over a point.
#[derive(Debug, Clone, PartialEq)]
pub struct Roofs {
    /// Ceilings of operations, the one that the verdict is by first: dgemm, else fma, else the
    /// theoretical one.
    pub compute: Vec<Ceiling>,
    /// The communication that the point's bytes are: between hosts, or between the ranks of a host.
    pub place: Place,
    /// Communication with large messages; the one that the verdict is by first (measured before
    /// theoretical).
    pub communication: Vec<Bandwidths>,
    /// With the run's own message sizes, both ways.
    pub own_sizes: Option<f64>,
    /// By number of partners at once, both ways.
    pub partners: Vec<(u32, f64)>,
    /// Memory, bytes a second as STREAM triad counts them.
    pub memory: Option<f64>,
}

/// What a data sheet says of a host.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DataSheet {
    /// Peak, flop/s.
    pub peak_flops_per_s: Option<f64>,
    /// Bandwidth one way, bytes a second.
    pub one_way_bytes_per_s: Option<f64>,
}

impl Roofs {
    /// Of `ranks` ranks on `hosts` hosts that exchange messages of these sizes with ranks at `place`.
    pub fn new(
        machine: Option<&Machine>,
        sheet: &DataSheet,
        (ranks, hosts): (usize, usize),
        place: Place,
        sizes: &BTreeMap<u64, u64>,
    ) -> Self {
        let (p, h) = (ranks as f64, hosts as f64);
        let rate = |name: &str| {
            let ceiling = machine?.ceilings.of(name)?;
            Some(Ceiling { name: name.into(), rate: p * ceiling.per_rank.median })
        };
        let peak = sheet.peak_flops_per_s;
        let theoretical =
            peak.map(|peak| Ceiling { name: "theoretical peak".into(), rate: h * peak });
        let compute = [rate("dgemm"), rate("fma"), theoretical].into_iter().flatten().collect();
        let class = machine.and_then(|machine| machine.network.class(place.class_name()));
        let measured = machine.and_then(|machine| measured_bandwidths(machine, class, place, p));
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
            place,
            communication: [measured, theoretical].into_iter().flatten().collect(),
            own_sizes,
            partners,
            memory: rate("triad").map(|triad| triad.rate),
        }
    }

    /// F that the verdict is by.
    pub fn flops_per_s(&self) -> Option<f64> {
        self.compute.first().map(|ceiling| ceiling.rate)
    }

    /// B, both ways, that the verdict is by.
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.communication.first().map(|bandwidths| bandwidths.both)
    }

    /// min(F, B·I).
    pub fn overlapped(&self, intensity: f64) -> Option<f64> {
        Some(overlapped(self.flops_per_s()?, self.bytes_per_s()?, intensity))
    }

    /// 1/(1/F + 1/(B·I)).
    pub fn one_after_the_other(&self, intensity: f64) -> Option<f64> {
        Some(one_after_the_other(self.flops_per_s()?, self.bytes_per_s()?, intensity))
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
    place: Place,
    ranks: f64,
) -> Option<Bandwidths> {
    let all_at_once = machine
        .ceilings
        .of("communication")
        .filter(|_| machine.ceilings.communication_class.as_deref() == Some(place.class_name()))
        .map(|ceiling| ceiling.per_rank.median);
    // Without all pairs at once, one pair alone has to do: more than all of them may reach together.
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

/// Bytes a second of a pair, both ways, over messages of these sizes: their bytes over the time that
/// each would take.
fn of_sizes(class: &PairClass, sizes: &BTreeMap<u64, u64>) -> Option<f64> {
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for (size, count) in sizes.iter().filter(|(size, _)| **size > 0) {
        let all = *size as f64 * *count as f64;
        bytes += all;
        seconds += all / class.at(*size, |one| &one.both_ways_bytes_per_s);
    }
    (seconds > 0.0).then(|| bytes / seconds)
}
