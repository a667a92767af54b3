//! Layout of statuses, and the values of the constants, in the loaded MPI.
//!
//! The facts are set once, before recording begins, and are read on the path of a call.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicUsize, Ordering::Relaxed};

use trace_format::errors::ErrorClasses;

use crate::mpi::library::Family;

/// Facts about the loaded MPI that the path of a call needs.
struct Facts {
    family: AtomicU8,
    source_at: AtomicUsize,
    status_bytes: AtomicUsize,
    status_ignore: AtomicUsize,
    in_place: AtomicUsize,
    mpi_root: AtomicI32,
    proc_null: AtomicI32,
    wide_handles: AtomicBool,
    request_null: AtomicUsize,
    datatype_null: AtomicUsize,
}

static FACTS: Facts = Facts {
    family: AtomicU8::new(0),
    source_at: AtomicUsize::new(0),
    status_bytes: AtomicUsize::new(0),
    status_ignore: AtomicUsize::new(0),
    in_place: AtomicUsize::new(usize::MAX),
    mpi_root: AtomicI32::new(i32::MIN),
    proc_null: AtomicI32::new(i32::MIN),
    wide_handles: AtomicBool::new(true),
    request_null: AtomicUsize::new(0),
    datatype_null: AtomicUsize::new(0),
};

const OPEN_MPI: u8 = 1;
const MPICH: u8 = 2;
const ABI: u8 = 3;

/// Sets the facts of a family, and the library's handles, which are addresses in Open MPI.
pub fn set(family: Family, request_null: usize, datatype_null: usize) {
    // Offset of the source (tag and error follow), bytes, IGNORE, IN_PLACE, ROOT, PROC_NULL.
    let (kind, source_at, bytes, ignore, in_place, root, proc_null) = match family {
        Family::OpenMpi => (OPEN_MPI, 0, 24, 0, 1, -4, -2),
        Family::Mpich => (MPICH, 8, 20, 1, usize::MAX, -3, -1),
        Family::Abi => (ABI, 0, 32, 0, 1, -4, -3),
        Family::Unknown => return,
    };
    FACTS.family.store(kind, Relaxed);
    FACTS.source_at.store(source_at, Relaxed);
    FACTS.status_bytes.store(bytes, Relaxed);
    FACTS.status_ignore.store(ignore, Relaxed);
    FACTS.in_place.store(in_place, Relaxed);
    FACTS.mpi_root.store(root, Relaxed);
    FACTS.proc_null.store(proc_null, Relaxed);
    FACTS.wide_handles.store(family != Family::Mpich, Relaxed);
    FACTS.request_null.store(request_null, Relaxed);
    FACTS.datatype_null.store(datatype_null, Relaxed);
}

/// Whether attributes can be recorded at all.
pub fn is_known() -> bool {
    FACTS.family.load(Relaxed) != 0
}

/// Size of an MPI_Status in bytes.
#[inline(always)]
pub fn status_bytes() -> usize {
    FACTS.status_bytes.load(Relaxed)
}

/// Whether a status argument is MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE.
#[inline(always)]
pub fn is_ignored(status: usize) -> bool {
    status == FACTS.status_ignore.load(Relaxed)
}

/// Whether a buffer argument is MPI_IN_PLACE.
pub fn is_in_place(buffer: usize) -> bool {
    buffer == FACTS.in_place.load(Relaxed)
}

/// The value of MPI_ROOT.
pub fn mpi_root() -> i32 {
    FACTS.mpi_root.load(Relaxed)
}

/// The value of MPI_PROC_NULL.
pub fn proc_null() -> i32 {
    FACTS.proc_null.load(Relaxed)
}

/// A handle argument, without what an ABI with 32-bit handles leaves in the upper half.
#[inline(always)]
pub fn handle(word: usize) -> usize {
    if FACTS.wide_handles.load(Relaxed) { word } else { word & 0xffff_ffff }
}

/// The handle that a pointer argument points to; 0 for a null pointer, which MPI will reject.
///
/// # Safety
/// The program passed null or a valid pointer to a handle.
#[inline(always)]
pub unsafe fn handle_at(pointer: usize) -> usize {
    if pointer == 0 {
        return 0;
    }
    // SAFETY: not null, so the program's handle.
    unsafe {
        if FACTS.wide_handles.load(Relaxed) {
            *(pointer as *const usize)
        } else {
            *(pointer as *const u32) as usize
        }
    }
}

