//! The layout of a rank file: header area, chunks, event slots.
//!
//! These constants and plain-data types are shared by writer and reader.

pub mod clock_estimate;
pub mod counter_kind;
pub mod encoding;
pub mod file_calls;
pub mod files;
pub mod fixed_header;
pub mod header;
pub mod markers;
pub mod plain;
pub mod private_directory;
pub mod samples;
pub mod slot;
pub mod stacks;
pub mod totals;

pub use crate::counter_kind::CounterKind;
pub use crate::file_calls::{FileCallKind, FileCalls};
pub use crate::files::{RANKS_PER_DIRECTORY, STAGED_EXTENSION, rank_file_path};
pub use crate::fixed_header::{
    FIXED_CRC_COVERS, FIXED_HEADER_BYTES, FORMAT_VERSION, FixedHeader, MAGIC,
};
pub use crate::functions::FIRST_FUNCTION;
pub use crate::header::{COMMUNICATOR_SELF, COMMUNICATOR_UNKNOWN, COMMUNICATOR_WORLD};
pub use crate::markers::{CounterSlot, ToolReason};
pub use crate::plain::{Plain, bytes_of, bytes_of_all, read_plain};
pub use crate::slot::{Continuation, Detail, Half, RequestState, Slot, Team, TeamWaits};

/// Size of the header area in bytes; the first chunk follows it.
pub const HEADER_BYTES: u64 = 32 * 1024;
/// Position and length of every chunk are multiples of this.
pub const CHUNK_GRANULE: u64 = 64;
/// Chunks mapped by the recorder start at a multiple of this, the largest page size in use.
pub const MAPPING_GRANULE: u64 = 64 * 1024;
/// First four bytes of every chunk.
pub const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"GCHK");
/// Size of a chunk's own header in bytes; slots or records follow it.
pub const CHUNK_HEADER_BYTES: usize = 64;
/// Size of an event slot in bytes.
pub const SLOT_BYTES: usize = 40;

/// Kind of a chunk that holds event slots.
pub const CHUNK_EVENTS: u16 = 1;
/// Kind of a chunk that holds definition records.
pub const CHUNK_DEFINITIONS: u16 = 2;
/// Kind of a chunk that holds totals of events that are not kept one by one: [`crate::totals`].
pub const CHUNK_TOTALS: u16 = 3;
/// Kind of a chunk that is being written: its contents are not valid yet.
pub const CHUNK_UNFINISHED: u16 = 4;
/// Kind of a chunk that holds event slots in few bytes: [`crate::encoded`].
pub const CHUNK_ENCODED: u16 = 5;
/// Kind of a chunk that a thread's signal handler stores samples in: [`crate::samples`].
pub const CHUNK_SAMPLE_AREA: u16 = 6;
/// Kind of a chunk that holds a half of a sample area.
pub const CHUNK_SAMPLES: u16 = 7;
/// Kind of a chunk in which a process answers whoever asks for the stacks of its threads: [`crate::stacks`].
pub const CHUNK_STACKS: u16 = 8;

/// In [`ChunkHeader::flags`]: the chunk is a thread's window. When it is full, its events are
/// copied to another chunk of the same sequence (or folded into totals), and it is reused with a
/// later sequence.
pub const CHUNK_IS_WINDOW: u16 = 1;

/// A chunk's header, 64 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkHeader {
    /// [`CHUNK_MAGIC`], written last: the process died while making a chunk that lacks it.
    pub magic: u32,
    /// [`CHUNK_EVENTS`], [`CHUNK_DEFINITIONS`], [`CHUNK_TOTALS`] …
    pub kind: u16,
    /// [`CHUNK_IS_WINDOW`] or 0.
    pub flags: u16,
    /// Number of the thread that writes it; 0 is the first that called MPI. Zero for definitions;
    /// for samples the number of their area, from 0.
    pub thread: u32,
    /// Position among the chunks of this kind and thread, from 0. Two chunks of one sequence hold
    /// the same events. For [`CHUNK_SAMPLES`] that of the half.
    pub sequence: u32,
    /// Size of the chunk in bytes, including this header; a multiple of [`CHUNK_GRANULE`].
    pub length: u64,
    /// Counter when the chunk was opened.
    pub opened_ticks: u64,
    /// Operating system's id of the thread.
    pub thread_os_id: u32,
    /// CRC-32 of bytes 4 to 35, stored after them.
    pub crc: u32,
    /// Number of minor page faults of the thread while its previous chunk was open, an upper bound
    /// for those caused by the mapping itself. Not covered by the checksum.
    pub previous_minor_faults: u64,
    /// For [`CHUNK_ENCODED`] and [`CHUNK_SAMPLES`], size of the contents in bytes, followed by their
    /// CRC-32; otherwise 0.
    pub body_bytes: u32,
    /// See `body_bytes`.
    pub body_crc: u32,
    /// Nonzero while a window's slots are being cleared, because their events are kept elsewhere.
    /// Not covered by the checksum.
    pub clearing: u64,
}

