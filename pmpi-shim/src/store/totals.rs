//! Folds events into totals.
//!
//! The slots of whole chunks are added up, and a snapshot of the sums is published in the thread's
//! totals chunk. This happens when a window changes, never on the path of a call. A thread's time
//! is divided by the same rules as in the analyzer: what is neither MPI nor the recorder nor an
//! interposed compute function belongs to the program.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use trace_format::encoding::checksum;
use trace_format::functions::{self, is_light};
use trace_format::layout::*;
use trace_format::meaning::{Class, Meaning};
use trace_format::slot::More;
use trace_format::totals::*;

use crate::host::peers::{Peers, peers};
use crate::mpi::abi;
use crate::store::regions;
use crate::store::trace_file;

/// Counter at the begin and the end of the rank's elapsed time τ_i. The sums by activity cover only
/// the time between.
static ELAPSED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(u64::MAX)];

/// Begins τ_i.
pub fn begin_elapsed(ticks: u64) {
    ELAPSED[0].store(ticks, Relaxed);
}

/// Ends τ_i.
pub fn end_elapsed(ticks: u64) {
    ELAPSED[1].store(ticks, Relaxed);
}

/// Continues τ_i after its end.
pub fn resume_elapsed() {
    end_elapsed(u64::MAX);
}

/// What is folded for a function.
#[derive(Debug, Clone, Copy)]
struct Kind {
    meaning: &'static Meaning,
    has_peer: bool,
    /// Whether it is a small compute function, which counts as the program's own code.
    light: bool,
}

fn kinds() -> &'static [Kind] {
    static KINDS: OnceLock<Vec<Kind>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let kind = |name: &String| {
            let meaning = Meaning::by_name(name);
            let exchanges = matches!(meaning.class, Class::PointToPoint | Class::Probe)
                || meaning.class == Class::OneSided && meaning.moves_bytes;
            let has_peer = exchanges && meaning.fields.peer.is_on_communicator();
            Kind { meaning, has_peer, light: is_light(name) }
        };
        functions::names().iter().map(kind).collect()
    })
}

fn kind_of(function: u16) -> Option<Kind> {
    kinds().get(usize::from(function.checked_sub(FIRST_FUNCTION)?)).copied()
}

/// An event, assembled from its slots.
#[derive(Debug, Default)]
struct Call {
    slot: Slot,
    more: More,
}

impl Call {
    /// Ticks from begin to end; 0 if unknown.
    fn span(&self) -> u64 {
        if self.slot.returned() { self.more.ticks(&self.slot).unwrap_or(0) } else { 0 }
    }

    /// Bytes of its receiving half.
    fn half(&self) -> u64 {
        self.more.receive.map_or(0, |half| half.bytes)
    }

    fn sent_and_received(&self, kind: Kind) -> (u64, u64) {
        let (sent, received) = self.more.moved(&self.slot, kind.meaning.fields.detail());
        (sent, received + self.half())
    }
}

/// A thread's totals and their position in the file.
#[derive(Debug)]
pub struct ThreadTotals {
    offset: u64,
    published: u64,
    header: SnapshotHeader,
    entries: Vec<TotalsEntry>,
    /// Index of each entry by function, classes and detail.
    positions: HashMap<(u16, u8, u8, u32), usize>,
    /// Up to where the thread's time has been divided.
    at_ticks: u64,
}

impl ThreadTotals {
    /// Totals of a thread whose first folded chunk has this header. `offset` is that of its totals
    /// chunk.
    pub fn begin(first: &ChunkHeader, offset: u64) -> Self {
        let begin_ticks = first.opened_ticks.max(ELAPSED[0].load(Relaxed));
        let header = SnapshotHeader {
            first_sequence: first.sequence,
            next_sequence: first.sequence,
            begin_ticks,
            end_ticks: begin_ticks,
            ..SnapshotHeader::default()
        };
        Self {
            offset,
            published: 0,
            header,
            entries: Vec::with_capacity(MAX_ENTRIES),
            positions: HashMap::with_capacity(MAX_ENTRIES),
            at_ticks: begin_ticks,
        }
    }

