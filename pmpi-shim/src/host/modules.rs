//! The code mapped into the process, for call sites.
//!
//! Reports each loaded module when it is first seen, and knows which addresses belong to the MPI
//! library and its language bindings.

use std::ffi::{CStr, c_int, c_void};

use trace_format::header::Module;

use crate::host::counter;
use crate::host::loader::{Changes, for_each_object};
use crate::host::lock::{Lock, Locked};
use crate::host::machine;

/// The modules known so far.
#[derive(Debug)]
struct Known {
    modules: Vec<Module>,
    /// The loader's counts of loaded and unloaded objects at the last query.
    changes: Changes,
}

static KNOWN: Lock<Known> =
    Lock::new(Known { modules: Vec::new(), changes: Changes { loaded: 0, unloaded: 0 } });

fn known() -> Locked<'static, Known> {
    KNOWN.lock()
}

/// Passes new modules to `write`. Returns `false` if nothing was loaded or unloaded since the last
/// call.
pub fn look(write: impl Fn(&Module)) -> bool {
    let changes = Changes::now();
    let mut known = known();
    if known.changes == changes {
        return false;
    }
    known.changes = changes;
    let now = loaded();
    for module in &now {
        let same = |other: &Module| {
            (&other.path, &other.identity, other.base)
                == (&module.path, &module.identity, module.base)
        };
        if !known.modules.iter().any(same) {
            write(module);
        }
    }
    known.modules = now;
    true
}

/// Whether an address lies in the MPI library or one of its language bindings.
pub fn is_of_mpi(address: usize) -> bool {
    let address = address as u64;
    let known = known();
    let found = known.modules.iter().find(|m| (m.begin..m.end).contains(&address));
    found.is_some_and(|module| {
        let name = module.path.rsplit('/').next().unwrap_or_default();
        name.starts_with("libmpi") || name.starts_with("libpmpi")
    })
}

/// The file mapped at an address. A program that opens `./plugin.so` may change its folder afterwards.
fn mapped_file(address: u64) -> Option<String> {
    file_in(&String::from_utf8_lossy(&std::fs::read("/proc/self/maps").ok()?), address)
}

/// The file in the line of an address: `begin-end access offset device inode  /path`.
fn file_in(maps: &str, address: u64) -> Option<String> {
    let number = |text| u64::from_str_radix(text, 16).ok();
    let line = maps.lines().find(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let range = range.and_then(|(begin, end)| Some(number(begin)?..number(end)?));
        range.is_some_and(|range| range.contains(&address))
    })?;
    let path = &line[line.find('/')?..];
    (!path.ends_with(" (deleted)")).then(|| path.to_owned())
}

fn loaded() -> Vec<Module> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid record with valid headers, whose notes are mapped.
        // `out` is the vector below.
        unsafe {
            let modules = &mut *out.cast::<Vec<Module>>();
            let headers = std::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum.into());
            let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
            let base = (*info).dlpi_addr;
            let begin = loads().map(|header| base + header.p_vaddr).min();
            let end = loads().map(|header| base + header.p_vaddr + header.p_memsz).max();
            let (Some(begin), Some(end)) = (begin, end) else { return 0 };
            let name = match (*info).dlpi_name {
                null if null.is_null() => String::new(),
                name => CStr::from_ptr(name).to_string_lossy().into_owned(),
            };
            // The program itself comes first and has no name.
            let path =
                if modules.is_empty() && name.is_empty() { machine::program() } else { name };
            let path = if path.contains('/') && !path.starts_with('/') {
                mapped_file(begin).unwrap_or(path)
            } else {
                path
            };
            let identity = machine::build_id_of(headers, base).unwrap_or_default();
            modules.push(Module { path, identity, base, begin, end, ticks: counter::now() });
        }
        0
    }
    let mut modules: Vec<Module> = Vec::new();
    // SAFETY: callback and argument match.
    unsafe { for_each_object(add, (&raw mut modules).cast()) };
    modules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_file_mapped_at_an_address() {
        let maps = "1000-3000 r-xp 0 fd:00 12  /opt/a b/plug in.so\n3000-4000 rw-p 0 00:00 0 \n\
                    5000-6000 r-xp 0 fd:00 13 /tmp/gone.so (deleted)\n";
        assert_eq!(file_in(maps, 0x1000).as_deref(), Some("/opt/a b/plug in.so"));
        for address in [0xfff, 0x3000, 0x4000, 0x5000] {
            assert_eq!(file_in(maps, address), None, "{address:x}");
        }
    }
}
