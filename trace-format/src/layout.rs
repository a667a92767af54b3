//! Where each byte of a rank file stands: header area, chunks, event slots.
//!
//! In: nothing. Out: constants and plain-data types that writer and reader share.

use std::path::PathBuf;

/// First eight bytes of every rank file.
pub const MAGIC: [u8; 8] = *b"GAMMACHI";
/// Version of the whole format; a reader refuses another one by name.
pub const FORMAT_VERSION: u16 = 1;
/// Bytes of the header area; the first chunk follows it.
pub const HEADER_BYTES: u64 = 32 * 1024;
/// Every chunk starts at, and is as long as, a multiple of this.
pub const CHUNK_GRANULE: u64 = 4 * 1024;
/// Chunks that the recorder maps start at a multiple of this: the largest page size in use.
pub const MAPPING_GRANULE: u64 = 64 * 1024;
/// Bytes of the fixed part at the start of the header area, before the encoded payload.
pub const FIXED_HEADER_BYTES: usize = 64;
/// First four bytes of every chunk.
pub const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"GCHK");
/// Bytes of a chunk's own header; slots or records follow it.
pub const CHUNK_HEADER_BYTES: usize = 64;
/// Bytes of an event slot.
pub const SLOT_BYTES: usize = 32;
/// Most ranks that share one subdirectory.
pub const RANKS_PER_DIRECTORY: u32 = 1000;

/// The fixed part of the header area, bytes 0 to 63.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`FORMAT_VERSION`].
    pub version: u16,
    /// Detail level, 0, 1 or 2.
    pub level: u8,
    /// A [`CounterKind`] as its number.
    pub counter: u8,
    /// Rank in the initial world.
    pub rank: u32,
    /// Ranks of the initial world.
    pub world_size: u32,
    /// Which world of the run: 0 the initial one, others spawned.
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
    /// The same in all files of one run and in no other run's; zeros: not known.
    pub run_id: [u8; 16],
}

/// Bytes of the fixed header that its own checksum covers.
pub const FIXED_CRC_COVERS: usize = 36;

/// Counters that event times are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CounterKind {
    /// x86-64 time-stamp counter, invariant.
    Tsc = 1,
    /// AArch64 virtual counter `cntvct_el0`.
    Cntvct = 2,
    /// `CLOCK_MONOTONIC_RAW` in nanoseconds.
    MonotonicRaw = 3,
}

impl CounterKind {
    /// The kind that a stored number names, if any.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Tsc, Self::Cntvct, Self::MonotonicRaw].into_iter().find(|k| *k as u8 == number)
    }

    /// The counter's usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsc => "rdtsc",
            Self::Cntvct => "cntvct_el0",
            Self::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
        }
    }
}

/// Kind of a chunk that holds event slots.
pub const CHUNK_EVENTS: u16 = 1;
/// Kind of a chunk that holds definition records.
pub const CHUNK_DEFINITIONS: u16 = 2;
/// Kind of a chunk that holds totals of events that are not kept: [`crate::totals`].
pub const CHUNK_TOTALS: u16 = 3;
/// Kind of a chunk that is being written: what stands in it does not count yet.
pub const CHUNK_UNFINISHED: u16 = 4;

/// In [`ChunkHeader::flags`]: the chunk is a thread's window. Its events are copied to another chunk of
/// the same sequence (or into totals) when it is full, and it is used again under a later sequence.
pub const CHUNK_IS_WINDOW: u16 = 1;

/// A chunk's header, 64 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkHeader {
    /// [`CHUNK_MAGIC`], written last: a chunk without it was being made when the process died.
    pub magic: u32,
    /// [`CHUNK_EVENTS`], [`CHUNK_DEFINITIONS`] or [`CHUNK_TOTALS`].
    pub kind: u16,
    /// [`CHUNK_IS_WINDOW`] or 0.
    pub flags: u16,
    /// Thread that writes it, 0 the first that called MPI. Zero for definitions.
    pub thread: u32,
    /// Position among the chunks of that kind and thread, from 0; two of one sequence hold the same.
    pub sequence: u32,
    /// Bytes of the chunk, this header included; a multiple of [`CHUNK_GRANULE`].
    pub length: u64,
    /// Counter when the chunk was opened.
    pub opened_ticks: u64,
    /// Operating system's id of the thread.
    pub thread_os_id: u32,
    /// CRC-32 of bytes 4 to 35, stored after them.
    pub crc: u32,
    /// Minor page faults of the thread while its previous chunk was open: an upper bound on what
    /// the mapping itself cost. Not covered by the checksum.
    pub previous_minor_faults: u64,
    /// Zero.
    pub reserved1: [u64; 2],
}

