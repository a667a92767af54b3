//! Sorts more records than memory holds.
//!
//! Records of a fixed size are sorted in memory in runs. Further runs are kept in a file without a
//! name, and all runs are merged when the records are read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use trace_format::plain::{Plain, bytes_of, read_plain};

/// Maximum number of records that are held and sorted in memory.
const RUN_RECORDS: usize = 1 << 18;
/// The same for one of many collections.
const MIN_RUN_RECORDS: usize = 1 << 13;
/// Records of each sorted run that are buffered during a merge.
const BUFFERED_RECORDS: usize = 512;

/// A record of a fixed size with a sort key.
pub trait Record: Plain {
    /// The sort key. Records with equal keys come in no particular order, so keys should be unique.
    type Key: Ord;
    /// The key of this record.
    fn key(&self) -> Self::Key;
}

/// Collects records to be sorted.
#[derive(Debug)]
pub struct Spill<T> {
    directory: PathBuf,
    run_records: usize,
    memory: Vec<T>,
    file: Option<File>,
    /// Records of each sorted run in the file.
    runs: Vec<usize>,
    count: u64,
}

impl<T: Record> Spill<T> {
    /// Creates an empty collection. Records that do not fit into memory go to a nameless file in
    /// `directory`.
    pub fn new(directory: &Path) -> Self {
        Self::with_runs_of(directory, RUN_RECORDS)
    }

    /// Like [`Spill::new`] for one of several collections that together take the memory of one.
    pub fn one_of(directory: &Path, collections: usize) -> Self {
        Self::with_runs_of(directory, (RUN_RECORDS / collections.max(1)).max(MIN_RUN_RECORDS))
    }

    fn with_runs_of(directory: &Path, run_records: usize) -> Self {
        let (memory, runs) = (Vec::new(), Vec::new());
        Self { directory: directory.to_owned(), run_records, memory, file: None, runs, count: 0 }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// The file cannot be created or written (no space).
    pub fn push(&mut self, record: T) -> io::Result<()> {
        self.memory.push(record);
        self.count += 1;
        if self.memory.len() >= self.run_records { self.write_run() } else { Ok(()) }
    }

    fn write_run(&mut self) -> io::Result<()> {
        self.memory.sort_unstable_by_key(Record::key);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(&self.directory)?),
        };
        let offset = self.runs.iter().sum::<usize>() * size_of::<T>();
        let bytes: Vec<u8> = self.memory.iter().flat_map(|r| bytes_of(r).to_vec()).collect();
        file.write_all_at(&bytes, offset as u64)?;
        self.runs.push(self.memory.len());
        self.memory.clear();
        Ok(())
    }

    /// Ends collecting and returns the records for reading in order.
    ///
    /// # Errors
    /// As [`Spill::push`].
    pub fn sorted(mut self) -> io::Result<Sorted<T>> {
        if self.file.is_none() {
            self.memory.sort_unstable_by_key(Record::key);
        } else if !self.memory.is_empty() {
            self.write_run()?;
        }
        Ok(Sorted { memory: self.memory, file: self.file, runs: self.runs, count: self.count })
    }
}

/// Records in the order of their keys. They can be read any number of times.
#[derive(Debug)]
pub struct Sorted<T> {
    memory: Vec<T>,
    file: Option<File>,
    runs: Vec<usize>,
    count: u64,
}

impl<T: Record> Sorted<T> {
    /// Number of records.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The records in order.
    pub fn iter(&self) -> Merge<'_, T> {
        let mut merge = Merge { sorted: self, next: 0, runs: Vec::new(), heap: BinaryHeap::new() };
        let mut at = 0;
        for (index, count) in self.runs.iter().enumerate() {
            merge.runs.push(Head {
                at,
                end: at + count,
                buffer: Vec::new(),
                next: 0,
                _of: PhantomData,
            });
            at += count;
            merge.offer(index);
        }
        merge
    }
}

/// The part of a sorted run that is still to be merged.
#[derive(Debug)]
struct Head<T> {
    /// Index of the next record to read from the file, and the end of the run.
    at: usize,
    end: usize,
    buffer: Vec<u8>,
    next: usize,
    _of: PhantomData<T>,
}

impl<T: Record> Head<T> {
    fn peek(&mut self, file: &File) -> io::Result<Option<T>> {
        if self.next == self.buffer.len() {
            let count = (self.end - self.at).min(BUFFERED_RECORDS);
            self.buffer.resize(count * size_of::<T>(), 0);
            file.read_exact_at(&mut self.buffer, (self.at * size_of::<T>()) as u64)?;
            self.at += count;
            self.next = 0;
        }
        Ok(self.buffer.get(self.next..).and_then(read_plain))
    }
}

