//! The rank's file: windows mapped from it, chunks written to it, definitions.
//!
//! The recorder stores only into pages that `posix_fallocate` granted and that were populated: on a
//! full file system, touching a hole would kill the program by SIGBUS. Only windows are mapped;
//! everything else is written. The descriptor is checked before each use, because a program may
//! close descriptors that are not its own.

use std::ffi::{CString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use trace_format::encoding::{FRAME_BYTES, checksum, encode, framed_bytes};
use trace_format::header::{Definition, FileHeader};
use trace_format::layout::*;
use trace_format::totals::TOTALS_CHUNK_BYTES;

use crate::host::descriptors::{identity_of, move_up};
use crate::host::lock::{Lock, Locked};
use crate::store::chunk_headers::{archived_header, chunk_bytes, empty_chunk, frame_of, sealed};
use crate::store::directories::CreateError;
use crate::store::file_space::{
    allocate, may_grow_to, populate, refuse_copy_on_write, synchronise, write_all, write_zeros,
};

/// Size of a definition chunk, unless one record needs more.
const DEFINITION_CHUNK_BYTES: u64 = 16 << 10;

/// The file, for the modules of this layer that hand its space out.
pub struct TraceFile {
    descriptor: c_int,
    identity: (libc::dev_t, libc::ino_t),
    path: PathBuf,
    /// End of the space handed out so far.
    pub(super) end: u64,
    /// Size limit for events. Windows and definitions may exceed it.
    pub(super) max_bytes: u64,
    /// Whether no more events may be added.
    pub(super) full: bool,
    /// The chunk to which permanent definitions are added.
    definitions: Option<DefinitionChunk>,
    /// Offset and length of all definition chunks.
    definition_chunks: Vec<(u64, u64)>,
    /// Offsets of the two records that are replaced in turn, the older one first. None once the
    /// file is being completed.
    replaced: Option<[Option<u64>; 2]>,
}

/// A chunk of definitions.
#[derive(Debug, Clone, Copy)]
pub struct DefinitionChunk {
    offset: u64,
    /// Offset of the next record.
    next: u64,
    end: u64,
}

impl DefinitionChunk {
    /// Size of the chunk in bytes.
    pub fn bytes(&self) -> u64 {
        self.end - self.offset
    }
}

static FILE: Lock<Option<TraceFile>> = Lock::new(None);

pub(super) fn lock() -> Locked<'static, Option<TraceFile>> {
    FILE.lock()
}

/// Memory for a thread's events.
#[derive(Debug)]
pub struct Memory {
    /// Start of the mapping, which is zeroed.
    pub mapping: *mut u8,
    /// Bytes of the mapping.
    pub bytes: usize,
    /// Its offset in the file; `None` if the memory is not the file's.
    pub offset: Option<u64>,
}

// SAFETY: plain memory; only the holder of the value uses it.
unsafe impl Send for Memory {}

fn system_error() -> String {
    std::io::Error::last_os_error().to_string()
}

/// Makes the rank's file, mode 0600; it must not exist.
pub fn create(path: &Path) -> Result<(), CreateError> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| CreateError::Failed("the path contains a zero byte".into()))?;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: the path is a C string, the flags are plain numbers.
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
        full: false,
        definitions: None,
        definition_chunks: Vec::new(),
        replaced: Some([None; 2]),
    });
    Ok(())
}

/// Allows the file to grow again after [`finish`].
pub fn resume() {
    if let Some(file) = lock().as_mut() {
        file.replaced = Some([None; 2]);
    }
}

/// Limits the size of the file for events; 0: no limit.
pub fn limit(max_bytes: u64) {
    if let Some(file) = lock().as_mut() {
        file.max_bytes = if max_bytes == 0 { u64::MAX } else { max_bytes };
    }
}

