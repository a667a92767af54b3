//! Definitions of objects that a program makes and frees: communicators, windows, files, and their
//! names.
//!
//! As long as every event is kept, so is every definition. If the file's size limit is reached, or
//! only totals are kept, definitions go to a chunk of their own. When that chunk is full,
//! definitions of objects freed since are dropped, oldest first: the chunk is rewritten at another
//! position, then the old one is invalidated. The chunk also counts the dropped definitions. So a
//! program that duplicates and frees a communicator a million times costs neither disk space nor
//! memory.

use trace_format::encoding::{encode, framed_bytes};
use trace_format::header::Definition;

use crate::host::lock::Lock;
use crate::store::keeping;
use crate::store::trace_file::{self, DefinitionChunk};

/// The object of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A communicator, by its local id.
    Communicator(u16),
    /// A window or file, by its local id.
    Object(u32),
}

#[derive(Debug)]
struct Record {
    of: Subject,
    payload: Vec<u8>,
    /// Whether it defines the object itself, not its name or topology.
    is_first: bool,
    freed: bool,
}

impl Record {
    fn framed(&self) -> u64 {
        framed_bytes(self.payload.len()) as u64
    }
}

#[derive(Debug)]
struct Transient {
    /// Contents of the chunk, in order.
    records: Vec<Record>,
    /// Number of communicators, and of windows and files, whose definitions were dropped.
    left_out: (u64, u64),
    chunk: Option<DefinitionChunk>,
    /// The previous chunk, whose space can be reused.
    unused: Option<DefinitionChunk>,
}

static TRANSIENT: Lock<Transient> =
    Lock::new(Transient { records: Vec::new(), left_out: (0, 0), chunk: None, unused: None });

/// Adds a definition of an object that the program may free. If there is no space for it, it is
/// lost.
pub fn define(of: Subject, definition: &Definition) {
    if keeping::keeps_all() {
        let _ = trace_file::define(definition);
        return;
    }
    let Some(payload) = encode(definition) else { return };
    let belongs = |of: &Definition| {
        matches!(of, Definition::CommunicatorName { .. } | Definition::Topology(_))
    };
    let is_first = !belongs(definition);
    let mut transient = TRANSIENT.lock();
    let _ = transient.add(Record { of, payload, is_first, freed: false });
}

/// The object was freed: its definitions may be dropped.
pub fn freed(of: Subject) {
    let mut transient = TRANSIENT.lock();
    // Ids are reused: definitions before the latest of this id belong to objects freed earlier.
    let latest =
        transient.records.iter_mut().rev().take_while(|record| !(record.of == of && record.freed));
    latest.filter(|record| record.of == of).for_each(|record| record.freed = true);
}

impl Transient {
    fn add(&mut self, record: Record) -> Result<(), String> {
        let added = match &mut self.chunk {
            Some(chunk) => trace_file::add_definition(chunk, &record.payload)?,
            None => false,
        };
        self.records.push(record);
        if added { Ok(()) } else { self.make_room() }
    }

    /// Drops definitions of freed objects until the rest fills no more than half of a chunk, and
    /// rewrites the chunk.
    fn make_room(&mut self) -> Result<(), String> {
        let usual = 2 * keeping::freed_definition_bytes();
        let all: u64 = self.records.iter().map(Record::framed).sum();
        let mut too_much = all.saturating_sub(usual / 2);
        let left_out = &mut self.left_out;
        self.records.retain(|record| {
            if !record.freed || too_much == 0 {
                return true;
            }
            too_much = too_much.saturating_sub(record.framed());
            match record.of {
                Subject::Communicator(_) => left_out.0 += u64::from(record.is_first),
                Subject::Object(_) => left_out.1 += u64::from(record.is_first),
            }
            false
        });
        let (communicators, objects) = self.left_out;
        let count = encode(&Definition::LeftOut { communicators, objects }).ok_or("no count")?;
        let needed: u64 = self.records.iter().map(Record::framed).sum();
        // If the program's objects need more than half, make room for as much again.
        let wanted = (2 * needed).max(usual) + framed_bytes(count.len()) as u64;
        let reusable = self.unused.take().filter(|chunk| chunk.bytes() >= wanted);
        let mut chunk = reusable.map_or_else(|| trace_file::open_definitions(wanted), Ok)?;
        let payloads =
            std::iter::once(&count[..]).chain(self.records.iter().map(|r| &r.payload[..]));
        trace_file::fill_definitions(&mut chunk, payloads)?;
        let old = self.chunk.replace(chunk);
        if let Some(old) = old {
            trace_file::retire_definitions(&old)?;
            self.unused = Some(old);
        }
        Ok(())
    }
}
