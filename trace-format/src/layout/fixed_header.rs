//! The first bytes of a rank file, which identify the format and the rank.

use crate::counter_kind::CounterKind;
use crate::plain::Plain;

/// First eight bytes of every rank file.
pub const MAGIC: [u8; 8] = *b"GAMMACHI";
/// Version of the format being written. A reader rejects versions that it does not know.
pub const FORMAT_VERSION: u16 = 2;
/// Size of the fixed part at the start of the header area, before the encoded payload.
pub const FIXED_HEADER_BYTES: usize = 64;

/// The fixed part of the header area, bytes 0 to 63.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FixedHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`FORMAT_VERSION`].
    pub version: u16,
    /// Detail level, 0, 1 or 2.
    pub level: u8,
    /// Number of a [`CounterKind`].
    pub counter: u8,
    /// Rank in the initial world.
    pub rank: u32,
    /// Number of ranks in the initial world.
    pub world_size: u32,
    /// World of the rank: 0 is the initial one, others were spawned.
    pub world: u32,
    /// Process id on its host.
    pub pid: u32,
    /// Bytes of the encoded [`crate::header::FileHeader`] that follows.
    pub payload_bytes: u32,
    /// CRC-32 (IEEE) of that payload.
    pub payload_crc: u32,
    /// CRC-32 of bytes 0 to 35 of this header.
    pub fixed_crc: u32,
    /// Zero.
    pub reserved: [u8; 8],
    /// Equal in all files of a run and in no other run's; zeros if unknown.
    pub run_id: [u8; 16],
}

impl FixedHeader {
    /// Of a rank in a world of that size, in the current format. The writer fills in the payload and
    /// the checksums.
    pub fn new(counter: CounterKind, level: u8, rank: u32, world_size: u32) -> Self {
        let (magic, version, counter) = (MAGIC, FORMAT_VERSION, counter as u8);
        Self { magic, version, level, counter, rank, world_size, ..Self::default() }
    }
}

/// Number of bytes of the fixed header covered by its own checksum.
pub const FIXED_CRC_COVERS: usize = 36;

// SAFETY: repr(C), integers only; the size checked below shows that there is no padding.
unsafe impl Plain for FixedHeader {}

const _: () = assert!(size_of::<FixedHeader>() == FIXED_HEADER_BYTES);