/// Bytes of a chunk header that its checksum covers: from, to.
pub const CHUNK_CRC_COVERS: (usize, usize) = (4, 36);

/// An event slot.
///
/// `word` is zero in an empty slot and is stored last, so that a reader sees the committed prefix
/// after any death: bits 0–31 duration in ticks, 32–47 function, 48–63 communicator.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slot {
    /// Counter at the call's begin.
    pub begin: u64,
    /// Duration, function and communicator; see [`Slot::function`].
    pub word: u64,
    /// Peer rank, root, region, or reason; by the function's kind.
    pub peer: i32,
    /// Message tag.
    pub tag: i32,
    /// Bytes sent or moved.
    pub bytes: u32,
    /// Request handle, shortened.
    pub request: u32,
}

/// Set in the function's number while the call has not returned.
pub const FUNCTION_OPEN: u16 = 0x8000;
/// Set in the function's number of a call that was left by longjmp or an exception.
pub const FUNCTION_ABANDONED: u16 = 0x4000;
/// The function's number without flags.
pub const FUNCTION_MASK: u16 = 0x3fff;
/// A duration that does not fit stands in a [`CONTINUATION`] slot right behind.
pub const DURATION_ESCAPE: u32 = u32::MAX;

/// Function number of time that the recorder itself spent outside the stamps of a call; `peer` is
/// a [`ToolReason`].
pub const TOOL: u16 = 1;
/// Function number of a region's begin; `peer` is the region's id.
pub const REGION_BEGIN: u16 = 2;
/// Function number of a region's end; `peer` is the region's id.
pub const REGION_END: u16 = 3;
/// Function number of a slot that carries more of the event before it. The duration field says
/// which value ([`CONTINUES_DURATION`] …).
pub const CONTINUATION: u16 = 4;
/// First function number of the table that the file header names.
pub const FIRST_FUNCTION: u16 = 16;

/// A continuation whose `begin` field is the event's full duration in ticks; `peer` is the error class
/// ([`crate::errors`]) of a call that returned an error, else 0.
pub const CONTINUES_DURATION: u32 = 1;
/// A continuation that carries byte counts that do not fit the event's slot: `begin` the bytes sent,
/// `peer` (low half) and `tag` (high half) the bytes received.
pub const CONTINUES_BYTES: u32 = 2;
/// A continuation that carries the receiving half of a call that sends and receives: `peer`, `tag`,
/// and the bytes as a `u64` in `begin`.
pub const CONTINUES_RECEIVE: u32 = 3;
/// A continuation for one request of a call on several: `request`, and, where the request was
/// completed ([`COMPLETED`] in the communicator's field), `peer`, `tag` and, as a `u64` in `begin`,
/// bytes from its status; `bytes` is the error class of its status, 0 where it succeeded.
pub const CONTINUES_REQUEST: u32 = 4;
/// A continuation that makes its event a run of empty polls: `begin` the ticks inside the calls,
/// `peer` and `tag` (low, high) their number, `bytes` and `request` (low, high) the ticks from the
/// first begin to the last end. The event's own duration is [`DURATION_ESCAPE`].
pub const CONTINUES_POLLS: u32 = 5;
/// A continuation whose `request` field is the message handle of a matched probe or receive.
pub const CONTINUES_MESSAGE: u32 = 6;
/// A continuation whose `begin` field is the address that the call returns to (level 2); `peer` is 1
/// where that address was found behind a language binding of the MPI library.
pub const CONTINUES_SITE: u32 = 7;

