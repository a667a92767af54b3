//! Where the slots of an event chunk are: in the file as they are, or in memory, made from what the file holds.
//!
//! Events are numbered and found again by the offset of their slot. Slots that stand in the file as they are
//! keep the offset that they have there; all others are given offsets behind the file's end.

use std::cell::RefCell;
use std::sync::Arc;

use super::{Diagnosis, RankFile};
use crate::encoded::{Decoder, Words};
use crate::encoding::checksum;
use crate::layout::{SLOT_BYTES, Slot};
use crate::plain::{bytes_of_all, read_plain};
use crate::version_1::{self, NARROW_SLOT_BYTES};

/// The slots of one event chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Area {
    /// Offset of the first slot, and bytes of all.
    pub first: usize,
    pub bytes: usize,
    /// Counter when the chunk was opened.
    pub opened: u64,
    /// Where what they are made from stands in the file, and how many bytes that is.
    pub at: usize,
    pub stored_bytes: usize,
    pub form: Form,
}

/// How slots stand in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As they are.
    Plain,
    /// As version 1 wrote them.
    Narrow,
    /// In few bytes, which have this CRC-32.
    Encoded {
        /// The checksum.
        crc: u32,
    },
}

/// Slots in memory.
#[derive(Debug, Clone)]
pub(super) struct Unpacked {
    /// Offset of the first.
    pub first: usize,
    slots: Arc<Vec<Words>>,
}

impl Unpacked {
    /// The slots' bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        bytes_of_all(&self.slots)
    }

    /// Bytes from an offset to another.
    #[inline]
    pub fn get(&self, from: usize, to: usize) -> Option<&[u8]> {
        self.bytes().get(from.checked_sub(self.first)?..to.checked_sub(self.first)?)
    }

    /// The slot at an offset; an empty one where none is.
    #[inline]
    pub fn slot(&self, offset: usize) -> Slot {
        self.bytes().get(offset - self.first..).and_then(read_plain).unwrap_or_default()
    }

    pub fn end(&self) -> usize {
        self.first + self.bytes().len()
    }

    /// Whether the slot at an offset is one of them.
    pub fn has(&self, offset: usize) -> bool {
        (self.first..self.end()).contains(&offset)
    }
}

impl Area {
    /// Behind the last slot.
    pub fn end(&self) -> usize {
        self.first + self.bytes
    }

    /// Where in the file the slot at an offset comes from.
    pub fn file_offset(&self, offset: usize) -> usize {
        match self.form {
            Form::Plain => offset,
            Form::Encoded { .. } => self.at,
            Form::Narrow => {
                self.at + offset.saturating_sub(self.first) / SLOT_BYTES * NARROW_SLOT_BYTES
            }
        }
    }

    /// Behind what the slots are made from.
    pub fn file_end(&self) -> usize {
        self.at + self.stored_bytes
    }
}

impl RankFile {
    /// Slots of an area from an offset on, not necessarily to its end; `None` where they stand in the file as
    /// they are. `before` is what the reader had and needs no more: its memory is used again.
    ///
    /// # Errors
    /// What is damaged there.
    pub(super) fn unpacked(
        &self,
        area: &Area,
        offset: usize,
        before: Option<Unpacked>,
    ) -> Result<Option<Unpacked>, Diagnosis> {
        if area.form == Form::Plain {
            return Ok(None);
        }
        let mut slots = before.and_then(|before| Arc::into_inner(before.slots)).unwrap_or_default();
        slots.clear();
        let first = match area.form {
            Form::Encoded { crc } => {
                self.decode(area, crc, &mut slots)?;
                area.first
            }
            _ => self.widen(area, offset, &mut slots)?,
        };
        Ok(Some(Unpacked { first, slots: Arc::new(slots) }))
    }

    fn decode(&self, area: &Area, crc: u32, slots: &mut Vec<Words>) -> Result<(), Diagnosis> {
        thread_local! {
            static DECODER: RefCell<Box<Decoder>> = RefCell::new(Box::new(Decoder::new()));
        }
        let damaged = |what: &str| Diagnosis { offset: area.at as u64, what: what.to_owned() };
        let body = self.map.get(area.at..area.file_end()).unwrap_or_default();
        if checksum(body) != crc {
            return Err(damaged("a chunk of events is damaged (checksum)"));
        }
        let most = area.bytes / SLOT_BYTES;
        DECODER
            .with_borrow_mut(|decoder| decoder.decode(area.opened, body, most, slots))
            .map_err(|damage| damaged(&damage.to_string()))
    }

    /// Slots of version 1; the offset of the first.
    fn widen(
        &self,
        area: &Area,
        offset: usize,
        slots: &mut Vec<Words>,
    ) -> Result<usize, Diagnosis> {
        let Some(packed) = &self.packed else {
            version_1::widen(self.map.get(area.at..area.file_end()).unwrap_or_default(), slots);
            return Ok(area.first);
        };
        let at = area.file_offset(offset);
        let piece = packed.block_at(at);
        let piece = piece.map_err(|what| Diagnosis { offset: at as u64, what })?;
        version_1::widen(&piece.bytes, slots);
        let skipped = piece.first.saturating_sub(area.at) / NARROW_SLOT_BYTES;
        Ok(area.first + skipped * SLOT_BYTES)
    }
}
