//! Where the loaded MPI keeps what a status says, and the values of its constants.
//!
//! Facts of DESIGN section 3, set once before recording begins and read on the path of a call.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicUsize, Ordering::Relaxed};

use trace_format::errors::ErrorClasses;
use trace_format::layout::CANCELLED;

use crate::mpi_library::Family;

static FAMILY: AtomicU8 = AtomicU8::new(0);
static SOURCE_AT: AtomicUsize = AtomicUsize::new(0);
static STATUS_BYTES: AtomicUsize = AtomicUsize::new(0);
static STATUS_IGNORE: AtomicUsize = AtomicUsize::new(0);
static IN_PLACE: AtomicUsize = AtomicUsize::new(usize::MAX);
static MPI_ROOT: AtomicI32 = AtomicI32::new(i32::MIN);
static PROC_NULL: AtomicI32 = AtomicI32::new(i32::MIN);
static WIDE_HANDLES: AtomicBool = AtomicBool::new(true);
static REQUEST_NULL: AtomicUsize = AtomicUsize::new(0);
static DATATYPE_NULL: AtomicUsize = AtomicUsize::new(0);

const OPEN_MPI: u8 = 1;
const MPICH: u8 = 2;
const ABI: u8 = 3;

/// Takes over the facts of a family, and the library's handles that are addresses in Open MPI.
pub fn set(family: Family, request_null: usize, datatype_null: usize) {
    // Source's offset (tag follows, error follows), bytes, IGNORE, IN_PLACE, ROOT, PROC_NULL.
    let (kind, source_at, bytes, ignore, in_place, root, proc_null) = match family {
        Family::OpenMpi => (OPEN_MPI, 0, 24, 0, 1, -4, -2),
        Family::Mpich => (MPICH, 8, 20, 1, usize::MAX, -3, -1),
        Family::Abi => (ABI, 0, 32, 0, 1, -4, -3),
        Family::Unknown => return,
    };
    FAMILY.store(kind, Relaxed);
    SOURCE_AT.store(source_at, Relaxed);
    STATUS_BYTES.store(bytes, Relaxed);
    STATUS_IGNORE.store(ignore, Relaxed);
    IN_PLACE.store(in_place, Relaxed);
    MPI_ROOT.store(root, Relaxed);
    PROC_NULL.store(proc_null, Relaxed);
    WIDE_HANDLES.store(family != Family::Mpich, Relaxed);
    REQUEST_NULL.store(request_null, Relaxed);
    DATATYPE_NULL.store(datatype_null, Relaxed);
}

/// Whether attributes can be recorded at all.
pub fn is_known() -> bool {
    FAMILY.load(Relaxed) != 0
}

/// Bytes of an MPI_Status.
#[inline(always)]
pub fn status_bytes() -> usize {
    STATUS_BYTES.load(Relaxed)
}

/// Whether a status argument is MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE.
#[inline(always)]
pub fn is_ignored(status: usize) -> bool {
    status == STATUS_IGNORE.load(Relaxed)
}

/// Whether a buffer argument is MPI_IN_PLACE.
pub fn is_in_place(buffer: usize) -> bool {
    buffer == IN_PLACE.load(Relaxed)
}

/// The value of MPI_ROOT.
pub fn mpi_root() -> i32 {
    MPI_ROOT.load(Relaxed)
}

/// The value of MPI_PROC_NULL.
pub fn proc_null() -> i32 {
    PROC_NULL.load(Relaxed)
}

/// A handle argument without what an ABI of 32-bit handles leaves in the upper half.
#[inline(always)]
pub fn handle(word: usize) -> usize {
    if WIDE_HANDLES.load(Relaxed) { word } else { word & 0xffff_ffff }
}

/// The handle that a pointer argument points to; 0 for a null pointer, which MPI will refuse.
///
/// # Safety
/// The program passed null or a valid pointer to a handle there.
#[inline(always)]
pub unsafe fn handle_at(pointer: usize) -> usize {
    if pointer == 0 {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe {
        if WIDE_HANDLES.load(Relaxed) {
            *(pointer as *const usize)
        } else {
            *(pointer as *const u32) as usize
        }
    }
}

/// A window or file argument: MPICH's files are pointers where its other handles are ints.
#[inline(always)]
pub fn handle_of_object(window: bool, word: usize) -> usize {
    if window { handle(word) } else { word }
}

/// The window or file that a pointer argument points to.
///
/// # Safety
/// As [`handle_at`].
#[inline(always)]
pub unsafe fn object_at(window: bool, pointer: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        match (window, pointer) {
            (_, 0) => 0,
            (true, _) => handle_at(pointer),
            (false, _) => *(pointer as *const usize),
        }
    }
}