/// Iterates over sorted records.
pub struct Merge<'a, T: Record> {
    sorted: &'a Sorted<T>,
    /// Index of the next record, if all are in memory.
    next: usize,
    runs: Vec<Head<T>>,
    heap: BinaryHeap<Reverse<(T::Key, usize)>>,
}

impl<T: Record> Merge<'_, T> {
    /// Adds the next record of a run to the heap. Returns the error if the file cannot be read.
    fn offer(&mut self, run: usize) -> Option<io::Error> {
        let file = self.sorted.file.as_ref()?;
        match self.runs[run].peek(file) {
            Ok(Some(record)) => self.heap.push(Reverse((record.key(), run))),
            Ok(None) => {}
            Err(error) => return Some(error),
        }
        None
    }
}

impl<T: Record> Iterator for Merge<'_, T> {
    type Item = io::Result<T>;

    fn next(&mut self) -> Option<io::Result<T>> {
        let Some(file) = &self.sorted.file else {
            let record = self.sorted.memory.get(self.next).copied();
            self.next += 1;
            return record.map(Ok);
        };
        let Reverse((_, run)) = self.heap.pop()?;
        let record = match self.runs[run].peek(file) {
            Ok(record) => record?,
            Err(error) => return Some(Err(error)),
        };
        self.runs[run].next += size_of::<T>();
        if let Some(error) = self.offer(run) {
            return Some(Err(error));
        }
        Some(Ok(record))
    }
}

/// Iterates over the records of several collections in the order of their keys, each with the index
/// of its collection.
pub struct Merged<'a, T: Record> {
    collections: Vec<Merge<'a, T>>,
    /// The next record of each collection.
    next: Vec<Option<T>>,
    heap: BinaryHeap<Reverse<(T::Key, usize)>>,
    failed: Option<io::Error>,
}

impl<'a, T: Record> Merged<'a, T> {
    /// Starts before the first record.
    pub fn new(collections: &'a [Sorted<T>]) -> Self {
        let next = vec![None; collections.len()];
        let collections = collections.iter().map(Sorted::iter).collect();
        let mut merged = Self { collections, next, heap: BinaryHeap::new(), failed: None };
        (0..merged.next.len()).for_each(|index| merged.advance(index));
        merged
    }

    fn advance(&mut self, index: usize) {
        self.next[index] = match self.collections[index].next().transpose() {
            Ok(record) => record,
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        };
        if let Some(record) = &self.next[index] {
            self.heap.push(Reverse((record.key(), index)));
        }
    }
}

impl<T: Record> Iterator for Merged<'_, T> {
    type Item = io::Result<(usize, T)>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            self.heap.clear();
            return Some(Err(error));
        }
        let Reverse((_, index)) = self.heap.pop()?;
        let record = self.next[index].take()?;
        self.advance(index);
        Some(Ok((index, record)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Number(u64, u64);
    // SAFETY: two integers of one size: no padding, and every bit pattern is valid.
    unsafe impl Plain for Number {}
    impl Record for Number {
        type Key = (u64, u64);
        fn key(&self) -> (u64, u64) {
            (self.0, self.1)
        }
    }

    #[test]
    fn merges_collections_and_says_whose_each_record_is() {
        let collections: Vec<Sorted<Number>> = (0..3)
            .map(|of| {
                let mut spill = Spill::with_runs_of(&std::env::temp_dir(), 10);
                (0..of * 40).for_each(|i| spill.push(Number(i * 7919 % 100, of)).unwrap());
                spill.sorted().unwrap()
            })
            .collect();
        let all: Vec<(usize, Number)> = Merged::new(&collections).map(Result::unwrap).collect();
        assert_eq!(all.len(), 120);
        assert!(all.is_sorted_by_key(|(_, number)| number.key()));
        assert!(all.iter().all(|(collection, number)| number.1 == *collection as u64));
    }

    #[test]
    fn merges_many_runs() {
        for count in [0, 1, 9, 10, 11, 12_345] {
            let mut spill = Spill::with_runs_of(&std::env::temp_dir(), 10);
            for i in 0..count {
                spill.push(Number(i * 7919 % 1000, i)).unwrap();
            }
            let sorted = spill.sorted().unwrap();
            assert_eq!(sorted.count(), count);
            for _ in 0..2 {
                let all: Vec<Number> = sorted.iter().map(Result::unwrap).collect();
                assert_eq!(all.len() as u64, count);
                assert!(all.is_sorted_by_key(Record::key));
            }
        }
    }
}
