//! Totals of events that are not kept one by one: the layout of a totals chunk.
//!
//! A thread whose events may no longer grow its file has one such chunk. Whole event chunks are
//! folded into it, oldest first, and the result is published as a *snapshot*. The older of two
//! snapshots is overwritten, and a selector stored last names the valid one. So whenever the
//! process dies, a reader finds every event either in a chunk or in the totals, never in both.

use crate::layout::{CHUNK_GRANULE, CHUNK_HEADER_BYTES};
use crate::plain::Plain;

/// Offset of the selector in the chunk: 0 before the first snapshot; then twice the number of
/// published snapshots, plus the index (0 or 1) of the newest.
pub const SELECTOR_AT: usize = CHUNK_HEADER_BYTES;
/// Offset of the first snapshot in the chunk.
pub const FIRST_SNAPSHOT_AT: usize = 128;
/// Maximum number of entries of a snapshot.
pub const MAX_ENTRIES: usize = 110;
/// Space for a snapshot in bytes.
pub const SNAPSHOT_BYTES: usize =
    size_of::<SnapshotHeader>() + MAX_ENTRIES * size_of::<TotalsEntry>();
/// Size of the chunk in bytes.
pub const TOTALS_CHUNK_BYTES: usize =
    (FIRST_SNAPSHOT_AT + 2 * SNAPSHOT_BYTES).next_multiple_of(CHUNK_GRANULE as usize);
/// Size of the checksum, which does not cover itself.
pub const SNAPSHOT_CRC_BYTES: usize = 4;

/// Offset of a snapshot in the chunk.
pub const fn snapshot_at(index: usize) -> usize {
    FIRST_SNAPSHOT_AT + index * SNAPSHOT_BYTES
}

/// The sums that precede a snapshot's entries. Ticks of the four activities add up to `end_ticks` −
/// `begin_ticks`; those in regions are part of them.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnapshotHeader {
    /// CRC-32 of the rest of this header and the entries.
    pub crc: u32,
    /// Number of entries that follow, at most [`MAX_ENTRIES`].
    pub entries: u32,
    /// Sequence of the thread's first folded chunk.
    pub first_sequence: u32,
    /// Sequence of the chunk behind the last folded one.
    pub next_sequence: u32,
    /// Counter when the first folded chunk was opened.
    pub begin_ticks: u64,
    /// Counter when the chunk behind the last folded one was opened.
    pub end_ticks: u64,
    /// Number of calls, including polls that found nothing.
    pub calls: u64,
    /// Number of calls left by longjmp or an exception.
    pub abandoned: u64,
    /// Ticks in MPI.
    pub mpi_ticks: u64,
    /// Ticks in the recorder.
    pub tool_ticks: u64,
    /// Ticks in interposed compute functions.
    pub compute_ticks: u64,
    /// Ticks in the program's own code.
    pub own_ticks: u64,
    /// Part of `compute_ticks` in a region.
    pub region_compute_ticks: u64,
    /// Part of `own_ticks` in a region.
    pub region_own_ticks: u64,
    /// Number of polls that found nothing.
    pub polls: u64,
    /// Number of records that they would have made.
    pub poll_runs: u64,
    /// Ticks inside them; part of `mpi_ticks`.
    pub poll_ticks: u64,
    /// Number of regions open at the end.
    pub open_regions: u64,
}

/// Number of logarithmic bins for durations.
pub const HISTOGRAM_BINS: usize = 40;
/// Number of classes of message sizes; see [`size_class`].
pub const SIZE_CLASSES: usize = 9;
/// In place of a class: calls of several classes, folded together because there was no entry left.
pub const ANY_CLASS: u8 = 255;

/// In place of a function: collective operations on the communicator whose local id is `detail`.
/// Only `count` is used.
pub const COLLECTIVES_ON: u16 = 5;
/// In place of a function: calls that returned an error. Only `count` is used, and `detail` is
/// [`failed_detail`]. They are also counted with their function's calls.
pub const FAILED_CALLS: u16 = 6;

/// The `detail` of [`FAILED_CALLS`]: function and error class.
pub const fn failed_detail(function: u16, error: u32) -> u32 {
    let error = if error < u16::MAX as u32 { error } else { u16::MAX as u32 };
    function as u32 | error << 16
}

