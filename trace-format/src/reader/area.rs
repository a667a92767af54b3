//! Locates the slots of an event chunk: in the file itself, or in memory, decoded from the file's
//! data.
//!
//! Events are identified by the offset of their slot. Slots stored plainly keep their offset in the
//! file; all others get offsets behind the end of the file.

use std::cell::RefCell;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Diagnosis, RankFile};
use crate::encoded::{Decoder, Words};
use crate::encoding::checksum;
use crate::layout::{CHUNK_ENCODED, CHUNK_HEADER_BYTES, ChunkHeader, SLOT_BYTES, Slot};
use crate::plain::{bytes_of_all, read_plain};

/// Nothing is wrong with the file: with `--keep last` a process that runs writes over its oldest calls.
const REPLACED: &str = "newer calls took the place of a chunk of events while it was read";

/// The slots of one event chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Area {
    /// Offset of the first slot, and size of all in bytes.
    pub first: usize,
    pub bytes: usize,
    /// Counter when the chunk was opened.
    pub opened: u64,
    /// Position and size in bytes of the data in the file.
    pub at: usize,
    pub stored_bytes: usize,
    pub form: Form,
}

/// How slots are stored in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Form {
    /// As plain slots.
    Plain,
    /// Encoded, with this CRC-32.
    Encoded {
        /// The checksum.
        crc: u32,
    },
}

/// Slots decoded into memory.
#[derive(Debug, Clone)]
pub(super) struct Unpacked {
    /// Offset of the first slot.
    pub first: usize,
    slots: Arc<Vec<Words>>,
}

impl Unpacked {
    /// The slots' bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        bytes_of_all(&self.slots)
    }

    /// Bytes from one offset to another.
    #[inline]
    pub fn get(&self, from: usize, to: usize) -> Option<&[u8]> {
        self.bytes().get(from.checked_sub(self.first)?..to.checked_sub(self.first)?)
    }

    /// The slot at an offset; an empty one if there is none.
    #[inline]
    pub fn slot(&self, offset: usize) -> Slot {
        self.bytes().get(offset - self.first..).and_then(read_plain).unwrap_or_default()
    }

    pub fn end(&self) -> usize {
        self.first + self.bytes().len()
    }

    /// Whether they include the slot at an offset.
    pub fn has(&self, offset: usize) -> bool {
        (self.first..self.end()).contains(&offset)
    }
}

impl Area {
    /// Offset behind the last slot.
    pub fn end(&self) -> usize {
        self.first + self.bytes
    }

    /// Position in the file of the data for the slot at an offset.
    pub fn file_offset(&self, offset: usize) -> usize {
        match self.form {
            Form::Plain => offset,
            Form::Encoded { .. } => self.at,
        }
    }

    /// End of the data in the file.
    pub fn file_end(&self) -> usize {
        self.at + self.stored_bytes
    }
}

impl RankFile {
    /// Slots of an area. `None` if they are plain slots in the file. `before` holds slots that the
    /// reader no longer needs; their memory is reused.
    ///
    /// # Errors
    /// What is damaged there.
    pub(super) fn unpacked(
        &self,
        area: &Area,
        before: Option<Unpacked>,
    ) -> Result<Option<Unpacked>, Diagnosis> {
        let Form::Encoded { crc } = area.form else { return Ok(None) };
        let mut slots = before.and_then(|before| Arc::into_inner(before.slots)).unwrap_or_default();
        slots.clear();
        self.decode(area, crc, &mut slots)?;
        Ok(Some(Unpacked { first: area.first, slots: Arc::new(slots) }))
    }

    fn decode(&self, area: &Area, crc: u32, slots: &mut Vec<Words>) -> Result<(), Diagnosis> {
        thread_local! {
            static DECODER: RefCell<Box<Decoder>> = RefCell::new(Box::new(Decoder::new()));
        }
        let damaged = |what: &str| {
            let what = if self.was_replaced(area, crc) { REPLACED } else { what };
            Diagnosis { offset: area.at as u64, what: what.to_owned() }
        };
        let body = &*self.contents.piece(area.at..area.file_end());
        if checksum(body) != crc {
            return Err(damaged("a chunk of events is damaged (checksum)"));
        }
        let most = area.bytes / SLOT_BYTES;
        DECODER
            .with_borrow_mut(|decoder| decoder.decode(area.opened, body, most, slots))
            .map_err(|damage| damaged(&damage.to_string()))
    }

    /// Whether the space of an encoded chunk has been given to newer events since the file was opened. Its header
    /// changes before its contents.
    fn was_replaced(&self, area: &Area, crc: u32) -> bool {
        let header = self.contents.piece(area.at - CHUNK_HEADER_BYTES..area.at);
        let same = |header: ChunkHeader| {
            header.kind == CHUNK_ENCODED
                && (header.body_crc, header.opened_ticks) == (crc, area.opened)
        };
        !read_plain(&header).is_some_and(same)
    }
}
