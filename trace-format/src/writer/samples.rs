//! Writes samples of the program's own code.

use std::collections::HashMap;
use std::io;

use super::{RankFileWriter, chunk};
use crate::encoded::samples::{MAX_ENCODED_BYTES, SampleEncoder};
use crate::layout::{CHUNK_HEADER_BYTES, CHUNK_SAMPLE_AREA, CHUNK_SAMPLES};
use crate::plain::{bytes_of, bytes_of_all};
use crate::reader::SampledThread;
use crate::samples::*;

impl RankFileWriter {
    /// Writes what was sampled of a thread. Ticks are rounded down where a half's samples span more
    /// than 2³² of them.
    ///
    /// # Errors
    /// If the file cannot be written, the samples' times decrease, or there are too many paths.
    pub fn samples(&mut self, sampled: &SampledThread) -> io::Result<()> {
        let chunks = sample_chunks(self.areas, sampled)?;
        self.areas += 1;
        self.append(&chunks)
    }
}

/// The chunks of a sampled thread: its area, with the given number in the file, and those of the
/// halves that were full.
///
/// # Errors
/// If the samples' times decrease, or there are too many paths.
pub fn sample_chunks(area: u32, sampled: &SampledThread) -> io::Result<Vec<u8>> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what);
    let (tree, paths) = tree_of(&sampled.paths);
    if tree.len() > MAX_NODES {
        return Err(invalid("too many call paths"));
    }
    let is_decreasing = |pair: &[crate::reader::Sample]| pair[0].ticks > pair[1].ticks;
    if sampled.samples.windows(2).any(is_decreasing) {
        return Err(invalid("samples that are not in order of time"));
    }
    let ticks = || sampled.samples.chunks(HALF_SAMPLES).map(|half| half.iter().map(|of| of.ticks));
    let span = ticks().filter_map(|mut half| Some((half.next()?, half.next_back()?)));
    let longest = span.map(|(first, last)| last - first).max().unwrap_or(0);
    let mut head = SampleHead {
        begin: sampled.begin,
        end: sampled.end.unwrap_or(0),
        cpu_ns: sampled.cpu_ns,
        delivered: sampled.delivered,
        in_mpi: sampled.in_mpi,
        lost: sampled.lost,
        cut: sampled.samples.iter().filter(|sample| !sample.complete).count() as u64,
        nodes: tree.len() as u32,
        thread: sampled.thread.unwrap_or(NO_THREAD),
        thread_os_id: sampled.os_id,
        shift: (u64::BITS - longest.leading_zeros()).saturating_sub(u32::BITS),
        ..SampleHead::default()
    };
    let halves: Vec<(u64, Vec<RawSample>)> = sampled
        .samples
        .chunks(HALF_SAMPLES)
        .map(|half| {
            let base = half[0].ticks;
            let raw = half.iter().map(|sample| RawSample {
                time: ((sample.ticks - base) >> head.shift) as u32,
                path: match sample.path.and_then(|path| paths.get(path as usize)) {
                    Some(node) if sample.complete => *node,
                    Some(node) => node | PATH_INCOMPLETE,
                    None => NO_PATH | PATH_INCOMPLETE,
                },
                address: sample.address,
            });
            (base, raw.collect())
        })
        .collect();
    let last = halves.len().saturating_sub(1);
    let mut content = vec![0; SAMPLE_AREA_BYTES - CHUNK_HEADER_BYTES];
    let mut put = |at: usize, bytes: &[u8]| {
        content[at - CHUNK_HEADER_BYTES..][..bytes.len()].copy_from_slice(bytes);
    };
    if let Some((base, samples)) = halves.last() {
        let (sequence, count) = (last as u32, samples.len() as u32);
        head.halves[0] = HalfHead { base: *base, sequence, count, ..HalfHead::default() };
        put(HALVES_AT, bytes_of_all(samples));
    }
    put(HEAD_AT, bytes_of(&head));
    put(NODES_AT, bytes_of_all(&tree));
    let mut chunks = chunk((CHUNK_SAMPLE_AREA, area, 0, 0), &content);
    for (sequence, (base, samples)) in halves[..last].iter().enumerate() {
        chunks.extend(appended(area, sequence as u32, &head, *base, samples));
    }
    Ok(chunks)
}

/// The chunk of a full half.
fn appended(
    area: u32,
    sequence: u32,
    head: &SampleHead,
    base: u64,
    samples: &[RawSample],
) -> Vec<u8> {
    let mut encoded = vec![0; MAX_ENCODED_BYTES];
    let used = SampleEncoder::default().encode(samples, &mut encoded);
    let (form, stored) = match used {
        Some(used) => (FORM_ENCODED, &encoded[..used]),
        None => (FORM_RAW, bytes_of_all(samples)),
    };
    let copy = HalfCopy { base, count: samples.len() as u32, form };
    let body = [bytes_of(head), bytes_of(&copy), stored].concat();
    chunk((CHUNK_SAMPLES, area, sequence, 0), &body)
}

