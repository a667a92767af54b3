//! The bytes of a rank file, mapped when they are first needed: a process that knows a file from an
//! [outline](super::Outlines) may never read its events. Of a run of very many files none stays mapped;
//! pieces of them are read instead.

use std::borrow::Cow;
use std::io;
use std::ops::{Deref, Range};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use memmap2::Advice;

use crate::file_map::FileMap;
use crate::layout::FixedHeader;
use crate::plain::bytes_of;
use crate::regular_file;

/// The bytes of a rank file; of a packed one, its unpacked contents except for event slots.
#[derive(Debug)]
pub(super) struct Contents {
    map: OnceLock<FileMap>,
    bytes: usize,
    /// Where to find the file, and how it begins.
    file: (PathBuf, FixedHeader),
    /// Pieces are read, without a map.
    by_reading: bool,
    /// Whether a piece could not be read.
    failed: AtomicBool,
}

impl Contents {
    /// The contents of a file that is mapped already.
    pub fn mapped(path: &Path, fixed: FixedHeader, map: FileMap) -> Self {
        let bytes = map.len();
        Self { map: OnceLock::from(map), ..Self::unmapped(path, fixed, bytes) }
    }

    /// The contents of a file of this size, which is mapped when it is needed.
    pub fn unmapped(path: &Path, fixed: FixedHeader, bytes: usize) -> Self {
        let (file, failed) = ((path.to_owned(), fixed), AtomicBool::new(false));
        Self { map: OnceLock::new(), bytes, file, by_reading: false, failed }
    }

    /// Gives the map up: from now on pieces are read, one at a time.
    pub fn unmap(&mut self) {
        (self.map, self.by_reading) = (OnceLock::new(), true);
    }

    /// Some of the bytes, if there are that many; maps the file only if they are not empty.
    #[inline]
    pub fn get(&self, range: Range<usize>) -> Option<&[u8]> {
        match range {
            Range { start, end } if start > end || end > self.bytes => None,
            range if range.is_empty() => Some(&[]),
            range => self.map().get(range),
        }
    }

    /// A piece of the file; empty if it cannot be read.
    pub fn piece(&self, range: Range<usize>) -> Cow<'_, [u8]> {
        if !self.by_reading {
            return Cow::Borrowed(self.get(range).unwrap_or_default());
        }
        Cow::Owned(self.read(range).unwrap_or_else(|_| {
            self.failed.store(true, Ordering::Relaxed);
            Vec::new()
        }))
    }

    fn read(&self, range: Range<usize>) -> io::Result<Vec<u8>> {
        let file = regular_file::open(&self.file.0)?;
        if file.metadata()?.len() != self.bytes as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut piece = vec![0; range.len()];
        file.read_exact_at(&mut piece, range.start as u64)?;
        Ok(piece)
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// See [`FileMap::unreadable_from`].
    pub fn unreadable_from(&self) -> Option<usize> {
        let failed = self.failed.load(Ordering::Relaxed).then_some(0);
        failed.or(self.map.get().and_then(FileMap::unreadable_from))
    }

    /// See [`FileMap::advise`].
    pub fn advise(&self, advice: Advice) {
        self.map().advise(advice);
    }

    /// See [`FileMap::fetch`].
    pub fn fetch(&self, range: Range<usize>) {
        if !self.by_reading {
            self.map().fetch(range);
        }
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
        let map = regular_file::open(path).and_then(|file| FileMap::of_file(&file));
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