/// Range of a chunk header's bytes that its checksum covers: from, to.
pub const CHUNK_CRC_COVERS: (usize, usize) = (4, 36);

/// Set in [`Slot::site`] if the call came through a language binding of the MPI library, whose
/// caller the address is.
pub const SITE_BEHIND_BINDING: u64 = 1 << 63;

/// Set in the function's number until the call returns.
pub const FUNCTION_OPEN: u16 = 0x8000;
/// Set in the function's number if the call was left by longjmp or an exception.
pub const FUNCTION_ABANDONED: u16 = 0x4000;
/// The function's number without flags.
pub const FUNCTION_MASK: u16 = 0x3fff;
/// Marks a duration that does not fit; it is in the [`CONTINUATION`] slot right behind.
pub const DURATION_ESCAPE: u32 = u32::MAX;

/// Function number of time spent by the recorder itself outside the time stamps of a call. `peer`
/// is a [`ToolReason`].
pub const TOOL: u16 = 1;
/// Function number of a region's begin; `peer` is the region's id.
pub const REGION_BEGIN: u16 = 2;
/// Function number of a region's end; `peer` is the region's id.
pub const REGION_END: u16 = 3;
/// Function number of a slot that continues the event before it. The duration field says which
/// values it holds ([`CONTINUES_DURATION`] …).
pub const CONTINUATION: u16 = 4;
/// A continuation whose `begin` field is the event's full duration in ticks. `peer` is the error
/// class ([`crate::errors`]) if the call returned an error, otherwise 0.
pub const CONTINUES_DURATION: u32 = 1;
/// A continuation with byte counts that do not fit the event's slot: `begin` holds the bytes sent,
/// `peer` (low half) and `detail` (high half) the bytes received.
pub const CONTINUES_BYTES: u32 = 2;
/// A continuation with the receiving half of a call that sends and receives: `peer`, `tag`, and the
/// bytes as a `u64` in `begin`.
pub const CONTINUES_RECEIVE: u32 = 3;
/// A continuation for one request of a call on several: `request` and, if the request was completed
/// ([`COMPLETED`] in the communicator's field), the contents of its status: `peer`, `tag`, the
/// bytes as a `u64` in `begin`, and the error class in `bytes`, 0 on success.
pub const CONTINUES_REQUEST: u32 = 4;
/// A continuation that turns its event into a run of empty polls: `begin` holds the ticks inside
/// the calls, `peer` and `tag` (low, high) their number, `bytes` and `request` (low, high) the
/// ticks from the first begin to the last end. The event's own duration is [`DURATION_ESCAPE`].
pub const CONTINUES_POLLS: u32 = 5;
/// A continuation whose `request` field is the message handle of a matched probe or receive.
pub const CONTINUES_MESSAGE: u32 = 6;
/// A continuation with what the threads of an OpenMP team did in a parallel region, in ticks: `begin` holds the time
/// from its begin to its end, the next 16 bytes that of all threads in the region's code and the part without waits,
/// `site` that part of the thread with the most.
pub const CONTINUES_TEAM: u32 = 7;
/// A continuation with what the threads of a team waited for, in ticks over all of them: `begin` holds barriers, the
/// next 16 bytes locks, and tasks.
pub const CONTINUES_TEAM_WAITS: u32 = 8;
/// A continuation with calls on a file ([`crate::file_calls::FileCalls`]): `begin` holds their bytes, the next 16 bytes
/// their number and the ticks inside them, `site` the ticks from the first begin to the last end.
pub const CONTINUES_FILE_CALLS: u32 = 9;

/// In the communicator's field of a [`CONTINUES_REQUEST`] slot, or of a call that completes one
/// request: this call completed the request.
pub const COMPLETED: u16 = 1;
/// Together with [`COMPLETED`]: the operation was cancelled.
pub const CANCELLED: u16 = 2;
/// Marks a number of bytes that does not fit; it is in a [`CONTINUES_BYTES`] slot.
pub const BYTES_ESCAPE: u32 = u32::MAX;
/// Number of slots kept free behind every event's own, for continuations written after the call.
pub const RESERVED_SLOTS: usize = 8;

/// Combines the parts of a slot's word.
#[inline]
pub const fn slot_word(duration: u32, function: u16, communicator: u16) -> u64 {
    duration as u64 | (function as u64) << 32 | (communicator as u64) << 48
}

// SAFETY: repr(C), integers only; the sizes checked below show that there is no padding.
unsafe impl Plain for ChunkHeader {}
// SAFETY: repr(C), integers only; its size is checked below, too.
unsafe impl Plain for Slot {}

const _: () = assert!(size_of::<ChunkHeader>() == CHUNK_HEADER_BYTES);
const _: () = assert!(size_of::<Slot>() == SLOT_BYTES);
const _: () = assert!(cfg!(target_endian = "little"), "the format is little-endian");