/// In the communicator's field of a [`CONTINUES_REQUEST`] slot, and of a call that completes one
/// request: the request was completed by this call.
pub const COMPLETED: u16 = 1;
/// Beside [`COMPLETED`]: the operation was cancelled.
pub const CANCELLED: u16 = 2;
/// Bytes that do not fit: a [`CONTINUES_BYTES`] slot has them.
pub const BYTES_ESCAPE: u32 = u32::MAX;
/// Slots that are free behind every event's own, for continuations that are written after the call.
pub const RESERVED_SLOTS: usize = 8;
/// Communicator id of a handle that could not be identified.
pub const COMMUNICATOR_UNKNOWN: u16 = 0;
/// Communicator id of MPI_COMM_WORLD.
pub const COMMUNICATOR_WORLD: u16 = 1;
/// Communicator id of MPI_COMM_SELF.
pub const COMMUNICATOR_SELF: u16 = 2;

/// Why the recorder spent time outside a call's stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum ToolReason {
    /// Opening the trace and exchanging clocks after MPI_Init.
    Start = 1,
    /// Granting and mapping the next chunk.
    Window = 2,
    /// Exchanging clocks and closing the trace before MPI_Finalize.
    Finish = 3,
    /// Writing down what a call made: a communicator, a window, a file.
    Definitions = 4,
    /// Not recording, as the program asked by MPI_Pcontrol with level 0.
    Paused = 5,
    /// Agreeing on, and making, a clock exchange during the run.
    Clock = 6,
    /// Reading counters at a region's begin or end; the slot has a reading, [`CounterSlot`].
    Counters = 7,
    /// Looking for the function behind an interposed one, at its first call.
    Entries = 8,
    /// Of imported runs: the thread neither was in MPI nor computed, by what the other tool says (I/O, fork
    /// and join, writing its own buffers).
    NotComputing = 9,
}

impl ToolReason {
    /// The reason that a stored number names, if any.
    pub fn from_number(number: i32) -> Option<Self> {
        [
            Self::Start,
            Self::Window,
            Self::Finish,
            Self::Definitions,
            Self::Paused,
            Self::Clock,
            Self::Counters,
            Self::Entries,
            Self::NotComputing,
        ]
        .into_iter()
        .find(|r| *r as i32 == number)
    }
}

/// A counter's reading in a [`TOOL`] slot of reason [`ToolReason::Counters`]: `tag` and `request` are the
/// low and the high half of the value, `bytes` the number and, from bit 16 on, the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterSlot {
    /// Number of the counter ([`crate::header::Counter`]), below 65,536.
    pub number: u32,
    /// Its value since it was opened.
    pub value: u64,
    /// [`crate::counters::SCALED`] …
    pub state: u32,
}

impl CounterSlot {
    /// The fields `tag`, `bytes` and `request` of the slot.
    #[inline]
    pub fn fields(self) -> (i32, u32, u32) {
        let bytes = self.number & 0xffff | self.state << 16;
        (self.value as u32 as i32, bytes, (self.value >> 32) as u32)
    }

    /// The reading in the two words from `peer` on, where they are one.
    pub fn from_payload(payload: [u64; 2]) -> Option<Self> {
        let [reason_and_low, bytes_and_high] = payload;
        (reason_and_low as u32 as i32 == ToolReason::Counters as i32).then_some(Self {
            number: bytes_and_high as u32 & 0xffff,
            value: reason_and_low >> 32 | bytes_and_high >> 32 << 32,
            state: bytes_and_high as u32 >> 16,
        })
    }
}

impl Slot {
    /// Function number with its flags.
    #[inline]
    pub fn function_and_flags(&self) -> u16 {
        (self.word >> 32) as u16
    }

    /// Function number without flags.
    #[inline]
    pub fn function(&self) -> u16 {
        self.function_and_flags() & FUNCTION_MASK
    }

    /// Duration in ticks, or [`DURATION_ESCAPE`].
    #[inline]
    pub fn duration(&self) -> u32 {
        self.word as u32
    }

    /// Communicator's local id.
    #[inline]
    pub fn communicator(&self) -> u16 {
        (self.word >> 48) as u16
    }

