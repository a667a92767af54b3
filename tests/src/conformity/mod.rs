//! Compares what level 1 records, call by call, with the `.expected` file beside the program.
//!
//! The MPI standard determines everything that these programs do: which rank sends what to which,
//! which call completes which request, how many polls find nothing. Only handles and constants
//! differ between MPIs; [`actual`] gives them names. [`expected`] describes the format of the
//! files.

pub mod actual;
pub mod difference;
pub mod expected;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use crate::directories::{TempDir, build_directory, repository};
use crate::mpi::Mpi;
use crate::trace::Trace;
use crate::victim::{Build, built};
use crate::{Job, Recorded};

/// Folder of programs and expected events, relative to `tests/victims` and to the build directory.
const FOLDER: &str = "../conformity";

/// Time limit of a program: some make many thousand calls, and many ranks may share two cores.
const DEADLINE: Duration = Duration::from_secs(115);

/// The programs, with the number of ranks that each runs on.
pub const PROGRAMS: &[(&str, u32)] = &[
    ("blocking_sends", 2),
    ("send_and_receive", 2),
    ("datatypes", 2),
    ("waits", 2),
    ("tests_of_requests", 1),
    ("many_requests", 1),
    ("persistent_requests", 2),
    ("cancelled_receives", 2),
    ("probes", 2),
    ("polls", 2),
    ("collectives", 3),
    ("collectives_in_place", 3),
    ("collectives_with_counts", 3),
    ("collectives_non_blocking", 3),
    ("neighbourhoods", 4),
    ("communicators", 4),
    ("communicators_reused", 2),
    ("intercommunicators", 4),
    ("one_sided", 2),
    ("files", 2),
    ("packing", 2),
    ("plain_calls", 2),
    ("threads", 1),
    ("large_counts", 2),
    ("mpi_4", 2),
];

/// Why a program of [`PROGRAMS`] cannot run under an MPI; `None` if it can.
pub fn not_applicable(mpi: Mpi, name: &str) -> Option<&'static str> {
    match (mpi, name) {
        (Mpi::OpenMpi, "large_counts" | "mpi_4") => Some("Open MPI 4.1 has no MPI 4 procedures"),
        (Mpi::Intel | Mpi::IntelAbi, "tests_of_requests") => {
            Some("Intel MPI, even bare, completes messages to itself later than the program allows")
        }
        (Mpi::OpenMpi5, "large_counts") => Some("Open MPI 5.0 has no procedures of large counts"),
        _ => None,
    }
}

/// Builds the program of that name for an MPI.
pub fn program(mpi: Mpi, name: &str, build: Build) -> PathBuf {
    std::fs::create_dir_all(build_directory().join(FOLDER)).expect("the target folder is writable");
    built(mpi, &format!("{FOLDER}/{name}"), build)
}

/// Reads the expected events of a program of `tests/FOLDER`.
///
/// # Panics
/// If the file cannot be read.
pub fn expected_text(folder: &str, name: &str) -> String {
    let path = repository().join("tests").join(folder).join(format!("{name}.expected"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The conditions of an `.expected` file that hold under an MPI.
pub fn facts(mpi: Mpi) -> Vec<&'static str> {
    let version = match mpi {
        Mpi::OpenMpi => "openmpi4",
        Mpi::Mpich | Mpi::MpichAarch64 => "mpich40",
        other => other.suffix(),
    };
    vec![mpi.family(), version]
}

/// Compares a trace with the expected text (facts as in [`expected`]), except for the calls named
/// in `left_out`, and returns the number of events.
///
/// # Errors
/// The differences of all ranks.
pub fn compare(
    text: &str,
    facts: &[&str],
    left_out: &[&str],
    trace: &Trace,
) -> Result<usize, String> {
    let mut expected = expected::lines(text, facts, trace.ranks.len());
    let mut recorded = actual::lines(trace);
    for line in expected.values_mut().chain(recorded.values_mut()) {
        let name = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
        line.retain(|line| !left_out.contains(&name(line).as_str()));
    }
    let threads: BTreeSet<_> = expected.keys().chain(recorded.keys()).collect();
    let mut report = String::new();
    for key in threads {
        let lines = |lines: &actual::Lines| lines.get(key).cloned().unwrap_or_default();
        let difference = difference::difference(&lines(&expected), &lines(&recorded));
        if !difference.is_empty() {
            report.push_str(&format!("rank {} thread {}:\n{difference}", key.0, key.1));
        }
    }
    match report.is_empty() {
        true => Ok(recorded.values().map(Vec::len).sum()),
        false => Err(format!("(- expected, + recorded)\n{report}")),
    }
}

/// Sets what conformity programs need of an MPI beyond [`Mpi::environment`].
pub fn prepared(job: Job) -> Job {
    job.deadline(DEADLINE)
        // Debian's Open MPI chooses UCX for windows, and UCX refuses windows on one host.
        .environment("OMPI_MCA_osc", "^ucx")
        // Open MPI 4.1's treematch occasionally hangs in MPI_Dist_graph_create when the world has
        // one more communicator than the program knows, even without the recorder.
        .environment("OMPI_MCA_topo", "^treematch")
}

/// Records a job in its own directory; expects exit code 0 and no message from the recorder.
#[track_caller]
pub fn record(job: Job) -> Recorded {
    let temp = TempDir::new();
    let recorded = prepared(job).in_directory(temp.path()).record();
    recorded.expect_code(0);
    assert!(recorded.output.recorder_lines().is_empty(), "{}", recorded.output);
    recorded
}