    /// Folds a chunk, up to the time when the next one was opened, and publishes the result. After
    /// an error the last published result is still valid.
    pub fn fold(
        &mut self,
        chunk: &ChunkHeader,
        slots: &[u8],
        next_opened: u64,
    ) -> Result<(), String> {
        let mut slots = slots
            .chunks_exact(SLOT_BYTES)
            .filter_map(read_plain::<Slot>)
            .take_while(|s| s.word != 0);
        let mut call: Option<Call> = None;
        let peers = peers();
        loop {
            let slot = slots.next();
            match (&mut call, &slot) {
                (Some(call), Some(slot)) if slot.is_continuation() => _ = call.more.add(slot),
                (whole, _) => {
                    if let Some(call) = whole.take() {
                        self.event(&call, &peers);
                    }
                    match slot {
                        Some(slot) if slot.is_continuation() => {}
                        Some(slot) => call = Some(Call { slot, ..Call::default() }),
                        None => break,
                    }
                }
            }
        }
        self.add_own_time(next_opened);
        self.header.end_ticks = self.at_ticks;
        self.header.next_sequence = chunk.sequence + 1;
        self.publish()
    }

    fn advance(&mut self, to_ticks: u64) -> u64 {
        let ticks = to_ticks.min(ELAPSED[1].load(Relaxed)).saturating_sub(self.at_ticks);
        self.at_ticks += ticks;
        ticks
    }

    /// Whether a region that counts as computation is open.
    pub fn is_in_region(&self) -> bool {
        self.header.open_regions > 0
    }

    fn add_own_time(&mut self, to_ticks: u64) {
        let ticks = self.advance(to_ticks);
        self.header.own_ticks += ticks;
        if self.header.open_regions > 0 {
            self.header.region_own_ticks += ticks;
        }
    }

    fn event(&mut self, call: &Call, peers: &Peers) {
        let slot = &call.slot;
        self.add_own_time(slot.begin);
        let end = slot.begin.saturating_add(call.span());
        match slot.function() {
            TOOL => {
                let ticks = self.advance(end);
                self.header.tool_ticks += ticks;
            }
            REGION_BEGIN if !regions::computes(slot.peer) => {}
            REGION_END if !regions::computes(slot.peer) => {}
            REGION_BEGIN => self.header.open_regions += 1,
            REGION_END => {
                self.header.open_regions = self.header.open_regions.saturating_sub(1);
            }
            function => {
                let Some(kind) = kind_of(function) else { return };
                if let (Some((_, inside)), true) = (call.more.polls, slot.returned()) {
                    let ticks = self.advance(slot.begin.saturating_add(inside).min(end));
                    self.header.mpi_ticks += ticks;
                    self.add_own_time(end);
                } else if kind.light {
                    self.add_own_time(end);
                } else if kind.meaning.class == Class::Compute {
                    let ticks = self.advance(end);
                    self.header.compute_ticks += ticks;
                    if self.header.open_regions > 0 {
                        self.header.region_compute_ticks += ticks;
                    }
                } else {
                    let ticks = self.advance(end);
                    self.header.mpi_ticks += ticks;
                }
                self.count(call, kind, peers);
            }
        }
    }

    /// Counts a call under its function, peer class and size class.
    fn count(&mut self, call: &Call, kind: Kind, peers: &Peers) {
        let slot = &call.slot;
        let compute = kind.meaning.class == Class::Compute;
        let collective = kind.meaning.class == Class::Collective;
        let took_place =
            call.more.error == 0 || abi::error_classes().took_place(call.more.error, collective);
        let nobody = kind.has_peer && slot.peer == abi::proc_null();
        let (sent, received) = match () {
            () if compute => (slot.payload()[1], 0),
            () if !took_place => (0, 0),
            () if kind.meaning.moves_bytes && nobody => (0, call.half()),
            () if kind.meaning.moves_bytes => call.sent_and_received(kind),
            () => (0, 0),
        };
        let peer_class = match kind.has_peer {
            true => peers.class(slot.communicator(), slot.peer),
            false => PeerClass::None,
        };
        let size = if compute { 0 } else { size_class(sent.max(received)) };
        let (calls, inside) = call.more.polls.unwrap_or((1, call.span()));
        self.header.calls += calls;
        self.header.abandoned += u64::from(slot.is_abandoned());
        if let Some((polls, inside)) = call.more.polls {
            self.header.polls += polls;
            self.header.poll_runs += 1;
            self.header.poll_ticks += inside;
        }
        let entry = self.entry(slot.function(), peer_class as u8, size, 0);
        // For merged polls only the mean is known.
        let each = inside / calls.max(1);
        entry.count += calls;
        entry.ticks += inside;
        entry.min_ticks = entry.min_ticks.min(each);
        entry.max_ticks = entry.max_ticks.max(each);
        entry.sent = entry.sent.wrapping_add(sent);
        entry.received = entry.received.wrapping_add(received);
        entry.histogram[histogram_bin(each)] += calls;
        if compute {
            let work = f64::from_bits(slot.payload()[0]);
            entry.work = (f64::from_bits(entry.work) + work).to_bits();
        }
        if call.more.error != 0 {
            let detail = failed_detail(slot.function(), call.more.error);
            self.entry(FAILED_CALLS, 0, 0, detail).count += 1;
        }
        if collective && took_place {
            let detail = u32::from(slot.communicator());
            self.entry(COLLECTIVES_ON, 0, 0, detail).count += 1;
        }
    }

