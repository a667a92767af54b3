//! A thread's area of samples in the rank's file, which its signal handler fills.
//!
//! Only the handler stores samples and nodes. Anybody may append a full half to the file and clear
//! it. Nothing here locks or allocates unless it may wait.

use std::cell::Cell;
use std::mem::offset_of;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use trace_format::encoded::samples::{MAX_ENCODED_BYTES, SampleEncoder};
use trace_format::plain::{bytes_of, bytes_of_all};
use trace_format::samples::*;

use crate::host::lock::Lock;
use crate::store::chunk_headers::sample_area_header;
use crate::store::mapping::Window;
use crate::store::trace_file;

/// Samples have times in units of 2^`SHIFT` ticks: a few microseconds, for an hour or more.
const SHIFT: u32 = 12;
/// Entries of the hash table of nodes, twice what it holds.
const NODE_ENTRIES: usize = 2 * MAX_NODES.next_power_of_two();

/// Memory for appending a half.
struct Appending {
    encoder: SampleEncoder,
    body: [u8; BODY_HEAD_BYTES + MAX_ENCODED_BYTES],
}

static APPENDING: Lock<Option<Box<Appending>>> = Lock::new(None);

/// Makes the memory for appending halves. Called before anything is sampled.
pub fn prepare() {
    let body = [0; BODY_HEAD_BYTES + MAX_ENCODED_BYTES];
    *APPENDING.lock() = Some(Box::new(Appending { encoder: SampleEncoder::default(), body }));
}

/// An area.
pub struct SampleArea {
    number: u32,
    mapping: *mut u8,
    /// Sequence of the next half.
    sequence: Cell<u32>,
    /// Index of the half being filled.
    current: Cell<usize>,
    /// Hash table of the nodes; 0: free.
    table: Box<[Cell<u32>]>,
    /// Whether a thread is appending one of the halves.
    is_appending: AtomicBool,
}

// SAFETY: the cells belong to the handler of the one thread that the area is for, or, between two
// threads, to whoever gives the area from one to the other. All else is atomic.
unsafe impl Sync for SampleArea {}
// SAFETY: as for `Sync`; the mapping is never removed.
unsafe impl Send for SampleArea {}

