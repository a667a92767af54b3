//! The call addresses that each thread remembers, and the modules that contain them.
//!
//! After the program has closed a library, other code may be loaded where it was. Then nothing that
//! was remembered counts any more ([`forget_unloaded`]).

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use trace_format::header::Definition;

use crate::host::modules;
use crate::store::trace_file::define;

/// Number of addresses that a thread remembers.
const ENTRIES: usize = 128;
/// Code has addresses below this bit, so that keys of different generations differ.
const GENERATION_SHIFT: u32 = 48;

/// How often libraries were closed.
static GENERATION: AtomicUsize = AtomicUsize::new(0);

/// Must be called when libraries were closed.
pub fn forget_unloaded() {
    GENERATION.fetch_add(1, Relaxed);
}

/// An address and the generation of the code there.
#[inline(always)]
pub fn key_of(address: usize) -> usize {
    address ^ GENERATION.load(Relaxed) << GENERATION_SHIFT
}

/// What a thread remembers about a return address: how many bytes above it that of its binding's
/// caller stands, or 0 if the address belongs to the program itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct SiteEntry {
    /// Its [`key_of`]; 0 in a free entry.
    pub key: usize,
    /// Bytes above it.
    pub above: usize,
}

/// The addresses that a thread remembers.
#[derive(Debug)]
pub struct SiteTable {
    entries: [SiteEntry; ENTRIES],
}

impl Default for SiteTable {
    fn default() -> Self {
        Self { entries: [SiteEntry::default(); ENTRIES] }
    }
}

impl SiteTable {
    /// Forgets all addresses, because other code may be loaded there now.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// The entry for an address. It may hold another address.
    #[inline(always)]
    pub fn entry(&mut self, address: usize) -> &mut SiteEntry {
        &mut self.entries[(address >> 2) % ENTRIES]
    }
}

/// Defines new modules in the trace. Returns `false` if nothing was loaded or unloaded since the
/// last call.
pub fn look_at_modules() -> bool {
    modules::look(|module| {
        let _ = define(&Definition::Module(module.clone()));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_no_address_in_a_library_that_was_closed() {
        let (mut table, address) = (SiteTable::default(), 0x7f12_3456_7890);
        *table.entry(address) = SiteEntry { key: key_of(address), above: 0 };
        assert_eq!(table.entry(address).key, key_of(address));
        forget_unloaded();
        assert_ne!(table.entry(address).key, key_of(address));
    }
}
