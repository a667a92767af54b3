//! The rank's file: windows that are mapped from it, chunks that are written to it, definitions.
//!
//! A store goes only into pages that `posix_fallocate` granted and that were populated: on a full
//! file system touching a hole would kill the program by SIGBUS. Only windows are mapped; everything
//! else is written. The descriptor is checked before each use, since a program may close descriptors
//! that are not its own.

use std::ffi::{CString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trace_format::encoding::{FRAME_BYTES, checksum, encode, framed_bytes};
use trace_format::header::{Definition, FileHeader};
use trace_format::layout::*;
use trace_format::totals::TOTALS_CHUNK_BYTES;

use crate::file_space::{
    allocate, identity_of, may_grow_to, move_up, populate, refuse_copy_on_write, write_all,
    write_zeros,
};

/// Bytes of a definition chunk, unless one record needs more.
const DEFINITION_CHUNK_BYTES: u64 = 16 << 10;

struct TraceFile {
    descriptor: c_int,
    identity: (libc::dev_t, libc::ino_t),
    path: PathBuf,
    /// Behind everything that was given away.
    end: u64,
    /// Beyond this no events are added; windows and definitions are.
    max_bytes: u64,
    /// Current definition chunk: offset of the next record and of its end.
    definitions: Option<(u64, u64)>,
    definition_chunks: u32,
}

static FILE: Mutex<Option<TraceFile>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<TraceFile>> {
    FILE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory for a thread's events.
#[derive(Debug)]
pub struct Memory {
    /// Start of the mapping; its bytes are zero.
    pub mapping: *mut u8,
    /// Bytes of the mapping.
    pub bytes: usize,
    /// Where it lies in the file; `None` for memory that is not the file's.
    pub offset: Option<u64>,
}

// SAFETY: plain memory; whoever holds the value uses it alone.
unsafe impl Send for Memory {}

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
        max_bytes: u64::MAX,
        definitions: None,
        definition_chunks: 0,
    });
    Ok(())
}

