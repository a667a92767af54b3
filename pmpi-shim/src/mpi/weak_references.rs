//! Weak references to what no loaded library has.
//!
//! A program may refer weakly to a procedure and call it only where it is there (mpi4py does so for
//! everything newer than MPI 3). The recorder exports every procedure of the standard, so all of them
//! look present, also those that the loaded MPI lacks. Here such references are set back to 0, as the
//! loader leaves them where no recorder is preloaded: once when the recorder is loaded, for what the program was
//! started with, after MPI_Init, and again at the first call of a procedure after other objects were loaded. Each
//! object is looked at once.
//!
//! Read are the relocations of every loaded object, as the loader does (System V gABI, "Relocation"):
//! an entry counts where its symbol is weak and undefined and its place holds an address of ours.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::host::loader::{Changes, find, for_each_object};

/// Elf64_Rela.
#[repr(C)]
#[derive(Clone, Copy)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

/// Elf64_Sym.
#[repr(C)]
#[derive(Clone, Copy)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// Elf64_Dyn.
#[repr(C)]
#[derive(Clone, Copy)]
struct Dynamic {
    tag: i64,
    value: u64,
}

const DT_NULL: i64 = 0;
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_PLTREL: i64 = 20;
const DT_JMPREL: i64 = 23;
const STB_WEAK: u8 = 2;

/// Absolute address, entry of the global offset table, entry of the procedure linkage table.
#[cfg(target_arch = "x86_64")]
const ADDRESS_TYPES: [u32; 3] = [1, 6, 7];
/// As above. Written with care, not yet run on such a machine.
#[cfg(target_arch = "aarch64")]
const ADDRESS_TYPES: [u32; 3] = [257, 1025, 1026];

/// A place that holds an address of ours for a weak reference.
struct Reference {
    name: CString,
    place: usize,
    /// Whether the loader has made the place read-only after relocation.
    protected: bool,
}

/// What is gathered while the loader shows its objects.
struct Search<'a> {
    ours: std::ops::Range<usize>,
    /// Objects that were looked at before, by the addresses of their dynamic sections.
    seen: &'a mut BTreeSet<usize>,
    references: Vec<Reference>,
}

/// Objects ever loaded when references were last looked at.
static LOADED: AtomicUsize = AtomicUsize::new(0);
/// Objects whose references were looked at; held by who looks.
static SEEN: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// Runs when the recorder is loaded: after the program's objects are relocated, before their code.
extern "C" fn at_load() {
    let _ = std::panic::catch_unwind(repair);
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

/// Sets weak references back in objects that were loaded since this was last done. Off the path.
pub fn repair() {
    if Changes::now().loaded == LOADED.load(Relaxed) {
        return;
    }
    // Whoever is interrupted in it, or finds another thread in it, goes on: it is done at the next call.
    let Ok(mut seen) = SEEN.try_lock() else { return };
    let Changes { loaded, .. } = Changes::now();
    let mut search = Search { ours: own_range(), seen: &mut seen, references: Vec::new() };
    // SAFETY: the callback and its argument fit each other.
    unsafe { for_each_object(gather, (&raw mut search).cast()) };
    let mut absent: HashMap<CString, bool> = HashMap::new();
    for Reference { name, place, protected } in search.references {
        let is_absent = *absent.entry(name).or_insert_with_key(|name| find(name).is_none());
        if is_absent {
            // SAFETY: a place that the loader has relocated, in an object that is still loaded: whoever
            // unloads it while its code asks for MPI's procedures has no place to stand on.
            unsafe { set_to_zero(place, protected) };
        }
    }
    LOADED.store(loaded, Relaxed);
}

/// Objects were unloaded: others may come to lie where they were.
pub fn forget_unloaded() {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// Addresses of this library.
fn own_range() -> std::ops::Range<usize> {
    unsafe extern "C" fn ours(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        range: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid record; `range` is handed over below.
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
    // SAFETY: the callback and its argument fit each other.
    unsafe { for_each_object(ours, (&raw mut range).cast()) };
    range
}

/// # Safety
/// A record of the loader's.
unsafe fn headers(info: &libc::dl_phdr_info) -> &[libc::Elf64_Phdr] {
    if info.dlpi_phdr.is_null() {
        return &[];
    }
    // SAFETY: the loader keeps so many headers there while the object is loaded.
    unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize) }
}

/// # Safety
/// A record of the loader's.
unsafe fn extent(info: &libc::dl_phdr_info) -> std::ops::Range<usize> {
    let base = info.dlpi_addr as usize;
    // SAFETY: the caller's promise.
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
    // SAFETY: the loader passes a valid record, `search` is what `repair` handed over; every address
    // read is one that the object's own headers name, as the loader read it.
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
                let place = base + offset as usize;
                if (*symbol).section != 0
                    || (*symbol).info >> 4 != STB_WEAK
                    || !all.contains(&place)
                    || !search.ours.contains(&(place as *const usize).read_unaligned())
                {
                    continue;
                }
                let name = (tables.strings + (*symbol).name as usize) as *const libc::c_char;
                // Those to functions of our own header are right as they are.
                let bytes = CStr::from_ptr(name).to_bytes();
                if !bytes.starts_with(b"MPI_") && !bytes.starts_with(b"PMPI_") {
                    continue;
                }
                search.references.push(Reference {
                    name: CStr::from_ptr(name).to_owned(),
                    place,
                    protected: protected.contains(&place),
                });
            }
        }
    }
    0
}

/// Where an object's dynamic section says that its tables lie.
struct Tables {
    symbols: usize,
    strings: usize,
    /// Address and bytes of each table of relocations.
    relocations: [(usize, usize); 2],
}

impl Tables {
    /// `None` where something is missing or of another kind.
    ///
    /// # Safety
    /// `entry` is the dynamic section of an object loaded at `base`.
    unsafe fn read(
        mut entry: *const Dynamic,
        base: usize,
        all: &std::ops::Range<usize>,
    ) -> Option<Self> {
        let mut found: HashMap<i64, u64> = HashMap::new();
        // SAFETY: the caller's promise; the section ends with DT_NULL.
        unsafe {
            while (*entry).tag != DT_NULL {
                found.insert((*entry).tag, (*entry).value);
                entry = entry.add(1);
            }
        }
        // glibc has relocated these addresses in place, other loaders and the vDSO have not.
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
/// `place` holds an address that nobody else writes.
unsafe fn set_to_zero(place: usize, protected: bool) {
    // SAFETY: asks the system for a number; the pages are those of the caller's place, which were
    // readable, and are read-only again where they were.
    unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let first = place & !(page - 1);
        let length = (place + size_of::<usize>() - first).next_multiple_of(page);
        let protect = |protection| libc::mprotect(first as *mut c_void, length, protection) == 0;
        if protected && !protect(libc::PROT_READ | libc::PROT_WRITE) {
            return;
        }
        AtomicUsize::from_ptr(place as *mut usize).store(0, Relaxed);
        if protected {
            protect(libc::PROT_READ);
        }
    }
}
