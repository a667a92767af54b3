//! Jobs that a program spawns are recorded as runs of their own.

use gammachi_analyzer::trace::Run;
use system_tests::{Job, Mpi, skip, victim};

/// Both ranks of a job spawn at the same time: each of the three worlds is one whole run.
fn expect_three_whole_worlds(mpi: Mpi) {
    let recorded = Job::new(mpi, &victim(mpi, "spawns_at_once")).ranks(2).record();
    recorded.expect_code(0);
    let lines = recorded.output.recorder_lines();
    assert!(lines.is_empty(), "{lines:?}");
    let sizes = ["", "-2", "-3"].map(|ending| {
        let mut directory = recorded.directory();
        directory.as_mut_os_string().push(ending);
        let run = Run::open(&directory).expect("the run can be read");
        assert!(run.ranks.iter().all(|rank| rank.facts.finalized()));
        assert_eq!(run.ranks.len() as u32, run.world_size, "{}", directory.display());
        run.world_size
    });
    assert_eq!(sizes[0], 2, "the parents");
    assert_eq!(sizes[1] + sizes[2], 5, "the children of both");
}

#[test]
fn at_the_same_time_under_open_mpi() {
    expect_three_whole_worlds(Mpi::OpenMpi);
}

// Its launcher, unlike those before, lets the worlds share a proxy. (Debian's MPICH cannot spawn.)
#[test]
fn at_the_same_time_under_mpich_5() {
    let mpi = Mpi::Mpich5;
    if mpi.environment_folder().is_some_and(|folder| folder.join("complete").is_file()) {
        expect_three_whole_worlds(mpi);
    } else {
        skip("spawns/mpich5", "PyPI's MPICH 5 is not set up (scripts/mpi-matrix --setup mpich5)");
    }
}
