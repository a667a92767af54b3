//! Python functions that were met on stacks, each with a number.
//!
//! A signal handler meets them at any instruction. It adds those that are new, with copies of name,
//! file and lines, to memory taken beforehand. A code object that is freed leaves its address to
//! another one, so a function is known by address, first line, name and table of lines.

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::host::own_memory::read;
use crate::host::python_layout::Lines;
use crate::host::python_lines::line_at;

/// Maximum number of functions, that of all others included.
const MAX_CODES: usize = 1 << 12;
/// Entries of the hash table.
const SLOTS: usize = 2 * MAX_CODES;
/// Memory for names, files and tables of lines.
const POOL_BYTES: usize = 4 << 20;
/// Larger tables of lines are not kept: the function's lines are not known.
const MAX_TABLE_BYTES: u64 = 256 << 10;
/// How often a handler looks whether another thread's has finished adding a function.
const LOOKS: usize = 2000;

/// Number of all functions for which there is no room.
pub const OTHERS: u32 = 0;
const OTHERS_NAME: &[u8] = b"(other Python code)";

/// What a function is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Key {
    /// Address of the code object.
    pub address: u64,
    pub first_line: u32,
    /// Checksum of its name.
    pub name: u32,
    /// Address and length in bytes of its table of lines.
    pub table: (u64, u64),
}

/// The process's functions, which are never freed.
static ALL: AtomicPtr<Codes> = AtomicPtr::new(null_mut());

/// A part of the pool: where it begins, and its length.
type Part = (usize, usize);

/// A function. All cells are written before its number is published.
#[derive(Default)]
struct Code {
    key: Cell<Key>,
    name: Cell<Part>,
    file: Cell<Part>,
    table: Cell<Part>,
    /// The instruction that was last asked for, and its line below.
    last: AtomicU64,
}

/// The functions.
pub struct Codes {
    codes: Box<[Code]>,
    /// Numbers by hash; 0: free.
    slots: Box<[AtomicU32]>,
    /// Number of functions.
    count: AtomicU32,
    /// Number of those that are in the trace.
    defined: AtomicU32,
    pool: *mut u8,
    used: Cell<usize>,
    /// Whether a thread is adding one.
    is_busy: AtomicBool,
}

// SAFETY: `used`, free memory of the pool and the cells of functions without a number belong to the
// thread that has set `is_busy`. The rest is constant or atomic.
unsafe impl Sync for Codes {}

