//! What a gammachi run directory holds.
//!
//! A run directory has one file a rank ([`files::rank_file_path`]). A rank file is a header area
//! ([`header::FileHeader`]), then chunks: *event chunks*, a header and slots of 40 bytes written in
//! place by one thread, and *definition chunks*, checksummed records ([`header::Definition`]) that
//! say what the numbers in the events mean. The recorder (`pmpi-shim`) writes, the analyzer reads;
//! this crate is the only place that knows the bytes. `docs/reference/trace-format.md` is the same in prose.
//!
//! [`clock_estimate`] is what a clock exchange's numbers are: both sides compute with it.
//!
//! [`encoded`] is how the slots of full windows become one to three bytes a call, and back.
//!
//! [`settings`] are the environment variables between command and recorder.
//!
//! Everything is little-endian. Nothing here knows an MPI library.
//!
//! The feature `reader` adds [`reader`], which maps a rank file and trusts nothing in it: a damaged
//! file yields its valid prefix and a list of named diagnoses. The feature `writer` adds [`writer`], for
//! events that another tool recorded.

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
pub mod run_id;
pub mod settings;
pub mod totals;
#[cfg(feature = "reader")]
mod version_1;
#[cfg(feature = "writer")]
pub mod writer;
