//! What a rank knows of itself when recording begins.

use std::path::Path;

use crate::event::ignored_statuses;
use crate::host::machine;
use crate::host::run_id::RunId;
use crate::host::settings::{self, Settings};
use crate::host::warn::warn;
use crate::mpi::abi;
use crate::mpi::library::MpiLibrary;
use crate::mpi::weak_references;

/// What is known of this process before the ranks meet.
pub struct Process {
    pub settings: Settings,
    pub complaints: Vec<String>,
    pub library: MpiLibrary,
    pub host: String,
    pub boot_id: String,
    pub host_number: u64,
}

impl Process {
    /// Reads settings, and identifies MPI, which is initialised, and the host.
    pub fn look() -> Self {
        // MPI has loaded plug-ins. At the first call this would count as the program's time.
        weak_references::repair();
        let (settings, complaints) = settings::read();
        let library = MpiLibrary::detect();
        // Wrappers need these constants to read handles even if nothing is recorded.
        abi::set(library.family, library.request_null(), library.datatype_null());
        ignored_statuses::set(&library);
        let (host, boot_id) = (machine::host(), machine::boot_id());
        let host_number = machine::host_number(&host, &boot_id);
        Self { settings, complaints, library, host, boot_id, host_number }
    }

    pub fn warn_of_settings(&self, rank: u32) {
        if rank == 0 {
            for complaint in &self.complaints {
                warn(complaint);
            }
        }
    }

    pub fn level(&self) -> u8 {
        if abi::is_known() { self.settings.level } else { 0 }
    }
}

/// Where this rank's file is, and what it says of the rank.
pub struct Place<'a> {
    pub rank: u32,
    pub size: u32,
    pub directory: &'a Path,
    pub run_id: RunId,
    /// Whether this rank describes the job's environment for all.
    pub describes: bool,
}
