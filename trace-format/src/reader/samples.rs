//! Samples of the program's own code: those in the sample areas, and the halves that were appended
//! to the file.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use super::{Diagnosis, HOLD_TRIES, RankFile};
use crate::encoded::samples::decode_samples;
use crate::encoding::checksum;
use crate::header::{Definition, Sampling};
use crate::layout::{CHUNK_HEADER_BYTES, ChunkHeader};
use crate::plain::{Plain, read_plain};
use crate::samples::*;

/// Maximum number of callers of a path; recorders stop earlier.
const MAX_CALLERS: usize = 512;

/// The samples of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SampledThread {
    /// Its number in event chunks; `None` if it made no MPI call.
    pub thread: Option<u32>,
    /// Operating system's id.
    pub os_id: u32,
    /// Counter when sampling of the thread began.
    pub begin: u64,
    /// Counter when it ended; `None` if the process died before.
    pub end: Option<u64>,
    /// CPU time of the thread meanwhile in nanoseconds, user and kernel; 0: unknown.
    pub cpu_ns: u64,
    /// Number of periods of CPU time that interrupted the thread.
    pub delivered: u64,
    /// Number of those that found the thread in an MPI call or in the recorder: no samples.
    pub in_mpi: u64,
    /// Number of samples that were lost for want of space.
    pub lost: u64,
    /// The samples in order of time.
    pub samples: Vec<Sample>,
    /// The paths of the samples: return addresses in the callers, innermost first.
    pub paths: Vec<Vec<u64>>,
}

/// A moment at which a thread was computing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Counter at that moment.
    pub ticks: u64,
    /// Address of the instruction, or an interpreted frame ([`INTERPRETED`]).
    pub address: u64,
    /// Index of its callers in [`SampledThread::paths`]; `None` if the stack could not be read.
    pub path: Option<u32>,
    /// Whether the path ends at the thread's first function.
    pub complete: bool,
}

/// A chunk of samples: an area, or a half of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SampleChunk {
    area: u32,
    /// Position of the half; `None` for an area.
    sequence: Option<u32>,
    /// Its contents behind the chunk's header.
    at: usize,
    end: usize,
}

/// What the chunks of samples hold, and what is wrong with them.
#[derive(Default)]
pub(super) struct Samples {
    threads: Vec<SampledThread>,
    pub damage: Vec<Diagnosis>,
    /// Whether a half is missing between others.
    pub misses_half: bool,
}

/// An area's own contents.
#[derive(Default)]
struct Area {
    head: SampleHead,
    nodes: Vec<PathNode>,
    halves: Vec<Half>,
}

/// A half, and the area's head when it was last seen with it.
struct Half {
    sequence: u32,
    head: SampleHead,
    base: u64,
    samples: Vec<RawSample>,
}

impl RankFile {
    /// How the program's own code was sampled; `None` if that was not asked for.
    pub fn sampling(&self) -> Option<&Sampling> {
        self.definitions.iter().rev().find_map(|definition| match definition {
            Definition::Sampling(sampling) => Some(sampling),
            _ => None,
        })
    }

    /// The sampled threads with all their samples, in order of their begin. They are decoded by
    /// this call. What is damaged is left out and was reported in [`RankFile::diagnoses`].
    pub fn sampled_threads(&self) -> Vec<SampledThread> {
        self.read_samples().threads
    }

    /// Adds an area found at `at`.
    pub(super) fn add_area(&mut self, chunk: &ChunkHeader, (at, end): (usize, usize)) {
        if end - at < SAMPLE_AREA_BYTES {
            self.diagnose(at, "an area of samples is cut off");
        }
        let (area, at) = (chunk.thread, at + CHUNK_HEADER_BYTES);
        self.samples.push(SampleChunk { area, sequence: None, at, end });
    }

    /// Adds a half that was appended to the file at `at`.
    pub(super) fn add_half(&mut self, chunk: &ChunkHeader, (at, end): (usize, usize)) {
        let body = at + CHUNK_HEADER_BYTES;
        let body_end = body.saturating_add(chunk.body_bytes as usize);
        let crc = (body_end <= end).then(|| checksum(&self.contents[body..body_end]));
        if crc != Some(chunk.body_crc) {
            return self.diagnose(at, "a chunk of samples is cut off or damaged; it is skipped");
        }
        let (area, sequence) = (chunk.thread, Some(chunk.sequence));
        self.samples.push(SampleChunk { area, sequence, at: body, end: body_end });
    }

