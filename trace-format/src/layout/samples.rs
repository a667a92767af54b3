//! Samples of the program's own code: the layout of a sample area, and of the chunks that its full
//! halves become.
//!
//! Each sampled thread has an area in the rank's file, which its signal handler alone writes: a
//! head, two halves of samples filled in turn, and a tree of call paths. A rank that is killed
//! leaves it as it is. A full half is appended to the file as a chunk of its own; then the handler
//! may fill the half again. When a thread ends, another one may take over its area: paths and
//! sequences go on.

use crate::layout::{CHUNK_HEADER_BYTES, MAPPING_GRANULE};
use crate::plain::Plain;

/// Number of samples of a half.
pub const HALF_SAMPLES: usize = 2048;
/// Maximum number of nodes of the tree of call paths, the root included.
pub const MAX_NODES: usize = 8176;
/// Size of the area's chunk in bytes.
pub const SAMPLE_AREA_BYTES: usize = HALVES_AT + 2 * HALF_BYTES;
/// Offset of the head in the chunk.
pub const HEAD_AT: usize = CHUNK_HEADER_BYTES;
/// Offset of the tree's nodes in the chunk.
pub const NODES_AT: usize = HEAD_AT + size_of::<SampleHead>();
/// Offset of the first half in the chunk.
pub const HALVES_AT: usize = NODES_AT + MAX_NODES * size_of::<PathNode>();
/// Size of a half in bytes.
pub const HALF_BYTES: usize = HALF_SAMPLES * size_of::<RawSample>();

/// In place of a node: the stack could not be read.
pub const NO_PATH: u32 = 0x7fff_ffff;
/// Added to a sample's node if the stack above that node is unknown.
pub const PATH_INCOMPLETE: u32 = 1 << 31;
/// Bit of an address that is not one: a frame of an interpreted language.
pub const INTERPRETED: u64 = 1 << 63;
/// Each function of an interpreted language has 2^`LINE_BITS` addresses: behind [`INTERPRETED`] and
/// its number the line, 0 if that is not known.
pub const LINE_BITS: u32 = 24;
/// What precedes a Python function's name in a definition of code.
pub const PYTHON: &str = "python ";
/// In place of a thread's number: the thread has made no MPI call.
pub const NO_THREAD: u32 = u32::MAX;

/// The address of a line of an interpreted function, given by its number.
pub const fn interpreted(number: u32, line: u32) -> u64 {
    let line = if line >> LINE_BITS == 0 { line } else { 0 };
    INTERPRETED | (number as u64) << LINE_BITS | line as u64
}

/// The head of a sample area. The handler stores a sample's node, then `nodes`, then the sample, then
/// its half's `count`; a reader that copies the head from front to end misses no node.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleHead {
    /// Counter when sampling of the thread began; 0: the area is not in use.
    pub begin: u64,
    /// Counter when it ended; 0: it has not.
    pub end: u64,
    /// CPU time of the thread since then in nanoseconds, user and kernel, at the last signal.
    pub cpu_ns: u64,
    /// Number of signals.
    pub delivered: u64,
    /// Number of those that found an MPI call or the recorder's own work in progress: no samples.
    pub in_mpi: u64,
    /// Number of samples lost for want of space.
    pub lost: u64,
    /// Number of samples whose stack could not be read to its end.
    pub cut: u64,
    /// The two halves.
    pub halves: [HalfHead; 2],
    /// Number of nodes of the tree.
    pub nodes: u32,
    /// Number of the thread in event chunks, or [`NO_THREAD`].
    pub thread: u32,
    /// Operating system's id of the thread.
    pub thread_os_id: u32,
    /// Samples have times in units of 2^`shift` ticks.
    pub shift: u32,
    /// Zero.
    pub reserved: [u64; 9],
}

/// A half of a sample area.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HalfHead {
    /// Counter that its samples' times are relative to.
    pub base: u64,
    /// Position among the halves that the area has had, from 0.
    pub sequence: u32,
    /// Number of samples.
    pub count: u32,
    /// Not 0 if it is full and waits to be appended to the file.
    pub full: u32,
    /// Zero.
    pub reserved: u32,
}

/// A sample as stored.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RawSample {
    /// Time since the half's base, shifted.
    pub time: u32,
    /// Node of the innermost caller or [`NO_PATH`], with or without [`PATH_INCOMPLETE`].
    pub path: u32,
    /// Address of the instruction, or an [`INTERPRETED`] frame.
    pub address: u64,
}

/// A node of the tree of call paths. Node 0 is the root, the path without callers.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathNode {
    /// Return address in the caller.
    pub address: u64,
    /// Node of the caller's caller; lower than the node's own number.
    pub parent: u32,
    /// Zero.
    pub reserved: u32,
}

/// What precedes the samples of a half that was appended to the file, behind a copy of the area's
/// head.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HalfCopy {
    /// As in [`HalfHead`].
    pub base: u64,
    /// As in [`HalfHead`].
    pub count: u32,
    /// [`FORM_RAW`] or [`FORM_ENCODED`].
    pub form: u32,
}

/// Form of samples: as in the area.
pub const FORM_RAW: u32 = 0;
/// Form of samples: [`crate::encoded::samples`].
pub const FORM_ENCODED: u32 = 1;
/// Bytes of a chunk's body that precede the samples.
pub const BODY_HEAD_BYTES: usize = size_of::<SampleHead>() + size_of::<HalfCopy>();

// SAFETY: repr(C), integers only; the sizes checked below show that there is no padding.
unsafe impl Plain for SampleHead {}
// SAFETY: repr(C), integers only; its size is checked below, too.
unsafe impl Plain for HalfHead {}
// SAFETY: repr(C), integers only; its size is checked below, too.
unsafe impl Plain for RawSample {}
// SAFETY: repr(C), integers only; its size is checked below, too.
unsafe impl Plain for PathNode {}
// SAFETY: repr(C), integers only; its size is checked below, too.
unsafe impl Plain for HalfCopy {}

const _: () = assert!(size_of::<SampleHead>() == 192);
const _: () = assert!(size_of::<HalfHead>() == 24);
const _: () = assert!(size_of::<RawSample>() == 16);
const _: () = assert!(size_of::<PathNode>() == 16);
const _: () = assert!(size_of::<HalfCopy>() == 16);
const _: () = assert!(SAMPLE_AREA_BYTES == 3 * MAPPING_GRANULE as usize);
