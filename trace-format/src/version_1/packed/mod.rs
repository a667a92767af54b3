//! Reads packed rank files, which `gammachi pack` made from files of version 1 before files were
//! written compactly.
//!
//! A packed file consists of a head (magic, version `u32`, CRC-32 of the original `u32`, its length
//! `u64`, reserved `u32`, CRC-32 of bytes 0 to 27 `u32`) and pieces that cover the original without
//! gaps: event slots as `columns` and other data as bytes, both compressed with zstd, and ranges of
//! zeros as their length. Each piece is independent and has a checksum of its contents, so damage
//! costs only one piece.

mod columns;
mod packed_file;
mod pieces;

pub(crate) use packed_file::PackedFile;

/// First eight bytes of a packed file.
pub(crate) const PACKED_MAGIC: [u8; 8] = *b"GAMMPACK";
/// Version of the packed form.
const PACKED_VERSION: u32 = 1;
/// Size of the head in bytes.
const PACKED_HEAD_BYTES: usize = 32;