/// The tree of some paths, and the node of each path.
fn tree_of(paths: &[Vec<u64>]) -> (Vec<PathNode>, Vec<u32>) {
    let mut tree = vec![PathNode::default()];
    let mut known: HashMap<(u32, u64), u32> = HashMap::new();
    let nodes = paths.iter().map(|path| {
        path.iter().rev().fold(0, |parent, &address| {
            *known.entry((parent, address)).or_insert_with(|| {
                tree.push(PathNode { address, parent, reserved: 0 });
                tree.len() as u32 - 1
            })
        })
    });
    let nodes = nodes.collect();
    (tree, nodes)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::header::FileHeader;
    use crate::layout::*;
    use crate::reader::{RankFile, Sample};
    use crate::writer::header_area;

    fn file_of(chunks: &[u8]) -> RankFile {
        let fixed = FixedHeader::new(CounterKind::Tsc, 0, 0, 1);
        let mut bytes = header_area(&fixed, &FileHeader::default()).unwrap();
        bytes.extend(chunks);
        RankFile::from_bytes(Path::new("test"), &bytes).unwrap()
    }

    /// Enough samples for two appended halves and a third that is not full.
    fn sampled(begin: u64) -> SampledThread {
        let paths = vec![vec![0x10, 0x20, 0x30], vec![0x11, 0x20, 0x30], Vec::new()];
        let sample = |index: u64| Sample {
            ticks: begin + 1000 * index,
            address: 0x400 + index % 9,
            path: (!index.is_multiple_of(7)).then_some((index % 3) as u32),
            complete: !index.is_multiple_of(7) && !index.is_multiple_of(5),
        };
        SampledThread {
            thread: Some(0),
            os_id: 42,
            begin,
            end: Some(begin + 9_000_000),
            cpu_ns: 50_000_000,
            delivered: 5100,
            in_mpi: 90,
            lost: 10,
            samples: (0..2 * HALF_SAMPLES as u64 + 904).map(sample).collect(),
            paths,
        }
    }

    /// A sampled thread whose paths are written out, because their order may differ.
    fn spelled(thread: &SampledThread) -> Vec<(Sample, Option<&[u64]>)> {
        let path = |of: &Sample| of.path.map(|path| &thread.paths[path as usize][..]);
        thread.samples.iter().map(|of| (Sample { path: None, ..*of }, path(of))).collect()
    }

    #[test]
    fn samples_are_read_as_they_were_written() {
        let second = SampledThread { thread: None, end: None, ..sampled(7) };
        let empty = SampledThread { begin: 3, os_id: 9, ..SampledThread::default() };
        let written = [sampled(1 << 40), second, empty];
        let chunks = (0..).zip(&written).flat_map(|(area, of)| sample_chunks(area, of).unwrap());
        let file = file_of(&chunks.collect::<Vec<u8>>());
        assert_eq!(file.diagnoses, []);
        let read = file.sampled_threads();
        assert_eq!(read.iter().map(|of| of.begin).collect::<Vec<_>>(), [3, 7, 1 << 40]);
        for (read, written) in read.iter().zip(written.iter().rev()) {
            assert!(spelled(read) == spelled(written));
            let counts = |of: &SampledThread| {
                (of.thread, of.os_id, of.end, of.cpu_ns, of.delivered, of.in_mpi, of.lost)
            };
            assert_eq!(counts(read), counts(written));
        }
    }

    #[test]
    fn long_spans_are_rounded() {
        let far = 1 << 37;
        let mut thread = sampled(1);
        thread.samples.truncate(3);
        thread.samples[2].ticks = far + 77;
        let read = file_of(&sample_chunks(0, &thread).unwrap()).sampled_threads();
        let ticks = read[0].samples[2].ticks;
        assert!((far..=far + 77).contains(&ticks), "{ticks}");
    }

    #[test]
    fn threads_that_had_an_area_in_turn_are_apart() {
        let early = SampledThread { os_id: 41, ..sampled(1) };
        let late = sampled(1 << 40);
        let (head_of, paths) = (
            |of: &SampledThread| SampleHead {
                begin: of.begin,
                thread_os_id: of.os_id,
                ..SampleHead::default()
            },
            late.paths.clone(),
        );
        let raw = [RawSample { time: 5, path: NO_PATH | PATH_INCOMPLETE, address: 1 }];
        // The late thread has the area and the halves from 1 on.
        let mut chunks =
            sample_chunks(0, &SampledThread { samples: Vec::new(), paths, ..late.clone() })
                .unwrap();
        chunks.extend(appended(0, 1, &head_of(&late), late.begin, &raw));
        chunks.extend(appended(0, 0, &head_of(&early), early.begin, &raw));
        let file = file_of(&chunks);
        assert_eq!(file.diagnoses, []);
        let read = file.sampled_threads();
        let seen = |of: &SampledThread| (of.os_id, of.samples.len(), of.samples[0].ticks);
        assert_eq!(
            read.iter().map(seen).collect::<Vec<_>>(),
            [(41, 1, 6), (42, 1, late.begin + 5)]
        );
        assert_eq!(read[1].delivered, 5100, "the area's head is the newest");
    }

    #[test]
    fn area_without_a_thread_has_paths() {
        let mut thread = sampled(1);
        thread.samples.truncate(1);
        thread.samples[0] = Sample { path: Some(0), complete: true, ..thread.samples[0] };
        let mut chunks = sample_chunks(0, &thread).unwrap();
        let head = SampleHead { begin: 1, ..SampleHead::default() };
        let raw = [RawSample { time: 0, path: 3, address: 0x400 }];
        chunks[HEAD_AT..HEAD_AT + 8].fill(0);
        chunks.extend(appended(0, 0, &head, 1, &raw));
        let file = file_of(&chunks);
        assert_eq!(file.diagnoses, []);
        let read = file.sampled_threads();
        assert_eq!((read.len(), read[0].samples.len(), read[0].paths[0].len()), (1, 1, 3));
    }

    #[test]
    fn half_that_was_appended_and_not_yet_cleared_counts_once() {
        let mut thread = sampled(1);
        thread.samples.truncate(10);
        let mut chunks = sample_chunks(0, &thread).unwrap();
        let head = SampleHead { begin: 1, ..SampleHead::default() };
        let raw = vec![RawSample::default(); 10];
        chunks.extend(appended(0, 0, &head, 1, &raw));
        let file = file_of(&chunks);
        assert_eq!(file.diagnoses, []);
        assert_eq!(file.sampled_threads()[0].samples.len(), 10);
    }

    #[test]
    fn damage_leaves_what_is_valid() {
        let whole = sample_chunks(0, &sampled(1)).unwrap();
        let samples = |bytes: &[u8]| {
            let file = file_of(bytes);
            let read = file.sampled_threads();
            let samples = read.iter().map(|of| of.samples.len()).sum::<usize>();
            (samples, file.diagnoses.len())
        };
        let all = 2 * HALF_SAMPLES + 904;
        assert_eq!(samples(&whole), (all, 0));
        // A bit in the first appended half: the later ones are still there.
        let mut damaged = whole.clone();
        damaged[SAMPLE_AREA_BYTES + CHUNK_HEADER_BYTES + 300] ^= 4;
        assert_eq!(samples(&damaged), (all - HALF_SAMPLES, 2), "damaged, and missing");
        // The parent of a node is the node itself: paths end before it.
        let mut damaged = whole.clone();
        damaged[NODES_AT + 3 * size_of::<PathNode>() + 8] = 3;
        let file = file_of(&damaged);
        assert_eq!(file.diagnoses.len(), 2, "{:?}", file.diagnoses);
        assert_eq!(file.sampled_threads()[0].samples.len(), all);
        // An impossible count in the head.
        let mut damaged = whole.clone();
        let count_at = HEAD_AT + std::mem::offset_of!(SampleHead, halves) + 12;
        damaged[count_at + 3] = 0xff;
        assert_eq!(samples(&damaged).0, 2 * HALF_SAMPLES);
        // The header of the area's chunk: halves without paths.
        let mut damaged = whole.clone();
        damaged[5] ^= 1;
        let file = file_of(&damaged);
        let read = file.sampled_threads();
        assert_eq!(read[0].samples.len(), 2 * HALF_SAMPLES);
        assert!(read[0].samples.iter().all(|of| of.path.is_none() && !of.complete));
        assert!(!file.diagnoses.is_empty());
    }

    #[test]
    fn every_truncation_is_read_and_reported() {
        let whole = sample_chunks(0, &sampled(1)).unwrap();
        for cut in (1..whole.len()).step_by(4999).chain([whole.len() - 64]) {
            let file = file_of(&whole[..cut]);
            let read = file.sampled_threads();
            let samples = read.iter().map(|of| of.samples.len()).sum::<usize>();
            assert!(samples < 2 * HALF_SAMPLES + 904, "{cut}");
            assert!(!file.diagnoses.is_empty() || cut.is_multiple_of(64), "{cut}");
            assert!(cut >= SAMPLE_AREA_BYTES || !file.diagnoses.is_empty(), "{cut}");
        }
    }
}
