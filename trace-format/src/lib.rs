//! The contents of a gammachi run directory.
//!
//! A run directory has one file per rank ([`files::rank_file_path`]). A rank file consists of a
//! header area ([`header::FileHeader`]) and chunks: *event chunks*, a header and slots of 40 bytes
//! written in place by one thread, and *definition chunks*, checksummed records
//! ([`header::Definition`]) that give the numbers in the events their meaning. The recorder
//! (`pmpi-shim`) writes these files and the analyzer reads them; no other crate knows their bytes.
//! `docs/reference/trace-format.md` describes the format in prose.
//!
//! - [`clock_estimate`] defines the result of a clock exchange, which both sides compute with.
//! - [`slot`] says what is in an event slot; recorder, reader and writer share it.
//! - [`samples`] says how samples of the program's own code are stored, [`stacks`] those that were asked for.
//! - [`encoded`] packs the slots of full windows into one to three bytes per call, and unpacks
//!   them.
//! - [`settings`] holds the environment variables that connect command and recorder.
//!
//! Everything is little-endian. Nothing here knows an MPI library.
//!
//! The feature `reader` adds [`reader`], which maps a rank file and trusts nothing in it: from a
//! damaged file it yields the valid prefix and a list of diagnoses. The feature `writer` adds
//! [`writer`], for events recorded by another tool.

pub mod computing;
pub mod encoded;
pub mod layout;
pub mod meaning;
pub mod preload;
#[cfg(feature = "reader")]
pub mod reader;
pub mod settings;
#[cfg(feature = "writer")]
pub mod writer;

pub use computing::{compute, counters};
pub use layout::{
    clock_estimate, counter_kind, encoding, file_calls, files, fixed_header, header, markers,
    plain, private_directory, samples, slot, stacks, totals,
};
pub use meaning::{errors, functions, procedures};
#[cfg(feature = "reader")]
pub use reader::{file_map, regular_file};
pub use settings::{byte_size, environment, run_id};
