//! A rank file, mapped and checked.
//!
//! Opening a path yields a [`RankFile`]: header, definitions, one chain of event chunks per thread,
//! and the problems found. Nothing in the file is trusted: every offset, length and id is checked
//! before use, damage ends the stream that contains it, and each such end is reported as a
//! [`Diagnosis`].
//!
//! The file is mapped privately. A writer that is still running may add to it (which is safe,
//! because slots are published last word first), reuse its windows, and cut off the end of the file
//! when it finishes. So the windows of an unfinished file are copied into the reader's memory, and
//! the copy is valid if their header has not changed meanwhile. Everything else stays in the file;
//! if something cuts it off, [`RankFile::unreadable`] reports that ([`crate::file_map`]).

mod area;
mod chunks;
mod contents;
mod event;
mod events;
pub mod file_map;
mod function_table;
mod head;
pub mod held;
mod held_windows;
mod live;
mod live_copy;
mod names;
mod outline;
pub mod regular_file;
mod samples;
mod stacks;
mod stored;
mod totals;

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::Advice;
use serde::{Deserialize, Serialize};

use crate::encoded;
use crate::encoding::{FRAME_BYTES, MAX_PAYLOAD_BYTES, checksum, decode, framed_bytes};
use crate::file_map::FileMap;
use crate::header::{Definition, FileHeader, is_finalized};
use crate::layout::*;
use crate::meaning::Meaning;
pub use crate::slot::{Half, RequestState};
use crate::totals::SELECTOR_AT;
use area::{Area, Form, Unpacked};
use chunks::{EventChunk, Found};
use contents::Contents;
use held_windows::HeldWindows;
use samples::SampleChunk;

/// Number of attempts to open a file whose process fills windows meanwhile.
const OPEN_TRIES: usize = 4;
/// Number of attempts to read a window or totals that change meanwhile.
const HOLD_TRIES: usize = 16;
/// Maximum number of unpacked pieces of slots cached for access by offset.
const MAX_CACHED: usize = 64;
/// A longer window stays in the file: no recorder makes one, and there may not be enough memory for
/// it.
const MAX_HELD_BYTES: usize = 64 << 20;

pub use event::{BriefEvent, Event, EventKind, EventObserver, Position};
pub use events::Events;
pub use function_table::FunctionTable;
pub use head::Head;
pub use live::{LiveWindow, LiveWindows};
pub use live_copy::Cut;
pub use names::{MAX_NAME_BYTES, limited};
pub use outline::Outlines;
pub use samples::{Sample, SampledThread};
pub use stacks::{Answers, AskedStack};
pub use stored::{EventLocation, StoredEvent, StoredEventObserver};
pub use totals::Totals;

/// A problem in a file and its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Byte offset in the file.
    pub offset: u64,
    /// The problem, as a sentence without the file's name.
    pub what: String,
}

impl std::fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.what)
    }
}

/// Why a file could not be opened as a rank file at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not a rank file, or its header is damaged.
    #[error("{path}: {what}")]
    Header {
        /// The file.
        path: PathBuf,
        /// The problem, and what to do.
        what: String,
    },
}

const SHORTER_THAN_HEADER: &str = "shorter than a rank file's header; it was cut off, or the process \
                                   died while starting to record";

const UNREADABLE: &str = "from here on the file cannot be read any more: something shortened it meanwhile, or \
                          its file system failed";

/// The event chunks of one thread, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Number in the file; 0 is the first thread that called MPI.
    pub number: u32,
    /// Operating system's id.
    pub os_id: u32,
    /// Number of minor page faults between the first and the last change of windows, an upper bound
    /// for those caused by the mapping.
    pub minor_faults: u64,
    /// Totals of the events that are not kept one by one.
    pub totals: Option<Totals>,
    /// Number of chunks that precede the events in the totals.
    totals_at: usize,
    /// Sequence expected of the next chunk.
    next_sequence: u32,
    /// The slots of each chunk.
    chunks: Vec<Area>,
}

impl Thread {
    fn new(chunk: &ChunkHeader) -> Self {
        Self {
            number: chunk.thread,
            os_id: chunk.thread_os_id,
            minor_faults: 0,
            totals: None,
            totals_at: 0,
            next_sequence: 0,
            chunks: Vec::new(),
        }
    }

