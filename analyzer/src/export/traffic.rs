//! Collects messages and collective operations in one pass of matching, each in order of time, for
//! formats that draw them. What tables show of them is in [`super::matches`].

use std::io;
use std::path::Path;

use trace_format::plain::Plain;

use crate::analysis::Analysis;
use crate::spill::{Record, Sorted, Spill};
use crate::timeline::matching::{
    self, CollectiveInstance, MatchFinding, MatchSink, Message, MessageEnd,
};
use crate::timeline::whole_ns;

use super::content::{Content, Export};
use super::error::ExportError;
use super::progress::Progress;
use super::steps::Link;

/// Time of a call that never returned.
pub const NEVER: i64 = i64::MIN;

/// A message between exported ranks.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageRecord {
    /// Beginning of the call that sends.
    pub send_begin_ns: i64,
    /// Beginning of the call that posts the receive.
    pub receive_begin_ns: i64,
    /// End of the call that completes the receive, or [`NEVER`].
    pub receive_end_ns: i64,
    /// Counter of the source at the beginning.
    pub send_begin_ticks: u64,
    /// Counter of the destination when the receive was posted.
    pub receive_begin_ticks: u64,
    /// Counter of the destination when it was complete.
    pub receive_end_ticks: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Number of the message in the order in which matches were found, from 0.
    pub number: u64,
    /// Position of the communicator among [`super::content::Head::communicators`].
    pub communicator: u32,
    pub tag: i32,
    /// Positions of source and destination among [`super::content::Head::ranks`].
    pub source: u32,
    /// See `source`.
    pub destination: u32,
    /// Thread that sent.
    pub send_thread: u32,
    /// Thread that posted the receive.
    pub receive_thread: u32,
}

// SAFETY: repr(C), integers only, eight of 8 bytes and then six of 4: no padding.
unsafe impl Plain for MessageRecord {}
const _: () = assert!(size_of::<MessageRecord>() == 8 * 8 + 6 * 4);

impl Record for MessageRecord {
    type Key = (i64, u64);
    fn key(&self) -> (i64, u64) {
        (self.send_begin_ns, self.number)
    }
}

/// A rank's part in a collective operation.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemberRecord {
    /// Earliest beginning of any member.
    pub first_ns: i64,
    /// Number of the operation in the run, from 0.
    pub operation: u64,
    /// Counter of the member at the beginning.
    pub begin_ticks: u64,
    /// Beginning of the member's call.
    pub begin_ns: i64,
    pub sent_bytes: u64,
    /// Position among [`super::content::Head::ranks`].
    pub rank: u32,
    /// Position of the communicator.
    pub communicator: u32,
}
// SAFETY: repr(C), integers only, five of 8 bytes and then two of 4: no padding.
unsafe impl Plain for MemberRecord {}
const _: () = assert!(size_of::<MemberRecord>() == 5 * 8 + 2 * 4);

impl Record for MemberRecord {
    type Key = (i64, u64, u32);
    fn key(&self) -> (i64, u64, u32) {
        (self.first_ns, self.operation, self.rank)
    }
}

/// Messages, collective operations and unmatched ends, in order of time.
#[derive(Debug)]
pub struct Traffic {
    /// Messages by the beginning of their send.
    pub messages: Sorted<MessageRecord>,
    /// Members of collective operations, grouped by operation, in order of its first beginning.
    pub members: Sorted<MemberRecord>,
}

struct Sink<'a, 'b> {
    content: &'b Content<'a>,
    progress: &'b dyn Progress,
    messages: Spill<MessageRecord>,
    members: Spill<MemberRecord>,
    operations: u64,
    matched: u64,
    failed: Option<io::Error>,
}

impl Sink<'_, '_> {
    fn note_result(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }
}

fn end_ns(seconds: Option<f64>) -> i64 {
    seconds.map_or(NEVER, whole_ns)
}

impl MatchSink for Sink<'_, '_> {
    fn take(&mut self, finding: &MatchFinding) {
        match finding {
            MatchFinding::Message(message) => self.message(message),
            MatchFinding::Collective(instance) => self.collective(instance),
            _ => {}
        }
    }
}

