//! What level 1 writes down, call by call, against the `.expected` file beside the program.
//!
//! Programs are so made that all they do is fixed by the standard: who sends what to whom, which call
//! completes which request, how many polls find nothing. Only handles and constants differ between the
//! MPIs; [`actual`] gives them names. [`expected`] describes the files' format.

pub mod actual;
pub mod difference;
pub mod expected;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use crate::mpi::Mpi;
use crate::place::{Fresh, build_directory, repository};
use crate::trace::Trace;
use crate::victim::{Build, built};
use crate::{Job, Recorded};

/// Where programs and expected events lie, seen from `tests/victims` and from what is built there.
const FOLDER: &str = "../conformity";

/// What a program here may take: some make many thousand calls, also where two cores serve many.
const DEADLINE: Duration = Duration::from_secs(115);

/// The programs and the ranks that each runs on.
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

/// Why a program of [`PROGRAMS`] cannot run under an MPI, where it cannot.
pub fn not_applicable(mpi: Mpi, name: &str) -> Option<&'static str> {
    match (mpi, name) {
        (Mpi::OpenMpi, "large_counts" | "mpi_4") => Some("Open MPI 4.1 has no MPI 4 procedures"),
        (Mpi::Intel | Mpi::IntelAbi, "tests_of_requests") => {
            Some("Intel MPI completes messages to itself later than the program allows, bare too")
        }
        (Mpi::OpenMpi5, "large_counts") => Some("Open MPI 5.0 has no procedures of large counts"),
        _ => None,
    }
}

/// The program of that name, built for an MPI.
pub fn program(mpi: Mpi, name: &str, build: Build) -> PathBuf {
    std::fs::create_dir_all(build_directory().join(FOLDER)).expect("the target folder is writable");
    built(mpi, &format!("{FOLDER}/{name}"), build)
}

/// The expected events of a program of `tests/FOLDER`.
///
/// # Panics
/// When there are none.
pub fn expected_text(folder: &str, name: &str) -> String {
    let path = repository().join("tests").join(folder).join(format!("{name}.expected"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What holds for an MPI in an `.expected` file.
pub fn facts(mpi: Mpi) -> Vec<&'static str> {
    let version = match mpi {
        Mpi::OpenMpi => "openmpi4",
        Mpi::Mpich | Mpi::MpichAarch64 => "mpich40",
        other => other.suffix(),
    };
    vec![mpi.family(), version]
}

/// The number of events where all are as expected (facts as in [`expected`]), calls named in `left_out`
/// apart; else the differences of all ranks.
///
/// # Errors
/// The differences.
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
        let found = difference::difference(&lines(&expected), &lines(&recorded));
        if !found.is_empty() {
            report.push_str(&format!("rank {} thread {}:\n{found}", key.0, key.1));
        }
    }
    match report.is_empty() {
        true => Ok(recorded.values().map(Vec::len).sum()),
        false => Err(format!("(- expected, + recorded)\n{report}")),
    }
}

/// What conformity programs need of an MPI beyond [`Mpi::environment`].
pub fn prepared(job: Job) -> Job {
    job.deadline(DEADLINE)
        // Debian's Open MPI chooses UCX for windows, which then refuses them on one host.
        .environment("OMPI_MCA_osc", "^ucx")
        // Open MPI 4.1's treematch now and then hangs in MPI_Dist_graph_create when the world has
        // one more communicator than the program knows; it does so without the recorder too.
        .environment("OMPI_MCA_topo", "^treematch")
}

/// Records a job in a folder of its own and expects it to end well, with nothing to say of ours.
#[track_caller]
pub fn record(job: Job) -> Recorded {
    let fresh = Fresh::new();
    let recorded = prepared(job).in_directory(fresh.path()).record();
    recorded.expect_code(0);
    assert!(recorded.output.own_lines().is_empty(), "{}", recorded.output);
    recorded
}