/// A window or file argument. MPICH's files are pointers, while its other handles are ints.
#[inline(always)]
pub fn handle_of_object(window: bool, word: usize) -> usize {
    if window { handle(word) } else { word }
}

/// The window or file that a pointer argument points to.
///
/// # Safety
/// As for [`handle_at`].
#[inline(always)]
pub unsafe fn object_at(window: bool, pointer: usize) -> usize {
    // SAFETY: not null, so the program's handle.
    unsafe {
        match (window, pointer) {
            (_, 0) => 0,
            (true, _) => handle_at(pointer),
            (false, _) => *(pointer as *const usize),
        }
    }
}

/// Distance between the handles of an array in bytes.
#[inline(always)]
pub fn handle_stride() -> usize {
    if FACTS.wide_handles.load(Relaxed) { 8 } else { 4 }
}

/// A request as stored in an event: 0 for MPI_REQUEST_NULL, an int handle unchanged, a pointer
/// without its alignment bits (unique among requests within 64 GiB of each other).
#[inline(always)]
pub fn request_key(request: usize) -> u32 {
    if request == FACTS.request_null.load(Relaxed) {
        0
    } else if FACTS.family.load(Relaxed) == OPEN_MPI {
        (request >> 4) as u32
    } else {
        request as u32
    }
}

/// The contents of a status.
#[derive(Debug, Clone, Copy)]
pub struct StatusFields {
    /// MPI_SOURCE.
    pub source: i32,
    /// MPI_TAG.
    pub tag: i32,
    /// Bytes received.
    pub bytes: u64,
    /// Whether the operation was cancelled.
    pub cancelled: bool,
}

/// Reads a status.
///
/// # Safety
/// `status` points to a status that the library has written.
#[inline(always)]
pub unsafe fn read_status(status: usize) -> StatusFields {
    // SAFETY: the library has written the status, whose layout is the family's.
    unsafe {
        let word = |at: usize| ((status + at) as *const u32).read_unaligned();
        let source_at = FACTS.source_at.load(Relaxed);
        let low_high = |low: u32, high: u32| u64::from(low) | u64::from(high >> 1) << 32;
        let (bytes, cancelled) = match FACTS.family.load(Relaxed) {
            // Open MPI's files leave the field unchanged, so only its exact value for true means
            // true.
            OPEN_MPI => (((status + 16) as *const u64).read_unaligned(), word(12) == 1),
            MPICH => (low_high(word(0), word(4)), word(4) & 1 != 0),
            _ => (low_high(word(12), word(16)), word(16) & 1 != 0),
        };
        StatusFields {
            source: word(source_at) as i32,
            tag: word(source_at + 4) as i32,
            bytes,
            cancelled,
        }
    }
}

/// The error classes that the recorder treats specially.
pub fn error_classes() -> ErrorClasses {
    match FACTS.family.load(Relaxed) {
        OPEN_MPI => ErrorClasses::OPEN_MPI,
        MPICH => ErrorClasses::MPICH,
        _ => ErrorClasses::ABI,
    }
}

/// Class of an error code, without asking MPI. Never 0 for an error.
pub fn error_class(code: i32) -> u32 {
    let class = match FACTS.family.load(Relaxed) {
        // Both libraries with this ABI derive from MPICH: the class is in the low bits of their
        // codes.
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
    FACTS.datatype_null.load(Relaxed)
}

/// Whether a datatype was made by MPI itself and is never freed: according to MPICH's bits, or
/// because it lies in a library and not on the heap.
pub fn is_predefined(datatype: usize) -> bool {
    match FACTS.family.load(Relaxed) {
        MPICH => datatype >> 30 == 1,
        OPEN_MPI => crate::host::loader::object_of(datatype as *const _).is_some(),
        _ => datatype < 0x1000,
    }
}

/// Kind of topology of a communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// MPI_CART.
    Cartesian,
    /// MPI_GRAPH.
    Graph,
    /// MPI_DIST_GRAPH.
    DistributedGraph,
}

