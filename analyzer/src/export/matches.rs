//! Matches a run for its tables: messages, members of collective operations, and sends and receives
//! without a partner, each sorted by part and time. All processes and threads take part.
//!
//! A message belongs to the part of its destination, where it is matched. The members of a
//! collective operation, and sends without a partner, may be found by a process that does not write
//! their part; they go there afterwards, in rounds of bounded memory.
//!
//! The order of rows is a total one: rows that compare equal are equal in every column.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::analysis::Analysis;
use crate::processes::Processes;
use crate::spill::{Merged, Record, Sorted, Spill};
use crate::string_table::StringTable;
use crate::timeline::matching::{
    CollectiveInstance, MatchFinding, MatchInterest, MatchSink, Message, Side, Unmatched,
};
use crate::timeline::whole_ns;

use super::content::{Content, Export};
use super::error::{ExportError, agreed};
use super::parts::Parts;
use super::progress::Progress;
use super::rows::{MemberRow, MessageRow, TRUNCATED, UnmatchedRow, WILDCARD};
use super::traffic::NEVER;

/// Records that a process sends in one round.
const ROUND_RECORDS: usize = 1 << 17;

/// A communicator, and the lane of a persistent operation on it.
type Sequence = (u32, u32);

/// What matching found for the parts of this process.
#[derive(Debug, Default)]
pub struct Matches {
    messages: Vec<Sorted<MessageRow>>,
    members: Vec<Sorted<MemberRow>>,
    unmatched: Vec<Sorted<UnmatchedRow>>,
    /// By collection of members, the names of functions.
    names: Vec<Vec<String>>,
    /// Number in the run of the first operation of each sequence.
    first_operations: HashMap<Sequence, u64>,
    /// Collective operations with an exported member that were found here.
    pub operations: u64,
}

/// Records for parts of this process and for those of others.
struct Divided<T> {
    own: Spill<T>,
    others: Spill<T>,
}

impl<T: Record> Divided<T> {
    fn new(scratch: &Path, threads: usize) -> Self {
        Self { own: Spill::one_of(scratch, threads), others: Spill::one_of(scratch, threads) }
    }

    fn push(&mut self, record: T, is_own: bool) -> io::Result<()> {
        if is_own { self.own.push(record) } else { self.others.push(record) }
    }
}

/// Collects what one thread finds.
struct Sink<'s, 'a> {
    content: &'s Content<'a>,
    parts: &'s Parts,
    progress: &'s dyn Progress,
    messages: Spill<MessageRow>,
    members: Divided<MemberRow>,
    unmatched: Divided<UnmatchedRow>,
    names: StringTable,
    /// Number of operations of each sequence, exported or not.
    lengths: BTreeMap<Sequence, u64>,
    operations: u64,
    failed: Option<io::Error>,
}

fn end_ns(seconds: Option<f64>) -> i64 {
    seconds.map_or(NEVER, whole_ns)
}

impl Sink<'_, '_> {
    fn note_result(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }
}

impl MatchSink for Sink<'_, '_> {
    fn wants(&self) -> MatchInterest {
        // The completions of non-blocking collective operations.
        MatchInterest { completions: true, ..MatchInterest::default() }
    }

    fn take(&mut self, finding: &MatchFinding) {
        match finding {
            MatchFinding::Message(message) => self.message(message),
            MatchFinding::Collective(instance) => self.collective(instance),
            MatchFinding::Unmatched(unmatched) => self.unmatched(unmatched),
            _ => {}
        }
    }
}

impl Sink<'_, '_> {
    fn message(&mut self, message: &Message) {
        self.progress.advance(1);
        let (send, receive) = (&message.send, &message.receive);
        let place = |rank| self.content.exported_rank(rank);
        let (Some(source), Some(destination)) = (place(send.rank), place(receive.rank)) else {
            return;
        };
        let send_begin_ns = whole_ns(send.begin_s);
        if self.failed.is_some() || !self.content.wants_time(send_begin_ns) {
            return;
        }
        let kept = self.messages.push(MessageRow {
            send_begin_ns,
            send_end_ns: end_ns(send.end_s),
            receive_begin_ns: whole_ns(receive.begin_s),
            receive_end_ns: end_ns(receive.end_s),
            bytes: message.bytes,
            part: self.parts.part_of(destination) as u32,
            source: source as u32,
            destination: destination as u32,
            communicator: message.communicator,
            tag: message.tag,
            send_thread: send.thread,
            receive_thread: receive.thread,
            flags: if message.wildcard { WILDCARD } else { 0 }
                | if message.truncated { TRUNCATED } else { 0 },
        });
        self.note_result(kept);
    }