/// The partner of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PeerClass {
    /// No other rank in particular.
    None = 0,
    /// The rank itself.
    Itself = 1,
    /// A rank of the same host.
    SameHost = 2,
    /// A rank of another host.
    OtherHost = 3,
    /// An unknown rank: any source, MPI_PROC_NULL, another world.
    Unknown = 4,
}

impl PeerClass {
    /// The class with a stored number; `None` for [`ANY_CLASS`] and unknown numbers.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::None, Self::Itself, Self::SameHost, Self::OtherHost, Self::Unknown]
            .into_iter()
            .find(|class| *class as u8 == number)
    }

    /// Name shown to users and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Itself => "self",
            Self::SameHost => "same host",
            Self::OtherHost => "other host",
            Self::Unknown => "unknown",
        }
    }
}

/// Calls of one function, peer class and size class.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TotalsEntry {
    /// Function number, [`COLLECTIVES_ON`] or [`FAILED_CALLS`].
    pub function: u16,
    /// Number of a [`PeerClass`], or [`ANY_CLASS`].
    pub peer_class: u8,
    /// A [`size_class`], or [`ANY_CLASS`].
    pub size_class: u8,
    /// For [`COLLECTIVES_ON`], the local id of the communicator; for [`FAILED_CALLS`], see there;
    /// otherwise 0.
    pub detail: u32,
    /// Calls.
    pub count: u64,
    /// Ticks in them.
    pub ticks: u64,
    /// Shortest duration in ticks.
    pub min_ticks: u64,
    /// Longest duration in ticks.
    pub max_ticks: u64,
    /// Bytes sent or moved; for compute functions, those of their arguments.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Floating-point operations of compute functions, as the bits of an `f64`.
    pub work: u64,
    /// Number of calls by duration; see [`histogram_bin`].
    pub histogram: [u64; HISTOGRAM_BINS],
}

// SAFETY: repr(C), integers only; the sizes checked below show that there is no padding.
unsafe impl Plain for SnapshotHeader {}
// SAFETY: repr(C), integers only; its size is checked below, too.
unsafe impl Plain for TotalsEntry {}

const _: () = assert!(size_of::<SnapshotHeader>() == 128);
const _: () = assert!(size_of::<TotalsEntry>() == 384);

/// Bin of a duration: bin b holds those from 2ᵇ to below 2ᵇ⁺¹ ticks. Bin 0 also holds shorter ones,
/// the last bin longer ones.
pub const fn histogram_bin(ticks: u64) -> usize {
    let bin = (ticks | 1).ilog2() as usize;
    if bin < HISTOGRAM_BINS { bin } else { HISTOGRAM_BINS - 1 }
}

/// Class of a size: 0 for no bytes; class c from 1 on for up to 16ᶜ bytes and more than the class
/// before; the last for all larger ones.
pub const fn size_class(bytes: u64) -> u8 {
    if bytes == 0 {
        return 0;
    }
    let class = 1 + ((bytes - 1) | 1).ilog2() / 4;
    if class < SIZE_CLASSES as u32 { class as u8 } else { SIZE_CLASSES as u8 - 1 }
}

/// Largest size of a class; `None` for the last class, which has no limit.
pub const fn largest_of_class(class: u8) -> Option<u64> {
    match class {
        0 => Some(0),
        class if (class as usize) < SIZE_CLASSES - 1 => Some(1 << (4 * class as u32)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_is_in_its_class() {
        for bytes in [0, 1, 2, 15, 16, 17, 255, 256, 257, 4096, 4097, 1 << 27, 1 << 28, 1 << 40] {
            let class = size_class(bytes);
            assert!(largest_of_class(class).is_none_or(|largest| bytes <= largest), "{bytes}");
            if class > 0 {
                assert!(bytes > largest_of_class(class - 1).unwrap_or(0), "{bytes}");
            }
        }
        assert_eq!(size_class(u64::MAX) as usize, SIZE_CLASSES - 1);
    }

    #[test]
    fn duration_is_in_its_bin() {
        assert_eq!(histogram_bin(0), 0);
        assert_eq!(histogram_bin(1), 0);
        assert_eq!(histogram_bin(2), 1);
        assert_eq!(histogram_bin(1023), 9);
        assert_eq!(histogram_bin(u64::MAX), HISTOGRAM_BINS - 1);
    }
}
