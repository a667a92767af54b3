//! Compares each program of `tests/conformity` under both of Debian's MPIs with the `.expected`
//! file beside it; `scripts/mpi-matrix` does the same under every MPI and for every language.

use system_tests::conformity::{
    PROGRAMS, compare, expected_text, facts, not_applicable, prepared, program, record,
};
use system_tests::trace::Trace;
use system_tests::victim::Build;
use system_tests::{Job, Mpi, skip, under_both};

/// Fails the test with the differences.
#[track_caller]
fn expect(name: &str, mpi: Mpi, trace: &Trace) {
    if let Err(differences) = compare(&expected_text("conformity", name), &facts(mpi), &[], trace) {
        panic!("{name} under {mpi:?} {differences}");
    }
}

fn job(mpi: Mpi, name: &str) -> Job {
    let ranks = PROGRAMS.iter().find(|(of, _)| *of == name).map_or(1, |(_, ranks)| *ranks);
    Job::new(mpi, &program(mpi, name, Build::C)).ranks(ranks)
}

/// Runs a program and compares its trace.
#[track_caller]
fn check(mpi: Mpi, name: &str) {
    assert!(PROGRAMS.iter().any(|(of, _)| *of == name), "{name} is not a program of the suite");
    if let Some(why) = not_applicable(mpi, name) {
        return skip(&format!("conformity/{name}/{}", mpi.suffix()), why);
    }
    expect(name, mpi, &record(job(mpi, name)).trace());
}

/// One test per program and MPI.
macro_rules! conform {
    ($($name:ident)*) => {
        $(mod $name {
            #[test]
            fn open_mpi() {
                super::check(super::Mpi::OpenMpi, stringify!($name));
            }

            #[test]
            fn mpich() {
                super::check(super::Mpi::Mpich, stringify!($name));
            }
        })*

        #[test]
        fn every_program_has_a_test() {
            let tested = [$(stringify!($name)),*];
            assert!(PROGRAMS.iter().map(|(name, _)| *name).eq(tested));
        }
    };
}

conform! {
    blocking_sends
    send_and_receive
    datatypes
    waits
    tests_of_requests
    many_requests
    persistent_requests
    cancelled_receives
    probes
    polls
    collectives
    collectives_in_place
    collectives_with_counts
    collectives_non_blocking
    neighbourhoods
    communicators
    communicators_reused
    intercommunicators
    one_sided
    files
    packing
    plain_calls
    threads
    large_counts
    mpi_4
}

under_both! {
    fn spawn(mpi) {
        let bare = prepared(job(mpi, "spawn")).bare();
        if bare.code() != 0 && bare.stderr.contains("Error in spawn call") {
            // Debian's MPICH 4.0 and its launcher are incompatible here. The launcher's exit code
            // depends on whether rank 0 has ended before the launcher's SIGTERM reaches it.
            let output = prepared(job(mpi, "spawn")).record().output;
            assert!(output.code() != 0 && output.stderr.contains("Error in spawn call"), "{output}");
            return skip(&format!("spawn/{}", mpi.suffix()), "the bare program cannot spawn");
        }
        let recorded = record(job(mpi, "spawn"));
        expect("spawn", mpi, &recorded.trace());
        // The parent's directory existed already, so the child chose the next name.
        let mut beside = recorded.directory().into_os_string();
        beside.push("-2");
        let child = Trace::open(beside.as_ref(), 1).unwrap_or_else(|what| panic!("the child: {what}"));
        expect("spawn_child", mpi, &child);
    }
}