/// Bytes between the handles of an array.
#[inline(always)]
pub fn handle_stride() -> usize {
    if WIDE_HANDLES.load(Relaxed) { 8 } else { 4 }
}

/// A request as an event keeps it: 0 for MPI_REQUEST_NULL, an int handle as it is, a pointer without
/// its alignment bits (unique among requests within 64 GiB of each other).
#[inline(always)]
pub fn request_key(request: usize) -> u32 {
    if request == REQUEST_NULL.load(Relaxed) {
        0
    } else if FAMILY.load(Relaxed) == OPEN_MPI {
        (request >> 4) as u32
    } else {
        request as u32
    }
}

/// What a status says.
#[derive(Debug, Clone, Copy)]
pub struct Said {
    /// MPI_SOURCE.
    pub source: i32,
    /// MPI_TAG.
    pub tag: i32,
    /// Bytes received.
    pub bytes: u64,
    /// [`CANCELLED`] or 0.
    pub cancelled: u16,
}

/// Reads a status.
///
/// # Safety
/// `status` points to a status that the library has written.
#[inline(always)]
pub unsafe fn read_status(status: usize) -> Said {
    // SAFETY: the caller's promise; offsets are the family's.
    unsafe {
        let word = |at: usize| ((status + at) as *const u32).read_unaligned();
        let source_at = SOURCE_AT.load(Relaxed);
        let low_high = |low: u32, high: u32| u64::from(low) | u64::from(high >> 1) << 32;
        let (bytes, cancelled) = match FAMILY.load(Relaxed) {
            // Open MPI's files leave the field as it was: only its true means true.
            OPEN_MPI => (((status + 16) as *const u64).read_unaligned(), word(12) == 1),
            MPICH => (low_high(word(0), word(4)), word(4) & 1 != 0),
            _ => (low_high(word(12), word(16)), word(16) & 1 != 0),
        };
        Said {
            source: word(source_at) as i32,
            tag: word(source_at + 4) as i32,
            bytes,
            cancelled: if cancelled { CANCELLED } else { 0 },
        }
    }
}

/// The error classes that are treated by themselves.
pub fn error_classes() -> ErrorClasses {
    match FAMILY.load(Relaxed) {
        OPEN_MPI => ErrorClasses::OPEN_MPI,
        MPICH => ErrorClasses::MPICH,
        _ => ErrorClasses::ABI,
    }
}

/// Class of an error code, without asking MPI; never 0 for a code that is an error.
pub fn error_class(code: i32) -> u32 {
    let class = match FAMILY.load(Relaxed) {
        // Both libraries of the ABI are MPICH's: the class stands in the low bits of their codes.
        MPICH | ABI => code & 0x7f,
        _ => code,
    };
    // A class that the program made may have no bits there.
    if class == 0 { code as u32 } else { class as u32 }
}

/// Whether an error code says that the statuses hold one error each (MPI_ERR_IN_STATUS).
pub fn is_in_status(code: usize) -> bool {
    error_class(code as i32) == error_classes().in_status
}

/// Handle of MPI_DATATYPE_NULL.
pub fn datatype_null() -> usize {
    DATATYPE_NULL.load(Relaxed)
}

/// Whether a datatype is one that MPI has made, which is never freed: by MPICH's bits, or because it lies
/// in a library and not on the heap.
pub fn is_predefined(datatype: usize) -> bool {
    match FAMILY.load(Relaxed) {
        MPICH => datatype >> 30 == 1,
        OPEN_MPI => crate::real_entry::object_of(datatype as *const _).is_some(),
        _ => datatype < 0x1000,
    }
}

/// Kind of a communicator's topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// MPI_CART.
    Cartesian,
    /// MPI_GRAPH.
    Graph,
    /// MPI_DIST_GRAPH.
    DistributedGraph,
}

/// What a value of MPI_Topo_test means.
pub fn topology(value: i32) -> Option<Topology> {
    match (FAMILY.load(Relaxed), value) {
        (OPEN_MPI, 1) | (MPICH, 2) | (ABI, 211) => Some(Topology::Cartesian),
        (OPEN_MPI, 2) | (MPICH, 1) | (ABI, 212) => Some(Topology::Graph),
        (OPEN_MPI | MPICH, 3) | (ABI, 213) => Some(Topology::DistributedGraph),
        _ => None,
    }
}

/// Error field of a status.
///
/// # Safety
/// As [`read_status`].
pub unsafe fn status_error(status: usize) -> i32 {
    // SAFETY: the caller's promise; the field follows source and tag in every ABI.
    unsafe { ((status + SOURCE_AT.load(Relaxed) + 8) as *const i32).read_unaligned() }
}