    /// The entry of a key. If there is no space left, the entry of the function's calls of any
    /// class, and finally the last entry, which collects everything else.
    fn entry(&mut self, function: u16, peer: u8, size: u8, detail: u32) -> &mut TotalsEntry {
        let key = match function {
            COLLECTIVES_ON | FAILED_CALLS => (function, 0, 0, detail),
            _ => (function, peer, size, 0),
        };
        let whole = match function {
            COLLECTIVES_ON => (function, ANY_CLASS, ANY_CLASS, u32::MAX),
            FAILED_CALLS => (function, ANY_CLASS, ANY_CLASS, 0),
            _ => (function, ANY_CLASS, ANY_CLASS, 0),
        };
        let position = self.position(key, MAX_ENTRIES - RESERVED_ENTRIES);
        let position = position.or_else(|| self.position(whole, MAX_ENTRIES));
        let last = self.entries.len() - usize::from(position.is_none());
        &mut self.entries[position.unwrap_or(last)]
    }

    fn position(&mut self, key: (u16, u8, u8, u32), most: usize) -> Option<usize> {
        if let Some(position) = self.positions.get(&key) {
            return Some(*position);
        }
        if self.entries.len() >= most {
            return None;
        }
        let (function, peer_class, size_class, detail) = key;
        self.positions.insert(key, self.entries.len());
        self.entries.push(TotalsEntry {
            function,
            peer_class,
            size_class,
            detail,
            count: 0,
            ticks: 0,
            min_ticks: u64::MAX,
            max_ticks: 0,
            sent: 0,
            received: 0,
            work: 0,
            histogram: [0; HISTOGRAM_BINS],
        });
        Some(self.entries.len() - 1)
    }

    /// Writes a snapshot over the older one, then the selector that names it.
    fn publish(&mut self) -> Result<(), String> {
        self.write_snapshot(((self.published + 1) & 1) as usize)
    }

    fn write_snapshot(&mut self, index: usize) -> Result<(), String> {
        self.header.entries = self.entries.len() as u32;
        let mut bytes = bytes_of(&self.header).to_vec();
        bytes.extend(self.entries.iter().flat_map(bytes_of));
        let crc = checksum(&bytes[SNAPSHOT_CRC_BYTES..]);
        bytes[..SNAPSHOT_CRC_BYTES].copy_from_slice(&crc.to_le_bytes());
        trace_file::write_at(self.offset + snapshot_at(index) as u64, &bytes)?;
        self.published += 1;
        let selector = self.published << 1 | index as u64;
        trace_file::write_at(self.offset + SELECTOR_AT as u64, &selector.to_le_bytes())
    }

    /// Moves to another totals chunk, because definitions may lie behind the compacted one.
    pub fn move_to(&mut self, offset: u64) -> Result<(), String> {
        let old = std::mem::replace(&mut self.offset, offset);
        self.publish()?;
        trace_file::retire_chunk(old)
    }

    /// Moves the newest snapshot to a chunk of its own length that begins at `offset`, and gives up the
    /// old chunk.
    pub fn move_compacted(&mut self, thread: (u32, u32), offset: u64) -> Result<(), String> {
        let bytes = self.compact_bytes().next_multiple_of(CHUNK_GRANULE);
        trace_file::write_totals_header(thread, offset, bytes)?;
        self.published = 0;
        let old = std::mem::replace(&mut self.offset, offset);
        self.write_snapshot(0)?;
        trace_file::retire_chunk(old)
    }

    /// Bytes of a chunk with one snapshot.
    pub fn compact_bytes(&self) -> u64 {
        let snapshot = size_of::<SnapshotHeader>() + self.entries.len() * size_of::<TotalsEntry>();
        (snapshot_at(0) + snapshot) as u64
    }

    /// Copies the newest snapshot to the first position. Returns where the chunk begins and where
    /// it ends in the file.
    pub fn compact(&mut self) -> Result<(u64, u64), String> {
        if self.published & 1 == 1 {
            self.write_snapshot(0)?;
        }
        Ok((self.offset, self.offset + self.compact_bytes()))
    }
}

/// Number of entries reserved for functions whose classes no longer fit.
const RESERVED_ENTRIES: usize = 40;
