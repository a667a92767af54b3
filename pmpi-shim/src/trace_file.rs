//! The rank's file: growth by granted chunks, and definition records.
//!
//! A store goes only into pages that `posix_fallocate` granted and that were populated: on a full
//! file system touching a hole would kill the program by SIGBUS. The descriptor is checked before
//! each use, since a program may close descriptors that are not its own.

use std::ffi::{CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering::Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

use trace_format::encoding::{FRAME_BYTES, checksum, encode, framed_bytes};
use trace_format::header::{Definition, FileHeader};
use trace_format::layout::*;

/// Linux 5.14: populate a mapping for writing.
const MADV_POPULATE_WRITE: c_int = 23;

/// Bytes of the zeros that granted space is filled with, and pieces of it in one system call.
const ZERO_BYTES: usize = 64 << 10;
const MOST_PIECES: usize = 64;
/// Times that granting space is tried while signals interrupt it.
const ALLOCATE_TRIES: u32 = 16;

struct TraceFile {
    descriptor: c_int,
    identity: (libc::dev_t, libc::ino_t),
    path: PathBuf,
    end: u64,
    /// Current definition chunk: next record and end.
    definitions: Option<(*mut u8, *mut u8)>,
    definition_chunks: u32,
}

// SAFETY: the pointers are into a shared mapping that only the holder of the lock writes.
unsafe impl Send for TraceFile {}

static FILE: Mutex<Option<TraceFile>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<TraceFile>> {
    FILE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A mapped chunk whose header is written.
pub struct Chunk {
    /// Start of the mapping.
    pub mapping: *mut u8,
    /// Bytes of the mapping, header included.
    pub bytes: usize,
}

fn system_error() -> String {
    std::io::Error::last_os_error().to_string()
}

/// Whether a file could not be made because one of that name stands there.
pub enum CreateError {
    /// A file of that name exists.
    Exists,
    /// Anything else, as a sentence.
    Failed(String),
}

/// Makes a directory of mode 0700 and its parents where they are missing.
pub fn make_directory(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| format!("cannot make the directory {}: {error}", path.display()))
}

/// Makes the rank's file, mode 0600; it must not exist.
pub fn create(path: &Path) -> Result<(), CreateError> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| CreateError::Failed("the path holds a zero byte".into()))?;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: a C string and plain flags.
    let descriptor = unsafe { libc::open(name.as_ptr(), flags, 0o600) };
    if descriptor < 0 {
        let error = std::io::Error::last_os_error();
        return Err(match error.kind() {
            std::io::ErrorKind::AlreadyExists => CreateError::Exists,
            _ => CreateError::Failed(format!("cannot create {}: {error}", path.display())),
        });
    }
    let descriptor = move_up(descriptor);
    refuse_copy_on_write(descriptor).map_err(CreateError::Failed)?;
    let identity = identity_of(descriptor).ok_or_else(|| CreateError::Failed(system_error()))?;
    *lock() = Some(TraceFile {
        descriptor,
        identity,
        path: path.to_owned(),
        end: HEADER_BYTES,
        definitions: None,
        definition_chunks: 0,
    });
    Ok(())
}

/// Moves a descriptor away from the low ones that a program's next `open` would get, to the upper half
/// of the kernel's table as it stands: making that table grow costs a threaded process 15 ms.
pub fn move_up(descriptor: c_int) -> c_int {
    let table = crate::machine::descriptor_table_places();
    // SAFETY: both descriptors are ours.
    unsafe {
        let high = libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, table / 2);
        if high < 0 {
            return descriptor;
        }
        libc::close(descriptor);
        high
    }
}

fn identity_of(descriptor: c_int) -> Option<(libc::dev_t, libc::ino_t)> {
    // SAFETY: a zeroed stat is valid to be written over.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        (libc::fstat(descriptor, &mut status) == 0).then_some((status.st_dev, status.st_ino))
    }
}

