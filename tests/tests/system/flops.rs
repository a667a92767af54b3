//! Floating-point operations: of every interposed function of BLAS, LAPACK and FFTW, compared with
//! counts made in the program itself; of nested and threaded calls; and as the program declares
//! them.

use std::collections::BTreeSet;

use system_tests::directories::repository;
use system_tests::trace::{Named, RankTrace};
use system_tests::victim::{Build, built};
use system_tests::{Job, Mpi, Recorded, under_both, victim};
use trace_format::functions::{DECLARED_WORK, compute_names};

use gammachi_analyzer::metrics::{Metrics, Selection};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::trace::Run;

/// Tolerance of LAPACK's counts, compared with the leading terms, at orders of 60 to 90.
const LEADING_TERMS: f64 = 0.05;

fn flops(named: &Named) -> f64 {
    f64::from_bits(named.event.payload[0])
}

fn compute_events(rank: &RankTrace) -> Vec<&Named> {
    let names: BTreeSet<String> = compute_names().into_iter().collect();
    let events = rank.threads.iter().flat_map(|thread| &thread.events);
    events.filter(|named| names.contains(&named.name)).collect()
}

fn counting(mpi: Mpi, seed: &str) -> Job {
    let job = Job::new(mpi, &victim(mpi, "counts_flops")).argument(seed);
    job.environment("OPENBLAS_NUM_THREADS", "1")
}