/// Adds no events beyond that many bytes; 0: no limit.
pub fn limit(max_bytes: u64) {
    if let Some(file) = lock().as_mut() {
        file.max_bytes = if max_bytes == 0 { u64::MAX } else { max_bytes };
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

    fn cannot_grow(&self, error: &std::io::Error) -> String {
        format!("no space for the trace in {}: {error}", self.path.display())
    }

    /// The descriptor, for writing up to `end`.
    fn descriptor_up_to(&mut self, end: u64) -> Result<c_int, String> {
        let descriptor = self.descriptor()?;
        may_grow_to(end)?;
        Ok(descriptor)
    }

    /// Grants bytes of the file, which then read as zero.
    fn grant(&mut self, offset: u64, bytes: usize) -> Result<c_int, String> {
        let descriptor = self.descriptor_up_to(offset + bytes as u64)?;
        match allocate(descriptor, offset, bytes) {
            // A file system that every signal interrupts: what is written is granted, too.
            0 | libc::EINTR => write_zeros(descriptor, offset, bytes),
            error => Err(std::io::Error::from_raw_os_error(error)),
        }
        .map(|()| descriptor)
        .map_err(|error| self.cannot_grow(&error))
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), String> {
        let descriptor = self.descriptor_up_to(offset + bytes.len() as u64)?;
        write_all(descriptor, offset, bytes).map_err(|error| self.cannot_grow(&error))
    }

    /// Writes a chunk, its header last; until then another one says that it is not finished.
    fn write_chunk(
        &mut self,
        offset: u64,
        header: &ChunkHeader,
        content: &[u8],
    ) -> Result<(), String> {
        let unfinished = sealed(ChunkHeader { kind: CHUNK_UNFINISHED, ..*header });
        self.write(offset, bytes_of(&unfinished))?;
        self.write(offset + CHUNK_HEADER_BYTES as u64, content)?;
        self.write(offset, bytes_of(header))
    }

    /// Memory of the file; `None` where its file system maps no memory to be shared.
    fn window(&mut self, bytes: usize) -> Result<Option<Memory>, String> {
        let offset = self.end.next_multiple_of(MAPPING_GRANULE);
        // What lies before it is granted too: reading a hole takes space on some file systems (tmpfs).
        let gap = (offset - self.end) as usize;
        let descriptor = self.grant(self.end, gap + bytes)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping of our own file.
        let mapping = unsafe {
            libc::mmap(null_mut(), bytes, protection, libc::MAP_SHARED, descriptor, offset as i64)
        };
        if mapping == libc::MAP_FAILED {
            return Ok(None);
        }
        populate(mapping, bytes)?;
        self.end = offset + bytes as u64;
        Ok(Some(Memory { mapping: mapping.cast(), bytes, offset: Some(offset) }))
    }

    fn define(&mut self, definition: &Definition) -> Result<(), String> {
        let payload = encode(definition).ok_or("a definition is too long")?;
        let framed = framed_bytes(payload.len()) as u64;
        if self.definitions.is_none_or(|(next, end)| next + framed > end) {
            let needed = CHUNK_HEADER_BYTES as u64 + framed;
            let length = needed.next_multiple_of(CHUNK_GRANULE).max(DEFINITION_CHUNK_BYTES);
            let offset = self.end;
            self.grant(offset, length as usize)?;
            let number = self.definition_chunks;
            let header = ChunkHeader { length, ..empty_chunk(CHUNK_DEFINITIONS, 0, number) };
            self.write(offset, bytes_of(&sealed(header)))?;
            self.end += length;
            self.definition_chunks += 1;
            self.definitions = Some((offset + CHUNK_HEADER_BYTES as u64, offset + length));
        }
        let (next, end) = self.definitions.ok_or("no definition chunk")?;
        let frame = u64::from(checksum(&payload)) << 32 | payload.len() as u64;
        // The frame is written last: without it the record is not there.
        self.write(next + FRAME_BYTES as u64, &payload)?;
        self.write(next, &frame.to_le_bytes())?;
        self.definitions = Some((next + framed, end));
        Ok(())
    }
}

/// A header with its magic and checksum.
fn sealed(mut header: ChunkHeader) -> ChunkHeader {
    header.magic = CHUNK_MAGIC;
    let (from, to) = CHUNK_CRC_COVERS;
    header.crc = checksum(&bytes_of(&header)[from..to]);
    header
}

fn empty_chunk(kind: u16, thread: u32, sequence: u32) -> ChunkHeader {
    ChunkHeader {
        magic: 0,
        kind,
        flags: 0,
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
    let mut area = bytes_of(&fixed).to_vec();
    area.extend(payload);
    file.grant(0, HEADER_BYTES as usize)?;
    file.write(0, &area)
}

/// Memory for a thread's events: of the file, or, where its file system maps no memory to be shared, the
/// process's own.
pub fn window(bytes: usize) -> Result<Memory, String> {
    if let Some(memory) = lock().as_mut().ok_or("no trace file")?.window(bytes)? {
        return Ok(memory);
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a fresh mapping.
    let mapping = unsafe { libc::mmap(null_mut(), bytes, protection, flags, -1, 0) };
    if mapping == libc::MAP_FAILED {
        return Err(format!("no memory for the trace: {}", system_error()));
    }
    Ok(Memory { mapping: mapping.cast(), bytes, offset: None })
}

/// The header of an event chunk.
pub fn event_header(
    (thread, thread_os_id): (u32, u32),
    sequence: u32,
    opened_ticks: u64,
    length: usize,
    previous_minor_faults: u64,
) -> ChunkHeader {
    sealed(ChunkHeader {
        flags: CHUNK_IS_WINDOW,
        length: length as u64,
        opened_ticks,
        thread_os_id,
        previous_minor_faults,
        ..empty_chunk(CHUNK_EVENTS, thread, sequence)
    })
}

fn kept_header(window: &ChunkHeader, length: u64) -> ChunkHeader {
    sealed(ChunkHeader { flags: 0, length, ..*window })
}

/// Adds a chunk with these slots, in a place of its own of at least `place_bytes`; its offset, or
/// `None` where the file may not grow any more.
pub fn append(
    window: &ChunkHeader,
    slots: &[u8],
    place_bytes: usize,
) -> Result<Option<u64>, String> {
    let mut guard = lock();
    let file = guard.as_mut().ok_or("no trace file")?;
    let used = (CHUNK_HEADER_BYTES + slots.len()).max(place_bytes) as u64;
    let (offset, length) = (file.end, used.next_multiple_of(CHUNK_GRANULE));
    if offset + length > file.max_bytes {
        return Ok(None);
    }
    if place_bytes > CHUNK_HEADER_BYTES + slots.len() {
        file.write_chunk(offset, &kept_header(window, length), &padded(slots, length))?;
    } else {
        file.write_chunk(offset, &kept_header(window, length), slots)?;
    }
    file.end += length;
    Ok(Some(offset))
}

/// Slots and zeros behind them, to fill a chunk of that length.
fn padded(slots: &[u8], length: u64) -> Vec<u8> {
    let mut whole = slots.to_vec();
    whole.resize(length as usize - CHUNK_HEADER_BYTES, 0);
    whole
}

/// Adds what a window holds that was not mapped from the file; nothing where it is empty.
pub fn append_window(window: &[u8]) {
    let Some(header) = read_plain::<ChunkHeader>(window) else { return };
    let slots = &window[CHUNK_HEADER_BYTES..];
    let used = slots
        .chunks_exact(SLOT_BYTES)
        .take_while(|slot| read_plain::<Slot>(slot).is_some_and(|slot| slot.word != 0))
        .count();
    if header.magic == CHUNK_MAGIC {
        let _ = append(&header, &slots[..used * SLOT_BYTES], 0);
    }
}

/// Puts a chunk in the place of an older one of `length` bytes.
pub fn replace(offset: u64, length: u64, window: &ChunkHeader, slots: &[u8]) -> Result<(), String> {
    let mut guard = lock();
    let file = guard.as_mut().ok_or("no trace file")?;
    // No old slots may stand behind the new ones.
    file.write_chunk(offset, &kept_header(window, length), &padded(slots, length))
}

/// Reads back what lies at an offset of the file.
pub fn read_back(offset: u64, bytes: &mut [u8]) -> Result<(), String> {
    let mut guard = lock();
    let descriptor = guard.as_mut().ok_or("no trace file")?.descriptor()?;
    let (mut done, length) = (0, bytes.len());
    while done < length {
        let rest = &mut bytes[done..];
        let at = (offset + done as u64) as i64;
        // SAFETY: writes into the slice.
        match unsafe { libc::pread(descriptor, rest.as_mut_ptr().cast(), rest.len(), at) } {
            read @ 1.. => done += read as usize,
            // What was never written at the end of the file.
            0 => {
                rest.fill(0);
                break;
            }
            _ => {
                let error = std::io::Error::last_os_error();
                if error.kind() != std::io::ErrorKind::Interrupted {
                    return Err(format!("cannot read the trace back: {error}"));
                }
            }
        }
    }
    Ok(())
}

/// A chunk for a thread's totals; its offset.
pub fn totals_chunk((thread, thread_os_id): (u32, u32)) -> Result<u64, String> {
    let mut guard = lock();
    let file = guard.as_mut().ok_or("no trace file")?;
    let offset = file.end;
    file.grant(offset, TOTALS_CHUNK_BYTES)?;
    let length = TOTALS_CHUNK_BYTES as u64;
    let header = ChunkHeader { length, thread_os_id, ..empty_chunk(CHUNK_TOTALS, thread, 0) };
    file.write(offset, bytes_of(&sealed(header)))?;
    file.end += length;
    Ok(offset)
}

/// Writes bytes into a place that was given away before.
pub fn write_at(offset: u64, bytes: &[u8]) -> Result<(), String> {
    lock().as_mut().ok_or("no trace file")?.write(offset, bytes)
}

/// Adds a definition record; what cannot be written is lost with the space it had no room in.
pub fn define(definition: &Definition) -> Result<(), String> {
    lock().as_mut().ok_or("no trace file")?.define(definition)
}

/// Cuts off what nobody needs at the end of the file, and closes it.
///
/// The caller has unmapped what is cut, so that nothing can store there.
pub fn finish(cut: Option<Cut>) {
    let mut guard = lock();
    let Some(file) = guard.as_mut() else { return };
    if let Ok(descriptor) = file.descriptor() {
        if let Some(Cut { used_end, given_end }) = cut
            && given_end == file.end
        {
            let definitions = file.definitions.map_or(0, |(_, end)| end);
            let keep = used_end.max(definitions).next_multiple_of(CHUNK_GRANULE);
            // SAFETY: our descriptor; no mapping reaches behind the new end. A failure leaves zeros.
            unsafe { libc::ftruncate(descriptor, keep as i64) };
        }
        // SAFETY: ours; never used again.
        unsafe { libc::close(descriptor) };
    }
    file.descriptor = -1;
}

/// Bytes at the end of the file that nobody needs.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    /// Where they begin.
    pub used_end: u64,
    /// Where the file would end with them: nothing is cut when it ends elsewhere.
    pub given_end: u64,
}
