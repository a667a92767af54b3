//! Resets weak references to procedures that no loaded library has.
//!
//! A program may refer weakly to a procedure and call it only if it is present (mpi4py does so for
//! everything newer than MPI 3, a program with a fallback for BLAS). The recorder exports every
//! procedure of the standard, and BLAS, LAPACK and FFTW, so all of them look present, even those
//! that no loaded library has. This module sets such references to 0,
//! as the loader leaves them without the recorder: once when the recorder is loaded, for the
//! objects that the program started with; after MPI_Init; and at the first call of a procedure
//! after other objects were loaded. Each object is examined once.
//!
//! Exporting fewer procedures would not help, because MPI 5 has what MPI 3 lacks and one file serves
//! both. `dlopen` and `dlsym` cannot be interposed instead: they depend on their caller.
//!
//! It reads the relocations of every loaded object, as the loader does (System V gABI,
//! "Relocation"). An entry counts if its symbol is weak and undefined and the relocated word holds
//! an address of the recorder.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::host::elf::{DT_NULL, DT_STRTAB, DT_SYMTAB, Dynamic, Symbol};
use crate::host::loader::{Changes, find, for_each_object};
use crate::host::lock::Lock;

/// Elf64_Rela.
#[repr(C)]
#[derive(Clone, Copy)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

const DT_PLTRELSZ: i64 = 2;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_PLTREL: i64 = 20;
const DT_JMPREL: i64 = 23;
const STB_WEAK: u8 = 2;

/// Absolute address, entry of the global offset table, entry of the procedure linkage table.
#[cfg(target_arch = "x86_64")]
const ADDRESS_TYPES: [u32; 3] = [1, 6, 7];
/// As above. Not yet run on AArch64.
#[cfg(target_arch = "aarch64")]
const ADDRESS_TYPES: [u32; 3] = [257, 1025, 1026];

/// The word of a weak reference, which holds an address of the recorder.
struct Reference {
    name: CString,
    word_at: usize,
    /// Whether the loader has made the word read-only after relocation.
    protected: bool,
}

/// State of the search while the loader lists its objects.
struct Search<'a> {
    ours: std::ops::Range<usize>,
    /// Objects examined before, by the addresses of their dynamic sections.
    seen: &'a mut BTreeSet<usize>,
    references: Vec<Reference>,
}

/// Number of objects ever loaded when references were last examined.
static LOADED: AtomicUsize = AtomicUsize::new(0);
/// Objects whose references have been examined. Locked during the search.
static SEEN: Lock<BTreeSet<usize>> = Lock::new(BTreeSet::new());
/// Whether objects were unloaded since then.
static STALE: AtomicBool = AtomicBool::new(false);

/// Runs when the recorder is loaded: after the program's objects were relocated, before their code
/// runs.
extern "C" fn at_load() {
    let _ = std::panic::catch_unwind(repair);
}

#[used]
#[cfg_attr(not(miri), unsafe(link_section = ".init_array"))]
static AT_LOAD: extern "C" fn() = at_load;

/// Resets weak references in objects loaded since the last call. Runs off the path of a call.
pub fn repair() {
    if Changes::now().loaded == LOADED.load(Relaxed) {
        return;
    }
    // If this is interrupted, or another thread is doing it, the caller continues; it is done at
    // the next call.
    let Some(mut seen) = SEEN.try_lock() else { return };
    if STALE.swap(false, Relaxed) {
        seen.clear();
    }
    let Changes { loaded, .. } = Changes::now();
    let mut search = Search { ours: own_range(), seen: &mut seen, references: Vec::new() };
    // SAFETY: callback and argument match.
    unsafe { for_each_object(gather, (&raw mut search).cast()) };
    let mut absent: HashMap<CString, bool> = HashMap::new();
    for Reference { name, word_at, protected } in search.references {
        let is_absent = *absent.entry(name).or_insert_with_key(|name| find(name).is_none());
        if is_absent {
            // SAFETY: a word that the loader has relocated, in an object that is still loaded:
            // nothing can unload the object while its own code is calling MPI's procedures.
            unsafe { set_to_zero(word_at, protected) };
        }
    }
    LOADED.store(loaded, Relaxed);
}

/// Must be called when objects were unloaded, because others may be loaded at their addresses. Takes
/// no lock: [`repair`] itself closes what it looked at.
pub fn forget_unloaded() {
    STALE.store(true, Relaxed);
}

/// Address range of this library.
fn own_range() -> std::ops::Range<usize> {
    unsafe extern "C" fn ours(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        range: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid record; `range` is passed below.
        unsafe {
            let all = extent(&*info);
            let found = all.contains(&(own_range as *const () as usize));
            if found {
                *range.cast::<std::ops::Range<usize>>() = all;
            }
            c_int::from(found)
        }
    }
    let mut range = 0..0usize;
    // SAFETY: callback and argument match.
    unsafe { for_each_object(ours, (&raw mut range).cast()) };
    range
}

/// # Safety
/// `info` is a record of the loader's.
unsafe fn headers(info: &libc::dl_phdr_info) -> &[libc::Elf64_Phdr] {
    if info.dlpi_phdr.is_null() {
        return &[];
    }
    // SAFETY: the loader keeps that many headers there while the object is loaded.
    unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize) }
}

