//! Writes a run for <https://ui.perfetto.dev>: a process per rank, a track per thread, a slice per call, an arrow per
//! message, lanes of parallel regions and of calls on files, and the samples of the program's code. The protocol
//! buffers and field numbers are those of `protos/perfetto/trace`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::export::content::{Call, Content, Export, What};
use crate::export::linked::{StepWriter, write_steps};
use crate::export::samples::Samples;
use crate::export::steps::{Kind, Link, Step, step_name};
use crate::export::{ExportError, Written};

use super::encoded::{
    CLOCK_SNAPSHOT, Encoded, INTERNED_DATA, NEEDS_STATE, SEQUENCE_FLAGS, STATE_CLEARED, TIMESTAMP,
    TRACK_DESCRIPTOR, TRACK_EVENT,
};
use super::lanes::write_lanes;
use super::samples::write_samples;
use super::tracks::{pid, tid, track_of};

// ClockSnapshot: BUILTIN_CLOCK_BOOTTIME is the default clock of timestamps.
const BOOTTIME: u64 = 6;
const REALTIME: u64 = 1;
// TrackEvent.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;

/// Names of annotations, interned under their positions from 1 on.
const ANNOTATIONS: [&str; 9] = [
    "communicator",
    "peer",
    "tag",
    "bytes",
    "received_bytes",
    "polls",
    "flops",
    "operation",
    "unreturned",
];

struct PerfettoWriter<'a> {
    content: &'a Content<'a>,
    file: BufWriter<File>,
    /// Whether the name of each function, region and tool reason has been written.
    named: Vec<bool>,
    /// Samples of the program's code, if there are any.
    samples: Option<Samples>,
}

impl PerfettoWriter<'_> {
    fn packet(&mut self, fill: impl FnOnce(&mut Encoded)) -> io::Result<()> {
        let packet = Encoded::packet(1, fill);
        self.file.write_all(&packet.0)
    }

    fn time(&self, at_ns: i64) -> u64 {
        (at_ns - self.content.head.first_ns).max(0) as u64
    }

    /// The number of a step's interned name, its category, and the name if it is new.
    fn name(&mut self, step: &Step) -> (u64, u64, Option<String>) {
        let head = &self.content.head;
        let (functions, regions) = (head.functions.len(), head.regions.len());
        let (index, category) = match (step.kind, step.call.what) {
            (Kind::Region(region), _) => (functions + region as usize, 2),
            (Kind::Call, What::Call(function)) => (function as usize, 1),
            (Kind::Call, What::Tool(reason)) => (functions + regions + reason as usize, 3),
            _ => (functions, 2),
        };
        if self.named.len() <= index {
            self.named.resize(index + 1, false);
        }
        let new = !std::mem::replace(&mut self.named[index], true);
        let text = new.then(|| step_name(self.content, step));
        (index as u64 + 1, category, text)
    }
}

fn annotations(content: &Content, call: &Call, operation: Option<&Link>, event: &mut Encoded) {
    let attributes = content.attributes(call);
    let mut annotate = |place: u64, fill: &dyn Fn(&mut Encoded)| {
        event.message(4, |annotation| {
            annotation.number(1, place);
            fill(annotation);
        });
    };
    let mut number = |place: u64, value: Option<i64>| {
        if let Some(value) = value {
            annotate(place, &|annotation| {
                annotation.signed(4, value);
            });
        }
    };
    number(2, attributes.peer_rank.map(i64::from));
    number(3, attributes.tag.map(i64::from));
    number(4, attributes.bytes.map(|bytes| bytes as i64));
    number(5, attributes.received_bytes.map(|bytes| bytes as i64));
    number(6, call.event.polls.map(|(count, _)| count as i64));
    number(8, operation.map(|link| link.number as i64));
    number(9, call.end_ns.is_none().then_some(1));
    if let Some(flops) = attributes.flops {
        annotate(7, &|annotation| {
            annotation.fixed(5, flops.to_bits());
        });
    }
    if let Some(standing) = attributes.standing {
        let name = &content.head.communicators[standing.communicator as usize].name;
        annotate(1, &|annotation| {
            annotation.text(6, name);
        });
    }
}

