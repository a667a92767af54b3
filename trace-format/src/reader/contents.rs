//! The bytes of a rank file, mapped when they are first needed: a process that knows a file from an
//! [outline](super::Outlines) may never read its events.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use memmap2::Advice;

use crate::file_map::FileMap;
use crate::layout::FixedHeader;
use crate::plain::bytes_of;

/// The bytes of a rank file; of a packed one, its unpacked contents except for event slots.
#[derive(Debug)]
pub(super) struct Contents {
    map: OnceLock<FileMap>,
    bytes: usize,
    /// Where to find the file, and how it begins.
    file: (PathBuf, FixedHeader),
}

impl Contents {
    /// The contents of a file that is mapped already.
    pub fn mapped(path: &Path, fixed: FixedHeader, map: FileMap) -> Self {
        let (bytes, file) = (map.len(), (path.to_owned(), fixed));
        Self { map: OnceLock::from(map), bytes, file }
    }

    /// The contents of a file of this size, which is mapped when it is needed.
    pub fn unmapped(path: &Path, fixed: FixedHeader, bytes: usize) -> Self {
        Self { map: OnceLock::new(), bytes, file: (path.to_owned(), fixed) }
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// See [`FileMap::unreadable_from`].
    pub fn unreadable_from(&self) -> Option<usize> {
        self.map.get().and_then(FileMap::unreadable_from)
    }

    /// See [`FileMap::advise`].
    pub fn advise(&self, advice: Advice) {
        self.map().advise(advice);
    }

    /// See [`FileMap::fetch`].
    pub fn fetch(&self, range: Range<usize>) {
        self.map().fetch(range);
    }

    /// See [`FileMap::replace`].
    ///
    /// # Errors
    /// If there is not enough memory, or the file is not mapped.
    pub fn replace(&mut self, range: Range<usize>, bytes: &[u8]) -> io::Result<()> {
        match self.map.get_mut() {
            Some(map) => map.replace(range, bytes),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    #[inline]
    fn map(&self) -> &FileMap {
        self.map.get_or_init(|| self.open())
    }

    /// Maps the file, or zeros in its place if it is no longer the same.
    #[cold]
    fn open(&self) -> FileMap {
        let (path, fixed) = &self.file;
        let map = File::open(path).and_then(|file| FileMap::of_file(&file));
        let is_same = |map: &FileMap| map.len() == self.bytes && map.starts_with(bytes_of(fixed));
        match map {
            Ok(map) if is_same(&map) => map,
            _ => FileMap::of_nothing(self.bytes).unwrap_or_else(|error| {
                panic!("{}: cannot be read, and no memory takes its place: {error}", path.display())
            }),
        }
    }
}

impl Deref for Contents {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.map()
    }
}
