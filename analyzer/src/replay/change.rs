//! What can be changed in a replay.

use super::assembled::Assembled;
use super::mapping::Mapping;

#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Transfers, and calls that need no other rank, take no time.
    IdealNetwork,
    /// All latencies are multiplied by a factor.
    Latency(f64),
    /// All bandwidths are multiplied by a factor.
    Bandwidth(f64),
    /// CPU time of transfers is multiplied by a factor.
    Overhead(f64),
    /// Another network.
    Network(Box<Assembled>),
    /// Another placement of the ranks.
    Placement(Mapping),
    /// The rank at a position computes faster by a factor.
    RankSpeed(usize, f64),
    /// All ranks compute a region faster by a factor.
    RegionSpeed(String, f64),
    /// All ranks take the mean of their times for a region; without a name, for all computation.
    Balance(Option<String>),
    /// No rank computes longer than the median of all ranks.
    MedianRank,
    /// Stretches of computation that were much longer than others of their kind take the median of
    /// these.
    NoNoise,
    /// The work of each parallel region is divided evenly among its threads.
    BalancedThreads,
    /// Calls on files outside MPI are faster by a factor.
    FileSpeed(f64),
}

impl Change {
    /// Whether it changes the cost of transfers.
    pub(super) fn affects_transfers(&self) -> bool {
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
            | Self::NoNoise
            | Self::BalancedThreads
            | Self::FileSpeed(_) => false,
        }
    }
}