impl StepWriter for PerfettoWriter<'_> {
    fn preamble(&mut self) -> io::Result<()> {
        let content = self.content;
        let head = &content.head;
        self.packet(|packet| {
            packet.number(SEQUENCE_FLAGS, STATE_CLEARED).message(INTERNED_DATA, |interned| {
                for (name, iid) in ANNOTATIONS.iter().zip(1..) {
                    interned.message(3, |entry| {
                        entry.number(1, iid).text(2, name);
                    });
                }
                for (name, iid) in ["call", "region", "recorder"].iter().zip(1..) {
                    interned.message(1, |entry| {
                        entry.number(1, iid).text(2, name);
                    });
                }
            });
        })?;
        if let Some(zero_unix_ns) = head.zero_unix_ns {
            let unix_ns = (zero_unix_ns + head.first_ns).max(0) as u64;
            self.packet(|packet| {
                packet.message(CLOCK_SNAPSHOT, |snapshot| {
                    for (clock, at) in [(BOOTTIME, 0), (REALTIME, unix_ns)] {
                        snapshot.message(1, |entry| {
                            entry.number(1, clock).number(2, at);
                        });
                    }
                });
            })?;
        }
        for (place, rank) in head.ranks.iter().enumerate() {
            let bound = match rank.bound_ns {
                Some(bound) => format!(", clock within {bound:.0} ns"),
                None => String::new(),
            };
            let process = format!("rank {} ({}{bound})", rank.rank, rank.host);
            self.packet(|packet| {
                packet.message(TRACK_DESCRIPTOR, |track| {
                    track.number(1, track_of(place, None));
                    track.message(3, |descriptor| {
                        descriptor.number(1, pid(place)).text(6, &process);
                    });
                });
            })?;
            for &thread in &rank.threads {
                self.packet(|packet| {
                    packet.message(TRACK_DESCRIPTOR, |track| {
                        track.number(1, track_of(place, Some(thread)));
                        track.number(5, track_of(place, None));
                        track.message(4, |descriptor| {
                            descriptor.number(1, pid(place)).number(2, tid(place, thread));
                            descriptor.text(5, &format!("thread {thread}"));
                        });
                    });
                })?;
            }
        }
        write_lanes(content, &mut self.file)?;
        if let Some(samples) = &self.samples {
            write_samples(content, samples, &mut self.file)?;
        }
        Ok(())
    }

    fn begin(&mut self, step: &Step, sent: &[Link], operation: Option<&Link>) -> io::Result<()> {
        let content = self.content;
        let (iid, category, new) = self.name(step);
        let at = self.time(step.at_ns);
        let track = track_of(step.call.rank, Some(step.call.thread));
        self.packet(|packet| {
            packet.number(TIMESTAMP, at).number(SEQUENCE_FLAGS, NEEDS_STATE);
            if let Some(name) = new {
                packet.message(INTERNED_DATA, |interned| {
                    interned.message(2, |entry| {
                        entry.number(1, iid).text(2, &name);
                    });
                });
            }
            packet.message(TRACK_EVENT, |event| {
                event.number(9, SLICE_BEGIN).number(11, track).number(3, category).number(10, iid);
                if step.kind == Kind::Call {
                    annotations(content, &step.call, operation, event);
                }
                for link in sent {
                    event.fixed(47, link.number + 1);
                }
            });
        })
    }

    fn end(&mut self, step: &Step, received: &[Link]) -> io::Result<()> {
        let at = self.time(step.at_ns);
        let track = track_of(step.call.rank, Some(step.call.thread));
        self.packet(|packet| {
            packet.number(TIMESTAMP, at).number(SEQUENCE_FLAGS, NEEDS_STATE);
            packet.message(TRACK_EVENT, |event| {
                event.number(9, SLICE_END).number(11, track);
                // An arrow that a wrong clock reverses is drawn, too: it does not end here.
                for link in received {
                    event.fixed(47, link.number + 1);
                }
            });
        })
    }

    fn close(self) -> io::Result<()> {
        self.file.into_inner().map(drop).map_err(|error| error.into_error())
    }
}

/// Writes the run.
pub fn write(export: Export, path: &Path) -> Result<Written, ExportError> {
    let samples = Samples::read(export.content);
    let writer = |content, file| PerfettoWriter { content, file, named: Vec::new(), samples };
    write_steps(export, path, writer)
}