    /// Whether the call had not returned when the slot was last written.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.function_and_flags() & FUNCTION_OPEN != 0
    }

    /// Whether the call was left by longjmp or an exception.
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.function_and_flags() & FUNCTION_ABANDONED != 0
    }
}

/// The word of a slot from its parts.
#[inline]
pub const fn slot_word(duration: u32, function: u16, communicator: u16) -> u64 {
    duration as u64 | (function as u64) << 32 | (communicator as u64) << 48
}

/// Path of a rank's file below the run directory.
///
/// At most [`RANKS_PER_DIRECTORY`] ranks share a directory; ranks of spawned worlds (`world` > 0)
/// carry the world's number in the name.
pub fn rank_file_path(world: u32, rank: u32) -> PathBuf {
    let directory = format!("ranks-{:03}", rank / RANKS_PER_DIRECTORY);
    let name = match world {
        0 => format!("rank-{rank:06}.gmc"),
        _ => format!("world-{world:03}-rank-{rank:06}.gmc"),
    };
    PathBuf::from(directory).join(name)
}

/// Extension of the file that stands for a rank's while that lies in a staging directory: text,
/// `HOST:PATH` of the data.
pub const STAGED_EXTENSION: &str = "staged";

/// Views a plain header or slot as its bytes.
pub fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: `Plain` promises that every byte of T is initialised; the slice borrows `value`.
    unsafe { std::slice::from_raw_parts((value as *const T).cast(), size_of::<T>()) }
}

/// Reads a plain header or slot from bytes; `None` when there are too few.
pub fn read_plain<T: Plain>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: the length was checked, any bit pattern is a valid T (`Plain`), and the read does
    // not need alignment.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// A `repr(C)` type without padding for which any bit pattern is valid.
///
/// # Safety
/// The implementer answers for both.
pub unsafe trait Plain: Copy {}
// SAFETY: repr(C), integers only, sizes below show that there is no padding.
unsafe impl Plain for FixedHeader {}
// SAFETY: as above.
unsafe impl Plain for ChunkHeader {}
// SAFETY: as above.
unsafe impl Plain for Slot {}

const _: () = assert!(size_of::<FixedHeader>() == FIXED_HEADER_BYTES);
const _: () = assert!(size_of::<ChunkHeader>() == CHUNK_HEADER_BYTES);
const _: () = assert!(size_of::<Slot>() == SLOT_BYTES);
const _: () = assert!(cfg!(target_endian = "little"), "the format is little-endian");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_keeps_its_parts() {
        let slot = Slot {
            word: slot_word(7, 0x1234 & FUNCTION_MASK | FUNCTION_OPEN, 0xfffe),
            ..Slot::default()
        };
        assert_eq!(slot.duration(), 7);
        assert_eq!(slot.function(), 0x1234);
        assert!(slot.is_open() && !slot.is_abandoned());
        assert_eq!(slot.communicator(), 0xfffe);
    }

    #[test]
    fn a_counters_reading_keeps_its_parts() {
        let reading = CounterSlot { number: 7, value: 0x89ab_cdef_ffff_fffe, state: 1 };
        let (tag, bytes, request) = reading.fields();
        let peer = ToolReason::Counters as u32;
        let payload = |peer: u32| {
            let low = u64::from(tag as u32) << 32 | u64::from(peer);
            [low, u64::from(request) << 32 | u64::from(bytes)]
        };
        assert_eq!(CounterSlot::from_payload(payload(peer)), Some(reading));
        assert_eq!(CounterSlot::from_payload(payload(ToolReason::Clock as u32)), None);
    }

    #[test]
    fn a_directory_never_holds_more_than_a_thousand_ranks() {
        assert_eq!(rank_file_path(0, 999).to_str(), Some("ranks-000/rank-000999.gmc"));
        assert_eq!(rank_file_path(0, 1000).to_str(), Some("ranks-001/rank-001000.gmc"));
        assert_eq!(rank_file_path(2, 1).to_str(), Some("ranks-000/world-002-rank-000001.gmc"));
    }
}
