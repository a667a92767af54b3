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
//! - [`encoded`] packs the slots of full windows into one to three bytes per call, and unpacks
//!   them.
//! - [`settings`] holds the environment variables that connect command and recorder.
//!
//! Everything is little-endian. Nothing here knows an MPI library.
//!
//! The feature `reader` adds [`reader`], which maps a rank file and trusts nothing in it: from a
//! damaged file it yields the valid prefix and a list of diagnoses. The feature `writer` adds
//! [`writer`], for events recorded by another tool.

pub mod byte_size;
pub mod clock_estimate;
pub mod compute;
pub mod counter_kind;
pub mod counters;
pub mod encoded;
pub mod encoding;
pub mod environment;
pub mod errors;
#[cfg(feature = "reader")]
pub mod file_map;
pub mod files;
pub mod fixed_header;
pub mod functions;
pub mod header;
pub mod layout;
pub mod markers;
pub mod meaning;
pub mod plain;
pub mod private_directory;
pub mod procedures;
#[cfg(feature = "reader")]
pub mod reader;
#[cfg(feature = "reader")]
pub mod regular_file;
pub mod run_id;
pub mod settings;
pub mod slot;
pub mod totals;
#[cfg(feature = "reader")]
#[cfg(feature = "writer")]
pub mod writer;