impl TraceFile {
    /// The descriptor, opened anew where the program closed or replaced it.
    fn descriptor(&mut self) -> Result<c_int, String> {
        if identity_of(self.descriptor) == Some(self.identity) {
            return Ok(self.descriptor);
        }
        let name = CString::new(self.path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: a C string and plain flags.
        let descriptor = unsafe { libc::open(name.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        if descriptor < 0 || identity_of(descriptor) != Some(self.identity) {
            return Err(format!("the trace file {} is gone", self.path.display()));
        }
        self.descriptor = move_up(descriptor);
        Ok(self.descriptor)
    }

    /// Grants bytes of the file.
    fn grant(&mut self, offset: u64, bytes: usize) -> Result<c_int, String> {
        let descriptor = self.descriptor()?;
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is ours to be written. (Growing beyond it would raise SIGXFSZ.)
        let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
        if known && limit.rlim_cur != libc::RLIM_INFINITY && offset + bytes as u64 > limit.rlim_cur
        {
            return Err("the trace would exceed the limit on file size (ulimit -f)".into());
        }
        let refused = match allocate(descriptor, offset, bytes) {
            // A file system that every signal interrupts: what is written is granted, too.
            0 | libc::EINTR => write_zeros(descriptor, offset, bytes).err(),
            error => Some(std::io::Error::from_raw_os_error(error)),
        };
        match refused {
            None => Ok(descriptor),
            Some(error) => {
                Err(format!("no space for the trace in {}: {error}", self.path.display()))
            }
        }
    }

    /// Grants, maps and populates bytes of the file.
    fn map(&mut self, offset: u64, bytes: usize) -> Result<*mut u8, String> {
        let descriptor = self.grant(offset, bytes)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping of our own file.
        let mapping = unsafe {
            libc::mmap(null_mut(), bytes, protection, libc::MAP_SHARED, descriptor, offset as i64)
        };
        if mapping == libc::MAP_FAILED {
            return Err(format!("cannot map the trace file: {}", system_error()));
        }
        populate(mapping, bytes)?;
        Ok(mapping.cast())
    }

    /// The next chunk of the file, its header written.
    fn chunk(&mut self, mut header: ChunkHeader, bytes: usize) -> Result<Chunk, String> {
        let mapping = self.map(self.end, bytes)?;
        self.end += bytes as u64;
        header.magic = CHUNK_MAGIC;
        header.length = bytes as u64;
        let (from, to) = CHUNK_CRC_COVERS;
        header.crc = checksum(&bytes_of(&header)[from..to]);
        // SAFETY: the mapping is fresh, aligned and longer than a header. The first word, with the
        // magic, is stored last.
        unsafe {
            let rest = &bytes_of(&header)[8..];
            mapping.add(8).copy_from_nonoverlapping(rest.as_ptr(), rest.len());
            let first = u64::from(header.magic) | u64::from(header.kind) << 32;
            AtomicU64::from_ptr(mapping.cast()).store(first, Release);
        }
        Ok(Chunk { mapping, bytes })
    }

    fn define(&mut self, definition: &Definition) -> Result<(), String> {
        let payload = encode(definition).ok_or("a definition is too long")?;
        let framed = framed_bytes(payload.len());
        let room = self.definitions.map_or(0, |(next, end)| end as usize - next as usize);
        if room < framed {
            let needed = (CHUNK_HEADER_BYTES + framed) as u64;
            let header = empty_chunk(CHUNK_DEFINITIONS, 0, self.definition_chunks);
            let chunk = self.chunk(header, needed.next_multiple_of(CHUNK_GRANULE) as usize)?;
            self.definition_chunks += 1;
            // SAFETY: both ends lie in the mapping.
            self.definitions = Some(unsafe {
                (chunk.mapping.add(CHUNK_HEADER_BYTES), chunk.mapping.add(chunk.bytes))
            });
        }
        let (next, end) = self.definitions.ok_or("no definition chunk")?;
        let frame = u64::from(checksum(&payload)) << 32 | payload.len() as u64;
        // SAFETY: `framed` bytes from `next` on are free and mapped; `next` is 8-aligned. The frame
        // is stored last.
        unsafe {
            next.add(FRAME_BYTES).copy_from_nonoverlapping(payload.as_ptr(), payload.len());
            AtomicU64::from_ptr(next.cast()).store(frame, Release);
            self.definitions = Some((next.add(framed), end));
        }
        Ok(())
    }
}

/// Grants space, again where a signal came between; an error number or 0.
fn allocate(descriptor: c_int, offset: u64, bytes: usize) -> c_int {
    let mut error = libc::EINTR;
    for _ in 0..ALLOCATE_TRIES {
        // SAFETY: our descriptor.
        error = unsafe { libc::posix_fallocate(descriptor, offset as i64, bytes as i64) };
        if error != libc::EINTR {
            break;
        }
    }
    error
}

/// Makes a file of btrfs one that is not copied on write: there a store into a page that was granted and
/// written needs new space all the same, and is SIGBUS where there is none.
fn refuse_copy_on_write(descriptor: c_int) -> Result<(), String> {
    const BTRFS: i64 = 0x9123_683e;
    const SET_FLAGS: libc::c_ulong = 0x4008_6602;
    const NO_COW: libc::c_long = 0x0080_0000;
    // SAFETY: a zeroed statfs is valid to be written over; the flags are a long of ours.
    unsafe {
        let mut system: libc::statfs = std::mem::zeroed();
        if libc::fstatfs(descriptor, &mut system) == 0
            && system.f_type == BTRFS
            && libc::ioctl(descriptor, SET_FLAGS, &NO_COW) != 0
        {
            return Err(format!("btrfs copies on write, and refused not to: {}", system_error()));
        }
    }
    Ok(())
}

/// Writes zeros over granted bytes of a file.
///
/// Pages that a write has made are large and clean to map: populating them afterwards costs a
/// twentieth of what it costs to fault granted but unwritten ones (docs/overhead.md).
fn write_zeros(descriptor: c_int, offset: u64, bytes: usize) -> std::io::Result<()> {
    static ZEROS: [u8; ZERO_BYTES] = [0; ZERO_BYTES];
    let piece = libc::iovec { iov_base: ZEROS.as_ptr().cast_mut().cast(), iov_len: ZERO_BYTES };
    let pieces = [piece; MOST_PIECES];
    let mut done = 0;
    while done < bytes {
        let left = bytes - done;
        let count = (left / ZERO_BYTES).clamp(1, MOST_PIECES);
        let at = (offset + done as u64) as i64;
        // SAFETY: the pieces are read only; the last one is shortened to what is left.
        let written = unsafe {
            if left < ZERO_BYTES {
                libc::pwrite(descriptor, ZEROS.as_ptr().cast(), left, at)
            } else {
                libc::pwritev(descriptor, pieces.as_ptr(), count as c_int, at)
            }
        };
        match written {
            1.. => done += written as usize,
            0 => return Err(std::io::ErrorKind::WriteZero.into()),
            _ => {
                let error = std::io::Error::last_os_error();
                if error.kind() != std::io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// Populates a granted mapping for writing.
fn populate(mapping: *mut c_void, bytes: usize) -> Result<(), String> {
    // SAFETY: our own fresh mapping.
    if unsafe { libc::madvise(mapping, bytes, MADV_POPULATE_WRITE) } == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    if error.raw_os_error() != Some(libc::EINVAL) {
        // SAFETY: as above.
        unsafe { libc::munmap(mapping, bytes) };
        return Err(format!("cannot write to the trace file: {error}"));
    }
    // Kernels before 5.14: touch each page; `posix_fallocate` granted them all.
    for page in (0..bytes).step_by(4096) {
        // SAFETY: inside our mapping, whose pages are granted.
        unsafe { mapping.cast::<u8>().add(page).write_volatile(0) };
    }
    Ok(())
}

fn empty_chunk(kind: u16, thread: u32, sequence: u32) -> ChunkHeader {
    ChunkHeader {
        magic: 0,
        kind,
        reserved0: 0,
        thread,
        sequence,
        length: 0,
        opened_ticks: 0,
        thread_os_id: 0,
        crc: 0,
        previous_minor_faults: 0,
        reserved1: [0; 2],
    }
}

/// Writes the header area.
pub fn write_header(mut fixed: FixedHeader, header: &FileHeader) -> Result<(), String> {
    let payload = encode(header).ok_or("the header is too long")?;
    if FIXED_HEADER_BYTES + payload.len() > HEADER_BYTES as usize {
        return Err("the header is too long".into());
    }
    fixed.payload_bytes = payload.len() as u32;
    fixed.payload_crc = checksum(&payload);
    fixed.fixed_crc = checksum(&bytes_of(&fixed)[..FIXED_CRC_COVERS]);
    let mut guard = lock();
    let file = guard.as_mut().ok_or("no trace file")?;
    let mapping = file.map(0, HEADER_BYTES as usize)?;
    let fixed = bytes_of(&fixed);
    // SAFETY: the mapping holds HEADER_BYTES, checked above to be enough; it is ours alone.
    unsafe {
        mapping.add(fixed.len()).copy_from_nonoverlapping(payload.as_ptr(), payload.len());
        mapping.copy_from_nonoverlapping(fixed.as_ptr(), fixed.len());
        libc::munmap(mapping.cast(), HEADER_BYTES as usize);
    }
    Ok(())
}

/// The next event chunk of a thread.
pub fn event_chunk(
    thread: u32,
    sequence: u32,
    opened_ticks: u64,
    thread_os_id: u32,
    previous_minor_faults: u64,
    bytes: usize,
) -> Result<Chunk, String> {
    let header = ChunkHeader {
        opened_ticks,
        thread_os_id,
        previous_minor_faults,
        ..empty_chunk(CHUNK_EVENTS, thread, sequence)
    };
    lock().as_mut().ok_or("no trace file")?.chunk(header, bytes)
}

/// Adds a definition record; what cannot be written is lost with the space it had no room in.
pub fn define(definition: &Definition) -> Result<(), String> {
    lock().as_mut().ok_or("no trace file")?.define(definition)
}

/// Gives up the unused tail of the file's last chunk, and the descriptor.
///
/// `used_end` is where the finished chunk `mapping` ends being used; it is unmapped first, so that
/// nothing can store behind the new end. Other chunks stay mapped: their threads may still run.
pub fn finish(mapping: *mut u8, bytes: usize, used: usize) {
    let mut guard = lock();
    let Some(file) = guard.as_mut() else { return };
    // The main thread's window is the file's last chunk only when nothing was granted after it;
    // then the file can end where it is used.
    let last = file.last_chunk_is(mapping, bytes);
    // SAFETY: the window belongs to the calling thread, which records nothing any more.
    unsafe { libc::munmap(mapping.cast(), bytes) };
    if last && let Ok(descriptor) = file.descriptor() {
        let keep = (used as u64).next_multiple_of(4096);
        let length = file.end - bytes as u64 + keep;
        // SAFETY: our descriptor; no mapping reaches behind the new end. A failure leaves zeros.
        unsafe { libc::ftruncate(descriptor, length as i64) };
    }
    if let Ok(descriptor) = file.descriptor() {
        // SAFETY: ours; never used again.
        unsafe { libc::close(descriptor) };
    }
    file.descriptor = -1;
}

impl TraceFile {
    /// Whether a mapped event chunk is the one at the end of the file.
    fn last_chunk_is(&mut self, mapping: *mut u8, bytes: usize) -> bool {
        let Ok(descriptor) = self.descriptor() else { return false };
        let mut on_file = [0u8; CHUNK_HEADER_BYTES];
        let at = self.end - bytes as u64;
        // SAFETY: reads a chunk's header from our file, and compares it with the mapping's.
        unsafe {
            let read =
                libc::pread(descriptor, on_file.as_mut_ptr().cast(), on_file.len(), at as i64);
            read == on_file.len() as isize
                && on_file == std::slice::from_raw_parts(mapping, CHUNK_HEADER_BYTES)
        }
    }
}
