//! What can be different in a replay.

use super::assembled::Assembled;
use super::mapping::Mapping;

/// Something that is different.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// No transfer, and no call that needs nobody, takes any time.
    IdealNetwork,
    /// All latencies times a factor.
    Latency(f64),
    /// All bandwidths times a factor.
    Bandwidth(f64),
    /// Time of the processor for transfers, times a factor.
    Overhead(f64),
    /// Another network, as it stands.
    Network(Box<Assembled>),
    /// Ranks on other hosts.
    Placement(Mapping),
    /// The rank at a position computes so many times as fast.
    RankSpeed(usize, f64),
    /// A region is computed so many times as fast, on all ranks.
    RegionSpeed(String, f64),
    /// All ranks take as long for a region as their mean; without a name for all computation.
    Balance(Option<String>),
    /// No rank takes longer for its computation than the median of all does.
    MedianRank,
    /// Stretches of computation that were far longer than others of their kind were as long as their median.
    NoNoise,
}

impl Change {
    /// Whether it changes what transfers cost.
    pub(super) fn is_of_transfers(&self) -> bool {
        match self {
            Self::IdealNetwork
            | Self::Latency(_)
            | Self::Bandwidth(_)
            | Self::Overhead(_)
            | Self::Network(_)
            | Self::Placement(_) => true,
            Self::RankSpeed(..)
            | Self::RegionSpeed(..)
            | Self::Balance(_)
            | Self::MedianRank
            | Self::NoNoise => false,
        }
    }
}
