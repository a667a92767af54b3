//! Rank files that `gammachi pack` made of files of version 1, before files were written small: still read.
//!
//! A packed file is a head (magic, version `u32`, CRC-32 of the original `u32`, its length `u64`, reserved
//! `u32`, CRC-32 of bytes 0 to 27 `u32`) and pieces that follow each other without a gap in the original:
//! event slots as `columns`, all else as bytes, both compressed with zstd, and stretches of zeros as their
//! length. Each piece stands alone, with the checksum of what it holds, so damage costs one piece.

mod columns;
mod packed_file;
mod pieces;

pub(crate) use packed_file::PackedFile;

/// First eight bytes of a packed file.
pub(crate) const PACKED_MAGIC: [u8; 8] = *b"GAMMPACK";
/// Version of the packed form.
const PACKED_VERSION: u32 = 1;
/// Bytes of the head.
const PACKED_HEAD_BYTES: usize = 32;
