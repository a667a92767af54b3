//! A mapped packed file. Its pieces are found by their offset in the original and unpacked on
//! demand.

use std::fs::File;

use super::pieces::{PIECE_HEAD_BYTES, Piece, PieceHead, PieceKind};
use super::{PACKED_HEAD_BYTES, PACKED_MAGIC, PACKED_VERSION};
use crate::encoding::checksum;
use crate::file_map::FileMap;
use crate::version_1::NARROW_SLOT_BYTES;

/// Unpacked slots.
#[derive(Debug, Clone)]
pub struct Block {
    /// Offset of the first slot in the original.
    pub first: usize,
    /// The slots.
    pub bytes: Vec<u8>,
}

/// An open packed file.
#[derive(Debug)]
pub struct PackedFile {
    map: FileMap,
    /// Size of the original in bytes.
    pub original_bytes: u64,
    pieces: Vec<Piece>,
    /// Bytes of the original covered by the pieces: all, or up to the damage.
    pub covered: usize,
    /// A problem with the file, and its position in it.
    pub damage: Option<(u64, String)>,
}

impl PackedFile {
    /// Whether a file begins like a packed one.
    pub fn is_packed(start: &[u8]) -> bool {
        start.starts_with(&PACKED_MAGIC)
    }

    /// Maps a packed file and finds its pieces.
    ///
    /// # Errors
    /// If its head is invalid, a sentence about it; later damage is in [`PackedFile::damage`].
    pub fn open(file: &File) -> Result<Self, String> {
        let map = FileMap::of_file(file).map_err(|error| error.to_string())?;
        let word = |at: usize| {
            let bytes = map.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u32::from_le_bytes).unwrap_or_default()
        };
        if map.len() < PACKED_HEAD_BYTES || word(28) != checksum(&map[..28]) {
            return Err("the head of the packed file is damaged".into());
        }
        if word(8) != PACKED_VERSION {
            return Err(format!(
                "packed in version {}, this gammachi reads version {PACKED_VERSION}; unpack it with the \
                 gammachi that packed it",
                word(8)
            ));
        }
        let original_bytes = u64::from(word(16)) | u64::from(word(20)) << 32;
        let mut packed = Self { map, original_bytes, pieces: Vec::new(), covered: 0, damage: None };
        packed.find_pieces();
        Ok(packed)
    }

    fn find_pieces(&mut self) {
        let mut at = PACKED_HEAD_BYTES;
        loop {
            let head = self.map.get(at..).and_then(PieceHead::read);
            let sound = head.filter(|head| {
                head.offset == self.covered as u64
                    && head.offset + u64::from(head.length) <= self.original_bytes
                    && at + PIECE_HEAD_BYTES + head.packed as usize <= self.map.len()
            });
            let Some(head) = sound else {
                let whole = self.original_bytes;
                let what = format!(
                    "the packed file is damaged or cut off: {} of {whole} bytes of the original exist",
                    self.covered
                );
                self.damage = Some((at as u64, what));
                return;
            };
            if head.kind == PieceKind::End {
                if self.covered as u64 != self.original_bytes {
                    let what = "the packed file ends before its original does".to_owned();
                    self.damage = Some((at as u64, what));
                }
                return;
            }
            self.pieces.push(Piece { head, at: at + PIECE_HEAD_BYTES });
            self.covered += head.length as usize;
            at += PIECE_HEAD_BYTES + head.packed as usize;
        }
    }

    /// End of the zeros that contain an offset of the original. A few bytes may represent very many
    /// zeros, which must not be visited one by one.
    pub(crate) fn zeros_until(&self, offset: usize) -> Option<usize> {
        let behind = self.pieces.partition_point(|piece| piece.head.offset <= offset as u64);
        let head = self.pieces.get(behind.checked_sub(1)?)?.head;
        let end = (head.offset + u64::from(head.length)) as usize;
        (head.kind == PieceKind::Zeros && offset < end).then_some(end)
    }

    /// Where the packed file could not be read.
    pub(crate) fn unreadable_from(&self) -> Option<usize> {
        self.map.unreadable_from()
    }

    /// Passes everything except event slots to `take`, with its offset in the original, omitting
    /// zeros. Returns the damaged pieces.
    pub(crate) fn plain(&self, mut take: impl FnMut(usize, &[u8])) -> Vec<(u64, String)> {
        let mut damaged = Vec::new();
        for piece in self.pieces.iter().filter(|piece| piece.head.kind == PieceKind::Bytes) {
            match piece.unpack(&self.map) {
                Ok(bytes) => take(piece.head.offset as usize, &bytes),
                Err(what) => damaged.push((piece.head.offset, what.to_owned())),
            }
        }
        damaged
    }

    /// The slots at an offset of the original and all that follow in the same piece; one empty slot
    /// if there are only zeros.
    ///
    /// # Errors
    /// If the piece is damaged or missing, a sentence about it.
    pub fn block_at(&self, offset: usize) -> Result<Block, String> {
        let missing = || "the packed file has no event slots there".to_owned();
        let behind = self.pieces.partition_point(|piece| piece.head.offset <= offset as u64);
        let piece = behind.checked_sub(1).map(|at| &self.pieces[at]).ok_or_else(missing)?;
        let first = piece.head.offset as usize;
        let inside = offset + NARROW_SLOT_BYTES <= first + piece.head.length as usize;
        match piece.head.kind {
            _ if !inside => Err(missing()),
            PieceKind::Zeros => Ok(Block { first: offset, bytes: vec![0; NARROW_SLOT_BYTES] }),
            PieceKind::Slots | PieceKind::PlainSlots => {
                Ok(Block { first, bytes: piece.unpack(&self.map)? })
            }
            PieceKind::Bytes | PieceKind::End => Err(missing()),
        }
    }
}