impl Codes {
    /// The process's functions; `None` if they were never made.
    pub fn known() -> Option<&'static Self> {
        // SAFETY: made below and never freed.
        unsafe { ALL.load(Acquire).as_ref() }
    }

    /// The process's functions; `None` without memory.
    pub fn of_process() -> Option<&'static Self> {
        if let Some(known) = Self::known() {
            return Some(known);
        }
        let new = Box::into_raw(Box::new(Self::new()?));
        let stored = ALL.compare_exchange(null_mut(), new, Release, Acquire);
        // SAFETY: as above. Where another thread was first, this one's are left unused.
        unsafe { stored.map_or_else(|first| first, |_| new).as_ref() }
    }

    fn new() -> Option<Self> {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: creates a new mapping.
        let pool = unsafe { libc::mmap(null_mut(), POOL_BYTES, access, kind, -1, 0) };
        if pool == libc::MAP_FAILED {
            return None;
        }
        let new = Self {
            codes: (0..MAX_CODES).map(|_| Code::default()).collect(),
            slots: (0..SLOTS).map(|_| AtomicU32::new(0)).collect(),
            count: AtomicU32::new(1),
            defined: AtomicU32::new(0),
            pool: pool.cast(),
            used: Cell::new(0),
            is_busy: AtomicBool::new(false),
        };
        new.codes[OTHERS as usize].name.set(new.keep(OTHERS_NAME)?);
        Some(new)
    }

    /// Memory for so many bytes.
    fn take(&self, bytes: usize) -> Option<(Part, *mut u8)> {
        let begin = self.used.get();
        let end = begin.checked_add(bytes).filter(|end| *end <= POOL_BYTES)?;
        self.used.set(end);
        Some(((begin, bytes), self.pool.wrapping_add(begin)))
    }

    fn keep(&self, bytes: &[u8]) -> Option<Part> {
        let (part, memory) = self.take(bytes.len())?;
        // SAFETY: as many bytes of the pool, which only this thread uses now.
        unsafe { memory.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Some(part)
    }

    /// Copies a table of lines; an empty one if there is no room or it cannot be read.
    fn keep_table(&self, (address, bytes): (u64, u64)) -> Part {
        let before = self.used.get();
        let copied = || {
            let length = (bytes <= MAX_TABLE_BYTES).then_some(bytes as usize)?;
            let (part, memory) = self.take(length)?;
            // SAFETY: as many bytes of the pool, mapped for good, which only this thread uses now.
            let memory = unsafe { std::slice::from_raw_parts_mut(memory, length) };
            read(address, memory).then_some(part)
        };
        copied().unwrap_or_else(|| {
            self.used.set(before);
            (0, 0)
        })
    }

    fn bytes(&self, (begin, length): Part) -> &[u8] {
        // SAFETY: a part of the pool of a function that was published, which does not change.
        unsafe { std::slice::from_raw_parts(self.pool.wrapping_add(begin), length) }
    }

    fn slots_of(key: &Key) -> impl Iterator<Item = usize> {
        let mixed = key.address ^ u64::from(key.name) << 20 ^ u64::from(key.first_line);
        let first = (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
        (0..SLOTS).map(move |step| (first + step) % SLOTS)
    }

    /// The number of a function; `Err` with a free slot if it is new.
    fn find(&self, key: &Key) -> Result<u32, usize> {
        for slot in Self::slots_of(key) {
            match self.slots[slot].load(Acquire) {
                0 => return Err(slot),
                number if self.codes[number as usize].key.get() == *key => return Ok(number),
                _ => {}
            }
        }
        Err(0)
    }

    /// The number of a function; `texts` writes the name and the file of a new one into memory. May be
    /// called in a signal handler. [`OTHERS`] if there is no room.
    pub fn number_of(
        &self,
        key: &Key,
        texts: impl FnOnce(&mut dyn FnMut(&[u8])) -> Option<()>,
    ) -> u32 {
        if let Ok(number) = self.find(key) {
            return number;
        }
        for _ in 0..LOOKS {
            if !self.is_busy.swap(true, Acquire) {
                let number = self.find(key).or_else(|slot| self.add(key, slot, texts).ok_or(()));
                self.is_busy.store(false, Release);
                return number.unwrap_or(OTHERS);
            }
            std::hint::spin_loop();
        }
        OTHERS
    }

    fn add(
        &self,
        key: &Key,
        slot: usize,
        texts: impl FnOnce(&mut dyn FnMut(&[u8])) -> Option<()>,
    ) -> Option<u32> {
        let number = self.count.load(Relaxed);
        let code = self.codes.get(number as usize)?;
        let (mut parts, mut count) = ([(0, 0); 2], 0);
        texts(&mut |bytes| {
            if let (Some(part), Some(kept)) = (parts.get_mut(count), self.keep(bytes)) {
                *part = kept;
                count += 1;
            }
        })?;
        if count < parts.len() {
            return None;
        }
        code.name.set(parts[0]);
        code.file.set(parts[1]);
        code.table.set(self.keep_table(key.table));
        code.key.set(*key);
        self.count.store(number + 1, Release);
        self.slots[slot].store(number, Release);
        Some(number)
    }

    /// The line of an instruction of a function, so many bytes behind its first one; 0: not known.
    pub fn line(&self, number: u32, lines: Lines, byte: u32) -> u32 {
        let Some(code) = self.codes.get(number as usize) else { return 0 };
        let last = code.last.load(Relaxed);
        // One more, so that 0 is none.
        let asked = byte.wrapping_add(1);
        if (last >> 32) as u32 == asked {
            return last as u32;
        }
        let table = self.bytes(code.table.get());
        let line = match table {
            [] => 0,
            table => line_at(lines, table, code.key.get().first_line, byte),
        };
        code.last.store(u64::from(asked) << 32 | u64::from(line), Relaxed);
        line
    }

    /// The first function that is not in the trace yet: number, name and file.
    pub fn first_undefined(&self) -> Option<(u32, &str, &str)> {
        let number = self.defined.load(Acquire);
        if number >= self.count.load(Acquire) {
            return None;
        }
        let code = &self.codes[number as usize];
        let text = |part: &Cell<Part>| std::str::from_utf8(self.bytes(part.get()));
        Some((number, text(&code.name).unwrap_or_default(), text(&code.file).unwrap_or_default()))
    }

    /// The name of a function.
    #[cfg(test)]
    pub fn name(&self, number: u32) -> Option<&str> {
        let is_known = number < self.count.load(Acquire);
        let code = self.codes.get(number as usize).filter(|_| is_known)?;
        std::str::from_utf8(self.bytes(code.name.get())).ok()
    }

    /// Notes that a function is in the trace.
    pub fn set_defined(&self, number: u32) {
        let _ = self.defined.compare_exchange(number, number + 1, Release, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(address: u64, name: u32, table: &[u8]) -> Key {
        let table = (table.as_ptr() as u64, table.len() as u64);
        Key { address, first_line: 10, name, table }
    }

    #[test]
    fn functions_are_told_apart_where_addresses_are_used_again() {
        let codes = Codes::new().expect("there is memory");
        let number = |key: &Key, name: &str| {
            codes.number_of(key, |keep| {
                keep(name.as_bytes());
                keep(b"/a.py");
                Some(())
            })
        };
        let table = [4, 0, 6, 3];
        let first = number(&key(16, 1, &table), "first");
        assert_eq!(number(&key(16, 1, &table), "first"), first);
        let second = number(&key(16, 2, &table), "second");
        assert_ne!(first, second);
        for _ in 0..2 {
            let lines = [0, 5, 9].map(|byte| codes.line(first, Lines::Ranges, byte));
            assert_eq!(lines, [10, 13, 13]);
        }
        assert_eq!(codes.line(first, Lines::Ranges, 10), 0);

        let mut defined = Vec::new();
        while let Some((number, name, file)) = codes.first_undefined() {
            defined.push((number, name.to_owned(), file.to_owned()));
            codes.set_defined(number);
        }
        let names: Vec<&str> = defined.iter().map(|(_, name, _)| name.as_str()).collect();
        assert_eq!(names, ["(other Python code)", "first", "second"]);
        assert_eq!(defined[1], (first, "first".to_owned(), "/a.py".to_owned()));
    }

    #[test]
    fn what_has_no_room_is_other_code() {
        let codes = Codes::new().expect("there is memory");
        let name = |keep: &mut dyn FnMut(&[u8])| {
            keep(b"name");
            keep(b"file");
            Some(())
        };
        for address in 1..MAX_CODES as u64 {
            assert_ne!(codes.number_of(&key(address, 0, &[]), name), OTHERS);
        }
        assert_eq!(codes.number_of(&key(9999, 0, &[]), name), OTHERS);
        assert_eq!(codes.number_of(&key(7, 0, &[]), name), 7, "those that are known stay");
        assert_eq!(codes.number_of(&key(9998, 0, &[]), |_| None), OTHERS);
    }
}
