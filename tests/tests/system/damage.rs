//! Truncations and bit flips of a real trace: the reader returns the valid prefix and a diagnosis,
//! never panics, and needs bounded time and memory.

use std::path::Path;
use std::time::{Duration, Instant};

use system_tests::{Job, Mpi, victim};
use trace_format::files::rank_file_path;
use trace_format::layout::{
    CHUNK_GRANULE, CHUNK_HEADER_BYTES, FIXED_CRC_COVERS, HEADER_BYTES, SLOT_BYTES,
};
use trace_format::reader::{Event, RankFile};

const DAMAGES: u64 = 10_000;
/// Reading that takes longer than this is a hang: a sound file takes less than a millisecond.
const LONGEST: Duration = Duration::from_secs(60);

/// What the reader returns for a file.
struct Read {
    /// Each thread's events, by its number.
    threads: Vec<(u32, Vec<Event>)>,
    definitions: usize,
    /// Whether the reader reported any damage.
    diagnosed: bool,
}

/// Reads an image to its end; `None` if the reader refuses it.
fn read(image: &[u8]) -> Option<Read> {
    let file = RankFile::from_bytes(Path::new("damaged"), image).ok()?;
    let mut diagnosed = !file.diagnoses.is_empty();
    let threads = file.threads.iter().map(|thread| {
        let mut events = file.events(thread);
        let list: Vec<Event> = events.by_ref().collect();
        diagnosed |= events.damage().is_some();
        // An encoded event takes at least a bit.
        assert!(list.len() <= image.len() * 8, "more events than fit the file");
        (thread.number, list)
    });
    let threads = threads.collect();
    Some(Read { threads, definitions: file.definitions.len(), diagnosed })
}

/// xorshift64* with a fixed seed, so that failures can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

fn timed(image: &[u8]) -> Option<Read> {
    let begin = Instant::now();
    let found = read(image);
    assert!(begin.elapsed() < LONGEST, "reading takes {:?}", begin.elapsed());
    found
}

/// The file of a rank with several kinds of events, in two threads.
fn real_file() -> Vec<u8> {
    let mpi = Mpi::OpenMpi;
    let job = Job::new(mpi, &victim(mpi, "threads"));
    let job = ["1", "400", "8192", "1"].iter().fold(job, |job, argument| job.argument(argument));
    let recorded = job.record();
    recorded.expect_code(0);
    std::fs::read(recorded.directory().join(rank_file_path(0, 0))).expect("the trace exists")
}

#[test]
fn any_truncation_leaves_a_valid_prefix() {
    let image = real_file();
    let whole = read(&image).expect("it is sound");
    assert!(!whole.diagnosed && whole.threads.len() == 2 && whole.threads[1].1.len() >= 1200);
    let mut random = Random(1);
    let mut refused = 0;
    for _ in 0..DAMAGES / 2 {
        let length = random.below(image.len());
        let Some(found) = timed(&image[..length]) else {
            // Only a file with an incomplete header is refused.
            assert!(length < HEADER_BYTES as usize, "refused at {length}");
            refused += 1;
            continue;
        };
        assert!(found.definitions <= whole.definitions);
        for (number, events) in &found.threads {
            let all = whole.threads.iter().find(|(other, _)| other == number);
            let (_, all) = all.expect("no thread that the whole file lacks");
            // An event that lost its continuations is omitted.
            assert_eq!(events[..], all[..events.len()], "cut at {length}: a prefix");
        }
    }
    assert!(refused > 0);
}

/// Whether a checksum covers this byte.
fn is_checked(image: &[u8], at: usize) -> bool {
    if at < FIXED_CRC_COVERS + 4 {
        return true;
    }
    let payload = u32::from_le_bytes(image[28..32].try_into().expect("four bytes")) as usize;
    if at < HEADER_BYTES as usize {
        return (64..64 + payload).contains(&at);
    }
    // Bytes 0 to 35 of a chunk's header and its checksum.
    let granule = at / CHUNK_GRANULE as usize * CHUNK_GRANULE as usize;
    at - granule < 40 && image[granule..granule + 4] == *b"GCHK"
}

#[test]
fn any_flipped_bit_leaves_preceding_events_readable() {
    let image = real_file();
    let whole = read(&image).expect("it is sound");
    let mut random = Random(2);
    let mut damaged = image.clone();
    let (mut detected, mut in_slots) = (0u64, 0u64);
    for round in 0..DAMAGES / 2 {
        // Half of the flips hit events: most of a small file is zeros.
        let at = match round % 2 {
            0 => random.below(image.len()),
            _ => {
                let (_, events) = &whole.threads[random.below(2)];
                let at = events[random.below(events.len())].offset + random.below(SLOT_BYTES);
                // An encoded event has no such position in the file.
                if at < image.len() { at } else { random.below(image.len()) }
            }
        };
        damaged[at] ^= 1 << random.below(8);
        let found = timed(&damaged);
        damaged[at] = image[at];
        let Some(found) = found else {
            assert!(is_checked(&image, at), "refused for byte {at}");
            detected += 1;
            continue;
        };
        detected += u64::from(found.diagnosed);
        if is_checked(&image, at) && at >= HEADER_BYTES as usize {
            assert!(found.diagnosed, "a flipped bit at byte {at} of a checked header is found");
        }
        for (number, all) in &whole.threads {
            let none = Vec::new();
            let events = found.threads.iter().find(|(other, _)| other == number);
            let events = events.map_or(&none, |(_, events)| events);
            // In the chunk with the flipped bit, the events before it are intact.
            let before = all.iter().take_while(|event| {
                event.offset + SLOT_BYTES * (1 + event.continuations) <= at
                    && event.offset >= CHUNK_HEADER_BYTES
            });
            let before = before.count().min(all.len());
            let chunk_lost = is_checked(&image, at) || events.is_empty();
            if !chunk_lost {
                // A damaged slot may be read as a continuation of the event before it.
                let sure = before.saturating_sub(1).min(events.len());
                assert!(events.len() + 1 >= before, "byte {at}: {} of {before}", events.len());
                assert_eq!(events[..sure], all[..sure], "byte {at}: a prefix");
                in_slots += 1;
            }
        }
    }
    println!("{detected} of {} flipped bits detected, {in_slots} streams compared", DAMAGES / 2);
    assert!(detected > 100 && in_slots > 1000);
}
