//! Reduces a class of pairs to one latency, one bandwidth and one eager limit, as replays need
//! them.

use super::network::{PairClass, Piece};

/// One level of a network, in seconds and bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// o: mean of the send and receive overheads of the smallest message.
    pub overhead_s: f64,
    /// Processor time per byte of an eager message.
    pub overhead_s_per_byte: f64,
    /// L: half a round trip of the smallest message less both overheads.
    pub latency_s: f64,
    /// Whether the interval of L lies above 0; otherwise the overheads hide it.
    pub latency_is_known: bool,
    /// G, of the largest messages.
    pub s_per_byte: f64,
    /// Largest message that completes without a receiver; infinite where even the largest tried
    /// did.
    pub eager_bytes: f64,
}

impl PairClass {
    /// The class as a level of a network.
    pub fn level(&self) -> Level {
        let smallest = &self.sizes[0];
        let [send, receive] =
            [&smallest.send_overhead_s, &smallest.receive_overhead_s].map(|o| o.median.max(0.0));
        let half_rtt = &self.fits.half_rtt;
        let s_per_byte = match half_rtt.last() {
            Some(piece) => piece.per_byte_s.max(0.0),
            None => 1.0 / self.sizes[self.sizes.len() - 1].one_way_bytes_per_s.median,
        };
        // The slope of a small message beyond G is processor time at both ends. It cannot exceed
        // the slope of the measured overheads.
        let grows = |pieces: &[Piece]| pieces.first().map_or(0.0, |p| p.per_byte_s.max(0.0));
        let own = (grows(&self.fits.send_overhead) + grows(&self.fits.receive_overhead)) / 2.0;
        let overhead_s_per_byte = ((grows(half_rtt) - s_per_byte) / 2.0).clamp(0.0, own);
        Level {
            overhead_s: (send + receive) / 2.0,
            overhead_s_per_byte,
            latency_s: (smallest.half_rtt_s.median - send - receive).max(0.0),
            latency_is_known: self.latency.latency_s.is_some(),
            s_per_byte,
            eager_bytes: match self.eager_limit.at_least {
                true => f64::INFINITY,
                false => self.eager_limit.bytes as f64,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::models::machine::tests::machine;

    #[test]
    fn latency_comes_from_small_messages_and_bandwidth_from_large_ones() {
        let level = machine().network.classes[0].level();
        // Half a round trip takes 1 µs + 1 ns per byte: a fifth for the send, three tenths for the
        // receive.
        let half_rtt = 1.008e-6;
        assert!((level.overhead_s - 0.25 * half_rtt).abs() < 1e-15, "{level:?}");
        assert!((level.latency_s - 0.5 * half_rtt).abs() < 1e-15, "{level:?}");
        assert!(level.latency_is_known);
        assert!((level.s_per_byte - 0.5e-9).abs() < 1e-18, "{level:?}");
        // (1 − 0.5)/2 ns, which equals the overheads' slope (0.2 + 0.3)/2.
        assert!((level.overhead_s_per_byte - 0.25e-9).abs() < 1e-18, "{level:?}");
        assert_eq!(level.eager_bytes, 4096.0);
    }

    #[test]
    fn an_eager_limit_that_was_not_reached_is_infinite() {
        let mut class = machine().network.classes[0].clone();
        class.eager_limit.at_least = true;
        class.latency.latency_s = None;
        class.sizes[0].receive_overhead_s.median = 1e-3;
        let level = class.level();
        assert!(level.eager_bytes.is_infinite() && !level.latency_is_known);
        assert_eq!(level.latency_s, 0.0);
    }
}