/// Decodes a value of MPI_Topo_test.
pub fn topology(value: i32) -> Option<Topology> {
    match (FACTS.family.load(Relaxed), value) {
        (OPEN_MPI, 1) | (MPICH, 2) | (ABI, 211) => Some(Topology::Cartesian),
        (OPEN_MPI, 2) | (MPICH, 1) | (ABI, 212) => Some(Topology::Graph),
        (OPEN_MPI | MPICH, 3) | (ABI, 213) => Some(Topology::DistributedGraph),
        _ => None,
    }
}

/// Error field of a status.
///
/// # Safety
/// As for [`read_status`].
pub unsafe fn status_error(status: usize) -> i32 {
    // SAFETY: the library has written the status; the field follows source and tag in every ABI.
    unsafe { ((status + FACTS.source_at.load(Relaxed) + 8) as *const i32).read_unaligned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A status of this many words, with values at some of them.
    fn status(words: usize, values: &[(usize, i32)]) -> Vec<u32> {
        let mut status = vec![0u32; words];
        values.iter().for_each(|(at, value)| status[*at] = *value as u32);
        status
    }

    // A single test for all families, because the facts are globals of the process.
    #[test]
    fn reads_statuses_handles_and_errors_of_each_family() {
        let read = |status: &[u32]| {
            assert_eq!(size_of_val(status), status_bytes());
            let at = status.as_ptr() as usize;
            // SAFETY: a status of the present family, with that family's length.
            let (fields, error) = unsafe { (read_status(at), status_error(at)) };
            (fields.source, fields.tag, fields.bytes, fields.cancelled, error)
        };
        let words = [0x1111_2222u32, 0x3333_4444];
        let first = words.as_ptr() as usize;
        // SAFETY: two words of ours.
        let handle_there = || unsafe { handle_at(first) };

        set(Family::OpenMpi, 0x7000, 0x7100);
        let mut open_mpi = status(6, &[(0, 3), (1, 7), (2, 15), (4, 1 << 20), (5, 2)]);
        assert_eq!(read(&open_mpi), (3, 7, (2 << 32) | 1 << 20, false, 15));
        open_mpi[3] = 1;
        assert!(read(&open_mpi).3);
        open_mpi[3] = 0x5555;
        assert!(!read(&open_mpi).3, "a file's leftover value is not true");
        assert_eq!((request_key(0x7000), request_key(0x9_0000_0010)), (0, 0x9000_0001));
        assert_eq!((handle_there(), handle_stride()), (0x3333_4444_1111_2222, 8));
        assert_eq!((error_class(19), is_ignored(0), is_in_place(1)), (19, true, true));
        assert_eq!((mpi_root(), proc_null()), (-4, -2));
        assert_eq!(topology(1), Some(Topology::Cartesian));

        set(Family::Mpich, 0x2c00_0000, 0x0c00_0000);
        let mut mpich = status(5, &[(0, 100), (1, 6), (2, 3), (3, 7), (4, 0x0f)]);
        assert_eq!(read(&mpich), (3, 7, (3 << 32) | 100, false, 0x0f));
        mpich[1] |= 1;
        assert!(read(&mpich).3);
        let above = 0xdead_beef << 32;
        assert_eq!(handle(above | 0x4400_0000), 0x4400_0000);
        assert_eq!((request_key(0x2c00_0000), request_key(0x9800_0001)), (0, 0x9800_0001));
        assert_eq!((handle_there(), handle_stride()), (0x1111_2222, 4));
        assert_eq!((error_class(0x0c2e_490e), error_class(1 << 7)), (14, 1 << 7));
        assert!(is_predefined(0x4c00_010d) && !is_predefined(0x8c00_0000));
        assert_eq!(topology(1), Some(Topology::Graph));

        set(Family::Abi, 0x180, 0x200);
        let abi = status(8, &[(0, 3), (1, 7), (2, 5), (3, 100), (4, 7)]);
        assert_eq!(read(&abi), (3, 7, (3 << 32) | 100, true, 5));
        assert_eq!((request_key(0x180), handle(above), proc_null()), (0, above, -3));
        assert_eq!(topology(213), Some(Topology::DistributedGraph));

        set(Family::Unknown, 1, 2);
        assert_eq!((request_key(0x180), datatype_null()), (0, 0x200), "no family is set");
        // SAFETY: a null pointer is never dereferenced.
        assert_eq!(unsafe { (handle_at(0), object_at(true, 0), object_at(false, 0)) }, (0, 0, 0));
    }
}