    fn first_behind_totals(&self) -> usize {
        if self.totals.is_some() { self.totals_at } else { self.chunks.len() }
    }
}

/// One rank's file.
#[derive(Debug)]
pub struct RankFile {
    /// Location of the file.
    pub path: PathBuf,
    /// Fixed part of the header.
    pub fixed: FixedHeader,
    /// Counter of the event times.
    pub counter: CounterKind,
    /// Encoded part of the header; its names of functions are in [`RankFile::function_table`].
    pub header: FileHeader,
    /// All definition records in order.
    pub definitions: Vec<Definition>,
    /// Threads in order of their number.
    pub threads: Vec<Thread>,
    /// Chunks of samples of the program's own code.
    samples: Vec<SampleChunk>,
    /// The last stacks that were asked for, in order of time.
    pub stacks: Vec<AskedStack>,
    /// Problems in header, chunks and definitions. Damage inside event slots is found when they are
    /// read: [`Events::damage`].
    pub diagnoses: Vec<Diagnosis>,
    /// Whether the process filled windows while the file was read.
    outrun: bool,
    functions: Arc<FunctionTable>,
    /// Cache of slots accessed by offset, the latest last.
    cached: Mutex<VecDeque<Unpacked>>,
    contents: Contents,
}

impl RankFile {
    /// Opens and checks a rank file.
    ///
    /// # Errors
    /// If the file cannot be read, or its header is not that of a rank file of this version. Damage
    /// behind the header is not an error but listed in [`RankFile::diagnoses`].
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let mut held = HeldWindows::default();
        let mut file = Self::open_once(path, &mut held)?;
        // A process that is still running may have filled windows before they were copied. By then the file has grown
        // by what lies between.
        for _ in 0..OPEN_TRIES {
            // Unreadable parts were cut off since the file was mapped, usually because it was
            // finished.
            if !file.outrun && file.contents.unreadable_from().is_none() {
                break;
            }
            held.settle();
            file = Self::open_once(path, &mut held)?;
        }
        if let Some(unreadable) = file.unreadable() {
            file.diagnoses.push(unreadable);
        }
        Ok(file)
    }

    fn open_once(path: &Path, held: &mut HeldWindows) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        let bad = |what: String| OpenError::Header { path: path.to_owned(), what };
        let file = regular_file::open(path).map_err(io)?;
        if file.metadata().map_err(io)?.len() < HEADER_BYTES {
            return Err(bad(SHORTER_THAN_HEADER.into()));
        }
        let map = FileMap::of_file(&file).map_err(io)?;
        // Visits only the headers of the chunks; the data between are not needed yet.
        map.advise(Advice::Random);
        let read = Self::read(path, map, Some((&file, held)))?;
        read.contents.advise(Advice::Normal);
        Ok(read)
    }

    /// Gives up the mapping, if all events are encoded: then they are read chunk by chunk. For runs
    /// of more files than a process may map (vm.max_map_count, 65,530 by default).
    pub fn unmap(&mut self) {
        let encoded = |area: &Area| matches!(area.form, Form::Encoded { .. });
        let mut areas = self.threads.iter().flat_map(|thread| &thread.chunks);
        if self.is_outlined() && areas.all(encoded) {
            self.contents.unmap();
        }
    }

    /// Has the system fetch a range of the file that will be read soon.
    fn fetch(&self, from: usize, to: usize) {
        self.contents.fetch(from..to);
    }

    /// Like [`RankFile::open`], for the bytes of a file from elsewhere (an archive, or a test);
    /// `path` only names it.
    ///
    /// # Errors
    /// As for [`RankFile::open`].
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        let mut map = FileMap::of_memory(bytes.len()).map_err(io)?;
        map[..bytes.len()].copy_from_slice(bytes);
        Self::read(path, map, None)
    }

    /// `source` is the mapped file, if there is one, and the copies of its windows.
    fn read(
        path: &Path,
        map: FileMap,
        source: Option<(&File, &mut HeldWindows)>,
    ) -> Result<Self, OpenError> {
        let bad = |what: String| OpenError::Header { path: path.to_owned(), what };
        if (map.len() as u64) < HEADER_BYTES {
            return Err(bad(SHORTER_THAN_HEADER.into()));
        }
        let fixed: FixedHeader = read_plain(&map).ok_or_else(|| bad("too short".into()))?;
        let mut header = check_header(&map, &fixed).map_err(bad)?;
        let counter = CounterKind::from_number(fixed.counter)
            .ok_or_else(|| bad(format!("unknown counter kind {}", fixed.counter)))?;
        let functions = FunctionTable::shared(std::mem::take(&mut header.function_names));
        let mut rank_file = Self {
            path: path.to_owned(),
            fixed,
            counter,
            header,
            definitions: Vec::new(),
            threads: Vec::new(),
            samples: Vec::new(),
            stacks: Vec::new(),
            diagnoses: Vec::new(),
            outrun: false,
            functions,
            cached: Mutex::default(),
            contents: Contents::mapped(path, fixed, map),
        };
        rank_file.walk_chunks(source);
        Ok(rank_file)
    }

    /// Name of a function; `None` for markers and unknown numbers.
    pub fn function_name(&self, function: u16) -> Option<&str> {
        let index = function.checked_sub(FIRST_FUNCTION)?;
        self.functions.names.get(usize::from(index)).map(String::as_str)
    }

    /// The functions by number. Open files with the same names share one table.
    pub fn function_table(&self) -> &Arc<FunctionTable> {
        &self.functions
    }

    /// Number of a function. `None` if the file does not name it.
    pub fn function_number(&self, name: &str) -> Option<u16> {
        let index = self.functions.names.iter().position(|other| other == name)?;
        Some(FIRST_FUNCTION + u16::try_from(index).ok()?)
    }

    /// Names of all functions in the order of their numbers, from [`FIRST_FUNCTION`].
    pub fn function_names(&self) -> &[String] {
        &self.functions.names
    }

    /// Meaning of a function; `None` for markers and unknown numbers.
    #[inline]
    pub fn meaning(&self, function: u16) -> Option<&'static Meaning> {
        let index = usize::from(function).wrapping_sub(usize::from(FIRST_FUNCTION));
        self.functions.meanings.get(index).copied()
    }

    /// Meanings of all functions in the order of their numbers, from [`FIRST_FUNCTION`].
    pub fn meanings(&self) -> &[&'static Meaning] {
        &self.functions.meanings
    }

    /// What a function's slot holds besides the peer.
    #[inline]
    fn detail(&self, function: u16) -> Detail {
        self.meaning(function).map_or(Detail::Nothing, |meaning| meaning.fields.detail())
    }

    /// Size of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.contents.len() as u64
    }

    /// Upper bound for the number of events.
    pub fn most_events(&self) -> u64 {
        let areas = self.threads.iter().flat_map(|thread| &thread.chunks);
        areas.map(|area| (area.bytes / SLOT_BYTES) as u64).sum()
    }

    /// Where the file could not be read: something shortened it meanwhile, or the file system
    /// failed. Data read from there on may be wrong. Must be checked after everything has been
    /// read.
    pub fn unreadable(&self) -> Option<Diagnosis> {
        self.contents
            .unreadable_from()
            .map(|offset| Diagnosis { offset: offset as u64, what: UNREADABLE.to_owned() })
    }

    /// The kept events of a thread, in order of their begin.
    pub fn events<'a>(&'a self, thread: &'a Thread) -> Events<'a> {
        Events::in_chunks(self, thread, 0..thread.chunks.len())
    }

    /// The kept events of a thread before those in its [`Thread::totals`]; all of them if there are
    /// no totals.
    pub fn events_before_totals<'a>(&'a self, thread: &'a Thread) -> Events<'a> {
        Events::in_chunks(self, thread, 0..thread.first_behind_totals())
    }

    /// The kept events of a thread behind those in its [`Thread::totals`].
    pub fn events_behind_totals<'a>(&'a self, thread: &'a Thread) -> Events<'a> {
        Events::in_chunks(self, thread, thread.first_behind_totals()..thread.chunks.len())
    }

    /// The kept events of a thread from a position given by [`Events::position_of`]. If this is
    /// before the thread's [`Thread::totals`], they end there; the second value says so.
    pub fn events_from<'a>(&'a self, thread: &'a Thread, position: Position) -> (Events<'a>, bool) {
        let behind = thread.first_behind_totals();
        let before_totals = thread.totals.is_some() && (position.chunk as usize) < behind;
        let end = if before_totals { behind } else { thread.chunks.len() };
        (Events::from(self, thread, position, end), before_totals)
    }

    /// Requests of a call on several (such as MPI_Waitall), in the order of its array.
    pub fn requests<'a>(&'a self, event: &Event) -> impl Iterator<Item = RequestState> + use<'a> {
        Continuation::requests_of(self.continuations(event))
    }

    /// Message handle of a non-blocking matched receive, shortened to 32 bits.
    pub fn message(&self, event: &Event) -> Option<u32> {
        Continuation::message_of(self.continuations(event))
    }

    /// The OpenMP parallel region that ended, and what its threads waited for, of an event of the recorder with
    /// [`ToolReason::Team`].
    pub fn team(&self, event: &Event) -> Option<(Team, TeamWaits)> {
        Continuation::team_of(self.continuations(event))
    }

    /// The calls on a file of an event of the recorder with [`ToolReason::FileCalls`].
    pub fn file_calls(&self, event: &Event) -> Option<FileCalls> {
        Continuation::file_calls_of(self.continuations(event))
    }

    fn continuations<'a>(&'a self, event: &Event) -> impl Iterator<Item = Slot> + use<'a> {
        let unpacked = match event.continuations {
            0 => None,
            _ => self.cached_unpacked(event.offset),
        };
        self.slots_in(unpacked, event, 1)
    }

    /// An event's own slot and its continuations.
    pub fn slots<'a>(&'a self, event: &Event) -> impl Iterator<Item = Slot> + use<'a> {
        self.slots_in(self.cached_unpacked(event.offset), event, 0)
    }

    fn slots_in<'a>(
        &'a self,
        unpacked: Option<Unpacked>,
        event: &Event,
        first: usize,
    ) -> impl Iterator<Item = Slot> + use<'a> {
        let offset = event.offset;
        (first..=event.continuations).filter_map(move |index| {
            let at = offset + index * SLOT_BYTES;
            match &unpacked {
                Some(unpacked) => read_plain(unpacked.get(at, at + SLOT_BYTES)?),
                None => read_plain(self.contents.get(at..self.contents.len())?),
            }
        })
    }

    /// Like [`RankFile::unpacked`], for the area that contains an offset. Caches the result.
    fn cached_unpacked(&self, offset: usize) -> Option<Unpacked> {
        if offset < self.contents.len() {
            return None;
        }
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(unpacked) = cached.iter().find(|cached| cached.has(offset)) {
            return Some(unpacked.clone());
        }
        drop(cached);
        let mut areas = self.threads.iter().flat_map(|thread| &thread.chunks);
        let area = areas.find(|area| (area.first..area.end()).contains(&offset))?;
        let unpacked = self.unpacked(area, None).ok()??;
        cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.len() >= self.threads.len().clamp(1, MAX_CACHED) {
            cached.pop_front();
        }
        cached.push_back(unpacked.clone());
        Some(unpacked)
    }

    fn diagnose(&mut self, offset: usize, what: impl Into<String>) {
        self.diagnoses.push(Diagnosis { offset: offset as u64, what: what.into() });
    }

    fn walk_chunks(&mut self, source: Option<(&File, &mut HeldWindows)>) {
        let mut at = HEADER_BYTES as usize;
        let granule = CHUNK_GRANULE as usize;
        let mut found = Found::default();
        while at < self.contents.len() {
            let Some(chunk) = read_plain::<ChunkHeader>(&self.contents[at..]) else {
                self.diagnose(at, "a chunk's header is cut off");
                break;
            };
            if chunk.magic == 0 {
                // Space that was granted but never used: normal between chunks, and where a process
                // died.
                at += granule;
                continue;
            }
            if !is_sound(&chunk, &self.contents[at..]) {
                self.diagnose(at, "a chunk's header is damaged; the chunk is skipped");
                at += granule;
                continue;
            }
            let end =
                (at as u64).saturating_add(chunk.length).min(self.contents.len() as u64) as usize;
            match chunk.kind {
                // A window whose slots were being cleared because their events are kept elsewhere.
                CHUNK_EVENTS if chunk.clearing != 0 => {}
                CHUNK_EVENTS => {
                    found.events.push(EventChunk { header: chunk, at, end, encoded: None });
                }
                CHUNK_ENCODED => match self.encoded_slots(&chunk, at, end) {
                    // The process has added it since the file was mapped.
                    None if self.has_grown(source.as_ref().map(|(file, _)| *file)) => {}
                    None => {
                        self.diagnose(at, "a chunk of events is cut off or damaged; it is skipped")
                    }
                    encoded => found.events.push(EventChunk { header: chunk, at, end, encoded }),
                },
                CHUNK_DEFINITIONS => self.read_definitions(at + CHUNK_HEADER_BYTES, end),
                CHUNK_TOTALS => match self.read_totals(at, end) {
                    Ok(Some(totals)) => found.totals.push((chunk, totals)),
                    Ok(None) => {}
                    Err(what) => self.diagnose(at, what),
                },
                CHUNK_SAMPLE_AREA => self.add_area(&chunk, (at, end)),
                CHUNK_SAMPLES => self.add_half(&chunk, (at, end)),
                CHUNK_STACKS => {
                    self.stacks = Answers::read(&self.contents.piece(at..end)).stacks;
                }
                // The process died while writing it, or is still writing it.
                CHUNK_UNFINISHED => {}
                kind => self.diagnose(at, format!("a chunk of unknown kind {kind} is skipped")),
            }
            at = at.saturating_add(chunk.length as usize);
        }
        let finalized = is_finalized(&self.definitions);
        let is_source = source.is_some();
        match source {
            Some((source, held)) if !finalized => {
                found
                    .events
                    .retain_mut(|chunk| !chunk.is_window() || self.hold(source, held, chunk));
                self.hold_areas(source);
            }
            Some((source, _)) => {
                // The file was finished and its end cut off since it was mapped.
                let bytes = source.metadata().map_or(0, |metadata| metadata.len());
                self.outrun |= bytes < self.contents.len() as u64;
            }
            None => {}
        }
        let behind = self.contents.len();
        let (threads, outrun) = chunks::threads(found, behind, &mut self.diagnoses);
        self.threads = threads;
        let samples = self.read_samples();
        self.diagnoses.extend(samples.damage);
        self.outrun |= outrun || samples.misses_half && is_source && !finalized;
    }

    /// Copies a window of a process that may still be running to our memory, so that it cannot
    /// change or disappear any more. `chunk` gets the header of the copy. Returns `false` if the
    /// window has events beyond those that are wanted, was being reused at every attempt, or no
    /// longer exists.
    fn hold(&mut self, source: &File, held: &mut HeldWindows, chunk: &mut EventChunk) -> bool {
        let EventChunk { at, end, .. } = *chunk;
        if end - at > MAX_HELD_BYTES {
            return true;
        }
        let read = |bytes: &mut [u8]| source.read_exact_at(bytes, at as u64);
        let copy = || (0..HOLD_TRIES).find_map(|_| held::copy(end - at, read));
        let Some((header, bytes)) = held.last_at(at..end).or_else(copy) else {
            self.outrun = true;
            return false;
        };
        if held.is_beyond(&header) {
            return false;
        }
        chunk.header = header;
        let is_held = self.contents.replace(at..end, &bytes).is_ok();
        self.outrun |= !is_held;
        held.add(at..end, header, bytes);
        is_held
    }

    /// Whether the file has become longer since it was mapped.
    fn has_grown(&self, source: Option<&File>) -> bool {
        let now = source.and_then(|source| source.metadata().ok());
        now.is_some_and(|now| now.len() > self.contents.len() as u64)
    }

    /// Number of slots of an encoded chunk according to its stream; `None` if that is impossible.
    fn encoded_slots(&self, chunk: &ChunkHeader, at: usize, end: usize) -> Option<usize> {
        let body = self.contents.get(at + CHUNK_HEADER_BYTES..end)?;
        encoded::slots_of(body.get(..chunk.body_bytes as usize)?)
            .filter(|slots| slots * SLOT_BYTES <= MAX_HELD_BYTES)
    }

    fn read_totals(&self, at: usize, end: usize) -> Result<Option<Totals>, String> {
        let mut outcome = Err("the totals are cut off".to_owned());
        for _ in 0..HOLD_TRIES {
            if at + SELECTOR_AT + 8 > end {
                break;
            }
            let selector = self.load_u64(at + SELECTOR_AT);
            outcome = Totals::read(&self.contents[at..end], selector);
            if outcome.is_ok() && self.load_u64(at + SELECTOR_AT) == selector {
                break;
            }
        }
        outcome
    }

    fn read_definitions(&mut self, mut at: usize, end: usize) {
        while at + FRAME_BYTES <= end {
            if self.load_u64(at) as u32 == 0 {
                return;
            }
            let Some(payload) = self.sound_definition(at, end) else {
                self.diagnose(at, "a definition is damaged (checksum); it is skipped");
                // Its length may be the damaged part: search for the next valid definition.
                let next =
                    (at + 8..end).step_by(8).find(|at| self.sound_definition(*at, end).is_some());
                match next {
                    Some(next) => at = next,
                    None => return,
                }
                continue;
            };
            let length = payload.len();
            match decode::<Definition>(&self.contents[payload]) {
                Ok(mut definition) => {
                    names::limit(&mut definition);
                    self.definitions.push(definition);
                }
                Err(error) => self.diagnose(
                    at,
                    format!("a definition of a kind that this version does not know ({error})"),
                ),
            }
            at += framed_bytes(length);
        }
    }

    /// Location of the payload of the definition at `at`, if its frame and checksum are correct.
    fn sound_definition(&self, at: usize, end: usize) -> Option<std::ops::Range<usize>> {
        if at + FRAME_BYTES > end {
            return None;
        }
        // A process that may still be running stores the frame last.
        let frame = self.load_u64(at);
        let (length, crc) = (frame as u32 as usize, (frame >> 32) as u32);
        let payload = at + FRAME_BYTES..(at + FRAME_BYTES).checked_add(length)?;
        let fits = length > 0 && length <= MAX_PAYLOAD_BYTES && payload.end <= end;
        (fits && checksum(&self.contents[payload.clone()]) == crc).then_some(payload)
    }

    /// A slot whose word another process may be storing.
    #[inline]
    fn load_slot(&self, at: usize) -> Slot {
        let bytes = &self.contents[at..at + SLOT_BYTES];
        debug_assert!(at.is_multiple_of(8));
        // SAFETY: as in `load_u64`; the word is the slot's second.
        let word = unsafe { &*bytes.as_ptr().add(8).cast::<AtomicU64>() }.load(Ordering::Acquire);
        Slot { word, ..read_plain(bytes).unwrap_or_default() }
    }

    /// A word that another process may be storing.
    fn load_u64(&self, at: usize) -> u64 {
        let bytes = &self.contents[at..at + 8];
        debug_assert!(at.is_multiple_of(8));
        // SAFETY: in bounds (sliced above), 8-aligned because the map is page-aligned and every
        // caller passes a multiple of 8, and an atomic may be read from shared memory.
        unsafe { &*bytes.as_ptr().cast::<AtomicU64>() }.load(Ordering::Acquire)
    }
}

