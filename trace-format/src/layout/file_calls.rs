//! Calls on files: the POSIX functions and the C library's streams, as far as they reach the system.

use serde::{Deserialize, Serialize};

/// What calls on a file do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u16)]
pub enum FileCallKind {
    /// open, creat, fopen.
    Open = 0,
    /// read, pread, readv, fread.
    Read = 1,
    /// write, pwrite, writev, fwrite; fflush, fseek and fclose if they write what the stream had kept.
    Write = 2,
    /// fsync, fdatasync.
    Sync = 3,
    /// ftruncate.
    Resize = 4,
    /// close, fclose.
    Close = 5,
    /// mmap. The file is read and written without calls, so only the mappings and their sizes are known.
    Map = 6,
}

impl FileCallKind {
    /// All kinds in the order of their numbers.
    pub const ALL: [Self; 7] =
        [Self::Open, Self::Read, Self::Write, Self::Sync, Self::Resize, Self::Close, Self::Map];
    /// In the field of the kind: the calls were made inside a call of MPI.
    pub const INSIDE_MPI: u16 = 1 << 4;
    /// In the field of the kind: functions of the C library's streams.
    pub const OF_STREAM: u16 = 1 << 5;

    /// The kind in a field with flags.
    pub fn from_field(field: u16) -> Option<Self> {
        Self::ALL.get(usize::from(field & 0xf)).copied()
    }
}

/// Calls on a file, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileCalls {
    /// Their number. A function of a stream counts if it makes the C library read or write.
    pub calls: u64,
    /// Bytes read, written or mapped.
    pub bytes: u64,
    /// Ticks inside them.
    pub inside: u64,
    /// Ticks from the first begin to the last end.
    pub span: u64,
}

/// A read is aligned if it begins at a multiple of so many bytes.
pub const PAGE: u64 = 4096;

/// Reads of a file whose offsets are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[repr(C)]
pub struct FileReads {
    /// Those that returned bytes.
    pub calls: u64,
    /// Those of them that began inside a [`PAGE`].
    pub unaligned: u64,
    /// Bytes.
    pub bytes: u64,
    /// Offset behind the last byte that was read.
    pub end: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_is_found_beside_flags() {
        for kind in FileCallKind::ALL {
            let field = kind as u16 | FileCallKind::INSIDE_MPI | FileCallKind::OF_STREAM;
            assert_eq!(FileCallKind::from_field(field), Some(kind));
        }
        assert_eq!(FileCallKind::from_field(7), None);
    }
}
