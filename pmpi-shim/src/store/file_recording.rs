//! Whether calls on files are recorded, and what the kernel knows of them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use trace_format::file_calls::FileReads;
use trace_format::header::{Definition, FileRecording, Phase};

use crate::host::machine;
use crate::store::trace_file::define;
use crate::store::{file_sums, known_files};

/// Where the other library counts what it sees, but is not recorded: bytes read and written.
static ELSEWHERE: OnceLock<&'static [AtomicU64; 2]> = OnceLock::new();

/// Whom to ask for the reads of a file.
static READS: OnceLock<extern "C" fn(u32) -> FileReads> = OnceLock::new();

/// Called by the other library when it is loaded.
pub extern "C" fn attach(
    elsewhere: &'static [AtomicU64; 2],
    reads: extern "C" fn(u32) -> FileReads,
) {
    let _ = ELSEWHERE.set(elsewhere);
    let _ = READS.set(reads);
}

/// Whether the library that sees calls on files is loaded.
pub fn is_attached() -> bool {
    ELSEWHERE.get().is_some()
}

/// Writes what is known besides events, when recording begins or ends.
pub fn write(phase: Phase) -> Result<(), String> {
    let elsewhere =
        ELSEWHERE.get().map(|[read, written]| (read.load(Relaxed), written.load(Relaxed)));
    let sums = match phase {
        Phase::Finalize => {
            write_reads()?;
            file_sums::take_all(known_files::last_number())
        }
        _ => Vec::new(),
    };
    define(&Definition::FileRecording(FileRecording {
        phase,
        is_loaded: elsewhere.is_some(),
        moved: machine::moved_bytes(),
        elsewhere: elsewhere.unwrap_or_default(),
        sums,
    }))
}

/// Writes what is known of where the files were read.
fn write_reads() -> Result<(), String> {
    let Some(of_file) = READS.get() else { return Ok(()) };
    for file in 1..=known_files::last_number() {
        let reads = of_file(file);
        if reads.calls > 0 {
            define(&Definition::FileReads { file, reads })?;
        }
    }
    Ok(())
}
