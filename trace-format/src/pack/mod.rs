//! Rank files at rest: a rank file comes in, a packed one that holds every byte of it goes out, and back.
//!
//! A packed file is a head and pieces that follow each other without a gap in the original: event slots
//! as `columns`, all else as bytes, both compressed with zstd, and stretches of zeros as their length.
//! Each piece stands alone, with the checksum of what it holds, so a reader takes only what it needs, and
//! damage costs one piece. `docs/pack.md` is the same in prose.

mod columns;
mod packed_file;
mod pieces;

use std::io::{self, Write};

use crate::encoding::checksum;
use crate::layout::{CHUNK_GRANULE, CONTINUATION, SLOT_BYTES, Slot};
use crate::plain::read_plain;
use crate::reader::RankFile;
use pieces::{Piece, PieceHead, PieceKind};

pub use packed_file::{Block, PackedFile, UnpackError, unpack};

/// First eight bytes of a packed file.
pub const PACKED_MAGIC: [u8; 8] = *b"GAMMPACK";
/// Version of the packed form; the original has its own.
pub const PACKED_VERSION: u32 = 1;
/// Bytes of the head: magic, version `u32`, CRC-32 of the original `u32`, its length `u64`, reserved
/// `u32`, CRC-32 of bytes 0 to 27 `u32`.
pub const PACKED_HEAD_BYTES: usize = 32;

/// Slots of a piece from which on it ends with its event.
const PIECE_SLOTS: usize = 2048;
/// Longest piece of plain bytes.
const PIECE_BYTES: usize = 1 << 20;
/// A chunk longer than this is kept as plain bytes: no recorder makes one.
const MOST_CHUNK_BYTES: usize = 1 << 28;

/// The head of a packed file.
pub(crate) fn head(original: &[u8]) -> [u8; PACKED_HEAD_BYTES] {
    let mut head = [0; PACKED_HEAD_BYTES];
    head[..8].copy_from_slice(&PACKED_MAGIC);
    head[8..12].copy_from_slice(&PACKED_VERSION.to_le_bytes());
    head[12..16].copy_from_slice(&checksum(original).to_le_bytes());
    head[16..24].copy_from_slice(&(original.len() as u64).to_le_bytes());
    let crc = checksum(&head[..28]);
    head[28..].copy_from_slice(&crc.to_le_bytes());
    head
}

/// Packs a rank file. Each piece is unpacked again and compared before it is written; `progress` is told
/// the bytes of the original that are done. Gives the bytes written and the events (slots that are no
/// continuations) in them.
///
/// # Errors
/// When `out` cannot be written, or the file could not be read to its end.
pub fn pack(
    file: &RankFile,
    out: &mut impl Write,
    mut progress: impl FnMut(u64),
) -> io::Result<(u64, u64)> {
    let original = file.bytes();
    let mut packer = Packer { original, out, at: 0, written: 0, events: 0 };
    packer.put(&head(original))?;
    let mut areas = file.event_areas().to_vec();
    areas.sort_unstable();
    for (first, end) in areas {
        // Chunks of a damaged file may lie in one another.
        if first < packer.at || end > original.len() || end - first > MOST_CHUNK_BYTES {
            continue;
        }
        packer.plain_until(first)?;
        packer.slots_until(first, end)?;
        progress(packer.at as u64);
    }
    packer.plain_until(original.len())?;
    packer.piece(PieceKind::End, 0, &[])?;
    if let Some(unreadable) = file.unreadable() {
        return Err(io::Error::other(unreadable.to_string()));
    }
    progress(packer.at as u64);
    Ok((packer.written, packer.events))
}

struct Packer<'a, W> {
    original: &'a [u8],
    out: &'a mut W,
    /// Bytes of the original that are done.
    at: usize,
    written: u64,
    events: u64,
}

impl<W: Write> Packer<'_, W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn piece(&mut self, kind: PieceKind, length: usize, packed: &[u8]) -> io::Result<()> {
        let head = PieceHead {
            kind,
            offset: self.at as u64,
            length: length as u32,
            packed: packed.len() as u32,
            crc: checksum(&self.original[self.at..self.at + length]),
        };
        let back = Piece { head, at: 0 }.unpack(packed).map_err(io::Error::other)?;
        if back != self.original[self.at..self.at + length] {
            return Err(io::Error::other(
                "a piece does not come back as it was; please report this",
            ));
        }
        self.put(&head.bytes())?;
        self.put(packed)?;
        self.at += length;
        Ok(())
    }

    fn zeros(&mut self, until: usize) -> io::Result<()> {
        while self.at < until {
            self.piece(PieceKind::Zeros, (until - self.at).min(PIECE_BYTES), &[])?;
        }
        Ok(())
    }

    /// Packs everything up to an offset as bytes, stretches of zeros apart.
    fn plain_until(&mut self, until: usize) -> io::Result<()> {
        let granule = CHUNK_GRANULE as usize;
        let end_of = |at: usize| (at / granule + 1) * granule;
        while self.at < until {
            let mut end = self.at;
            let zero = |from: usize, to: usize| self.original[from..to].iter().all(|b| *b == 0);
            let is_zero = zero(self.at, end_of(self.at).min(until));
            while end < until
                && end - self.at < PIECE_BYTES
                && zero(end, end_of(end).min(until)) == is_zero
            {
                end = end_of(end).min(until);
            }
            if is_zero {
                self.zeros(end)?;
            } else {
                let packed = Piece::compress(&self.original[self.at..end])?;
                self.piece(PieceKind::Bytes, end - self.at, &packed)?;
            }
        }
        Ok(())
    }

    /// Packs the slots of a chunk.
    fn slots_until(&mut self, first: usize, end: usize) -> io::Result<()> {
        let whole = first + (end - first) / SLOT_BYTES * SLOT_BYTES;
        let area = &self.original[first..whole];
        let used = area.iter().rposition(|byte| *byte != 0).map_or(0, |last| last / SLOT_BYTES + 1);
        let slot =
            |index: usize| read_plain::<Slot>(&area[index * SLOT_BYTES..]).unwrap_or_default();
        let is_event = |index: &usize| !matches!(slot(*index).function(), 0 | CONTINUATION);
        self.events += (0..used).filter(is_event).count() as u64;
        let mut from = 0;
        while from < used {
            // An event's continuations stay with it, and what lies behind an empty slot with that.
            let mut to = (from + PIECE_SLOTS).min(used);
            let empty = (from..to).any(|index| slot(index).word == 0);
            while to < used && (empty || slot(to).word == 0 || slot(to).function() == CONTINUATION)
            {
                to = if empty || slot(to).word == 0 { used } else { to + 1 };
            }
            let bytes = &area[from * SLOT_BYTES..to * SLOT_BYTES];
            match columns::to_columns(bytes) {
                Some(columns) => {
                    let packed = Piece::compress(&columns)?;
                    self.piece(PieceKind::Slots, bytes.len(), &packed)?;
                }
                None => {
                    let packed = Piece::compress(bytes)?;
                    self.piece(PieceKind::PlainSlots, bytes.len(), &packed)?;
                }
            }
            from = to;
        }
        self.zeros(whole)
    }
}