/// Whether a chunk's header, which these bytes begin with, is whole and its length possible.
fn is_sound(chunk: &ChunkHeader, bytes: &[u8]) -> bool {
    let (from, to) = CHUNK_CRC_COVERS;
    chunk.magic == CHUNK_MAGIC
        && chunk.crc == checksum(&bytes[from..to])
        && chunk.length >= CHUNK_GRANULE
        && chunk.length.is_multiple_of(CHUNK_GRANULE)
}

fn check_header(map: &[u8], fixed: &FixedHeader) -> Result<FileHeader, String> {
    if fixed.magic != MAGIC {
        return Err("not a gammachi rank file (wrong first bytes)".into());
    }
    if fixed.version != FORMAT_VERSION {
        return Err(format!(
            "written in format version {}, this gammachi reads version {FORMAT_VERSION}; read it \
             with the gammachi that recorded it",
            fixed.version
        ));
    }
    if checksum(&map[..FIXED_CRC_COVERS]) != fixed.fixed_crc {
        return Err("the header is damaged (checksum of its fixed part)".into());
    }
    let payload = map
        .get(FIXED_HEADER_BYTES..)
        .and_then(|rest| rest.get(..fixed.payload_bytes as usize))
        .filter(|_| fixed.payload_bytes as u64 <= HEADER_BYTES - FIXED_HEADER_BYTES as u64)
        .ok_or("the header is damaged (its length)")?;
    if checksum(payload) != fixed.payload_crc {
        return Err("the header is damaged (checksum)".into());
    }
    decode(payload).map_err(|error| format!("the header cannot be decoded: {error}"))
}
