//! Identifies the loaded MPI, and provides the constants of its ABI that the recorder itself needs.
//!
//! The recorder's own calls go straight to the library's `PMPI_*`, past every other tool. For an
//! unknown MPI the constants are unknown, and nothing is called that needs them.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use crate::host::loader::{find, find_data, object_of};
use crate::mpi::invoke::Invoke;

/// The ABI family of the loaded library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Open MPI: handles are pointers.
    OpenMpi,
    /// MPICH and its derivatives: handles are ints.
    Mpich,
    /// The standard ABI of MPI 5.
    Abi,
    /// None of these: only functions and times are recorded.
    Unknown,
}

impl Family {
    /// The name used in traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
            Self::Abi => "abi",
            Self::Unknown => "unknown",
        }
    }
}

/// The loaded MPI library.
#[derive(Debug, Clone)]
pub struct MpiLibrary {
    /// Its family.
    pub family: Family,
    /// First line of its version text.
    pub version_text: String,
    /// Version of the MPI standard that the library reports.
    pub standard: (i32, i32),
    comm_world: usize,
    comm_self: usize,
    comm_null: usize,
    request_null: usize,
    datatype_null: usize,
    byte: usize,
    errors_return: usize,
}

/// The processes that record together, and the communicator of all of them over which they may talk.
/// The program has not used it yet.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    pub library: &'a MpiLibrary,
    /// `None` if the library's constants are unknown.
    pub communicator: Option<usize>,
    pub rank: u32,
    pub size: u32,
}

/// Maximum length of a version text (MPI_MAX_LIBRARY_VERSION_STRING of MPICH).
const VERSION_TEXT_BYTES: usize = 8192;

fn call<A: Invoke>(name: &CStr, arguments: A) -> Option<i32> {
    let entry = find(name)?;
    // SAFETY: every caller in this module passes the arguments that the standard defines for the
    // name, with handles of the detected family.
    Some(unsafe { arguments.invoke(entry) } as i32)
}

/// An entry of the library that is called many times.
#[derive(Debug, Clone, Copy)]
pub struct Entry(*const c_void);

// SAFETY: the address of a function; any thread may call it if MPI's thread level allows.
unsafe impl Send for Entry {}
// SAFETY: the address is never written, and the function may be called from any thread if MPI's
// thread level allows.
unsafe impl Sync for Entry {}

impl Entry {
    /// The `PMPI_*` entry of this name.
    pub fn find(name: &CStr) -> Option<Self> {
        find(name).map(Self)
    }

    /// Calls the entry. Returns whether the result was MPI_SUCCESS.
    ///
    /// # Safety
    /// The arguments are those of the entry.
    pub unsafe fn call<A: Invoke>(self, arguments: A) -> bool {
        // SAFETY: the entry's own arguments.
        unsafe { arguments.invoke(self.0) as i32 == 0 }
    }

    /// The answer of an inquiry that takes a handle and a pointer to an int.
    fn ask(self, handle: usize) -> Option<i32> {
        let mut value = 0i32;
        // SAFETY: the arguments of such an inquiry, with an int of ours.
        unsafe { self.call([handle, &raw mut value as usize]) }.then_some(value)
    }
}

/// The answer to an inquiry that takes a handle and a pointer to an int.
pub fn ask(name: &CStr, handle: usize) -> Option<i32> {
    Entry::find(name)?.ask(handle)
}

/// An entry that is looked up at its first use, because looking it up takes longer than most
/// inquiries. For calls between MPI_Init and MPI_Finalize, while the library stays loaded.
pub struct KnownEntry {
    name: &'static CStr,
    entry: OnceLock<Option<Entry>>,
}

impl KnownEntry {
    /// The `PMPI_*` entry of this name.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, entry: OnceLock::new() }
    }

    /// The entry, if the library has it.
    pub fn get(&self) -> Option<Entry> {
        *self.entry.get_or_init(|| Entry::find(self.name))
    }

    /// Like [`ask`].
    pub fn ask(&self, handle: usize) -> Option<i32> {
        self.get()?.ask(handle)
    }
}

