//! What each thread remembers of the addresses that it called from and the modules that they lie in.

use trace_format::header::Definition;

use crate::host::modules;
use crate::store::trace_file::define;

/// Addresses that a thread remembers.
const PLACES: usize = 64;

/// What a thread remembers of an address: how many bytes above the entry its binding's caller stands, 0
/// where the address is the program's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    /// The address; 0 in a place that is free.
    pub address: usize,
    /// Bytes above the entry.
    pub above: usize,
}

/// The addresses that a thread remembers.
#[derive(Debug)]
pub struct SiteTable {
    places: [Place; PLACES],
}

impl Default for SiteTable {
    fn default() -> Self {
        Self { places: [Place::default(); PLACES] }
    }
}

impl SiteTable {
    /// Forgets all addresses: other code may have taken their place.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// The place of an address, which may hold another one.
    #[inline(always)]
    pub fn place(&mut self, address: usize) -> &mut Place {
        &mut self.places[(address >> 2) % PLACES]
    }
}

/// Writes down the modules that are new. `false` when nothing has come or gone since the last time.
pub fn look_at_modules() -> bool {
    modules::look(|module| {
        let _ = define(&Definition::Module(module.clone()));
    })
}
