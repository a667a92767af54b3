//! What messages take on a machine that was measured.

use super::library::Library;

/// Times of messages on a machine, as far as they were measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineTimes {
    pub same_host: Option<MessageTimes>,
    pub other_host: Option<MessageTimes>,
    /// The library with which they were measured, if its rules are known.
    pub library: Option<Library>,
}

/// Times of messages of one size between two ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageTime {
    pub bytes: f64,
    /// Seconds from one rank to the other: half a round trip.
    pub half_rtt_s: f64,
    /// Seconds from one message to the next where many are under way: LogP's g.
    pub gap_s: f64,
}

/// Times of messages between two ranks, by size.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageTimes {
    /// Ascending, at least two.
    sizes: Vec<MessageTime>,
    /// Bytes up to which messages are sent at once, if it is known.
    pub(super) eager_limit: Option<f64>,
}

impl MessageTimes {
    /// `None` without at least two sizes.
    pub fn new(mut sizes: Vec<MessageTime>) -> Option<Self> {
        sizes.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
        sizes.dedup_by_key(|of| of.bytes);
        (sizes.len() > 1).then_some(Self { sizes, eager_limit: None })
    }

    /// With the bytes up to which messages are sent at once.
    pub fn with_eager_limit(self, eager_limit: Option<f64>) -> Self {
        Self { eager_limit, ..self }
    }

    /// The time of a message.
    pub(super) fn at(&self, bytes: f64) -> f64 {
        self.between(bytes, |of| of.half_rtt_s)
    }

    /// The time from one message to the next.
    pub(super) fn gap(&self, bytes: f64) -> f64 {
        self.between(bytes, |of| of.gap_s)
    }

    /// Linear between the sizes that were measured.
    fn between(&self, bytes: f64, of: impl Fn(&MessageTime) -> f64) -> f64 {
        let Self { sizes, .. } = self;
        let after = sizes.partition_point(|of| of.bytes < bytes).clamp(1, sizes.len() - 1);
        let (from, to) = (&sizes[after - 1], &sizes[after]);
        // Messages smaller than any that was measured take as long as the smallest.
        let share = (bytes.max(sizes[0].bytes) - from.bytes) / (to.bytes - from.bytes);
        of(from) + share * (of(to) - of(from))
    }
}