impl Sink<'_, '_> {
    fn message(&mut self, message: &Message) {
        self.progress.advance(1);
        let number = self.matched;
        self.matched += 1;
        let MessageEnd { rank: source, begin_s, .. } = message.send;
        let begin_ns = whole_ns(begin_s);
        let place = |rank| self.content.exported_rank(rank);
        let (Some(source), Some(destination)) = (place(source), place(message.receive.rank)) else {
            return;
        };
        if self.failed.is_some() || !self.content.wants_time(begin_ns) {
            return;
        }
        let (send, receive) = (&message.send, &message.receive);
        let kept = self.messages.push(MessageRecord {
            send_begin_ns: begin_ns,
            receive_begin_ns: whole_ns(receive.begin_s),
            receive_end_ns: end_ns(receive.end_s),
            send_begin_ticks: send.begin_ticks,
            receive_begin_ticks: receive.begin_ticks,
            receive_end_ticks: receive.end_ticks.unwrap_or(u64::MAX),
            bytes: message.bytes,
            number,
            communicator: message.communicator,
            tag: message.tag,
            source: source as u32,
            destination: destination as u32,
            send_thread: send.thread,
            receive_thread: receive.thread,
        });
        self.note_result(kept);
    }

    fn collective(&mut self, instance: &CollectiveInstance) {
        self.progress.advance(1);
        let operation = self.operations;
        self.operations += 1;
        let first_ns = instance.members.iter().map(|m| whole_ns(m.begin_s)).min().unwrap_or(0);
        if self.failed.is_some() || !self.content.wants_time(first_ns) {
            return;
        }
        for member in &instance.members {
            let Some(rank) = self.content.exported_rank(member.rank) else { continue };
            let kept = self.members.push(MemberRecord {
                first_ns,
                operation,
                begin_ticks: member.begin_ticks,
                begin_ns: whole_ns(member.begin_s),
                sent_bytes: member.sent_bytes,
                rank: rank as u32,
                communicator: instance.communicator,
            });
            self.note_result(kept);
        }
    }
}

impl Traffic {
    /// Matches the run; what does not fit into memory goes to unnamed files.
    ///
    /// # Errors
    /// No space for these files.
    pub fn gather(export: Export) -> Result<Self, ExportError> {
        let Export { content, scratch, progress } = export;
        let possible = matching::is_possible(content.run);
        let mut sink = Sink {
            content,
            progress,
            messages: Spill::new(scratch),
            members: Spill::new(scratch),
            operations: 0,
            matched: 0,
            failed: None,
        };
        if possible {
            progress.stage("matching messages", None);
            Analysis::new(content.run, content.timeline).matches_in_order(&mut sink);
        }
        let io = |source| ExportError::Io { path: scratch.to_owned(), source };
        if let Some(error) = sink.failed {
            return Err(io(error));
        }
        Ok(Self {
            messages: sink.messages.sorted().map_err(io)?,
            members: sink.members.sorted().map_err(io)?,
        })
    }

    /// Sending ends of messages, in order of time.
    pub fn sent(&self) -> impl Iterator<Item = io::Result<Link>> + '_ {
        let messages = self.messages.iter();
        messages.map(|message| {
            message.map(|m| Link {
                at_ns: m.send_begin_ns,
                ticks: m.send_begin_ticks,
                number: m.number,
                bytes: m.bytes,
                rank: m.source,
                other: m.destination,
                tag: m.tag,
                communicator: m.communicator,
            })
        })
    }

    /// Receiving ends of messages that arrived, in order of time.
    ///
    /// # Errors
    /// No space for sorting them.
    pub fn received(&self, scratch: &Path) -> io::Result<Sorted<Link>> {
        let mut spill = Spill::new(scratch);
        for message in self.messages.iter() {
            let m = message?;
            if m.receive_end_ns != NEVER {
                spill.push(Link {
                    at_ns: m.receive_end_ns,
                    ticks: m.receive_end_ticks,
                    number: m.number,
                    bytes: m.bytes,
                    rank: m.destination,
                    other: m.source,
                    tag: m.tag,
                    communicator: m.communicator,
                })?;
            }
        }
        spill.sorted()
    }

    /// Beginnings of collective operations on each rank, in order of time.
    ///
    /// # Errors
    /// No space for sorting them.
    pub fn entered(&self, scratch: &Path) -> io::Result<Sorted<Link>> {
        let mut spill = Spill::new(scratch);
        for member in self.members.iter() {
            let m = member?;
            spill.push(Link {
                at_ns: m.begin_ns,
                ticks: m.begin_ticks,
                number: m.operation,
                bytes: m.sent_bytes,
                rank: m.rank,
                other: m.rank,
                tag: 0,
                communicator: m.communicator,
            })?;
        }
        spill.sorted()
    }

    /// Number of collective operations with an exported rank as a member.
    ///
    /// # Errors
    /// A temporary file cannot be read.
    pub fn operations(&self) -> io::Result<u64> {
        let (mut count, mut last) = (0, None);
        for member in self.members.iter() {
            let operation = Some(member?.operation);
            count += u64::from(operation != last);
            last = operation;
        }
        Ok(count)
    }
}
