//! Regions marked through `gammachi.h`, from C and C++, position-independent or not.

use system_tests::victim::{Build, built};
use system_tests::{Job, under_both, victim};

/// Each way of building a program that uses the header.
const BUILDS: [Build; 4] = [Build::C, Build::CNoPie, Build::Cpp, Build::CppNoPie];

under_both! {
    fn names_and_nesting(mpi) {
        for build in BUILDS {
            let job = Job::new(mpi, &built(mpi, "regions", build)).ranks(2);
            let bare = job.bare();
            assert_eq!(bare.expect_code(0).stdout, "ran\n", "{build:?}");
            let recorded = job.record();
            recorded.output.expect_same(&bare);
            for rank in recorded.trace().ranks {
                assert_eq!(
                    rank.threads[0].marked(),
                    [
                        "MPI_Init",
                        "BEGIN solve",
                        "MPI_Comm_rank",
                        "BEGIN inner ö",
                        "MPI_Barrier",
                        "END inner ö",
                        "BEGIN inner ö",
                        "MPI_Barrier",
                        "END inner ö",
                        "END solve",
                        "MPI_Finalize",
                    ],
                    "{build:?}"
                );
            }
        }
    }

    fn more_names_than_the_table_holds(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "many_regions")).record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        let marked = trace.rank(0).threads[0].marked();
        assert_eq!(marked.len(), 3 + 6000);
        assert_eq!(marked[1], "BEGIN region 0");
        assert_eq!(marked[2], "END region 0");
        assert_eq!(marked[5999], "BEGIN (more regions)");
        assert!(!marked.iter().any(|name| name.contains("(undefined)")));
    }
}