impl MpiLibrary {
    /// Identifies the loaded library. MPI must be initialised.
    pub fn detect() -> Self {
        let version_text = library_version();
        let standard = standard_version();
        let data = |name: &CStr| find_data(name).map_or(0, |address| address as usize);
        let world = data(c"ompi_mpi_comm_world");
        let mut library = Self {
            family: Family::Unknown,
            version_text,
            standard,
            comm_world: 0,
            comm_self: 0,
            comm_null: 0,
            request_null: 0,
            datatype_null: 0,
            byte: 0,
            errors_return: 0,
        };
        if world != 0 {
            library.family = Family::OpenMpi;
            library.comm_world = world;
            library.comm_self = data(c"ompi_mpi_comm_self");
            library.comm_null = data(c"ompi_mpi_comm_null");
            library.request_null = data(c"ompi_request_null");
            library.datatype_null = data(c"ompi_mpi_datatype_null");
            library.byte = data(c"ompi_mpi_byte");
            library.errors_return = data(c"ompi_mpi_errors_return");
        } else if abi_version() == Some((1, 0)) {
            library.family = Family::Abi;
            library.comm_world = 0x101;
            library.comm_self = 0x102;
            library.comm_null = 0x100;
            library.request_null = 0x180;
            library.datatype_null = 0x200;
            library.byte = 0x247;
            library.errors_return = 0x143;
        } else if library.looks_like_mpich() {
            library.family = Family::Mpich;
            library.comm_world = 0x4400_0000;
            library.comm_self = 0x4400_0001;
            library.comm_null = 0x0400_0000;
            library.request_null = 0x2c00_0000;
            library.datatype_null = 0x0c00_0000;
            library.byte = 0x4c00_010d;
            library.errors_return = 0x5400_0001;
        }
        library
    }

    fn looks_like_mpich(&self) -> bool {
        let object = find(c"PMPI_Init").and_then(object_of).unwrap_or_default();
        ["MPICH", "Intel(R) MPI", "MVAPICH"].iter().any(|name| self.version_text.contains(name))
            || object.contains("libmpich.so.12")
            || object.contains("libmpi.so.12")
    }

    /// Handle of MPI_COMM_WORLD, if known.
    pub fn comm_world(&self) -> Option<usize> {
        (self.comm_world != 0).then_some(self.comm_world)
    }

    /// Handle of MPI_COMM_SELF, if known.
    pub fn comm_self(&self) -> Option<usize> {
        (self.comm_self != 0).then_some(self.comm_self)
    }

    /// Handle of MPI_COMM_NULL, if known.
    pub fn comm_null(&self) -> Option<usize> {
        (self.comm_null != 0).then_some(self.comm_null)
    }

    /// Handle of MPI_REQUEST_NULL, 0 if unknown.
    pub fn request_null(&self) -> usize {
        self.request_null
    }

    /// Handle of MPI_DATATYPE_NULL, 0 if unknown.
    pub fn datatype_null(&self) -> usize {
        self.datatype_null
    }

    /// Handle of MPI_BYTE, if known.
    pub fn byte(&self) -> Option<usize> {
        (self.byte != 0).then_some(self.byte)
    }

    /// Handle of MPI_ERRORS_RETURN, if known.
    pub fn errors_return(&self) -> Option<usize> {
        (self.errors_return != 0).then_some(self.errors_return)
    }

    /// Rank in MPI_COMM_WORLD and its size: from MPI or, if the communicator's handle is unknown,
    /// from variables that launchers set.
    pub fn rank_and_size(&self) -> Option<(u32, u32)> {
        let Some(world) = self.comm_world() else { return rank_from_launcher() };
        let (mut rank, mut size) = (-1i32, -1i32);
        call(c"PMPI_Comm_rank", [world, &raw mut rank as usize]).filter(|code| *code == 0)?;
        call(c"PMPI_Comm_size", [world, &raw mut size as usize]).filter(|code| *code == 0)?;
        Some((u32::try_from(rank).ok()?, u32::try_from(size).ok()?))
    }

    /// Provided thread level from 0 to 3; −1 if it cannot be queried.
    pub fn thread_level(&self) -> i32 {
        let mut provided = -1i32;
        let asked = call(c"PMPI_Query_thread", [&raw mut provided as usize]);
        match (asked, self.family) {
            (Some(0), Family::Abi) => provided / 1024 - i32::from(provided == 4096),
            (Some(0), _) => provided,
            _ => -1,
        }
    }
}

fn library_version() -> String {
    let mut text = vec![0u8; VERSION_TEXT_BYTES];
    let mut length = 0i32;
    let pointers = [text.as_mut_ptr() as usize, &raw mut length as usize];
    if call(c"PMPI_Get_library_version", pointers) != Some(0) {
        return String::new();
    }
    let text = String::from_utf8_lossy(&text[..(length.max(0) as usize).min(VERSION_TEXT_BYTES)]);
    text.trim_end_matches('\0').lines().next().unwrap_or_default().trim().to_owned()
}

fn standard_version() -> (i32, i32) {
    let (mut major, mut minor) = (0i32, 0i32);
    call(c"PMPI_Get_version", [&raw mut major as usize, &raw mut minor as usize]);
    (major, minor)
}

fn abi_version() -> Option<(i32, i32)> {
    let (mut major, mut minor) = (-1i32, -1i32);
    let code = call(c"PMPI_Abi_get_version", [&raw mut major as usize, &raw mut minor as usize])?;
    (code == 0).then_some((major, minor))
}

/// Rank and number of ranks from variables that launchers set.
pub fn rank_from_launcher() -> Option<(u32, u32)> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    let pairs = [
        ("PMI_RANK", "PMI_SIZE"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
    ];
    pairs.iter().find_map(|(rank, size)| Some((number(rank)?, number(size)?)))
}
