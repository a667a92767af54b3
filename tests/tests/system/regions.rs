//! Regions marked through `gammachi.h`, from C and C++, position-independent or not.

use std::process::{Command, Stdio};

use serde_json::Value;
use system_tests::kernels::command;
use system_tests::victim::{Build, built};
use system_tests::{Job, Recorded, under_both, victim};

/// Each way of building a program that uses the header.
const BUILDS: [Build; 4] = [Build::C, Build::CNoPie, Build::Cpp, Build::CppNoPie];

/// The output of `gammachi report` or `gammachi why`.
fn shown(arguments: &[&str], recorded: &Recorded) -> String {
    let mut command = Command::new(command());
    command.args(arguments).arg(recorded.directory()).stdin(Stdio::null());
    let output = command.output().expect("the command starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn document(arguments: &[&str], recorded: &Recorded) -> Value {
    serde_json::from_str(&shown(arguments, recorded)).expect("JSON")
}

under_both! {
    fn region_has_its_own_waits_and_causes(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "waits_in_region")).ranks(3).record();
        recorded.expect_code(0);
        let report = document(&["report", "--json", "--region", "solve"], &recorded);
        let causes = &report["causes"];
        let waited = causes["waiting"]["total_s"].as_f64().expect("a number");
        let inside = 3.0 * report["elapsed_s"].as_f64().expect("a number");
        assert!(waited > 0.0 && waited <= inside, "{waited} s in {inside} s");
        // Rank 0 delays the others for longer, but outside of the region.
        let first = &causes["costliest"][0];
        assert_eq!((&first["rank"], &first["region"]), (&1.into(), &"solve".into()), "{causes:#}");
        assert!(first["seconds"].as_f64() > Some(waited / 2.0), "{causes:#}");
        let why = document(&["why", "--json", "--region", "solve"], &recorded);
        assert_eq!(why["findings"], report["findings"], "{why:#}");
        assert_eq!(why["waiting"]["total_ticks"], causes["waiting"]["total_ticks"]);
        let screen = shown(&["report", "--region", "solve"], &recorded);
        let waits = screen.lines().skip_while(|line| !line.starts_with("WAIT STATES"));
        let longest = waits.take(2).collect::<Vec<_>>().join(" ");
        let expected = longest.contains("rank 1") && longest.contains("region solve");
        assert!(expected && longest.contains("wait at N x N"), "{screen}");
    }
}

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