    /// Copies the areas of a process that may still be running to our memory.
    pub(super) fn hold_areas(&mut self, source: &File) {
        for chunk in self.samples.clone() {
            let SampleChunk { at, end, .. } = chunk;
            if chunk.sequence.is_some() || end - at > SAMPLE_AREA_BYTES {
                continue;
            }
            let mut copy = vec![0; end - at];
            for _ in 0..HOLD_TRIES {
                let mut again = vec![0; size_of::<SampleHead>().min(end - at)];
                let read = source.read_exact_at(&mut copy, at as u64);
                if read.and_then(|()| source.read_exact_at(&mut again, at as u64)).is_err() {
                    break;
                }
                if halves(&copy) == halves(&again) {
                    let _ = self.contents.replace(at..end, &copy);
                    break;
                }
            }
        }
    }

    pub(super) fn read_samples(&self) -> Samples {
        let mut samples = Samples::default();
        let mut areas: BTreeMap<u32, (usize, Area)> = BTreeMap::new();
        let mut halves: BTreeMap<u32, BTreeMap<u32, Half>> = BTreeMap::new();
        for chunk in &self.samples {
            let bytes = self.contents.piece(chunk.at..chunk.end);
            match (chunk.sequence, areas.entry(chunk.area)) {
                (Some(sequence), _) => match Half::appended(&bytes, sequence) {
                    Ok(half) => _ = halves.entry(chunk.area).or_default().insert(sequence, half),
                    Err(what) => samples.diagnose(chunk.at, what),
                },
                (None, Entry::Vacant(free)) => {
                    let mut area = Area::default();
                    if let Err(what) = area.read(&bytes) {
                        samples.diagnose(chunk.at, what);
                    }
                    free.insert((chunk.at, area));
                }
                (None, Entry::Occupied(_)) => {
                    samples.diagnose(chunk.at, "a second area of samples of the same number");
                }
            }
        }
        for (number, (_, area)) in &mut areas {
            let of_area = halves.entry(*number).or_default();
            for half in area.halves.drain(..) {
                of_area.entry(half.sequence).or_insert(half);
            }
        }
        for (number, halves) in halves {
            let (at, area) = areas.remove(&number).unwrap_or_default();
            if at == 0 {
                let what = "the area of these samples is missing, and the paths with it";
                samples.diagnose(self.first_chunk_of(number), what);
            }
            samples.add_threads(at, &area, halves);
        }
        samples.threads.sort_by_key(|thread| thread.begin);
        samples
    }

    fn first_chunk_of(&self, area: u32) -> usize {
        self.samples.iter().find(|chunk| chunk.area == area).map_or(0, |chunk| chunk.at)
    }
}

/// What tells from the begin of an area whether one of its halves was reused: one that was not is whole up to the count
/// read first.
pub(super) fn halves(area: &[u8]) -> Option<(u64, [u32; 2])> {
    let head: SampleHead = read_plain(area)?;
    Some((head.begin, head.halves.map(|half| half.sequence)))
}

impl Area {
    /// Reads everything that is valid.
    fn read(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        let from = |at: usize| bytes.get(at - CHUNK_HEADER_BYTES..).unwrap_or_default();
        let head: SampleHead = read_plain(from(HEAD_AT)).ok_or("an area of samples is cut off")?;
        if head.shift > 32
            || head.nodes as usize > MAX_NODES
            || head.halves.iter().any(|half| half.count as usize > HALF_SAMPLES)
        {
            return Err("the head of an area of samples is damaged");
        }
        // Without a thread, the paths of those that had the area are still there.
        if head.begin != 0 {
            self.head = head;
            for (index, half) in head.halves.iter().enumerate().filter(|(_, half)| half.count > 0) {
                let samples = first_of(from(HALVES_AT + index * HALF_BYTES), half.count as usize);
                self.halves.push(Half { sequence: half.sequence, head, base: half.base, samples });
            }
        }
        self.nodes = first_of(from(NODES_AT), head.nodes as usize);
        let is_sound =
            |(index, node): (usize, &PathNode)| index == 0 || (node.parent as usize) < index;
        let sound = self.nodes.iter().enumerate().take_while(|node| is_sound(*node)).count();
        if sound < self.nodes.len() {
            self.nodes.truncate(sound);
            return Err("the paths of an area of samples are damaged");
        }
        Ok(())
    }

