//! Rows that are sorted before they are written. Ranks are positions among
//! [`super::content::Head::ranks`]; times are nanoseconds, or [`super::traffic::NEVER`].

use serde::{Deserialize, Serialize};
use trace_format::plain::Plain;

use crate::spill::Record;

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageRow {
    /// Beginning of the call that sends.
    pub send_begin_ns: i64,
    pub send_end_ns: i64,
    /// Beginning of the call that posts the receive.
    pub receive_begin_ns: i64,
    /// End of the call that completes the receive.
    pub receive_end_ns: i64,
    /// Bytes sent.
    pub bytes: u64,
    /// The part of its destination.
    pub part: u32,
    /// Sending rank.
    pub source: u32,
    /// Receiving rank.
    pub destination: u32,
    /// Position of the communicator.
    pub communicator: u32,
    pub tag: i32,
    /// Thread that sent.
    pub send_thread: u32,
    /// Thread that posted the receive.
    pub receive_thread: u32,
    /// [`WILDCARD`] and [`TRUNCATED`].
    pub flags: u32,
}
/// In [`MessageRow::flags`]: the receive was posted with a wildcard.
pub const WILDCARD: u32 = 1;
/// In [`MessageRow::flags`]: the message was longer than the receive's buffer.
pub const TRUNCATED: u32 = 2;

// SAFETY: repr(C), integers only, five of 8 bytes and then eight of 4: no padding.
unsafe impl Plain for MessageRow {}
const _: () = assert!(size_of::<MessageRow>() == 5 * 8 + 8 * 4);

impl Record for MessageRow {
    type Key = ([i64; 2], [u32; 4], [i64; 4], u64, [u32; 2]);
    fn key(&self) -> Self::Key {
        (
            [self.part.into(), self.send_begin_ns],
            [self.source, self.send_thread, self.destination, self.communicator],
            [self.tag.into(), self.receive_begin_ns, self.receive_end_ns, self.send_end_ns],
            self.bytes,
            [self.receive_thread, self.flags],
        )
    }
}

/// A member of a collective operation.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MemberRow {
    /// Earliest beginning of any member.
    pub first_ns: i64,
    /// Beginning of the member's call.
    pub begin_ns: i64,
    pub end_ns: i64,
    /// When the operation was complete for the member.
    pub complete_ns: i64,
    /// Number of the operation on its communicator and lane.
    pub number: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// The part of its rank.
    pub part: u32,
    /// Position of the communicator.
    pub communicator: u32,
    /// See [`CollectiveInstance::lane`](crate::timeline::matching::CollectiveInstance::lane).
    pub lane: u32,
    pub rank: u32,
    /// Thread that called.
    pub thread: u32,
    /// Number of the function's name.
    pub function: u32,
    /// Members whose call is missing.
    pub missing: u32,
    /// 1 if members called different operations.
    pub mismatched: u32,
}
// SAFETY: repr(C), integers only, seven of 8 bytes and then eight of 4: no padding.
unsafe impl Plain for MemberRow {}
const _: () = assert!(size_of::<MemberRow>() == 7 * 8 + 8 * 4);

impl Record for MemberRow {
    type Key = ([i64; 2], [u32; 2], u64, [u32; 2], [i64; 3], [u64; 2]);
    fn key(&self) -> Self::Key {
        (
            [self.part.into(), self.first_ns],
            [self.communicator, self.lane],
            self.number,
            [self.rank, self.thread],
            [self.begin_ns, self.end_ns, self.complete_ns],
            [self.sent_bytes, self.received_bytes],
        )
    }
}

/// A send or receive without a partner.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UnmatchedRow {
    /// Beginning of the call that sends or posts.
    pub begin_ns: i64,
    /// Bytes of a send.
    pub bytes: u64,
    /// The part of its rank.
    pub part: u32,
    pub rank: u32,
    /// World rank of the partner, or `u32::MAX`.
    pub partner: u32,
    /// Position of the communicator, or `u32::MAX`.
    pub communicator: u32,
    /// Position among [`Reason::ALL`](crate::timeline::matching::Reason::ALL).
    pub reason: u32,
    /// 1 for a receive.
    pub receives: u32,
}
// SAFETY: repr(C), integers only, two of 8 bytes and then six of 4: no padding.
unsafe impl Plain for UnmatchedRow {}
const _: () = assert!(size_of::<UnmatchedRow>() == 2 * 8 + 6 * 4);

impl Record for UnmatchedRow {
    type Key = ([i64; 2], [u32; 5], u64);
    fn key(&self) -> Self::Key {
        let Self { rank, receives, partner, communicator, reason, .. } = *self;
        let of_both = [rank, receives, partner, communicator, reason];
        ([self.part.into(), self.begin_ns], of_both, self.bytes)
    }
}

/// A region that ran.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RegionRow {
    /// Its beginning.
    pub begin_ns: i64,
    pub end_ns: i64,
    /// Position among the regions of its part, outer ones before those inside them.
    pub number: u64,
    pub rank: u32,
    pub thread: u32,
    /// Number among [`super::content::Head::regions`].
    pub region: u32,
    /// Zero.
    pub reserved: u32,
}
// SAFETY: repr(C), integers only, three of 8 bytes and then four of 4: no padding.
unsafe impl Plain for RegionRow {}
const _: () = assert!(size_of::<RegionRow>() == 3 * 8 + 4 * 4);

impl Record for RegionRow {
    type Key = (i64, u32, u64);
    fn key(&self) -> Self::Key {
        (self.begin_ns, self.rank, self.number)
    }
}
