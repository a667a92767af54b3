//! Points of the roofline: operations, bytes and time of the job and of each host, from the
//! [`Exchanges`] of a selection.

use std::collections::{BTreeMap, BTreeSet};

use trace_format::counters::{BYTES, FLOPS};

use crate::metrics::exchanges::{Exchanges, Locality, Moved, RankExchanges};

/// The ranks that a point covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All ranks.
    Job,
    /// The ranks of a host.
    Host(String),
}

/// Work and communication over a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// `whole run`, or the region's name.
    pub name: String,
    /// The ranks that it covers.
    pub scope: Scope,
    pub ranks: usize,
    pub hosts: usize,
    /// Elapsed time (τ), seconds.
    pub elapsed_s: f64,
    /// Operations: those of the counter `flops` where it was read on all ranks, else those seen;
    /// `None` without either.
    pub flops: Option<f64>,
    /// Whether [`Point::flops`] come from a counter.
    pub flops_counted: bool,
    /// Operations seen in library calls or declared by the program: a lower bound; `None` without
    /// any.
    pub seen_flops: Option<f64>,
    /// Bytes to and from other hosts.
    pub between_hosts: Moved,
    /// Bytes to and from ranks of the same host, counted at both.
    pub inside_hosts: Moved,
    /// Which of the two counts as communication: between hosts where there are several.
    pub locality: Locality,
    /// Bytes of operands (declared bytes where work is declared), which give an upper bound on the
    /// memory intensity; `None` where unknown.
    pub operand_bytes: Option<f64>,
    /// Bytes to and from memory according to the counter `bytes`; `None` unless all ranks read it.
    pub counted_bytes: Option<f64>,
    /// Σγ_i, seconds.
    pub compute_s: f64,
    /// Seconds in point-to-point and collective communication, all ranks together.
    pub communication_s: f64,
    /// Number of messages of that locality, by size.
    pub sizes: BTreeMap<u64, u64>,
    /// Largest number of partners of a rank within that locality.
    pub partners: usize,
}

impl Point {
    /// Operations per second.
    pub fn attained(&self) -> Option<f64> {
        Some(self.flops? / self.elapsed_s).filter(|rate| rate.is_finite())
    }

    /// Bytes that count as communication.
    pub fn moved(&self) -> Moved {
        match self.locality {
            Locality::OtherHost => self.between_hosts,
            Locality::SameHost => self.inside_hosts,
        }
    }

    /// Operations over bytes sent and received; `None` without operations or without bytes.
    pub fn intensity(&self) -> Option<f64> {
        Some(self.flops? / self.moved().both()).filter(|intensity| intensity.is_finite())
    }

    /// Operations over counted bytes, or else over bytes of operands, which is an upper bound.
    pub fn memory_intensity(&self) -> Option<f64> {
        let bytes = self.counted_bytes.or(self.operand_bytes)?;
        Some(self.flops? / bytes).filter(|intensity| intensity.is_finite())
    }

    /// Operations per second of all ranks while they compute: operations over the mean γ.
    pub fn rate_while_computing(&self) -> Option<f64> {
        let mean = self.compute_s / self.ranks as f64;
        Some(self.flops? / mean).filter(|rate| rate.is_finite())
    }

    /// Σγ/(p·τ).
    pub fn share_computing(&self) -> f64 {
        self.compute_s / (self.ranks as f64 * self.elapsed_s)
    }

    /// The point of the job, then one for each host where there are several.
    pub fn from_exchanges(name: &str, exchanges: &Exchanges) -> Vec<Self> {
        let ranks: Vec<&RankExchanges> = exchanges.participants().collect();
        let several = exchanges.hosts.len() > 1;
        let locality = if several { Locality::OtherHost } else { Locality::SameHost };
        let point = |scope: Scope, ranks: &[&RankExchanges], hosts: usize| {
            Self::new((name, scope), ranks, (hosts, locality), exchanges)
        };
        let mut points = vec![point(Scope::Job, &ranks, exchanges.hosts.len())];
        if several {
            for (number, host) in exchanges.hosts.iter().enumerate() {
                let own: Vec<_> =
                    ranks.iter().copied().filter(|rank| rank.host == number).collect();
                if !own.is_empty() {
                    points.push(point(Scope::Host(host.clone()), &own, 1));
                }
            }
        }
        points
    }

    fn new(
        (name, scope): (&str, Scope),
        ranks: &[&RankExchanges],
        (hosts, locality): (usize, Locality),
        exchanges: &Exchanges,
    ) -> Self {
        let moved = |locality: Locality| {
            ranks.iter().fold(Moved::default(), |sum, rank| {
                let one = rank.moved(locality);
                Moved { sent: sum.sent + one.sent, received: sum.received + one.received }
            })
        };
        let mut sizes = BTreeMap::new();
        for ((at, bytes), count) in
            ranks.iter().flat_map(|rank| rank.sent.iter().chain(&rank.received))
        {
            if *at == locality {
                *sizes.entry(*bytes).or_default() += count;
            }
        }
        let works = || ranks.iter().flat_map(|rank| rank.work.values());
        let bytes: f64 = works().map(|work| work.bytes).sum();
        let own: BTreeSet<u32> = ranks.iter().map(|rank| rank.rank).collect();
        let counted = |name: &str| {
            let counter = exchanges.counters.iter().find(|counter| counter.name == name)?;
            counter.sum(|rank| own.contains(&rank))
        };
        let seen_flops = ranks.iter().filter_map(|rank| rank.flops()).reduce(|a, b| a + b);
        let counted_flops = counted(FLOPS);
        Self {
            name: name.to_owned(),
            scope,
            ranks: ranks.len(),
            hosts,
            elapsed_s: exchanges.elapsed_s,
            flops: counted_flops.or(seen_flops),
            flops_counted: counted_flops.is_some(),
            seen_flops,
            between_hosts: moved(Locality::OtherHost),
            inside_hosts: moved(Locality::SameHost),
            locality,
            operand_bytes: (bytes > 0.0).then_some(bytes),
            counted_bytes: counted(BYTES),
            compute_s: ranks.iter().map(|rank| rank.compute_s).sum(),
            communication_s: ranks.iter().map(|r| r.point_to_point_s + r.collective_s).sum(),
            sizes,
            partners: ranks
                .iter()
                .map(|rank| rank.partners.iter().filter(|(at, _)| *at == locality).count())
                .max()
                .unwrap_or(0),
        }
    }
}
