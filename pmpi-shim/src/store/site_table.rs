//! The call addresses that each thread remembers, and the modules that contain them.

use trace_format::header::Definition;

use crate::host::modules;
use crate::store::trace_file::define;

/// Number of addresses that a thread remembers.
const ENTRIES: usize = 64;

/// What a thread remembers about an address: how many bytes above the entry its binding's caller
/// is, or 0 if the address belongs to the program itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct SiteEntry {
    /// The address; 0 in a free entry.
    pub address: usize,
    /// Bytes above the entry.
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