impl TraceFile {
    /// The descriptor, reopened if the program closed or replaced it.
    fn descriptor(&mut self) -> Result<c_int, String> {
        if identity_of(self.descriptor) == Some(self.identity) {
            return Ok(self.descriptor);
        }
        let name = CString::new(self.path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: the path is a C string, the flags are plain numbers.
        let descriptor = unsafe { libc::open(name.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        if descriptor < 0 || identity_of(descriptor) != Some(self.identity) {
            return Err(format!("the trace file {} no longer exists", self.path.display()));
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
    pub(super) fn grant(&mut self, offset: u64, bytes: usize) -> Result<c_int, String> {
        let descriptor = self.descriptor_up_to(offset + bytes as u64)?;
        match allocate(descriptor, offset, bytes) {
            // EINTR: every attempt was interrupted by a signal. Writing the zeros grants the space,
            // too.
            0 | libc::EINTR => write_zeros(descriptor, offset, bytes),
            error => Err(std::io::Error::from_raw_os_error(error)),
        }
        .map(|()| descriptor)
        .map_err(|error| self.cannot_grow(&error))
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), String> {
        let descriptor = self.descriptor_up_to(offset + bytes.len() as u64)?;
        write_all(descriptor, offset, bytes).map_err(|error| self.cannot_grow(&error))
    }

    /// Writes a chunk, its header last. Until then another header marks the chunk as unfinished.
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

    /// Memory of the file. `None` if its file system does not support shared mappings.
    fn window(&mut self, bytes: usize) -> Result<Option<Memory>, String> {
        let offset = self.end.next_multiple_of(MAPPING_GRANULE);
        // The gap before it is granted, too: on some file systems (tmpfs), reading a hole takes
        // space.
        let gap = (offset - self.end) as usize;
        let descriptor = self.grant(self.end, gap + bytes)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: creates a new mapping of our own file.
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
        self.add(&encode(definition).ok_or("a definition is too long")?)
    }

    /// Whether the present chunk has room for a definition.
    fn has_room(&self, payload: &[u8]) -> bool {
        let framed = framed_bytes(payload.len()) as u64;
        self.definitions.is_some_and(|chunk| chunk.next + framed <= chunk.end)
    }

    fn add(&mut self, payload: &[u8]) -> Result<(), String> {
        let mut chunk = match self.definitions {
            Some(chunk) if self.has_room(payload) => chunk,
            _ => self.open_definitions(framed_bytes(payload.len()) as u64)?,
        };
        let added = self.add_definition(&mut chunk, payload);
        self.definitions = Some(chunk);
        added
    }

    /// Adds a definition twice, then replaces the older of the two, so that the file does not grow
    /// and one of them is always whole. All have the same length.
    fn replace_definition(&mut self, definition: &Definition) -> Result<(), String> {
        let Some([older, newer]) = self.replaced else { return Ok(()) };
        let at = match older {
            Some(at) => {
                let payload = encode(definition).ok_or("a definition is too long")?;
                // In one piece: a process that is killed leaves all of it or nothing.
                let framed = [&frame_of(&payload)[..], &payload].concat();
                self.write(at, &framed)?;
                at
            }
            None => {
                self.define(definition)?;
                let framed = encode(definition).map_or(0, |payload| framed_bytes(payload.len()));
                self.definitions.map_or(0, |chunk| chunk.next - framed as u64)
            }
        };
        self.replaced = Some([newer, Some(at)]);
        Ok(())
    }

    /// Makes an empty chunk for definitions of this many framed bytes, or of the usual length.
    fn open_definitions(&mut self, framed: u64) -> Result<DefinitionChunk, String> {
        let needed = CHUNK_HEADER_BYTES as u64 + framed;
        let length = needed.next_multiple_of(CHUNK_GRANULE).max(DEFINITION_CHUNK_BYTES);
        let offset = self.end;
        self.grant(offset, length as usize)?;
        let header = self.definition_header(offset, length);
        self.write(offset, bytes_of(&header))?;
        self.end += length;
        self.definition_chunks.push((offset, length));
        Ok(DefinitionChunk {
            offset,
            next: offset + CHUNK_HEADER_BYTES as u64,
            end: offset + length,
        })
    }

    fn definition_header(&self, offset: u64, length: u64) -> ChunkHeader {
        let number = self.definition_chunks.iter().position(|(at, _)| *at == offset);
        let number = number.unwrap_or(self.definition_chunks.len()) as u32;
        sealed(ChunkHeader { length, ..empty_chunk(CHUNK_DEFINITIONS, 0, number) })
    }

    /// Adds a record to a chunk that has room for it.
    fn add_definition(
        &mut self,
        chunk: &mut DefinitionChunk,
        payload: &[u8],
    ) -> Result<(), String> {
        let behind_frame = chunk.next + FRAME_BYTES as u64;
        let descriptor = self.descriptor_up_to(behind_frame + payload.len() as u64)?;
        // The frame is written last. Without it the record does not exist.
        write_all(descriptor, behind_frame, payload)
            .and_then(|()| write_all(descriptor, chunk.next, &frame_of(payload)))
            .map_err(|error| self.cannot_grow(&error))?;
        chunk.next += framed_bytes(payload.len()) as u64;
        Ok(())
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), String> {
        let descriptor = self.descriptor()?;
        let (mut done, length) = (0, bytes.len());
        while done < length {
            let rest = &mut bytes[done..];
            let at = (offset + done as u64) as i64;
            // SAFETY: writes into the slice.
            match unsafe { libc::pread(descriptor, rest.as_mut_ptr().cast(), rest.len(), at) } {
                read @ 1.. => done += read as usize,
                // The end of the file, which was never written.
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

    /// Moves the definition chunks that follow the contents of a chunk, where nothing else is
    /// needed, directly behind these. Returns where the last of them ends then. At any moment, each
    /// exists at its old position, its new one, or both.
    fn gather_definitions(&mut self, chunk: u64, used_end: u64) -> Result<u64, String> {
        let mut end = used_end.next_multiple_of(CHUNK_GRANULE);
        self.end_chunk_at(chunk, end)?;
        self.definition_chunks.sort_unstable();
        for index in 0..self.definition_chunks.len() {
            let (offset, length) = self.definition_chunks[index];
            if offset < end {
                continue;
            }
            let mut chunk = vec![0; length as usize];
            self.read(offset, &mut chunk)?;
            let header: ChunkHeader = read_plain(&chunk).ok_or("a chunk is too short")?;
            if header.kind != CHUNK_DEFINITIONS {
                continue;
            }
            let used = chunk.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
            // Leave room for the file's last record and an empty frame behind it.
            let shorter = (used + 64).next_multiple_of(CHUNK_GRANULE).min(length);
            if end + shorter > offset {
                end = offset + length;
                continue;
            }
            let content = &chunk[CHUNK_HEADER_BYTES..shorter as usize];
            self.write_chunk(end, &sealed(ChunkHeader { length: shorter, ..header }), content)?;
            self.retire(offset, length)?;
            if let Some(current) = self.definitions.filter(|current| current.offset == offset) {
                let next = end + (current.next - offset);
                self.definitions = Some(DefinitionChunk { offset: end, next, end: end + shorter });
            }
            self.definition_chunks[index] = (end, shorter);
            end += shorter;
        }
        // If recording resumes, the file grows from there.
        self.end = end;
        Ok(end)
    }

    /// A reader continues where a chunk's header says that the chunk ends.
    fn end_chunk_at(&mut self, chunk: u64, end: u64) -> Result<(), String> {
        let mut header = [0; CHUNK_HEADER_BYTES];
        self.read(chunk, &mut header)?;
        let header: ChunkHeader = read_plain(&header).ok_or("a chunk is too short")?;
        let shorter = sealed(ChunkHeader { length: end - chunk, ..header });
        self.write(chunk, bytes_of(&shorter))
    }

    /// Invalidates the contents of a definition chunk.
    fn retire(&mut self, offset: u64, length: u64) -> Result<(), String> {
        let header = self.definition_header(offset, length);
        self.write(offset, bytes_of(&sealed(ChunkHeader { kind: CHUNK_UNFINISHED, ..header })))
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

/// Memory for a thread's events: the file's or, if its file system does not support shared
/// mappings, the process's own.
pub fn window(bytes: usize) -> Result<Memory, String> {
    if let Some(memory) = lock().as_mut().ok_or("no trace file")?.window(bytes)? {
        return Ok(memory);
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: creates a new mapping.
    let mapping = unsafe { libc::mmap(null_mut(), bytes, protection, flags, -1, 0) };
    if mapping == libc::MAP_FAILED {
        return Err(format!("no memory for the trace: {}", system_error()));
    }
    Ok(Memory { mapping: mapping.cast(), bytes, offset: None })
}

/// Adds a chunk with a window's events. Returns its offset, or `None` if the file may not grow.
pub fn append(window: &ChunkHeader, body: &[u8]) -> Result<Option<u64>, String> {
    append_to(lock().as_mut(), window, body)
}

/// Adds a half of an area of samples. Returns whether it is in the file; `None` if another thread
/// is using the file and this one may not wait.
pub fn append_samples(area: u32, sequence: u32, body: &[u8], may_wait: bool) -> Option<bool> {
    let mut guard = if may_wait { lock() } else { FILE.try_lock()? };
    let (body_bytes, body_crc) = (body.len() as u32, checksum(body));
    let header = ChunkHeader { body_bytes, body_crc, ..empty_chunk(CHUNK_SAMPLES, area, sequence) };
    Some(matches!(append_to(guard.as_mut(), &header, body), Ok(Some(_))))
}

fn append_to(
    file: Option<&mut TraceFile>,
    window: &ChunkHeader,
    body: &[u8],
) -> Result<Option<u64>, String> {
    let file = file.ok_or("no trace file")?;
    let (offset, length) = (file.end, chunk_bytes(body));
    if offset + length > file.max_bytes {
        file.full = true;
        return Ok(None);
    }
    file.write_chunk(offset, &archived_header(window, length), body)?;
    file.end += length;
    Ok(Some(offset))
}

/// The size limit for events.
pub fn max_bytes() -> u64 {
    lock().as_ref().map_or(0, |file| file.max_bytes)
}

/// Adds the contents of a window that was not mapped from the file, unless it is empty.
pub fn append_window(window: &[u8]) {
    let Some(header) = read_plain::<ChunkHeader>(window) else { return };
    let slots = &window[CHUNK_HEADER_BYTES..];
    let used = slots
        .chunks_exact(SLOT_BYTES)
        .take_while(|slot| read_plain::<Slot>(slot).is_some_and(|slot| slot.word != 0))
        .count();
    if header.magic == CHUNK_MAGIC {
        let _ = append(&header, &slots[..used * SLOT_BYTES]);
    }
}

/// Reads back bytes at an offset of the file.
pub fn read_back(offset: u64, bytes: &mut [u8]) -> Result<(), String> {
    lock().as_mut().ok_or("no trace file")?.read(offset, bytes)
}

/// Makes a chunk for a thread's totals. Returns its offset.
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

/// Writes the header of a totals chunk into space handed out before.
pub fn write_totals_header(
    (thread, thread_os_id): (u32, u32),
    offset: u64,
    length: u64,
) -> Result<(), String> {
    let header = ChunkHeader { length, thread_os_id, ..empty_chunk(CHUNK_TOTALS, thread, 0) };
    lock().as_mut().ok_or("no trace file")?.write(offset, bytes_of(&sealed(header)))
}

/// Has a chunk end where another one begins in its unused space.
pub fn end_chunk_at(chunk: u64, end: u64) -> Result<(), String> {
    lock().as_mut().ok_or("no trace file")?.end_chunk_at(chunk, end)
}

/// Marks a chunk as no longer valid.
pub fn retire_chunk(offset: u64) -> Result<(), String> {
    let mut guard = lock();
    let file = guard.as_mut().ok_or("no trace file")?;
    let mut header = [0; CHUNK_HEADER_BYTES];
    file.read(offset, &mut header)?;
    let header: ChunkHeader = read_plain(&header).ok_or("a chunk is too short")?;
    file.write(offset, bytes_of(&sealed(ChunkHeader { kind: CHUNK_UNFINISHED, ..header })))
}

/// Writes bytes into space handed out before.
pub fn write_at(offset: u64, bytes: &[u8]) -> Result<(), String> {
    lock().as_mut().ok_or("no trace file")?.write(offset, bytes)
}

/// Adds a definition record. If there is no space for it, it is lost.
pub fn define(definition: &Definition) -> Result<(), String> {
    lock().as_mut().ok_or("no trace file")?.define(definition)
}

/// Adds a definition that was encoded. Returns whether it is in the file. Unless it may wait, it neither
/// waits nor allocates: not if another thread uses the file, or there is no room in the present chunk.
pub fn define_encoded(payload: &[u8], may_wait: bool) -> bool {
    let guard = if may_wait { Some(lock()) } else { FILE.try_lock() };
    let Some(mut guard) = guard else { return false };
    let Some(file) = guard.as_mut() else { return false };
    (may_wait || file.has_room(payload)) && file.add(payload).is_ok()
}

/// Adds a definition of which only the last two are kept. If there is no space for it, it is lost.
pub fn replace_definition(definition: &Definition) -> Result<(), String> {
    lock().as_mut().ok_or("no trace file")?.replace_definition(definition)
}

/// Whether no more events may be added to the file.
pub fn is_full() -> bool {
    lock().as_ref().is_none_or(|file| file.full)
}

/// Makes an empty chunk for definitions that may be removed again, with room for this many bytes of
/// framed records.
pub fn open_definitions(framed: u64) -> Result<DefinitionChunk, String> {
    lock().as_mut().ok_or("no trace file")?.open_definitions(framed)
}

/// Adds a record to a chunk of [`open_definitions`]. Returns whether there was room for it.
pub fn add_definition(chunk: &mut DefinitionChunk, payload: &[u8]) -> Result<bool, String> {
    if chunk.next + framed_bytes(payload.len()) as u64 > chunk.end {
        return Ok(false);
    }
    lock().as_mut().ok_or("no trace file")?.add_definition(chunk, payload).map(|()| true)
}

/// Fills a chunk, whose contents are invalid, with records that fit in it.
pub fn fill_definitions<'a>(
    chunk: &mut DefinitionChunk,
    payloads: impl Iterator<Item = &'a [u8]>,
) -> Result<(), String> {
    let mut content = Vec::with_capacity(chunk.bytes() as usize);
    for payload in payloads {
        content.extend(frame_of(payload));
        content.extend(payload);
        content.resize(content.len().next_multiple_of(FRAME_BYTES), 0);
    }
    chunk.next = chunk.offset + (CHUNK_HEADER_BYTES + content.len()) as u64;
    content.resize(chunk.bytes() as usize - CHUNK_HEADER_BYTES, 0);
    let mut guard = lock();
    let file = guard.as_mut().ok_or("no trace file")?;
    let header = file.definition_header(chunk.offset, chunk.bytes());
    file.write_chunk(chunk.offset, &header, &content)
}

/// Invalidates the contents of a chunk.
pub fn retire_definitions(chunk: &DefinitionChunk) -> Result<(), String> {
    lock().as_mut().ok_or("no trace file")?.retire(chunk.offset, chunk.bytes())
}

/// Flushes the file to its storage, cuts off unneeded space at its end, and closes it.
///
/// The caller has unmapped the space that is cut, so nothing can be stored there.
///
/// # Errors
/// A sentence about data that the file system accepted before and refused now. Part of the trace
/// may be lost.
pub fn finish(cut: Option<Cut>, ticks: u64, lost_events: u64) -> Result<(), String> {
    let mut guard = lock();
    let Some(file) = guard.as_mut() else { return Ok(()) };
    // Definitions may move.
    file.replaced = None;
    let mut outcome = Ok(());
    if let Ok(descriptor) = file.descriptor() {
        let reason =
            format!("the file system of {} lost data that it had accepted", file.path.display());
        let refused = |error: std::io::Error| format!("{reason}: {error}");
        outcome = synchronise(descriptor).map_err(refused);
        if let Err(reason) = &outcome {
            // The file system may still accept other pages.
            let _ = file.define(&Definition::Stopped { ticks, reason: reason.clone() });
        }
        // The last record needs room before the end is known.
        let last = Definition::Finalized { lost_events };
        let framed = encode(&last).map_or(0, |payload| framed_bytes(payload.len()) as u64);
        if file.definitions.is_none_or(|chunk| chunk.next + framed > chunk.end) {
            file.definitions = file.open_definitions(framed).ok();
        }
        let definitions = file.definition_chunks.iter().map(|(at, length)| at + length).max();
        let keep = match cut {
            Some(Cut::Behind { chunk, used_end }) => file.gather_definitions(chunk, used_end).ok(),
            Some(Cut::Tail { used_end, given_end }) if given_end == file.end => {
                Some(used_end.max(definitions.unwrap_or(0)).next_multiple_of(CHUNK_GRANULE))
            }
            _ => None,
        };
        if let Some(keep) = keep {
            // SAFETY: the descriptor is ours, and nothing stores behind the new end. A failure leaves zeros.
            unsafe { libc::ftruncate(descriptor, keep as i64) };
        }
        // Written last: a finished file is never shortened.
        let _ = file.define(&last);
        // Most data have been flushed already; little has been written since.
        outcome = outcome.and_then(|()| synchronise(descriptor).map_err(refused));
        // SAFETY: the descriptor is ours and never used again.
        if unsafe { libc::close(descriptor) } != 0 {
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                outcome = outcome.and(Err(refused(error)));
            }
        }
    }
    file.descriptor = -1;
    outcome
}

/// Space at the end of the file that is not needed.
#[derive(Debug, Clone, Copy)]
pub enum Cut {
    /// The tail of the last chunk.
    Tail {
        /// Where it begins.
        used_end: u64,
        /// Where the file would end with it. Nothing is cut if it ends elsewhere.
        given_end: u64,
    },
    /// Everything behind a chunk except definitions.
    Behind {
        /// Where the chunk begins.
        chunk: u64,
        /// Where its contents end.
        used_end: u64,
    },
}
