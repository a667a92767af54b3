//! Records in another order than the one in which they are found: records of one size come in, the
//! same go out in the order of their keys; what memory does not hold lies in a file that has no name.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use trace_format::plain::{Plain, bytes_of, read_plain};

/// Records that are held and sorted in memory at a time.
const RUN_RECORDS: usize = 1 << 18;
/// Records of each sorted run that are held while runs are merged.
const HELD_RECORDS: usize = 512;

/// A record of a fixed size with its place in the order.
pub trait Record: Plain {
    /// What it is sorted by; records of equal keys keep no order, so a key should tell them apart.
    type Key: Ord;
    /// Its key.
    fn key(&self) -> Self::Key;
}

/// Records that come in.
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
    /// Without records yet; what does not fit into memory goes to a nameless file in a directory.
    pub fn new(directory: &Path) -> Self {
        Self::with_runs_of(directory, RUN_RECORDS)
    }

    fn with_runs_of(directory: &Path, run_records: usize) -> Self {
        let (memory, runs) = (Vec::new(), Vec::new());
        Self { directory: directory.to_owned(), run_records, memory, file: None, runs, count: 0 }
    }

    /// Takes a record.
    ///
    /// # Errors
    /// The file cannot be made or written (no space).
    pub fn push(&mut self, record: T) -> io::Result<()> {
        self.memory.push(record);
        self.count += 1;
        if self.memory.len() >= self.run_records { self.write_run() } else { Ok(()) }
    }

    /// Records taken so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    fn write_run(&mut self) -> io::Result<()> {
        self.memory.sort_unstable_by_key(Record::key);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(nameless(&self.directory)?),
        };
        let offset = self.runs.iter().sum::<usize>() * size_of::<T>();
        let bytes: Vec<u8> = self.memory.iter().flat_map(|r| bytes_of(r).to_vec()).collect();
        file.write_all_at(&bytes, offset as u64)?;
        self.runs.push(self.memory.len());
        self.memory.clear();
        Ok(())
    }

    /// No more records come.
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

/// A file for reading and writing that is gone when nobody has it open any more.
fn nameless(directory: &Path) -> io::Result<File> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!(".gammachi-sort-{}-{number}", std::process::id()));
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Records in the order of their keys, to be read as often as wanted.
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
                held: Vec::new(),
                next: 0,
                _of: PhantomData,
            });
            at += count;
            merge.offer(index);
        }
        merge
    }
}

/// A sorted run in the file, as far as it is read.
#[derive(Debug)]
struct Head<T> {
    /// First record that is not held yet, and the first behind the run.
    at: usize,
    end: usize,
    held: Vec<u8>,
    next: usize,
    _of: PhantomData<T>,
}

impl<T: Record> Head<T> {
    fn peek(&mut self, file: &File) -> io::Result<Option<T>> {
        if self.next == self.held.len() {
            let count = (self.end - self.at).min(HELD_RECORDS);
            self.held.resize(count * size_of::<T>(), 0);
            file.read_exact_at(&mut self.held, (self.at * size_of::<T>()) as u64)?;
            self.at += count;
            self.next = 0;
        }
        Ok(self.held.get(self.next..).and_then(read_plain))
    }
}

/// Iterates over sorted records.
pub struct Merge<'a, T: Record> {
    sorted: &'a Sorted<T>,
    /// The next record in memory, where no file was needed.
    next: usize,
    runs: Vec<Head<T>>,
    heap: BinaryHeap<Reverse<(T::Key, usize)>>,
}

impl<T: Record> Merge<'_, T> {
    /// Takes up a run's next record; a file that cannot be read ends it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Number(u64, u64);
    // SAFETY: two integers of one size: no padding, any bits are a value.
    unsafe impl Plain for Number {}
    impl Record for Number {
        type Key = (u64, u64);
        fn key(&self) -> (u64, u64) {
            (self.0, self.1)
        }
    }

    #[test]
    fn many_runs_come_out_as_one() {
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
