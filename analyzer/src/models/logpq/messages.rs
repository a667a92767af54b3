//! Predicts what a recorded run's messages cost each rank, with all latency hidden and with none,
//! beside the time measured.
//!
//! The messages come from [`Exchanges`], and [`Parameters`] from the locality of the partner. A
//! rank's processor is busy with each message that it sends or receives:
//!
//! - max(o*, g*) in LogP with one message,
//! - w·max(o₀, g₀) in LogP with one message per word,
//! - o·w + n in LogPQ,
//! - o_s(s) or o_r(s) on the measured curves.
//!
//! Each received message also has a latency that computation can hide, at least 0 (the terms of
//! equations 6 to 8 for one message):
//!
//! - L*,
//! - L₀ − (w−1)·max(o₀, g₀),
//! - L + (w−1)·g − w·o − n,
//! - RTT/2 − o_s − o_r.
//!
//! No model covers waiting for a late partner.

use serde::Serialize;

use crate::metrics::exchanges::{Exchanges, Locality, RankExchanges, Sizes};

use super::cannon::{Curves, Model};
use super::parameters::Parameters;

/// One model's prediction for the messages of one rank, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Predicted {
    /// Time that the processor is busy with messages.
    pub busy_s: f64,
    /// Latency, if computation hides none of it.
    pub latency_s: f64,
}

impl Predicted {
    /// Time of the messages if no latency is hidden.
    pub fn exposed_s(&self) -> f64 {
        self.busy_s + self.latency_s
    }
}

/// One rank.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RankPrediction {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Number of messages sent and received that the models cover.
    pub messages: u64,
    /// Their bytes.
    pub bytes: f64,
    /// Number of messages of a locality that was not measured.
    #[serde(rename = "not_covered")]
    pub uncovered: u64,
    /// Predictions in the order of [`Model::ALL`].
    #[serde(skip)]
    pub models: [Predicted; 4],
    /// Measured time in sends, receives, probes and completions.
    pub measured_s: f64,
}

/// A run, or a region of it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPrediction {
    /// `whole run`, or the region's name.
    pub name: String,
    /// The ranks that take part.
    pub ranks: Vec<RankPrediction>,
    /// Measured time in collective calls, all ranks together; the models do not cover it.
    pub collective_s: f64,
    /// Number of collective calls.
    pub collective_calls: u64,
}

impl RunPrediction {
    /// Predicts with the parameters of each locality that was measured.
    pub fn new(
        name: String,
        exchanges: &Exchanges,
        parameters: impl Fn(Locality) -> Option<Parameters>,
    ) -> Self {
        let of = [Locality::SameHost, Locality::OtherHost]
            .map(|locality| (locality, parameters(locality)));
        let find = |locality: Locality| of.iter().find(|(at, _)| *at == locality)?.1.as_ref();
        Self {
            name,
            ranks: exchanges.participants().map(|rank| predict(rank, find)).collect(),
            collective_s: exchanges.participants().map(|rank| rank.collective_s).sum(),
            collective_calls: exchanges.participants().map(|rank| rank.collective_calls).sum(),
        }
    }

    /// All ranks together.
    pub fn sum(&self) -> RankPrediction {
        let mut sum = RankPrediction {
            rank: 0,
            messages: 0,
            bytes: 0.0,
            uncovered: 0,
            models: [Predicted::default(); 4],
            measured_s: 0.0,
        };
        for rank in &self.ranks {
            sum.messages += rank.messages;
            sum.bytes += rank.bytes;
            sum.uncovered += rank.uncovered;
            sum.measured_s += rank.measured_s;
            for (sum, one) in sum.models.iter_mut().zip(&rank.models) {
                sum.busy_s += one.busy_s;
                sum.latency_s += one.latency_s;
            }
        }
        sum
    }
}

fn predict<'a>(
    rank: &RankExchanges,
    find: impl Fn(Locality) -> Option<&'a Parameters>,
) -> RankPrediction {
    let mut prediction = RankPrediction {
        rank: rank.rank,
        messages: 0,
        bytes: 0.0,
        uncovered: 0,
        models: [Predicted::default(); 4],
        measured_s: rank.point_to_point_s,
    };
    let mut add = |sizes: &Sizes, receives: bool| {
        for ((locality, bytes), count) in sizes {
            let Some(parameters) = find(*locality) else {
                prediction.uncovered += count;
                continue;
            };
            prediction.messages += count;
            prediction.bytes += *bytes as f64 * *count as f64;
            for (model, sum) in Model::ALL.into_iter().zip(&mut prediction.models) {
                let one = of_message(model, parameters, *bytes, receives);
                sum.busy_s += *count as f64 * one.busy_s;
                sum.latency_s += *count as f64 * one.latency_s;
            }
        }
    };
    add(&rank.sent, false);
    add(&rank.received, true);
    prediction
}

fn of_message(model: Model, parameters: &Parameters, bytes: u64, receives: bool) -> Predicted {
    let w = bytes.div_ceil(parameters.word_bytes).max(1) as f64;
    let (busy_s, latency_s) = match model {
        Model::OneMessage => {
            let logp = &parameters.message;
            (logp.overhead.value.max(logp.gap.value), logp.latency.value)
        }
        Model::OneWord => {
            let logp = &parameters.one_word;
            let slower = logp.overhead.value.max(logp.gap.value);
            (w * slower, logp.latency.value - (w - 1.0) * slower)
        }
        Model::LogPq => {
            let logpq = &parameters.logpq;
            let busy = logpq.overhead.value * w + logpq.fixed.value;
            (busy, logpq.latency.value + (w - 1.0) * logpq.gap.value - busy)
        }
        Model::AllSizes => match &parameters.curves {
            Some(class) => {
                let curves = Curves::at(class, bytes);
                let busy = if receives { curves.receive_s } else { curves.send_s };
                (busy, curves.half_rtt_s - curves.send_s - curves.receive_s)
            }
            None => (0.0, 0.0),
        },
    };
    let latency_s = if receives { latency_s.max(0.0) } else { 0.0 };
    Predicted { busy_s: busy_s.max(0.0), latency_s }
}
