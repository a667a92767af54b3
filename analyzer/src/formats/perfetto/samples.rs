//! Writes the samples of the program's code as `PerfSample` packets, of which Perfetto draws a flame graph for a thread, a
//! process or a stretch of time.

use std::collections::HashMap;
use std::io::{self, Write};

use crate::export::content::Content;
use crate::export::samples::{Frame, SampledThread, Samples};
use crate::string_table::StringTable;

use super::encoded::{
    Encoded, INTERNED_DATA, NEEDS_STATE, PACKET_DEFAULTS, PERF_SAMPLE, SEQUENCE_FLAGS,
    STATE_CLEARED, TIMESTAMP, TRACK_DESCRIPTOR, TRACK_EVENT,
};
use super::tracks::{pid, tid, track_of};

/// The sequence of these packets, beside that of the calls.
pub(super) const SEQUENCE: u64 = 2;
// InternedData.
pub(super) const FUNCTION_NAMES: u32 = 5;
pub(super) const FRAMES: u32 = 6;
pub(super) const CALLSTACKS: u32 = 7;
const MAPPING_PATHS: u32 = 17;
const SOURCE_PATHS: u32 = 18;
const MAPPINGS: u32 = 19;
/// Profiling.CpuMode.
const MODE_USER: u64 = 2;
/// PerfEvents.Counter: the task clock.
const TASK_CLOCK: u64 = 2;
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;

/// The number of an interned string of a kind, from 1 on, and whether it is new: then a message of it is written, too.
fn interned(table: &mut StringTable, field: u32, text: &str, new: &mut Encoded) -> (u64, bool) {
    let (number, is_new) = table.insert(text);
    let iid = u64::from(number) + 1;
    if is_new {
        new.message(field, |entry| {
            entry.number(1, iid).text(2, text);
        });
    }
    (iid, is_new)
}

/// What was defined on the sequence.
#[derive(Default)]
struct Definitions {
    names: StringTable,
    files: StringTable,
    modules: StringTable,
    frames: HashMap<(u32, Option<u32>), u64>,
    /// By the frames, the outermost first.
    stacks: HashMap<Vec<u64>, u64>,
}

impl Definitions {
    fn frame(&mut self, frame: &Frame, new: &mut Encoded) -> u64 {
        let key = (frame.number, frame.line);
        if let Some(known) = self.frames.get(&key) {
            return *known;
        }
        let iid = self.frames.len() as u64 + 1;
        let (name, _) = interned(&mut self.names, FUNCTION_NAMES, &frame.name(), new);
        let file = frame.file().map(|file| interned(&mut self.files, SOURCE_PATHS, file, new).0);
        let module = frame.function.map_or("", |of| of.module.as_str());
        let (mapping, is_new) = interned(&mut self.modules, MAPPING_PATHS, module, new);
        if is_new {
            new.message(MAPPINGS, |entry| {
                entry.number(1, mapping).number(7, mapping);
            });
        }
        new.message(FRAMES, |entry| {
            entry.number(1, iid).number(2, name).number(3, mapping);
            // Frames with the same place in a file would be one: each has an address of its own.
            entry.number(4, iid);
            if let Some(file) = file {
                entry.number(5, file);
            }
            if let Some(line) = frame.line {
                entry.number(6, line.into());
            }
        });
        self.frames.insert(key, iid);
        iid
    }

    fn stack(&mut self, frames: &[Frame], new: &mut Encoded) -> u64 {
        let frames: Vec<u64> = frames.iter().map(|frame| self.frame(frame, new)).collect();
        let next = self.stacks.len() as u64 + 1;
        if let Some(known) = self.stacks.get(&frames) {
            return *known;
        }
        new.message(CALLSTACKS, |entry| {
            entry.number(1, next);
            frames.iter().for_each(|frame| {
                entry.number(2, *frame);
            });
        });
        self.stacks.insert(frames, next);
        next
    }
}

/// Writes the samples of all threads, and a slice for the time of each rank that has none.
pub(super) fn write_samples(
    content: &Content,
    samples: &Samples,
    file: &mut dyn Write,
) -> io::Result<()> {
    let period_ns = samples.threads.first().map_or(1, |thread| thread.period_ns) as u64;
    let mut packet =
        |fill: &dyn Fn(&mut Encoded)| file.write_all(&Encoded::packet(SEQUENCE, fill).0);
    packet(&|packet| {
        packet.number(SEQUENCE_FLAGS, STATE_CLEARED).message(PACKET_DEFAULTS, |defaults| {
            defaults.message(12, |perf| {
                perf.message(1, |timebase| {
                    timebase.number(4, TASK_CLOCK).number(1, period_ns).text(10, "task clock");
                });
            });
        });
    })?;
    let mut definitions = Definitions::default();
    for thread in &samples.threads {
        // Threads with calls have tracks already.
        let number = thread.thread.unwrap_or(without_calls(thread));
        if thread.thread.is_none() {
            let name = Samples::thread_name(content, thread);
            packet(&|packet| {
                packet.message(TRACK_DESCRIPTOR, |track| {
                    track.number(1, track_of(thread.rank, Some(number)));
                    track.number(5, track_of(thread.rank, None));
                    track.message(4, |of| {
                        of.number(1, pid(thread.rank)).number(2, tid(thread.rank, number));
                        of.text(5, &name);
                    });
                });
            })?;
        }
        let mut stacks: HashMap<u32, u64> = HashMap::new();
        for (at_ns, stack) in &thread.samples {
            let mut new = Encoded::default();
            let iid = *stacks
                .entry(*stack)
                .or_insert_with(|| definitions.stack(&samples.frames(thread, *stack), &mut new));
            let at = (at_ns - content.head.first_ns).max(0) as u64;
            packet(&|packet| {
                packet.number(TIMESTAMP, at).number(SEQUENCE_FLAGS, NEEDS_STATE);
                if !new.0.is_empty() {
                    packet.bytes(INTERNED_DATA, &new.0);
                }
                packet.message(PERF_SAMPLE, |sample| {
                    sample.number(2, pid(thread.rank)).number(3, tid(thread.rank, number));
                    sample.number(4, iid).number(5, MODE_USER).number(6, at / period_ns);
                });
            })?;
        }
    }
    for of in &samples.unsampled {
        // Nobody knows when it was: a slice as long, at the rank's end.
        let track = track_of(of.rank, None);
        let end = (content.head.ranks[of.rank].end_ns - content.head.first_ns).max(0);
        for (kind, at) in [(SLICE_BEGIN, (end - of.ns).max(0)), (SLICE_END, end)] {
            packet(&|packet| {
                packet.number(TIMESTAMP, at as u64).number(SEQUENCE_FLAGS, NEEDS_STATE);
                packet.message(TRACK_EVENT, |event| {
                    event.number(9, kind).number(11, track);
                    event.text(23, &format!("{} in all", of.name));
                });
            })?;
        }
    }
    Ok(())
}

/// A number for a thread without calls that no other thread of its rank has.
fn without_calls(thread: &SampledThread) -> u32 {
    (1 << 10) + thread.index as u32
}
