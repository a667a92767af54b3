//! Numbers of locations.

/// Number of a location; the writer may choose it.
pub(super) fn location(rank: u32, thread: u32) -> u64 {
    u64::from(thread) << 32 | u64::from(rank)
}
