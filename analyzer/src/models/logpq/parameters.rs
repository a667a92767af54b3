//! The parameters of the models for a class of pairs measured in `machine.json`, in seconds and
//! with their uncertainty.

use std::ops::{Add, Mul, Sub};

use crate::models::machine::{Measured, PairClass, Piece, SizeTimes};

/// A value with half the width of its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    pub value: f64,
    /// Half the width of its 95 % interval; 0 for a given value.
    pub half_width: f64,
}

impl Estimate {
    /// A given value, without uncertainty.
    pub fn exact(value: f64) -> Self {
        Self { value, half_width: 0.0 }
    }

    fn from_measured(measured: &Measured) -> Self {
        Self { value: measured.median, half_width: (measured.high - measured.low).abs() / 2.0 }
    }

    /// Whether its interval lies above 0.
    pub fn is_identified(&self) -> bool {
        self.value - self.half_width > 0.0
    }

    /// Raises a negative value to 0 and keeps the uncertainty.
    fn at_least_zero(self) -> Self {
        Self { value: self.value.max(0.0), ..self }
    }
}

impl Add for Estimate {
    type Output = Self;

    /// The sum of two independent measurements.
    fn add(self, other: Self) -> Self {
        let half_width = self.half_width.hypot(other.half_width);
        Self { value: self.value + other.value, half_width }
    }
}

impl Sub for Estimate {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + other * -1.0
    }
}

impl Mul<f64> for Estimate {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self { value: self.value * factor, half_width: self.half_width * factor.abs() }
    }
}

/// LogP's parameters of one message, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogP {
    /// Latency L.
    pub latency: Estimate,
    /// Overhead o of a send or a receive.
    pub overhead: Estimate,
    /// Gap g between two messages.
    pub gap: Estimate,
}

/// LogPQ's parameters of one word, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogPq {
    /// Latency L.
    pub latency: Estimate,
    /// Overhead o of a word.
    pub overhead: Estimate,
    /// Gap g between two words.
    pub gap: Estimate,
    /// Fixed part n of a message's overhead.
    pub fixed: Estimate,
}

impl LogPq {
    /// Equation (1): from the link's one-word parameters and the ratio r of the processor's word to
    /// the channel's, both in bits.
    pub fn from_link(link: &LogP, ratio: f64) -> Self {
        let more = link.gap * (ratio - 1.0);
        Self {
            latency: link.latency + link.overhead + more,
            overhead: link.overhead + more,
            gap: link.gap * ratio,
            fixed: Estimate::default(),
        }
    }

    /// Equation (2): from LogP for messages of m words and the fixed part n of its overhead.
    pub fn from_message(message: &LogP, fixed: Estimate, words: f64) -> Self {
        Self {
            latency: message.latency + message.overhead,
            overhead: (message.overhead - fixed) * (1.0 / words),
            gap: message.gap * (1.0 / words),
            fixed,
        }
    }
}

/// LogP at one message size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizeRow {
    /// Message size.
    pub bytes: u64,
    /// RTT/2.
    pub half_rtt: Estimate,
    /// L*, o*, g* at this size.
    pub logp: LogP,
}

/// A remark on the parameters of a class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ParameterNote {
    /// The interval of RTT/2 − o_s − o_r reaches 0. The models use its value as L, or 0 if it is
    /// negative.
    NoLatency {
        words: u64,
        /// RTT/2 − o_s − o_r.
        latency: Estimate,
        /// RTT/2, seconds.
        half_rtt_s: f64,
    },
    /// The fixed part n of the overhead exceeds the overhead and is lowered to it.
    FixedPart {
        words: u64,
        /// n from the linear pieces, seconds.
        fixed_s: f64,
        /// o* of the message, seconds.
        overhead_s: f64,
    },
    /// A gap is not positive, because the measurement is too noisy.
    NoGap,
    /// No message as small as a word was measured; a word is assumed to cost as much as the
    /// smallest.
    NoOneWord {
        /// Size of the smallest message.
        bytes: u64,
    },
}

/// The parameters of one class of pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// `same-host`, `other-host`, or the name of an example.
    pub class: String,
    pub word_bytes: u64,
    /// Words m of the message that [`Self::message`] was measured at.
    pub words: u64,
    /// Ratio r of equation (1).
    pub ratio: f64,
    /// Counter frequency: seconds times this are ticks.
    pub counter_hz: Option<f64>,
    /// LogP at m words: L*, o*, g*.
    pub message: LogP,
    /// LogP at one word: L₀, o₀, g₀.
    pub one_word: LogP,
    /// LogPQ from m words, by equation (2).
    pub logpq: LogPq,
    /// LogPQ from the one-word values, by equation (1).
    pub logpq_link: LogPq,
    /// Half a round trip of m words, and of one word.
    pub half_rtt: [Estimate; 2],
    /// Remarks.
    pub notes: Vec<ParameterNote>,
    /// Every measured size.
    pub sizes: Vec<SizeRow>,
    /// The measured curves, for predictions over all sizes.
    pub curves: Option<PairClass>,
}

