//! The header of the rank's file: facts about the run, the program, the host and the MPI library.

use trace_format::functions;
use trace_format::header::FileHeader;
use trace_format::layout::*;

use crate::host::counter;
use crate::host::machine;
use crate::life::process::{Place, Process};
use crate::store::trace_file;

/// Writes the header.
pub fn write(process: &Process, place: &Place) -> Result<(), String> {
    let (settings, library) = (&process.settings, &process.library);
    let (host, boot_id) = (process.host.clone(), process.boot_id.clone());
    let header = FileHeader {
        recorder_version: env!("CARGO_PKG_VERSION").to_owned(),
        program: machine::program(),
        build_id: machine::build_id(),
        arguments: machine::arguments(),
        directory: std::env::current_dir()
            .map(|d| d.to_string_lossy().into_owned())
            .unwrap_or_default(),
        host,
        boot_id,
        mpi_library: library.version_text.clone(),
        mpi_family: library.family.name().to_owned(),
        mpi_version: library.standard,
        thread_level: library.thread_level(),
        counter_invariant: counter::is_invariant(),
        compute: settings.compute.to_string(),
        parameters: settings.parameters.clone(),
        affinity: machine::affinity(),
        numa_node: machine::core_and_node().1,
        function_names: functions::names().join("\n"),
    };
    let fixed = FixedHeader {
        pid: std::process::id(),
        run_id: place.run_id,
        ..FixedHeader::new(counter::kind(), process.level(), place.rank, place.size)
    };
    trace_file::write_header(fixed, &header)
}
