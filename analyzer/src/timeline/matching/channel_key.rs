//! Names of channels.

use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// Identifies a channel, in which messages do not overtake each other.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Encode, Decode,
)]
pub(super) struct ChannelKey {
    /// Position of the communicator in the table.
    pub communicator: u32,
    /// World rank of the sender.
    pub source: u32,
    /// World rank of the receiver.
    pub destination: u32,
    pub tag: i32,
    /// 0; for partitioned operations 1 + their number in order of initialisation.
    pub lane: u32,
}

/// Index of a channel in the table. It is valid as long as the channel there has the right key;
/// otherwise the channel has to be looked up.
pub(super) type ChannelIndex = u32;

/// The index is not known yet.
pub(super) const UNKNOWN_INDEX: ChannelIndex = ChannelIndex::MAX;

/// A channel's key, and its presumed index in the table.
pub(super) type Address = (ChannelKey, ChannelIndex);
