//! Predicted times of Cannon's product, equations (3) to (8) of Touyama and Horiguchi, for P = p²
//! ranks and matrices of order N.
//!
//! "ot" in the printed equations (6) to (8) is t_M: only then are they continuous where the latency
//! begins to be hidden.

use crate::models::machine::PairClass;

use super::parameters::{LogP, LogPq, Parameters};

/// The time t_M = t_f + t_s·l³ of the product of two blocks of order l (3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockProduct {
    /// Fixed part t_f, seconds.
    pub fixed_s: f64,
    /// Time t_s of one multiply-add, seconds.
    pub multiply_s: f64,
}

impl BlockProduct {
    /// The CM-5 of Touyama and Horiguchi.
    pub const CM5: Self = Self { fixed_s: 1.55e-4, multiply_s: 5.98e-6 };

    /// t_M at order l.
    pub fn seconds(&self, l: f64) -> f64 {
        self.fixed_s + self.multiply_s * l.powi(3)
    }

    /// Fits measured (l, t_M) by least squares of relative residuals, with neither part negative;
    /// `None` without points.
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let (mut a, mut b, mut c, mut d, mut e) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (l, t) in points {
            let (x, y) = (1.0 / t, l.powi(3) / t);
            (a, b, c, d, e) = (a + x * x, b + x * y, c + y * y, d + x, e + y);
        }
        let determinant = a * c - b * b;
        let both = (determinant > 1e-12 * a * c).then(|| Self {
            fixed_s: (d * c - e * b) / determinant,
            multiply_s: (a * e - b * d) / determinant,
        });
        let inside = |fit: &Self| fit.fixed_s >= 0.0 && fit.multiply_s >= 0.0;
        let cubic = || (c > 0.0).then(|| Self { fixed_s: 0.0, multiply_s: e / c });
        both.filter(inside).or_else(cubic)
    }
}

/// LogP with one message per block (6): seconds of communication per step.
pub fn logp_one_message(logp: &LogP, t_m: f64) -> f64 {
    let LogP { latency, overhead, gap } = logp;
    let busy = overhead.value + 3.0 * overhead.value.max(gap.value);
    busy + (latency.value - t_m).max(0.0)
}

/// LogP with one message for each of a block's w words (7).
pub fn logp_one_word(logp: &LogP, w: f64, t_m: f64) -> f64 {
    let slower = logp.overhead.value.max(logp.gap.value);
    let busy = logp.overhead.value + slower * (4.0 * w - 1.0);
    busy + (logp.latency.value - (2.0 * w - 1.0) * slower - t_m).max(0.0)
}

/// LogPQ (8).
pub fn logpq(logpq: &LogPq, w: f64, t_m: f64) -> f64 {
    let (o, n) = (logpq.overhead.value, logpq.fixed.value);
    let under_way = logpq.latency.value + (2.0 * w - 1.0) * logpq.gap.value;
    4.0 * (o * w + n) + (under_way - 2.0 * w * o - n - t_m).max(0.0)
}

/// LogPQ with overhead, gap and round trip measured at the block's own size, not scaled from one
/// size: four overheads, plus the time by which the second block arrives after the two sends and
/// the product.
pub fn over_all_sizes(class: &PairClass, bytes: u64, t_m: f64) -> f64 {
    let curves = Curves::at(class, bytes);
    let arrival = curves.half_rtt_s - curves.receive_s + curves.gap_s;
    2.0 * (curves.send_s + curves.receive_s) + (arrival - 2.0 * curves.send_s - t_m).max(0.0)
}

/// Measured costs of a message of some size; beyond the largest measured size, the last linear
/// pieces are extrapolated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curves {
    /// RTT/2.
    pub half_rtt_s: f64,
    /// o_s.
    pub send_s: f64,
    /// o_r.
    pub receive_s: f64,
    pub gap_s: f64,
}

impl Curves {
    /// The costs at a size.
    pub fn at(class: &PairClass, bytes: u64) -> Self {
        let largest = class.sizes.last().map_or(0, |size| size.bytes);
        let beyond = |pieces: &[crate::models::machine::Piece]| {
            let last = pieces.last().filter(|_| bytes > largest);
            last.map(|piece| piece.at(bytes).max(0.0))
        };
        let fits = &class.fits;
        Self {
            half_rtt_s: class.message_s(bytes),
            send_s: beyond(&fits.send_overhead)
                .unwrap_or_else(|| class.at(bytes, |size| &size.send_overhead_s))
                .max(0.0),
            receive_s: beyond(&fits.receive_overhead)
                .unwrap_or_else(|| class.at(bytes, |size| &size.receive_overhead_s))
                .max(0.0),
            gap_s: beyond(&fits.gap)
                .unwrap_or_else(|| class.at(bytes, |size| &size.gap_s))
                .max(0.0),
        }
    }
}

/// The models, in display order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Model {
    /// Equation (6).
    OneMessage,
    /// Equation (7).
    OneWord,
    /// Equation (8).
    LogPq,
    /// The idea of equation (8) on the measured curves.
    AllSizes,
}

impl Model {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::OneMessage, Self::OneWord, Self::LogPq, Self::AllSizes];

    /// Name for display.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneMessage => "LogP, one message",
            Self::OneWord => "LogP, one word",
            Self::LogPq => "LogPQ",
            Self::AllSizes => "LogPQ, all sizes",
        }
    }

    /// Key in the JSON document.
    pub fn key(self) -> &'static str {
        match self {
            Self::OneMessage => "logp_one_message",
            Self::OneWord => "logp_one_word",
            Self::LogPq => "logpq",
            Self::AllSizes => "logpq_all_sizes",
        }
    }

    /// The time t_com of one step with blocks of w words; `None` if the model needs measured curves
    /// and there are none.
    pub fn step_s(self, parameters: &Parameters, w: f64, t_m: f64) -> Option<f64> {
        Some(match self {
            Self::OneMessage => logp_one_message(&parameters.message, t_m),
            Self::OneWord => logp_one_word(&parameters.one_word, w, t_m),
            Self::LogPq => logpq(&parameters.logpq, w, t_m),
            Self::AllSizes => {
                let bytes = (w * parameters.word_bytes as f64).round() as u64;
                over_all_sizes(parameters.curves.as_ref()?, bytes, t_m)
            }
        })
    }

    /// The whole product: T = p·(t_M + t_com) (4), (5).
    pub fn product_s(self, parameters: &Parameters, p: u64, n: u64, t_m: f64) -> Option<f64> {
        let l = n as f64 / p as f64;
        Some(p as f64 * (t_m + self.step_s(parameters, l * l, t_m)?))
    }
}