    fn collective(&mut self, instance: &CollectiveInstance) {
        self.progress.advance(1);
        let CollectiveInstance { communicator, lane, number, .. } = *instance;
        let length = self.lengths.entry((communicator, lane)).or_default();
        *length = (*length).max(number + 1);
        let first_ns = instance.members.iter().map(|m| whole_ns(m.begin_s)).min().unwrap_or(0);
        if self.failed.is_some() || !self.content.wants_time(first_ns) {
            return;
        }
        let function = self.names.number(&instance.function);
        let mut any = false;
        for member in &instance.members {
            let Some(rank) = self.content.exported_rank(member.rank) else { continue };
            any = true;
            let part = self.parts.part_of(rank);
            let row = MemberRow {
                first_ns,
                begin_ns: whole_ns(member.begin_s),
                end_ns: end_ns(member.end_s),
                complete_ns: end_ns(member.complete_s),
                number,
                sent_bytes: member.sent_bytes,
                received_bytes: member.received_bytes,
                part: part as u32,
                communicator,
                lane,
                rank: rank as u32,
                thread: member.thread,
                function,
                missing: instance.missing,
                mismatched: u32::from(instance.mismatched),
            };
            let kept = self.members.push(row, self.parts.own().contains(&part));
            self.note_result(kept);
        }
        self.operations += u64::from(any);
    }

    fn unmatched(&mut self, unmatched: &Unmatched) {
        let begin_ns = whole_ns(unmatched.begin_s);
        let Some(rank) = self.content.exported_rank(unmatched.rank) else { return };
        if self.failed.is_some() || !self.content.wants_time(begin_ns) {
            return;
        }
        let part = self.parts.part_of(rank);
        let row = UnmatchedRow {
            begin_ns,
            bytes: unmatched.bytes,
            part: part as u32,
            rank: rank as u32,
            partner: unmatched.partner.unwrap_or(u32::MAX),
            communicator: unmatched.communicator.unwrap_or(u32::MAX),
            reason: unmatched.reason as u32,
            receives: u32::from(unmatched.side == Side::Receive),
        };
        let kept = self.unmatched.push(row, self.parts.own().contains(&part));
        self.note_result(kept);
    }
}

/// Sends records to the processes of their parts; collects what others send here. Goes on after a
/// failure, so that no other process waits in vain.
fn redistribute<T: Record + Serialize + DeserializeOwned>(
    processes: &Processes,
    others: &[Sorted<T>],
    mut prepared: impl FnMut(usize, T) -> (usize, T),
    scratch: &Path,
) -> io::Result<Sorted<T>> {
    let mut received = Spill::new(scratch);
    if processes.is_alone() {
        return received.sorted();
    }
    let mut failed = None;
    let mut left = Merged::new(others);
    loop {
        let mut outgoing: Vec<(bool, Vec<T>)> =
            (0..processes.count()).map(|_| (false, Vec::new())).collect();
        let mut count = 0;
        for record in left.by_ref().take(ROUND_RECORDS) {
            count += 1;
            match record {
                Ok((collection, record)) => {
                    let (process, record) = prepared(collection, record);
                    outgoing[process].1.push(record);
                }
                Err(error) => {
                    failed.get_or_insert(error);
                }
            }
        }
        outgoing.iter_mut().for_each(|(more, _)| *more = count == ROUND_RECORDS);
        let mut more = false;
        for (has_more, records) in processes.exchange(outgoing) {
            more |= has_more;
            for record in records {
                if failed.is_none()
                    && let Err(error) = received.push(record)
                {
                    failed = Some(error);
                }
            }
        }
        if !more {
            return failed.map_or_else(|| received.sorted(), Err);
        }
    }
}

impl Matches {
    /// Matches the run; what does not fit into memory goes to nameless files in `scratch`. All
    /// processes call this.
    ///
    /// # Errors
    /// No space for these files; on all processes, if one has none.
    pub fn gather(export: Export, parts: &Parts) -> Result<Self, ExportError> {
        let Export { content, scratch, progress } = export;
        let threads = rayon::current_num_threads();
        let sink = || Sink {
            content,
            parts,
            progress,
            messages: Spill::one_of(scratch, threads),
            members: Divided::new(scratch, threads),
            unmatched: Divided::new(scratch, threads),
            names: StringTable::default(),
            lengths: BTreeMap::new(),
            operations: 0,
            failed: None,
        };
        progress.stage("matching messages", None);
        let own = parts.own_positions(content);
        let analysis = Analysis::divided_at(content.run, content.timeline, own);
        // `None` on all processes, or on none.
        let Some((_, sinks)) = analysis.matches(sink) else { return Ok(Self::default()) };
        let matches = Self::of_sinks(sinks, (&content.run.processes, parts), scratch);
        let (matches, gathered) = match matches.map_err(ExportError::io(scratch)) {
            Ok(matches) => (matches, Ok(())),
            Err(error) => (Self::default(), Err(error)),
        };
        agreed(&content.run.processes, gathered)?;
        Ok(matches)
    }

