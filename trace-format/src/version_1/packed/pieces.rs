//! The pieces of a packed file: each has a head of 32 bytes, followed by the packed bytes.
//!
//! | offset | type | field |
//! |---|---|---|
//! | 0 | 4 bytes | magic, ASCII `GPCE` |
//! | 4 | u32 | kind: 1 bytes, 2 slots as columns, 3 zeros, 4 end of the file, 5 slots as bytes |
//! | 8 | u64 | offset in the original |
//! | 16 | u32 | bytes in the original |
//! | 20 | u32 | packed bytes that follow |
//! | 24 | u32 | CRC-32 of the original's bytes |
//! | 28 | u32 | CRC-32 of bytes 0 to 27 |

use super::columns;
use crate::encoding::checksum;

/// Size of a piece's head in bytes.
pub(super) const PIECE_HEAD_BYTES: usize = 32;
const PIECE_MAGIC: [u8; 4] = *b"GPCE";
/// Maximum size of the contents of a piece.
const MAX_BYTES: u32 = 1 << 28;
/// Columns are at most this much longer than their slots.
const COLUMNS_FACTOR: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum PieceKind {
    Bytes = 1,
    Slots = 2,
    Zeros = 3,
    End = 4,
    PlainSlots = 5,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PieceHead {
    pub kind: PieceKind,
    pub offset: u64,
    pub length: u32,
    pub packed: u32,
    pub crc: u32,
}

impl PieceHead {
    /// A valid head at the start of `bytes`.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let head = bytes.get(..PIECE_HEAD_BYTES)?;
        let word = |at: usize| head[at..at + 4].try_into().map(u32::from_le_bytes).ok();
        if head[..4] != PIECE_MAGIC || word(28)? != checksum(&head[..28]) {
            return None;
        }
        let kind = match word(4)? {
            1 => PieceKind::Bytes,
            2 => PieceKind::Slots,
            3 => PieceKind::Zeros,
            4 => PieceKind::End,
            5 => PieceKind::PlainSlots,
            _ => return None,
        };
        let offset = u64::from_le_bytes(head[8..16].try_into().ok()?);
        let length = word(16)?;
        (length <= MAX_BYTES).then_some(Self {
            kind,
            offset,
            length,
            packed: word(20)?,
            crc: word(24)?,
        })
    }
}

/// A piece and the location of its packed bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub head: PieceHead,
    /// Offset of the packed bytes in the packed file.
    pub at: usize,
}

impl Piece {
    /// The contents of the piece.
    pub fn unpack(&self, file: &[u8]) -> Result<Vec<u8>, &'static str> {
        const DAMAGED: &str = "a piece of the packed file is damaged";
        let length = self.head.length as usize;
        let packed = file.get(self.at..self.at + self.head.packed as usize).ok_or(DAMAGED)?;
        let expand = |most: usize| zstd::bulk::decompress(packed, most).map_err(|_| DAMAGED);
        let bytes = match self.head.kind {
            PieceKind::Zeros | PieceKind::End => vec![0; length],
            PieceKind::Bytes | PieceKind::PlainSlots => expand(length)?,
            PieceKind::Slots => {
                let columns = expand(length * COLUMNS_FACTOR + (1 << 20))?;
                columns::from_columns(&columns).ok_or(DAMAGED)?
            }
        };
        match bytes.len() == length && checksum(&bytes) == self.head.crc {
            true => Ok(bytes),
            false => Err(DAMAGED),
        }
    }
}