impl Parameters {
    /// The parameters of a measured class of pairs, for messages of `words` words.
    pub fn new(
        class: &PairClass,
        counter_hz: f64,
        words: u64,
        word_bytes: u64,
        ratio: f64,
    ) -> Self {
        let bytes = words * word_bytes;
        let mut notes = Vec::new();
        let mut logp = |bytes: u64, words: u64| {
            let measured = logp_at(class, bytes);
            let latency = measured.latency;
            if !latency.is_identified() {
                let half_rtt_s = estimate_at(class, bytes, |size| &size.half_rtt_s).value;
                notes.push(ParameterNote::NoLatency { words, latency, half_rtt_s });
            }
            LogP { latency: latency.at_least_zero(), ..measured }
        };
        let message = logp(bytes, words);
        let one_word = logp(word_bytes, 1);
        let send = piece_at(&class.fits.send_overhead, bytes);
        let receive = piece_at(&class.fits.receive_overhead, bytes);
        let fixed_of = |piece: Option<&Piece>| {
            piece.map_or(Estimate::default(), |piece| Estimate {
                value: piece.fixed_s,
                half_width: (piece.fixed_interval_s.1 - piece.fixed_interval_s.0).abs() / 2.0,
            })
        };
        let mut fixed = ((fixed_of(send) + fixed_of(receive)) * 0.5).at_least_zero();
        if fixed.value > message.overhead.value {
            let (fixed_s, overhead_s) = (fixed.value, message.overhead.value);
            notes.push(ParameterNote::FixedPart { words, fixed_s, overhead_s });
            fixed.value = message.overhead.value;
        }
        if message.gap.value <= 0.0 || one_word.gap.value <= 0.0 {
            notes.push(ParameterNote::NoGap);
        }
        let smallest = class.sizes.first().map_or(0, |size| size.bytes);
        if smallest > word_bytes {
            notes.push(ParameterNote::NoOneWord { bytes: smallest });
        }
        Self {
            class: class.class.clone(),
            word_bytes,
            words,
            ratio,
            counter_hz: Some(counter_hz),
            // L* + o* = RTT/2 − (o_s + o_r)/2 is known even where L* alone cannot be identified.
            logpq: LogPq {
                latency: (logp_at(class, bytes).latency + message.overhead).at_least_zero(),
                ..LogPq::from_message(&message, fixed, words as f64)
            },
            logpq_link: LogPq::from_link(&one_word, ratio),
            message,
            one_word,
            half_rtt: [bytes, word_bytes].map(|b| estimate_at(class, b, |size| &size.half_rtt_s)),
            notes,
            sizes: class
                .sizes
                .iter()
                .map(|size| SizeRow {
                    bytes: size.bytes,
                    half_rtt: Estimate::from_measured(&size.half_rtt_s),
                    logp: logp_at(class, size.bytes),
                })
                .collect(),
            curves: Some(class.clone()),
        }
    }

    /// The CM-5 of Touyama and Horiguchi (table 1: 64 processors, measured at 16 words).
    pub fn cm5() -> Self {
        let exact = Estimate::exact;
        let logp = |latency, overhead, gap| LogP {
            latency: exact(latency),
            overhead: exact(overhead),
            gap: exact(gap),
        };
        let (message, one_word) = (logp(1.25e-4, 1.71e-4, 5.5e-5), logp(1.77e-4, 1.19e-5, 3.44e-6));
        Self {
            class: "CM-5 (Touyama and Horiguchi)".into(),
            word_bytes: 8,
            words: 16,
            ratio: 1.0,
            counter_hz: None,
            message,
            one_word,
            // As printed, which is equation (2) of the printed values, rounded.
            logpq: LogPq {
                latency: exact(2.96e-4),
                overhead: exact(4.59e-6),
                gap: exact(3.44e-6),
                fixed: exact(9.75e-5),
            },
            logpq_link: LogPq::from_link(&one_word, 1.0),
            half_rtt: [Estimate::default(); 2],
            notes: Vec::new(),
            sizes: Vec::new(),
            curves: None,
        }
    }
}

fn logp_at(class: &PairClass, bytes: u64) -> LogP {
    let send = estimate_at(class, bytes, |size| &size.send_overhead_s);
    let receive = estimate_at(class, bytes, |size| &size.receive_overhead_s);
    LogP {
        latency: estimate_at(class, bytes, |size| &size.latency_s),
        overhead: (send + receive) * 0.5,
        gap: estimate_at(class, bytes, |size| &size.gap_s),
    }
}

/// A quantity at any size: the median as in [`PairClass::at`], with the wider interval of its
/// neighbours.
fn estimate_at(
    class: &PairClass,
    bytes: u64,
    quantity: impl Fn(&SizeTimes) -> &Measured,
) -> Estimate {
    let above = class.sizes.partition_point(|size| size.bytes < bytes);
    let neighbours = [above.checked_sub(1), Some(above)].into_iter().flatten();
    let exact = class.sizes.get(above).filter(|size| size.bytes == bytes);
    let half_width = match exact {
        Some(size) => Estimate::from_measured(quantity(size)).half_width,
        None => neighbours
            .filter_map(|at| class.sizes.get(at))
            .map(|size| Estimate::from_measured(quantity(size)).half_width)
            .fold(0.0, f64::max),
    };
    Estimate { value: class.at(bytes, quantity), half_width }
}

/// The linear piece that covers a size, or the last one.
pub(super) fn piece_at(pieces: &[Piece], bytes: u64) -> Option<&Piece> {
    let holds = pieces.iter().find(|piece| bytes <= piece.to_bytes);
    holds.or_else(|| pieces.last())
}