    /// The return addresses of a path that ends at a node.
    fn path(&self, mut node: usize) -> Vec<u64> {
        let mut addresses = Vec::new();
        while node != 0 && addresses.len() < MAX_CALLERS {
            addresses.push(self.nodes[node].address);
            node = self.nodes[node].parent as usize;
        }
        addresses
    }
}

/// The first values of an array, as many of `count` as there are.
fn first_of<T: Plain>(bytes: &[u8], count: usize) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).take(count).filter_map(read_plain).collect()
}

impl Half {
    /// A half from the body of its chunk.
    fn appended(body: &[u8], sequence: u32) -> Result<Self, String> {
        let damaged = || "a chunk of samples is damaged".to_owned();
        let head: SampleHead = read_plain(body).ok_or_else(damaged)?;
        let copy: HalfCopy = read_plain(&body[size_of::<SampleHead>()..]).ok_or_else(damaged)?;
        let (stored, count) = (&body[BODY_HEAD_BYTES..], copy.count as usize);
        let samples = match copy.form {
            FORM_RAW if count <= HALF_SAMPLES => first_of(stored, count),
            FORM_ENCODED => decode_samples(stored, count).map_err(|error| error.to_string())?,
            _ => return Err(damaged()),
        };
        if samples.len() < count || head.shift > 32 {
            return Err(damaged());
        }
        Ok(Self { sequence, head, base: copy.base, samples })
    }
}

impl Samples {
    fn diagnose(&mut self, at: usize, what: impl Into<String>) {
        self.damage.push(Diagnosis { offset: at as u64, what: what.into() });
    }

    /// Adds the threads that had an area, one after the other.
    fn add_threads(&mut self, at: usize, area: &Area, halves: BTreeMap<u32, Half>) {
        let first = self.threads.len();
        let (mut expected, mut begin, mut unknown_nodes) = (0, 0, false);
        // Index in a thread's paths by node.
        let mut indices = vec![u32::MAX; area.nodes.len()];
        for (sequence, half) in halves {
            if sequence != expected {
                self.misses_half = true;
                let missing = sequence.wrapping_sub(expected);
                self.diagnose(at, format!("{missing} chunks of samples are missing"));
            }
            expected = sequence.wrapping_add(1);
            if begin != half.head.begin {
                (begin, indices) = (half.head.begin, vec![u32::MAX; area.nodes.len()]);
            }
            let thread = self.thread(first, &half.head);
            unknown_nodes |= !thread.add(area, &half, &mut indices);
        }
        if area.head.begin != 0 {
            self.thread(first, &area.head);
        }
        if unknown_nodes && !area.nodes.is_empty() {
            self.diagnose(at, "samples have paths that their area does not have");
        }
        for thread in &mut self.threads[first..] {
            thread.samples.sort_by_key(|sample| sample.ticks);
        }
    }

    /// The thread that had an area when this was its head, among those from `first` on.
    fn thread(&mut self, first: usize, head: &SampleHead) -> &mut SampledThread {
        let known = self.threads[first..].iter().position(|thread| thread.begin == head.begin);
        let index = known.map_or(self.threads.len(), |index| first + index);
        if known.is_none() {
            self.threads.push(SampledThread { begin: head.begin, ..SampledThread::default() });
        }
        let thread = &mut self.threads[index];
        thread.count(head);
        thread
    }
}

impl SampledThread {
    /// Takes over what a head says; later heads say more.
    fn count(&mut self, head: &SampleHead) {
        self.thread = (head.thread != NO_THREAD).then_some(head.thread);
        self.os_id = head.thread_os_id;
        self.end = (head.end != 0).then_some(head.end);
        self.cpu_ns = head.cpu_ns;
        self.delivered = head.delivered;
        self.in_mpi = head.in_mpi;
        self.lost = head.lost;
    }

    /// Adds the samples of a half. Returns whether the area has all their paths.
    fn add(&mut self, area: &Area, half: &Half, indices: &mut [u32]) -> bool {
        let mut all_known = true;
        for raw in &half.samples {
            let node = raw.path & !PATH_INCOMPLETE;
            let path = indices.get_mut(node as usize).map(|index| {
                if *index == u32::MAX {
                    *index = self.paths.len() as u32;
                    self.paths.push(area.path(node as usize));
                }
                *index
            });
            all_known &= path.is_some() || node == NO_PATH;
            self.samples.push(Sample {
                ticks: half.base.saturating_add(u64::from(raw.time) << half.head.shift),
                address: raw.address,
                path,
                complete: path.is_some() && raw.path & PATH_INCOMPLETE == 0,
            });
        }
        all_known
    }
}
