//! A recorded run's communication by the models: what its ranks exchanged ([`Exchanges`]) and
//! [`Parameters`] by place of the partner come in; for each rank the time that its messages cost, with
//! all latency hidden and with none, go out, beside what was measured.
//!
//! A rank's processor is busy with each message that it sends or receives: max(o*, g*) in LogP with one
//! message, w·max(o₀, g₀) with a message a word, o·w + n in LogPQ, o_s(s) or o_r(s) on the measured
//! curves. Each received message has a latency beyond that which computation can hide: L*,
//! L₀ − (w−1)·max(o₀, g₀), L + (w−1)·g − w·o − n (the terms of equations 6 to 8 for one message), and
//! RTT/2 − o_s − o_r; none is below 0. Waiting for a partner that is late is in no model.

use super::Parameters;
use super::cannon::{Curves, Model};
use crate::metrics::exchanges::{Exchanges, Place, RankExchanges, Sizes};

/// What one model says of one rank's messages, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Predicted {
    /// The processor is busy with messages.
    pub busy_s: f64,
    /// Latency, if nothing hides it.
    pub latency_s: f64,
}

impl Predicted {
    /// Nothing hidden.
    pub fn exposed_s(&self) -> f64 {
        self.busy_s + self.latency_s
    }
}

/// One rank.
#[derive(Debug, Clone, PartialEq)]
pub struct RankPrediction {
    /// Rank.
    pub rank: u32,
    /// Messages sent and received that the models cover.
    pub messages: u64,
    /// Their bytes.
    pub bytes: f64,
    /// Messages between places that were not measured.
    pub uncovered: u64,
    /// By [`Model::ALL`].
    pub models: [Predicted; 4],
    /// Measured: in sends, receives, probes and completions.
    pub measured_s: f64,
}

/// A run, or a region of it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPrediction {
    /// `whole run`, or the region's name.
    pub name: String,
    /// Its ranks that take part.
    pub ranks: Vec<RankPrediction>,
    /// Measured time in collective calls, all ranks together, of which the models say nothing.
    pub collective_s: f64,
    /// Collective calls.
    pub collective_calls: u64,
}

impl RunPrediction {
    /// Predicts from the parameters of each place that was measured.
    pub fn new(
        name: String,
        exchanges: &Exchanges,
        parameters: impl Fn(Place) -> Option<Parameters>,
    ) -> Self {
        let of = [Place::SameHost, Place::OtherHost].map(|place| (place, parameters(place)));
        let find = |place: Place| of.iter().find(|(at, _)| *at == place)?.1.as_ref();
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
    find: impl Fn(Place) -> Option<&'a Parameters>,
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
        for ((place, bytes), count) in sizes {
            let Some(parameters) = find(*place) else {
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
