//! Writes rank files, for [`crate::reader`], from events that were recorded elsewhere.
//!
//! The recorder does not use this: it stores into mapped windows of its own. Here, slots are
//! collected in memory, one chunk per thread, and written when the chunk is full, so memory is
//! bounded by the number of threads. Files are not held open in between, because a run may have
//! more ranks than a process may have open files.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

mod call;
mod moved;
mod samples;

use crate::encoded::{Encoder, Words};
use crate::encoding::{checksum, encode, framed_bytes};
use crate::header::{Definition, FileHeader};
use crate::layout::*;
use crate::private_directory;

pub use call::{Amendment, Completes, NewCall};
pub use samples::sample_chunks;

/// Size of the event chunks in bytes.
const CHUNK_BYTES: usize = MAPPING_GRANULE as usize;
/// Number of slots in such a chunk.
const CHUNK_SLOTS: usize = (CHUNK_BYTES - CHUNK_HEADER_BYTES) / SLOT_BYTES;

/// Position of a written event: its thread, and its index among the thread's slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    thread: u32,
    chunk: usize,
    slot: usize,
}

#[derive(Debug, Default)]
struct ThreadChunks {
    /// File offsets of the chunks already written.
    written: Vec<u64>,
    slots: Vec<Slot>,
}

/// A rank file being written.
#[derive(Debug)]
pub struct RankFileWriter {
    path: PathBuf,
    /// Offset of the next chunk.
    end: u64,
    threads: BTreeMap<u32, ThreadChunks>,
    /// Number of areas of samples.
    areas: u32,
}

impl RankFileWriter {
    /// Makes the file of a rank below a run directory, with its header. Fills in the lengths and
    /// checksums of `fixed`.
    ///
    /// # Errors
    /// If the file cannot be made, or the header is longer than the header area.
    pub fn create(run: &Path, fixed: &FixedHeader, header: &FileHeader) -> io::Result<Self> {
        let path = run.join(rank_file_path(fixed.world, fixed.rank));
        private_directory::make_for(run, &path)?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all_at(&header_area(fixed, header)?, 0)?;
        Ok(Self { path, end: HEADER_BYTES, threads: BTreeMap::new(), areas: 0 })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(&self.path)
    }

    /// Appends a call of a thread. Begins must not decrease.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn call(&mut self, thread: u32, call: &NewCall) -> io::Result<Position> {
        self.event(thread, &call.slots())
    }

    /// Like [`RankFileWriter::call`], for time that a recorder spent on itself: begin and end.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn tool(&mut self, thread: u32, why: ToolReason, at: (u64, u64)) -> io::Result<()> {
        let (begin, end) = (at.0, Some(at.1));
        let call = NewCall { function: TOOL, begin, end, peer: why as i32, ..NewCall::default() };
        self.call(thread, &call).map(|_| ())
    }

    /// Like [`RankFileWriter::call`], for the begin or end of a region.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn region(&mut self, thread: u32, id: u32, begins: bool, at: u64) -> io::Result<()> {
        let function = if begins { REGION_BEGIN } else { REGION_END };
        let word = slot_word(0, function, 0);
        let slot = Slot { begin: at, word, peer: id as i32, ..Slot::default() };
        self.event(thread, &[slot]).map(|_| ())
    }

    /// Adds an event: its slot and continuations. An event longer than a usual chunk gets a chunk
    /// of its own.
    fn event(&mut self, thread: u32, slots: &[Slot]) -> io::Result<Position> {
        let chunks = self.threads.entry(thread).or_default();
        if chunks.slots.len() + slots.len() > CHUNK_SLOTS {
            self.write_chunk(thread)?;
        }
        let chunks = self.threads.entry(thread).or_default();
        let position = Position { thread, chunk: chunks.written.len(), slot: chunks.slots.len() };
        chunks.slots.extend_from_slice(slots);
        Ok(position)
    }

    /// Adds a fact learned about a call that was already written.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn amend(&mut self, at: Position, amendment: Amendment) -> io::Result<()> {
        let at = Position { slot: at.slot + amendment.slot(), ..at };
        let Some(chunks) = self.threads.get_mut(&at.thread) else { return Ok(()) };
        let Some(offset) = chunks.written.get(at.chunk) else {
            if let Some(slot) = chunks.slots.get_mut(at.slot) {
                amendment.put(slot);
            }
            return Ok(());
        };
        let offset = offset + (CHUNK_HEADER_BYTES + at.slot * SLOT_BYTES) as u64;
        let file = self.open()?;
        let mut bytes = [0u8; SLOT_BYTES];
        file.read_exact_at(&mut bytes, offset)?;
        if let Some(mut slot) = read_plain::<Slot>(&bytes) {
            amendment.put(&mut slot);
            file.write_all_at(bytes_of(&slot), offset)?;
        }
        Ok(())
    }

    fn write_chunk(&mut self, thread: u32) -> io::Result<()> {
        let Some(chunks) = self.threads.get_mut(&thread) else { return Ok(()) };
        let Some(first) = chunks.slots.first() else { return Ok(()) };
        let sequence = chunks.written.len() as u32;
        let kind = (CHUNK_EVENTS, thread, sequence, first.begin);
        let chunk = chunk(kind, bytes_of_all(&chunks.slots));
        chunks.written.push(self.end);
        chunks.slots.clear();
        self.append(&chunk)
    }

    fn append(&mut self, chunks: &[u8]) -> io::Result<()> {
        self.open()?.write_all_at(chunks, self.end)?;
        self.end += chunks.len() as u64;
        Ok(())
    }

    /// Writes the remaining events, and the definitions.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self, definitions: &[Definition]) -> io::Result<()> {
        let threads: Vec<u32> = self.threads.keys().copied().collect();
        for thread in threads {
            self.write_chunk(thread)?;
        }
        let file = self.open()?;
        file.write_all_at(&definition_chunk(definitions)?, self.end)?;
        file.sync_all()
    }
}