    fn of_sinks(
        sinks: Vec<Sink>,
        (processes, parts): (&Processes, &Parts),
        scratch: &Path,
    ) -> io::Result<Self> {
        let mut failed = None;
        let mut matches = Self::default();
        let mut others = (Vec::new(), Vec::new());
        let mut lengths: BTreeMap<Sequence, u64> = BTreeMap::new();
        for sink in sinks {
            matches.operations += sink.operations;
            for (sequence, length) in sink.lengths {
                let known = lengths.entry(sequence).or_default();
                *known = (*known).max(length);
            }
            let sorted = (|| {
                matches.messages.push(sink.messages.sorted()?);
                matches.members.push(sink.members.own.sorted()?);
                matches.unmatched.push(sink.unmatched.own.sorted()?);
                others.0.push(sink.members.others.sorted()?);
                others.1.push(sink.unmatched.others.sorted()?);
                sink.failed.map_or(Ok(()), Err)
            })();
            matches.names.push(sink.names.into_strings());
            if let Err(error) = sorted {
                failed.get_or_insert(error);
            }
        }
        let names: BTreeSet<String> = matches.names.iter().flatten().cloned().collect();
        let shared = processes.share((names, Vec::from_iter(lengths)));
        let names: Vec<String> = Vec::from_iter(
            shared.iter().flat_map(|(names, _)| names).cloned().collect::<BTreeSet<_>>(),
        );
        matches.first_operations = first_operations(shared.iter().flat_map(|(_, lengths)| lengths));
        let to = |part: u32| parts.process_of(part as usize);
        let of_collections = &matches.names;
        let members = redistribute(
            processes,
            &others.0,
            |collection, row: MemberRow| {
                let name = &of_collections[collection][row.function as usize];
                let function = names.binary_search(name).unwrap_or_default() as u32;
                (to(row.part), MemberRow { function, ..row })
            },
            scratch,
        );
        let unmatched =
            redistribute(processes, &others.1, |_, row: UnmatchedRow| (to(row.part), row), scratch);
        if let Some(error) = failed {
            return Err(error);
        }
        matches.members.push(members?);
        matches.unmatched.push(unmatched?);
        matches.names.push(names);
        Ok(matches)
    }

    /// Number of messages.
    pub fn message_count(&self) -> u64 {
        self.messages.iter().map(Sorted::count).sum()
    }

    /// Number of rows of all three kinds.
    pub fn row_count(&self) -> u64 {
        let members = self.members.iter().map(Sorted::count).sum::<u64>();
        self.message_count() + members + self.unmatched.iter().map(Sorted::count).sum::<u64>()
    }

    /// Messages by part and begin of the send.
    pub fn messages(&self) -> impl Iterator<Item = io::Result<MessageRow>> {
        Merged::new(&self.messages).map(|row| row.map(|(_, row)| row))
    }

    /// Members of collective operations by part and begin of the operation, each with the number of
    /// the operation in the run and the name of its function.
    pub fn members(&self) -> impl Iterator<Item = io::Result<(MemberRow, u64, &str)>> {
        Merged::new(&self.members).map(|row| {
            row.map(|(collection, row)| {
                let first = self.first_operations.get(&(row.communicator, row.lane));
                let name = &self.names[collection][row.function as usize];
                (row, first.copied().unwrap_or(0) + row.number, name.as_str())
            })
        })
    }

    /// Sends and receives without a partner by part and begin.
    pub fn unmatched(&self) -> impl Iterator<Item = io::Result<UnmatchedRow>> {
        Merged::new(&self.unmatched).map(|row| row.map(|(_, row)| row))
    }
}

/// Number in the run of the first operation of each sequence: all sequences one after another.
fn first_operations<'l>(
    lengths: impl Iterator<Item = &'l (Sequence, u64)>,
) -> HashMap<Sequence, u64> {
    let mut longest: BTreeMap<Sequence, u64> = BTreeMap::new();
    for (sequence, length) in lengths {
        let known = longest.entry(*sequence).or_default();
        *known = (*known).max(*length);
    }
    let mut next = 0;
    let first = longest.into_iter().map(|(sequence, length)| {
        let first = next;
        next += length;
        (sequence, first)
    });
    first.collect()
}
