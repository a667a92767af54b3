//! Definitions of what a program makes and frees: communicators, windows, files, and their names.
//!
//! As long as every event stays, so does every definition. Where the file has a limit that is reached, or only
//! totals are kept, they go into a chunk of their own; when that is full, the ones of what was freed since make
//! room, oldest first: the chunk is written anew in another place, then the old one does not count any more.
//! What was left out is counted, and the count stands in the chunk. So a program that duplicates and frees a
//! communicator a million times costs neither disk nor memory.

use std::sync::{Mutex, PoisonError};

use trace_format::encoding::{encode, framed_bytes};
use trace_format::header::Definition;

use crate::store::keeping;
use crate::store::trace_file::{self, DefinitionChunk};

/// What a definition is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// A communicator, by its local id.
    Communicator(u16),
    /// A window or file, by its local id.
    Object(u32),
}

#[derive(Debug)]
struct Record {
    of: Made,
    payload: Vec<u8>,
    /// Whether it says that there is such a thing, not only its name.
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
    /// What stands in the chunk, in its order.
    records: Vec<Record>,
    /// Communicators, and windows and files, whose definitions were left out.
    left_out: (u64, u64),
    chunk: Option<DefinitionChunk>,
    /// The chunk before, whose place can be used again.
    unused: Option<DefinitionChunk>,
}

static TRANSIENT: Mutex<Transient> =
    Mutex::new(Transient { records: Vec::new(), left_out: (0, 0), chunk: None, unused: None });

/// Adds a definition of something that the program may free; what cannot be written is lost with the space
/// that it had no room in.
pub fn define(of: Made, definition: &Definition) {
    if keeping::keeps_all() {
        let _ = trace_file::define(definition);
        return;
    }
    let Some(payload) = encode(definition) else { return };
    let is_first = !matches!(definition, Definition::CommunicatorName { .. });
    let mut transient = TRANSIENT.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = transient.add(Record { of, payload, is_first, freed: false });
}

/// The program has freed it: its definitions may make room for others.
pub fn freed(of: Made) {
    let mut transient = TRANSIENT.lock().unwrap_or_else(PoisonError::into_inner);
    // Ids come again: those before the latest were freed before.
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

    /// Leaves out what was freed, as far as the rest does not fill half of a chunk, and writes a chunk anew.
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
                Made::Communicator(_) => left_out.0 += u64::from(record.is_first),
                Made::Object(_) => left_out.1 += u64::from(record.is_first),
            }
            false
        });
        let (communicators, objects) = self.left_out;
        let count = encode(&Definition::LeftOut { communicators, objects }).ok_or("no count")?;
        let needed: u64 = self.records.iter().map(Record::framed).sum();
        // Where what the program holds is more than half, it gets room to grow by as much.
        let wanted = (2 * needed).max(usual) + framed_bytes(count.len()) as u64;
        let place = self.unused.take().filter(|place| place.bytes() >= wanted);
        let mut chunk = place.map_or_else(|| trace_file::open_definitions(wanted), Ok)?;
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