/// Makes a header area. Fills in the lengths and checksums of `fixed`.
///
/// # Errors
/// If the header is longer than the area.
pub fn header_area(fixed: &FixedHeader, header: &FileHeader) -> io::Result<Vec<u8>> {
    let payload = encode(header)
        .filter(|payload| payload.len() + FIXED_HEADER_BYTES <= HEADER_BYTES as usize)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the header is too long"))?;
    let mut fixed = *fixed;
    fixed.payload_bytes = payload.len() as u32;
    fixed.payload_crc = checksum(&payload);
    fixed.fixed_crc = checksum(&bytes_of(&fixed)[..FIXED_CRC_COVERS]);
    let mut area = bytes_of(&fixed).to_vec();
    area.extend(payload);
    area.resize(HEADER_BYTES as usize, 0);
    Ok(area)
}

/// Makes a chunk of definitions.
///
/// # Errors
/// If a definition is too long.
pub fn definition_chunk(definitions: &[Definition]) -> io::Result<Vec<u8>> {
    let mut records = Vec::new();
    for definition in definitions {
        let payload = encode(definition).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "a definition is too long")
        })?;
        let end = records.len() + framed_bytes(payload.len());
        records.extend((payload.len() as u32).to_le_bytes());
        records.extend(checksum(&payload).to_le_bytes());
        records.extend(payload);
        records.resize(end, 0);
    }
    Ok(chunk((CHUNK_DEFINITIONS, 0, 0, 0), &records))
}

/// Makes an event chunk from its slots, given thread, sequence and counter at its opening. Encodes
/// the slots if that pays.
pub fn chunk_of_slots(
    (thread, sequence, opened_ticks): (u32, u32, u64),
    slots: &[Slot],
) -> Vec<u8> {
    let words: Vec<Words> = slots.iter().filter_map(|slot| read_plain(bytes_of(slot))).collect();
    let mut encoded = vec![0; size_of_val(slots)];
    match Encoder::new().encode(opened_ticks, &words, &mut encoded) {
        Some(used) => chunk((CHUNK_ENCODED, thread, sequence, opened_ticks), &encoded[..used]),
        None => chunk((CHUNK_EVENTS, thread, sequence, opened_ticks), bytes_of_all(slots)),
    }
}

/// Makes a chunk of the given kind, thread, sequence and counter at its opening from slots, encoded
/// slots or records.
pub fn chunk(
    (kind, thread, sequence, opened_ticks): (u16, u32, u32, u64),
    content: &[u8],
) -> Vec<u8> {
    let has_body = [CHUNK_ENCODED, CHUNK_SAMPLES].contains(&kind);
    let length = (CHUNK_HEADER_BYTES + content.len()).next_multiple_of(CHUNK_GRANULE as usize);
    let mut header = ChunkHeader {
        magic: CHUNK_MAGIC,
        kind,
        flags: 0,
        thread,
        sequence,
        length: length as u64,
        opened_ticks,
        thread_os_id: if [CHUNK_ENCODED, CHUNK_EVENTS].contains(&kind) { 1 + thread } else { 0 },
        crc: 0,
        previous_minor_faults: 0,
        body_bytes: if has_body { content.len() as u32 } else { 0 },
        body_crc: if has_body { checksum(content) } else { 0 },
        clearing: 0,
    };
    let (from, to) = CHUNK_CRC_COVERS;
    header.crc = checksum(&bytes_of(&header)[from..to]);
    let mut chunk = bytes_of(&header).to_vec();
    chunk.extend(content);
    chunk.resize(length, 0);
    chunk
}