fn metrics(recorded: &Recorded, selection: &Selection) -> Metrics {
    let run = Run::open(&recorded.directory()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    Metrics::new(&run, &timeline, selection).unwrap()
}

under_both! {
    fn every_function_counts_the_operations_of_the_plain_algorithm(mpi) {
        let mut seen = BTreeSet::new();
        for seed in ["1", "2", "3"] {
            let recorded = counting(mpi, seed).environment("GAMMACHI_FLOPS", "1").record();
            recorded.expect_code(0);
            let trace = recorded.trace();
            let events = compute_events(trace.rank(0));
            let lines: Vec<Vec<&str>> = recorded
                .output
                .stdout
                .lines()
                .map(|line| line.split(' ').collect())
                .collect();
            assert_eq!(events.len(), lines.len(), "one event per call, and none for calls inside it");
            for (event, line) in events.iter().zip(&lines) {
                let (name, expected, leading) = (line[0], line[1], line[2] == "1");
                assert_eq!(event.name, name);
                let (expected, found): (f64, f64) = (expected.parse().unwrap(), flops(event));
                let allowed = if leading { LEADING_TERMS } else { 1e-12 };
                assert!(
                    (found - expected).abs() <= allowed * expected,
                    "seed {seed}: {name}: {found} for {expected}"
                );
                seen.insert(name.to_owned());
            }
        }
        // Every function of the table was called, except those that need another library.
        let other = |name: &String| {
            name == DECLARED_WORK
                || name.contains("_mpi_")
                || name.contains("_execute_split_dft")
        };
        let missing: Vec<String> =
            compute_names().into_iter().filter(|name| !seen.contains(name) && !other(name)).collect();
        assert_eq!(missing, [""; 0]);
    }

    fn records_no_operations_by_default(mpi) {
        let recorded = counting(mpi, "1").record();
        recorded.expect_code(0);
        assert_eq!(compute_events(recorded.trace().rank(0)).len(), 0);
        // The larger calls are computation with --compute blas; the small ones are not recorded.
        let recorded = counting(mpi, "1").environment("GAMMACHI_COMPUTE", "blas").record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        let names: BTreeSet<&str> =
            compute_events(trace.rank(0)).into_iter().map(|named| named.name.as_str()).collect();
        for (name, recorded) in [
            ("cblas_dgemm", true),
            ("dtrsv_", true),
            ("dgetrf_", true),
            ("fftw_execute", true),
            ("cblas_daxpy", false),
            ("dgemv_", false),
        ] {
            assert_eq!(names.contains(name), recorded, "{name}");
        }
    }

    fn counts_driver_once_with_any_number_of_threads(mpi) {
        // dgesv calls dgemm and dtrsm inside; with several threads, some of these run on other
        // threads.
        let of = |threads: &str| {
            let job = counting(mpi, "5").environment("OPENBLAS_NUM_THREADS", threads);
            let recorded = job.environment("GAMMACHI_FLOPS", "1").record();
            recorded.expect_code(0);
            let trace = recorded.trace();
            let events = compute_events(trace.rank(0));
            events.into_iter().map(|named| (named.name.clone(), flops(named).to_bits())).collect::<Vec<_>>()
        };
        assert_eq!(of("1"), of("4"));
    }

    fn declared_work_counts_in_its_region(mpi) {
        for build in [Build::C, Build::CNoPie, Build::Cpp] {
            let job = Job::new(mpi, &built(mpi, "declares_work", build)).ranks(2);
            // Launchers may mix the output of ranks.
            let printed = job.bare().expect_code(0).stdout.replace('\n', "");
            assert_eq!(printed, "ranran", "without the recorder");
            let recorded = job.environment("GAMMACHI_COMPUTE", "regions=solve").record();
            recorded.expect_code(0);
            let trace = recorded.trace();
            assert_eq!(
                trace.rank(1).threads[0].marked(),
                [
                    "MPI_Init", "BEGIN solve", DECLARED_WORK, "END solve", "BEGIN other",
                    DECLARED_WORK, "END other", "MPI_Finalize",
                ]
            );
            let of = |region: &str| metrics(&recorded, &Selection::Region(region.to_owned()));
            let (whole, solve, other) =
                (metrics(&recorded, &Selection::Whole), of("solve"), of("other"));
            assert_eq!((whole.flops, solve.flops), (Some(2.0 * 4e9), Some(2.0 * 3e9)));
            // Computing is the time of the chosen region only.
            for ((whole, solve), other) in whole.ranks.iter().zip(&solve.ranks).zip(&other.ranks) {
                assert!((whole.compute_s - solve.elapsed_s).abs() < 1e-9, "{build:?}");
                assert!(solve.elapsed_s >= 0.05 && other.elapsed_s >= 0.02, "{build:?}");
                assert_eq!(other.compute_s, 0.0, "{build:?}");
            }
        }
    }

    // The trace is read in order of beginnings: a window opened for a transform begins before it.
    fn records_transform_as_first_event_of_a_thread(mpi) {
        let job = Job::new(mpi, &victim(mpi, "transforms_first"));
        let recorded = job.environment("GAMMACHI_FLOPS", "1").record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        assert_eq!(trace.rank(0).count("fftw_execute_dft"), 4 * 3000);
        let expected = 4.0 * 3000.0 * 5.0 * 64.0 * 6.0;
        assert_eq!(metrics(&recorded, &Selection::Whole).flops, Some(expected));
    }

    fn counts_factorisations_and_shared_transforms(mpi) {
        let job = Job::new(mpi, &victim(mpi, "factors_and_transforms")).ranks(2);
        let job = job.environment("OPENBLAS_NUM_THREADS", "1");
        // Debian builds FFTW's MPI interface for Open MPI alone.
        let shares = mpi == Mpi::OpenMpi;
        let job = if shares { job } else { job.argument("alone") };
        let recorded = job.environment("GAMMACHI_FLOPS", "1").record();
        recorded.expect_code(0);
        let of = |region: &str| {
            metrics(&recorded, &Selection::Region(region.to_owned())).flops.unwrap()
        };
        // From the loops of Gaussian elimination: step k divides n − k numbers, and multiplies and
        // subtracts (n − k)² times; daxpy adds 2n.
        let n = 300u64;
        let elimination: u64 = (1..=n).map(|k| (n - k) + 2 * (n - k) * (n - k)).sum();
        let expected = 2.0 * 3.0 * (elimination + 2 * n) as f64;
        let found = of("factors");
        // LAPACK also counts a reciprocal per step.
        assert!((found / expected - 1.0).abs() < 1e-4, "{found} for {expected}");
        if shares {
            // Both ranks' parts of four transforms together; log2 of 32³ is 15.
            assert_eq!(of("transforms"), 4.0 * 5.0 * 32f64.powi(3) * 15.0);
        }
    }

    fn fortran_declares_work(mpi) {
        let job = Job::new(mpi, &built(mpi, "declares_work_fortran", Build::Fortran));
        job.bare().expect_code(0);
        let recorded = job.record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        let events = &trace.rank(0).threads[0].events;
        let work: Vec<f64> =
            events.iter().filter(|named| named.name == DECLARED_WORK).map(flops).collect();
        assert_eq!(work, [3e9, 1e9]);
        assert!(events.iter().any(|named| named.name == "BEGIN solve"));
    }
}

#[test]
fn python_declares_work_and_runs_without_the_recorder() {
    let include = repository().join("pmpi-shim").join("include");
    let program = "import gammachi_regions as g\n\
                   with g.region('solve'):\n    g.work(flops=2e9, bytes=1)\n\
                   try:\n    with g.region('left'):\n        raise ValueError\n\
                   except ValueError:\n    print('ran')\n";
    let output = std::process::Command::new("python3")
        .args(["-B", "-c", program])
        .env("PYTHONPATH", include)
        .output()
        .expect("python3 is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout, b"ran\n");
}