/// # Safety
/// `info` is a record of the loader's.
unsafe fn extent(info: &libc::dl_phdr_info) -> std::ops::Range<usize> {
    let base = info.dlpi_addr as usize;
    // SAFETY: a record of the loader's.
    let loaded = unsafe { headers(info) }.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let ends = loaded.map(|h| (base + h.p_vaddr as usize, base + (h.p_vaddr + h.p_memsz) as usize));
    ends.fold(None, |all: Option<std::ops::Range<usize>>, (begin, end)| {
        let all = all.unwrap_or(begin..end);
        Some(all.start.min(begin)..all.end.max(end))
    })
    .unwrap_or(0..0)
}

unsafe extern "C" fn gather(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid record; `search` was passed by `repair`. Every address read
    // is one that the object's own headers name, as the loader read it.
    unsafe {
        let (info, search) = (&*info, &mut *search.cast::<Search<'_>>());
        let all = extent(info);
        let headers = headers(info);
        let Some(dynamic) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else {
            return 0;
        };
        if all.contains(&search.ours.start) {
            return 0;
        }
        let base = info.dlpi_addr as usize;
        if !search.seen.insert(base + dynamic.p_vaddr as usize) {
            return 0;
        }
        let relro = headers.iter().find(|header| header.p_type == libc::PT_GNU_RELRO);
        let protected = relro.map_or(0..0, |header| {
            let begin = base + header.p_vaddr as usize;
            begin..begin + header.p_memsz as usize
        });
        let tables = Tables::read((base + dynamic.p_vaddr as usize) as *const Dynamic, base, &all);
        let Some(tables) = tables else { return 0 };
        for &(first, bytes) in &tables.relocations {
            for index in 0..bytes / size_of::<Relocation>() {
                let Relocation { offset, info, addend } = *(first as *const Relocation).add(index);
                let symbol = (info >> 32) as usize;
                if symbol == 0 || addend != 0 || !ADDRESS_TYPES.contains(&(info as u32)) {
                    continue;
                }
                let symbol = (tables.symbols as *const Symbol).add(symbol);
                let word_at = base + offset as usize;
                if (*symbol).section != 0
                    || (*symbol).info >> 4 != STB_WEAK
                    || !all.contains(&word_at)
                    || !search.ours.contains(&(word_at as *const usize).read_unaligned())
                {
                    continue;
                }
                let name = (tables.strings + (*symbol).name as usize) as *const libc::c_char;
                // References to the functions of `gammachi.h` are correct as they are.
                if CStr::from_ptr(name).to_bytes().starts_with(b"gammachi_") {
                    continue;
                }
                search.references.push(Reference {
                    name: CStr::from_ptr(name).to_owned(),
                    word_at,
                    protected: protected.contains(&word_at),
                });
            }
        }
    }
    0
}

/// Addresses of the tables named in an object's dynamic section.
struct Tables {
    symbols: usize,
    strings: usize,
    /// Address and size in bytes of each relocation table.
    relocations: [(usize, usize); 2],
}

impl Tables {
    /// `None` if something is missing or of an unsupported kind.
    ///
    /// # Safety
    /// `entry` is the dynamic section of an object loaded at `base`.
    unsafe fn read(
        mut entry: *const Dynamic,
        base: usize,
        all: &std::ops::Range<usize>,
    ) -> Option<Self> {
        let mut found: HashMap<i64, u64> = HashMap::new();
        // SAFETY: a loaded object's section, which ends with DT_NULL.
        unsafe {
            while (*entry).tag != DT_NULL {
                found.insert((*entry).tag, (*entry).value);
                entry = entry.add(1);
            }
        }
        // glibc has relocated these addresses in place; other loaders and the vDSO have not.
        let address = |tag: i64| {
            let value = *found.get(&tag)? as usize;
            let address = if all.contains(&value) { value } else { base + value };
            all.contains(&address).then_some(address)
        };
        let bytes = |tag: i64| found.get(&tag).map_or(0, |bytes| *bytes as usize);
        let plain = address(DT_RELA).map_or((0, 0), |table| (table, bytes(DT_RELASZ)));
        let calls = match found.get(&DT_PLTREL) {
            Some(kind) if *kind as i64 == DT_RELA => {
                address(DT_JMPREL).map_or((0, 0), |table| (table, bytes(DT_PLTRELSZ)))
            }
            _ => (0, 0),
        };
        let (symbols, strings) = (address(DT_SYMTAB)?, address(DT_STRTAB)?);
        Some(Self { symbols, strings, relocations: [plain, calls] })
    }
}

/// # Safety
/// `word_at` is the address of a word that nobody else writes.
unsafe fn set_to_zero(word_at: usize, protected: bool) {
    // SAFETY: `sysconf` only returns a number. The pages contain the caller's word; they were
    // readable, and become read-only again if they were.
    unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let first = word_at & !(page - 1);
        let length = (word_at + size_of::<usize>() - first).next_multiple_of(page);
        let protect = |protection| libc::mprotect(first as *mut c_void, length, protection) == 0;
        if protected && !protect(libc::PROT_READ | libc::PROT_WRITE) {
            return;
        }
        AtomicUsize::from_ptr(word_at as *mut usize).store(0, Relaxed);
        if protected {
            protect(libc::PROT_READ);
        }
    }
}