impl SampleArea {
    /// An area that no thread has yet.
    ///
    /// # Errors
    /// If there is no space, or the file cannot be mapped.
    pub fn new(number: u32) -> Result<Self, String> {
        let memory = trace_file::window(SAMPLE_AREA_BYTES)?;
        if memory.offset.is_none() {
            return Err("the file system does not support shared mappings".to_owned());
        }
        let header = sample_area_header(number, SAMPLE_AREA_BYTES);
        let memory = Window::open(memory, header).memory;
        let area = Self {
            number,
            mapping: memory.mapping,
            sequence: Cell::new(0),
            current: Cell::new(0),
            table: vec![Cell::new(0); NODE_ENTRIES].into_boxed_slice(),
            is_appending: AtomicBool::new(false),
        };
        // The root.
        area.nodes().store(1, Relaxed);
        Ok(area)
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= size_of::<SampleHead>());
        // SAFETY: an aligned word of the head, which lies in a mapping that is never removed.
        unsafe { AtomicU64::from_ptr(self.mapping.add(HEAD_AT + offset).cast()) }
    }

    fn half_word(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset + 4 <= size_of::<SampleHead>());
        // SAFETY: an aligned half of a word of the head, in a mapping that is never removed.
        unsafe { AtomicU32::from_ptr(self.mapping.add(HEAD_AT + offset).cast()) }
    }

    fn nodes(&self) -> &AtomicU32 {
        self.half_word(offset_of!(SampleHead, nodes))
    }

    /// CPU time of the thread since sampling of it began.
    pub fn cpu_ns(&self) -> &AtomicU64 {
        self.word(offset_of!(SampleHead, cpu_ns))
    }

    pub fn delivered(&self) -> &AtomicU64 {
        self.word(offset_of!(SampleHead, delivered))
    }

    pub fn in_mpi(&self) -> &AtomicU64 {
        self.word(offset_of!(SampleHead, in_mpi))
    }

    fn lost(&self) -> &AtomicU64 {
        self.word(offset_of!(SampleHead, lost))
    }

    fn half(&self, index: usize) -> HalfOf<'_> {
        let at = offset_of!(SampleHead, halves) + index * size_of::<HalfHead>();
        HalfOf {
            base: self.word(at + offset_of!(HalfHead, base)),
            sequence: self.half_word(at + offset_of!(HalfHead, sequence)),
            count: self.half_word(at + offset_of!(HalfHead, count)),
            full: self.half_word(at + offset_of!(HalfHead, full)),
        }
    }

    /// Gives the area to a thread: its number and the operating system's id. The thread is not being
    /// interrupted yet.
    pub fn begin(&self, (thread, os_id): (u32, u32), ticks: u64) {
        for counter in [self.cpu_ns(), self.delivered(), self.in_mpi(), self.lost()] {
            counter.store(0, Relaxed);
        }
        self.word(offset_of!(SampleHead, cut)).store(0, Relaxed);
        self.word(offset_of!(SampleHead, end)).store(0, Relaxed);
        self.half_word(offset_of!(SampleHead, thread_os_id)).store(os_id, Relaxed);
        self.half_word(offset_of!(SampleHead, shift)).store(SHIFT, Relaxed);
        self.set_thread(thread);
        self.word(offset_of!(SampleHead, begin)).store(ticks, Release);
    }

    /// Sets the thread's number in event chunks.
    pub fn set_thread(&self, thread: u32) {
        self.half_word(offset_of!(SampleHead, thread)).store(thread, Relaxed);
    }

    /// Notes that the thread is no longer sampled.
    pub fn end(&self, ticks: u64) {
        self.word(offset_of!(SampleHead, end)).store(ticks, Relaxed);
    }

    /// Takes the area from a thread that has ended: what it holds is appended to the file.
    pub fn vacate(&self) {
        let mut is_any = false;
        for index in [self.current.get() ^ 1, self.current.get()] {
            let half = self.half(index);
            if half.count.load(Relaxed) > 0 {
                half.full.store(1, Relaxed);
                self.append(index, true);
                is_any = true;
            }
        }
        // The thread's counts are kept even if all of its halves were appended before.
        if !is_any && self.delivered().load(Relaxed) > 0 {
            let half = self.half(self.current.get());
            half.sequence.store(self.next_sequence(), Relaxed);
            half.full.store(1, Relaxed);
            self.append(self.current.get(), true);
        }
        self.word(offset_of!(SampleHead, begin)).store(0, Release);
    }

    fn next_sequence(&self) -> u32 {
        let sequence = self.sequence.get();
        self.sequence.set(sequence.wrapping_add(1));
        sequence
    }

    /// The node of a path, given innermost first, and whether there was room for all of it.
    pub fn node_of(&self, callers: &[u64]) -> (u32, bool) {
        let mut node = 0;
        for &address in callers.iter().rev() {
            match self.child(node, address) {
                Some(child) => node = child,
                None => return (node, false),
            }
        }
        (node, true)
    }

    /// The node of a caller below a node; a new one if there is room.
    fn child(&self, parent: u32, address: u64) -> Option<u32> {
        let mixed = (address ^ u64::from(parent) << 44).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut at = (mixed >> 32) as usize % NODE_ENTRIES;
        loop {
            let number = self.table[at].get();
            if number == 0 {
                break;
            }
            // SAFETY: one of the area's nodes, which only this thread writes.
            let node = unsafe { self.node(number).read() };
            if (node.parent, node.address) == (parent, address) {
                return Some(number);
            }
            at = (at + 1) % NODE_ENTRIES;
        }
        let number = self.nodes().load(Relaxed);
        if number as usize >= MAX_NODES {
            return None;
        }
        // SAFETY: the first node that is not in use, inside the area.
        unsafe { self.node(number).write(PathNode { address, parent, reserved: 0 }) };
        self.nodes().store(number + 1, Release);
        self.table[at].set(number);
        Some(number)
    }

    fn node(&self, number: u32) -> *mut PathNode {
        let at = NODES_AT + number as usize * size_of::<PathNode>();
        self.mapping.wrapping_add(at).cast()
    }

    /// Stores a sample. Called by the thread's handler. Returns whether a half is full now.
    pub fn store(&self, ticks: u64, path: u32, address: u64) -> bool {
        if path & PATH_INCOMPLETE != 0 {
            self.word(offset_of!(SampleHead, cut)).fetch_add(1, Relaxed);
        }
        let current = self.current.get();
        for index in [current, current ^ 1] {
            if self.has_room(index, ticks) {
                return self.put(index, ticks, path, address);
            }
        }
        // Both are full: nobody has come by. The older one is appended here, if that needs no wait.
        if self.append(current ^ 1, false) && self.has_room(current ^ 1, ticks) {
            return self.put(current ^ 1, ticks, path, address);
        }
        self.lost().fetch_add(1, Relaxed);
        true
    }

    /// Whether a half has room for a sample of this time. One that its times do not fit in is full.
    fn has_room(&self, index: usize, ticks: u64) -> bool {
        let half = self.half(index);
        if half.full.load(Acquire) != 0 {
            return false;
        }
        let count = half.count.load(Relaxed);
        let since = ticks.saturating_sub(half.base.load(Relaxed)) >> SHIFT;
        if count > 0 && since > u64::from(u32::MAX) {
            half.full.store(1, Release);
            return false;
        }
        true
    }

    fn put(&self, index: usize, ticks: u64, path: u32, address: u64) -> bool {
        let half = self.half(index);
        let count = half.count.load(Relaxed);
        if count == 0 {
            half.base.store(ticks, Relaxed);
            half.sequence.store(self.next_sequence(), Relaxed);
            self.current.set(index);
        }
        let time = (ticks.saturating_sub(half.base.load(Relaxed)) >> SHIFT) as u32;
        // SAFETY: a half that is not full has fewer samples than it has room for.
        unsafe {
            let sample: *mut RawSample = self.samples(index).cast_mut().add(count as usize);
            sample.write(RawSample { time, path, address });
        }
        half.count.store(count + 1, Release);
        let is_full = count as usize + 1 >= HALF_SAMPLES;
        if is_full {
            half.full.store(1, Release);
        }
        is_full
    }

    fn samples(&self, index: usize) -> *const RawSample {
        self.mapping.wrapping_add(HALVES_AT + index * HALF_BYTES).cast_const().cast()
    }

    /// Appends the full halves to the file.
    pub fn append_full(&self) {
        let older = self.current.get() ^ 1;
        for index in [older, older ^ 1] {
            if self.half(index).full.load(Acquire) != 0 {
                self.append(index, true);
            }
        }
    }

    /// Appends a full half to the file and clears it. Returns whether the half is free now.
    fn append(&self, index: usize, may_wait: bool) -> bool {
        if self.is_appending.swap(true, Acquire) {
            return false;
        }
        let half = self.half(index);
        let is_free = half.full.load(Acquire) == 0 || self.write(index, may_wait);
        self.is_appending.store(false, Release);
        is_free
    }

    fn write(&self, index: usize, may_wait: bool) -> bool {
        let guard = if may_wait { Some(APPENDING.lock()) } else { APPENDING.try_lock() };
        let Some(mut guard) = guard else { return false };
        let Some(Appending { encoder, body }) = guard.as_deref_mut() else { return false };
        let half = self.half(index);
        let count = half.count.load(Relaxed);
        // SAFETY: the head lies in the area. The handler may be counting meanwhile; each of its
        // words is whole. A full half's samples do not change.
        let (head, samples) = unsafe {
            let head: SampleHead = self.mapping.add(HEAD_AT).cast::<SampleHead>().read_volatile();
            (head, std::slice::from_raw_parts(self.samples(index), count as usize))
        };
        let stored = &mut body[BODY_HEAD_BYTES..];
        let (form, bytes) = match encoder.encode(samples, stored) {
            Some(bytes) => (FORM_ENCODED, bytes),
            None => {
                let raw = bytes_of_all(samples);
                stored[..raw.len()].copy_from_slice(raw);
                (FORM_RAW, raw.len())
            }
        };
        let copy = HalfCopy { base: half.base.load(Relaxed), count, form };
        body[..size_of::<SampleHead>()].copy_from_slice(bytes_of(&head));
        body[size_of::<SampleHead>()..BODY_HEAD_BYTES].copy_from_slice(bytes_of(&copy));
        let body = &body[..BODY_HEAD_BYTES + bytes];
        let sequence = half.sequence.load(Relaxed);
        match trace_file::append_samples(self.number, sequence, body, may_wait) {
            None => return false,
            Some(false) => _ = self.lost().fetch_add(u64::from(count), Relaxed),
            Some(true) => {}
        }
        half.count.store(0, Relaxed);
        half.full.store(0, Release);
        true
    }
}

/// The head of a half, shared with whoever appends it.
struct HalfOf<'a> {
    base: &'a AtomicU64,
    sequence: &'a AtomicU32,
    count: &'a AtomicU32,
    full: &'a AtomicU32,
}
